"""What jobs did is read by the programs that draw and keep it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from conftest import CORA, until

import hopmesh


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
