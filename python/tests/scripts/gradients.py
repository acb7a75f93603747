"""Writes down the gradients of each step in float64: gradients.py FOLDER adjs|edge_index."""

import os
import sys

import numpy as np
import torch
from sage import Sage
from torch.nn import functional

import hopmesh

mesh = hopmesh.connect()
folder, form = sys.argv[1:]
hops = {"fanout": [3, 2]} if form == "adjs" else {"layers": 2}
loader = mesh.loader("towns", **hops, batch_size=50, epochs=2, seed=3, kind="torch")
torch.manual_seed(loader.rank)
model = mesh.broadcast(Sage(loader.features, 8, loader.classes, dropout=0).double())
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
steps, losses = [], []
for _ in loader.epochs():
    for batch in loader:
        out = model(batch.x.double(), getattr(batch, form))[: batch.batch_size]
        loss = functional.cross_entropy(out, batch.y)
        optimizer.zero_grad()
        loss.backward()
        mesh.all_reduce(model)
        losses.append(mesh.all_reduce(loss.item(), op="mean"))
        steps.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]).numpy())
        optimizer.step()
path = os.path.join(folder, f"{loader.size}-{loader.rank}.npz")
np.savez(path, steps=np.stack(steps), losses=np.array(losses))
