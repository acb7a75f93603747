"""Batches of given vertices, each once, to evaluate a model or to use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmesh.batch import Batch
from hopmesh.error import Error
from hopmesh.program import Program

# The batches of an evaluation have one number: a vertex has the same neighbours in all.
_NUMBER = 0
Draw = Callable[[NDArray[Any], Sequence[int], int], Batch]


class EvalLoader:
    """Gives this rank's vertices of an evaluation in batches. :meth:`Mesh.loader` makes one.

    ::

        for batch in mesh.loader("cora", split="val", fanout=[10, 10], shuffle=False):
            scores = model(batch.x, batch.edge_index)[: batch.batch_size]
            right += int((scores.argmax(1) == batch.y).sum())
        right = mesh.all_reduce(right)

    Each rank gets the vertices that its node owns, so all ranks together get each vertex once. A
    rank may have more batches than another: sum after the loop. ``batch.ids`` are the vertices'
    own ids. A vertex has the same neighbours in each evaluation, whatever the batch. It may be
    iterated again. ``len(loader)`` counts batches and ``loader.count`` vertices.
    """

    def __init__(
        self,
        program: Program,
        draw: Draw,
        chosen: tuple[NDArray[np.int64], NDArray[Any]],
        fanout: Sequence[int],
        batch_size: int,
        kind: Callable[[Batch], Any],
        copy: bool,
    ) -> None:
        if batch_size < 1:
            raise Error(f"batch_size is {batch_size}: give 1 or more")
        self._program, self._draw, self._fanout = program, draw, list(fanout)
        self._vertices, self._ids = chosen
        self._size, self._make, self._copy = batch_size, kind, copy

    def __repr__(self) -> str:
        return f"<EvalLoader of {self.count} vertices: rank {self.rank} of {self.size}>"

    def __len__(self) -> int:
        """The number of this rank's batches."""
        return -(-self.count // self._size)

    @property
    def count(self) -> int:
        """How many vertices this rank has."""
        return len(self._vertices)

    @property
    def rank(self) -> int:
        """The number of this process among those of the job, from 0 on."""
        return self._program.rank

    @property
    def size(self) -> int:
        """How many processes the job has."""
        return self._program.size

    @property
    def features(self) -> int:
        """The number of columns of x."""
        return self._program.features

    @property
    def classes(self) -> int:
        """The number of classes, or of the columns of y."""
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

    def __iter__(self) -> Iterator[Any]:
        """Yields the batches. Their arrays hold until the next one, unless they are copied."""
        for first in range(0, self.count, self._size):
            part = slice(first, first + self._size)
            batch = self._draw(self._vertices[part], self._fanout, _NUMBER)
            if self._copy:
                batch.change(lambda array: array.copy())
            batch.ids = self._ids[part]
            yield self._make(batch)


def choose(
    program: Program, part: str | None, ids: Any, add: Callable[[int], float]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Returns the vertices of this rank, and their ids: those of a part, or with given ids.

    ``add`` sums over all ranks.
    """
    if part is not None:
        return program.own(part)
    wanted = np.asarray(ids)
    if wanted.ndim != 1 or len(wanted) == 0:
        raise Error(f"ids have the shape {wanted.shape}: give a list of ids")
    if len(np.unique(wanted)) != len(wanted):
        raise Error("some ids occur twice: give each once")
    vertices, own = program.own("all")
    if (wanted.dtype.kind in "iu") != (own.dtype != object):
        of = "whole numbers" if own.dtype != object else "texts"
        raise Error(f"the ids of this dataset are {of}, and those given are {wanted.dtype}")
    order = np.argsort(own, kind="stable")
    at = np.searchsorted(own, wanted, sorter=order)
    place = order[np.minimum(at, len(own) - 1)] if len(own) else np.zeros(len(wanted), np.int64)
    here = own[place] == wanted if len(own) else np.zeros(len(wanted), bool)
    if (missing := len(wanted) - round(add(int(here.sum())))) > 0:
        first = f", such as {wanted[~here][0]}" if program.size == 1 else ""
        raise Error(f"{missing} of {len(wanted)} ids are none of this dataset{first}")
    return vertices[place[here]], own[place[here]]
