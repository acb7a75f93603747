"""Writes graphs that lie in memory into files that a daemon imports."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hopmesh.error import Error

PARTS = ("train", "val", "test")
_ARRAYS = ("edge_index", "edge_weight", "x", "y", "num_nodes", *(f"{part}_mask" for part in PARTS))

# Columns of a table of nodes that are no features, see docs/data.md.
_RESERVED = re.compile(
    r"|id|label(_\d+)?|class|y|split(_\d+)?|(train|val|test)_mask|unnamed: 0", re.I
)


def write_arrays(folder: str, arrays: Mapping[str, Any], described: bool = False) -> str:
    """Writes arrays under the names that docs/data.md has for PyG's layout.

    With ``described`` edges have features, ``edge_attr``.
    """
    kept = {name: plain(value) for name, value in arrays.items() if value is not None}
    known = (*_ARRAYS, "edge_attr") if described else _ARRAYS
    if kept.keys() - set(known) == {"edge_attr"}:
        raise Error('edge_attr is read as features of edges: give edge_features="all", too')
    if unknown := kept.keys() - set(known):
        raise Error(f"no graph has {', '.join(sorted(unknown))}: give some of {', '.join(known)}")
    edges = kept.get("edge_index")
    if edges is None or edges.ndim != 2 or edges.shape[0] != 2:
        raise Error("the edges are missing: give edge_index, two rows with sources and targets")
    if "x" in kept:
        kept["x"] = np.asarray(kept["x"], dtype=np.float32, order="C")
    path = os.path.join(folder, "graph.npz")
    np.savez(path, **kept)
    return path


def from_data(data: Any, described: bool = False) -> dict[str, Any]:
    """Takes the arrays out of a PyG ``Data``, with ``described`` also ``edge_attr``.

    What edges have beside that is not left out in silence.
    """
    if getattr(data, "edge_type", None) is not None:
        raise Error(
            "the data has edge_type, relations of edges: make a HeteroData of it, such as by "
            "data.to_heterogeneous(), or import a copy without it"
        )
    if not described and getattr(data, "edge_attr", None) is not None:
        raise Error(
            'the data has edge_attr, features of edges: give edge_features="all", too, or import '
            "a copy without it"
        )
    names = (*_ARRAYS, "edge_attr") if described else _ARRAYS
    return {name: getattr(data, name, None) for name in names}


def write_frames(
    folder: str,
    edges: Any,
    vertices: Any,
    labels: Sequence[str] | None = None,
    features: Sequence[str] | str | None = None,
    type_column: str | None = None,
    relation_column: str | None = None,
) -> str:
    """Writes DataFrames as tables, which keep their ids.

    ``edges`` has a source and a target in its first two columns, and maybe a ``weight``; with
    ``features``, its other columns are written, too. The ids of ``vertices`` are its column
    ``id`` or its index. It may have the columns ``label`` and ``split`` (train, val or test);
    all others are features. ``labels`` names other columns of labels, ``type_column`` the one of
    types, and ``relation_column`` that of the relations of edges.
    """
    relations = None
    if relation_column is not None:
        if relation_column not in edges.columns:
            raise Error(f"the edges have no column {relation_column}: check relation_column")
        relations = edges[relation_column]
        # It may lie between the two ends.
        edges = edges.drop(columns=relation_column)
        if edges.shape[1] < 2:
            raise Error(
                f"the edges have fewer than two columns beside {relation_column}: "
                "give a source and a target, too"
            )
        if relation_column in ("src", "dst"):
            raise Error(f"{relation_column} names an end of edges: rename the column of relations")
    if "weight" in edges.columns and (type_column or relation_column):
        raise Error(
            "the edges have the column weight, which graphs with types do not keep: give a copy "
            "without it"
        )
    table = edges.iloc[:, :2].set_axis(["src", "dst"], axis=1)
    if "weight" in edges.columns:
        table = table.assign(weight=edges["weight"])
    if features is not None:
        others = edges.iloc[:, 2:].drop(columns="weight", errors="ignore")
        table = table.assign(**{str(name): others[name] for name in others.columns})
    if relations is not None:
        table = table.assign(**{str(relation_column): relations})
    table.to_csv(os.path.join(folder, "edges.csv"), index=False)
    if type_column is not None and (vertices is None or type_column not in vertices.columns):
        raise Error(f"the vertices have no column {type_column}: check type_column")
    if vertices is None:
        return folder
    if "id" in vertices.columns:
        vertices = vertices.set_index("id")
    vertices = vertices.rename_axis("id")
    of_labels = ["label"] if labels is None else list(labels)
    others = [name for name in vertices.columns if name not in ("label", "split", *of_labels)]
    tables = {"features": others, "labels": of_labels, "splits": ["split"]}
    if type_column is not None:
        del tables["features"]
        nodes = vertices[[name for name in others if name != type_column]]
        nodes = nodes.apply(_numbers).rename(columns=_feature)
        nodes = nodes.assign(**{str(type_column): vertices[type_column]})
        nodes.to_csv(os.path.join(folder, "nodes.csv"))
    for name, columns in tables.items():
        if columns and set(columns) <= set(vertices.columns):
            chosen = vertices[columns]
            chosen = chosen.apply(_numbers) if name == "features" else chosen.dropna(how="all")
            chosen.to_csv(os.path.join(folder, name + ".csv"))
    return folder


def _feature(name: Any) -> str:
    """Names a feature so that a table of nodes does not take it for something else."""
    return f"feature_{name}" if _RESERVED.fullmatch(str(name)) else str(name)


def _numbers(column: Any) -> Any:
    """Writes booleans as 1 and 0: as words, they would not be features."""
    if getattr(column.dtype, "kind", "O") in "iuf":
        return column
    if not any(isinstance(value, bool | np.bool_) for value in column):
        return column
    return column.map(lambda value: int(value) if isinstance(value, bool | np.bool_) else value)


def is_frame(value: Any) -> bool:
    """Reports whether a value is a pandas DataFrame, without pandas."""
    return hasattr(value, "iloc") and hasattr(value, "to_csv")


def plain(value: Any) -> Any:
    """Returns a numpy array, row after row, of what may be a tensor."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value, order="C")
