"""Writes down what the edges of each batch have: edges.py FOLDER DATASET TOPOLOGY."""

import json
import os
import sys

import numpy as np

import hopmesh

folder, dataset, topology = sys.argv[1:]
mesh = hopmesh.connect()
loader = mesh.loader(
    dataset, fanout=[3, 3], batch_size=12, epochs=1, seed=3, kind="numpy",
    settings={"topology": topology},
)  # fmt: skip
has = loader.relations > 0, loader.edge_features


def rows(batch, ends, kind, weight, attr):
    """Returns a row for each edge: both ends, and what it has."""
    assert (kind is not None, attr is not None and attr.shape[1]) == has
    columns = [batch.n_id[ends[0]], batch.n_id[ends[1]]]
    columns += [of for of in (kind, weight) if of is not None]
    columns += [] if attr is None else list(attr.T)
    return {tuple(row) for row in np.stack(columns, axis=1).astype(float).tolist()}


def edges(batch):
    fresh = rows(batch, batch.edge_index, batch.edge_type, batch.edge_weight, batch.edge_attr)
    nothing = [None] * len(batch.adjs)
    lists = [batch.adj_edge_type, batch.adj_edge_weight, batch.adj_edge_attr]
    every = set()
    for adj, *of in zip(batch.adjs, *(known or nothing for known in lists), strict=True):
        every |= rows(batch, adj.edge_index, *of)
    assert fresh <= every
    return sorted(every)


with open(os.path.join(folder, f"{loader.size}-{loader.rank}"), "w", encoding="ascii") as file:
    for _ in loader.epochs():
        for batch in loader:
            print(json.dumps(edges(batch) if batch.weight else []), file=file)
        for batch in mesh.loader(dataset, split="test", fanout=[0, 2], batch_size=9, kind="numpy"):
            print(json.dumps({"drawn": edges(batch)}), file=file)
