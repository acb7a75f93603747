"""Graphs go in and come back as they were."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import CORA, Arrays

import hopmesh


def edges(graph: hopmesh.Graph) -> set[tuple[int, int]]:
    return set(zip(*graph.edge_index.tolist(), strict=True))


def test_a_file(mesh: hopmesh.LocalMesh) -> None:
    cora = mesh.datasets["cora"]
    assert (cora.vertices, cora.edges, cora.features, cora.classes) == (2708, 10556, 1433, 7)
    graph, file = mesh.load_dataset("cora"), np.load(CORA)
    dense = np.zeros((2708, 1433), np.float32)
    rows = np.repeat(np.arange(2708), np.diff(file["attr_indptr"]))
    dense[rows, file["attr_indices"]] = file["attr_data"]
    assert np.array_equal(graph.x, dense) and np.array_equal(graph.y, file["labels"])
    assert np.array_equal(graph.ids, np.arange(2708)) and graph.edge_weight is None
    assert np.array_equal(np.flatnonzero(graph.val_mask), np.sort(file["val_idx"][0]))
    targets = np.repeat(np.arange(2708), np.diff(file["adj_indptr"]))
    assert edges(graph) == set(zip(file["adj_indices"].tolist(), targets.tolist(), strict=True))


def test_shards_elsewhere(mesh: hopmesh.LocalMesh) -> None:
    with pytest.raises(hopmesh.Error, match="of cora is not at this node but at n[23]: load"):
        hopmesh.connect(mesh.address).load_dataset("cora")
    with pytest.raises(hopmesh.Error, match="the dataset cora has no split 1"):
        mesh.load_dataset("cora", split=1)


def test_triples_that_are_held_out_are_no_edges(mesh: hopmesh.LocalMesh, tmp_path: Path) -> None:
    lines = {
        "train": "ada\tlikes\tbob\nbob\tknows\teve\n",
        "valid": "eve\tlikes\tada\n",
        "test": "bob\tknows\tada\nada\tknows\teve\n",
    }
    for name, text in lines.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    mesh.import_("kin", tmp_path)
    graph = mesh.load_dataset("kin")
    ada, bob, eve = range(3)
    knows, likes = range(2)
    assert graph.ids.tolist() == ["ada", "bob", "eve"]
    assert graph.edge_type is not None
    edges = np.vstack([graph.edge_index, graph.edge_type]).T.tolist()
    assert sorted(edges) == sorted(
        [[ada, bob, likes], [bob, ada, 2 + likes], [bob, eve, knows], [eve, bob, 2 + knows]]
    )
    for got, want in [
        (graph.train_triples, [[ada, likes, bob], [bob, knows, eve]]),
        (graph.val_triples, [[eve, likes, ada]]),
        (graph.test_triples, [[ada, knows, eve], [bob, knows, ada]]),
    ]:
        assert got is not None
        assert sorted(got.tolist()) == want
    job = mesh.train("kin", task="link", model="mlp", layers=1, epochs=1, batch=1).wait(
        progress=False
    )
    scored = job.score([["ada", "eve"], ["eve", "ada"]], relation="knows")
    assert scored.scores[0] == pytest.approx(scored.scores[1])  # DistMult knows no direction
    best = job.top(2, relation="knows")
    known = {("bob", "eve"), ("bob", "ada"), ("ada", "eve")}
    found = list(zip(best.sources.tolist(), best.targets.tolist(), strict=True))
    assert (
        set(found)
        == {(a, b) for a in ["ada", "bob", "eve"] for b in ["ada", "bob", "eve"] if a != b} - known
    )
    with pytest.raises(
        hopmesh.Error, match="no relation is called hates: the dataset has knows, likes"
    ):
        job.top(1, relation="hates")
    job.remove()
    mesh.dataset("kin").remove()


def test_many_rows(mesh: hopmesh.LocalMesh) -> None:
    # Predictions come in groups of 65,536 rows.
    vertices = 70_000
    made = mesh.generate(
        "many", kind="rmat", vertices=vertices, edges=90_000, features=2, classes=2, shards=3
    )
    try:
        job = mesh.train(made, epochs=1, hidden=4).wait(progress=False)
        predicted, graph = job.predictions(), made.load()
        assert np.array_equal(predicted.ids, np.arange(vertices))
        here = job.model().predict(graph.x, graph.edge_index, graph.edge_weight)
        assert np.allclose(here, predicted.scores, atol=1e-5)
        job.remove()
    finally:
        made.remove(force=True)


def test_arrays(mesh: hopmesh.LocalMesh, ring: Arrays) -> None:
    weight = np.linspace(1, 2, ring["edge_index"].shape[1]).astype(np.float32)
    made = mesh.import_("ring", edge_weight=weight, shards=4, replicas=0, memory="1GiB", **ring)
    try:
        assert (made.vertices, made.features, made.classes) == (60, 4, 3)
        assert len(made.show()["shards"]) == 4
        graph = made.load()
        assert edges(graph) == set(zip(*ring["edge_index"].tolist(), strict=True))
        assert graph.edge_weight is not None
        assert np.isclose(graph.edge_weight.sum(), weight.sum())
        for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
            assert np.array_equal(getattr(graph, name), ring[name]), name
        made.verify()
    finally:
        made.remove()
    assert "ring" not in mesh.datasets


def test_data_of_pyg(mesh: hopmesh.LocalMesh, ring: Arrays) -> None:
    # A Data has attributes, and tensors that detach.
    def tensor(a: np.ndarray) -> SimpleNamespace:
        whole = SimpleNamespace(numpy=lambda: a)
        return SimpleNamespace(detach=lambda: SimpleNamespace(cpu=lambda: whole))

    data = SimpleNamespace(**{name: tensor(a) for name, a in ring.items()}, num_nodes=60)
    made = mesh.import_("data", data, undirected=True)
    try:
        both = {(b, a) for a, b in zip(*ring["edge_index"].tolist(), strict=True)}
        assert both < edges(made.load())
    finally:
        made.remove()


def test_to_pyg(mesh: hopmesh.LocalMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = mesh.load_dataset("cora")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(hopmesh.Error, match="PyTorch Geometric is not here"):
        graph.to_pyg()
    # What stands in for both packages only keeps what it is given.
    torch: Any = ModuleType("torch")
    data: Any = ModuleType("torch_geometric.data")
    torch.from_numpy, data.Data = lambda a: a, SimpleNamespace
    for name, module in (
        ("torch", torch),
        ("torch_geometric", data),
        ("torch_geometric.data", data),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    made = graph.to_pyg()
    assert made.x.shape == (2708, 1433) and made.train_mask.sum() == 140
    assert not hasattr(made, "edge_weight")


def test_frames(mesh: hopmesh.LocalMesh, ring: Arrays) -> None:
    pandas = pytest.importorskip("pandas")
    names = np.array([f"v{i:02d}" for i in range(60)])
    source, target = ring["edge_index"]
    table = pandas.DataFrame({"from": names[source], "to": names[target]})
    vertices = pandas.DataFrame({"id": names, "a": ring["x"][:, 0], "b": ring["x"][:, 1] > 0})
    vertices["label"] = ring["y"]
    vertices["split"] = np.where(
        ring["train_mask"], "train", np.where(ring["val_mask"], "val", "test")
    )
    made = mesh.import_("frames", table, vertices=vertices)
    try:
        graph = made.load()
        assert graph.ids.tolist() == names.tolist()
        assert np.array_equal(graph.y, ring["y"])
        assert np.array_equal(graph.x, np.column_stack([ring["x"][:, 0], vertices["b"]]))
        assert np.array_equal(graph.test_mask, ring["test_mask"])
        job = mesh.train(made, epochs=2, hidden=4).wait(progress=False)
        predicted = job.predictions()
        frame = predicted.frame()
        assert frame["id"].tolist() == names.tolist()
        assert frame.columns.tolist() == ["id", "class", "0", "1", "2", "class_name", "probability"]
        assert frame["class"].tolist() == predicted.scores.argmax(1).tolist()
        job.remove()
    finally:
        made.remove(force=True)


def test_labels_in_columns(mesh: hopmesh.LocalMesh, ring: Arrays) -> None:
    pandas = pytest.importorskip("pandas")
    source, target = ring["edge_index"]
    table = pandas.DataFrame({"from": source, "to": target})
    vertices = pandas.DataFrame({"a": ring["x"][:, 0], "ill": ring["y"] == 0, "b": ring["x"][:, 1]})
    vertices["smokes"] = ring["y"] != 1
    want = vertices[["smokes", "ill"]].to_numpy(np.float32)
    for task in ("multilabel", "regression"):
        given = vertices if task == "multilabel" else vertices.astype({"ill": int, "smokes": int})
        made = mesh.import_(
            "columns", table, vertices=given, label_columns=["smokes", "ill"], task=task
        )
        try:
            graph = made.load()
            assert made.task == task and made.about["class_names"] == ["smokes", "ill"]
            assert np.array_equal(graph.y, want) and np.array_equal(graph.x, ring["x"][:, :2])
            assert repr(made).endswith(", 2 features, 2 targets>")
        finally:
            made.remove()
    # Labels in two columns of one array, too, are what the task says. As pandas has them, and
    # edges as pairs, the columns of an array lie one after the other.
    turned = {name: np.asfortranarray(ring[name]) for name in ("edge_index", "x")}
    assert not any(a.flags.c_contiguous for a in (want, *turned.values()))
    made = mesh.import_("columns", task="regression", **{**ring, **turned, "y": want})
    try:
        graph = made.load()
        assert made.task == "regression" and np.array_equal(graph.y, want)
        assert np.array_equal(graph.x, ring["x"])
        assert edges(graph) == set(zip(*ring["edge_index"].tolist(), strict=True))
    finally:
        made.remove()
    with pytest.raises(hopmesh.Error, match="drinks"):
        mesh.import_("columns", table, vertices=vertices, label_columns=["ill", "drinks"])
    with pytest.raises(hopmesh.Error, match="colour"):
        mesh.import_("columns", CORA, task="colour")
    assert "columns" not in mesh.datasets


def test_generated(mesh: hopmesh.LocalMesh) -> None:
    made = mesh.generate(
        "towns", kind="sbm", vertices=500, edges=3000, features=8, classes=4, dtype="bf16", seed=3
    )
    try:
        graph = made.load()
        assert graph.x.shape == (500, 8) and np.isfinite(graph.x).all() and graph.x.std() > 0
        assert set(graph.y.tolist()) == {0, 1, 2, 3}
    finally:
        made.remove()


def test_refusals(mesh: hopmesh.LocalMesh, ring: Arrays) -> None:
    with pytest.raises(hopmesh.Error, match="the edges are missing: give edge_index"):
        mesh.import_("none", x=ring["x"])
    with pytest.raises(hopmesh.Error, match="no graph has colour: give some of edge_index"):
        mesh.import_("none", edge_index=ring["edge_index"], colour=1)
    with pytest.raises(hopmesh.Error, match="give a source or arrays, and not both: x"):
        mesh.import_("none", CORA, x=ring["x"])
    with pytest.raises(hopmesh.Error, match="vertices go with a DataFrame of edges"):
        mesh.import_("none", CORA, vertices=ring["x"])
    with pytest.raises(hopmesh.Error, match="there is not a vertex 60, as there are 60 vertices"):
        mesh.import_("none", {**ring, "edge_index": np.array([[0, 60], [1, 2]])})
    with pytest.raises(hopmesh.Error, match="memory is 'much'"):
        mesh.import_("none", CORA, memory="much")
    assert "none" not in mesh.datasets


def test_features_of_edges_in_frames(mesh: hopmesh.LocalMesh) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {"u": ["a", "b"], "v": ["b", "a"], "weight": [2.0, 3.0], "age": [5, 6]}
    )
    made = mesh.import_("aged", table, edge_features="all")
    try:
        graph = made.load()
        assert graph.edge_weight is not None and graph.edge_attr is not None
        assert sorted(graph.edge_weight.tolist()) == [2, 3]
        assert sorted(graph.edge_attr.tolist()) == [[5], [6]]
    finally:
        made.remove()
