"""The edges of a graph, for models that compute in numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopmesh.error import Error

Rows = NDArray[np.float64]


def pairs_of(edge_index: ArrayLike) -> NDArray[np.int64]:
    """Returns the sources and the targets of edges."""
    pairs = np.asarray(edge_index)
    if pairs.size == 0:
        return np.zeros((2, 0), dtype=np.int64)
    if pairs.ndim != 2 or len(pairs) != 2:
        shape = "x".join(str(n) for n in pairs.shape)
        hint = ", so transpose it" if pairs.ndim == 2 and pairs.shape[1] == 2 else ""
        raise Error(f"edge_index is {shape}: it has to be 2 x edges, sources above targets{hint}")
    return pairs.astype(np.int64, copy=False)


class Edges:
    """The edges of a graph, sorted by their targets, to add up rows along them."""

    def __init__(
        self,
        edge_index: ArrayLike,
        weight: ArrayLike | None,
        vertices: int,
        features: ArrayLike | None = None,
    ) -> None:
        source, target = pairs_of(edge_index)
        ends = np.concatenate([source, target])
        if ends.size and not 0 <= ends.min() <= ends.max() < vertices:
            raise Error(f"edge_index has vertices beyond the {vertices} rows of x")
        value = np.ones(len(source)) if weight is None else np.asarray(weight, dtype=np.float64)
        if value.shape != source.shape:
            raise Error(f"edge_weight has to hold one number for each of the {len(source)} edges")
        # An import adds up the weights of edges between the same two, so do this here.
        pairs, where = np.unique(target * vertices + source, return_inverse=True)
        self.target, self.source = np.divmod(pairs, vertices) if vertices else (pairs, pairs)
        summed = np.bincount(where, weights=value, minlength=len(pairs))
        self.weight: Rows = summed.astype(np.float64)
        # Those of edges between the same two are averaged.
        rows = np.zeros((len(source), 0)) if features is None else np.asarray(features, np.float64)
        if rows.size and len(rows) != len(source):
            raise Error(f"edge_attr has to hold one row for each of the {len(source)} edges")
        rows = rows.reshape(len(source), -1) if rows.size else np.zeros((len(source), 0))
        total, where = np.zeros((len(pairs), rows.shape[1])), where.reshape(-1)
        np.add.at(total, where, rows)
        self.features: Rows = total / np.bincount(where, minlength=len(pairs))[:, None]
        self.vertices = vertices
        self._find_rows()

    def _find_rows(self) -> None:
        self.count = np.bincount(self.target, minlength=self.vertices)
        self.present = np.flatnonzero(self.count)
        self.starts = (np.cumsum(self.count) - self.count)[self.present]

    def looped(self) -> Edges:
        """Returns the same edges, and one of weight 1 to itself for each vertex without."""
        missing = np.setdiff1d(np.arange(self.vertices), self.source[self.source == self.target])
        more = Edges.__new__(Edges)
        target = np.concatenate([self.target, missing])
        order = np.argsort(target, kind="stable")
        more.vertices, more.target = self.vertices, target[order]
        more.source = np.concatenate([self.source, missing])[order]
        more.weight = np.concatenate([self.weight, np.ones(len(missing))])[order]
        # A loop has the mean of the vertex' other edges.
        means = self.sum(self.features) / np.maximum(self.count, 1.0)[:, None]
        more.features = np.concatenate([self.features, means[missing]])[order]
        more._find_rows()
        return more

    def sum(self, values: Rows) -> Rows:
        """Adds up a value for each edge by its target."""
        return self._reduce(np.add, values)

    def largest(self, values: Rows) -> Rows:
        """Returns the largest value of each target's edges, 0 if it has none."""
        return self._reduce(np.maximum, values)

    def mean(self, rows: Rows) -> Rows:
        """Returns the mean of each target's sources, 0 if it has none."""
        return self.sum(rows[self.source]) / np.maximum(self.count, 1.0)[:, None]

    def softmax(self, scores: Rows) -> Rows:
        """Turns the scores of each target's edges into shares."""
        share = np.exp(scores - self.largest(scores)[self.target])
        return share / self.sum(share)[self.target]

    def symmetric(self, rows: Rows) -> Rows:
        """Adds up sources, each divided by the roots of both ends' degrees."""
        degree = self.sum(self.weight)
        root = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1)), 0)
        value = self.weight * root[self.source] * root[self.target]
        return self.sum(rows[self.source] * value[:, None])

    def _reduce(self, how: np.ufunc, values: Rows) -> Rows:
        out = np.zeros((self.vertices, *values.shape[1:]))
        if len(self.starts):
            out[self.present] = how.reduceat(values, self.starts, axis=0)
        return out
