"""An exported model says here what the daemon says."""

from __future__ import annotations

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
}


def close(want: np.ndarray, got: np.ndarray) -> bool:
    return float(np.abs(want - got).max()) <= 1e-5 * max(1, float(np.abs(want).max()))


@pytest.fixture(scope="module")
def jobs(mesh: hopmesh.LocalMesh) -> dict[str, hopmesh.Job]:
    return {name: mesh.train("cora", epochs=8, **recipe) for name, recipe in KINDS.items()}


@pytest.fixture(scope="module")
def cora(mesh: hopmesh.LocalMesh) -> hopmesh.Graph:
    return mesh.load_dataset("cora")


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_daemon(kind: str, jobs: dict[str, hopmesh.Job], cora: hopmesh.Graph) -> None:
    job = jobs[kind].wait(progress=False)
    want, got = job.predictions(), job.model().predict(cora.x, cora.edge_index)
    assert got.dtype == np.float32 and got.shape == (2708, 7)
    assert np.array_equal(want.ids, cora.ids) and want.scores.std() > 0
    assert close(want.scores, got)


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
        job.remove()
    finally:
        mesh.datasets["weighed"].remove(force=True)


def test_embeddings(jobs: dict[str, hopmesh.Job]) -> None:
    rows = jobs["gcn"].wait(progress=False).predictions(embeddings=True)
    assert rows.scores.shape == (2708, 16)


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
