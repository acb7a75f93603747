"""Graphs with types that lie in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopmesh
from hopmesh import source, typed

LABELS = np.arange(30) % 3
PARTS = {
    "train_mask": np.arange(30) < 18,
    "val_mask": (np.arange(30) >= 18) & (np.arange(30) < 24),
    "test_mask": np.arange(30) >= 24,
}
FEATURES = np.eye(3, dtype=np.float32)[LABELS] + np.float32(0.25)
WRITES = np.stack([np.arange(60) % 12, np.arange(60) % 30])
CITES = np.stack([np.arange(30), (np.arange(30) + 3) % 30])


class Nodes:
    """The vertices of one type, as DGL shows them."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data


class Edges:
    """The edges of a graph of DGL: called for their ends, indexed for their data."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.held = data

    def __call__(self, etype: tuple[str, str, str]) -> tuple[Any, Any]:
        ends = {"writes": WRITES, "cites": CITES}[etype[1]]
        return ends[0], ends[1]

    def __getitem__(self, etype: tuple[str, str, str]) -> Nodes:
        return Nodes(self.held.get(etype[1], {}))


class GraphOfDGL:
    """What is used of a graph of DGL, which is not installed beside these tests."""

    ntypes = ("author", "paper")
    canonical_etypes = (("author", "writes", "paper"), ("paper", "cites", "paper"))

    def __init__(self, **data: Any) -> None:
        self.edges = Edges({"cites": {"_ID": CITES[0]}, **data})
        self.nodes = {
            "author": Nodes({}),
            "paper": Nodes({"feat": FEATURES, "label": LABELS, "year": LABELS, **PARTS}),
        }

    def num_nodes(self, name: str) -> int:
        return {"author": 12, "paper": 30}[name]


def of_pyg() -> Any:
    torch = pytest.importorskip("torch")
    from torch_geometric.data import HeteroData

    data = HeteroData()
    data["author"].num_nodes = 12
    data["paper"].x = torch.from_numpy(FEATURES)
    data["paper"].y = torch.from_numpy(LABELS)
    for name, mask in PARTS.items():
        data["paper"][name] = torch.from_numpy(mask)
    data["author", "writes", "paper"].edge_index = torch.from_numpy(WRITES)
    data["paper", "cites", "paper"].edge_index = torch.from_numpy(CITES)
    return data


@pytest.mark.parametrize("source", [of_pyg, GraphOfDGL])
def test_files(tmp_path: Path, source: Any) -> None:
    data = source()
    assert typed.is_typed(data)
    typed.write(str(tmp_path), data)
    assert sorted(os.listdir(tmp_path / "nodes")) == ["author.npz", "paper.npz"]
    assert sorted(os.listdir(tmp_path / "edges")) == [
        "author-writes-paper.npz",
        "paper-cites-paper.npz",
    ]
    papers = np.load(tmp_path / "nodes" / "paper.npz")
    assert set(papers) == {"num_nodes", "x", "y", *PARTS}
    np.testing.assert_array_equal(papers["x"], FEATURES)
    np.testing.assert_array_equal(papers["y"], LABELS)
    np.testing.assert_array_equal(papers["test_mask"], PARTS["test_mask"])
    authors = np.load(tmp_path / "nodes" / "author.npz")
    assert set(authors) == {"num_nodes"} and authors["num_nodes"] == 12
    edges = np.load(tmp_path / "edges" / "author-writes-paper.npz")
    np.testing.assert_array_equal(edges["edge_index"], WRITES)


def test_imports(mesh: hopmesh.LocalMesh) -> None:
    for name, data in (("pyg-types", of_pyg()), ("dgl-types", GraphOfDGL())):
        made = mesh.import_(name, data, undirected=True, shards=4)
        about = made.about
        assert (about["vertices"], about["classes"]) == (42, 3)
        few = {"relation_fanout": {"cites": [4, 2]}, "fanout": [2, 2], "batch": 6}
        job = mesh.train(name, model="rgcn", hidden=8, epochs=3, seed=1, **few)
        assert job.wait().state == "done"
        with pytest.raises(hopmesh.Error, match="no relation is called reads"):
            mesh.train(name, model="rgcn", relation_fanout={"reads": [1, 1]}, fanout=[2, 2])


def test_refusals(tmp_path: Path) -> None:
    class Odd(GraphOfDGL):
        ntypes = ("author", "../paper")

        def __init__(self) -> None:
            super().__init__()
            self.nodes["../paper"] = self.nodes["paper"]

        def num_nodes(self, name: str) -> int:
            return 3

    with pytest.raises(hopmesh.Error, match="no file can be called ../paper"):
        typed.write(str(tmp_path), Odd())
    assert not typed.is_typed(np.zeros(3))


def test_what_edges_have_is_not_lost_in_silence(tmp_path: Path) -> None:
    for name in ("w", "feat"):
        data = GraphOfDGL(cites={name: CITES[0]})
        (tmp_path / name).mkdir()
        with pytest.raises(hopmesh.Error, match=f"edges of paper-cites-paper have {name}, which"):
            typed.write(str(tmp_path / name), data)
    torch = pytest.importorskip("torch")
    for name in ("edge_attr", "edge_weight", "time"):
        data = of_pyg()
        data["paper", "cites", "paper"][name] = torch.ones(CITES.shape[1], 2)
        (tmp_path / name).mkdir()
        with pytest.raises(hopmesh.Error, match=f"edges of paper-cites-paper have {name}, which"):
            typed.write(str(tmp_path / name), data)


class Data:
    """A PyG ``Data``, as far as it is read."""

    def __init__(self, **arrays: Any) -> None:
        vars(self).update(arrays)


def test_what_edges_of_one_type_have_is_not_lost_in_silence() -> None:
    attr = np.ones((60, 2))
    assert source.from_data(Data(edge_index=WRITES, edge_attr=None))["edge_index"] is WRITES
    assert source.from_data(Data(edge_index=WRITES, edge_attr=attr), True)["edge_attr"] is attr
    with pytest.raises(hopmesh.Error, match='edge_attr, features of edges: give edge_features="a'):
        source.from_data(Data(edge_index=WRITES, edge_attr=attr))
    with pytest.raises(hopmesh.Error, match="edge_type, relations of edges: make a HeteroData"):
        source.from_data(Data(edge_index=WRITES, edge_type=WRITES[0]), True)


def test_weights_beside_types(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"src": [1, 2], "dst": [2, 3], "verb": ["a", "b"], "weight": [1, 2]})
    with pytest.raises(hopmesh.Error, match="the column weight, which graphs with types do not"):
        source.write_frames(str(tmp_path), edges, None, relation_column="verb")


def test_columns(mesh: hopmesh.LocalMesh, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    vertices = pandas.DataFrame(
        {
            "id": [f"a{i}" for i in range(12)] + [f"p{i}" for i in range(30)],
            "kind": ["author"] * 12 + ["paper"] * 30,
            "age": [50.0 + i for i in range(12)] + [None] * 30,
            "x": [None] * 12 + FEATURES[:, 0].tolist(),
            "label": [None] * 12 + LABELS.tolist(),
            "split": [None] * 12 + ["train"] * 18 + ["val"] * 6 + ["test"] * 6,
        }
    )
    edges = pandas.DataFrame(
        {
            "by": [f"a{i}" for i in WRITES[0]] + [f"p{i}" for i in CITES[0]],
            "to": [f"p{i}" for i in WRITES[1]] + [f"p{i}" for i in CITES[1]],
            "verb": ["writes"] * WRITES.shape[1] + ["cites"] * CITES.shape[1],
        }
    )
    columns: dict[str, Any] = {"type_column": "kind", "relation_column": "verb"}
    about = mesh.import_("columns-types", edges, vertices=vertices, **columns).about
    assert [kind["name"] for kind in about["types"]] == ["author", "paper"]
    assert [kind["features"] for kind in about["types"]] == [1, 1]
    assert [r["name"] for r in about["relations"]] == ["writes", "cites"]
    assert (about["vertices"], about["classes"], about["features"]) == (42, 3, 2)
    # Either column alone, and tables in files, whose columns are found by their names.
    about = mesh.import_("columns-relations", edges, relation_column="verb").about
    assert [kind["name"] for kind in about["types"]] == ["vertex"]
    folder = tmp_path / "tables"
    folder.mkdir()
    vertices.rename(columns={"kind": "type"}).to_csv(folder / "nodes.csv", index=False)
    edges.rename(columns={"by": "from"}).to_csv(folder / "edges.csv", index=False)
    about = mesh.import_("columns-files", folder).about
    assert [r["name"] for r in about["relations"]] == ["author-paper", "paper-paper"]
    wrongs: list[dict[str, Any]] = [{"type_column": "sort"}, {"relation_column": "sort"}]
    for wrong in wrongs:
        with pytest.raises(hopmesh.Error, match="have no column sort: check"):
            mesh.import_("wrong", edges, vertices=vertices, **wrong)


def test_ends_of_edges_lie_beside_relations(tmp_path: Path) -> None:
    """The table of docs/data.md has the relation between the two ends."""
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"src": [1, 2], "relation": ["writes", "cites"], "dst": [2, 3]})
    source.write_frames(str(tmp_path), edges, None, relation_column="relation")
    table = pandas.read_csv(tmp_path / "edges.csv")
    assert table[["src", "dst"]].to_numpy().tolist() == [[1, 2], [2, 3]]
    assert table["relation"].tolist() == ["writes", "cites"]
    with pytest.raises(hopmesh.Error, match="fewer than two columns beside relation"):
        few = edges[["src", "relation"]]
        source.write_frames(str(tmp_path), few, None, relation_column="relation")


def test_only_label_and_split_are_no_features(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    vertices = pandas.DataFrame(
        {
            "id": [1, 2],
            "kind": ["a", "b"],
            "y": [0.5, 1.5],
            "train_mask": [True, False],
            "new": [True, None],
            "label": [0, None],
            "split": ["train", None],
        }
    )
    edges = pandas.DataFrame({"src": [1], "dst": [2]})
    source.write_frames(str(tmp_path), edges, vertices, type_column="kind")
    nodes = pandas.read_csv(tmp_path / "nodes.csv")
    assert list(nodes) == ["id", "feature_y", "feature_train_mask", "new", "kind"]
    assert nodes["feature_train_mask"].tolist() == [1, 0]
    assert nodes["new"].fillna(-1).tolist() == [1, -1]
    assert list(pandas.read_csv(tmp_path / "labels.csv")) == ["id", "label"]
    assert pandas.read_csv(tmp_path / "splits.csv")["split"].tolist() == ["train"]
