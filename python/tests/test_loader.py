"""The course of a job through a loader, and its batches."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from fake_daemon import FakeDaemon, Session, empty, loader

import hopmesh
from hopmesh import batch as batches
from hopmesh import program
from hopmesh.client import Client
from hopmesh.mesh import Mesh

pytestmark = pytest.mark.quick


@pytest.fixture
def mesh(beside: Mesh) -> Mesh:
    return beside


@pytest.mark.parametrize("announces", [True, False])
def test_the_course_of_a_job(mesh: Mesh, daemon: FakeDaemon, announces: bool) -> None:
    daemon.announces = announces
    made = loader(mesh, batch_size=64, seed=5, deal="slices", settings={"topology": "sharded"})
    assert (made.rank, made.size, made.node, len(made)) == (0, 1, "n1", 3)
    assert (made.features, made.classes, made.vertices) == (3, 4, 100)
    assert mesh.restore() is None and made.job.id == "j1"
    seen = []
    for epoch in made.epochs():
        for batch in made:
            assert (batch.epoch, batch.batch_size, batch.weight) == (epoch, 2, 2)
            seen.append((epoch, batch.step, batch.x[0, 0]))
        made.report(
            loss=0.5, val_acc=np.float32(0.25), test_acc=float("nan"), val_loss=float("nan")
        )
    assert seen == [(e, s, 10 * e + s) for e in (1, 2) for s in (1, 2, 3)]
    assert made.done
    with pytest.raises(hopmesh.Error, match="all 2 epochs of job j1 are over"):
        next(iter(made))
    path, request = daemon.requests[0]
    key = {one["key"]: one["value"] for one in request.pop("set")}
    assert path == "/v1/jobs" and request == {
        "dataset": "d", "model": "program", "strategy": "program", "layers": 2,
        "fanout": [3, 2], "batch": 64, "epochs": 2, "seed": 5,
    }  # fmt: skip
    assert key.pop("program.run") and key == {"program.deal": "slices", "topology": "sharded"}
    report = {"type": "report", "loss": 0.5, "val_acc": 0.25, "val_loss": None}
    assert daemon.asked("report") == [{**report, "train_acc": None, "test_acc": None}] * 2
    kinds = [question["type"] for question in daemon.questions]
    assert kinds == ["hello", *(["next"] * 4 + ["report", "next"]) * 2, "next"]


@pytest.mark.parametrize("fresh_first", [True, False])
def test_a_batch(mesh: Mesh, daemon: FakeDaemon, fresh_first: bool) -> None:
    daemon.fresh_first = fresh_first
    batch = next(iter(loader(mesh)))
    assert daemon.asked("hello")[0]["fresh_first"]
    assert isinstance(batch, hopmesh.Batch)
    assert batch.x.shape == (6, 3) and batch.x.dtype == np.float32
    assert batch.n_id.tolist() == [0, 7, 14, 21, 28, 35] and batch.y.tolist() == [1, -1]
    # The fake's edges count on, modulo 6. Of the second hop, two are of new targets.
    assert batch.edge_index.tolist() == [[0, 1, 2, 3, 1, 2], [3, 4, 5, 0, 4, 5]]
    assert (batch.num_sampled_nodes, batch.num_sampled_edges) == ([2, 3, 1], [4, 2])
    outer, inner = batch.adjs
    assert (outer.size, inner.size) == ((6, 5), (5, 2)) and outer.e_id is None
    assert sorted(outer.edge_index.T.tolist()) == [[0, 3], [1, 4], [2, 5], [4, 1], [5, 2]]
    assert inner.edge_index.tolist() == [[0, 1, 2, 3], [3, 4, 5, 0]]
    if fresh_first:  # nothing was copied
        arrays = (batch.edge_index, outer.edge_index, inner.edge_index)
        assert not any(array.flags.owndata for array in arrays)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("fresh_first", [True, False])
def test_what_edges_have(mesh: Mesh, daemon: FakeDaemon, fresh_first: bool, copy: bool) -> None:
    daemon.along, daemon.fresh_first = True, fresh_first
    made = loader(mesh, copy=copy)
    assert daemon.asked("hello")[0]["edges"]
    assert (made.relations, made.edge_features) == (9, 2)
    batch = next(iter(made))
    # The number of each edge by hops, as its relation, and beside its ends.
    fresh, inner, outer = [0, 1, 2, 3, 7, 8], [0, 1, 2, 3], [4, 5, 6, 7, 8]
    assert batch.edge_type.dtype == np.int64 and batch.edge_type.tolist() == fresh
    assert batch.adj_edge_type is not None
    assert sorted(batch.adj_edge_type[0].tolist()) == outer
    assert batch.adj_edge_type[1].tolist() == inner
    lists = [batch.adj_edge_type, batch.adj_edge_weight, batch.adj_edge_attr]
    hops = [(batch.edge_index, batch.edge_type, batch.edge_weight, batch.edge_attr)]
    hops += [(adj.edge_index, *of) for adj, *of in zip(batch.adjs, *lists, strict=True)]
    for ends, kind, weight, attr in hops:
        assert (ends[0] == kind % 6).all() and (ends[1] == (kind + 3) % 6).all()
        assert weight.dtype == np.float32 and (weight == kind / 2).all()
        assert attr.dtype == np.float32 and attr.tolist() == [[n, -n] for n in kind.tolist()]
        assert attr.flags.c_contiguous
    if fresh_first and not copy:  # nothing was copied
        assert not any(of.flags.owndata for of in hops[0])


def test_edges_of_a_stand_in(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.along, daemon.odd["next"] = True, [empty]
    batch = next(iter(loader(mesh)))
    assert batch.weight == 0 and batch.edge_type.tolist() == [0, 0]
    assert batch.edge_weight.tolist() == [1, 1] and batch.edge_attr.shape == (2, 2)
    assert batch.adj_edge_type is not None and len(batch.adj_edge_type) == len(batch.adjs)


def test_edges_without_anything(mesh: Mesh) -> None:
    made = loader(mesh)
    batch = next(iter(made))
    assert (made.relations, made.edge_features) == (0, 0)
    names = ("edge_type", "edge_weight", "edge_attr")
    assert all(getattr(batch, name) is getattr(batch, f"adj_{name}") is None for name in names)


@pytest.mark.parametrize("targets", ["multilabel", "regression"])
def test_labels_in_columns(mesh: Mesh, daemon: FakeDaemon, targets: str) -> None:
    daemon.targets = targets
    made = loader(mesh)
    assert daemon.asked("hello")[0]["columns"]
    assert (made.task, made.classes) == (targets, 4)
    y = next(iter(made)).y
    assert y.dtype == np.float32 and y.shape == (2, 4)
    assert np.array_equal(y[0], [0, 1, 0.5, np.nan], equal_nan=True) and np.isnan(y[1]).all()


def test_targets_that_are_unknown(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.targets = "songs"
    with pytest.raises(hopmesh.Error, match="targets is no word that this package knows"):
        loader(mesh)


@pytest.mark.parametrize(
    "every, fresh",
    [([4, 9, 7, 30], [4, 5, 0, 11]), ([3, 3], [3, 3]), ([5, 6, 6], [5, 6, 1]), ([0, 0], [0, 0])],
)
def test_edges_of_hops(every: list[int], fresh: list[int]) -> None:
    in_order = np.stack([np.arange(sum(every)), np.repeat(np.arange(len(every)), every)])
    ends = np.cumsum(every)
    new = [i for end, n in zip(ends, fresh, strict=True) for i in range(end - n, end)]
    hops = list(zip(ends, every, fresh, strict=True))
    old = [i for end, n, k in hops[::-1] for i in range(end - n, end - k)]
    first, of_hops = batches._fresh_first(in_order[:, new + old], every, fresh)
    same, as_before = batches._in_order(in_order, every, fresh)
    assert first[0].tolist() == same[0].tolist() == new
    for one, other in zip(of_hops, as_before, strict=True):
        assert sorted(one[0]) == other[0].tolist() and set(one[1]) == set(other[1])


def test_a_batch_that_was_announced_is_not_waited_for(mesh: Mesh, daemon: FakeDaemon) -> None:
    got, in_time = threading.Event(), []

    def late(session: Session, question: dict[str, Any]) -> None:
        in_time.append(got.wait(5))
        session.on_next(question)

    daemon.announces, daemon.odd["next"] = True, [None, late]
    batches = iter(loader(mesh))
    assert [next(batches).x[0, 0], next(batches).x[0, 0]] == [11, 12]
    got.set()
    assert mesh.all_reduce(2.0) == 2 and in_time == [True]
    assert [batch.x[0, 0] for batch in batches] == [13]


def test_how_long_a_batch_lives(mesh: Mesh) -> None:
    batches = iter(loader(mesh))
    first = next(batches)
    next(batches)
    assert first.x[0, 0] == 12  # its memory has the second batch now
    batches = iter(loader(mesh, copy=True))
    first = next(batches)
    next(batches)
    assert first.x[0, 0] == 11


def test_memory_is_replaced(mesh: Mesh, daemon: FakeDaemon) -> None:
    def elsewhere(session: Session, question: dict[str, Any]) -> None:
        session.batches = session.memory(1 << 16, drops=[session.batches])
        daemon.step += 1
        session.batch()

    daemon.odd["next"] = [None, elsewhere]
    batches = iter(loader(mesh))
    first, second = next(batches), next(batches)
    assert first.x[0, 0] == 11 and second.x[0, 0] == 12  # what is held stays mapped
    with open("/proc/self/maps", encoding="ascii") as file:
        before = file.read().count("memfd:fake")
    del first
    with open("/proc/self/maps", encoding="ascii") as file:
        assert file.read().count("memfd:fake") == before - 1


def test_an_epoch_alone(mesh: Mesh, daemon: FakeDaemon) -> None:
    made = loader(mesh)
    for _ in range(2):
        assert [batch.step for batch in made] == [1, 2, 3]
    assert made.done and len(daemon.asked("next")) == 11


def test_an_epoch_that_is_left_early(mesh: Mesh) -> None:
    made, seen = loader(mesh), []
    for epoch in made.epochs():
        for batch in made:
            seen.append((epoch, batch.step))
            break
        with pytest.raises(hopmesh.Error, match="after the epoch's last batch"):
            made.report(loss=1)
    assert seen == [(1, 1), (2, 1)] and made.done


def test_stopping_early(mesh: Mesh, daemon: FakeDaemon) -> None:
    made = loader(mesh, epochs=2)
    with pytest.raises(hopmesh.Error, match="stop in the body of"):
        made.stop()
    for epoch in made.epochs():
        assert epoch == 1 and len(list(made)) == 3
        with pytest.raises(hopmesh.Error, match="epoch 1 has no more batches"):
            list(made)
        with pytest.raises(hopmesh.Error, match="val_acc is 55.0: give a fraction of 1"):
            made.report(val_acc=55)
        made.stop()
    assert made.done and [q["type"] for q in daemon.questions][-2:] == ["next", "stop"]


def test_a_job_with_nothing_left(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.kept_at = (3, 0)
    made = loader(mesh)
    assert made.done and list(made.epochs()) == []


def test_the_daemon_may_end_the_job(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.odd["next"] = [None, lambda session, question: session.send("done")]
    made = loader(mesh)
    assert [epoch for epoch in made.epochs() for _ in made] == [1] and made.done


def test_arguments(mesh: Mesh, daemon: FakeDaemon) -> None:
    for given, sentence in (
        ({"fanout": None}, "how many hops a batch has is missing"),
        ({"layers": 3}, "fanout has 2 hops and layers is 3"),
        ({"kind": "dgl"}, "a batch can't be of 'dgl'"),
    ):
        with pytest.raises(hopmesh.Error, match=sentence):
            loader(mesh, **given)
    daemon.members += [{"name": "n2", "id": "a2", "status": "alive"}]
    with pytest.raises(hopmesh.Error, match="this mesh has 2 nodes, and each needs a process"):
        loader(mesh)
    assert daemon.jobs == []
    with pytest.raises(hopmesh.Error, match="through shared memory, so the daemon must be on"):
        program.Program(Client("127.0.0.1:1"), "j1")
