"""What jobs did is read by the programs that draw and keep it."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import CORA, until

import hopmesh
from hopmesh import tracking


def read(folder: Path) -> Any:
    """Reads event files as TensorBoard does."""
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = module.EventAccumulator(os.fspath(folder), size_guidance={"scalars": 0})
    return run.Reload()


def curve(run: Any, tag: str) -> dict[int, float]:
    """Returns the values of a curve by their steps, each of which comes once."""
    scalars = run.Scalars(tag)
    points = {scalar.step: scalar.value for scalar in scalars}
    assert len(points) == len(scalars), f"{tag} has steps twice"
    return points


def written(folder: Path, epochs: int) -> None:
    """Waits until a folder has this many epochs."""

    def whole() -> bool:
        if not any(folder.glob("events.*")):
            return False
        run = read(folder)
        return "loss" in run.Tags()["scalars"] and len(curve(run, "loss")) == epochs

    until(f"{folder} has {epochs} epochs", whole)


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    logs = tmp_path / "logs"
    with hopmesh.up(nodes=2, logdir=logs) as mesh:
        mesh.import_("cora", CORA)
        job = mesh.train("cora", strategy="leap", hidden=8, epochs=12, eval_every=3)
        job.wait(progress=False)
        history = job.history
        written(logs / job.id, 12)
        run = read(logs / job.id)
        assert len(history) == 12
        near = {
            "loss": {e["epoch"]: e["loss"] for e in history},
            "accuracy/val": {e["epoch"]: e["val_acc"] for e in history if e["val_acc"] is not None},
            "bytes/gradient": {e["epoch"]: e["bytes"]["gradient"] for e in history},
            "phases/compute": {e["epoch"]: e["phases"]["compute"] for e in history},
            "learning_rate": {e["epoch"]: 0.01 for e in history},
        }
        assert len(near["accuracy/val"]) == 4 and near["bytes/gradient"][12] > 0
        for tag, points in near.items():
            assert curve(run, tag) == pytest.approx(points), tag

        sweep = mesh.train("cora", strategy="single", epochs=3, sweep={"lr": [0.1, 0.001]})
        sweep.wait(progress=False)
        for i, model in enumerate(sweep.show()["models"]):
            folder = logs / sweep.id / f"{i}_lr={model['params']['lr']}"
            written(folder, 3)
            losses = {e["epoch"]: e["loss"] for e in model["history"]}
            assert curve(read(folder), "loss") == pytest.approx(losses)


@pytest.fixture
def tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """MLflow's client, with a store in files."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(before)


def metric(client: Any, run: str, key: str) -> dict[int, float]:
    """Returns a metric by its steps, each of which comes once."""
    points = client.get_metric_history(run, key)
    values = {point.step: point.value for point in points}
    assert len(values) == len(points), f"{key} has steps twice"
    return values


def test_mlflow_of_a_job_that_has_ended(mesh: hopmesh.LocalMesh, tracked: Any) -> None:
    job = mesh.train("cora", strategy="leap", hidden=8, epochs=6, eval_every=2, seed=3)
    job.wait(progress=False)
    run = tracked.get_run(mesh.log_to_mlflow(job.id, experiment="graphs", run_name="mine"))
    assert run.info.status == "FINISHED" and run.info.run_name == "mine"
    assert tracked.get_experiment(run.info.experiment_id).name == "graphs"
    expected = {
        "dataset": "cora", "strategy": "leap", "model.hidden": "8", "model.model": "gcn",
        "lr": "0.01", "seed": "3", "bf16_products": "false",
    }  # fmt: skip
    assert expected.items() <= run.data.params.items()
    assert run.data.tags["hopmesh.job"] == job.id and run.data.tags["hopmesh.state"] == "done"
    assert "hopmesh.error" not in run.data.tags
    history, best = job.history, job.best
    assert metric(tracked, run.info.run_id, "loss") == {e["epoch"]: e["loss"] for e in history}
    scores = {e["epoch"]: e["val_acc"] for e in history if e["val_acc"] is not None}
    assert len(scores) == 3 and metric(tracked, run.info.run_id, "val_acc") == scores
    sent = {e["epoch"]: e["bytes"]["gradient"] for e in history}
    assert sent[6] > 0 and metric(tracked, run.info.run_id, "bytes/gradient") == sent
    assert best and run.data.metrics["best_val_acc"] == best["val_acc"]
    assert run.data.metrics["best_epoch"] == best["epoch"]
    assert not {"epoch", "model", "weights_sha256"} & run.data.metrics.keys()
    # Once more, in the same experiment, within a run of the caller's.
    mlflow = pytest.importorskip("mlflow")
    with mlflow.start_run(experiment_id=run.info.experiment_id) as own:
        again = hopmesh.log_to_mlflow(job, experiment="graphs")
        assert mlflow.active_run().info.run_id == own.info.run_id
    assert tracked.get_run(again).info.experiment_id == run.info.experiment_id


def test_mlflow_of_a_job_that_runs(mesh: hopmesh.LocalMesh, tracked: Any) -> None:
    job = mesh.train("cora", hidden=16, epochs=4000)
    logged: list[str] = []
    logging = threading.Thread(target=lambda: logged.append(hopmesh.log_to_mlflow(job)))
    logging.start()

    def runs() -> list[Any]:
        found: list[Any] = tracked.search_runs(["0"])
        return [run for run in found if run.data.metrics.get("loss")]

    until("epochs are logged while it runs", lambda: len(runs()) == 1)
    assert runs()[0].info.status == "RUNNING" and job.state == "running"
    job.stop()
    logging.join(60)
    run = tracked.get_run(logged[0])
    assert run.info.status == "KILLED" and run.data.tags["hopmesh.state"] == "stopped"
    assert list(metric(tracked, logged[0], "loss")) == [e["epoch"] for e in job.history]


def test_mlflow_of_a_job_that_fails(mesh: hopmesh.LocalMesh, tracked: Any) -> None:
    job = mesh.train("cora", lr=1e30, epochs=50, optimizer="sgd")
    run = tracked.get_run(hopmesh.log_to_mlflow(job))
    assert run.info.status == "FAILED" and run.info.run_name == job.id
    assert run.data.tags["hopmesh.error"] == job.show()["error"][:500] != ""


def test_mlflow_of_a_sweep(
    mesh: hopmesh.LocalMesh, tracked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "_PAUSE", 0.0)  # after each epoch
    job = mesh.train("cora", strategy="leap", epochs=5, sweep={"lr": [0.1, 0.001]})
    parent = hopmesh.log_to_mlflow(job)
    children = tracked.search_runs(["0"], f"tags.`mlflow.parentRunId` = '{parent}'")
    models = {f"lr={model['params']['lr']}": model for model in job.show()["models"]}
    assert {run.info.run_name for run in children} == models.keys() == {"lr=0.1", "lr=0.001"}
    for run in children:
        model = models[run.info.run_name]
        assert run.info.status == "FINISHED" and run.data.params["lr"] == model["params"]["lr"]
        losses = {e["epoch"]: e["loss"] for e in model["history"]}
        assert len(losses) == 5 and metric(tracked, run.info.run_id, "loss") == losses
        assert run.data.metrics["best_val_acc"] == model["best"]["val_acc"]


def test_without_mlflow(mesh: hopmesh.LocalMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(hopmesh.Error, match=r"^mlflow is not here: pip install mlflow-skinny$"):
        hopmesh.log_to_mlflow(mesh.train("cora", epochs=1))
