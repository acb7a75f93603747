"""The part that this process has in the jobs of a mesh, one after another."""

from __future__ import annotations

from typing import Any

from hopmesh import batch, collective, packing, rendezvous
from hopmesh.client import Client
from hopmesh.error import Error
from hopmesh.job import Job
from hopmesh.loader import Loader
from hopmesh.program import Program
from hopmesh.request import train_request


class Part:
    """Makes loaders, and does what belongs to the job of the last one."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loader: Loader | None = None
        self._made = 0

    def loader(self, dataset: str, given: dict[str, Any], kind: str, copy: bool) -> Loader:
        """Returns a loader, of a job that goes on or of a new one."""
        batch.maker(kind)  # before a job is made that nobody takes part in
        before = self._loader
        if before is not None and before.interrupted:
            self._loader = before.rejoin(kind, copy)
            return self._loader
        key = rendezvous.run_key()
        if before is not None and not before.done:
            if key and before.program.open:
                raise Error(f"job {before.job.id} is not done: finish its epochs or stop it")
            before.close()
        if key:
            # Each loader of a script has a job of its own, the same after it starts again.
            self._made += 1
            own = key if self._made == 1 else f"{key}-{self._made}"
        else:
            self._alone()
            own = rendezvous.new_key()
        request = train_request(dataset, {**given, "program.run": own})
        id = rendezvous.meet(self._client, own, request)
        job = Job(self._client, id)
        try:
            program = Program(self._client, id)
        except BaseException:
            if not key:
                job.stop()  # nobody else can take it up
            raise
        self._loader = Loader(program, job, kind, copy, ends_job=not key)
        return self._loader

    def reduce(self, value: Any, op: str | None, weight: float | None) -> Any:
        """Does what :meth:`Mesh.all_reduce` says."""
        return collective.all_reduce(self._program(), value, op, weight)

    def broadcast(self, value: Any, root: int) -> Any:
        """Does what :meth:`Mesh.broadcast` says."""
        return collective.broadcast(self._program(), value, root)

    def checkpoint(self, state: Any) -> None:
        """Does what :meth:`Mesh.checkpoint` says."""
        self._program().keep(packing.Packed(state))

    def restore(self) -> Any:
        """Does what :meth:`Mesh.restore` says."""
        program = self._program()
        if program.begun:
            raise Error("call mesh.restore() before the first batch")
        return None if program.state is None else packing.unpack(program.state)

    def _program(self) -> Program:
        if self._loader is None:
            raise Error("this belongs to a job: make its loader with mesh.loader first")
        return self._loader.program

    def _alone(self) -> None:
        """Raises an Error where other nodes would wait for their own process."""
        live = sum(m["status"] == "alive" for m in self._client.get("/v1/members"))
        if live > 1:
            raise Error(
                f"this mesh has {live} nodes, and each needs a process of its own: put this into "
                "a script, and start it with mesh.run or `hopmesh run`"
            )
