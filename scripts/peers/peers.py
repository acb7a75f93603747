"""Trains what it is told to with PyG and DGL, and says how long each epoch took.

It reads one JSON object a line and answers each with one. "open" reads a graph
from shard files, "build" makes a model of a framework, "train" does some epochs,
or some steps of one, for so many seconds at most, and "score" tells the accuracy.
Times are of training alone.
"""

import json
import math
import os
import sys
import time
from pathlib import Path

os.environ["DGLBACKEND"] = "pytorch"

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open

TRAIN, VAL, TEST = 1, 2, 3


class Graph:
    """All shards of a graph, put together."""

    def __init__(self, folder):
        shards = [self._load(p) for p in sorted(Path(folder).glob("*.safetensors"))]
        degrees = np.concatenate([np.diff(s["indptr"]) for s in shards])
        self.vertices = len(degrees)
        self.source = torch.from_numpy(np.concatenate([s["indices"] for s in shards]).astype(np.int64))
        self.target = torch.from_numpy(np.repeat(np.arange(self.vertices), degrees))
        self.labels = torch.from_numpy(np.concatenate([s["labels"] for s in shards]).astype(np.int64))
        marks = torch.from_numpy(np.concatenate([s["splits"][0] for s in shards]))
        self.parts = {name: (marks == mark).nonzero().squeeze(1) for name, mark in (("train", TRAIN), ("val", VAL), ("test", TEST))}
        self.classes = int(self.labels.max()) + 1
        self.x = torch.from_numpy(np.concatenate([self._dense(s) for s in shards]))

    @staticmethod
    def _load(path):
        with safe_open(path, "numpy") as f:
            return {"columns": int(f.metadata()["features"])} | {name: f.get_tensor(name) for name in f.keys()}

    @staticmethod
    def _dense(s):
        if "features" in s:
            return s["features"]
        rows = np.diff(s["features.indptr"])
        x = np.zeros((len(rows), s["columns"]), np.float32)
        x[np.repeat(np.arange(len(rows)), rows), s["features.indices"]] = s["features.values"]
        return x

    def normalize(self):
        self.x /= self.x.abs().sum(1, keepdim=True).clamp(min=1e-12)


def widths_of(graph, case):
    return [graph.x.shape[1]] + [case["hidden"]] * (case["layers"] - 1) + [graph.classes]


class PyG(torch.nn.Module):
    """PyG's layers, over a list of edges or over a sparse matrix of torch."""

    def __init__(self, graph, case, sparse):
        super().__init__()
        from torch_geometric.nn import GCNConv, SAGEConv

        widths = widths_of(graph, case)
        make = (lambda i, o: GCNConv(i, o, cached=True)) if case["model"] == "gcn" else SAGEConv
        self.convs = torch.nn.ModuleList(make(i, o) for i, o in zip(widths, widths[1:]))
        self.dropout = case["dropout"]
        self.input_dropout = case["input_dropout"]
        self.edges = torch.stack([graph.source, graph.target])
        if sparse:
            from torch_geometric.nn.conv.gcn_conv import gcn_norm
            from torch_geometric.utils import to_torch_csr_tensor

            if case["model"] == "gcn":
                index, weight = gcn_norm(self.edges, None, graph.vertices)
                adjacent = to_torch_csr_tensor(index.flip(0), weight, size=(graph.vertices, graph.vertices))
                for conv in self.convs:
                    conv.normalize = False
            else:
                adjacent = to_torch_csr_tensor(self.edges.flip(0), size=(graph.vertices, graph.vertices))
            self.edges = adjacent

    def forward(self, x):
        x = F.dropout(x, self.input_dropout, self.training)
        for i, conv in enumerate(self.convs):
            x = conv(x, self.edges)
            if i + 1 < len(self.convs):
                x = F.dropout(F.relu(x), self.dropout, self.training)
        return x


