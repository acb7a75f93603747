"""Trains a model of a knowledge graph with PyTorch and PyG, as scripts/links does with hopmesh.

It reads what is asked as one JSON object from standard input, and prints one: the best epoch by the
filtered MRR of validation, and the filtered ranks of its test triples.
"""

import json
import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch_geometric.nn import RGCNConv


class Triples:
    """The triples of a folder, each part as rows of head, relation and tail."""

    def __init__(self, folder):
        entities, relations = {}, {}
        self.parts = {}
        for part in ("train", "valid", "test"):
            rows = []
            for line in (Path(folder) / f"{part}.txt").read_text().splitlines():
                head, relation, tail = line.split("\t")
                rows.append(
                    (
                        entities.setdefault(head, len(entities)),
                        relations.setdefault(relation, len(relations)),
                        entities.setdefault(tail, len(entities)),
                    )
                )
            self.parts[part] = torch.tensor(rows)
        self.entities, self.relations = len(entities), len(relations)
        self.known = torch.cat(list(self.parts.values()))
        self.keys = self.key(self.parts["train"]).sort().values

    def key(self, t):
        return (t[..., 0] * self.relations + t[..., 1]) * self.entities + t[..., 2]


class Model(torch.nn.Module):
    def __init__(self, g, asked):
        super().__init__()
        width = asked["width"]
        self.table = torch.nn.Parameter(torch.empty(g.entities, width))
        torch.nn.init.xavier_uniform_(self.table)
        self.bias = torch.nn.Parameter(torch.zeros(width))
        self.layers = torch.nn.ModuleList(RGCNConv(width, width, 2 * g.relations) for _ in range(asked["layers"]))
        self.diagonal = torch.nn.Parameter(torch.empty(g.relations, width))
        torch.nn.init.xavier_uniform_(self.diagonal)

    def forward(self, edges, kinds):
        x = self.table + self.bias
        for i, layer in enumerate(self.layers):
            x = layer(x, edges, kinds)
            if i + 1 < len(self.layers):
                x = F.relu(x)
        return x


def messages(g, triples):
    """The edges of triples and their reverses, which have relations of their own."""
    head, relation, tail = triples.T
    edges = torch.stack([torch.cat([head, tail]), torch.cat([tail, head])])
    return edges, torch.cat([relation, relation + g.relations])


def corrupt(g, triples, n, generator):
    """n negatives of each triple, with another head or tail, none of them a training triple."""
    no = triples.unsqueeze(1).repeat(1, n, 1)
    column = torch.where(torch.rand(no.shape[:2], generator=generator) < 0.5, 0, 2).unsqueeze(2)
    wrong = torch.ones(no.shape[:2], dtype=torch.bool)
    for _ in range(64):
        drawn = torch.randint(g.entities, no.shape[:2], generator=generator).unsqueeze(2)
        no = torch.where(wrong.unsqueeze(2), no.scatter(2, column, drawn), no)
        keys = g.key(no)
        at = torch.searchsorted(g.keys, keys).clamp(max=len(g.keys) - 1)
        wrong = g.keys[at] == keys
        if not wrong.any():
            break
    return no


@torch.no_grad()
def ranks(g, z, diagonal, part):
    """The filtered ranks of heads and tails among all entities. Ties share the mean of their ranks."""
    all_ranks = []
    for column in (2, 0):
        other = 2 - column
        triples = g.parts[part]
        scores = (z[triples[:, other]] * diagonal[triples[:, 1]]) @ z.T
        answers = triples[:, column]
        groups = {}
        for t in g.known.tolist():
            groups.setdefault((t[other], t[1]), set()).add(t[column])
        own = scores.gather(1, answers.unsqueeze(1))
        counts = torch.ones_like(scores, dtype=torch.bool)
        for i, t in enumerate(triples.tolist()):
            counts[i, list(groups[(t[other], t[1])])] = False
        above = ((scores > own) & counts).sum(1)
        beside = ((scores == own) & counts).sum(1)
        all_ranks.append(1 + above + beside / 2)
    return torch.cat(all_ranks)


def main():
    asked = json.load(sys.stdin)
    torch.manual_seed(asked["seed"])
    generator = torch.Generator().manual_seed(asked["seed"])
    g = Triples(asked["folder"])
    model = Model(g, asked)
    optimizer = torch.optim.Adam(model.parameters(), lr=asked["lr"])
    train = g.parts["train"]
    everything = messages(g, train)
    best, waited = {"val": -math.inf}, 0
    for epoch in range(1, asked["epochs"] + 1):
        model.train()
        order = torch.randperm(len(train), generator=generator)
        for batch in order.split(asked["batch"]):
            rest = torch.ones(len(train), dtype=torch.bool)
            rest[batch] = False
            z = model(*messages(g, train[rest]))
            yes = train[batch]
            all_of = torch.cat([yes.unsqueeze(1), corrupt(g, yes, asked["negatives"], generator)], 1)
            logits = (z[all_of[..., 0]] * model.diagonal[all_of[..., 1]] * z[all_of[..., 2]]).sum(2)
            if asked["loss"] == "bce":
                target = torch.zeros_like(logits)
                target[:, 0] = 1
                loss = F.binary_cross_entropy_with_logits(logits, target)
            else:
                loss = -logits.log_softmax(1)[:, 0].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % asked["every"] and epoch != asked["epochs"]:
            continue
        model.eval()
        with torch.no_grad():
            z = model(*everything)
        val = (1 / ranks(g, z, model.diagonal, "valid")).mean().item()
        waited += 1
        if val > best["val"]:
            test = ranks(g, z, model.diagonal, "test")
            best = {
                "epoch": epoch,
                "val": val,
                "mrr": (1 / test).mean().item(),
                "hits": [(test <= k).float().mean().item() for k in (1, 3, 10)],
            }
            waited = 0
        if waited >= asked["patience"]:
            break
    print(json.dumps(best))


if __name__ == "__main__":
    main()
