"""Computes what an exported model says of a graph, in NumPy alone, and compares.

usage: forward.py MODEL.safetensors SHARDS PREDICTED.npy

Row i of PREDICTED is that of the vertex with the original id i. It prints the
largest difference, beside the largest number.
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors import safe_open


def read(path):
    with safe_open(path, "numpy") as f:
        return f.metadata(), {name: f.get_tensor(name) for name in f.keys()}


def graph(folder, how):
    rows, sources, targets, ids, first = [], [], [], [], 0
    for meta, s in (read(p) for p in sorted(Path(folder).glob("*.safetensors"))):
        n = len(s["indptr"]) - 1
        x = np.zeros((n, int(meta["features"])))
        if "features" in s:
            x[:] = s["features"]
        else:
            x[np.repeat(np.arange(n), np.diff(s["features.indptr"])), s["features.indices"]] = s["features.values"]
        rows.append(x)
        sources.append(s["indices"])
        targets.append(np.repeat(np.arange(first, first + n), np.diff(s["indptr"])))
        ids.append(s["original_ids"])
        first += n
    x = np.concatenate(rows)
    if how.startswith("binary"):
        x = (x != 0).astype(float)
    if how.endswith("row"):
        x /= np.maximum(np.abs(x).sum(1, keepdims=True), 1e-30)
    return x, np.concatenate(sources), np.concatenate(targets), np.concatenate(ids)


def looped(source, target, n):
    """Adds an edge to itself for each vertex that has none."""
    missing = np.setdiff1d(np.arange(n), source[source == target])
    return np.concatenate([source, missing]), np.concatenate([target, missing])


def total(values, target, n):
    """Sums values of edges by their target."""
    out = np.zeros((n,) + values.shape[1:])
    np.add.at(out, target, values)
    return out


def gcn(w, x, source, target, spec, last):
    degree = np.bincount(target, minlength=len(x)).astype(float)
    value = 1 / np.sqrt(degree[source] * degree[target])
    return total((x @ w["weight"])[source] * value[:, None], target, len(x))


def sage(w, x, source, target, spec, last):
    degree = np.maximum(np.bincount(target, minlength=len(x)), 1)
    heard = total((x @ w["weight"])[source], target, len(x)) / degree[:, None]
    return heard + x @ w["root.weight"]


def gat(w, x, source, target, spec, last):
    heads = spec["out_heads"] if last else spec["heads"]
    h = (x @ w["weight"]).reshape(len(x), heads, -1)
    left = (h * w["attention.source"].reshape(1, heads, -1)).sum(2)
    right = (h * w["attention.target"].reshape(1, heads, -1)).sum(2)
    score = left[source] + right[target]
    score = np.where(score > 0, score, 0.2 * score)
    largest = np.full((len(x), heads), -np.inf)
    np.maximum.at(largest, target, score)
    alpha = np.exp(score - largest[target])
    alpha /= total(alpha, target, len(x))[target]
    y = total(h[source] * alpha[:, :, None], target, len(x))
    return y.mean(1) if last else y.reshape(len(x), -1)


def norm(w, x):
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * w["norm.weight"] + w["norm.bias"]


def within(weights, prefix):
    return {name.removeprefix(prefix): t.astype(float) for name, t in weights.items() if name.startswith(prefix)}


def resgcn(weights, spec, x, source, target):
    encoder, head = within(weights, "encoder."), within(weights, "head.")
    x = x @ encoder["weight"] + encoder["bias"]
    for i in range(spec["layers"]):
        w = within(weights, f"layers.{i}.")
        seen = np.maximum(norm(w, x), 0) if i else x
        y = sage(w, seen, source, target, spec, False) + w["bias"]
        x = x + y if i else y
    return np.maximum(norm(head, x), 0) @ head["weight"] + head["bias"]


def forward(weights, spec, x, source, target):
    kind, linear = spec["model"], spec["head"] == "linear"
    if spec["self_loops"] == "on" or spec["self_loops"] == "auto" and kind in ("gcn", "gat"):
        source, target = looped(source, target, len(x))
    if kind == "resgcn":
        return resgcn(weights, spec, x, source, target)
    for i in range(spec["layers"]):
        w = within(weights, f"layers.{i}.")
        answers = i + 1 == spec["layers"] and not linear
        y = {"gcn": gcn, "sage": sage, "gat": gat}[kind](w, x, source, target, spec, answers)
        y = y + w.get("bias", 0)
        if "residual.weight" in w:
            y = y + x @ w["residual.weight"] + w["residual.bias"]
        if "norm.weight" in w:
            y = norm(w, y)
        if not answers:
            elu = kind == "gat" and not linear
            y = np.where(y > 0, y, np.expm1(np.minimum(y, 0)) if elu else 0)
        x = y
    return x @ weights["head.weight"] + weights["head.bias"] if linear else x


def main():
    meta, weights = read(sys.argv[1])
    x, source, target, ids = graph(sys.argv[2], meta["normalize_features"])
    want = forward(weights, json.loads(meta["model"]), x, source, target)
    got = np.load(sys.argv[3])
    if got.shape != want.shape or got.dtype != np.float32:
        sys.exit(f"predicted {got.shape} of {got.dtype}, where {want.shape} were expected")
    print(json.dumps({"difference": float(np.abs(got[ids] - want).max()), "largest": float(np.abs(want).max())}))


if __name__ == "__main__":
    main()
