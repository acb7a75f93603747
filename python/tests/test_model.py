"""An exported model says here what the daemon says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Arrays

import hopmesh

KINDS: dict[str, dict[str, Any]] = {
    "gcn": {"model": "gcn", "hidden": 16},
    "gcn without loops": {"model": "gcn", "model_self_loops": "off", "norm": "layer"},
    "gcn with jumps": {"model": "gcn", "layers": 3, "model_head": "linear", "model_jump": "cat"},
    "sage": {"model": "sage", "layers": 3, "norm": "layer", "residual": True},
    "sage max": {"model": "sage", "sage_aggregator": "max", "model_self_loops": "on"},
    "sage gcn": {"model": "sage", "sage_aggregator": "gcn", "normalize_features": "binary-row"},
    "sage with jumps": {"model": "sage", "model_head": "linear", "model_jump": "max"},
    "gat": {"model": "gat", "normalize_features": "none", "gat_out_heads": 2},
    "gat with a head": {"model": "gat", "model_head": "linear"},
    "gat 2": {"model": "gat", "gat_version": 2},
    "gat 2 with a head": {"model": "gat", "gat_version": 2, "model_head": "linear"},
    "gin": {"model": "gin", "hidden": 16},
    "gcnii": {"model": "gcnii", "layers": 4},
    "resgcn": {"model": "resgcn", "layers": 3, "hidden": 16},
    "mlp": {"model": "mlp", "hidden": 16},
    "gat without loops": {
        "model": "gat",
        "model_self_loops": "off",
        "residual": True,
        "norm": "layer",
    },
    "gin with loops": {"model": "gin", "hidden": 16, "model_self_loops": "on", "residual": True},
    "gcnii in full": {"model": "gcnii", "layers": 3, "residual": True, "norm": "layer"},
    "mlp with jumps": {"model": "mlp", "layers": 3, "model_head": "linear", "model_jump": "max"},
    "binary features": {
        "model": "gcn",
        "normalize_features": "binary",
        "settings": {"train.loss": "bce"},
    },
}


def close(want: np.ndarray, got: np.ndarray) -> bool:
    return float(np.abs(want - got).max()) <= 1e-5 * max(1, float(np.abs(want).max()))


@pytest.fixture(scope="module")
def jobs(mesh: hopmesh.LocalMesh) -> dict[str, hopmesh.Job]:
    return {name: mesh.train("cora", epochs=8, **recipe) for name, recipe in KINDS.items()}


@pytest.fixture(scope="module")
def cora(mesh: hopmesh.LocalMesh) -> hopmesh.Graph:
    return mesh.load_dataset("cora")


@pytest.mark.parametrize(
    "recipe",
    [
        {"model": "gat", "hidden": 4, "heads": 2},
        {"model": "gin", "hidden": 8},
        {"model": "mpnn", "hidden": 8},
        {"model": "mpnn", "hidden": 8, "mpnn_aggregator": "sum"},
        {"model": "mpnn", "hidden": 8, "model_edges": "off"},
    ],
)
def test_features_of_edges(mesh: hopmesh.LocalMesh, ring: Arrays, recipe: dict[str, Any]) -> None:
    edges = ring["edge_index"]
    weight = np.linspace(0.5, 3, edges.shape[1]).astype(np.float32)
    attr = np.stack([np.sin(edges[0] + edges[1]), np.linspace(-1, 1, edges.shape[1])], axis=1)
    attr = attr.astype(np.float32)
    made = mesh.import_(
        "described", edge_weight=weight, edge_attr=attr, edge_features="all", **ring
    )
    try:
        graph = made.load()
        assert graph.edge_attr is not None and graph.edge_attr.shape[1] == 2
        job = mesh.train("described", epochs=5, **recipe).wait(progress=False)
        model = job.model()
        got = model.predict(ring["x"], edges, weight, attr)
        assert close(job.predictions().scores, got)
        again = model.predict(graph.x, graph.edge_index, graph.edge_weight, graph.edge_attr)
        assert close(got, again)
        if "model_edges" not in recipe:
            with pytest.raises(hopmesh.Error, match="give edge_attr"):
                model.predict(ring["x"], edges, weight)
        described_in_torch(model, ring["x"], edges, weight, attr)
        job.remove()
    finally:
        made.remove(force=True)
    with pytest.raises(hopmesh.Error, match="edge_features"):
        mesh.import_("described", edge_attr=attr, **ring)


def described_in_torch(
    model: hopmesh.Model, x: np.ndarray, edges: np.ndarray, weight: np.ndarray, attr: np.ndarray
) -> None:
    """Compares the module of a model that reads features of edges with numpy, and trains it."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    module = model.to_torch()
    sizes = [
        sum(w.size for w in model.weights.values()),
        sum(p.numel() for p in module.parameters()),
    ]
    assert sizes[0] == sizes[1] and not module.training
    # Edges that stand twice, and vertices without any.
    few = edges[1] % 3 > 0
    for kept in (np.arange(edges.shape[1]), np.r_[0 : edges.shape[1], 0:20], np.flatnonzero(few)):
        given = [torch.from_numpy(np.array(a)) for a in (x, edges[:, kept], weight[kept])]
        along = torch.from_numpy(attr[kept])
        with torch.no_grad():
            got = module(*given, edge_attr=along)
        assert close(model.predict(x, edges[:, kept], weight[kept], attr[kept]), got.numpy())
    if model.spec.get("edge_features"):
        with pytest.raises(hopmesh.Error, match="reads 2 features of edges: give edge_attr"):
            module(*given)
    module.train()
    module(*given, edge_attr=along).square().sum().backward()
    assert all(p.grad is not None for p in module.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_daemon(kind: str, jobs: dict[str, hopmesh.Job], cora: hopmesh.Graph) -> None:
    job = jobs[kind].wait(progress=False)
    want, got = job.predictions(), job.model().predict(cora.x, cora.edge_index)
    assert got.dtype == np.float32 and got.shape == (2708, 7)
    assert np.array_equal(want.ids, cora.ids) and want.scores.std() > 0
    assert close(want.scores, got)


@pytest.mark.parametrize("kind", KINDS)
def test_torch_equals_numpy(
    kind: str, jobs: dict[str, hopmesh.Job], cora: hopmesh.Graph, ring: Arrays
) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    model = jobs[kind].wait(progress=False).model()
    module = model.to_torch()
    assert isinstance(module, torch.nn.Module) and not module.training
    assert sum(p.numel() for p in module.parameters()) == sum(
        w.size for w in model.weights.values()
    )

    def compare(x: np.ndarray, edges: np.ndarray, weight: np.ndarray | None = None) -> None:
        given = [torch.from_numpy(np.array(a)) for a in (x, edges, weight) if a is not None]
        with torch.no_grad():
            got = module(*given)
        assert got.dtype == torch.float32
        assert close(model.predict(x, edges, weight), got.numpy())

    compare(cora.x, cora.edge_index)
    # Features of either sign, edges that stand twice, loops, weights, lone vertices.
    r = np.random.default_rng(1)
    some = r.random((60, 1433)) < 0.02
    x = np.where(some, r.normal(size=some.shape), 0)
    x[3] = 0
    edges = np.concatenate([ring["edge_index"], ring["edge_index"][:, :30], [[5], [5]]], axis=1)
    edges = edges[:, (edges != 7).all(0)]
    compare(x.astype(np.float32), edges)
    compare(x.astype(np.float32), edges, np.linspace(0.5, 3, edges.shape[1]).astype(np.float32))
    compare(x.astype(np.float32), np.zeros((2, 0), np.int64))


@pytest.mark.parametrize("kind", ["gcn", "gat with a head", "gat 2", "gin", "gcnii", "resgcn"])
def test_torch_trains(kind: str, jobs: dict[str, hopmesh.Job], cora: hopmesh.Graph) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    torch.manual_seed(1)
    module = jobs[kind].wait(progress=False).model().to_torch()
    x, edges = torch.from_numpy(cora.x), torch.from_numpy(cora.edge_index)
    y, mask = torch.from_numpy(cora.y), torch.from_numpy(cora.train_mask)

    def loss() -> Any:
        return torch.nn.functional.cross_entropy(module(x, edges)[mask], y[mask])

    before = float(loss().detach())
    module.train()
    assert not torch.equal(module(x, edges), module(x, edges))  # dropout
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(10):
        optimizer.zero_grad()
        step = loss()
        step.backward()
        assert all(p.grad is not None for p in module.parameters())
        optimizer.step()
    module.eval()
    assert float(loss().detach()) < before


def test_torch_files(
    jobs: dict[str, hopmesh.Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.safetensors"
    jobs["gcn"].wait(progress=False).export(path)
    with monkeypatch.context() as without:
        without.delitem(sys.modules, "hopmesh.modules", raising=False)
        without.delattr(hopmesh, "modules", raising=False)
        without.setitem(sys.modules, "torch", None)
        with pytest.raises(hopmesh.Error, match="pip install torch torch_geometric"):
            hopmesh.load_model(path, torch=True)
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    module = hopmesh.load_model(path, torch=True)
    assert type(module.layers[0].conv).__name__ == "GCNConv"
    edges = torch.zeros((2, 0), dtype=torch.int64)
    with pytest.raises(hopmesh.Error, match="the model takes 1433 features"):
        module(torch.zeros(3, 2), edges)
    with pytest.raises(hopmesh.Error, match="vertices beyond the 3 rows of x"):
        module(torch.zeros(3, 1433), torch.tensor([[0], [3]]))


def test_files_explain_themselves(jobs: dict[str, hopmesh.Job]) -> None:
    for kind in ("sage gcn", "gat 2", "binary features"):
        model = jobs[kind].wait(progress=False).model()
        steps = json.loads(model.metadata["equations"])
        assert [step["name"] for step in steps] == model.metadata["order"].split(", ")
        assert sorted(n for step in steps for n in step["tensors"]) == sorted(model.weights)
        assert not [key for key, value in model.metadata.items() if "auto" in value]
        assert json.loads(model.metadata["class_names"]) == [str(i) for i in range(7)]
        assert model.metadata["version"] == "1"


@pytest.mark.parametrize("kind", ["gcn", "gin", "gcnii"])
def test_weights_of_edges(mesh: hopmesh.LocalMesh, ring: Arrays, kind: str) -> None:
    edges = ring["edge_index"]
    weight = np.linspace(0.5, 3, edges.shape[1]).astype(np.float32)
    mesh.import_("weighed", edge_weight=weight, **ring)
    try:
        job = mesh.train("weighed", model=kind, hidden=8, epochs=5).wait(progress=False)
        got = job.model().predict(ring["x"], edges, weight)
        assert close(job.predictions().scores, got)
        assert not close(job.predictions().scores, job.model().predict(ring["x"], edges))
        with pytest.raises(hopmesh.Error, match="edge_index is .*x2: .*so transpose it"):
            job.model().predict(ring["x"], edges.T)
        with pytest.raises(hopmesh.Error, match="edge_weight has to hold one number for each"):
            job.model().predict(ring["x"], edges, weight[1:])
        job.remove()
    finally:
        mesh.datasets["weighed"].remove(force=True)


def test_learnt_rows(mesh: hopmesh.LocalMesh, ring: Arrays) -> None:
    edges = ring.pop("edge_index")
    del ring["x"]
    made = mesh.import_("bare", edge_index=edges, shards=5, **ring)
    try:
        job = mesh.train("bare", model="sage", hidden=8, epochs=5).wait(progress=False)
        model, want, graph = job.model(), job.predictions(), made.load()
        assert model.features == 0 and model.weights["embedding.weight"].shape[0] == 60
        numbers, order = graph.numbers, made.ids()
        assert numbers is not None and np.array_equal(order[numbers], graph.ids)
        got = model.predict(None, graph.edge_index, numbers=numbers)
        assert np.array_equal(graph.ids, want.ids) and want.scores.std() > 0
        assert close(want.scores, got)
        assert close(got, model.predict(graph.x, graph.edge_index, numbers=numbers))
        # Without numbers, vertices are in the mesh's order.
        assert close(got, model.predict(None, numbers[graph.edge_index])[numbers])
        with pytest.raises(hopmesh.Error, match="x has 59 rows, and 60 learnt rows"):
            model.predict(np.zeros((59, 0)), graph.edge_index)
        for wrong in (numbers + 1, [[0]]):
            with pytest.raises(hopmesh.Error, match="one from 0 to 59 for each vertex"):
                model.predict(None, graph.edge_index, numbers=wrong)
        with pytest.raises(hopmesh.Error, match="the model takes 0 features"):
            model.predict(np.zeros((60, 1)), graph.edge_index)
        torch = pytest.importorskip("torch")
        pytest.importorskip("torch_geometric")
        module = model.to_torch()
        links, which = torch.from_numpy(graph.edge_index), torch.from_numpy(numbers)
        assert close(got, module(None, links, numbers=which).detach().numpy())
        assert any(len(p) == 60 for p in module.parameters())
        with pytest.raises(hopmesh.Error, match="x has 3 rows"):
            module(torch.zeros(3, 0), torch.from_numpy(graph.edge_index))
        job.remove()
    finally:
        made.remove(force=True)


def test_embeddings(jobs: dict[str, hopmesh.Job]) -> None:
    rows = jobs["gcn"].wait(progress=False).predictions(embeddings=True)
    assert rows.scores.shape == (2708, 16) and rows.names is None and rows.probabilities is None


def test_classes_and_probabilities(jobs: dict[str, hopmesh.Job]) -> None:
    for kind in ("gcn", "binary features"):
        found = jobs[kind].wait(progress=False).predictions()
        largest = found.scores.max(1, keepdims=True).astype(float)
        shares = 1 / np.exp(found.scores - largest).sum(1)
        want = shares if kind == "gcn" else 1 / (1 + np.exp(-largest[:, 0]))
        assert found.names is not None and found.probabilities is not None
        assert np.abs(found.probabilities - want).max() < 1e-6
        assert found.names.tolist() == [str(i) for i in found.classes]
        pytest.importorskip("pandas")
        frame = found.frame()
        scores = [str(i) for i in range(7)]
        assert frame.columns.tolist() == ["id", "class", *scores, "class_name", "probability"]
        assert frame["id"].tolist() == found.ids.tolist()
        assert frame["class_name"].tolist() == found.names.tolist()
        assert frame["probability"].tolist() == found.probabilities.tolist()


def test_files(jobs: dict[str, hopmesh.Job], tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    jobs["gcn"].wait(progress=False).export(path)
    model = hopmesh.load_model(path)
    assert model.weights["layers.0.weight"].shape == (1433, 16)
    assert repr(model) == "<Model gcn: 1433 features, 7 classes>"
    with pytest.raises(hopmesh.Error, match="the model takes 1433 features"):
        model.predict(np.zeros((3, 2)), [[0], [1]])
    with pytest.raises(hopmesh.Error, match="vertices beyond the 3 rows of x"):
        model.predict(np.zeros((3, 1433)), [[0], [3]])
    assert model.predict(np.zeros((3, 1433)), np.zeros((2, 0), int)).shape == (3, 7)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(hopmesh.Error, match="is no whole .safetensors file"):
        hopmesh.load_model(path)
    with pytest.raises(hopmesh.Error, match="can't be read: No such file"):
        hopmesh.load_model(tmp_path / "none")


RELATED: dict[str, dict[str, Any]] = {
    "rgcn": {"model": "rgcn"},
    "rgcn with bases": {"model": "rgcn", "layers": 3, "rgcn_bases": 2, "norm": "layer"},
    "rgcn with a head": {"model": "rgcn", "model_head": "linear", "residual": True},
    "sage": {"model": "hetero:sage"},
    "sage averaged": {"model": "hetero:sage", "hetero_across": "mean", "sage_aggregator": "max"},
    "sage by attention": {"model": "hetero:sage", "hetero_across": "attention"},
    "gat": {"model": "hetero:gat", "gat_out_heads": 2},
    "gat 2 with a head": {"model": "hetero:gat", "gat_version": 2, "model_head": "linear"},
    "gcn": {"model": "hetero:gcn"},
    "gin": {"model": "hetero:gin", "norm": "layer", "residual": True},
    "hgt": {"model": "hgt"},
    "hgt without norms": {"model": "hgt", "heads": 2, "norm": "none", "residual": True},
}


@pytest.fixture(scope="module")
def library(mesh: hopmesh.LocalMesh, tmp_path_factory: pytest.TempPathFactory) -> hopmesh.Graph:
    """Papers with classes and features, authors with others, and some without any edge."""
    folder, r = tmp_path_factory.mktemp("library"), np.random.default_rng(3)
    (folder / "nodes").mkdir()
    (folder / "edges").mkdir()
    split = np.arange(40) % 4
    np.savez(
        folder / "nodes/paper.npz",
        x=r.normal(size=(40, 5)).astype(np.float32), y=np.arange(40) % 3,
        train_mask=split < 2, val_mask=split == 2, test_mask=split == 3,
    )  # fmt: skip
    np.savez(folder / "nodes/author.npz", x=r.normal(size=(25, 3)).astype(np.float32))
    for name, sources, targets, count in [
        ("author-writes-paper", 25, 36, 90),
        ("paper-cites-paper", 40, 36, 80),
        ("paper-names-author", 40, 22, 70),
    ]:
        ends = [r.integers(0, sources, count), r.integers(0, targets, count)]
        np.savez(folder / "edges" / f"{name}.npz", edge_index=np.stack(ends))
    mesh.import_("library", folder)
    return mesh.load_dataset("library")


@pytest.mark.parametrize("kind", RELATED)
def test_relations_equal_the_daemon(
    kind: str, mesh: hopmesh.LocalMesh, library: hopmesh.Graph
) -> None:
    job = mesh.train("library", epochs=6, hidden=8, **RELATED[kind]).wait(progress=False)
    model = job.model()
    got = model.predict(library.x, library.edge_index, edge_type=library.edge_type)
    want = job.predictions()
    where = np.searchsorted(library.ids.astype(str), want.ids.astype(str))
    assert np.array_equal(library.ids[where], want.ids) and want.scores.std() > 0
    assert close(want.scores, got[where])
    # Each relation counts for itself.
    shifted = (np.asarray(library.edge_type) + 1) % 3
    assert not close(got, model.predict(library.x, library.edge_index, edge_type=shifted))
    equal_in_torch(model, library)


def equal_in_torch(model: hopmesh.Model, graph: hopmesh.Graph) -> None:
    """Compares the module of a model that tells relations apart with numpy, and trains it."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    module = model.to_torch()
    sizes = [
        sum(w.size for w in model.weights.values()),
        sum(p.numel() for p in module.parameters()),
    ]
    assert sizes[0] == sizes[1] and not module.training
    x, edges, kinds = np.array(graph.x), np.array(graph.edge_index), np.array(graph.edge_type)
    # Edges that stand twice, under one relation and under two, and a relation without any.
    twice = np.concatenate([edges, edges[:, :30], edges[:, :9]], axis=1)
    doubled = np.concatenate([kinds, kinds[:30], (kinds[:9] + 1) % 3])
    for pairs, of in [(edges, kinds), (twice, doubled), (edges[:, kinds > 0], kinds[kinds > 0])]:
        with torch.no_grad():
            got = module(*map(torch.from_numpy, (x, pairs)), edge_type=torch.from_numpy(of))
        assert close(model.predict(x, pairs, edge_type=of), got.numpy())
    given = [torch.from_numpy(a) for a in (x, edges)]
    with pytest.raises(hopmesh.Error, match=r"edge_type is missing: .* tells 3 relations apart"):
        module(*given)
    with pytest.raises(hopmesh.Error, match="a number from 0 to 2 for each edge"):
        module(*given, edge_type=torch.from_numpy(kinds + 1))
    module.train()
    module(*given, edge_type=torch.from_numpy(kinds)).square().sum().backward()
    assert all(p.grad is not None for p in module.parameters())


def test_types_without_features(mesh: hopmesh.LocalMesh, tmp_path: Path) -> None:
    r = np.random.default_rng(4)
    (tmp_path / "nodes").mkdir()
    (tmp_path / "edges").mkdir()
    split = np.arange(40) % 4
    np.savez(
        tmp_path / "nodes/paper.npz",
        x=r.normal(size=(40, 5)).astype(np.float32), y=np.arange(40) % 3,
        train_mask=split < 2, val_mask=split == 2, test_mask=split == 3,
    )  # fmt: skip
    np.savez(tmp_path / "nodes/author.npz", x=np.zeros((25, 0), np.float32))
    for name, sources, targets in [("author-writes-paper", 25, 40), ("paper-names-author", 40, 25)]:
        ends = [r.integers(0, sources, 90), r.integers(0, targets, 90)]
        np.savez(tmp_path / "edges" / f"{name}.npz", edge_index=np.stack(ends))
    made = mesh.import_("nameless", tmp_path)
    try:
        graph = made.load()
        more = {"train.embeddings": 8}
        job = mesh.train("nameless", model="rgcn", hidden=8, epochs=5, settings=more)
        job.wait(progress=False)
        model, want = job.model(), job.predictions()
        assert "embedding.weight" in model.weights and model.features == graph.x.shape[1]
        got = model.predict(
            graph.x, graph.edge_index, edge_type=graph.edge_type, numbers=graph.numbers
        )
        where = np.searchsorted(graph.ids.astype(str), want.ids.astype(str))
        assert close(want.scores, got[where])
        torch = pytest.importorskip("torch")
        pytest.importorskip("torch_geometric")
        given: dict[str, Any] = {"edge_index": graph.edge_index, "edge_type": graph.edge_type}
        given |= {"x": graph.x, "numbers": graph.numbers}
        with torch.no_grad():
            scores = model.to_torch()(
                **{name: torch.from_numpy(np.array(a)) for name, a in given.items()}
            )
        assert close(got, scores.numpy())
        job.remove()
    finally:
        made.remove(force=True)


def test_relations_that_are_missing(mesh: hopmesh.LocalMesh, library: hopmesh.Graph) -> None:
    model = mesh.train("library", epochs=1, model="rgcn", hidden=4).wait(progress=False).model()
    with pytest.raises(hopmesh.Error, match="edge_type is missing: rgcn tells 3 relations apart"):
        model.predict(library.x, library.edge_index)
    for wrong in ([0], np.full(library.edge_index.shape[1], 3)):
        with pytest.raises(hopmesh.Error, match="a number from 0 to 2 for each edge"):
            model.predict(library.x, library.edge_index, edge_type=wrong)
