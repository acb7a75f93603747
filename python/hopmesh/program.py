"""This process as a part of a job: what it may ask of the daemon beside it."""

from __future__ import annotations

import math
import time
import urllib.parse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmesh import rendezvous
from hopmesh.attach import PROTOCOL, VERSION, Answer, Connection, Region
from hopmesh.client import Client
from hopmesh.error import Again, Error
from hopmesh.packing import Packed

MOST_KEPT = 1 << 30
# How long a daemon may take to notice that the process before this one has ended.
_LEFT_SECONDS = 10.0
# How often a process beside a node without a part in the job looks whether it has got one.
_APART_SECONDS = 0.5


class Program:
    """Asks the daemon for batches, sums and the keeping of states. One thread uses it.

    ``rank``, ``size``, ``epoch`` and the other numbers are those of the last greeting.
    """

    def __init__(self, client: Client, job: str) -> None:
        if client.socket is None:
            raise Error(
                "batches come through shared memory, so the daemon must be on this machine: "
                "give hopmesh.connect its unix socket or its data directory"
            )
        self.job = job
        # Alone, a node does not know its name when it greets.
        self.node = str(client.get("/v1/status")["node"])
        self._connection = Connection(_attach(client, job), client.address)
        self.hello()

    def hello(self) -> None:
        """Returns when the nodes of the job have met."""
        self._room: Region | None = None
        # What this rank counts in a mean. It is 1 outside of steps.
        self.weight = 1.0
        # Whether a batch was asked for since.
        self.begun = False
        while True:
            try:
                read = self._ask("hello", "ready", version=VERSION)
                break
            except Again:
                pass  # the nodes changed again before they had met
        if read.number("version") != VERSION:
            raise Error("the daemon speaks another version: install this package's program there")
        self.rank, self.size = read.number("rank"), read.number("size")
        self.epoch, self.epochs = read.number("epoch"), read.number("epochs")
        self.step, self.steps = read.number("step"), read.number("steps")
        self.vertices, self.features = read.number("vertices"), read.number("features")
        self.classes, self.layers = read.number("classes"), read.number("layers")
        self.state: bytes | None = None
        if read.has("state"):
            region = read.region("state")
            self.state = self._connection.array(region, "u1", region.bytes).tobytes()

    def close(self) -> None:
        """Leaves the job."""
        self._connection.close()

    @property
    def open(self) -> bool:
        """Reports whether anything can be asked."""
        return self._connection.open

    @property
    def interrupted(self) -> bool:
        """Reports whether only a greeting may follow, after Again."""
        return self._connection.open and self._connection.interrupted

    def next(self) -> tuple[str, Answer]:
        """Asks for what comes next: a batch, or that an epoch or all is over."""
        self.weight, self.state, self.begun = 1.0, None, True
        answer = self._connection.ask("next", "batch", "last", "end", "done")
        return answer["type"], self._connection.read(answer)

    def array(self, region: Region, dtype: str, *shape: int) -> NDArray[Any]:
        """Returns a region of an answer as an array, which it may be only if the sizes fit."""
        return self._connection.array(region, dtype, *shape)

    def buffer(self, count: int, dtype: str) -> NDArray[Any]:
        """Returns shared memory for numbers that are to be summed. The one before is gone."""
        size = count * np.dtype(dtype).itemsize
        return self._connection.array(self._space(size), dtype, count)

    def sum(self, buffer: NDArray[Any], weight: float) -> float:
        """Replaces the numbers of a buffer by their sums, and returns that of the weights."""
        region = self._space(buffer.nbytes).message()
        read = self._sum(buffer.dtype.itemsize, region, weight)
        return read.real("weight")

    def sum_of_others(self, count: int, dtype: str) -> tuple[NDArray[Any], float]:
        """Takes part in a sum without numbers, and returns what the others' sum is."""
        read = self._sum(np.dtype(dtype).itemsize, None, 0)
        if read.region("region").bytes == 0:  # no rank has brought any
            return np.zeros(count, dtype), read.real("weight")
        return self.array(read.region("region"), dtype, count), read.real("weight")

    def keep(self, state: Packed) -> None:
        """Keeps a state: from it the job goes on if it is interrupted."""
        if state.size > MOST_KEPT:
            raise Error(f"the state has {state.size} bytes, and {MOST_KEPT} can be kept: keep less")
        region = self._space(state.size)
        state.write(self._connection.array(region, "u1", state.size))
        self._ask("keep", "kept", region=region.message())

    def report(self, numbers: dict[str, float | None]) -> None:
        """Reports what the epoch under way has come to."""
        self._ask("report", "noted", **numbers)

    def stop(self) -> None:
        """Ends the job after the epoch that is over."""
        self._ask("stop", "done")

    def _ask(self, kind: str, answer: str, **question: Any) -> Answer:
        return self._connection.read(self._connection.ask(kind, answer, **question))

    def _sum(self, itemsize: int, region: dict[str, int] | None, weight: float) -> Answer:
        if not math.isfinite(weight):
            raise Error(f"a weight of {weight} can't be: give a finite number")
        dtype = f"f{8 * itemsize}"
        return self._ask("sum", "summed", dtype=dtype, region=region, weight=weight)

    def _space(self, size: int) -> Region:
        """Returns shared memory of some bytes."""
        if self._room is None or self._room.bytes < size:
            self._room = self._ask("room", "room", bytes=size).region("region")
            if self._room.bytes < size:
                self.close()
                raise Error(f"the daemon gave {self._room.bytes} bytes of room and not {size}")
        return self._room.first(size)


def _attach(client: Client, job: str) -> Any:
    path = f"/v1/jobs/{urllib.parse.quote(job, safe='')}"
    deadline = time.monotonic() + _LEFT_SECONDS
    apart = False
    while True:
        try:
            return client.upgrade(path + "/attach", PROTOCOL)
        except Error as error:
            if error.status != 409:
                raise
            about = client.get(path)
            if apart and about["state"] == "done":
                # The run that started this process ends it as one that is done.
                raise Again("its other nodes have done it") from None
            apart = about["state"] == "running" and rendezvous.apart(client, about)
            if apart:
                time.sleep(_APART_SECONDS)
                deadline = time.monotonic() + _LEFT_SECONDS
                continue
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)
