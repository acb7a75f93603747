"""Programs of the user's train on real daemons."""

from __future__ import annotations

import functools
import json
import os
import threading
from concurrent import futures
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CORA, Arrays, until

import hopmesh

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts")
NODES = (1, 2, 3)
TOWNS: dict[str, Any] = {
    "kind": "sbm", "vertices": 400, "edges": 3000, "features": 8, "classes": 4, "shards": 6,
    "seed": 3,
}  # fmt: skip


def script(name: str) -> str:
    return os.path.join(SCRIPTS, name + ".py")


@pytest.mark.parametrize("task, columns", [("multilabel", 3), ("regression", 2)])
def test_labels_in_columns(task: str, columns: int) -> None:
    made = np.random.default_rng(1)
    y = made.integers(0, 2, (60, columns)).astype(np.float32)
    if task == "regression":
        y += np.float32(0.25)
    y[made.random(y.shape) < 0.2] = np.nan
    n = np.arange(60)
    graph: Arrays = {"edge_index": np.stack([n, (n + 1) % 60]), "x": np.ones((60, 2), np.float32)}
    masks: Arrays = {"train_mask": n < 30, "val_mask": (n >= 30) & (n < 45), "test_mask": n >= 45}
    with hopmesh.up(nodes=1) as mesh:
        assert mesh.import_("g", y=y, **graph, **masks).task == task
        loader = mesh.loader("g", fanout=[2], batch_size=8, epochs=1, kind="numpy")
        assert (loader.task, loader.classes) == (task, columns)
        place = mesh.dataset("g").ids()
        seen = set()
        for _ in loader.epochs():
            for batch in loader:
                of = place[batch.n_id[: batch.batch_size]]
                assert batch.y.dtype == np.float32
                assert np.array_equal(batch.y, y[of], equal_nan=True)
                seen.update(of.tolist())
            for batch in mesh.loader("g", ids=[3, 59, 31], fanout=[2], kind="numpy"):
                assert np.array_equal(batch.y, y[batch.ids], equal_nan=True)
            loader.report(val_loss=0.5)
        # A vertex all of whose labels are missing is no seed vertex.
        assert seen == {v for v in range(30) if not np.isnan(y[v]).all()}
        assert np.array_equal(mesh.load_dataset("g").y, y, equal_nan=True)
        y, _ = mesh._part.aside("g").know()
        assert y.shape == (60, columns) and y.dtype == np.float32


@pytest.mark.parametrize("deal", ["owner", "slices"])
def test_the_same_batches_on_any_number_of_nodes(tmp_path: Path, deal: str) -> None:
    steps: dict[int, list[dict[str, Any]]] = {}
    for nodes in NODES:
        with hopmesh.up(nodes=nodes) as mesh:
            graph = mesh.generate("towns", **TOWNS).load()
            mesh.run(script("record"), [str(tmp_path), "towns", deal])
            (job,) = mesh.jobs.values()
            assert job.state == "done"
            epochs = [(e["loss"], e["train_acc"], e["val_acc"]) for e in job.history]
            assert epochs == [(0.5, 0.5, 0.25), (1, 0.5, 0.5)]
            assert job.best and (job.best["epoch"], job.best["val_acc"]) == (2, 0.5)
        ranks = [
            [json.loads(line) for line in open(tmp_path / f"{nodes}-{rank}", encoding="ascii")]
            for rank in range(nodes)
        ]
        steps[nodes] = [
            {
                "at": parts[0]["at"],
                "roots": sorted(root for part in parts for root in part["roots"]),
                "vertices": {v for part in parts for v in part["vertices"]},
                "x": {v: x for p in parts for v, x in zip(p["vertices"], p["x"], strict=True)},
            }
            for parts in zip(*ranks, strict=True)
        ]
        for parts in zip(*ranks, strict=True):
            assert {part["total"] for part in parts} == {sum(len(p["roots"]) for p in parts)}
        # Each training vertex is a seed vertex once an epoch.
        for epoch in (1, 2):
            roots = [r for step in steps[nodes] if step["at"][0] == epoch for r in step["roots"]]
            assert len(roots) == len(set(roots)) == graph.train_mask.sum()
    for nodes in NODES[1:]:
        for one, several in zip(steps[1], steps[nodes], strict=True):
            for what in ("at", "roots", "vertices", "x"):
                assert one[what] == several[what], (nodes, one["at"], what)


@pytest.mark.torch
@pytest.mark.parametrize("form", ["adjs", "edge_index"])
def test_gradients_are_those_of_one_machine(tmp_path: Path, form: str) -> None:
    pytest.importorskip("torch")
    for nodes in NODES:
        with hopmesh.up(nodes=nodes) as mesh:
            mesh.generate("towns", **TOWNS)
            mesh.run(script("gradients"), [str(tmp_path), form])
    one = np.load(tmp_path / "1-0.npz")
    assert np.abs(one["steps"]).max() > 0.01
    for nodes in NODES[1:]:
        ranks = [np.load(tmp_path / f"{nodes}-{rank}.npz") for rank in range(nodes)]
        for name in ("steps", "losses"):
            assert np.abs(ranks[0][name] - one[name]).max() < 1e-9
            assert all(np.array_equal(rank[name], ranks[0][name]) for rank in ranks)


