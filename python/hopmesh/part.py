"""The part that this process has in the jobs of a mesh, one after another."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from hopmesh import batch, collective, packing, rendezvous
from hopmesh.aside import Aside, drawn
from hopmesh.client import Client
from hopmesh.error import Error
from hopmesh.evaluation import EvalLoader, choose
from hopmesh.finished import Finished
from hopmesh.job import Job
from hopmesh.loader import Loader
from hopmesh.program import Program
from hopmesh.request import train_request


class Part:
    """Makes loaders, and does what belongs to the job of the last one."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loader: Loader | None = None
        self._aside: Aside | None = None
        self._made = 0
        # What was kept last, for the next loader; and the part in its job, if that is known.
        self._kept: packing.Packed | None = None
        self._ahead: Program | None = None

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
        self._put_aside()
        if not key:
            self._alone()
        own = self._key(key) or rendezvous.new_key()
        request = train_request(dataset, {**given, "program.run": own})
        id = rendezvous.meet(self._client, own, request)
        job = Job(self._client, id)
        if key and rendezvous.done(self._client, id):
            # The script was started again when it had done this one.
            self._loader = Loader(
                Finished(self._client, id), job, dataset, kind, copy, ends_job=False
            )
            return self._loader
        program, self._ahead = self._ahead, None
        if program is None or program.job != id:
            try:
                program = Program(self._client, id)
            except BaseException:
                if not key:
                    job.stop()  # nobody else can take it up
                raise
            if key and self._kept is not None and (program.state, program.epoch) == (None, 1):
                program.keep(self._kept)  # what the loader before has come to is not lost
        self._loader = Loader(program, job, dataset, kind, copy, ends_job=not key)
        return self._loader

    def evaluation(
        self,
        dataset: str,
        part: str | None,
        ids: Any,
        about: dict[str, Any],
        fanout: Sequence[int],
        batch_size: int,
        kind: str,
        copy: bool,
    ) -> EvalLoader:
        """Returns batches of vertices: of the loader's job if that goes on, or of another."""
        make = batch.maker(kind)
        loader = self._training()
        if loader is None:
            if not rendezvous.run_key():
                self._alone()
            aside = self._drawing(dataset, about, alone=False)
            program, draw = aside.program, aside.draw
        elif loader.dataset != dataset:
            raise Error(
                f"job {loader.job.id} is on {loader.dataset} and not done: evaluate on {dataset} "
                "after its epochs"
            )
        else:
            program = loader.program
            draw = functools.partial(drawn, program)

        def add(count: int) -> float:
            return float(collective.all_reduce(program, count, None, None))

        chosen = choose(program, part, ids, add)
        return EvalLoader(program, draw, chosen, fanout, batch_size, make, copy)

    def aside(self, dataset: str) -> Aside:
        """Returns what draws batches of a dataset for this process alone, of features as given."""
        if loader := self._training():
            raise Error(f"job {loader.job.id} is not done: finish its epochs or stop it")
        about = {"normalize_features": "none"}
        return self._drawing(dataset, about, alone=not rendezvous.run_key())

    def _training(self) -> Loader | None:
        """Returns the loader whose job goes on, if there is one."""
        loader = self._loader
        return loader if loader is not None and not loader.done and loader.program.open else None

    def _drawing(self, dataset: str, about: dict[str, Any], alone: bool) -> Aside:
        aside = self._aside
        if aside is None or not aside.open or (aside.dataset, aside.about) != (dataset, about):
            self._put_aside()
            key = self._key(rendezvous.run_key())
            aside = self._aside = Aside(self._client, dataset, about, key, alone)
        return aside

    def _put_aside(self) -> None:
        if self._aside is not None:
            self._aside.close()
            self._aside = None

    def _key(self, key: str | None) -> str | None:
        """Returns the key of the next job of a run: the same after the script starts again."""
        if not key:
            return None
        self._made += 1
        return key if self._made == 1 else f"{key}--{self._made}"

    def reduce(self, value: Any, op: str | None, weight: float | None) -> Any:
        """Does what :meth:`Mesh.all_reduce` says."""
        return collective.all_reduce(self._program(), value, op, weight)

    def broadcast(self, value: Any, root: int) -> Any:
        """Does what :meth:`Mesh.broadcast` says."""
        return collective.broadcast(self._program(), value, root)

    def checkpoint(self, state: Any) -> None:
        """Does what :meth:`Mesh.checkpoint` says."""
        packed = packing.Packed(state)
        self._program().keep(packed)
        self._kept = packed

    def restore(self) -> Any:
        """Does what :meth:`Mesh.restore` says."""
        if self._over() and self._next_job() is None:
            return None
        program = self._program()
        if program.begun:
            raise Error("call mesh.restore() before the first batch")
        return None if program.state is None else packing.unpack(program.state)

    def _program(self) -> Program:
        if self._aside is not None and self._aside.open:
            return self._aside.program
        if self._loader is None:
            raise Error("this belongs to a job: make its loader with mesh.loader first")
        if not self._over():
            return self._loader.program
        if program := self._next_job():
            return program
        raise Error(f"job {self._loader.job.id} is done: make the next loader first")

    def _over(self) -> bool:
        """Reports whether the last loader's job was done before this process began."""
        return self._loader is not None and isinstance(self._loader.program, Finished)

    def _next_job(self) -> Program | None:
        """Returns the part in the job that goes on, where those of loaders before it are done."""
        key = rendezvous.run_key()
        if self._ahead is None and key and (id := rendezvous.next_of(self._client, key)):
            self._ahead = Program(self._client, id)
        return self._ahead

    def _alone(self) -> None:
        """Raises an Error where other nodes would wait for their own process."""
        live = sum(m["status"] == "alive" for m in self._client.get("/v1/members"))
        if live > 1:
            raise Error(
                f"this mesh has {live} nodes, and each needs a process of its own: put this into "
                "a script, and start it with mesh.run or `hopmesh run`"
            )
