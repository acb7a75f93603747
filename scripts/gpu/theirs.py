"""Times on PyTorch what measure times of ours, in the same words, on the same files.

    theirs.py [-tiny] products | train FOLDER | blocks FOLDER FILE

It wants torch and, for train and blocks, torch_geometric, of which it takes the layers
alone: its sampled loaders need libraries that are often missing. So train has a sampler
of torch's operations on the GPU, which draws with replacement where ours draws without:
the faster way. Figures are lines of name, value and unit with tabs between, after the
word figure. Without a GPU it computes on the processor, for tests.
"""

import json
import mmap
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

TYPES = {"I64": np.int64, "I32": np.int32, "U8": np.uint8, "F32": np.float32}
TRAIN = 1

WHOLE = {"targets": 139_000, "columns": 100, "hidden": 256, "batch": 1024, "fanouts": [15, 10, 5], "steps": 100, "rounds": 9, "each": 20}
LEAST = {"targets": 30, "columns": 20, "hidden": 8, "batch": 16, "fanouts": [3, 2, 2], "steps": 3, "rounds": 2, "each": 2}

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


def figure(name, value, unit=""):
    print(f"figure\t{name}\t{value:g}\t{unit}", flush=True)


def tensors(path):
    """What is in a safetensors file, by name, in a mapping of it."""
    with open(path, "rb") as f:
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(data[:8], "little")
    found = {}
    for name, t in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and t["dtype"] in TYPES:
            begin, end = t["data_offsets"]
            kind = np.dtype(TYPES[t["dtype"]])
            found[name] = np.frombuffer(data, kind, (end - begin) // kind.itemsize, 8 + size + begin).reshape(t["shape"])
    return found


def milliseconds(do, times):
    """How long do takes that often, by the GPU's events."""
    if not GPU:
        begun = time.perf_counter()
        for _ in range(times):
            do()
        return (time.perf_counter() - begun) * 1e3
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(times):
        do()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def median(do, size):
    do()
    return float(np.median([milliseconds(do, size["each"]) / size["each"] for _ in range(size["rounds"])]))


def products(size):
    n, into, out = size["targets"], 2 * size["columns"], size["hidden"]
    for name, a, b in (
        ("product forwards", (n, into), (into, out)),
        ("product of hidden rows", (n, out), (out, out)),
        ("product for weights", (n, into), (n, out)),
        ("product for inputs", (n, out), (out, out)),
    ):
        x, y = torch.rand(a, device=DEVICE) - 0.5, torch.rand(b, device=DEVICE) - 0.5
        if name.endswith("weights"):
            x = x.T
        if name.endswith("inputs"):
            y = y.T
        result = torch.mm(x, y)
        ms = median(lambda: torch.mm(x, y, out=result), size)
        figure(f"{name}, cuBLAS", 2 * x.shape[0] * x.shape[1] * y.shape[1] / ms / 1e9, "TFLOP/s")
    x = torch.rand(64 if size is LEAST else 1 << 28, device=DEVICE)
    y = torch.empty_like(x)
    figure("copy, PyTorch", 8 * len(x) / median(lambda: y.copy_(x), size) / 1e6, "GB/s")


class Graph:
    """All shards of a graph, on the device."""

    def __init__(self, folder, edges):
        shards = [tensors(p) for p in sorted(Path(folder).glob("*.safetensors"))]
        put = lambda name, kind: torch.cat([torch.from_numpy(s[name].astype(kind)).to(DEVICE) for s in shards])
        self.x, self.labels = put("features", np.float32), put("labels", np.int64)
        if edges:
            self.sources = put("indices", np.int32)
            degrees = torch.cat([torch.from_numpy(np.diff(s["indptr"])).to(DEVICE) for s in shards])
            self.indptr = F.pad(degrees.cumsum(0), (1, 0))
            marks = np.concatenate([s["splits"][0] for s in shards])
            self.training = torch.from_numpy((marks == TRAIN).nonzero()[0]).to(DEVICE)
        self.classes = int(self.labels.max()) + 1

    def draw(self, roots, fanouts):
        """Edges of each hop, the outermost first, with how many targets; and the inputs."""
        vertices, hops = roots, []
        for k in fanouts:
            first = self.indptr[vertices]
            degree = self.indptr[vertices + 1] - first
            drawn = degree.clamp(max=k)
            target = torch.repeat_interleave(torch.arange(len(vertices), device=DEVICE), drawn)
            place = torch.arange(len(target), device=DEVICE) - (drawn.cumsum(0) - drawn)[target]
            chance = (torch.rand(len(target), device=DEVICE) * degree[target]).long()
            place = torch.where(degree[target] > k, chance.minimum(degree[target] - 1), place)
            source = self.sources[first[target] + place].long()
            every = torch.cat([vertices, source])
            unique, number = torch.unique(every, return_inverse=True)
            # Targets keep their places as the first of the sources.
            order = torch.full((len(unique),), len(every), dtype=torch.long, device=DEVICE)
            order.scatter_reduce_(0, number, torch.arange(len(every), device=DEVICE), "amin")
            rank = order.argsort()
            place_of = torch.empty_like(rank)
            place_of[rank] = torch.arange(len(rank), device=DEVICE)
            hops.append((torch.stack([place_of[number[len(vertices) :]], target]), len(vertices)))
            vertices = unique[rank]
        return hops[::-1], vertices


class SAGE(torch.nn.Module):
    def __init__(self, columns, classes, size):
        super().__init__()
        from torch_geometric.nn import SAGEConv

        widths = [columns] + [size["hidden"]] * (len(size["fanouts"]) - 1) + [classes]
        self.layers = torch.nn.ModuleList(SAGEConv(i, o) for i, o in zip(widths, widths[1:]))

    def forward(self, x, hops):
        for i, (layer, (edges, targets)) in enumerate(zip(self.layers, hops)):
            x = layer((x, x[:targets]), edges)
            if i + 1 < len(self.layers):
                x = F.relu(x)
        return x


class Training:
    def __init__(self, graph, size):
        torch.manual_seed(1)
        self.graph, self.size = graph, size
        self.model = SAGE(graph.x.shape[1], graph.classes, size).to(DEVICE)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 0.003, fused=GPU)
        self.loss = torch.zeros(())

    def step(self, hops, inputs, labels):
        self.optimizer.zero_grad()
        self.loss = F.cross_entropy(self.model(self.graph.x[inputs], hops), labels)
        self.loss.backward()
        self.optimizer.step()


