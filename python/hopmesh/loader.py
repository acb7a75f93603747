"""The batches of a job, and the course of its epochs."""

from __future__ import annotations

import atexit
import contextlib
import math
from collections.abc import Iterator
from typing import Any

from hopmesh import batch as batches
from hopmesh.error import Error
from hopmesh.job import Job
from hopmesh.program import Program

# What may be asked next: a batch, what belongs to the end of an epoch, or nothing.
_BATCHES, _LAST, _DONE = "batches", "last", "done"


class Loader:
    """Gives this rank's part of each batch. :meth:`Mesh.loader` makes one.

    ::

        for epoch in loader.epochs():
            for batch in loader:
                ...
            loader.report(loss=loss, val_acc=accuracy)

    Both loops begin where the job stands: after an interruption, at the last checkpoint. Where
    nothing is reported, ``for batch in loader`` alone is an epoch.

    The arrays of a batch lie in memory that the daemon fills anew: they hold it until the next
    batch is asked for, unless the loader was made with ``copy=True``.
    """

    def __init__(
        self, program: Program, job: Job, dataset: str, kind: str, copy: bool, ends_job: bool
    ) -> None:
        """``ends_job`` has the job stopped if this loader is left before it is done."""
        self.job, self.dataset = job, dataset
        self._program, self._copy, self._ends_job = program, copy, ends_job
        self._make = batches.maker(kind)
        self._stopping = self._within = False
        self.epoch, self._phase = program.epoch, _BATCHES
        atexit.register(self.close)
        if self.epoch > program.epochs:
            self._expect("done")

    def __repr__(self) -> str:
        return f"<Loader of job {self.job.id}: rank {self.rank} of {self.size}>"

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return self._program.steps

    @property
    def rank(self) -> int:
        """The number of this process among those of the job, from 0 on."""
        return self._program.rank

    @property
    def size(self) -> int:
        """How many processes the job has."""
        return self._program.size

    @property
    def node(self) -> str:
        """The name of the node beside this process."""
        return self._program.node

    @property
    def features(self) -> int:
        """The number of columns of x."""
        return self._program.features

    @property
    def classes(self) -> int:
        """The number of classes, or of the columns of y: how many outputs a model has."""
        return self._program.classes

    @property
    def relations(self) -> int:
        """The number of relations that edge_type of batches counts; 0: edges have none."""
        return self._program.relations

    @property
    def edge_features(self) -> int:
        """The number of columns of edge_attr; 0: edges have no features."""
        return self._program.edge_features

    @property
    def task(self) -> str:
        """``"class"``, ``"multilabel"`` or ``"regression"``: what y holds."""
        return self._program.targets or "class"

    @property
    def vertices(self) -> int:
        """The number of vertices of the dataset."""
        return self._program.vertices

    @property
    def done(self) -> bool:
        """Reports whether all epochs are over."""
        return self._phase == _DONE

    def epochs(self) -> Iterator[int]:
        """Yields the numbers of the epochs that are left, from 1 on.

        When an epoch's body ends, what is left of its batches is passed over, and the nodes
        agree that the epoch is over. After :meth:`stop` that was the last one.
        """
        while self._phase != _DONE:
            self._within = True
            try:
                yield self.epoch
            finally:
                self._within = False
            self._end_epoch()

    def __iter__(self) -> Iterator[Any]:
        """Yields the batches that are left of the epoch."""
        if self._phase == _DONE:
            raise Error(f"all {self._program.epochs} epochs of job {self.job.id} are over")
        if self._phase == _LAST:
            raise Error(f"epoch {self.epoch} has no more batches: go on with loader.epochs()")
        while (batch := self._next()) is not None:
            yield batch
        if not self._within:
            self._end_epoch()

    def report(
        self,
        loss: Any = None,
        *,
        train_acc: Any = None,
        val_acc: Any = None,
        test_acc: Any = None,
        val_loss: Any = None,
    ) -> None:
        """Records what the epoch has come to, after its last batch; rank 0's report counts.

        ``hopmesh train show`` and :attr:`Job.history` have it. Accuracies are fractions of 1.
        """
        if self._phase != _LAST:
            raise Error("report in the body of loader.epochs(), after the epoch's last batch")
        given = {
            "loss": loss,
            "train_acc": train_acc,
            "val_acc": val_acc,
            "test_acc": test_acc,
            "val_loss": val_loss,
        }
        numbers = {name: None if value is None else float(value) for name, value in given.items()}
        for name, number in numbers.items():
            if number is not None and not math.isfinite(number):
                numbers[name] = None
            elif name.endswith("acc") and number is not None and not 0 <= number <= 1:
                raise Error(f"{name} is {number}: give a fraction of 1")
        self._program.report(numbers)

    def stop(self) -> None:
        """Ends the job when the epoch is over. All ranks call it in the same epoch.

        To decide alike, let them decide by numbers that :meth:`Mesh.all_reduce` gave them.
        """
        if not self._within:
            raise Error("stop in the body of loader.epochs(): the job ends with that epoch")
        self._stopping = True

    def close(self) -> None:
        """Leaves the job. One that no other process can take up is stopped."""
        atexit.unregister(self.close)
        self._program.close()
        if self._ends_job and self._phase != _DONE:
            with contextlib.suppress(Error):
                self.job.stop()
        self._phase = _DONE

    @property
    def interrupted(self) -> bool:
        """Reports whether Again was raised, so that :meth:`rejoin` may follow."""
        return self._program.interrupted

    @property
    def program(self) -> Program:
        """What talks to the daemon."""
        return self._program

    def rejoin(self, kind: str, copy: bool) -> Loader:
        """Returns a loader for the rest of the job after Again."""
        atexit.unregister(self.close)
        self._program.hello()
        # The frames that Again left may hold this one's loops.
        return Loader(self._program, self.job, self.dataset, kind, copy, self._ends_job)

    def _next(self) -> Any:
        """Returns the next batch, or None after the last one of the epoch."""
        if self._phase != _BATCHES:
            return None
        kind, answer = self._program.next()
        if kind == "batch":
            self.epoch, step = answer.number("epoch"), answer.number("step")
            batch = batches.read(answer, self._program, self.epoch, step, self._copy)
            self._program.weight = float(batch.weight)
            return self._make(batch)
        self._take(kind, "last")
        return None

    def _end_epoch(self) -> None:
        while self._phase == _BATCHES:
            kind, _ = self._program.next()  # nobody wants the batch
            if kind != "batch":
                self._take(kind, "last")
        if self._phase == _DONE:
            return
        self._expect("end")
        if self._phase == _DONE:
            return
        if self._stopping:
            self._program.stop()
            self._take("done")
        elif self.epoch == self._program.epochs:
            self._expect("done")
        else:
            self.epoch += 1

    def _expect(self, wanted: str) -> None:
        kind, _ = self._program.next()
        self._take(kind, wanted)

    def _take(self, kind: str, wanted: str = "done") -> None:
        """Follows the daemon, which may end the job wherever it asks for something."""
        if kind not in (wanted, "done"):
            self._program.close()
            raise Error(f"the daemon sent {kind!r} where it was to send {wanted!r}")
        self._phase = {"last": _LAST, "end": _BATCHES, "done": _DONE}[kind]
        if self._phase == _DONE:
            self._program.close()
            atexit.unregister(self.close)
