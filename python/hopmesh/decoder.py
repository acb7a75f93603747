"""Scores pairs of vertices by their embeddings, as a model of links does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopmesh.edges import Rows
from hopmesh.error import Error

PREFIX = "decoder."
# Files of earlier programs name no decoder: it was the only one.
_FIRST = "dot"
# How many pairs are scored at once, so that memory does not depend on how many there are.
_AT_ONCE = 1 << 14


class Decoder:
    """What a model of links computes from the embeddings of both ends of an edge."""

    def __init__(self, metadata: Mapping[str, str], weights: Mapping[str, NDArray[Any]]) -> None:
        self.name = metadata.get("decoder") or _FIRST
        links = json.loads(metadata.get("training") or "{}").get("links") or {}
        # 0: pairs have no relation.
        self.relations = int(links.get("relations") or 0)
        self._w = {
            name.removeprefix(PREFIX): weight.astype(np.float64)
            for name, weight in weights.items()
            if name.startswith(PREFIX)
        }
        if self.name not in ("dot", "distmult", "mlp"):
            raise Error(f"score knows no decoder {self.name}: it may need a newer hopmesh")

    def score(
        self, embeddings: NDArray[Any], pairs: ArrayLike, relation: ArrayLike | None
    ) -> NDArray[np.float32]:
        """Returns the score of each pair of rows, from the first to the second."""
        ends = np.asarray(pairs)
        if ends.size == 0:
            return np.zeros(0, np.float32)
        if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
            raise Error(
                f"pairs are an array of {ends.dtype} of the shape {ends.shape}: give a row of two "
                "whole numbers for each pair, such as [[0, 1], [0, 2]]"
            )
        if not 0 <= ends.min() <= ends.max() < len(embeddings):
            raise Error(
                f"pairs have vertices beyond the {len(embeddings)} rows of embeddings: give "
                "places of rows, counted from 0"
            )
        kinds = self._relations(relation, len(ends))
        scores = np.empty(len(ends), np.float32)
        for first in range(0, len(ends), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            sources, targets = embeddings[ends[part].T].astype(np.float64)
            scores[part] = self._decode(sources * targets, kinds[part])
        return scores

    def _decode(self, product: Rows, kinds: NDArray[np.int64]) -> Rows:
        """Scores pairs by the products of their embeddings, column by column."""
        w = self._w
        if self.name == "mlp":
            hidden = np.maximum(product @ w["0.weight"] + w["0.bias"].reshape(-1), 0)
            last: Rows = hidden @ w["1.weight"].reshape(-1) + w["1.bias"].reshape(-1)
            return last
        if self.name == "distmult":
            product = product * w["weight"][kinds]
        total: Rows = product.sum(1)
        return total

    def _relations(self, relation: ArrayLike | None, count: int) -> NDArray[np.int64]:
        """Returns the number of each pair's relation, 0 where pairs have none."""
        if self.relations == 0:
            if relation is not None:
                raise Error("the model has learnt links without relations: leave relation out")
            return np.zeros(count, np.int64)
        if relation is None:
            raise Error(
                "the model has learnt triples: give relation, the number of the relation of all "
                "pairs or of each"
            )
        kinds = np.asarray(relation)
        known = (
            kinds.dtype.kind in "iu"
            and kinds.shape in ((), (count,))
            and bool(((0 <= kinds) & (kinds < self.relations)).all())
        )
        if not known:
            raise Error(
                f"relation has to be a number from 0 to {self.relations - 1}, or one for each of "
                f"{count} pairs"
            )
        return np.broadcast_to(kinds.astype(np.int64), (count,))
