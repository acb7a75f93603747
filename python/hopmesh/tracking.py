"""Logs jobs to MLflow."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

from hopmesh.error import Error
from hopmesh.job import Job

# How MLflow calls the ends of jobs.
_ENDS = {"done": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}
# What older servers take: the length of a parameter, and the parts of one request.
_LONGEST, _PARAMS, _METRICS = 500, 100, 1000
# How often a sweep that runs is asked for the epochs of all models.
_PAUSE = 2.0


def log_to_mlflow(job: Job, *, experiment: str | None = None, run_name: str | None = None) -> str:
    """Logs a job to MLflow, and returns the id of the run.

    A job that has ended is logged at once; of one that runs, epochs are logged as they come, until
    it ends. The run has the job's parameters, the numbers of each epoch as metrics, its best epoch,
    and its end as the run's status: a job that fails is no error here. Each model of a sweep has a
    run of its own, nested in the job's. Call it again, and there is a second run.

    MLflow finds its server as always: ``MLFLOW_TRACKING_URI`` or ``mlflow.set_tracking_uri``.
    ``experiment`` is made if there is none of that name; by default the active one is taken. The
    run is named after the job unless ``run_name`` is given.
    """
    try:
        import mlflow
    except ImportError:
        raise Error("mlflow is not here: pip install mlflow-skinny") from None
    about = job.show()
    if experiment is not None:
        found = mlflow.get_experiment_by_name(experiment)
        to = found.experiment_id if found else mlflow.create_experiment(experiment)
    else:
        to = None
    client = mlflow.MlflowClient()
    # Nested, so that a run of the caller's stays as it is.
    with mlflow.start_run(experiment_id=to, run_name=run_name or job.id, nested=True) as parent:
        runs = [_Run(client, parent.info.run_id)]
        runs[0].begin(about, about["recipe"])
        for i, model in enumerate(about.get("models") or []):
            name = ", ".join(f"{key}={value}" for key, value in sorted(model["params"].items()))
            with mlflow.start_run(experiment_id=to, run_name=name, nested=True) as child:
                runs.append(_Run(client, child.info.run_id))
            client.update_run(runs[-1].id, status="RUNNING")
            runs[-1].begin(about, _recipe_of(about, i))
        try:
            about = _follow(job, runs)
        except BaseException:
            for run in runs[1:]:
                client.set_terminated(run.id, "KILLED")
            raise
        for run, best in zip(runs, [about, *(about.get("models") or [])], strict=True):
            run.end(about, best["best"])
        for run in runs[1:]:
            client.set_terminated(run.id, _ENDS[about["state"]])
    client.set_terminated(runs[0].id, _ENDS[about["state"]])
    return runs[0].id


def _follow(job: Job, runs: list[_Run]) -> dict[str, Any]:
    """Logs epochs until the job has ended, and returns all about it."""
    asked = time.monotonic()
    try:
        for epoch in job:
            runs[0].log([epoch])
            if len(runs) > 1 and time.monotonic() > asked + _PAUSE:
                _log_models(job.show(), runs)
                asked = time.monotonic()
    except Error:
        if job.show()["state"] != "failed":
            raise  # the daemon is gone
    about = job.show()
    _log_models(about, runs)
    return about


def _log_models(about: dict[str, Any], runs: list[_Run]) -> None:
    for run, model in zip(runs[1:], about.get("models") or [], strict=True):
        run.log(model["history"])


def _recipe_of(about: dict[str, Any], model: int) -> dict[str, Any]:
    recipe: dict[str, Any] = about["recipe"]["sweep"][model]["recipe"]
    return recipe


class _Run:
    """One run of MLflow."""

    def __init__(self, client: Any, id: str) -> None:
        self._client, self.id, self._last = client, id, 0

    def begin(self, about: dict[str, Any], recipe: dict[str, Any]) -> None:
        """Logs what is known of a job before it trains."""
        from mlflow.entities import Param, RunTag

        values = {"dataset": about["dataset"], "strategy": about["strategy"]}
        for path, value in _leaves({k: v for k, v in recipe.items() if k != "sweep"}):
            values[".".join(path)] = value if isinstance(value, str) else json.dumps(value)
        params = [Param(_name(key), value[:_LONGEST]) for key, value in values.items()]
        for i in range(0, len(params), _PARAMS):
            self._client.log_batch(self.id, params=params[i : i + _PARAMS])
        self._client.log_batch(self.id, tags=[RunTag("hopmesh.job", about["id"])])

    def log(self, epochs: list[dict[str, Any]]) -> None:
        """Logs those epochs that are new."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = []
        for epoch in epochs:
            if epoch["epoch"] <= self._last:
                continue
            self._last = epoch["epoch"]
            for path, value in _leaves(epoch):
                if path[0] not in ("epoch", "model") and _number(value):
                    metrics.append(Metric(_name("/".join(path)), value, now, self._last))
        for i in range(0, len(metrics), _METRICS):
            self._client.log_batch(self.id, metrics=metrics[i : i + _METRICS])

    def end(self, about: dict[str, Any], best: dict[str, Any] | None) -> None:
        """Logs how a job ended."""
        from mlflow.entities import Metric, RunTag

        now = int(time.time() * 1000)
        tags = {
            "state": about["state"],
            "error": about["error"],
            "nodes": ", ".join(about["nodes"]),
        }
        metrics = [
            Metric("best_" + key, value, now, 0)
            for key, value in (best or {}).items()
            if key != "model" and _number(value)
        ]
        self._client.log_batch(
            self.id,
            metrics=metrics,
            tags=[
                RunTag("hopmesh." + key, value[:_LONGEST]) for key, value in tags.items() if value
            ],
        )


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields what lies in nested dicts, and in lists of names with values, with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and value and all(_named(inner) for inner in value):
        for inner in value:
            yield (*path, inner["name"]), inner["value"]
    else:
        yield path, value


def _named(value: Any) -> bool:
    return isinstance(value, dict) and {"name", "value"} <= value.keys()


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(text: str) -> str:
    """Returns a name that MLflow takes."""
    return re.sub(r"[^\w\-./ ]", "_", text)
