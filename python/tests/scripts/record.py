"""Writes down the vertices of each batch: record.py FOLDER DATASET DEAL."""

import json
import os
import sys

import hopmesh

folder, dataset, deal = sys.argv[1:]
mesh = hopmesh.connect()
loader = mesh.loader(
    dataset, fanout=[3, 3], batch_size=40, epochs=2, seed=3, deal=deal, kind="numpy"
)
with open(os.path.join(folder, f"{loader.size}-{loader.rank}"), "w", encoding="ascii") as file:
    for epoch in loader.epochs():
        for batch in loader:
            assert batch.edge_index.max(initial=0) < len(batch.n_id) == len(batch.x)
            roots = batch.n_id[: batch.batch_size].tolist() if batch.weight else []
            vertices = batch.n_id.tolist() if batch.weight else []
            first = batch.x[:, 0].tolist() if batch.weight else []
            line = {"at": [epoch, batch.step], "roots": roots, "vertices": vertices, "x": first}
            total = mesh.all_reduce(len(roots))
            assert mesh.all_reduce(1.0, op="mean") == 1
            print(json.dumps({**line, "total": total}), file=file)
        loader.report(loss=epoch / 2, train_acc=0.5, val_acc=epoch / 4)
