"""A model of PyG trained through the loader on three nodes, beside plain PyG on this machine.

    python accuracy.py CHECKOUT [PAGE.md]

writes the test accuracy at the best validation epoch of each, on the graphs that a checkout has,
to a page too. It needs PyTorch and PyG. SEEDS and ONLY=Cora,... in the environment select.
"""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import k_hop_subgraph

import hopmesh

BATCH = 64


class Model(torch.nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(features, 64), SAGEConv(64, classes)

    def forward(self, x: Any, edge_index: Any) -> Any:
        x = functional.dropout(x, 0.5, self.training)
        x = functional.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(x, edge_index)


def in_edges(edge_index: Any, n: int) -> Any:
    """Returns edges as a sparse matrix, which PyG sums over without a row for each edge."""
    sources, targets = edge_index
    ones = torch.ones(edge_index.shape[1])
    return torch.sparse_coo_tensor(torch.stack([targets, sources]), ones, (n, n)).to_sparse_csr()


def train(
    model: Model,
    graph: hopmesh.Graph,
    epochs: Iterator[Any],
    batches: Callable[[], Iterator[list[tuple[Any, Any, Any]]]],
    reduce: Callable[[Any], object],
    rate: float,
    evaluates: bool = True,
) -> float:
    """Returns the test accuracy of the best validation epoch, where this process evaluates.

    Each batch is a list of parts, whose losses are summed by their shares of the seed vertices.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=5e-4)
    x = torch.from_numpy(graph.x)
    edges = in_edges(torch.from_numpy(graph.edge_index), len(x))
    best = (0.0, 0.0)
    for _ in epochs:
        model.train()
        for parts in batches():
            optimizer.zero_grad()
            seeds = sum(len(y) for _, _, y in parts)
            for part, part_edges, y in parts:
                outputs = model(part, in_edges(part_edges, len(part)))
                loss: Any = functional.cross_entropy(outputs[: len(y)], y) * (len(y) / seeds)
                loss.backward()
            reduce(model)
            optimizer.step()
        if not evaluates:
            continue
        model.eval()
        with torch.no_grad():
            right = model(x, edges).argmax(1).numpy() == graph.y
        val = right[graph.val_mask].mean()
        if val > best[0]:  # of epochs alike, the first: the test vertices choose nothing
            best = (val, right[graph.test_mask].mean())
    return float(best[1])


def beside_a_node(seed: int, epochs: int, rate: float) -> None:
    mesh = hopmesh.connect()
    graph = mesh.load_dataset("g")
    settings: dict[str, Any] = {"batch_size": BATCH, "epochs": epochs, "normalize_features": "none"}
    loader = mesh.loader("g", layers=2, seed=seed, kind="torch", **settings)
    torch.manual_seed(seed)
    model = mesh.broadcast(Model(loader.features, loader.classes))
    torch.manual_seed(100 * seed + loader.rank)  # the ranks' dropout differs

    def batches() -> Iterator[list[tuple[Any, Any, Any]]]:
        for batch in loader:
            yield [(batch.x, batch.edge_index, batch.y)]

    first = loader.rank == 0  # all ranks have the same weights: one evaluates them
    reached = train(model, graph, loader.epochs(), batches, mesh.all_reduce, rate, first)
    if first:
        with open(os.environ["REACHED"], "a", encoding="ascii") as file:
            print(reached, file=file)


def plain(graph: hopmesh.Graph, seed: int, epochs: int, rate: float, parts: int) -> float:
    """Trains in this process, with each batch in so many parts as ranks have them."""
    x, edges = torch.from_numpy(graph.x), torch.from_numpy(graph.edge_index)
    y = torch.from_numpy(graph.y)
    roots: Any = torch.from_numpy(np.flatnonzero(graph.train_mask))
    torch.manual_seed(seed)
    model = Model(x.shape[1], int(y.max()) + 1)

    def part_of(chosen: Any) -> tuple[Any, Any, Any]:
        nodes, part, places, _ = k_hop_subgraph(chosen, 2, edges, relabel_nodes=True)
        order = torch.full((len(nodes),), True).index_fill(0, places, False).nonzero()[:, 0]
        order = torch.cat([places, order])  # the seed vertices first, as in the loader's
        where = torch.empty_like(order).index_copy(0, order, torch.arange(len(order)))
        return x[nodes[order]], where[part], y[chosen]

    def batches() -> Iterator[list[tuple[Any, Any, Any]]]:
        for chosen in roots[torch.randperm(len(roots))].split(BATCH):
            yield [part_of(some) for some in chosen.chunk(parts)]

    return train(model, graph, iter(range(epochs)), batches, lambda model: None, rate)


# Epochs and rates by the validation of plain PyG's first seed alone.
GRAPHS = {
    "Cora": ("engine/graph/cora/cora.npz", 40, 0.01),
    "Coauthor CS": ("engine/graph/read/testdata/coauthor_cs.npz", 20, 0.01),
    "Amazon Computers": ("engine/graph/read/testdata/amazon_computers.npz", 60, 0.001),
}
BAR = 1.0

PROTOCOL = f"""\
One model in all columns: two of PyG's SAGEConv, 64 wide, dropout 0.5, Adam with weight decay \
0.0005, batches of {BATCH} seed vertices with all of their neighbours, 40 epochs of Cora and 20 \
of Coauthor CS at a rate of 0.01, and 60 of Amazon Computers at 0.001. Cora has its public \
split. Of the others 20 vertices of each class are for training and 30 for validation, drawn \
once, and the rest for test, as in Shchur et al. (2018). Plain PyG trains in one process. The \
loader's model trains on three nodes, each with a process of its own, whose gradients are summed \
through the mesh. So three parts of a batch have dropout of their own each, where the batch of \
plain PyG has one for all: the column in parts has plain PyG with three parts of each batch, \
whose gradients are summed in one process. An accuracy is that of the test vertices at the first \
epoch with the best validation, evaluated on the whole graph. The page has mean and deviation \
over the seeds, which all columns share. The loader's mean may be {BAR:g} point apart from that \
of plain PyG in parts, which computes what it computes; beside plain PyG it is shown too.
"""


def few_of_each_class(graph: hopmesh.Graph) -> None:
    """Draws a split with 20 training and 30 validation vertices of each class."""
    order = np.random.default_rng(1).permutation(len(graph.y))
    for mask in (graph.train_mask, graph.val_mask, graph.test_mask):
        mask[:] = False
    for number in range(int(graph.y.max()) + 1):
        of = order[graph.y[order] == number]
        graph.train_mask[of[:20]] = True
        graph.val_mask[of[20:50]] = True
        graph.test_mask[of[50:]] = True


def compare(path: str, epochs: int, rate: float, seeds: int) -> tuple[Any, Any, Any]:
    """Returns the accuracies in percent, of plain PyG, in parts too, and of the loader's model."""
    with tempfile.TemporaryDirectory() as folder, hopmesh.up(nodes=3) as mesh:
        os.environ["REACHED"] = os.path.join(folder, "reached")
        mesh.import_("g", os.path.abspath(path))
        graph = mesh.load_dataset("g")
        if "cora" not in path:
            few_of_each_class(graph)
            mesh.dataset("g").remove()
            names = ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask")
            mesh.import_("g", **{name: getattr(graph, name) for name in names})
            graph = mesh.load_dataset("g")
        of = range(1, seeds + 1)
        alone = [[100 * plain(graph, seed, epochs, rate, parts) for seed in of] for parts in (1, 3)]
        for seed in range(1, seeds + 1):
            mesh.run(__file__, [str(seed), str(epochs), str(rate)])
        together = 100 * np.loadtxt(os.environ["REACHED"], ndmin=1)
        return np.array(alone[0]), np.array(alone[1]), together


def main(checkout: str, page: str | None) -> None:
    seeds = int(os.environ.get("SEEDS") or "5")
    chosen = [name for name in (os.environ.get("ONLY") or "").split(",") if name]
    lines = [
        "# Accuracy through the Python loader", "",
        "| Printed by | `make accuracy-python` |", "|---|---|",
        f"| recorded | {datetime.date.today()} |", "", PROTOCOL,
        "| graph | seeds | plain PyG, % | in parts, % | loader, 3 nodes, % | apart | bar |"
        " from plain PyG in one |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name in chosen or GRAPHS:
        path, epochs, rate = GRAPHS[name]
        alone, parts, together = compare(os.path.join(checkout, path), epochs, rate, seeds)
        apart, whole = together.mean() - parts.mean(), together.mean() - alone.mean()
        lines.append(
            f"| {name} | {seeds} | {alone.mean():.2f} ± {alone.std():.2f} | "
            f"{parts.mean():.2f} ± {parts.std():.2f} | "
            f"{together.mean():.2f} ± {together.std():.2f} | {apart:+.2f} | "
            f"{BAR:g} point{'' if abs(apart) <= BAR else ': **misses**'} | {whole:+.2f} |"
        )
        print(lines[-1], flush=True)
        if page:
            with open(page, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if os.environ.get("HOPMESH_RUN"):
        beside_a_node(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    else:
        main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
