"""Batches a second through the loader, beside the daemon's own training and other loaders.

    python bench.py [PAGE.md]

writes the table to a page too. It needs PyTorch and PyG; PyG's NeighborLoader is measured where
torch-sparse or pyg-lib is installed, and else DGL's loader, if that is.
"""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hopmesh

ROUNDS = int(os.environ.get("ROUNDS", "5"))
GRAPH: dict[str, Any] = {
    "kind": "rmat", "vertices": 200_000, "edges": 4_000_000, "features": 100, "classes": 16,
    "seed": 1,
}  # fmt: skip
FANOUT, BATCH = [15, 10], 1024

PROTOCOL = f"""\
One node on one machine, and one graph in all rows: R-MAT, {GRAPH["vertices"]:,} vertices, \
{GRAPH["edges"]:,} edges, {GRAPH["features"]} features. Batches have {BATCH} seed vertices and \
fan-outs {", ".join(map(str, FANOUT))}. {ROUNDS} rounds: in each, one epoch of every row, one \
after the other, in an order that turns by one from round to round. A round's ratio is of that \
round's two figures, and the page has the median of the rounds with the smallest and the largest. \
An untimed epoch goes before the first round.

- *Draws and gathers* is how many batches a second the daemon can prepare for its own training: \
batches over the seconds that its workers spent to sample and gather, as the job reports them. The \
loader's figure is from the same report of its own job, where the workers also write the batch to \
the shared memory.
- *Batches a second* is an epoch's batches over its wall time, of a loop that looks at one number \
of each batch and does nothing else.
- *Handing over* is what a batch takes beyond the daemon's own time for it. In each round the \
daemon prepares an epoch of batches for its own training, then the same batches for a loop, then \
those for itself once more: the ratio is to the mean of before and after. The loop computes twice \
as long between two batches as one takes to prepare, so that the next is ready when it asks: what \
it waits then is the handing over (the median of its batches). The time of its workers has what \
they write for it beside what the daemon's own model needs.
"""


def own(mesh: hopmesh.Mesh, batches: int, seed: int) -> float:
    """Returns the batches a second that the daemon's workers prepare for its own model."""
    job = mesh.train(
        "g", model="sage", layers=2, hidden=1, fanout=FANOUT, batch=BATCH, epochs=1, seed=seed,
        eval_every=1_000, strategy="single", normalize_features="none",
    )  # fmt: skip
    job.wait(progress=False)
    return prepared(job, batches)


def prepared(job: hopmesh.Job, batches: int) -> float:
    """Returns the batches a second that workers prepared in a job of one epoch."""
    phases = job.history[-1]["phases"]
    return batches / float(phases["sample"] + phases["gather"])


def through(mesh: hopmesh.Mesh, seed: int, between: float = 0.0) -> tuple[float, float, float]:
    """Returns the batches a second of a loop, those of the workers, and the wait for a batch."""
    loader = mesh.loader(
        "g", fanout=FANOUT, batch_size=BATCH, seed=seed, kind="numpy", normalize_features="none"
    )
    waits, count, begun = [], 0, time.perf_counter()
    batches = iter(loader)
    while True:
        asked = time.perf_counter()
        batch = next(batches, None)
        if batch is None:
            break
        waits.append(time.perf_counter() - asked)
        count += 1
        float(batch.x[0, 0])
        busy = time.perf_counter() + between
        while time.perf_counter() < busy:
            np.dot(_MATRIX, _MATRIX)
    seconds = time.perf_counter() - begun
    loader.job.wait(progress=False)
    return count / seconds, prepared(loader.job, count), statistics.median(waits)


def beside(mesh: hopmesh.Mesh, batches: int, seed: int) -> tuple[float, float]:
    """Returns what a loop waits for a batch that is prepared, and what its batches take with that.

    Both are fractions of the daemon's own time for the same batches, before and after the loop.
    """
    before = own(mesh, batches, seed)
    _, each, wait = through(mesh, seed, between=2 / before)
    alone = (1 / before + 1 / own(mesh, batches, seed)) / 2
    return wait / alone, (1 / each + wait) / alone


_MATRIX = np.ones((64, 64))


