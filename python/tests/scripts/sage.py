"""GraphSAGE in plain PyTorch on Cora: sage.py FOLDER EPOCHS PATIENCE."""

import os
import sys

import torch
from torch.nn import functional

import hopmesh


class Sage(torch.nn.Module):
    """Two layers; each takes a vertex, and the mean of its neighbours."""

    def __init__(self, features: int, hidden: int, classes: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.one = torch.nn.Linear(2 * features, hidden)
        self.two = torch.nn.Linear(2 * hidden, classes)
        self.dropout = dropout

    def forward(self, x: torch.Tensor, edges) -> torch.Tensor:
        """Takes the edges of all hops, or those of each."""
        whole = torch.is_tensor(edges)
        layers = [(edges, None, (len(x), len(x)))] * 2 if whole else edges
        for linear, (hop, _, size) in zip((self.one, self.two), layers, strict=True):
            x = functional.dropout(x, self.dropout, self.training)
            x = linear(self.both(x, hop)[: size[1]])
            x = torch.relu(x) if linear is self.one else x
        return x

    def both(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        total = torch.zeros_like(x).index_add_(0, target, x[source])
        count = x.new_zeros(len(x)).index_add_(0, target, x.new_ones(len(source)))
        return torch.cat([x, total / count.clamp(min=1)[:, None]], 1)


def main(folder: str, epochs: int, patience: int) -> None:
    torch.set_num_threads(1)
    mesh = hopmesh.connect()
    loader = mesh.loader(
        "cora", fanout=[10, 10], batch_size=64, epochs=epochs, seed=1, kind="torch"
    )
    graph = mesh.load_dataset("cora")
    x = functional.normalize(torch.from_numpy(graph.x), p=1)
    edges, y = torch.from_numpy(graph.edge_index), torch.from_numpy(graph.y)
    model = Sage(loader.features, 64, loader.classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    torch.manual_seed(1)
    mesh.broadcast(model)
    best, since = 0.0, 0
    if state := mesh.restore():
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        best, since = state["best"]
        print(f"goes on at epoch {loader.epoch} with {loader.size} nodes")
    for epoch in loader.epochs():
        model.train()
        losses = []
        for batch in loader:
            out = model(batch.x, batch.edge_index)[: batch.batch_size]
            loss = functional.cross_entropy(out, batch.y)
            optimizer.zero_grad()
            loss.backward()
            mesh.all_reduce(model)
            optimizer.step()
            losses.append(mesh.all_reduce(loss.item(), op="mean"))
        model.eval()
        with torch.no_grad():
            right = (model(x, edges).argmax(1) == y).numpy()
        accuracy = {
            f"{part}_acc": right[getattr(graph, part + "_mask")].mean() for part in ("val", "test")
        }
        # All ranks have the same model, but need not have the same bits of its outputs.
        val = mesh.all_reduce(float(accuracy["val_acc"]), op="mean")
        best, since = (val, 0) if val > best else (best, since + 1)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        mesh.checkpoint({**state, "best": (best, since)})
        loader.report(loss=sum(losses) / len(losses), **accuracy)
        with open(os.path.join(folder, loader.node), "w", encoding="ascii") as file:
            file.write(str(epoch))
        if patience and since >= patience:
            loader.stop()
    torch.save(model.state_dict(), os.path.join(folder, f"{loader.node}.pt"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
