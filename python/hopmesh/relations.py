"""The convolutions of each relation of a typed graph as one PyTorch module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList, Parameter
from torch.nn.functional import leaky_relu
from torch_geometric.utils import coalesce

from hopmesh.error import Error


def merged(
    edges: Tensor, kinds: Tensor | None, model: str, relations: int
) -> tuple[Tensor, Tensor]:
    """Returns the edges of each relation in turn, none twice, and the relation of each."""
    if kinds is None:
        raise Error(f"edge_type is missing: {model} tells {relations} relations apart")
    fits = kinds.shape == edges.shape[1:] and bool(((0 <= kinds) & (kinds < relations)).all())
    if not fits:
        raise Error(f"edge_type has to hold a number from 0 to {relations - 1} for each edge")
    each = [coalesce(edges[:, kinds == r], sort_by_row=False) for r in range(relations)]
    numbers = [torch.full((one.shape[1],), r, device=edges.device) for r, one in enumerate(each)]
    return torch.cat(each, 1), torch.cat(numbers)


class Joined(Module):
    """Joins a convolution of each relation over the relations that end at a vertex' type.

    ``across`` says how: sum, mean or attention, whose weight ``attention`` is then. ``ends`` has
    the type at which each relation ends; None: all are one.
    """

    def __init__(
        self, each: Iterable[Any], ends: list[int] | None, across: str, attention: Parameter | None
    ) -> None:
        super().__init__()
        self.each = ModuleList(each)
        self.ends, self.across, self.attention = ends, across, attention

    def forward(self, x: Tensor, edges: Tensor, kinds: Tensor) -> Tensor:
        rows = torch.stack([conv(x, edges[:, kinds == r]) for r, conv in enumerate(self.each)])
        reached = self._reached(rows, edges, kinds)
        if self.attention is not None:
            scores = leaky_relu(rows @ self.attention.view(-1), 0.2)
            lowest = torch.finfo(scores.dtype).min
            shares = torch.softmax(scores.masked_fill(~reached, lowest), 0)
            rows = rows * shares[:, :, None]
        y: Tensor = rows.masked_fill(~reached[:, :, None], 0).sum(0)
        if self.across == "mean":
            y = y / reached.sum(0).clamp(min=1)[:, None]
        return y

    def _reached(self, rows: Tensor, edges: Tensor, kinds: Tensor) -> Tensor:
        """Reports of each relation whether it ends at the type of each vertex."""
        if self.ends is None:
            return rows.new_ones(rows.shape[:2], dtype=torch.bool)
        ends = torch.tensor(self.ends, device=rows.device)
        # A vertex' type is that at which its in-edges end, and none without any.
        of = torch.full(rows.shape[1:2], -1, device=rows.device)
        of[edges[1]] = ends[kinds]
        return ends[:, None] == of
