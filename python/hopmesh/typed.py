"""Writes graphs with types that lie in memory into a folder that a daemon imports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from hopmesh import source as sources
from hopmesh.error import Error

_MASKS = tuple(f"{part}_mask" for part in sources.PARTS)
# What DGL's datasets call features and labels, beside PyG's names.
_NAMES = {"x": ("x", "feat"), "y": ("y", "label", "labels")}


def is_typed(value: Any) -> bool:
    """Reports whether a value is a PyG ``HeteroData`` or a graph of DGL, without either."""
    return _of_pyg(value) or hasattr(value, "canonical_etypes")


def write(folder: str, data: Any) -> str:
    """Writes a file for each type into nodes, and one for each relation into edges.

    Vertices keep their numbers within their type. Edges with weights or features are refused.
    """
    names = list(data.node_types if _of_pyg(data) else data.ntypes)
    for kind in ("nodes", "edges"):
        os.mkdir(os.path.join(folder, kind))
    for name in names:
        _save(folder, "nodes", name, _vertices(data, name))
    for relation, edges in _edges(data):
        array = sources.plain(edges)
        if array.ndim != 2 or array.shape[0] != 2:
            raise Error(f"the edges of {relation} are not two rows with sources and targets")
        _save(folder, "edges", "-".join(relation), {"edge_index": array})
    return folder


def _of_pyg(value: Any) -> bool:
    return hasattr(value, "node_types") and hasattr(value, "edge_types")


def _vertices(data: Any, name: str) -> dict[str, Any]:
    """Returns the arrays of the vertices of one type."""
    if _of_pyg(data):
        store = data[name]
        count, held = store.num_nodes, {key: value for key, value in store.items()}
    else:
        count, held = data.num_nodes(name), dict(data.nodes[name].data)
    arrays: dict[str, Any] = {"num_nodes": np.int64(count)}
    for key, others in _NAMES.items():
        found = [held[other] for other in others if held.get(other) is not None]
        if found:
            arrays[key] = sources.plain(found[0])
    if "x" in arrays:
        arrays["x"] = np.asarray(arrays["x"], dtype=np.float32, order="C")
    for mask in _MASKS:
        if "y" in arrays and held.get(mask) is not None:
            arrays[mask] = sources.plain(held[mask]).astype(bool)
    return arrays


def _edges(data: Any) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Yields each relation with its edges."""
    if _of_pyg(data):
        for relation in data.edge_types:
            held = dict(data[relation].items())
            _refuse(relation, held)
            if held.get("edge_index") is None:
                raise Error(f"the edges of {'-'.join(relation)} are missing: give edge_index")
            yield relation, held["edge_index"]
        return
    for relation in data.canonical_etypes:
        _refuse(relation, dict(data.edges[relation].data))
        yield relation, np.stack([sources.plain(ends) for ends in data.edges(etype=relation)])


def _refuse(relation: tuple[str, str, str], held: dict[str, Any]) -> None:
    """Raises an Error if edges have weights, features or else that would be lost.

    Numbers that DGL keeps for itself begin with an underscore, and PyG's labels of edges are those
    of pairs to be learnt.
    """
    for name, values in held.items():
        kept = name == "edge_index" or name.startswith(("_", "edge_label"))
        if values is not None and not kept:
            raise Error(
                f"edges of {'-'.join(relation)} have {name}, which graphs with types do "
                "not keep: import a copy without it"
            )


def _save(folder: str, kind: str, name: str, arrays: dict[str, Any]) -> None:
    if "/" in name or "\\" in name or name.startswith("."):
        raise Error(f"no file can be called {name}: give types and relations other names")
    np.savez(os.path.join(folder, kind, name + ".npz"), **arrays)
