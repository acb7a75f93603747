"""Trains an R-GCN on a typed graph with DGL, and says how long each step took.

It speaks as peers.py does. Each way to train is one of DGL's own, and all of them
compute the same model: a projection of each type, then layers of a mean for each
relation times a weight of it, plus a vertex' own row times another weight.

  edges     DGL's RelGraphConv on blocks without types, edges sorted by relation.
            It sums where the others average, which is less work.
  blocks    a mean over a block for each relation, cut from blocks without types
  hetero    HeteroGraphConv on blocks with types, from DGL's sampler for them
"""

import json
import math
import sys
import time
from pathlib import Path

import peers
import torch
import torch.nn.functional as F
from safetensors import safe_open

import dgl
from dgl.nn import GraphConv, HeteroGraphConv, RelGraphConv


class Graph(peers.Graph):
    """All shards of a typed graph, put together."""

    def __init__(self, folder):
        super().__init__(folder)
        relations, types = [], None
        for path in sorted(Path(folder).glob("*.safetensors")):
            with safe_open(path, "numpy") as f:
                types = json.loads(f.metadata()["types"])
                relations.append(torch.from_numpy(f.get_tensor("relations")))
        self.relation = torch.cat(relations).long()
        self.types, self.relations = types["vertices"], types["relations"]
        self.type = torch.zeros(self.vertices, dtype=torch.long)
        for i, t in enumerate(self.types):
            self.type[(self.x[:, t["first_feature"] : t["first_feature"] + t["features"]] != 0).any(1)] = i
        # The place of each vertex among those of its type, and the features of each type.
        self.place, self.rows = torch.empty(self.vertices, dtype=torch.long), []
        for i, t in enumerate(self.types):
            own = (self.type == i).nonzero().squeeze(1)
            self.place[own] = torch.arange(len(own))
            self.rows.append(None if t.get("bare") else self.x[own, t["first_feature"] : t["first_feature"] + t["features"]].contiguous())
        self.count = torch.bincount(self.type, minlength=len(self.types)).tolist()
        self.learnt = int(self.type[self.parts["train"][0]])

    def plain(self):
        whole = dgl.graph((self.source, self.target), num_nodes=self.vertices)
        return whole.formats(["csc"]), self.parts["train"]

    def hetero(self):
        edges = {}
        for i, r in enumerate(self.relations):
            own = self.relation == i
            edges[(r["source"], r["name"], r["target"])] = (self.place[self.source[own]], self.place[self.target[own]])
        nodes = {t["name"]: n for t, n in zip(self.types, self.count)}
        whole = dgl.heterograph(edges, num_nodes_dict=nodes)
        return whole.formats(["csc"]), {self.types[self.learnt]["name"]: self.place[self.parts["train"]]}


class Input(torch.nn.Module):
    """A projection of each type: of its features, or a row that all of a type have."""

    def __init__(self, graph, hidden):
        super().__init__()
        self.graph = graph
        self.maps = torch.nn.ModuleList(torch.nn.Linear(1 if x is None else x.shape[1], hidden) for x in graph.rows)

    def of(self, i, places):
        rows = self.graph.rows[i]
        if rows is None:
            return self.maps[i](torch.ones(1, 1)).expand(len(places), -1)
        return self.maps[i](rows[places])

    def forward(self, vertices):
        """The rows of vertices of all types, in one matrix."""
        types, places = self.graph.type[vertices], self.graph.place[vertices]
        h = torch.empty(len(vertices), self.maps[0].out_features)
        for i in range(len(self.maps)):
            own = (types == i).nonzero().squeeze(1)
            h = h.index_copy(0, own, self.of(i, places[own]))
        return h


