"""A batch of sampled neighbours, as arrays, tensors or PyG's Data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hopmesh.attach import Answer
from hopmesh.error import Error
from hopmesh.program import Program

KINDS = ("auto", "numpy", "torch", "pyg")


@dataclass
class Batch:
    """Seed vertices and the neighbours that were drawn for them, in the layout of PyG.

    The first ``batch_size`` vertices are the seed vertices, whose labels are ``y``. Row 0 of
    ``edge_index`` has the sources and row 1 the targets, as places in ``n_id`` and ``x``; the
    edges of the first hop come first. ``num_sampled_nodes`` and ``num_sampled_edges`` count them
    by hop.

    ``weight`` is what the batch counts in :meth:`Mesh.all_reduce`: its seed vertices. It is 0 for
    a stand-in, which a rank gets in a step in which it has no seed vertex.
    """

    x: Any
    edge_index: Any
    y: Any
    n_id: Any
    batch_size: int
    weight: int
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]
    epoch: int
    step: int

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


def read(answer: Answer, program: Program, epoch: int, step: int, copy: bool) -> Batch:
    """Returns a batch whose arrays lie in the shared memory, or are copied."""
    roots, nodes = answer.number("roots"), answer.number("nodes")
    if roots == 0:
        return _stand_in(program, epoch, step)
    hop_nodes = answer.numbers("hop_nodes", program.layers + 1)
    hop_edges = answer.numbers("hop_edges", program.layers)
    edges = sum(hop_edges)
    batch = Batch(
        x=program.array(answer.region("x"), "<f4", nodes, program.features),
        edge_index=program.array(answer.region("edge_index"), "<i8", 2, edges),
        y=program.array(answer.region("y"), "<i8", roots),
        n_id=program.array(answer.region("n_id"), "<i8", nodes),
        batch_size=roots,
        weight=roots,
        num_sampled_nodes=hop_nodes,
        num_sampled_edges=hop_edges,
        epoch=epoch,
        step=step,
    )
    if copy:
        for name in ("x", "edge_index", "y", "n_id"):
            setattr(batch, name, getattr(batch, name).copy())
    return batch


def _stand_in(program: Program, epoch: int, step: int) -> Batch:
    """Returns a batch that any model can compute with: two vertices that are all zeros.

    Without it this rank would miss the update of the step, and few models take no rows at all.
    """
    loops = np.tile(np.arange(2), (2, 1))
    return Batch(
        x=np.zeros((2, program.features), np.float32),
        edge_index=np.tile(loops, (1, program.layers)),
        y=np.zeros(2, np.int64),
        n_id=np.zeros(2, np.int64),
        batch_size=2,
        weight=0,
        num_sampled_nodes=[2] + [0] * program.layers,
        num_sampled_edges=[2] * program.layers,
        epoch=epoch,
        step=step,
    )


def _as_it_is(batch: Batch) -> Batch:
    return batch


def _torch() -> Callable[[Batch], Batch]:
    try:
        import torch
    except ImportError:
        raise Error("PyTorch is not here: pip install torch") from None

    def tensors(batch: Batch) -> Batch:
        for name in ("x", "edge_index", "y", "n_id"):
            setattr(batch, name, torch.as_tensor(getattr(batch, name)))
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
        return Data(**{field.name: getattr(whole, field.name) for field in fields(whole)})

    return data
