"""A job that trains nothing: its part is to have batches drawn for this process."""

from __future__ import annotations

import atexit
import contextlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmesh import batch, rendezvous
from hopmesh.client import Client
from hopmesh.error import Again, Error
from hopmesh.job import Job
from hopmesh.program import Program
from hopmesh.request import train_request

# What is added to a job's number in its run: no script has so many loaders.
_FURTHER = 1_000_000


class Aside:
    """Has batches drawn of any vertices. Only one job at a time runs on a node.

    ``about`` sets it apart from others. ``alone`` means that no other process takes part, so
    that it goes on by itself when the nodes change.
    """

    def __init__(
        self,
        client: Client,
        dataset: str,
        about: dict[str, Any],
        key: str | None,
        alone: bool,
    ) -> None:
        """``key`` is the job's in a run; without one, this process makes a job of its own."""
        self.dataset, self.about, self._alone, self._run = dataset, about, alone, bool(key)
        # What whoever draws batches keeps of the last one.
        self.last: Any = None
        own = key or rendezvous.new_key()
        id = self._find(client, own)
        while key and rendezvous.done(client, id):
            own = _once_more(own)  # the script was started again, and evaluates once more
            id = self._find(client, own)
        self.job = Job(client, id)
        try:
            self.program = Program(client, id, waits=self._run)
        except BaseException:
            if not key:
                with contextlib.suppress(Error):
                    self.job.stop()
            raise
        atexit.register(self._at_exit)

    def _find(self, client: Client, key: str) -> str:
        """Returns the job of this key."""
        fixed = {"model": "program", "strategy": "program", "layers": 1, "fanout": [1], "epochs": 1}
        request = train_request(self.dataset, {**fixed, **self.about, "program.run": key})
        if self._run:
            return rendezvous.meet(client, key, request)
        return rendezvous.make(client, request)

    @property
    def open(self) -> bool:
        """Reports whether batches can be drawn."""
        return self.program.open

    def draw(self, vertices: NDArray[Any], fanout: Sequence[int], number: int) -> batch.Batch:
        """Returns a batch, which is valid until the next one is drawn."""
        while True:
            try:
                return drawn(self.program, vertices, fanout, number)
            except Again:
                if not self._alone:
                    raise
                self.program.hello()  # nothing is lost

    def know(self) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Does what :meth:`Program.know` says."""
        while True:
            try:
                return self.program.know()
            except Again:
                if not self._alone:
                    raise
                self.program.hello()

    def close(self) -> None:
        """Ends the job. In a run, all ranks do."""
        atexit.unregister(self._at_exit)
        if not self.program.open:
            return
        with contextlib.suppress(Error):
            if self._run and not self.program.interrupted:
                self.program.stop()  # all of them are asked
            elif not self._run:
                self.job.stop()
        self.program.close()

    def _at_exit(self) -> None:
        if self._run and hasattr(sys, "last_value"):
            self.program.close()  # an error ended this process, and the run ends the others
        else:
            self.close()


def _once_more(key: str) -> str:
    """Returns another key of the same run, as all its ranks do."""
    run = rendezvous.run_key() or key
    number = int(key[len(run) + 1 :] or "1")  # run, or run-NUMBER
    return f"{run}-{number + _FURTHER}"


def drawn(
    program: Program, vertices: NDArray[Any], fanout: Sequence[int], number: int
) -> batch.Batch:
    """Returns a batch of vertices. Its arrays lie in the shared memory."""
    answer = program.draw(vertices, fanout, number)
    made = batch.read(answer, program, 0, number, copy=False, layers=len(fanout))
    if not np.array_equal(made.n_id[: made.batch_size], vertices):
        raise answer.wrong("a batch is of other vertices than it was asked for")
    return made
