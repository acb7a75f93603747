"""Computes with exported models, in numpy alone."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopmesh import safetensors
from hopmesh.decoder import Decoder
from hopmesh.edges import Edges, Rows, pairs_of
from hopmesh.error import Error

Weights = Mapping[str, Rows]
_FORMAT = "hopmesh-model/1"
_SLOPE = 0.2  # of the leaky ReLU of attention below 0
_LEARNT = "embedding.weight"  # a row for each vertex of the dataset


@dataclass
class Place:
    """What a convolution knows of where it stands."""

    spec: Mapping[str, Any]
    layer: int  # from 0
    answers: bool  # its output is the scores
    first: Rows  # what the first layer was given
    relations: Sequence[Edges] = ()  # the edges of each relation, each of weight 1


def _gcn(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    if at.spec["model"] == "hetero:gcn":
        return edges.mean(x @ w["weight"])
    return edges.symmetric(x @ w["weight"])


def _sage(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    how = at.spec.get("aggregator", "mean")
    if how == "max":
        heard = edges.largest(x[edges.source]) @ w["weight"]
    else:
        heard = edges.mean(x @ w["weight"])
    return heard if how == "gcn" else heard + x @ w["root.weight"]


def _gat(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    heads = at.spec["out_heads"] if at.answers else at.spec["heads"]
    split = (len(x), heads, -1)
    if at.spec.get("version", 1) == 2:
        seen = (x @ w["source.weight"] + w.get("source.bias", 0)).reshape(split)
        own = (x @ w["target.weight"] + w.get("target.bias", 0)).reshape(split)
        both = _leaky(seen[edges.source] + own[edges.target])
        score = (both * w["attention"].reshape(1, heads, -1)).sum(2)
    else:
        seen = (x @ w["weight"]).reshape(split)
        left = (seen * w["attention.source"].reshape(1, heads, -1)).sum(2)
        right = (seen * w["attention.target"].reshape(1, heads, -1)).sum(2)
        along = left[edges.source] + right[edges.target]
        if "edges.weight" in w:
            described = (edges.features @ w["edges.weight"]).reshape(len(along), heads, -1)
            along = along + (described * w["attention.edge"].reshape(1, heads, -1)).sum(2)
        score = _leaky(along)
    y = edges.sum(seen[edges.source] * edges.softmax(score)[:, :, None])
    together: Rows = y.mean(1) if at.answers else y.reshape(len(x), -1)
    return together


def _gin(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    message = x[edges.source]
    if "edges.weight" in w:
        message = np.maximum(message + edges.features @ w["edges.weight"] + w["edges.bias"], 0)
    heard = x + edges.sum(message * edges.weight[:, None])
    return np.maximum(heard @ w["inner.weight"] + w["inner.bias"], 0) @ w["weight"]


def _mpnn(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    message = np.concatenate([x[edges.source], edges.features], axis=1)
    message = np.maximum(message @ w["message.weight"] + w["message.bias"], 0)
    if at.spec.get("aggregator") == "sum":
        heard = edges.sum(message * edges.weight[:, None])
    else:
        heard = edges.sum(message) / np.maximum(edges.count, 1.0)[:, None]
    return np.concatenate([x, heard], axis=1) @ w["weight"]


def _gcnii(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    alpha, beta = at.spec["alpha"], math.log(at.spec["theta"] / (at.layer + 1) + 1)
    mixed: Rows = (1 - alpha) * edges.symmetric(x) + alpha * at.first
    return (1 - beta) * mixed + beta * (mixed @ w["weight"])


def _mlp(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    return x @ w["weight"]


def _rgcn(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    if "bases.weight" in w:
        bases = w["bases.weight"].reshape(w["bases.shares"].shape[1], -1)
        weight = (w["bases.shares"] @ bases).reshape(-1, w["bases.weight"].shape[1])
    else:
        weight = w["weight"]
    means = np.concatenate([one.mean(x) for one in at.relations], axis=1)
    heard: Rows = means @ weight + x @ w["root.weight"]
    return heard


def _hgt(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    """Attends over the edges of all relations at once, with weights by type and by relation."""
    heads, kinds = at.spec["heads"], len(w["skip"])
    width = x.shape[1] // heads
    shape = (-1, heads, width)
    starts, ends = _types(at, "starts"), _types(at, "ends")
    # A vertex' type is that at which its in-edges end, and none without any.
    of = np.full(len(x), -1)
    for kind, one in zip(ends, at.relations, strict=True):
        of[one.present] = kind

    def linear(name: str, rows: Rows, kind: int) -> Rows:
        y: Rows = rows @ np.split(w[f"{name}.weight"], kinds)[kind] + w[f"{name}.bias"][kind]
        return y

    def through(name: str, rows: Rows, relation: int) -> Rows:
        all_of = w[f"relations.{name}"].reshape(len(at.relations), heads, width, width)
        y: Rows = np.einsum("nhi,hij->nhj", rows.reshape(shape), all_of[relation])
        return y

    scores, messages, targets = [], [], []
    for r, one in enumerate(at.relations):
        rows = x[one.source]
        key = through("attention", linear("keys", rows, starts[r]), r)
        query = linear("queries", x[one.target], ends[r]).reshape(shape)
        scores.append((key * query).sum(2) * w["relations.prior"][r] / math.sqrt(width))
        messages.append(through("message", linear("values", rows, starts[r]), r))
        targets.append(one.target)
    target, score = np.concatenate(targets), np.concatenate(scores)
    largest = np.full((len(x), heads), -np.inf)
    np.maximum.at(largest, target, score)
    share, total = np.exp(score - largest[target]), np.zeros((len(x), heads))
    np.add.at(total, target, share)
    heard = np.zeros((len(x), heads, width))
    np.add.at(heard, target, np.concatenate(messages) * (share / total[target])[:, :, None])
    curved = heard.reshape(x.shape) / (1 + np.exp(-1.702 * heard.reshape(x.shape)))
    y = x.copy()
    for kind in range(kinds):
        here, gate = of == kind, 1 / (1 + np.exp(-w["skip"][kind]))
        y[here] = gate * linear("output", curved[here], kind) + (1 - gate) * x[here]
    return y


def _types(at: Place, ends: str) -> NDArray[np.int64]:
    """Returns the type at which each relation starts or ends; all are one where none is given."""
    if given := at.spec.get(ends):
        return np.array(given.split(","), dtype=np.int64)
    return np.zeros(len(at.relations), dtype=np.int64)


def _hetero(w: Weights, x: Rows, edges: Edges, at: Place) -> Rows:
    """Joins a convolution of each relation over those that end at a vertex' type."""
    convolve = _CONVOLUTIONS[at.spec["model"].removeprefix(_HETERO)]
    n = len(at.relations)
    parts = {
        name.removeprefix("relations."): np.split(weight, n)
        for name, weight in w.items()
        if name.startswith("relations.")
    }
    each = [
        convolve({k: part[r] for k, part in parts.items()}, x, one, at)
        + (parts["bias"][r] if "bias" in parts else 0)
        for r, one in enumerate(at.relations)
    ]
    if ends := at.spec.get("ends"):
        types = np.array(ends.split(","), dtype=np.int64)
        # A vertex' type is that at which its in-edges end, and none without any.
        of = np.full(len(x), -1)
        for kind, one in zip(types, at.relations, strict=True):
            of[one.present] = kind
        reached = types[:, None] == of
    else:
        reached = np.ones((n, len(x)), dtype=bool)
    if at.spec.get("across") == "attention":
        scores = np.stack([y @ w["across.attention"][0] for y in each])
        scores = np.where(reached, _leaky(scores), -np.inf)
        shares = np.exp(scores - np.maximum(scores.max(0), np.finfo(scores.dtype).min))
        shares /= np.maximum(shares.sum(0), np.finfo(scores.dtype).tiny)
        each = [y * share[:, None] for y, share in zip(each, shares, strict=True)]
    total = np.zeros_like(each[0])
    for y, here in zip(each, reached, strict=True):
        total += np.where(here[:, None], y, 0)
    if at.spec.get("across") == "mean":
        total /= np.maximum(reached.sum(0), 1)[:, None]
    return total


