"""What edges have reaches programs on real daemons, the same on any number of nodes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Arrays, write_library

import hopmesh

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts", "edges.py")


def described(ring: Arrays, *names: str) -> Arrays:
    """Returns the ring with weights or features of its edges."""
    n = ring["edge_index"].shape[1]
    more = {
        "edge_weight": np.linspace(0.5, 3, n).astype(np.float32),
        "edge_attr": np.stack([np.arange(n), np.arange(n) % 7], axis=1).astype(np.float32),
    }
    return {**ring, **{name: more[name] for name in names}}


def known(graph: hopmesh.Graph) -> set[tuple[float, ...]]:
    """Returns a row for each edge, as the script has them."""
    assert graph.numbers is not None
    columns = [*graph.numbers[graph.edge_index]]
    columns += [of for of in (graph.edge_type, graph.edge_weight) if of is not None]
    columns += [] if graph.edge_attr is None else list(graph.edge_attr.T)
    return {tuple(row) for row in np.stack(columns, axis=1).astype(float).tolist()}


@pytest.mark.parametrize(
    "what, topology",
    [
        ("types", "auto"), ("types", "sharded"),
        ("edge_weight", "auto"), ("edge_weight", "sharded"),
        ("edge_attr", "auto"), ("edge_weight edge_attr", "replicated"), ("", "auto"),
    ],
)  # fmt: skip
def test_the_same_on_any_number_of_nodes(
    ring: Arrays, tmp_path: Path, what: str, topology: str
) -> None:
    steps: dict[int, list[set[tuple[float, ...]]]] = {}
    drawn: dict[int, set[tuple[float, ...]]] = {}
    for nodes in (1, 2, 3):
        with hopmesh.up(nodes=nodes) as mesh:
            if what == "types":
                write_library(tmp_path / f"library-{nodes}")
                made = mesh.import_("g", tmp_path / f"library-{nodes}", undirected=True, shards=6)
            else:
                more: dict[str, Any] = {"edge_features": "all"} if "attr" in what else {}
                made = mesh.import_("g", shards=6, **more, **described(ring, *what.split()))
            graph = made.load()
            assert (graph.edge_type is not None) == (what == "types")
            assert (graph.edge_weight is not None) == ("edge_weight" in what)
            assert (graph.edge_attr is not None) == ("edge_attr" in what)
            mesh.run(SCRIPT, [str(tmp_path), "g", topology])
            whole = known(graph)
        lines = []
        for rank in range(nodes):
            with open(tmp_path / f"{nodes}-{rank}", encoding="ascii") as file:
                lines.append([json.loads(line) for line in file])
        of = [[line for line in rank if isinstance(line, list)] for rank in lines]
        steps[nodes] = [
            {tuple(row) for rank in step for row in rank} for step in zip(*of, strict=True)
        ]
        rest = [line["drawn"] for rank in lines for line in rank if isinstance(line, dict)]
        drawn[nodes] = {tuple(row) for rows in rest for row in rows}
        assert len(steps[nodes]) == 3 and all(steps[nodes]) and drawn[nodes]
        for rows in (*steps[nodes], drawn[nodes]):
            assert rows <= whole
        assert steps[nodes] == steps[1] and drawn[nodes] == drawn[1]


def test_without_features_of_edges(ring: Arrays) -> None:
    with hopmesh.up(nodes=1) as mesh:
        mesh.import_("g", edge_features="all", **described(ring, "edge_attr"))
        given: dict[str, Any] = {"fanout": [3], "batch_size": 8, "kind": "numpy"}
        without = mesh.loader("g", settings={"model.edges": "off"}, **given)
        batch = next(iter(without))
        assert without.edge_features == 0 and batch.edge_attr is None
        loader = mesh.loader("g", **given)
        assert loader.edge_features == 2 and next(iter(loader)).edge_attr.shape[1] == 2
        with pytest.raises(hopmesh.Error, match="features of edges are read where each node has"):
            mesh.loader("g", settings={"topology": "sharded"}, **given)
