"""Evaluates beside the epochs and after them, and writes down what it saw: evaluate.py FOLDER."""

import json
import os
import sys

import numpy as np

import hopmesh

folder = sys.argv[1]
mesh = hopmesh.connect()
loader = mesh.loader("towns", fanout=[3], batch_size=40, epochs=2, seed=3, kind="numpy")
seen = {}


def note(name, made):
    assert (made.rank, made.size) == (loader.rank, loader.size)
    rows = []
    for batch in made:
        sources, targets = batch.edge_index
        sums = np.zeros(batch.batch_size)
        near = targets < batch.batch_size
        np.add.at(sums, targets[near], batch.x[sources[near], 0].astype(float))
        own = [batch.ids, batch.n_id[: batch.batch_size], batch.y, sums]
        rows += [list(row) for row in zip(*(a.tolist() for a in own), strict=True)]
    assert len(rows) == made.count
    total = mesh.all_reduce(len(rows))
    seen[name] = [total, rows]


for epoch in loader.epochs():
    for i, _ in enumerate(loader):
        if i == 0:
            middle = mesh.loader("towns", split="val", fanout=[4, 4], batch_size=7, kind="numpy")
            note(f"middle {epoch}", middle)
    note(f"val {epoch}", mesh.loader("towns", split="val", fanout=[4, 4], kind="numpy"))
note("all", mesh.loader("towns", split="all", layers=1, batch_size=64, kind="numpy"))
note("ids", mesh.loader("towns", ids=[5, 399, 17], layers=1, kind="numpy"))
with open(os.path.join(folder, f"{loader.size}-{loader.rank}"), "w", encoding="ascii") as file:
    json.dump(seen, file)