@pytest.mark.torch
def test_a_node_dies(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    torch: Any = pytest.importorskip("torch")
    epochs = 40
    with hopmesh.up(nodes=3) as mesh:
        mesh.import_("cora", CORA)

        def kill() -> None:
            path = tmp_path / "n3"
            until("some epochs are over", lambda: path.exists() and int(path.read_text() or 0) > 4)
            mesh.kill("n3")

        thread = threading.Thread(target=kill)
        thread.start()
        mesh.run(script("sage"), [str(tmp_path), str(epochs), "0"])
        thread.join()
        (job,) = mesh.jobs.values()
        assert job.state == "done" and [e["epoch"] for e in job.history] == list(range(1, 41))
        said = capfd.readouterr().out.splitlines()
        assert "n3: its daemon is gone" in said
        goes_on = [line for line in said if line.endswith("with 2 nodes")]
        assert sorted(line[:2] for line in goes_on) == ["n1", "n2"]
        assert all(int(line.split()[5]) > 4 for line in goes_on)
        models = [torch.load(tmp_path / f"{node}.pt") for node in ("n1", "n2")]
        assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])
        # The daemon's own GraphSAGE is as good.
        own = mesh.train(
            "cora", model="sage", hidden=64, batch=64, fanout=[10, 10], epochs=epochs, seed=1
        )
        own.wait(progress=False)
        assert job.best and own.best and job.best["test_acc"] > 0.74
        assert abs(job.best["test_acc"] - own.best["test_acc"]) < 0.04


@pytest.mark.torch
def test_stopping_early(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with hopmesh.up(nodes=2) as mesh:
        mesh.import_("cora", CORA)
        mesh.run(script("sage"), [str(tmp_path), "500", "5"])
        (job,) = mesh.jobs.values()
        history = job.history
        assert job.state == "done" and 6 <= len(history) < 500
        assert job.best and job.best["epoch"] == len(history) - 5


def test_in_a_notebook() -> None:
    with hopmesh.up(nodes=1) as mesh:
        mesh.generate("towns", **TOWNS)
        loader = mesh.loader("towns", fanout=[3, 3], batch_size=32, epochs=2, kind="numpy")
        assert (loader.rank, loader.size, loader.node) == (0, 1, "n1")
        seen = sum(batch.batch_size for batch in loader)
        assert seen == mesh.load_dataset("towns").train_mask.sum() and not loader.done
        # The next cell has another loader.
        other = mesh.loader("towns", layers=1, batch_size=64, kind="numpy")
        until("the first job is stopped", lambda: loader.job.state == "stopped")
        assert sum(1 for _ in other) == len(other) and other.done
        until("the second one is done", lambda: other.job.state == "done")


def test_a_script_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "import hopmesh\n"
        "loader = hopmesh.connect().loader('towns', fanout=[3, 3], epochs=2, kind='numpy')\n"
        "for batch in loader:\n"
        "    if loader.rank == 1:\n"
        "        raise ValueError('so it is')\n"
    )
    with hopmesh.up(nodes=2) as mesh:
        mesh.generate("towns", **TOWNS)
        with pytest.raises(hopmesh.Error, match="ended with exit code 1: ValueError: so it is"):
            mesh.run(path)
        (job,) = mesh.jobs.values()
        until("the job is stopped", lambda: job.state == "stopped")


def test_nodes_without_a_part(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "import hopmesh\n"
        "loader = hopmesh.connect().loader('towns', fanout=[3, 3], epochs=2, kind='numpy')\n"
        "print('beside', loader.node)\n"
        "for epoch in loader.epochs():\n"
        "    list(loader)\n"
    )
    with hopmesh.up(nodes=2) as mesh:
        mesh.generate("towns", **{**TOWNS, "shards": 1})
        mesh.run(path)
        (job,) = mesh.jobs.values()
        assert job.state == "done"
    said = [line for line in capfd.readouterr().out.splitlines() if "beside" in line]
    assert len(said) == 1 and said[0] in ("n1: beside n1", "n2: beside n2")


def test_no_script() -> None:
    with hopmesh.up(nodes=1) as mesh:
        with pytest.raises(hopmesh.Error, match="there is no script .*/none.py"):
            mesh.run("none.py")
        mesh.kill("n1")
        with pytest.raises(hopmesh.Error, match="this mesh is down"):
            mesh.run(__file__)


def test_nodes_that_join_and_come_back(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sizes"
    with hopmesh.up(nodes=2) as mesh:
        mesh.generate("towns", **TOWNS)

        def change() -> None:
            try:
                for so_far, do in (
                    ("[2]", mesh.add),
                    ("[2, 3]", lambda: mesh.kill("n3")),
                    ("[2, 3, 2]", lambda: mesh.restart("n3")),
                ):
                    until(f"the sizes were {so_far}", functools.partial(_ends, path, so_far))
                    do()
            except BaseException:
                mesh.down()  # and with it the run
                raise

        with futures.ThreadPoolExecutor(1) as changing:
            changed = changing.submit(change)
            mesh.run(script("sizes"), [str(path), "2", "3", "2", "3"])
            changed.result()
        (job,) = mesh.jobs.values()
        assert job.state == "done" and sorted(job.show()["nodes"]) == ["n1", "n2", "n3"]
        with pytest.raises(hopmesh.Error, match="node n3 runs: kill it first"):
            mesh.restart("n3")
    said = capfd.readouterr().out.splitlines()
    assert said.count("n3: starts too, from the last checkpoint") == 2
    goes_on = [int(line.split()[-1]) for line in said if "of 3 goes on at epoch" in line]
    assert len(goes_on) == 6 and min(goes_on) > 1  # each time all three of them


def _ends(path: Path, text: str) -> bool:
    return path.exists() and path.read_text().endswith(" " + text)
