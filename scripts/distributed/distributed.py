"""Trains GraphSAGE by DistDGL or by DGL with DDP, for the Go program beside it.

    prepare SPEC                   turns hopmesh's shards into a DGL graph and its partitions
    distdgl ARGUMENTS              is one machine of DistDGL: a server and a trainer
    ddp ARGUMENTS                  is one rank that holds the whole graph
    score ARGUMENTS                prints the accuracy of a saved model over the whole graph

What it reports are lines that begin with "@ " and go on with one JSON object: "ready" once a
rank is set up, "epoch" after each epoch, "trained" after the last, "scored" with an accuracy.
"""

import argparse
import atexit
import json
import os
import subprocess
import sys
import time

os.environ["DGLBACKEND"] = "pytorch"

TRAIN, VAL, TEST = 1, 2, 3
NAME = "g"  # of the partitioned graph


def report(event, **fields):
    # The empty line ends whatever a library has printed without an end of its own.
    sys.stdout.write("\n@ " + json.dumps({"event": event} | fields) + "\n")
    sys.stdout.flush()


# The graph.


def prepare(spec):
    """Writes whole.pt, and a folder of partitions for each cut that is asked for."""
    import dgl
    import numpy as np
    import torch
    from safetensors import safe_open

    shards = []
    for path in spec["shards"]:
        with safe_open(path, "numpy") as f:
            shards.append({name: f.get_tensor(name) for name in f.keys()})
    degrees = np.concatenate([np.diff(s["indptr"]) for s in shards])
    source = torch.from_numpy(np.concatenate([s["indices"] for s in shards]).astype(np.int64))
    target = torch.from_numpy(np.repeat(np.arange(len(degrees)), degrees))
    x = torch.from_numpy(np.concatenate([s["features"] for s in shards]))
    y = torch.from_numpy(np.concatenate([s["labels"] for s in shards]).astype(np.int64))
    split = torch.from_numpy(np.concatenate([s["splits"][0] for s in shards]))
    ids = {name: (split == mark).nonzero().squeeze(1) for name, mark in (("train", TRAIN), ("val", VAL), ("test", TEST))}
    indptr = torch.from_numpy(np.concatenate([[0], np.cumsum(degrees)]))
    torch.save({"indptr": indptr, "indices": source, "x": x, "y": y} | ids, os.path.join(spec["out"], "whole.pt"))

    g = dgl.graph((source, target), num_nodes=len(degrees))
    g.ndata["features"], g.ndata["labels"], g.ndata["train_mask"] = x, y, split == TRAIN
    owners = np.repeat(np.array(spec["owners"]), [len(s["indptr"]) - 1 for s in shards])
    for cut in spec["cuts"]:
        by_metis = dgl.distributed.partition.metis_partition_assignment
        if cut == "own":
            # partition_graph takes no assignment from outside, so ours takes METIS's place.
            dgl.distributed.partition.metis_partition_assignment = lambda *_, **__: torch.from_numpy(owners)
        dgl.distributed.partition_graph(g, NAME, spec["parts"], os.path.join(spec["out"], cut), part_method="metis",
                                        balance_ntypes=g.ndata["train_mask"], balance_edges=True, num_hops=1)
        dgl.distributed.partition.metis_partition_assignment = by_metis
    report("prepared", vertices=len(degrees), edges=len(source), features=x.shape[1], train=len(ids["train"]))


def whole(path):
    import dgl
    import torch

    d = torch.load(path)
    return dgl.graph(("csc", (d["indptr"], d["indices"], torch.tensor([], dtype=torch.int64)))), d


# The model, which both train.


def sage(features, hidden, classes, layers):
    import dgl.nn.pytorch as layer
    import torch
    import torch.nn.functional as F

    class SAGE(torch.nn.Module):
        def __init__(self):
            super().__init__()
            widths = [features] + [hidden] * (layers - 1) + [classes]
            self.layers = torch.nn.ModuleList(layer.SAGEConv(i, o, "mean") for i, o in zip(widths, widths[1:]))
            for conv in self.layers:  # as hopmesh begins: DGL's own beginning learns later, and nobody's speed depends on it
                conv.fc_self.reset_parameters()
                conv.fc_neigh.reset_parameters()

        def forward(self, blocks, x):
            for i, (conv, block) in enumerate(zip(self.layers, blocks)):
                x = conv(block, x)
                if i + 1 < len(self.layers):
                    x = F.relu(x)
            return x

    return SAGE()


