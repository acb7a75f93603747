"""The part in a job that was done before this process began."""

from __future__ import annotations

from typing import Any

from hopmesh.client import Client
from hopmesh.dataset import Dataset
from hopmesh.program import Program


class Finished(Program):
    """Stands where a :class:`Program` would, and has nothing left to ask."""

    def __init__(self, client: Client, job: str) -> None:
        about = client.get("/v1/jobs/" + job)
        nodes = about.get("nodes") or []
        self.job, self.node = job, str(client.get("/v1/status")["node"])
        self.rank = nodes.index(self.node) if self.node in nodes else 0
        self.size = max(1, len(nodes))
        self.epochs = int(about["epochs_total"])
        self.epoch, self.step, self.steps = self.epochs + 1, 0, int(about.get("steps") or 0)
        dataset = Dataset(client, [], client.get("/v1/datasets/" + about["dataset"]))
        self.vertices, self.features = dataset.vertices, dataset.features
        self.targets = "" if dataset.task == "class" else dataset.task
        self.classes, self.layers = dataset.about.get("targets") or dataset.classes, 0
        self.relations = len(dataset.about.get("relations") or ())
        self.edge_features = int(dataset.about.get("edge_features") or 0)
        self.weighted = False
        self.state: bytes | None = None
        self.weight, self.begun = 1.0, False

    @property
    def open(self) -> bool:
        """False: nothing can be asked."""
        return False

    @property
    def interrupted(self) -> bool:
        """False: it is done."""
        return False

    def next(self) -> tuple[str, Any]:
        """Says that all is over."""
        return "done", None

    def close(self) -> None:
        """Does nothing."""
