"""A dataset of the mesh as PyTorch Geometric's remote backend. It needs PyG.

PyG's loaders take a feature store, a graph store and a sampler. Sampling happens in the daemon,
which gathers the features of a batch with it; the feature store hands those over. Vertices have
the mesh's numbers, as ``n_id`` of any batch does; ``RemoteData.ids`` are yours.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch_geometric.data import FeatureStore, GraphStore
from torch_geometric.data.feature_store import TensorAttr
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

from hopmesh.aside import Aside
from hopmesh.dataset import Dataset
from hopmesh.error import Error
from hopmesh.part import Part
from hopmesh.program import MOST_DRAWN

# What a mark of the split means.
_MARKS = {"train_mask": 1, "val_mask": 2, "test_mask": 3}
_ROWS = 1 << 16
_READ_ONLY = "a dataset of the mesh is read-only: import another"


class Door:
    """The way of a store or a sampler to its dataset. All of one dataset share a connection."""

    def __init__(self, part: Part, dataset: Dataset) -> None:
        self.dataset, self._part, self._process = dataset, part, os.getpid()
        self.number = 0  # of the next batch
        self._known: dict[str, torch.Tensor] = {}

    def aside(self) -> Aside:
        """Returns what draws batches."""
        if os.getpid() != self._process:
            raise Error("batches are drawn in the daemon: leave the loader's num_workers at 0")
        return self._part.aside(self.dataset.name)

    def sample(self, seeds: torch.Tensor, fanout: Sequence[int]) -> SamplerOutput:
        """Has neighbours drawn, and keeps the features that come with them."""
        aside = self.aside()
        drawn = aside.draw(_numbers(seeds), fanout, self.number)
        self.number = (self.number + 1) % (1 << 32)
        node, edges = torch.tensor(drawn.n_id), torch.tensor(drawn.edge_index)
        aside.last = node, torch.tensor(drawn.x)
        return SamplerOutput(
            node=node,
            row=edges[0],
            col=edges[1],
            edge=None,
            num_sampled_nodes=drawn.num_sampled_nodes,
            num_sampled_edges=drawn.num_sampled_edges,
        )

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """Returns features, which are asked for unless the last batch had them."""
        aside = self.aside()
        if aside.last is not None and torch.equal(aside.last[0], index):
            x: torch.Tensor = aside.last[1]
            return x
        distinct, place = np.unique(_numbers(index), return_inverse=True)
        parts = [np.zeros((0, self.dataset.features), np.float32)]
        for first in range(0, len(distinct), _ROWS):
            parts.append(aside.draw(distinct[first : first + _ROWS], [], 0).x.copy())
        return torch.from_numpy(np.concatenate(parts)[place])

    def known(self, name: str) -> torch.Tensor:
        """Returns labels or a mask, of all vertices."""
        if not self._known:
            y, marks = self.aside().know()
            self._known = {"y": torch.from_numpy(y)}
            for mask, mark in _MARKS.items():
                self._known[mask] = torch.from_numpy(marks == mark)
        return self._known[name]


def _numbers(index: torch.Tensor) -> np.ndarray[Any, np.dtype[np.int64]]:
    return index.to(torch.int64).cpu().numpy()


class Features(FeatureStore):  # type: ignore[misc]
    """The features ``x`` and the labels ``y`` of a dataset of the mesh."""

    def __init__(self, door: Door) -> None:
        super().__init__()
        self.__dict__["_door"] = door

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """Lists what a batch gets."""
        return [TensorAttr(None, name) for name in ("x", "y")]

    def _get_tensor(self, attr: TensorAttr) -> torch.Tensor | None:
        if attr.attr_name not in ("x", "y", *_MARKS):
            return None
        index = self._index(attr.index)
        rows: torch.Tensor = (
            self._door.rows(index)
            if attr.attr_name == "x"
            else self._door.known(attr.attr_name)[index]
        )
        return rows

    def _index(self, index: Any) -> torch.Tensor:
        if isinstance(index, torch.Tensor) and index.dtype != torch.bool:
            return index
        every = torch.arange(self._door.dataset.vertices)
        if isinstance(index, int):
            index = slice(index, index + 1)
        if isinstance(index, np.ndarray):
            index = torch.from_numpy(index)
        chosen: torch.Tensor = every if index is None else every[index]
        return chosen

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        n = self._door.dataset.vertices
        if attr.attr_name == "x":
            return (n, self._door.dataset.features)
        columns = self._door.dataset.about.get("targets")
        return (n, columns) if attr.attr_name == "y" and columns else (n,)

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        raise Error(_READ_ONLY)

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        raise Error(_READ_ONLY)


class Edges(GraphStore):  # type: ignore[misc]
    """The edges of a dataset of the mesh. They stay there: a sampler draws from them."""

    def __init__(self, door: Door) -> None:
        super().__init__()
        self.__dict__["_door"] = door

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """Lists the one kind of edges."""
        n = self._door.dataset.vertices
        return [EdgeAttr(None, EdgeLayout.COO, size=(n, n))]

    def _get_edge_index(self, edge_attr: EdgeAttr) -> Any:
        name = self._door.dataset.name
        raise Error(
            f"the edges of {name} stay in the mesh: give the loader "
            f"neighbor_sampler=mesh.sampler({name!r}, num_neighbors)"
        )

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise Error(_READ_ONLY)

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise Error(_READ_ONLY)


class Sampler(BaseSampler):  # type: ignore[misc]
    """Draws neighbours in the daemon, as many of each hop as ``num_neighbors`` says."""

    def __init__(self, door: Door, num_neighbors: Sequence[int] | int) -> None:
        hops = [num_neighbors] if isinstance(num_neighbors, int) else list(num_neighbors)
        if not hops or any(k == 0 or k < -1 for k in hops):
            raise Error(f"num_neighbors is {num_neighbors}: give numbers, and -1 for all")
        self._door, self._fanout = door, [max(k, 0) for k in hops]

    def sample_from_nodes(self, inputs: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """Draws a batch of seed vertices."""
        if inputs.time is not None:
            raise Error("edges of the mesh have no times: leave input_time out")
        if len(inputs.node) > MOST_DRAWN:
            raise Error(f"a batch has {len(inputs.node)} seed vertices, and {MOST_DRAWN} may be")
        out = self._door.sample(inputs.node, self._fanout)
        out.metadata = (inputs.input_id, inputs.time)
        return out

    def sample_from_edges(self, *args: Any, **kwargs: Any) -> Any:
        """Raises an Error: edges are no seeds yet."""
        raise Error("this sampler draws from vertices: use PyG's NeighborLoader")

    @property
    def edge_permutation(self) -> None:
        """None: edges have no numbers."""
        return None


class RemoteData(tuple[Features, Edges]):
    """A pair of stores that PyG's loaders take, with what programs ask of a ``Data``."""

    _door: Door

    def __new__(cls, door: Door) -> RemoteData:
        """Makes the pair."""
        about = door.dataset.about
        if about.get("relations") or about.get("edge_features"):
            what = "relations" if about.get("relations") else "features"
            warnings.warn(
                f"edges of {door.dataset.name} have {what}, which PyG's stores "
                "do not bring: take mesh.loader, whose batches have them",
                stacklevel=3,
            )
        made = super().__new__(cls, (Features(door), Edges(door)))
        made._door = door
        return made

    def __repr__(self) -> str:
        return f"RemoteData({self._door.dataset!r})"

    @property
    def num_nodes(self) -> int:
        """The number of vertices."""
        return self._door.dataset.vertices

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self._door.dataset.edges

    @property
    def num_features(self) -> int:
        """The number of columns of x."""
        return self._door.dataset.features

    num_node_features = num_features

    @property
    def num_classes(self) -> int:
        """The number of classes, or of the columns of y."""
        return self._door.dataset.about.get("targets") or self._door.dataset.classes

    @property
    def y(self) -> torch.Tensor:
        """The labels of all vertices: -1 or, in columns, NaN where there is none."""
        return self._door.known("y")

    @property
    def train_mask(self) -> torch.Tensor:
        """Which vertices are learnt from."""
        return self._door.known("train_mask")

    @property
    def val_mask(self) -> torch.Tensor:
        """Which vertices validate."""
        return self._door.known("val_mask")

    @property
    def test_mask(self) -> torch.Tensor:
        """Which vertices test."""
        return self._door.known("test_mask")

    @property
    def ids(self) -> Any:
        """Your ids of the vertices. Shards are read for them: see :meth:`Dataset.load`."""
        return self._door.dataset.ids()