def train(a, loader, features, labels, width):
    """Trains this rank's part of all epochs. Batches of ranks differ in number by one at most."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(a.seed)
    bare = sage(width, a.hidden, a.classes, len(a.fanouts))
    model = torch.nn.parallel.DistributedDataParallel(bare)
    optimizer = torch.optim.Adam(model.parameters(), lr=a.rate)
    torch.distributed.barrier()
    report("ready")
    for epoch in range(a.epochs):
        torch.distributed.barrier()
        begin, steps, loss_sum = time.perf_counter(), 0, 0.0
        with model.join():
            for inputs, seeds, blocks in loader:
                loss = F.cross_entropy(model(blocks, features(inputs)), labels(seeds).long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                loss_sum += float(loss.detach())
                steps += 1
        torch.distributed.barrier()
        report("epoch", epoch=epoch + 1, seconds=time.perf_counter() - begin, steps=steps, loss=loss_sum / max(1, steps))
    if torch.distributed.get_rank() == 0:
        torch.save(bare.state_dict(), a.weights)
    report("trained")
    torch.distributed.barrier()  # nobody ends while another still reports


def loop(a, loader, features, labels):
    """Asks for this rank's batches of all epochs, and reads one number of each."""
    import torch

    torch.manual_seed(a.seed)
    torch.distributed.barrier()
    report("ready")
    for epoch in range(a.epochs):
        torch.distributed.barrier()
        begin = time.perf_counter()
        for inputs, seeds, _ in loader:
            x, _ = features(inputs), labels(seeds)
            float(x[0, 0])
        torch.distributed.barrier()
        report("epoch", epoch=epoch + 1, seconds=time.perf_counter() - begin)
    report("trained")
    torch.distributed.barrier()  # nobody ends while another still reports


def distdgl(a):
    if os.environ.get("DGL_ROLE") != "server":
        own = dict(os.environ, DGL_ROLE="server", DGL_SERVER_ID=os.environ["RANK"])
        server = subprocess.Popen([sys.executable] + sys.argv, env=own, stdout=sys.stderr)
        atexit.register(server.wait)  # after DGL's own exit, which tells servers to end
        os.environ.update(DGL_ROLE="client", DGL_GROUP_ID="0", DGL_DIST_MODE="distributed", LOCAL_RANK="0")
    import dgl
    import torch

    dgl.distributed.initialize(a.machines)  # a server stays in here until trainers have ended
    torch.distributed.init_process_group("gloo")
    g = dgl.distributed.DistGraph(NAME, part_config=a.graph)
    ids = dgl.distributed.node_split(g.ndata["train_mask"], g.get_partition_book(), force_even=True)
    sampler = dgl.dataloading.NeighborSampler(a.fanouts[::-1])
    loader = dgl.dataloading.DistNodeDataLoader(g, ids, sampler, batch_size=a.batch, shuffle=True, drop_last=False)
    x, y = g.ndata["features"], g.ndata["labels"]
    if a.loop:
        return loop(a, loader, lambda i: x[i], lambda i: y[i])
    train(a, loader, lambda i: x[i], lambda i: y[i], x.shape[1])


def ddp(a):
    import dgl
    import torch

    torch.distributed.init_process_group("gloo")
    g, d = whole(a.graph)
    ids = d["train"][torch.distributed.get_rank()::torch.distributed.get_world_size()]
    sampler = dgl.dataloading.NeighborSampler(a.fanouts[::-1])
    loader = dgl.dataloading.DataLoader(g, ids, sampler, batch_size=a.batch, shuffle=True, drop_last=False, num_workers=0)
    train(a, loader, lambda i: d["x"][i], lambda i: d["y"][i], d["x"].shape[1])


def score(a):
    import torch

    g, d = whole(a.graph)
    model = sage(d["x"].shape[1], a.hidden, a.classes, len(a.fanouts))
    model.load_state_dict(torch.load(a.weights))
    with torch.no_grad():
        says = model([g] * len(a.fanouts), d["x"]).argmax(1)
    report("scored", test=float((says[d["test"]] == d["y"][d["test"]]).float().mean()))


def main():
    what = {"distdgl": distdgl, "ddp": ddp, "score": score}
    if sys.argv[1] == "prepare":
        with open(sys.argv[2]) as f:
            prepare(json.load(f))
        return
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=sorted(what))
    p.add_argument("--graph", help="whole.pt, or the partitions' description for DistDGL")
    p.add_argument("--machines", help="DistDGL's file of addresses")
    p.add_argument("--weights", help="the file for the trained model")
    p.add_argument("--fanouts", type=lambda s: [int(n) for n in s.split(",")], help="from the seed vertices outwards")
    for name in ("hidden", "classes", "batch", "epochs", "seed"):
        p.add_argument("--" + name, type=int)
    p.add_argument("--rate", type=float)
    p.add_argument("--loop", action="store_true", help="only loop over batches")
    a = p.parse_args()
    what[a.what](a)


if __name__ == "__main__":
    main()