_HETERO = "hetero:"
_CONVOLUTIONS: dict[str, Callable[[Weights, Rows, Edges, Place], Rows]] = {
    "gcn": _gcn,
    "sage": _sage,
    "gat": _gat,
    "gin": _gin,
    "gcnii": _gcnii,
    "mpnn": _mpnn,
    "resgcn": _sage,
    "mlp": _mlp,
    "rgcn": _rgcn,
    "hgt": _hgt,
}


class Model:
    """An exported model. :func:`hopmesh.load_model` reads one.

    ``spec`` describes it, ``metadata`` has all that the file says, and ``weights`` are the
    matrices by name, each In x Out. A model of vertices without features has a row that it has
    learnt for each of them, ``weights["embedding.weight"]``, in the dataset's order.
    """

    def __init__(self, metadata: dict[str, str], weights: dict[str, NDArray[Any]]) -> None:
        if metadata.get("format") != _FORMAT:
            raise Error(
                f"its format is {metadata.get('format')!r} and not {_FORMAT!r}: give a file that "
                "`hopmesh export` or job.export() has written"
            )
        self.metadata, self.weights = metadata, weights
        self.spec: dict[str, Any] = json.loads(metadata["model"])
        self._apart = self.spec["model"].startswith(_HETERO)
        if self.spec["model"].removeprefix(_HETERO) not in _CONVOLUTIONS:
            raise Error(f"load_model computes no {self.spec['model']}: it may need a newer hopmesh")
        self.classes = int(metadata["classes"])
        learnt = weights.get(_LEARNT)
        self._learnt = None if learnt is None else learnt.astype(np.float64)
        self.features = int(metadata["features"]) - (0 if learnt is None else learnt.shape[1])

    def __repr__(self) -> str:
        spec = self.spec
        return f"<Model {spec['model']}: {self.features} features, {self.classes} classes>"

    def predict(
        self,
        x: ArrayLike | None,
        edge_index: ArrayLike,
        edge_weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
        edge_type: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """Returns the scores of every vertex, before softmax, as the daemon computes them.

        ``x`` holds the features as they were imported: they are normalised here as they were for
        training. A model with learnt rows reads that of ``numbers[i]`` for vertex ``i``: those of
        ``Dataset.load()`` are ``Graph.numbers``. Without them, vertices are all of the dataset, in
        the order of ``Dataset.ids()``. ``x`` is None if they have no features. An edge carries
        messages from ``edge_index[0]`` to ``edge_index[1]``. Weights count for gcn, gin, gcnii, and
        mpnn with sums. ``edge_type`` has the number of each edge's relation, for models that tell
        relations apart. ``edge_attr`` has a row of features for each edge, if the model reads them.
        """
        learnt = self._rows_of(numbers)
        if x is None and learnt is not None:
            x = np.zeros((len(learnt), 0))
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.features:
            raise Error(
                f"x has the shape {rows.shape}, and the model takes {self.features} features"
            )
        if learnt is not None and len(rows) != len(learnt):
            raise Error(
                f"x has {len(rows)} rows, and {len(learnt)} learnt rows are read: give numbers, "
                "the dataset's number of each vertex"
            )
        reads = self.spec.get("edge_features", 0)
        if reads and (edge_attr is None or np.shape(edge_attr)[1:] not in ((reads,), ())):
            raise Error(
                f"the model reads {reads} features of edges: give edge_attr, a row for each"
            )
        edges = Edges(edge_index, edge_weight, len(rows), edge_attr if reads else None)
        related = self._related(edge_index, edge_type, len(rows))
        if self._loops():
            edges = edges.looped()
        rows = self._normalised(rows)
        if learnt is not None:
            rows = np.concatenate([rows, learnt], axis=1)
        return self._forward(rows, edges, related).astype(np.float32)

    def score(
        self, embeddings: ArrayLike, pairs: ArrayLike, relation: ArrayLike | None = None
    ) -> NDArray[np.float32]:
        """Returns the scores of pairs of vertices by a model of links, as the daemon does.

        ``embeddings`` are what :meth:`predict` returned. ``pairs`` has a row for each pair: the
        places of its source and its target among the rows of ``embeddings``, from 0. ``relation``
        is for models of knowledge graphs: the place of the relation among the dataset's, one for
        all pairs or one for each; pairs go from head to tail. ``metadata["loss"]`` says what a
        score means: of bce, 1 / (1 + exp(-score)) is the probability of an edge.
        """
        if self.metadata.get("task") != "link":
            raise Error("the model has learnt no links: score needs one that was trained for link")
        rows = np.asarray(embeddings)
        if rows.ndim != 2 or rows.shape[1] != self.classes:
            raise Error(
                f"embeddings have the shape {rows.shape}, and the model's have {self.classes} "
                "columns: give what predict returned"
            )
        return Decoder(self.metadata, self.weights).score(rows, pairs, relation)

    def to_torch(self) -> Any:
        """Returns the model as a ``torch.nn.Module`` on PyG's layers, in eval mode.

        Its ``forward(x, edge_index, edge_weight=None, numbers=None, edge_type=None,
        edge_attr=None)`` gives what :meth:`predict` does, and its parameters can be trained. It
        needs torch and torch_geometric.
        """
        try:
            from hopmesh import modules
        except ImportError:
            raise Error(
                "PyTorch Geometric is not here: pip install torch torch_geometric"
            ) from None
        how = self.metadata["normalize_features"]
        return modules.Network(self.spec, how, self._loops(), self.features, self.weights)

    def _rows_of(self, numbers: ArrayLike | None) -> Rows | None:
        """Returns the learnt rows of these vertices, or of all."""
        if self._learnt is None or numbers is None:
            return self._learnt
        which, n = np.asarray(numbers, dtype=np.int64), len(self._learnt)
        if which.ndim != 1 or not ((0 <= which) & (which < n)).all():
            raise Error(f"numbers has to hold one from 0 to {n - 1} for each vertex")
        return self._learnt[which]

    def _related(
        self, edge_index: ArrayLike, edge_type: ArrayLike | None, vertices: int
    ) -> list[Edges]:
        """Returns the edges of each relation, for models that tell them apart."""
        n = self.spec.get("relations", 0)
        pairs = pairs_of(edge_index)
        if n == 0:
            return []
        if edge_type is None:
            raise Error(f"edge_type is missing: {self.spec['model']} tells {n} relations apart")
        kinds = np.asarray(edge_type, dtype=np.int64)
        known = kinds.shape == pairs.shape[1:] and ((0 <= kinds) & (kinds < n)).all()
        if not known:
            raise Error(f"edge_type has to hold a number from 0 to {n - 1} for each edge")
        found = []
        for r in range(n):
            one = Edges(pairs[:, kinds == r], None, vertices)
            one.weight = np.ones(len(one.weight))
            found.append(one)
        return found

    def _loops(self) -> bool:
        how = self.spec["self_loops"]
        if how != "auto":
            return bool(how == "on")
        kind = self.spec["model"]
        return kind in ("gcn", "gat", "gcnii") or self.spec.get("aggregator") == "gcn"

    def _normalised(self, x: Rows) -> Rows:
        how = self.metadata["normalize_features"]
        if how.startswith("binary"):
            x = (x != 0).astype(np.float64)
        if how.endswith("row"):
            sums = np.abs(x).sum(1, keepdims=True)
            x = x / np.where(sums > 0, sums, 1)
        return x

    def _forward(self, x: Rows, edges: Edges, related: Sequence[Edges]) -> Rows:
        spec, kind = self.spec, self.spec["model"]
        convolve = _hetero if self._apart else _CONVOLUTIONS[kind]
        linear, before = spec["head"] == "linear", kind == "resgcn"
        if kind in ("gcnii", "resgcn", "rgcn", "hgt") or self._apart:
            encoder = self._within("encoder.")
            x = x @ encoder["weight"] + encoder["bias"]
            x = np.maximum(x, 0) if kind in ("gcnii", "hgt") else x
        first, layers = x, []
        for i in range(spec["layers"]):
            w = self._within(f"layers.{i}.")
            at = Place(spec, i, i + 1 == spec["layers"] and not linear, first, related)
            if before:
                seen = np.maximum(_norm(w, x), 0) if i else x
                y = convolve(w, seen, edges, at) + w["bias"]
                x = x + y if i else y
            else:
                y = convolve(w, x, edges, at) + w.get("bias", 0)
                x = y if at.answers else self._activated(w, x, y)
            layers.append(x)
        if not linear:
            return x
        head = self._within("head.")
        if before:
            x = np.maximum(_norm(head, x), 0)
        elif spec["jump"] == "cat":
            x = np.concatenate(layers, axis=1)
        elif spec["jump"] == "max":
            x = np.maximum.reduce(layers)
        return x @ head["weight"] + head["bias"]

    def _activated(self, w: Weights, x: Rows, y: Rows) -> Rows:
        """Returns what follows a hidden convolution y of x."""
        if "residual.weight" in w:
            y = y + x @ w["residual.weight"] + w["residual.bias"]
        if "norm.weight" in w:
            y = _norm(w, y)
        if self.spec["model"] == "hgt":
            return y
        attends = self.spec["model"].removeprefix(_HETERO) == "gat"
        if attends and self.spec["head"] == "none":
            return np.where(y > 0, y, np.expm1(np.minimum(y, 0)))
        return np.maximum(y, 0)

    def _within(self, prefix: str) -> Weights:
        return {
            name.removeprefix(prefix): weight.astype(np.float64)
            for name, weight in self.weights.items()
            if name.startswith(prefix)
        }


def _leaky(x: Rows) -> Rows:
    return np.where(x > 0, x, _SLOPE * x)


def _norm(w: Weights, x: Rows) -> Rows:
    """Is LayerNorm."""
    centred = x - x.mean(1, keepdims=True)
    scaled: Rows = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    return scaled * w["norm.weight"] + w["norm.bias"]


@overload
def load_model(path: str | os.PathLike[str], torch: Literal[False] = ...) -> Model: ...


@overload
def load_model(path: str | os.PathLike[str], torch: Literal[True]) -> Any: ...


def load_model(path: str | os.PathLike[str], torch: bool = False) -> Any:
    """Reads a model that ``hopmesh export`` or :meth:`Job.export` has written.

    With ``torch`` it is a ``torch.nn.Module``: see :meth:`Model.to_torch`.
    """
    model = Model(*safetensors.read(path))
    return model.to_torch() if torch else model