class Plain(torch.nn.Module):
    """Layers on blocks without types."""

    def __init__(self, graph, case):
        super().__init__()
        hidden, relations = case["hidden"], len(graph.relations)
        widths = [hidden] * case["layers"] + [graph.classes]
        self.graph, self.relations, self.sums = graph, relations, case["who"] == "edges"
        self.input = Input(graph, hidden)
        pairs = list(zip(widths, widths[1:]))
        if self.sums:
            self.convs = torch.nn.ModuleList(RelGraphConv(i, o, relations) for i, o in pairs)
        else:
            self.own = torch.nn.ModuleList(torch.nn.Linear(i, o) for i, o in pairs)
            self.each = torch.nn.ModuleList(
                torch.nn.ModuleList(GraphConv(i, o, norm="right", bias=False, allow_zero_in_degree=True) for _ in range(relations)) for i, o in pairs)

    def layer(self, k, block, h):
        relation = self.graph.relation[block.edata[dgl.EID]]
        source, target = block.edges()
        order = torch.argsort(relation)
        size = {"num_src_nodes": block.num_src_nodes(), "num_dst_nodes": block.num_dst_nodes()}
        if self.sums:
            made = dgl.create_block((source[order], target[order]), **size)
            return self.convs[k](made, h, relation[order], presorted=True)
        y = self.own[k](h[: block.num_dst_nodes()])
        ends = torch.bincount(relation, minlength=self.relations).tolist()
        for i, own in enumerate(order.split(ends)):
            if len(own) > 0:
                y = y + self.each[k][i](dgl.create_block((source[own], target[own]), **size), h)
        return y

    def forward(self, inputs, blocks):
        h = self.input(inputs)
        for k, block in enumerate(blocks):
            h = self.layer(k, block, h)
            if k + 1 < len(blocks):
                h = F.relu(h)
        return h

    def labels(self, outputs):
        return self.graph.labels[outputs]


class Hetero(torch.nn.Module):
    """Layers on blocks with types."""

    def __init__(self, graph, case):
        super().__init__()
        hidden = case["hidden"]
        widths = [hidden] * case["layers"] + [graph.classes]
        self.graph, self.learnt = graph, graph.types[graph.learnt]["name"]
        self.input = Input(graph, hidden)
        pairs = list(zip(widths, widths[1:]))
        self.own = torch.nn.ModuleList(torch.nn.Linear(i, o) for i, o in pairs)
        self.convs = torch.nn.ModuleList(
            HeteroGraphConv({r["name"]: GraphConv(i, o, norm="right", bias=False, allow_zero_in_degree=True) for r in graph.relations}) for i, o in pairs)
        own = (graph.type == graph.learnt).nonzero().squeeze(1)
        self.classes = graph.labels[own]

    def forward(self, inputs, blocks):
        h = {t["name"]: self.input.of(i, inputs[t["name"]]) for i, t in enumerate(self.graph.types) if t["name"] in inputs}
        for k, block in enumerate(blocks):
            summed, last = self.convs[k](block, h), k + 1 == len(blocks)
            y = {}
            for name in [self.learnt] if last else block.dsttypes:
                n = block.num_dst_nodes(name)
                if n == 0:
                    continue
                y[name] = self.own[k](h[name][:n])
                if name in summed:
                    y[name] = y[name] + summed[name]
                if not last:
                    y[name] = F.relu(y[name])
            h = y
        return h[self.learnt]

    def labels(self, outputs):
        return self.classes[outputs[self.learnt]]


class Trainer(peers.Trainer):
    """One way to train, and how it goes on."""

    def __init__(self, graph, case):
        torch.manual_seed(case["seed"])
        self.graph, self.case, self.who = graph, case, case["who"]
        hetero = self.who == "hetero"
        self.model = (Hetero if hetero else Plain)(graph, case)
        self.optimizer = torch.optim.Adam(self.model.parameters(), case["lr"], weight_decay=case["weight_decay"])
        whole, seeds = graph.hetero() if hetero else graph.plain()
        sampler = dgl.dataloading.NeighborSampler(case["fanouts"][::-1])
        self.loader = dgl.dataloading.DataLoader(whole, seeds, sampler, batch_size=case["batch"], shuffle=True, num_workers=case["workers"])
        self.epoch(2, math.inf)  # the first steps of a process take longer

    def epoch(self, most, limit):
        """Trains the first steps of an epoch; returns seconds and steps."""
        self.model.train()
        steps, start = 0, time.perf_counter()
        for inputs, outputs, blocks in self.loader:
            self.update(F.cross_entropy(self.model(inputs, blocks), self.model.labels(outputs)))
            steps += 1
            if steps >= most or time.perf_counter() - start > limit:
                break
        return time.perf_counter() - start, steps


def main():
    torch.set_num_threads(int(sys.argv[1]))
    graph, trainers = None, {}
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            answer = {}
            if ask["do"] == "open":
                graph, trainers = Graph(ask["folder"]), {}
            elif ask["do"] == "build":
                trainers[ask["name"]] = Trainer(graph, ask["case"])
            else:
                done = trainers[ask["name"]].epochs(1, ask["steps"], ask["limit"])
                answer = {"seconds": [s for s, _ in done], "steps": [n for _, n in done]}
        except Exception as e:  # one way that can't do it must not end the others
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
