"""Jobs train, stop, go on, and survive the death of a node."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Arrays, until

import hopmesh
from hopmesh import binary, client, request


def test_epochs_in_order(mesh: hopmesh.LocalMesh, capsys: pytest.CaptureFixture[str]) -> None:
    job = mesh.train("cora", model="sage", hidden=8, epochs=20, seed=7)
    seen = list(job)
    assert [epoch["epoch"] for epoch in seen] == list(range(1, 21))
    assert job.state == "done" and job.history == seen
    assert seen[-1]["loss"] < seen[0]["loss"]
    # Once more, when all is over; and from another node.
    again = mesh.at("n2").job(job.id)
    assert [epoch["weights_sha256"] for epoch in again] == [e["weights_sha256"] for e in seen]
    assert job.wait().weights == seen[-1]["weights_sha256"]
    assert f"{job.id}" in capsys.readouterr().err
    assert job.best and job.best["val_acc"] == max(e["val_acc"] for e in seen)
    assert job.id in mesh.jobs and "sage on cora, done, epoch 20 of 20" in repr(job)
    job.remove()
    assert job.id not in mesh.jobs


def test_plain_progress(
    mesh: hopmesh.LocalMesh, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    job = mesh.train("cora", epochs=20, hidden=4).wait()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert re.fullmatch(rf"{job.id}: epoch 20 of 20, loss \d\.\d+, validation 0\.\d+", lines[-1])


def test_frame(mesh: hopmesh.LocalMesh) -> None:
    pytest.importorskip("pandas")
    frame = mesh.train("cora", epochs=4, hidden=4).wait(progress=False).frame()
    assert frame.index.tolist() == [1, 2, 3, 4]
    assert {"loss", "val_acc", "phases.compute", "bytes.feature"} <= set(frame.columns)


def test_plot(mesh: hopmesh.LocalMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    pytest.importorskip("matplotlib")
    axes = mesh.train("cora", epochs=4, eval_every=2, hidden=4).wait(progress=False).plot()
    drawn = {line.get_label(): line.get_xdata().tolist() for line in axes.get_lines()}
    assert drawn == {"loss": [1, 2, 3, 4], "validation": [2, 4], "test": [2, 4]}


def test_stop_and_resume(mesh: hopmesh.LocalMesh) -> None:
    job = mesh.train("cora", hidden=16, epochs=4000, deterministic=True)
    for epoch in job:
        if epoch["epoch"] == 5:
            break
    job.stop()
    until("it has stopped", lambda: job.state == "stopped")
    before = job.history
    assert 5 <= len(before) < 4000
    list(job)  # ends, and is no error
    job.resume()
    until("it goes on", lambda: len(job.history) > len(before))
    job.stop()
    until("it has stopped again", lambda: job.state == "stopped")
    hashes = [epoch["weights_sha256"] for epoch in job.history]
    assert hashes[: len(before)] == [epoch["weights_sha256"] for epoch in before]
    job.stop()  # changes nothing


def test_failure_is_an_error(mesh: hopmesh.LocalMesh) -> None:
    job = mesh.train("cora", lr=1e30, epochs=50, optimizer="sgd")
    with pytest.raises(hopmesh.Error, match=f"job {job.id} failed: "):
        job.wait(progress=False)


def test_sweep(mesh: hopmesh.LocalMesh) -> None:
    sweep = {"lr": [0.01, 0.001], "model_head": ["none", "linear"], "weight_decay": [0, 0.0005]}
    job = mesh.train("cora", epochs=3, hidden=4, sweep=sweep, settings={"model.jump": "none"})
    job.wait(progress=False)
    models = job.show()["models"]
    assert [m["params"]["lr"] for m in models] == ["0.01"] * 4 + ["0.001"] * 4
    assert job.model(3).spec["head"] == "linear" and job.model(4).spec["head"] == "none"


def test_numbers(
    mesh: hopmesh.LocalMesh,
    ring: Arrays,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    made = mesh.import_("numbers", task="regression", **{**ring, "y": ring["x"][:, :2]})
    try:
        job = mesh.train(made, epochs=2, hidden=4).wait()
        metrics = [epoch["metrics"] for epoch in job.history]
        last = f"rmse {metrics[-1]['val']['rmse']:.4g}"
        assert capsys.readouterr().err.splitlines()[-1].endswith(last)
        pytest.importorskip("matplotlib")
        drawn = {line.get_label(): list(line.get_ydata()) for line in job.plot().get_lines()}
        assert list(drawn) == ["loss", "validation rmse", "test rmse"]
        assert drawn["validation rmse"] == [of["val"]["rmse"] for of in metrics]
        assert drawn["test rmse"] == [of["test"]["rmse"] for of in metrics]
        job.remove()
    finally:
        made.remove(force=True)


def flags(*command: str) -> set[str]:
    """Returns the flags of a command of the program, as arguments are written."""
    whole = [binary.find(), *command, "--help"]
    text = subprocess.run(whole, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +(?:-h, )?--([a-z-]+)", text, re.MULTILINE)
    return {name.replace("-", "_") for name in found} - {"addr", "api_token_file", "json", "help"}


def check_pairs(links: hopmesh.Job, rows: Any, ring: Arrays, folder: Path) -> None:
    """Compares scores and partners with products of embeddings."""
    products = rows.astype(np.float64) @ rows.T.astype(np.float64)
    pairs = np.array([[3, 4], [59, 0], [3, 4]])
    scored = links.score(pairs)
    assert scored.sources.tolist() == [3, 59, 3] and scored.targets.tolist() == [4, 0, 4]
    assert np.allclose(scored.scores, products[pairs[:, 0], pairs[:, 1]], rtol=1e-4, atol=1e-5)
    path = folder / "pairs.csv"
    path.write_text("3,4\n59,0\n3,4\n")
    assert np.array_equal(links.score(path).scores, scored.scores)
    best = links.top(5)
    assert len(best) == 300 and len(best.frame()) == 300
    near = np.eye(60, dtype=bool)
    source, target = ring["edge_index"]
    near[source, target] = near[target, source] = True
    assert not near[best.sources, best.targets].any()
    floor = best.scores.reshape(60, 5)[:, -1:]
    assert (np.where(near, -np.inf, products) > floor + 1e-4).sum(1).max() < 5
    some = links.top(5, vertices=[7, 2])
    assert some.targets.tolist() == best.targets.reshape(60, 5)[[7, 2]].ravel().tolist()
    assert len(links.top(100, [7], neighbours=True)) == 59
    with pytest.raises(hopmesh.Error, match=r"give pairs of ids"):
        links.score([1, 2, 3])
    with pytest.raises(hopmesh.Error, match=r'pair 1 has the id "60"'):
        links.score([[60, 1]])


def test_tasks(mesh: hopmesh.LocalMesh, ring: Arrays, tmp_path: Path) -> None:
    made = mesh.import_("tasks", task="class", **ring)
    try:
        recipe: dict[str, Any] = {"epochs": 3, "hidden": 8, "seed": 1}
        even = mesh.train(made, **recipe).wait(progress=False)
        odd = mesh.train(made, task="class", class_weights=[1, 2, 5], **recipe)
        assert odd.wait(progress=False).show()["task"] == "class"
        assert odd.show()["recipe"]["class_weights"] == [1, 2, 5] and odd.weights != even.weights
        balanced = mesh.train(made, class_weights="balanced", loss="bce", **recipe)
        assert balanced.wait(progress=False).state == "done"
        links = mesh.train(made, task="link", edge_split=[0.6, 0.2, 0.2], batch=16, **recipe)
        about = links.wait(progress=False).show()
        best = about["best"]
        assert about["task"] == "link" and best["metric"] in best["metrics"]["val"]
        embeddings = links.predictions()
        assert embeddings.scores.shape == (60, 32) and embeddings.names is None
        pytest.importorskip("pandas")
        frame = embeddings.frame()
        assert frame.columns.tolist() == ["id", *(f"embedding_{i}" for i in range(32))]
        check_pairs(links, embeddings.scores, ring, tmp_path)
        with pytest.raises(hopmesh.Error, match="the task"):
            mesh.train(made, task="link", class_weights=[1, 2, 5])
        with pytest.raises(hopmesh.Error, match="edge.split"):
            mesh.train(made, edge_split=[0.6, 0.2, 0.2])
        for job in (even, odd, balanced, links):
            job.remove()
    finally:
        made.remove(force=True)


def test_other_graphs(mesh: hopmesh.LocalMesh, ring: Arrays) -> None:
    july, august = mesh.import_("july", **ring), mesh.import_("august", **ring)
    try:
        first = mesh.train(july, model="sage", hidden=5, epochs=40, seed=1).wait(progress=False)
        own, other = first.evaluate(), first.evaluate(august, split=0)
        assert own["dataset"] == "july" and other["dataset"] == "august"
        assert own["test_acc"] == other["test_acc"] == first.best["test_acc"]  # type: ignore[index]
        assert (first.predictions().scores == first.predictions(dataset=august).scores).all()
        tuned = mesh.train(august, from_=first, epochs=2, dropout=0.0).wait(progress=False)
        about = tuned.show()
        assert about["from"] == first.id and about["recipe"]["model"]["hidden"] == 5
        assert about["history"][0]["loss"] < first.history[0]["loss"]
        with pytest.raises(hopmesh.Error, match="hidden"):
            mesh.train(august, from_=first.id, hidden=6)
        for job in (first, tuned):
            job.remove()
    finally:
        july.remove(force=True)
        august.remove(force=True)


def test_arguments_are_those_of_the_program() -> None:
    others = {"dataset", "sweep", "set", "spec", "watch"}
    assert {*request.FIELDS, *request.FLAGS} == flags("train", "start") - others
    keys = {option["key"] for option in hopmesh.options()}
    assert set(request.FLAGS.values()) <= keys
    assert {"leap.mode", "sage.aggregator", "topology"} <= keys
    assert {request._key(key.replace(".", "_")) for key in keys} == keys
    assert "gat.version" in {option["key"] for option in hopmesh.options("gat")}
    with pytest.raises(hopmesh.Error, match="sgae"):
        hopmesh.options("sgae")


@pytest.mark.parametrize("command", ["import", "generate"])
def test_arguments_of_datasets(command: str) -> None:
    method = hopmesh.Mesh.import_ if command == "import" else hopmesh.Mesh.generate
    others = {"self", "name", "source", "vertices", "arrays"}
    ours = set(inspect.signature(method).parameters)
    assert ours - others == flags("dataset", command) - others


def test_requests() -> None:
    given = {"fanout": "15,10", "batch": "full", "leap_dedup": False, "heads": None}
    assert request.train_request("d", given) == {
        "dataset": "d",
        "fanout": [15, 10],
        "batch": 0,
        "set": [{"key": "leap.dedup", "value": "off"}],
    }
    task = {"task": "link", "edge_split": "0.8,0.1, 0.1", "loss": "bce"}
    asked = request.train_request("d", task)
    assert asked == {"dataset": "d", **task, "edge_split": [0.8, 0.1, 0.1]}
    asked = request.train_request("d", {"decoder": "mlp", "negatives": "batch:5"})
    assert asked["set"] == [
        {"key": "link.decoder", "value": "mlp"},
        {"key": "link.negatives", "value": "batch:5"},
    ]
    given = {"edge_split": np.array([0.5, 0.25, 0.25])}
    assert request.train_request("d", given)["edge_split"] == [0.5, 0.25, 0.25]
    wrong: list[Any] = [0.8, "most", ["most"]]
    for shares in wrong:
        with pytest.raises(hopmesh.Error, match="edge_split is .*: give three shares"):
            request.train_request("d", {"edge_split": shares})
    for weights in ([1, 2.5], (1, 2.5), "1,2.5", np.array([1, 2.5])):
        for name in ("class_weights", "train_class_weights"):
            (setting,) = request.train_request("d", {name: weights})["set"]
            assert setting["key"] == "train.class_weights"
            assert [float(part) for part in setting["value"].split(",")] == [1, 2.5]
    numbers = {
        "hidden": np.int64(8),
        "lr": np.float32(0.5),
        "seeds": np.arange(2),
        "ok": np.bool_(1),
    }
    assert json.loads(json.dumps(numbers, default=client.plain)) == {
        "hidden": 8,
        "lr": 0.5,
        "seeds": [0, 1],
        "ok": True,
    }
    with pytest.raises(hopmesh.Error, match="is a slice: give a number"):
        client.plain(slice(1))
    assert request.sizes({"memory": "1.5GiB"}) == {"memory": 3 << 29}
    assert request.sizes({"memory": "2GB", "seed": None}) == {"memory": 2 * 10**9}


def test_a_killed_node_changes_nothing() -> None:
    recipe = {"model": "sage", "hidden": 32, "batch": 256, "fanout": [5, 5], "epochs": 60}
    recipe |= {"strategy": "centric", "deterministic": True, "seed": 1}
    with hopmesh.up(nodes=3) as mesh:
        mesh.generate("g", kind="sbm", vertices=4000, edges=40000, features=32, classes=5)
        undisturbed = mesh.train("g", **recipe).wait(progress=False)
        assert sorted(undisturbed.show()["nodes"]) == ["n1", "n2", "n3"]
        job = mesh.train("g", **recipe)
        seen = []
        for epoch in job:
            seen.append(epoch["epoch"])
            if epoch["epoch"] == 5:
                mesh.kill("n3")
        assert seen == list(range(1, 61))
        assert sorted(job.show()["nodes"]) == ["n1", "n2"]
        assert job.weights == undisturbed.weights != ""
