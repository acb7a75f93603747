"""A model of links scores pairs here as the daemon does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Arrays, write_library

import hopmesh
from hopmesh.decoder import Decoder

TRIPLES = {
    "train": [("ada", "likes", "bob"), ("bob", "knows", "eve"), ("eve", "likes", "kim")],
    "valid": [("eve", "likes", "ada")],
    "test": [("ada", "knows", "eve"), ("bob", "knows", "ada")],
}


def equal(want: Any, got: np.ndarray) -> None:
    assert got.dtype == np.float32 and np.std(want) > 0
    assert np.abs(want - got).max() <= 1e-5 * max(1, float(np.abs(want).max()))


@pytest.mark.parametrize("decoder", ["dot", "distmult", "mlp"])
def test_pairs(mesh: hopmesh.LocalMesh, ring: Arrays, decoder: str) -> None:
    made = mesh.import_("pairs", **ring)
    try:
        job = mesh.train(
            made, task="link", model="gcn", hidden=8, epochs=5, batch=20, link_decoder=decoder,
            link_width=7,
        ).wait(progress=False)  # fmt: skip
        graph, model = made.load(), job.model()
        rows = model.predict(graph.x, graph.edge_index)
        assert rows.shape == (60, 7)
        r = np.random.default_rng(5)
        pairs = r.integers(0, 60, (300, 2))
        want = job.score(graph.ids[pairs]).scores
        equal(want, model.score(rows, pairs))
        equal(want, hopmesh.Model(model.metadata, model.weights).score(rows, pairs.tolist()))
        assert model.score(rows, np.zeros((0, 2), np.int64)).shape == (0,)
        wrongs: list[tuple[Any, Any, Any, str]] = [
            (rows[:, 1:], pairs, None, r"have the shape \(60, 6\), and the model's have 7 columns"),
            (rows, pairs.T, None, "give a row of two whole numbers for each pair"),
            (rows, pairs / 2, None, "give a row of two whole numbers for each pair"),
            (rows, [[0, 60]], None, "beyond the 60 rows of embeddings"),
            (rows, [[-1, 0]], None, "beyond the 60 rows of embeddings"),
            (rows, pairs, 0, "links without relations: leave relation out"),
        ]
        for embeddings, of, relation, sentence in wrongs:
            with pytest.raises(hopmesh.Error, match=sentence):
                model.score(embeddings, of, relation)
        job.remove()
    finally:
        made.remove(force=True)


@pytest.mark.parametrize("decoder", ["dot", "distmult"])
@pytest.mark.parametrize("model", ["mlp", "rgcn"])
def test_triples(mesh: hopmesh.LocalMesh, tmp_path: Path, decoder: str, model: str) -> None:
    for part, triples in TRIPLES.items():
        (tmp_path / f"{part}.txt").write_text("\n".join("\t".join(t) for t in triples) + "\n")
    made = mesh.import_("kin", tmp_path)
    try:
        job = mesh.train(
            made, task="link", model=model, layers=1, epochs=5, batch=1, link_decoder=decoder,
            link_width=6,
        ).wait(progress=False)  # fmt: skip
        graph, found = made.load(), job.model()
        assert [r["name"] for r in made.about["relations"]] == ["knows", "likes"]
        rows = found.predict(graph.x, graph.edge_index, edge_type=graph.edge_type)
        n = np.arange(16)
        pairs, kinds = np.stack([n // 4, n % 4], axis=1), n % 2
        want = np.zeros(16, np.float32)
        for number, name in enumerate(["knows", "likes"]):
            here = kinds == number
            want[here] = job.score(graph.ids[pairs[here]], relation=name).scores
            equal(want[here], found.score(rows, pairs[here], number))
        equal(want, found.score(rows, pairs, kinds))
        if decoder == "distmult":
            assert not np.allclose(want, found.score(rows, pairs, 1 - kinds), atol=1e-3)
        with pytest.raises(hopmesh.Error, match="give relation, the number of the relation"):
            found.score(rows, pairs)
        for wrong in (2, -1, 0.5, kinds[:3]):
            with pytest.raises(hopmesh.Error, match="a number from 0 to 1, or one for each of 16"):
                found.score(rows, pairs, wrong)
        job.remove()
    finally:
        made.remove(force=True)


def test_a_relation_of_a_typed_graph(mesh: hopmesh.LocalMesh, tmp_path: Path) -> None:
    write_library(tmp_path)
    made = mesh.import_("typed-pairs", tmp_path, undirected=True)
    try:
        job = mesh.train(
            made, task="link", model="rgcn", hidden=8, epochs=3, batch=30, link_relation="writes",
            link_decoder="mlp",
        ).wait(progress=False)  # fmt: skip
        graph, model = made.load(), job.model()
        rows = model.predict(graph.x, graph.edge_index, edge_type=graph.edge_type)
        assert graph.ids[0] == "author/0" and len(graph.ids) == 85
        pairs = np.stack([np.arange(20), 25 + 3 * np.arange(20)], axis=1)
        equal(job.score(graph.ids[pairs]).scores, model.score(rows, pairs))
        job.remove()
    finally:
        made.remove(force=True)


def test_a_model_of_classes_scores_no_pairs(mesh: hopmesh.LocalMesh) -> None:
    model = mesh.train("cora", model="gcn", hidden=4, epochs=1).wait(progress=False).model()
    with pytest.raises(hopmesh.Error, match="the model has learnt no links"):
        model.score(np.zeros((3, 7)), [[0, 1]])


@pytest.mark.quick
def test_many_pairs_and_other_files() -> None:
    r = np.random.default_rng(2)
    rows, pairs = r.normal(size=(9, 3)), r.integers(0, 9, (40_000, 2))
    want = (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(1)
    # A file of an earlier program, which names no decoder.
    assert np.allclose(Decoder({}, {}).score(rows, pairs, None), want, atol=1e-6)
    training = json.dumps({"links": {"relations": 5}})
    weights = {"decoder.weight": r.normal(size=(5, 3))}
    kinds = r.integers(0, 5, 40_000)
    found = Decoder({"decoder": "distmult", "training": training}, weights)
    want = (rows[pairs[:, 0]] * rows[pairs[:, 1]] * weights["decoder.weight"][kinds]).sum(1)
    assert np.allclose(found.score(rows, pairs, kinds), want, atol=1e-6)
    with pytest.raises(hopmesh.Error, match="knows no decoder transe: it may need a newer"):
        Decoder({"decoder": "transe"}, {})
