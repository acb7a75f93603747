"""Exported models as PyTorch modules, on the layers of PyTorch Geometric.

Importing it needs both: :meth:`hopmesh.Model.to_torch` does so when it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import (
    ELU,
    Dropout,
    Identity,
    LayerNorm,
    Linear,
    Module,
    ModuleList,
    Parameter,
    ReLU,
)
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCN2Conv,
    GCNConv,
    GINConv,
    RGCNConv,
    SAGEConv,
)
from torch_geometric.utils import add_remaining_self_loops, coalesce

from hopmesh import edgewise, relations
from hopmesh.error import Error

Weights = Mapping[str, NDArray[Any]]


class WeightedGINConv(GINConv):  # type: ignore[misc]
    """Is PyG's GINConv for edges with weights."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        if edge_weight is None:
            edge_weight = x.new_ones(edge_index.shape[1])
        # propagate_type: (x: Tensor, edge_weight: Tensor)
        total = self.propagate(edge_index, x=x, edge_weight=edge_weight)
        result: Tensor = self.nn(total + (1 + self.eps) * x)
        return result

    def message(self, x_j: Tensor, edge_weight: Tensor) -> Tensor:
        return x_j * edge_weight.view(-1, 1)


_HETERO = "hetero:"


class Layer(Module):
    """A convolution with what precedes and follows it.

    The weight of an edge is its relation in models that tell relations apart.
    """

    def __init__(self, spec: Mapping[str, Any], weights: Weights, index: int) -> None:
        super().__init__()
        linear = spec["head"] == "linear"
        self.kind, self.answers = spec["model"], index + 1 == spec["layers"] and not linear
        self.precedes = self.kind == "resgcn"  # norm and activation come before, and x is added
        self.conv = _convolution(spec, weights, index, self.answers)
        self.residual = _linear(weights, "residual.") if "residual.weight" in weights else None
        self.norm = _norm(weights) if "norm.weight" in weights else None
        elu = self.kind.removeprefix(_HETERO) == "gat" and not linear
        self.activation: Module = ELU() if elu else ReLU()
        if self.kind == "hgt":
            self.activation = Identity()
        self.dropout = Dropout(spec["dropout"])
        self.first = index == 0

    def forward(
        self, x: Tensor, encoded: Tensor, edges: Tensor, weight: Tensor, features: Tensor
    ) -> Tensor:
        if self.precedes:
            if self.norm is None:
                return self._convolved(x, encoded, edges, weight, features)
            seen = self.dropout(self.activation(self.norm(x)))
            return x + self._convolved(seen, encoded, edges, weight, features)
        if self.kind == "gcnii" and self.first:
            x = self.dropout(x)
        y = self._convolved(x, encoded, edges, weight, features)
        if self.answers:
            return y
        if self.residual is not None:
            y = y + self.residual(x)
        if self.norm is not None:
            y = self.norm(y)
        dropped: Tensor = self.dropout(self.activation(y))
        return dropped

    def _convolved(
        self, x: Tensor, encoded: Tensor, edges: Tensor, weight: Tensor, features: Tensor
    ) -> Tensor:
        y: Tensor
        if self.kind == "mlp":
            y = self.conv(x)
        elif isinstance(self.conv, (edgewise.DescribedGIN, edgewise.MPNN)):
            y = self.conv(x, edges, weight, features)
        elif self.kind == "gat" and features.shape[1]:
            y = self.conv(x, edges, edge_attr=features)
        elif self.kind in ("gcn", "gin", "rgcn", "hgt") or self.kind.startswith(_HETERO):
            y = self.conv(x, edges, weight)
        elif self.kind == "gcnii":
            y = self.conv(x, encoded, edges, weight)
        else:
            y = self.conv(x, edges)
        return y


