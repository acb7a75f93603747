"""Vertices in batches, each once, on real daemons."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopmesh

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts", "evaluate.py")
TOWNS: dict[str, Any] = {
    "kind": "sbm", "vertices": 400, "edges": 3000, "features": 8, "classes": 4, "shards": 6,
    "seed": 3,
}  # fmt: skip


def test_each_vertex_once_on_any_number_of_nodes(tmp_path: Path) -> None:
    seen: dict[int, dict[str, Any]] = {}
    for nodes in (1, 2, 3):
        with hopmesh.up(nodes=nodes) as mesh:
            graph = mesh.generate("towns", **TOWNS).load()
            mesh.run(SCRIPT, [str(tmp_path)])
            assert [job.state for job in mesh.jobs.values()] == ["done", "done"]
        ranks = [json.loads((tmp_path / f"{nodes}-{rank}").read_text()) for rank in range(nodes)]
        assert nodes == 1 or all(len(rank["all"][1]) < 400 for rank in ranks)
        seen[nodes] = {name: sorted(sum((r[name][1] for r in ranks), [])) for name in ranks[0]}
        for name, rows in seen[nodes].items():
            assert {rank[name][0] for rank in ranks} == {len(rows)}
    one = seen[1]
    assert seen[2] == one and seen[3] == one
    ids = {name: [row[0] for row in rows] for name, rows in one.items()}
    val = np.flatnonzero(graph.val_mask).tolist()
    assert ids["val 1"] == ids["val 2"] == ids["middle 1"] == ids["middle 2"] == val != []
    assert one["val 1"] == one["middle 2"] == one["val 2"]  # whatever the batch
    assert ids["all"] == list(range(400)) and ids["ids"] == [5, 17, 399]
    # All neighbours are taken: the sums are those of the graph.
    sources, targets = graph.edge_index
    sums = np.zeros(400)
    np.add.at(sums, targets, graph.x[sources, 0].astype(float))
    rows = one["all"]
    assert np.allclose([row[3] for row in rows], sums) and np.abs(sums).max() > 0.1
    assert [row[2] for row in rows] == graph.y.tolist()


def test_in_a_notebook() -> None:
    with hopmesh.up(nodes=1) as mesh:
        n = np.arange(30)
        mesh.import_("ring", edge_index=np.stack([n, (n + 1) % 30]), x=np.eye(30), y=n % 3, 
                     train_mask=n < 10, val_mask=n > 20)  # fmt: skip
        every = mesh.loader("ring", split="all", layers=2, batch_size=7, shuffle=False, copy=True)
        batches = list(every)
        assert (len(every), every.count, len(batches)) == (5, 30, 5)
        assert sorted(int(i) for batch in batches for i in batch.ids) == list(range(30))
        for batch in batches:
            assert batch.num_sampled_nodes[0] == batch.batch_size == len(batch.y)
            assert np.array_equal(np.asarray(batch.x).argmax(1)[: len(batch.ids)], batch.ids)
        assert [b.n_id.tolist() for b in every] == [b.n_id.tolist() for b in batches]
        val = mesh.loader("ring", split="val", fanout=[2], normalize_features="none")
        assert val.count == 9 and (val.features, val.classes) == (30, 3)
        for given, sentence in (
            ({"ids": [3, 3]}, "some ids occur twice"),
            ({"ids": [3, 77]}, "1 of 2 ids are none of this dataset, such as 77"),
            ({"ids": ["a"]}, "the ids of this dataset are whole numbers"),
            ({"ids": []}, "give a list of ids"),
            ({"ids": [1], "split": "val"}, "give ids or split='val', and not both"),
            ({"split": "valid"}, "split is 'valid': give 'train', 'val', 'test', 'all'"),
            ({"split": "val", "shuffle": True}, "leave shuffle out"),
            ({"shuffle": False}, "give split='train' for each vertex once"),
            ({"split": "val", "batch_size": 0}, "batch_size is 0"),
        ):
            with pytest.raises(hopmesh.Error, match=sentence):
                mesh.loader("ring", **{"layers": 1, **given})
        training = mesh.loader("ring", fanout=[2], epochs=2, kind="numpy", batch_size=5)
        batch = next(iter(training))
        before = batch.x.copy()
        own = mesh.loader("ring", ids=[int(i) for i in n[::-1]], fanout=[], kind="numpy")
        assert [b.ids.tolist() for b in own] == [n[::-1].tolist()]
        assert np.array_equal(batch.x, before)  # the batch under way is as it was
        mesh.generate("towns", **TOWNS)
        with pytest.raises(hopmesh.Error, match="evaluate on towns after its epochs"):
            mesh.loader("towns", split="val", layers=1)
        training.close()


def test_ids_that_are_texts(tmp_path: Path) -> None:
    names = ["é", "b", "a long one", "d"]
    rows = [f"{a},{b}" for a, b in zip(names, names[1:] + names[:1], strict=True)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *rows]))
    rows = [f"{name},{i},{i % 2},train" for i, name in enumerate(names)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,f,label,split", *rows]))
    with hopmesh.up(nodes=1) as mesh:
        mesh.import_("named", tmp_path)
        settings: dict[str, Any] = {"fanout": [], "normalize_features": "none", "kind": "numpy"}
        (batch,) = mesh.loader("named", split="all", **settings)
        assert sorted(batch.ids) == sorted(names)
        assert [names[int(x)] for x in batch.x[:, 0]] == list(batch.ids)
        (batch,) = mesh.loader("named", ids=["d", "é"], **settings)
        assert batch.ids.tolist() == ["d", "é"] and batch.x[:, 0].tolist() == [3, 0]
