"""Convolutions that compute a row for each edge, as PyTorch modules.

Their weights are those of an exported layer, by the same names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Module, Parameter, ParameterDict
from torch_geometric.utils import softmax

Weights = Mapping[str, NDArray[Any]]


class Edgewise(Module):
    """Holds weights, and adds up rows of edges by their targets."""

    def __init__(self, weights: Weights, *names: str) -> None:
        super().__init__()
        self.held = ParameterDict(
            {
                _key(name): Parameter(torch.from_numpy(np.array(weights[name], np.float32)))
                for name in names
            }
        )

    def weight(self, name: str) -> Tensor:
        held: Tensor = self.held[_key(name)]
        return held

    @staticmethod
    def added(rows: Tensor, targets: Tensor, vertices: int) -> Tensor:
        return rows.new_zeros(vertices, *rows.shape[1:]).index_add(0, targets, rows)


def _key(name: str) -> str:
    return name.replace(".", "_")  # PyTorch takes no dots in names


class DescribedGIN(Edgewise):
    """Is GINE: a source's row, with what the edge's features give, goes through ReLU."""

    def __init__(self, weights: Weights) -> None:
        names = ("edges.weight", "edges.bias", "inner.weight", "inner.bias", "weight", "bias")
        super().__init__(weights, *names)

    def forward(self, x: Tensor, edges: Tensor, weight: Tensor, features: Tensor) -> Tensor:
        along = features @ self.weight("edges.weight") + self.weight("edges.bias").view(-1)
        message = (x[edges[0]] + along).relu() * weight[:, None]
        heard = x + self.added(message, edges[1], len(x))
        inner = heard @ self.weight("inner.weight") + self.weight("inner.bias").view(-1)
        return inner.relu() @ self.weight("weight") + self.weight("bias").view(-1)


class MPNN(Edgewise):
    """Has messages of a source's row and the edge's features, which are averaged or added up."""

    def __init__(self, weights: Weights, sums: bool) -> None:
        super().__init__(weights, "message.weight", "message.bias", "weight", "bias")
        self.sums = sums

    def forward(self, x: Tensor, edges: Tensor, weight: Tensor, features: Tensor) -> Tensor:
        message = torch.cat([x[edges[0]], features], 1) @ self.weight("message.weight")
        message = (message + self.weight("message.bias").view(-1)).relu()
        if self.sums:
            heard = self.added(message * weight[:, None], edges[1], len(x))
        else:
            counts = self.added(torch.ones_like(weight), edges[1], len(x))
            heard = self.added(message, edges[1], len(x)) / counts.clamp(min=1)[:, None]
        return torch.cat([x, heard], 1) @ self.weight("weight") + self.weight("bias").view(-1)


class HGT(Edgewise):
    """Is the Heterogeneous Graph Transformer: vertices attend over edges of all relations."""

    def __init__(self, spec: Mapping[str, Any], weights: Weights) -> None:
        by_type = ("keys", "queries", "values", "output")
        names = [f"{name}.{what}" for name in by_type for what in ("weight", "bias")]
        of_relations = ["relations.attention", "relations.message", "relations.prior"]
        super().__init__(weights, *names, *of_relations, "skip")
        self.heads, self.relations = spec["heads"], spec["relations"]
        self.starts, self.ends = _types(spec, "starts"), _types(spec, "ends")

    def forward(self, x: Tensor, edges: Tensor, kinds: Tensor) -> Tensor:
        width = x.shape[1] // self.heads
        shape = (-1, self.heads, width)
        priors = self.weight("relations.prior").view(self.relations, self.heads)
        scores, messages, targets = [], [], []
        # A vertex' type is that at which its in-edges end, and none without any.
        of = torch.full((len(x),), -1, device=x.device)
        for r in range(self.relations):
            source, target = edges[:, kinds == r]
            of[target] = self.ends[r]
            rows = x[source]
            key = self._through("attention", self._linear("keys", rows, self.starts[r]), r)
            query = self._linear("queries", x[target], self.ends[r]).view(shape)
            scores.append((key * query).sum(2) * priors[r] / math.sqrt(width))
            values = self._linear("values", rows, self.starts[r])
            messages.append(self._through("message", values, r))
            targets.append(target)
        target = torch.cat(targets)
        share = softmax(torch.cat(scores), target, num_nodes=len(x))
        heard = self.added(torch.cat(messages) * share[:, :, None], target, len(x)).view(len(x), -1)
        curved = heard * torch.sigmoid(1.702 * heard)
        y = x
        for kind, gate in enumerate(self.weight("skip").view(-1).sigmoid()):
            new = gate * self._linear("output", curved, kind) + (1 - gate) * x
            y = torch.where((of == kind)[:, None], new, y)
        return y

    def _linear(self, name: str, rows: Tensor, kind: int) -> Tensor:
        weight = self.weight(f"{name}.weight").view(-1, rows.shape[1], rows.shape[1])[kind]
        return rows @ weight + self.weight(f"{name}.bias").view(-1, rows.shape[1])[kind]

    def _through(self, name: str, rows: Tensor, relation: int) -> Tensor:
        width = rows.shape[1] // self.heads
        all_of = self.weight(f"relations.{name}").view(self.relations, self.heads, width, width)
        heads = rows.view(-1, self.heads, width)
        return torch.einsum("nhi,hij->nhj", heads, all_of[relation])


def _types(spec: Mapping[str, Any], ends: str) -> list[int]:
    """Returns the type at which each relation starts or ends; all are one where none is given."""
    given = spec.get(ends)
    return [int(kind) for kind in given.split(",")] if given else [0] * spec["relations"]