def train(size, folder):
    graph = Graph(folder, edges=True)
    training = Training(graph, size)

    order = graph.training[torch.randperm(len(graph.training), device=DEVICE)]
    batches = [b for b in order.split(size["batch"]) if len(b) == size["batch"]] or [order]
    done = 0

    def step():
        nonlocal done
        roots, done = batches[done % len(batches)], done + 1
        hops, inputs = graph.draw(roots, size["fanouts"])
        training.step(hops, inputs, graph.labels[roots])

    for _ in range(3):
        step()
    figure("training step, PyTorch", float(np.median([milliseconds(step, size["steps"]) / size["steps"] for _ in range(3)])), "ms")
    figure("training step, PyTorch, loss", training.loss.item())


def blocks(size, folder, file):
    graph, given = Graph(folder, edges=False), tensors(file)
    put = lambda x: torch.from_numpy(x.astype(np.int64)).to(DEVICE)
    batches, hops = [], len(size["fanouts"])
    for i in range(sum(name.endswith(".labels") for name in given)):
        drawn = []
        for b in range(hops):
            indptr = given[f"{i}.{b}.indptr"]
            targets = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
            drawn.append((torch.stack([put(given[f"{i}.{b}.indices"]), put(targets)]), len(indptr) - 1))
        batches.append((drawn, put(given[f"{i}.vertices"]), put(given[f"{i}.labels"])))
    training = Training(graph, size)

    def all_of_them():
        for drawn, inputs, labels in batches:
            training.step(drawn, inputs, labels)

    all_of_them()
    times = [milliseconds(all_of_them, 1) / len(batches) for _ in range(size["rounds"])]
    figure("step on given blocks, PyTorch", float(np.median(times)), "ms")
    figure("step on given blocks, PyTorch, loss", training.loss.item())


def main(words):
    size = WHOLE
    if words[:1] == ["-tiny"]:
        size, words = LEAST, words[1:]
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    {"products": products, "train": train, "blocks": blocks}[words[0]](size, *words[1:])


main(sys.argv[1:])
