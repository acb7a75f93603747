"""A batch of sampled neighbours, as arrays, tensors or PyG's Data."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmesh.attach import Answer
from hopmesh.error import Error
from hopmesh.program import Program

KINDS = ("auto", "numpy", "torch", "pyg")
_OF_EDGES = ("edge_type", "edge_weight", "edge_attr")
_OF_HOPS = tuple(f"adj_{name}" for name in _OF_EDGES)
_ARRAYS = ("x", "edge_index", "y", "n_id", *_OF_EDGES)


class Adj(NamedTuple):
    """The edges of one hop, in the form that PyG's layers of bipartite graphs take.

    ``size`` counts the sources and the targets. Both are the first vertices of the batch.
    ``e_id`` is None: it stands where PyG's own loader has the numbers of the edges.
    """

    edge_index: Any
    e_id: None
    size: tuple[int, int]


@dataclass
class Batch:
    """Seed vertices and the neighbours that were drawn for them, in the layout of PyG.

    The first ``batch_size`` vertices are the seed vertices, whose labels are ``y``: classes as
    int64, or a row of float32 for each where the dataset has several labels or numbers of a
    vertex, with NaN where one is missing. Row 0 of
    ``edge_index`` has the sources and row 1 the targets, as places in ``n_id`` and ``x``; it has
    the neighbours that were drawn when a vertex was first reached, those of the first hop first.
    ``num_sampled_nodes`` and ``num_sampled_edges`` count by hop. Each row is contiguous, and both
    together are not: ``edge_index.reshape(-1)`` copies, and ``view(-1)`` of PyTorch refuses.

    ``adjs`` has all edges of each hop, the outermost first: one for each layer. With them the
    nodes together compute what one machine would, at any fan-outs; with ``edge_index`` they do
    if all neighbours are taken.

    ``weight`` is what the batch counts in :meth:`Mesh.all_reduce`: its seed vertices. It is 0 for
    a stand-in, which a rank gets in a step in which it has no seed vertex.

    ``edge_type``, ``edge_weight`` and ``edge_attr`` have what the dataset has of each edge of
    ``edge_index``: the number of its relation as int64, its weight, and a row of features, both as
    float32. They are None where edges have none. ``adj_edge_type``, ``adj_edge_weight`` and
    ``adj_edge_attr`` are lists of the same for the edges of each of ``adjs``.

    ``ids`` are those of the seed vertices in your source, where they were asked for: in batches
    of :class:`EvalLoader`.
    """

    x: Any
    edge_index: Any
    y: Any
    n_id: Any
    batch_size: int
    weight: int
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]
    adjs: list[Adj]
    epoch: int
    step: int
    ids: Any = None
    edge_type: Any = None
    edge_weight: Any = None
    edge_attr: Any = None
    adj_edge_type: list[Any] | None = None
    adj_edge_weight: list[Any] | None = None
    adj_edge_attr: list[Any] | None = None

    def change(self, how: Callable[[Any], Any]) -> None:
        """Replaces each array of vertices and edges by what a function makes of it."""
        for name in _ARRAYS:
            if (value := getattr(self, name)) is not None:
                setattr(self, name, how(value))
        for name in _OF_HOPS:
            if (values := getattr(self, name)) is not None:
                setattr(self, name, [how(value) for value in values])
        self.adjs = [adj._replace(edge_index=how(adj.edge_index)) for adj in self.adjs]

    def to_pyg(self) -> Any:
        """Returns the batch as a PyG ``Data``, on the same memory."""
        return _pyg()(self)


def maker(kind: str) -> Callable[[Batch], Any]:
    """Returns what makes the wanted kind of a batch of arrays."""
    if kind not in KINDS:
        raise Error(f"a batch can't be of {kind!r}: give one of {', '.join(KINDS)}")
    if kind == "auto":
        for better in (_pyg, _torch):
            try:
                return better()
            except Error:
                pass
        return _as_it_is
    return {"numpy": lambda: _as_it_is, "torch": _torch, "pyg": _pyg}[kind]()


def read(
    answer: Answer, program: Program, epoch: int, step: int, copy: bool, layers: int | None = None
) -> Batch:
    """Returns a batch whose arrays lie in the shared memory, or are copied.

    It has so many hops; without a number, those of the job.
    """
    layers = program.layers if layers is None else layers
    roots, nodes = answer.number("roots"), answer.number("nodes")
    if roots == 0:
        return _stand_in(program, epoch, step)
    hop_nodes = answer.numbers("hop_nodes", layers + 1)
    hop_edges = answer.numbers("hop_edges", layers)
    hop_fresh = answer.numbers("hop_fresh", layers)
    if sum(hop_nodes) != nodes or hop_nodes[0] != roots:
        raise answer.wrong("hop_nodes do not add up to the vertices")
    if any(fresh > edges for fresh, edges in zip(hop_fresh, hop_edges, strict=True)):
        raise answer.wrong("a hop has more fresh edges than edges")
    arrays: dict[str, Any] = {
        "x": program.array(answer.region("x"), "<f4", nodes, program.features),
        "y": program.labels(answer.region("y"), roots),
        "n_id": program.array(answer.region("n_id"), "<i8", nodes),
        **_of_edges(answer, program, sum(hop_edges)),
    }
    if copy:
        arrays = {name: array.copy() for name, array in arrays.items()}
    by_hop = _fresh_first if answer.flag("fresh_first") else _in_order
    split: dict[str, Any] = {}
    for name in ("edge_index", *_OF_EDGES):
        if name not in arrays:
            continue
        # Edges are the last axis of what is split.
        array = arrays.pop(name)
        turned = name == "edge_attr"
        fresh, hops = by_hop(array.T if turned else array, hop_edges, hop_fresh)
        split[name] = fresh.T if turned else fresh
        split[f"adj_{name}"] = [hop.T if turned else hop for hop in hops[::-1]]
    of_hops = split.pop("adj_edge_index")
    reached = list(itertools.accumulate(hop_nodes))
    sizes = [(reached[hop + 1], reached[hop]) for hop in range(layers)]
    return Batch(
        **arrays,
        **split,
        batch_size=roots,
        weight=roots,
        num_sampled_nodes=hop_nodes,
        num_sampled_edges=hop_fresh,
        adjs=[Adj(hop, None, size) for hop, size in zip(of_hops, sizes[::-1], strict=True)],
        epoch=epoch,
        step=step,
    )


def _of_edges(answer: Answer, program: Program, count: int) -> dict[str, NDArray[Any]]:
    """Returns the ends of edges, and what the dataset has of them beside."""
    found = {"edge_index": program.array(answer.region("edge_index"), "<i8", 2, count)}
    if program.relations:
        found["edge_type"] = program.array(answer.region("edge_type"), "<i8", count)
    if program.weighted:
        found["edge_weight"] = program.array(answer.region("edge_weight"), "<f4", count)
    if program.edge_features:
        shape = (count, program.edge_features)
        found["edge_attr"] = program.array(answer.region("edge_attr"), "<f4", *shape)
    return found


Edges = NDArray[Any]


def _fresh_first(edges: Edges, all: list[int], fresh: list[int]) -> tuple[Edges, list[Edges]]:
    """Returns the fresh edges of all hops, and all edges of each.

    The former come first, by hop; then come the others of each hop, the outermost first. So
    nothing is copied but edges of hops between the first and the outermost one.
    """
    hops, begin, end = [], 0, edges.shape[-1]
    for every, new in zip(all, fresh, strict=True):
        middle, old = begin + new, end - (every - new)
        if middle == old or old == end:
            hops.append(edges[..., begin : begin + every])
        else:
            hops.append(np.concatenate([edges[..., old:end], edges[..., begin:middle]], axis=-1))
        begin, end = middle, old
    return edges[..., :begin], hops


def _in_order(edges: Edges, all: list[int], fresh: list[int]) -> tuple[Edges, list[Edges]]:
    """Does it for a daemon that has the fresh edges of each hop last."""
    hops, new, end = [], [], 0
    for every, last in zip(all, fresh, strict=True):
        end += every
        hops.append(edges[..., end - every : end])
        new.append(edges[..., end - last : end])
    return edges if fresh == all else np.concatenate(new, axis=-1), hops


def _stand_in(program: Program, epoch: int, step: int) -> Batch:
    """Returns a batch that any model can compute with: two vertices that are all zeros.

    Without it this rank would miss the update of the step, and few models take no rows at all.
    """
    loops = np.tile(np.arange(2), (2, 1))
    none = [0] * (program.layers - 1)
    beside: dict[str, Any] = {}
    if program.relations:
        beside["edge_type"] = np.zeros(2, np.int64)
    if program.weighted:
        beside["edge_weight"] = np.ones(2, np.float32)
    if program.edge_features:
        beside["edge_attr"] = np.zeros((2, program.edge_features), np.float32)
    beside |= {f"adj_{name}": [array] * program.layers for name, array in beside.items()}
    return Batch(
        x=np.zeros((2, program.features), np.float32),
        edge_index=loops,
        y=np.zeros((2, program.classes), np.float32) if program.targets else np.zeros(2, np.int64),
        n_id=np.zeros(2, np.int64),
        batch_size=2,
        weight=0,
        num_sampled_nodes=[2, 0, *none],
        num_sampled_edges=[2, *none],
        adjs=[Adj(loops, None, (2, 2))] * program.layers,
        epoch=epoch,
        step=step,
        **beside,
    )


def _as_it_is(batch: Batch) -> Batch:
    return batch


def _torch() -> Callable[[Batch], Batch]:
    try:
        import torch
    except ImportError:
        raise Error("PyTorch is not here: pip install torch") from None

    def tensors(batch: Batch) -> Batch:
        batch.change(torch.as_tensor)
        if batch.ids is not None and batch.ids.dtype != object:
            batch.ids = torch.as_tensor(batch.ids)
        return batch

    return tensors


def _pyg() -> Callable[[Batch], Any]:
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise Error("PyTorch Geometric is not here: pip install torch torch_geometric") from None
    tensors = _torch()

    def data(batch: Batch) -> Any:
        whole = tensors(batch)
        given = {field.name: getattr(whole, field.name) for field in fields(whole)}
        return Data(**{name: value for name, value in given.items() if value is not None})

    return data
