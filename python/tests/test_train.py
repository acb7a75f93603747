"""Jobs train, stop, go on, and survive the death of a node."""

from __future__ import annotations

import re
import subprocess

import pytest
from conftest import until

import hopmesh
from hopmesh import binary, request


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


def test_arguments_are_those_of_the_program() -> None:
    command = [binary.find(), "train", "start", "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    flags = set(re.findall(r"^ +(?:-h, )?--([a-z-]+)", text, re.MULTILINE))
    others = {"dataset", "sweep", "set", "spec", "watch", "addr", "json", "help"}
    assert {name.replace("_", "-") for name in request.FIELDS} == flags - others
    keys = {option["key"] for option in hopmesh.options()}
    assert {"leap.mode", "sage.aggregator", "topology"} <= keys
    assert {request._key(key.replace(".", "_")) for key in keys} == keys
    assert "gat.version" in {option["key"] for option in hopmesh.options("gat")}
    with pytest.raises(hopmesh.Error, match="sgae"):
        hopmesh.options("sgae")


def test_requests() -> None:
    given = {"fanout": "15,10", "batch": "full", "leap_dedup": False, "heads": None}
    assert request.train_request("d", given) == {
        "dataset": "d",
        "fanout": [15, 10],
        "batch": 0,
        "set": [{"key": "leap.dedup", "value": "off"}],
    }
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
