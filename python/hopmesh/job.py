"""Training jobs, their epochs, and what their models predict."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hopmesh import parquet
from hopmesh.client import Client
from hopmesh.error import Error
from hopmesh.model import Model, load_model

if TYPE_CHECKING:
    from hopmesh.dataset import Dataset

# How the columns of scores are called where they are not those of classes.
_NO_CLASSES = ("label_", "value_", "embedding_")


@dataclass
class Predictions:
    """What a model says of every vertex. Row i of ``scores`` is that of ``ids[i]``.

    Scores are those before softmax or the logistic function; of a regression they are the
    predicted numbers. Of several labels or numbers there are neither names nor probabilities.
    Of embeddings, they are the input of the last layer, and there are none either. Predictions
    of links are embeddings.
    """

    ids: NDArray[Any]
    scores: NDArray[np.float32]
    names: NDArray[Any] | None = None
    """The name of the class with the largest score, or its number as text if it has none."""
    probabilities: NDArray[np.float32] | None = None
    """The probability of that class: by softmax, or the logistic function after loss bce."""
    columns: list[str] | None = None
    """The names of the columns of scores where they are not those of classes."""

    @property
    def classes(self) -> NDArray[np.int64]:
        """The class with the largest score of each vertex."""
        classes: NDArray[np.int64] = np.argmax(self.scores, axis=1)
        return classes

    def frame(self) -> Any:
        """Returns a pandas DataFrame with a row for each vertex.

        Its columns are id, class, each score by its number, class_name and probability. Of several
        labels, of numbers and of embeddings they are id and a column for each, such as
        ``label_0``, ``value_0`` or ``embedding_0``.
        """
        if self.columns is not None:
            wide = {name: self.scores[:, i] for i, name in enumerate(self.columns)}
            return _pandas().DataFrame({"id": self.ids, **wide})
        columns = {str(i): self.scores[:, i] for i in range(self.scores.shape[1])}
        frame = _pandas().DataFrame({"id": self.ids, "class": self.classes, **columns})
        if self.names is not None:
            frame["class_name"] = self.names
        if self.probabilities is not None:
            frame["probability"] = self.probabilities
        return frame


@dataclass
class Pairs:
    """Scores of pairs of vertices: ``scores[i]`` is that of ``sources[i]`` and ``targets[i]``.

    A score is the logit of an edge from the source to the target.
    """

    sources: NDArray[Any]
    targets: NDArray[Any]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.scores)

    def frame(self) -> Any:
        """Returns a pandas DataFrame with the columns source, target and score."""
        columns = {"source": self.sources, "target": self.targets, "score": self.scores}
        return _pandas().DataFrame(columns)


class Job:
    """A training job. Iterate over it to follow its epochs; what it does goes on without you."""

    def __init__(self, client: Client, id: str) -> None:
        self._client = client
        self.id = id

    def __repr__(self) -> str:
        about = self.show()
        return (
            f"<Job {self.id}: {about['model']} on {about['dataset']}, {about['state']}, "
            f"epoch {about['epoch']} of {about['epochs_total']}>"
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields each epoch once and in order, those that are over too, until the job ends.

        It raises an Error if the job fails.
        """
        last = 0
        end: dict[str, Any] | None = None
        for event in self._client.stream("GET", self._path("watch")):
            epoch, end = event.get("epoch"), event.get("end")
            due: list[dict[str, Any]] = [epoch] if epoch else end["history"] if end else []
            if epoch and epoch["epoch"] > last + 1:
                due = self.history  # it began before, or lines were lost
            for passed in due:
                if passed["epoch"] > last:
                    last = passed["epoch"]
                    yield passed
        if end and end["state"] == "failed":
            raise Error(f"job {self.id} failed: {end['error']}")

    def show(self) -> dict[str, Any]:
        """Returns all about the job, as ``hopmesh train show --json`` prints it."""
        about: dict[str, Any] = self._client.get(self._path())
        return about

    @property
    def state(self) -> str:
        """Is queued, running, done, failed or stopped."""
        state: str = self.show()["state"]
        return state

    @property
    def history(self) -> list[dict[str, Any]]:
        """The epochs so far; of a sweep, those of its best model."""
        history: list[dict[str, Any]] = self.show()["history"]
        return history

    @property
    def best(self) -> dict[str, Any] | None:
        """The epoch whose model is kept; None if nothing was evaluated yet."""
        best: dict[str, Any] | None = self.show()["best"]
        return best

    @property
    def weights(self) -> str:
        """The SHA-256 of the weights after the last epoch; "" if there is none."""
        history = self.history
        return str(history[-1]["weights_sha256"]) if history else ""

    def wait(self, progress: bool = True) -> Job:
        """Returns when the job has ended, and raises an Error if it failed.

        With ``progress`` it shows how far the job has come: as a bar if tqdm is there, else as
        some lines on standard error.
        """
        bar = _Bar(self.id, self.show()["epochs_total"]) if progress else None
        try:
            for epoch in self:
                if bar:
                    bar.tell(epoch)
        finally:
            if bar:
                bar.close()
        return self

    def stop(self) -> None:
        """Stops the job. One that has ended stays as it is."""
        self._client.post(self._path("stop"))

    def resume(self, lr: float | None = None) -> None:
        """Lets a job that failed or was stopped go on, with another learning rate if given."""
        self._client.post(self._path("resume"), {} if lr is None else {"lr": lr})

    def remove(self) -> None:
        """Removes a job that has ended, with its model."""
        self._client.delete(self._path())

    def export(self, path: str | os.PathLike[str], model_index: int | None = None) -> None:
        """Writes the model into a .safetensors file; ``model_index`` is that of a sweep's."""
        partial = os.fspath(path) + ".part"
        try:
            with open(partial, "wb") as file:
                self._client.fetch(self._path("export"), _indexed(model_index), file)
            os.replace(partial, path)
        except BaseException:
            if os.path.exists(partial):
                os.remove(partial)
            raise

    def model(self, model_index: int | None = None) -> Model:
        """Returns the model, to compute with it here."""
        with tempfile.TemporaryDirectory(prefix="hopmesh-model-") as folder:
            path = os.path.join(folder, "model.safetensors")
            self.export(path, model_index)
            return load_model(path)

    def predictions(
        self,
        embeddings: bool = False,
        model_index: int | None = None,
        dataset: str | Dataset | None = None,
    ) -> Predictions:
        """Returns what the model says of every vertex, under the ids of the source.

        ``dataset`` is another one with the same columns of features.
        """
        request: dict[str, Any] = {"format": ".parquet", **_indexed(model_index), **_on(dataset)}
        if embeddings:
            request["embeddings"] = True
        whole = io.BytesIO()
        self._client.fetch(self._path("predict"), request, whole)
        columns = parquet.read(whole.getvalue())
        ids = columns.pop("id")
        order = np.argsort(ids, kind="stable")
        columns.pop("class", None)  # that of the scores
        names, probabilities = columns.pop("class_name", None), columns.pop("probability", None)
        scores = np.stack(list(columns.values()), axis=1)
        wide = all(name.startswith(_NO_CLASSES) for name in columns)
        return Predictions(
            ids[order],
            scores[order],
            None if names is None else names[order],
            None if probabilities is None else probabilities[order],
            list(columns) if wide else None,
        )

    def evaluate(
        self,
        dataset: str | Dataset | None = None,
        split: int | None = None,
        model_index: int | None = None,
    ) -> dict[str, Any]:
        """Returns how well the model does, as ``hopmesh evaluate --json`` prints it.

        ``dataset`` is another one with the same columns of features and the same targets.
        """
        request = {**_on(dataset), **_indexed(model_index)}
        if split is not None:
            request["split"] = split
        evaluation: dict[str, Any] = {}
        for event in self._client.stream("POST", self._path("evaluate"), request):
            evaluation = event.get("end") or evaluation
        return evaluation

    def score(
        self, pairs: Any, model_index: int | None = None, relation: str | None = None
    ) -> Pairs:
        """Returns the scores of pairs of vertices, in their order, by a model of links.

        ``pairs`` is the path of a table with two columns of ids, which the daemon reads, or
        anything that numpy makes an array with two columns of: the ids of the source. Pairs in
        memory go through a temporary file, so the daemon must be on this machine then.
        ``relation`` is that of all pairs, from heads to tails, for a model of a knowledge graph.
        """
        with self._table(pairs, "source,target", 2) as path:
            return self._pairs({"pairs": path, **_related(relation)}, model_index)

    def top(
        self,
        k: int,
        vertices: Any = None,
        neighbours: bool = False,
        model_index: int | None = None,
        relation: str | None = None,
    ) -> Pairs:
        """Returns the ``k`` best partners of each vertex, the best first, by a model of links.

        They are found among all vertices that a vertex has no edge with yet or, with
        ``neighbours``, among all others. ``vertices`` are the ids of those whose partners are
        sought, or the path of a table of them that the daemon reads; without it, it is all. Where
        few are left, a vertex has fewer partners. For a model of a knowledge graph ``relation`` is
        that of all pairs: partners are tails, and those of known triples are left out.
        """
        request: dict[str, Any] = {"top": k, **_related(relation)}
        if neighbours:
            request["neighbours"] = True
        if vertices is None:
            return self._pairs(request, model_index)
        with self._table(vertices, "id", 1) as path:
            return self._pairs({**request, "vertices": path}, model_index)

    def _pairs(self, request: dict[str, Any], model_index: int | None) -> Pairs:
        whole = io.BytesIO()
        asked = {"format": ".parquet", **request, **_indexed(model_index)}
        self._client.fetch(self._path("predict"), asked, whole)
        columns = parquet.read(whole.getvalue())
        none = np.zeros(0, np.int64)
        found = [columns.get(name, none) for name in ("source", "target")]
        scores = columns.get("score", np.zeros(0, np.float32))
        return Pairs(found[0], found[1], scores)

    @contextlib.contextmanager
    def _table(self, ids: Any, names: str, columns: int) -> Iterator[str]:
        """Yields the path of a table of ids, which is written if they lie in memory."""
        if isinstance(ids, (str, os.PathLike)):
            text = os.fspath(ids)
            yield text if "://" in text else os.path.abspath(text)
            return
        rows = np.asarray(ids)
        if rows.ndim != columns or rows.size == 0 or columns == 2 and rows.shape[1] != 2:
            wanted = "pairs of ids, such as [[1, 2], [1, 3]]" if columns == 2 else "a list of ids"
            raise Error(f"the ids are an array of shape {rows.shape}: give {wanted}")
        if self._client.elsewhere:
            raise Error(
                "ids in memory go through a file that the daemon reads, so the daemon must be on "
                "this machine: write them there, and give the path"
            )
        with tempfile.TemporaryDirectory(prefix="hopmesh-ids-") as folder:
            path = os.path.join(folder, "ids.csv")
            with open(path, "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(names.split(","))
                writer.writerows(rows.reshape(len(rows), columns).tolist())
            yield path

    def frame(self) -> Any:
        """Returns the history as a pandas DataFrame with a row for each epoch."""
        return _pandas().json_normalize(self.history).set_index("epoch")

    def plot(self, ax: Any = None) -> Any:
        """Draws loss and scores over the epochs with matplotlib, and returns the axes.

        Scores are accuracies or, where the task has none, the metric that epochs are compared by.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise Error("matplotlib is not here: pip install matplotlib") from None
        if ax is None:
            _, ax = plt.subplots()
        history = self.history
        lines: dict[str, list[tuple[int, float]]] = {}
        for epoch in history:
            lines.setdefault("loss", []).append((epoch["epoch"], epoch["loss"]))
            for part, label in (("val", "validation"), ("test", "test")):
                if (found := _score(epoch, part)) is not None:
                    metric, score = found
                    lines.setdefault(f"{label} {metric}".rstrip(), []).append(
                        (epoch["epoch"], score)
                    )
        for label, points in lines.items():
            ax.plot(*zip(*points, strict=True), label=label)
        ax.set_xlabel("epoch")
        ax.legend()
        return ax

    def _path(self, verb: str = "") -> str:
        path = "/v1/jobs/" + urllib.parse.quote(self.id, safe="")
        return f"{path}/{verb}" if verb else path


class _Bar:
    """Shows how far a job has come."""

    def __init__(self, id: str, total: int) -> None:
        self._id, self._total, self._shown = id, total, 0
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._bar = None
        else:
            self._bar = tqdm(total=total, desc=id, unit="epoch")

    def tell(self, epoch: dict[str, Any]) -> None:
        now = epoch["epoch"]
        said = {"loss": f"{epoch['loss']:.4f}"}
        if (found := _score(epoch, "val")) is not None:
            metric, score = found
            said[metric or "validation"] = f"{score:.4g}" if metric else f"{score:.3f}"
        if self._bar is not None:
            self._bar.set_postfix(said, refresh=False)
            self._bar.update(now - self._bar.n)
        elif now >= self._total or now - self._shown >= max(self._total // 10, 1):
            self._shown = now
            numbers = ", ".join(f"{name} {number}" for name, number in said.items())
            print(f"{self._id}: epoch {now} of {self._total}, {numbers}", file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _score(epoch: dict[str, Any], part: str) -> tuple[str, float] | None:
    """Returns the metric of a part of the split that an epoch is judged by, and its name.

    The name of accuracy is "". None: nothing was evaluated.
    """
    if epoch[part + "_acc"] is not None:
        return "", epoch[part + "_acc"]
    metric = epoch.get("metric") or ""
    numbers = (epoch.get("metrics") or {}).get(part) or {}
    return (metric, numbers[metric]) if metric in numbers else None


def _related(relation: str | None) -> dict[str, str]:
    return {} if relation is None else {"relation": relation}


def _indexed(model_index: int | None) -> dict[str, Any]:
    return {} if model_index is None else {"model_index": model_index}


def _on(dataset: str | Dataset | None) -> dict[str, Any]:
    if dataset is None:
        return {}
    return {"dataset": dataset if isinstance(dataset, str) else dataset.name}


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise Error("pandas is not here: pip install pandas") from None
    return pandas