class Network(Module):
    """An exported model, as :meth:`hopmesh.Model.to_torch` returns it.

    ``forward(x, edge_index, edge_weight=None, numbers=None, edge_type=None, edge_attr=None)``
    returns the scores of every vertex, before softmax. ``x`` holds the features as they were
    imported, and is normalised here; it is None where vertices have none but learnt rows, of which
    ``numbers`` selects one for each. Models that tell relations apart read ``edge_type``, the
    number of each edge's relation, and those that read features of edges ``edge_attr``, a row for
    each.
    Parameters can be trained on: ``train()`` has the dropout of training.
    """

    def __init__(
        self, spec: Mapping[str, Any], normalisation: str, loops: bool, features: int, all: Weights
    ) -> None:
        super().__init__()
        self.spec, self.normalisation = dict(spec), normalisation
        self.loops, self.features = loops, features
        learnt = all.get("embedding.weight")
        self.embedding = None if learnt is None else Parameter(torch.from_numpy(learnt.copy()))
        self.input_dropout = Dropout(spec["input_dropout"])
        self.encoder = _linear(all, "encoder.") if "encoder.weight" in all else None
        within = [_within(all, f"layers.{i}.") for i in range(spec["layers"])]
        self.layers = ModuleList(Layer(spec, weights, i) for i, weights in enumerate(within))
        head = _within(all, "head.")
        self.head_norm = _norm(head) if "norm.weight" in head else None
        self.dropout = Dropout(spec["dropout"])
        self.head = _linear(head) if head else None
        self.eval()

    def forward(
        self,
        x: Tensor | None,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        numbers: Tensor | None = None,
        edge_type: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        learnt: Tensor | None = self.embedding
        if learnt is not None:
            learnt = learnt if numbers is None else learnt[numbers]
            x = learnt.new_zeros(len(learnt), 0) if x is None else x
            if len(x) != len(learnt):
                raise Error(f"x has {len(x)} rows, and {len(learnt)} learnt rows are read")
        if x is None:
            raise Error(f"the model takes {self.features} features: give x")
        x = self._normalised(x)
        if learnt is not None:
            x = torch.cat([x, learnt], 1)
        edges, weight, features = self._merged(edge_index, edge_weight, edge_type, edge_attr, x)
        x = self.input_dropout(x)
        if self.encoder is not None:
            x = self.encoder(x)
            x = x.relu() if self.spec["model"] in ("gcnii", "hgt") else x
        encoded, outputs = x, []
        for layer in self.layers:
            x = layer(x, encoded, edges, weight, features)
            outputs.append(x)
        if self.head is None:
            return x
        if self.head_norm is not None:
            x = self.dropout(self.head_norm(x).relu())
        elif self.spec["jump"] == "cat":
            x = torch.cat(outputs, 1)
        elif self.spec["jump"] == "max":
            x = torch.stack(outputs).amax(0)
        scores: Tensor = self.head(x)
        return scores

    def _normalised(self, x: Tensor) -> Tensor:
        if x.dim() != 2 or x.shape[1] != self.features:
            raise Error(
                f"x has the shape {tuple(x.shape)}, and the model takes {self.features} features"
            )
        x = x.to(next(self.parameters()).dtype)
        if self.normalisation.startswith("binary"):
            x = (x != 0).to(x.dtype)
        if self.normalisation.endswith("row"):
            sums = x.abs().sum(1, keepdim=True)
            x = x / torch.where(sums > 0, sums, torch.ones_like(sums))
        return x

    def _merged(
        self,
        edges: Tensor,
        weight: Tensor | None,
        kinds: Tensor | None,
        described: Tensor | None,
        x: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Adds up the weights of edges between the same two vertices, and adds self-loops.

        Features of such edges are averaged, and an added self-loop has the mean of its vertex'.
        """
        vertices = len(x)
        if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < vertices:
            raise Error(f"edge_index has vertices beyond the {vertices} rows of x")
        if n := self.spec.get("relations", 0):
            edges, numbers = relations.merged(edges, kinds, self.spec["model"], n)
            return edges, numbers, x.new_zeros(edges.shape[1], 0)
        rows = self._described(edges, described, x)
        value = x.new_ones(edges.shape[1]) if weight is None else weight.to(x.dtype)
        pairs, value = coalesce(edges, value, vertices, reduce="sum", sort_by_row=False)
        merged = x.new_zeros(pairs.shape[1], 0)
        if rows.shape[1]:
            merged = coalesce(edges, rows, vertices, reduce="mean", sort_by_row=False)[1]
        if self.loops:
            if rows.shape[1]:
                merged = add_remaining_self_loops(pairs, merged, "mean", vertices)[1]
            pairs, value = add_remaining_self_loops(pairs, value, 1.0, vertices)
        return pairs, value, merged

    def _described(self, edges: Tensor, features: Tensor | None, x: Tensor) -> Tensor:
        """Returns the features of edges that the model reads."""
        if not (reads := self.spec.get("edge_features", 0)):
            return x.new_zeros(edges.shape[1], 0)
        if features is None or features.shape != (edges.shape[1], reads):
            raise Error(
                f"the model reads {reads} features of edges: give edge_attr, a row for each"
            )
        return features.to(x.dtype)


def _convolution(spec: Mapping[str, Any], w: Weights, index: int, answers: bool) -> Any:
    kind = spec["model"]
    if kind.startswith(_HETERO):
        return _joined(spec, w, index, answers)
    if kind == "rgcn":
        return _rgcn(spec, w)
    if kind == "mlp":
        return _linear(w)
    if kind == "hgt":
        return edgewise.HGT(spec, w)
    if kind == "mpnn":
        return edgewise.MPNN(w, spec.get("aggregator") == "sum")
    if kind == "gin" and "edges.weight" in w:
        return edgewise.DescribedGIN(w)
    if kind == "gin":
        inner = torch.nn.Sequential(_linear(w, "inner."), ReLU(), _linear(w))
        gin = WeightedGINConv(inner)
        _fill(inner[0], w, "inner.")  # it has drawn them anew
        _fill(inner[2], w)
        return gin
    if kind == "gcnii":
        gcnii = GCN2Conv(
            len(w["weight"]), spec["alpha"], spec["theta"], index + 1, add_self_loops=False
        )
        _set(gcnii.weight1, w["weight"])
        return gcnii
    if kind == "gat":
        return _attention(spec, w, answers)
    into, out = w["weight"].shape
    if kind == "gcn":
        gcn = GCNConv(into, out, add_self_loops=False)
        _set(gcn.lin.weight, w["weight"].T)
        _set(gcn.bias, w["bias"])
        return gcn
    how = (
        "gcn" if kind == _AVERAGED else spec.get("aggregator", "mean")
    )  # of sage, and of resgcn, which has no other
    sage = SAGEConv(into, out, aggr="max" if how == "max" else "mean", root_weight=how != "gcn")
    _set(sage.lin_l.weight, w["weight"].T)
    _set(sage.lin_l.bias, w["bias"])
    if how != "gcn":
        _set(sage.lin_r.weight, w["root.weight"].T)
    return sage


_AVERAGED = "gcn of a relation"  # which is sage with the aggregator gcn, without self-loops


def _joined(spec: Mapping[str, Any], w: Weights, index: int, answers: bool) -> relations.Joined:
    kind, n = spec["model"].removeprefix(_HETERO), spec["relations"]
    one = {**spec, "model": _AVERAGED if kind == "gcn" else kind}
    parts = {name: np.split(weight, n) for name, weight in _within(w, "relations.").items()}
    each = [
        _convolution(one, {name: part[r] for name, part in parts.items()}, index, answers)
        for r in range(n)
    ]
    attention = w.get("across.attention")
    joint = None if attention is None else Parameter(torch.from_numpy(attention.copy()))
    ends = [int(end) for end in spec["ends"].split(",")] if spec.get("ends") else None
    return relations.Joined(each, ends, spec["across"], joint)


def _rgcn(spec: Mapping[str, Any], w: Weights) -> Any:
    into, out = w["root.weight"].shape
    shares = w.get("bases.shares")
    bases = None if shares is None else shares.shape[1]
    rgcn = RGCNConv(into, out, spec["relations"], num_bases=bases, aggr="mean")
    _set(rgcn.weight, w["weight" if shares is None else "bases.weight"])
    if shares is not None:
        _set(rgcn.comp, shares)
    _set(rgcn.root, w["root.weight"])
    _set(rgcn.bias, w["bias"])
    return rgcn


def _attention(spec: Mapping[str, Any], w: Weights, answers: bool) -> Any:
    heads = spec["out_heads"] if answers else spec["heads"]
    second = spec.get("version", 1) == 2
    into, columns = w["source.weight" if second else "weight"].shape
    gat = (GATv2Conv if second else GATConv)(
        into,
        columns // heads,
        heads=heads,
        concat=not answers,
        negative_slope=0.2,
        dropout=spec.get("attention_dropout", 0.0),
        add_self_loops=False,
        edge_dim=len(w["edges.weight"]) if "edges.weight" in w else None,
        bias="bias" in w,
    )
    if "edges.weight" in w:
        _set(gat.lin_edge.weight, w["edges.weight"].T)
        _set(gat.att_edge, w["attention.edge"])
    if second:
        _set(gat.lin_l.weight, w["source.weight"].T)
        _set(gat.lin_r.weight, w["target.weight"].T)
        _set(gat.att, w["attention"])
        if "bias" in w:
            _set(gat.lin_l.bias, w["source.bias"])
            _set(gat.lin_r.bias, w["target.bias"])
    else:
        _set(gat.lin.weight, w["weight"].T)
        _set(gat.att_src, w["attention.source"])
        _set(gat.att_dst, w["attention.target"])
    if "bias" in w:
        _set(gat.bias, w["bias"])
    return gat


def _within(weights: Weights, prefix: str) -> Weights:
    return {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}


def _linear(weights: Weights, prefix: str = "") -> Linear:
    linear = Linear(*weights[prefix + "weight"].shape)
    _fill(linear, weights, prefix)
    return linear


def _fill(linear: Any, weights: Weights, prefix: str = "") -> None:
    _set(linear.weight, weights[prefix + "weight"].T)
    _set(linear.bias, weights[prefix + "bias"])


def _norm(weights: Weights) -> LayerNorm:
    norm = LayerNorm(weights["norm.weight"].size, eps=1e-5)
    _set(norm.weight, weights["norm.weight"])
    _set(norm.bias, weights["norm.bias"])
    return norm


def _set(parameter: Tensor, values: NDArray[Any]) -> None:
    """Copies weights of the same number into a parameter, whatever its shape."""
    with torch.no_grad():
        copied = torch.from_numpy(np.array(values, dtype=np.float32, order="C"))
        parameter.copy_(copied.reshape(parameter.shape))
