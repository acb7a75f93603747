"""Datasets of a mesh, and their graphs as arrays."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmesh import safetensors
from hopmesh.client import Client
from hopmesh.error import Error

_MISSING = 255  # of several labels of a vertex
_MARKS = {"train": 1, "val": 2, "test": 3}


@dataclass
class Graph:
    """A graph in memory. Vertices are in the order of their ids.

    ``numbers`` has the mesh's number of each, as batches and learnt rows have it. ``y`` is -1
    where there is no label, or has columns of float32, with NaN for a missing one.
    ``edge_weight`` is None if all weigh 1. ``edge_type`` has the number of each edge's relation,
    from 0 in the order of ``Dataset.about["relations"]``; it is None where there are none, and
    ``edge_attr`` where edges have no features.

    Of a knowledge graph with a given split, the edges are those that messages may pass along: each
    triple for training from head to tail and, with its relation's number plus that of relations,
    from tail to head. ``train_triples``, ``val_triples`` and ``test_triples`` have a head, a
    relation and a tail in each row; they are None for other graphs.
    """

    x: NDArray[np.float32]
    edge_index: NDArray[np.int64]
    y: NDArray[Any]
    train_mask: NDArray[np.bool_]
    val_mask: NDArray[np.bool_]
    test_mask: NDArray[np.bool_]
    ids: NDArray[Any]
    edge_weight: NDArray[np.float32] | None = None
    edge_type: NDArray[np.int64] | None = None
    edge_attr: NDArray[np.float32] | None = None
    train_triples: NDArray[np.int64] | None = None
    val_triples: NDArray[np.int64] | None = None
    test_triples: NDArray[np.int64] | None = None
    numbers: NDArray[np.int64] | None = None

    def to_pyg(self) -> Any:
        """Returns the graph as a PyG ``Data``, with its ids as ``ids``."""
        try:
            import torch
            from torch_geometric.data import Data
        except ImportError:
            raise Error(
                "PyTorch Geometric is not here: pip install torch torch_geometric"
            ) from None
        arrays = {name: value for name, value in vars(self).items() if value is not None}
        ids = arrays.pop("ids")
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
        return Data(ids=ids if ids.dtype == object else torch.from_numpy(np.array(ids)), **tensors)


def _apart(graph: Graph, relations: int) -> Graph:
    """Takes the triples of a given split out of the edges. The number of an edge says which part
    it is of: training, training from tail to head, validation or test.
    """
    assert graph.edge_type is not None
    part, relation = np.divmod(graph.edge_type, relations)
    heads, tails = graph.edge_index
    triples = np.stack([heads, relation, tails], axis=1)
    graph.train_triples, graph.val_triples, graph.test_triples = (
        triples[part == number] for number in (0, 2, 3)
    )
    messages = part < 2
    graph.edge_index = graph.edge_index[:, messages]
    graph.edge_type = graph.edge_type[messages]
    return graph


class Dataset:
    """A graph that the mesh holds in shards. ``about`` has all that the daemon says of it."""

    def __init__(self, client: Client, folders: Sequence[str], about: dict[str, Any]) -> None:
        self._client, self._folders, self.about = client, folders, about
        self.name: str = about["name"]
        self.vertices: int = about["vertices"]
        self.edges: int = about["edges"]
        self.features: int = about["features"]
        self.classes: int = about["classes"]
        self.task: str = about.get("task", "class")

    def __repr__(self) -> str:
        targets = self.about.get("targets")
        learnt = f"{targets} targets" if targets else f"{self.classes} classes"
        return (
            f"<Dataset {self.name}: {self.vertices} vertices, {self.edges} edges, "
            f"{self.features} features, {learnt}>"
        )

    @property
    def _path(self) -> str:
        return "/v1/datasets/" + urllib.parse.quote(self.name, safe="")

    def show(self) -> dict[str, Any]:
        """Asks the daemon again for all about this dataset, with its shards and their owners."""
        about: dict[str, Any] = self._client.get(self._path)
        return about

    def verify(self) -> None:
        """Has every copy of every shard read; damaged and missing ones are replaced."""
        for _ in self._client.stream("POST", self._path + "/verify"):
            pass

    def remove(self, force: bool = False) -> None:
        """Removes the dataset from the mesh, with ``force`` also one that kept models need."""
        self._client.delete(self._path + ("?force=true" if force else ""))

    def load(self, split: int = 0) -> Graph:
        """Reads the graph into arrays; features become dense float32.

        The shards are read from the folders of daemons on this machine. A mesh of
        :func:`hopmesh.up` has all of them here. Otherwise this node must hold every shard: in a
        mesh of one or two nodes it does.
        """
        shards = list(self._shards())
        known = all("splits" in s and 0 <= split < len(s["splits"]) for _, s in shards)
        if split != 0 and not known:
            raise Error(f"the dataset {self.name} has no split {split}")
        ids = np.concatenate([_ids(s) for _, s in shards])
        order = np.argsort(ids, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        marks = np.concatenate([_marks(s, split) for _, s in shards])[order]
        targets = np.concatenate([np.diff(s["indptr"]) for _, s in shards])
        sources = np.concatenate([s["indices"] for _, s in shards])
        weights = [s["weights"] for _, s in shards if "weights" in s]
        relations = [s["relations"] for _, s in shards if "relations" in s]
        rows = [s["edge_features"] for _, s in shards if "edge_features" in s]
        masks = {f"{name}_mask": marks == mark for name, mark in _MARKS.items()}
        graph = Graph(
            x=np.concatenate([_features(m, s) for m, s in shards])[order],
            edge_index=np.stack([place[sources], place[np.repeat(np.arange(len(ids)), targets)]]),
            y=np.concatenate([_labels(s) for _, s in shards])[order],
            ids=ids[order],
            numbers=order,
            edge_weight=np.concatenate(weights) if weights else None,
            edge_type=np.concatenate(relations).astype(np.int64) if relations else None,
            edge_attr=np.concatenate(rows).astype(np.float32, copy=False) if rows else None,
            **masks,
        )
        types = json.loads(shards[0][0].get("types") or "{}")
        return _apart(graph, len(types["relations"])) if types.get("given") else graph

    def ids(self) -> NDArray[Any]:
        """Returns the ids of all vertices, in the order of the mesh's numbers.

        ``ids()[batch.n_id]`` are those of a batch. The shards are read as :meth:`load` does.
        """
        return np.concatenate([_ids(shard) for _, shard in self._shards()])

    def _shards(self) -> Iterator[tuple[dict[str, str], dict[str, NDArray[Any]]]]:
        if not self._folders:
            raise Error("shards are read from the daemon's folder, and this daemon is elsewhere")
        for shard in self.show()["shards"]:
            name, wanted = f"{shard['id']:04d}.safetensors", shard["sha256"]
            for folder in self._folders:
                paths = glob.glob(os.path.join(glob.escape(folder), "datasets", "*", name))
                if path := next((path for path in paths if _digest(path) == wanted), None):
                    yield safetensors.read(path)
                    break
            else:
                raise Error(
                    f"shard {shard['id']} of {self.name} is not at this node but at "
                    f"{shard['owner']}: load the dataset from a node that holds all of it"
                )


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""  # it moved to another node meanwhile


def _ids(shard: dict[str, NDArray[Any]]) -> NDArray[Any]:
    if "original_ids" in shard:
        return shard["original_ids"]
    text, ends = shard["original_ids.bytes"].tobytes(), shard["original_ids.offsets"].tolist()
    names = [text[a:b].decode() for a, b in zip(ends, ends[1:], strict=False)]
    return np.array(names, dtype=object)


def _count(shard: dict[str, NDArray[Any]]) -> int:
    return len(shard["indptr"]) - 1


def _marks(shard: dict[str, NDArray[Any]], split: int) -> NDArray[np.uint8]:
    return shard["splits"][split] if "splits" in shard else np.zeros(_count(shard), np.uint8)


def _labels(shard: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Returns classes, -1 for none; or targets with columns, NaN where one is missing."""
    if "targets" in shard:
        targets = shard["targets"].astype(np.float32)
        if shard["targets"].dtype == np.uint8:
            targets[shard["targets"] == _MISSING] = np.nan
        return targets
    found = shard.get("labels", np.full(_count(shard), -1))
    return found.astype(np.int64)


def _features(metadata: dict[str, str], shard: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    if "features" in shard:
        return shard["features"].astype(np.float32, copy=False)
    x = np.zeros((_count(shard), int(metadata["features"])), np.float32)
    if "features.indptr" in shard:
        rows = np.repeat(np.arange(len(x)), np.diff(shard["features.indptr"]))
        x[rows, shard["features.indices"]] = shard["features.values"]
    return x