def another(graph: hopmesh.Graph) -> tuple[str, Callable[[], float]] | None:
    """Returns another loader's name, and what measures its batches a second."""
    import torch

    train = torch.from_numpy(np.flatnonzero(graph.train_mask))
    x, edges = torch.from_numpy(graph.x), torch.from_numpy(graph.edge_index)
    try:
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader

        data = Data(x=x, edge_index=edges, y=torch.from_numpy(graph.y))
        pyg = NeighborLoader(data, FANOUT, input_nodes=train, batch_size=BATCH, shuffle=True)
        next(iter(pyg))
        return "PyG's NeighborLoader", lambda: rate(pyg, lambda batch: batch.x)
    except ImportError:
        pass
    try:
        import dgl
    except ImportError:
        return None
    whole = dgl.graph((edges[0], edges[1]), num_nodes=len(x))
    sampler = dgl.dataloading.NeighborSampler(FANOUT[::-1])
    loader = dgl.dataloading.DataLoader(whole, train, sampler, batch_size=BATCH, shuffle=True)
    return "DGL's DataLoader", lambda: rate(loader, lambda batch: x[batch[0]])


def rate(loader: Any, rows: Callable[[Any], Any]) -> float:
    """Returns the batches a second of a loop over a loader."""
    count, begun = 0, time.perf_counter()
    for batch in loader:
        float(rows(batch)[0, 0])
        count += 1
    return count / (time.perf_counter() - begun)


def measure() -> list[tuple[str, list[float], str]]:
    """Returns the rows: what, its ratios by round, and the bar."""
    with hopmesh.up(nodes=1) as mesh:
        mesh.generate("g", **GRAPH)
        graph = mesh.load_dataset("g")
        batches = -(-int(graph.train_mask.sum()) // BATCH)
        other = another(graph)
        take: dict[str, Callable[[int], Any]] = {
            "own": lambda seed: own(mesh, batches, seed),
            "through": lambda seed: through(mesh, seed),
        }
        if other:
            take["other"] = lambda _: other[1]()
        for one in take.values():
            one(0)
        rows: dict[str, list[float]] = {
            name: [] for name in ("engine", "loop", "other", "wait", "whole")
        }
        names = list(take)
        for n in range(ROUNDS):
            got = {
                name: take[name](n + 1)
                for name in names[n % len(names) :] + names[: n % len(names)]
            }
            loop, workers, _ = got["through"]
            rows["engine"].append(workers / got["own"])
            rows["loop"].append(loop / got["own"])
            if other:
                rows["other"].append(loop / got["other"])
            for name, ratio in zip(("wait", "whole"), beside(mesh, batches, n + 1), strict=True):
                rows[name].append(ratio)
    name = other[0] if other else "PyG's NeighborLoader"
    return [
        ("the loader's workers, over the daemon's own: draws and gathers", rows["engine"], "0.8"),
        ("the loader's batches a second, over what the daemon draws and gathers with one worker",
         rows["loop"], "0.8"),
        (f"the loader's batches a second, over those of {name}", rows["other"], "2"),
        ("handing over: the wait for a batch that is prepared, over the daemon's own time for it",
         rows["wait"], "at most 0.05"),
        ("a batch's time with handing over, its workers' and the wait, over the daemon's own time",
         rows["whole"], "at most 1.05"),
    ]  # fmt: skip


def page(rows: list[tuple[str, list[float], str]]) -> str:
    """Returns the page."""
    lines = [
        "# Python", "", "| Printed by | `make bench-python` |", "|---|---|",
        f"| recorded | {datetime.date.today()} |",
        f"| machine | {os.cpu_count()} processors, {platform.machine()}, Python "
        f"{platform.python_version()} |",
        "", PROTOCOL, "| ratio | median | smallest and largest | bar |", "|---|---|---|---|",
    ]  # fmt: skip
    for what, ratios, bar in rows:
        if not ratios:
            lines.append(f"| {what} | not measured: neither it nor DGL is installed | | {bar} |")
            continue
        middle = statistics.median(ratios)
        number = float(bar.removeprefix("at most "))
        misses = middle > number if bar.startswith("at most") else middle < number
        said = f"{bar}{': **misses**' if misses else ''}"
        lines.append(f"| {what} | {middle:.3g} | {min(ratios):.3g} to {max(ratios):.3g} | {said} |")
    return "\n".join(lines) + "\n"


def main(path: str | None) -> None:
    made = page(measure())
    print(made, end="")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(made)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
