"""Loops over the batches of hopmesh's loader beside one node, for the Go program beside it.

Its reports are those of distributed.py.
"""

import argparse
import json
import sys
import time

import hopmesh


def report(event, **fields):
    sys.stdout.write("@ " + json.dumps({"event": event} | fields) + "\n")
    sys.stdout.flush()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dataset")
    p.add_argument("--fanouts", type=lambda s: [int(n) for n in s.split(",")])
    for name in ("batch", "epochs", "seed"):
        p.add_argument("--" + name, type=int)
    a = p.parse_args()
    mesh = hopmesh.connect()
    loader = mesh.loader(a.dataset, fanout=a.fanouts, batch_size=a.batch, epochs=a.epochs, seed=a.seed, kind="torch", normalize_features="none")
    report("ready")
    begin, last = time.perf_counter(), 0
    # All nodes have agreed that an epoch is over when the next one begins.
    for epoch in loader.epochs():
        if last:
            report("epoch", epoch=last, seconds=time.perf_counter() - begin)
        begin, last = time.perf_counter(), epoch
        for batch in loader:
            float(batch.x[0, 0]) if len(batch.x) else None
    report("epoch", epoch=last, seconds=time.perf_counter() - begin)
    report("trained")


main()