class DGL(torch.nn.Module):
    """DGL's layers, over the whole graph or over sampled blocks."""

    def __init__(self, graph, case):
        super().__init__()
        import dgl
        from dgl.nn import GraphConv, SAGEConv

        widths = widths_of(graph, case)
        gcn = case["model"] == "gcn"
        make = (lambda i, o: GraphConv(i, o, norm="both")) if gcn else (lambda i, o: SAGEConv(i, o, "mean"))
        self.convs = torch.nn.ModuleList(make(i, o) for i, o in zip(widths, widths[1:]))
        self.dropout = case["dropout"]
        self.input_dropout = case["input_dropout"]
        whole = dgl.graph((graph.source, graph.target), num_nodes=graph.vertices)
        self.graph = dgl.add_self_loop(whole) if gcn else whole
        self.graph.create_formats_()

    def forward(self, x, blocks=None):
        x = F.dropout(x, self.input_dropout, self.training)
        for i, conv in enumerate(self.convs):
            x = conv(blocks[i] if blocks else self.graph, x)
            if i + 1 < len(self.convs):
                x = F.dropout(F.relu(x), self.dropout, self.training)
        return x


class Trainer:
    """One model of one framework, and how it goes on."""

    def __init__(self, graph, case):
        torch.manual_seed(case["seed"])
        self.graph, self.case, self.who = graph, case, case["who"]
        self.model = DGL(graph, case) if self.who == "dgl" else PyG(graph, case, self.who == "pyg-csr")
        self.optimizer = torch.optim.Adam(self.model.parameters(), case["lr"], weight_decay=case["weight_decay"])
        self.loader = self._loader() if case["fanouts"] else None
        if self.loader is not None:
            self.epoch(2, math.inf)  # the first steps of a process take longer

    def _loader(self):
        graph, case = self.graph, self.case
        if self.who == "dgl":
            import dgl

            sampler = dgl.dataloading.NeighborSampler(case["fanouts"][::-1])
            return dgl.dataloading.DataLoader(self.model.graph, graph.parts["train"], sampler, batch_size=case["batch"],
                                              shuffle=True, num_workers=case["workers"])
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader

        data = Data(x=graph.x, edge_index=self.model.edges, y=graph.labels)
        return NeighborLoader(data, case["fanouts"], graph.parts["train"], batch_size=case["batch"], shuffle=True)

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def epoch(self, most, limit):
        """Trains one epoch, or the first steps of one; returns seconds and steps."""
        self.model.train()
        graph = self.graph
        if self.loader is None:
            start = time.perf_counter()
            rows = graph.parts["train"]
            self.update(F.cross_entropy(self.model(graph.x)[rows], graph.labels[rows]))
            return time.perf_counter() - start, 1
        steps, start = 0, time.perf_counter()
        for batch in self.loader:
            if self.who == "dgl":
                inputs, outputs, blocks = batch
                self.update(F.cross_entropy(self.model(graph.x[inputs], blocks), graph.labels[outputs]))
            else:
                self.model.edges = batch.edge_index
                n = batch.batch_size
                self.update(F.cross_entropy(self.model(batch.x)[:n], batch.y[:n]))
            steps += 1
            if steps >= most or time.perf_counter() - start > limit:
                break
        return time.perf_counter() - start, steps

    def epochs(self, count, most, limit):
        """Trains this many epochs, fewer if they take longer than the limit."""
        done, start = [], time.perf_counter()
        while len(done) < count and (not done or time.perf_counter() - start < limit):
            done.append(self.epoch(most, limit))
        return done

    @torch.no_grad()
    def score(self):
        self.model.eval()
        if self.who != "dgl" and self.loader is not None:
            self.model.edges = torch.stack([self.graph.source, self.graph.target])
        said = self.model(self.graph.x).argmax(1)
        return {name: float((said[rows] == self.graph.labels[rows]).float().mean()) for name, rows in self.graph.parts.items()}


def main():
    torch.set_num_threads(int(sys.argv[1]))
    graph, trainers = None, {}
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            if ask["do"] == "open":
                graph, trainers = Graph(ask["folder"]), {}
                if ask["row"]:
                    graph.normalize()
                answer = {"vertices": graph.vertices, "edges": len(graph.source), "features": graph.x.shape[1], "classes": graph.classes}
            elif ask["do"] == "build":
                trainers[ask["case"]["who"]] = Trainer(graph, ask["case"])
                answer = {}
            elif ask["do"] == "train":
                done = trainers[ask["who"]].epochs(ask["epochs"], ask["steps"], ask["limit"])
                answer = {"seconds": [s for s, _ in done], "steps": [n for _, n in done]}
            else:
                answer = trainers[ask["who"]].score()
        except Exception as e:  # one framework that can't do it must not end the others
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
