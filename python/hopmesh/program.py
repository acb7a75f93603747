"""This process as a part of a job: what it may ask of the daemon beside it."""

from __future__ import annotations

import itertools
import math
import time
import urllib.parse
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmesh import rendezvous
from hopmesh.attach import PROTOCOL, VERSION, Answer, Connection, Region
from hopmesh.client import Client
from hopmesh.error import Again, Error
from hopmesh.packing import Packed

# How batches are to lie, that the one after is announced, that labels may have columns, and that
# edges have more than ends: daemons before knew nothing of it.
_FORM = {"fresh_first": True, "following": True, "columns": True, "edges": True}
MOST_KEPT = 1 << 30
# How many vertices one batch may be drawn for.
MOST_DRAWN = 1 << 20
# How long a daemon may take to notice that the process before this one has ended.
_LEFT_SECONDS = 10.0
# How often a process beside a node without a part in the job looks whether it has got one.
_APART_SECONDS = 0.5


class Program:
    """Asks the daemon for batches, sums and the keeping of states. One thread uses it.

    ``rank``, ``size``, ``epoch`` and the other numbers are those of the last greeting.
    """

    def __init__(self, client: Client, job: str, waits: bool = True) -> None:
        """Without ``waits``, an Error is raised beside a node that has no part in the job."""
        if client.socket is None:
            raise Error(
                "batches come through shared memory, so the daemon must be on this machine: "
                "give hopmesh.connect its unix socket or its data directory"
            )
        self.job = job
        # Alone, a node does not know its name when it greets.
        self.node = str(client.get("/v1/status")["node"])
        self._connection = Connection(_attach(client, job, waits), client.address)
        self.hello()

    def hello(self) -> None:
        """Returns when the nodes of the job have met."""
        self._room: Region | None = None
        self._connection.late = None
        # What this rank counts in a mean. It is 1 outside of steps.
        self.weight = 1.0
        # Whether a batch was asked for since.
        self.begun = False
        while True:
            try:
                read = self._ask("hello", "ready", version=VERSION, **_FORM)
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
        # "multilabel" or "regression", with as many columns as there are classes; "": one class.
        self.targets = read.word("targets", ("multilabel", "regression"))
        # What edges have: relations, weights and columns of features.
        self.relations = read.number("relations") if read.has("relations") else 0
        self.weighted = read.flag("weighted")
        self.edge_features = read.number("edge_features") if read.has("edge_features") else 0
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
        connection = self._connection
        connection.settle()
        before, connection.late = connection.late, None
        if before is not None and (following := before.get("following")) is not None:
            if not isinstance(following, dict) or following.get("type") != "batch":
                raise connection.read(before).wrong("what it announced is no batch")
            made = connection.read(following)
            about = {"epoch": made.number("epoch"), "step": made.number("step")}
            connection.tell({"type": "announced", **about})  # there is nothing to wait for
            return "batch", made
        answer = connection.ask("next", "batch", "last", "end", "done")
        if answer["type"] == "batch":
            connection.late = answer
        return answer["type"], connection.read(answer)

    def draw(self, vertices: NDArray[Any], fanout: Sequence[int], number: int) -> Answer:
        """Has a batch of vertices drawn, which is valid until the next one is.

        ``fanout`` has the neighbours of each hop, 0 for all. Batches of one number have the same
        neighbours of a vertex.
        """
        if not 0 < len(vertices) <= MOST_DRAWN:
            raise Error(f"a batch is asked for {len(vertices)} vertices: give 1 to {MOST_DRAWN}")
        region = self._space(8 * len(vertices)).message()
        self._connection.array(self._space(8 * len(vertices)), "<i8", len(vertices))[:] = vertices
        hops = [int(k) for k in fanout]
        return self._ask("draw", "batch", region=region, fanout=hops, number=number)

    def own(self, part: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Returns the vertices of a part of the split that the node here owns, and their ids."""
        read = self._ask("own", "owned", part=part)
        vertices = self._list(read.region("n_id"))
        if read.has("ids"):
            return vertices.copy(), self._list(read.region("ids")).copy()
        ends = [0, *self._list(read.region("ends")).tolist()]
        text = self._connection.array(read.region("text"), "u1", read.region("text").bytes)
        whole = text.tobytes()
        if ends != sorted(ends) or ends[-1] != len(whole) or len(ends) != len(vertices) + 1:
            raise read.wrong("the ends of ids do not fit their text")
        names = [whole[a:b].decode(errors="replace") for a, b in itertools.pairwise(ends)]
        return vertices.copy(), np.array(names, dtype=object)

    def know(self) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Returns the labels of all vertices, -1 or NaN for none, and the parts of the split."""
        read = self._ask("know", "known")
        marks = self._connection.array(read.region("marks"), "u1", self.vertices)
        if self.targets:
            columns = self._connection.array(read.region("y"), "<f4", self.vertices, self.classes)
            return columns.copy(), marks.copy()
        y = self._connection.array(read.region("y"), "<i4", self.vertices)
        return y.astype(np.int64), marks.copy()

    def labels(self, region: Region, count: int) -> NDArray[Any]:
        """Returns labels of vertices: a class of each, or a row of numbers with NaN for none."""
        if self.targets:
            return self._connection.array(region, "<f4", count, self.classes)
        return self._connection.array(region, "<i8", count)

    def _list(self, region: Region) -> NDArray[np.int64]:
        return self._connection.array(region, "<i8", region.bytes // 8)

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


def _attach(client: Client, job: str, waits: bool) -> Any:
    path = f"/v1/jobs/{urllib.parse.quote(job, safe='')}"
    deadline = time.monotonic() + _LEFT_SECONDS
    while True:
        try:
            return client.upgrade(path + "/attach", PROTOCOL)
        except Error as error:
            if error.status != 409:
                raise
            about = client.get(path)
            apart = rendezvous.apart(client, about)
            if apart and about["state"] == "done":
                # The run that started this process ends it as one that is done.
                raise Again("its other nodes have done it") from None
            apart = apart and about["state"] == "running"
            if apart and not waits:
                raise Error(
                    f"{client.get('/v1/status')['node']} holds no part of {about['dataset']}: "
                    f"connect to the daemon of {' or '.join(about['nodes'])}"
                ) from None
            if apart:
                time.sleep(_APART_SECONDS)
                deadline = time.monotonic() + _LEFT_SECONDS
                continue
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)
