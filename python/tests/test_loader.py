"""A loader beside a daemon that does all that the protocol allows, and more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_daemon
import numpy as np
import pytest
from conftest import until
from fake_daemon import LEAVE, FakeDaemon, Session

import hopmesh
from hopmesh import packing, program, rendezvous
from hopmesh.client import Client
from hopmesh.mesh import Mesh


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[FakeDaemon]:
    with fake_daemon.serving(str(tmp_path)) as serving:
        yield serving


@pytest.fixture
def mesh(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    monkeypatch.delenv("HOPMESH_RUN", raising=False)
    return hopmesh.connect(daemon.path)


def loader(mesh: Mesh, **more: Any) -> hopmesh.Loader:
    made = mesh.loader("d", **{"fanout": [3, 2], "kind": "numpy", "epochs": 2, **more})
    assert isinstance(made, hopmesh.Loader)
    return made


def again(session: Session, question: dict[str, Any]) -> None:
    session.send("again", why="n3 is gone")


def test_the_course_of_a_job(mesh: Mesh, daemon: FakeDaemon) -> None:
    made = loader(mesh, batch_size=64, seed=5, deal="slices", settings={"topology": "sharded"})
    assert (made.rank, made.size, made.node, len(made)) == (0, 1, "n1", 3)
    assert (made.features, made.classes, made.vertices) == (3, 4, 100)
    assert mesh.restore() is None and made.job.id == "j1"
    seen = []
    for epoch in made.epochs():
        for batch in made:
            assert (batch.epoch, batch.batch_size, batch.weight) == (epoch, 2, 2)
            seen.append((epoch, batch.step, batch.x[0, 0]))
        made.report(loss=0.5, val_acc=np.float32(0.25), val_loss=float("nan"))
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


def test_a_batch(mesh: Mesh) -> None:
    batch = next(iter(loader(mesh)))
    assert isinstance(batch, hopmesh.Batch)
    assert batch.x.shape == (6, 3) and batch.x.dtype == np.float32
    assert batch.n_id.tolist() == [0, 7, 14, 21, 28, 35] and batch.y.tolist() == [1, -1]
    # The fake's edges count on, modulo 6. Of the second hop, two are of new targets.
    assert batch.edge_index.tolist() == [[0, 1, 2, 3, 1, 2], [3, 4, 5, 0, 4, 5]]
    assert (batch.num_sampled_nodes, batch.num_sampled_edges) == ([2, 3, 1], [4, 2])
    outer, inner = batch.adjs
    assert (outer.size, inner.size) == ((6, 5), (5, 2)) and outer.e_id is None
    assert outer.edge_index.tolist() == [[4, 5, 0, 1, 2], [1, 2, 3, 4, 5]]
    assert inner.edge_index.tolist() == [[0, 1, 2, 3], [3, 4, 5, 0]]


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


def test_sums(mesh: Mesh, daemon: FakeDaemon) -> None:
    with pytest.raises(hopmesh.Error, match="make its loader with mesh.loader first"):
        mesh.all_reduce(1)
    made = loader(mesh)
    daemon.others = ([10, 20], 6)
    a, b = np.array([1.0], np.float32), np.array([[2.0]], np.float32)
    assert mesh.all_reduce([a, b]) == [a, b] and (a[0], b[0, 0]) == (11, 22)
    assert daemon.asked("sum")[-1]["dtype"] == "f32"
    batches = iter(made)
    next(batches)
    # The batch counts 2, and the other rank's 6: what it has is weighted already.
    numbers = mesh.all_reduce(np.array([1.0, 2.0]), op="mean")
    assert numbers.tolist() == [1.5, 3.0] and daemon.asked("sum")[-1]["weight"] == 2
    assert daemon.summed[-1].tolist() == [2, 4]
    whole = mesh.all_reduce(np.array([1, 2]), weight=3)
    assert whole.tolist() == [11, 22] and daemon.asked("sum")[-1]["dtype"] == "f64"
    daemon.others = ([5], 1)
    assert mesh.all_reduce(3) == 8 and mesh.all_reduce(True) == 6
    list(batches)
    assert mesh.all_reduce(3, op="mean") == 4  # both count 1
    daemon.others = (None, 0)
    assert mesh.all_reduce(7, op="mean") == 7
    for value, sentence in (
        ("text", "a str can't be summed: give a model"),
        ([], "there is nothing to sum"),
        (np.zeros(1, complex), "numbers of type complex128 can't be summed"),
    ):
        with pytest.raises(hopmesh.Error, match=sentence):
            mesh.all_reduce(value)
    with pytest.raises(hopmesh.Error, match="op is 'max': give 'sum' or 'mean'"):
        mesh.all_reduce(1, op="max")
    with pytest.raises(hopmesh.Error, match="a weight of -1 can't be"):
        mesh.all_reduce(1, weight=-1)
    # One room is enough as long as nothing larger comes.
    assert [question["bytes"] for question in daemon.asked("room")] == [8, 16]


def test_broadcast(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.size = 2
    loader(mesh)
    own = np.array([1.5, np.nan])
    assert np.array_equal(mesh.broadcast(own), [1.5, np.nan], equal_nan=True)
    assert daemon.asked("sum")[-1]["region"] is not None
    daemon.others = ([4, 5], 1)
    assert mesh.broadcast(own, root=1).tolist() == [4, 5]
    assert daemon.asked("sum")[-1] == {"type": "sum", "dtype": "f64", "region": None, "weight": 0}
    with pytest.raises(hopmesh.Error, match="there is no rank 2: there are 2"):
        mesh.broadcast(own, root=2)


def empty(session: Session, question: dict[str, Any]) -> None:
    session.daemon.step += 1
    none = {"memory": 0, "offset": 0, "bytes": 0}
    session.send("batch", epoch=1, step=session.daemon.step, steps=3, roots=0, nodes=0,
                 hop_nodes=[0, 0, 0], hop_edges=[0, 0], n_id=none, x=none, edge_index=none,
                 y=none)  # fmt: skip


def test_a_step_without_seed_vertices(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.odd["next"] = [empty]
    daemon.others = ([6, 8], 4)
    batches = iter(loader(mesh))
    batch = next(batches)
    assert (batch.weight, batch.batch_size, batch.step) == (0, 2, 1)
    assert batch.x.shape == (2, 3) and batch.edge_index.max() == 1 and batch.y.shape == (2,)
    assert batch.edge_index.shape == (2, sum(batch.num_sampled_edges))
    assert [adj.size for adj in batch.adjs] == [(2, 2)] * 2
    # What such a rank has computed counts nothing, even if it is no number.
    numbers = mesh.all_reduce(np.full(2, np.nan, np.float32), op="mean")
    assert numbers.tolist() == [1.5, 2] and daemon.asked("sum")[-1]["region"] is None
    assert next(batches).weight == 2


def test_again_in_the_middle_of_a_sum(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.odd["sum"] = [None, again]
    made, seen = loader(mesh), []
    with pytest.raises(hopmesh.Again, match="goes on from its last checkpoint: n3 is gone"):
        for _ in made.epochs():
            for batch in made:
                seen.append(batch.step)
                mesh.all_reduce(1)
                mesh.checkpoint({"step": batch.step})
    assert seen == [1, 2]
    with pytest.raises(hopmesh.Error, match="make the loader again"):
        mesh.all_reduce(1)
    daemon.rank, daemon.size = 1, 2
    daemon.odd["hello"] = [again]  # and they change once more before they have met
    # It goes on with the same job, on the same connection.
    made = loader(mesh, copy=True)
    assert (made.job.id, made.rank, made.size) == ("j1", 1, 2) and len(daemon.jobs) == 1
    assert mesh.restore() == {"step": 1} == mesh.restore()
    left = [(batch.epoch, batch.step, batch.x) for _ in made.epochs() for batch in made]
    assert [(e, s) for e, s, _ in left] == [(1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert [x[0, 0] for _, _, x in left] == [12, 13, 21, 22, 23]
    with pytest.raises(hopmesh.Error, match="before the first batch"):
        mesh.restore()


def test_a_checkpoint_at_the_end_of_an_epoch(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.odd["report"] = [again]
    made = loader(mesh)
    with pytest.raises(hopmesh.Again):
        for _ in made.epochs():
            list(made)
            mesh.checkpoint([1, 2])
            made.report(loss=1)
    made = loader(mesh)
    assert mesh.restore() == [1, 2] and list(made.epochs()) == [2]


def test_a_job_with_nothing_left(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.kept_at = (3, 0)
    made = loader(mesh)
    assert made.done and list(made.epochs()) == []


def test_the_daemon_may_end_the_job(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.odd["next"] = [None, lambda session, question: session.send("done")]
    made = loader(mesh)
    assert [epoch for epoch in made.epochs() for _ in made] == [1] and made.done


def test_failed(mesh: Mesh, daemon: FakeDaemon) -> None:
    def failed(session: Session, question: dict[str, Any]) -> object:
        session.send("failed", error="n1 sums 3 numbers and n2 4")
        return LEAVE

    daemon.odd["sum"] = [failed]
    made = loader(mesh)
    for _ in range(2):
        with pytest.raises(hopmesh.Error, match="^n1 sums 3 numbers and n2 4$"):
            mesh.all_reduce(1)
    made.close()
    assert ("/v1/jobs/j1/stop", None) in daemon.requests


def test_the_daemon_goes_away(mesh: Mesh, daemon: FakeDaemon) -> None:
    def cut(session: Session, question: dict[str, Any]) -> object:
        session.raw(b"\x20\0\0")
        return LEAVE

    for odd in (cut, lambda session, question: LEAVE):
        daemon.odd["next"] = [odd]
        with pytest.raises(hopmesh.Error, match="the daemon at unix:.* went away"):
            list(loader(mesh))


def memory(**wrong: Any) -> Any:
    def odd(session: Session, question: dict[str, Any]) -> None:
        session.memory(4096, **wrong)
        session.send("last", epoch=1)

    return odd


def batch(**wrong: Any) -> Any:
    return lambda session, question: session.batch(**wrong)


def message(*data: bytes, descriptors: int = 0) -> Any:
    def odd(session: Session, question: dict[str, Any]) -> None:
        whole = data[0] if len(data) == 1 else len(data[1]).to_bytes(4, "little") + data[1]
        session.raw(whole, *[0] * descriptors)

    return odd


def packed(value: Any) -> bytes:
    made = packing.Packed(value)
    into = np.empty(made.size, np.uint8)
    made.write(into)
    return into.tobytes()


REGION = {"memory": 2 ^ 2, "offset": 512, "bytes": 72}
GARBAGE = {
    "too long": (message(b"\xff\xff\xff\x7f"), "a message has 2147483647 bytes"),
    "empty": (message(b"\0\0\0\0"), "a message has 0 bytes"),
    "no JSON": (message(b"", b"{"), "a message is no JSON"),
    "deep": (message(b"", b"[" * 100_000), "a message is no JSON"),
    "no object": (message(b"", b"[]"), "a message has no type"),
    "no type": (message(b"", b'{"type":1}'), "a message has no type"),
    "another type": (message(b"", b'{"type":"kept"}'), "'next' was answered by 'kept'"),
    "descriptor": (message(b"", b'{"type":"done"}', descriptors=1), "belongs to a message of"),
    "none": (message(b"", b'{"type":"memory","id":9,"bytes":1}'), "belongs to a message of"),
    "two": (message(b"", b'{"type":"memory","id":9,"bytes":1}', descriptors=2), "has one file"),
    "many": (message(b"", b'{"type":"memory"}', descriptors=40), "descriptors came at once"),
    "small": (memory(bytes=8192), "is smaller than announced"),
    "of nothing": (memory(bytes=0), "is smaller than announced"),
    "number": (memory(id="1"), "id is no whole number"),
    "negative": (memory(id=-1), "id is no whole number"),
    "reused": (memory(id=1 ^ 2), "the number of a shared memory was used before"),
    "drops": (memory(drops=7), "drops is no list"),
    "roots": (batch(roots=True), "roots is no whole number"),
    "hops": (batch(hop_nodes=[2, 4]), "hop_nodes is no list of 3 numbers"),
    "nodes": (batch(hop_nodes=[2, 3, 2]), "hop_nodes do not add up"),
    "seeds": (batch(hop_nodes=[3, 2, 1]), "hop_nodes do not add up"),
    "fresh": (batch(hop_fresh=[5, 2]), "more fresh edges than edges"),
    "edges": (batch(hop_edges=[4, 2.5]), "hop_edges is no whole number"),
    "sum": (batch(hop_edges=[4, 4]), r"an array of \(2, 8\) has 144 bytes"),
    "region": (batch(x=[1]), "a region is missing"),
    "outside": (batch(x={**REGION, "offset": 4032}), "outside of the shared memory"),
    "unaligned": (batch(x={**REGION, "offset": 8}), "outside of the shared memory"),
    "unknown": (batch(x={**REGION, "memory": 5}), "outside of the shared memory"),
    "vast": (
        batch(nodes=1 << 61, hop_nodes=[2, 0, (1 << 61) - 2], x={**REGION, "bytes": 1 << 61}),
        "has 2305843009213693952",
    ),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage(mesh: Mesh, daemon: FakeDaemon, name: str) -> None:
    odd, sentence = GARBAGE[name]
    daemon.odd["next"] = [odd]
    daemon.kept = packed([1])  # the state comes in the first memory
    descriptors = len(os.listdir("/proc/self/fd"))
    made = loader(mesh)
    with pytest.raises(hopmesh.Error, match=f"sent something wrong: .*{sentence}"):
        list(made)
    with pytest.raises(hopmesh.Error, match="sent something wrong"):
        mesh.all_reduce(1)
    until("all is closed", lambda: len(os.listdir("/proc/self/fd")) <= descriptors)


def test_answers_at_the_wrong_time(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.odd["next"] = [lambda session, question: session.send("end", epoch=1)]
    with pytest.raises(hopmesh.Error, match="the daemon sent 'end' where it was to send 'last'"):
        list(loader(mesh))
    daemon.odd["room"] = [
        lambda session, question: session.on_room({**question, "bytes": question["bytes"] - 1})
    ]
    loader(mesh)
    with pytest.raises(hopmesh.Error, match="the daemon gave 7 bytes of room and not 8"):
        mesh.all_reduce(1)


def test_a_wait_that_was_interrupted(mesh: Mesh, daemon: FakeDaemon) -> None:
    made = loader(mesh)
    daemon.odd["next"] = [lambda session, question: os.kill(os.getpid(), signal.SIGINT)]
    with pytest.raises(KeyboardInterrupt):
        next(iter(made))
    with pytest.raises(hopmesh.Error, match="was interrupted: make another loader"):
        next(iter(made))
    # In a notebook the next loader is another job, and nothing waits for the first.
    assert loader(mesh).job.id == "j2" and daemon.jobs[0]["state"] == "stopped"


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


def test_attaching(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.attaches = [(409, "another program is attached"), (101, "")]
    loader(mesh).close()
    daemon.attaches = [(404, "job j2 is not here")]
    with pytest.raises(hopmesh.Error, match="job j2 is not here"):
        loader(mesh)
    assert [job["state"] for job in daemon.jobs] == ["stopped", "stopped"]


def test_a_node_without_a_part(mesh: Mesh, daemon: FakeDaemon, monkeypatch: Any) -> None:
    monkeypatch.setattr(program, "_APART_SECONDS", 0.001)
    monkeypatch.setattr(program, "_LEFT_SECONDS", 0.001)
    monkeypatch.setenv("HOPMESH_RUN", "k")
    job = daemon.job("k", nodes=["n2"])
    daemon.attaches = [(409, "node n1 has no part in job j1")] * 3 + [(101, "")]
    loader(mesh).close()
    daemon.attaches = [(409, "node n1 has no part in job j1")] * 50
    # It ends well once the others have done the job.
    looks = iter(range(9))
    real = daemon._document

    def document(method: str, path: str, body: Any) -> Any:
        if path == "/v1/jobs/j1" and next(looks, None) is None:
            job["state"] = "done"
        return real(method, path, body)

    monkeypatch.setattr(daemon, "_document", document)
    with pytest.raises(hopmesh.Again, match="its other nodes have done it"):
        loader(hopmesh.connect(daemon.path))
    # Nor does one that comes later fail.
    with pytest.raises(hopmesh.Again, match="its other nodes have done it"):
        loader(hopmesh.connect(daemon.path))
    job["state"] = "running"
    job["nodes"] = ["n1"]
    with pytest.raises(hopmesh.Error, match="has no part in job j1"):
        looks = iter(range(99))
        loader(hopmesh.connect(daemon.path))


def test_a_mean_to_which_no_rank_brings_anything(mesh: Mesh, daemon: FakeDaemon) -> None:
    made = loader(mesh)
    daemon.others = np.zeros(0), 0
    values = np.ones(3, np.float32)
    mesh.all_reduce(values, op="mean", weight=0)
    assert values.tolist() == [0, 0, 0]
    made.close()


def test_the_job_of_a_run(daemon: FakeDaemon, mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPMESH_RUN", "k")
    made = loader(mesh)
    with pytest.raises(hopmesh.Error, match="job j1 is not done: finish its epochs"):
        loader(mesh)
    list(zip(made.epochs(), iter(lambda: list(made), None), strict=False))
    assert loader(mesh).job.id == "j2"  # the second loader of the script
    keys = [job["recipe"]["sharing"]["values"]["program.run"] for job in daemon.jobs]
    assert keys == ["k", "k-2"]
    # The same script, started again.
    again = hopmesh.connect(daemon.path)
    daemon.jobs[0]["state"] = "running"
    assert loader(again).job.id == "j1" and len(daemon.jobs) == 2
    for state, error, sentence in (
        ("done", "", "job j1 of this run is done$"),
        ("failed", "it was so", "job j1 of this run is failed: it was so"),
        ("stopped", "", "job j1 of this run is stopped$"),
    ):
        daemon.jobs[0] |= {"state": state, "error": error}
        with pytest.raises(hopmesh.Error, match=sentence):
            loader(hopmesh.connect(daemon.path))
    daemon.jobs[0] |= {"state": "queued", "dataset": "e"}
    with pytest.raises(hopmesh.Error, match="job j1 of this run is on e and not on d"):
        loader(hopmesh.connect(daemon.path))
    monkeypatch.setenv("HOPMESH_RUN", "k/2")
    with pytest.raises(hopmesh.Error, match="'k/2' is no key of a run"):
        loader(hopmesh.connect(daemon.path))


def test_another_node_makes_the_job(
    daemon: FakeDaemon, mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.members = [
        {"name": "n1", "id": "a2", "status": "alive"},
        {"name": "n2", "id": "a1", "status": "alive"},
    ]
    looks: Iterator[Callable[[], object]] = iter(
        [list, list, lambda: daemon.job("other"), lambda: daemon.job("k")]
    )
    daemon.looked = lambda: next(looks, list)()
    monkeypatch.setenv("HOPMESH_RUN", "k")
    assert loader(mesh).job.id == "j2" and daemon.requests == []
    monkeypatch.setattr(rendezvous, "_MEET_SECONDS", 0.2)
    monkeypatch.setenv("HOPMESH_RUN", "one")
    with pytest.raises(hopmesh.Error, match="of run one was made: start the script beside n2"):
        loader(hopmesh.connect(daemon.path))
    # The first node dies, which makes this one the first.
    daemon.members[1]["status"] = "failed"
    monkeypatch.setenv("HOPMESH_RUN", "late")
    assert loader(hopmesh.connect(daemon.path)).job.id == "j3"


def test_two_nodes_make_the_job(
    daemon: FakeDaemon, mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPMESH_RUN", "k")
    make = FakeDaemon._document

    def both(self: FakeDaemon, method: str, path: str, body: Any) -> Any:
        if (method, path) == ("POST", "/v1/jobs"):
            self.job("k")
        return make(self, method, path, body)

    monkeypatch.setattr(FakeDaemon, "_document", both)
    assert loader(mesh).job.id == "j1"
    assert [job["state"] for job in daemon.jobs] == ["running", "stopped"]


def test_checkpoints(mesh: Mesh, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    made = loader(mesh)
    state: dict[str, Any] = {
        "none": None, "numbers": [1, -2.5, True, float("inf"), 10**30], "text": "é",
        "pair": (np.float32(1.5), {7: b"\0\1"}), "empty": {}, "none of it": np.zeros((0, 3)),
        "array": np.arange(6, dtype=np.int16).reshape(2, 3), "scalar": np.array(2.5),
    }  # fmt: skip
    mesh.checkpoint({"small": 1})
    mesh.checkpoint(state)
    assert daemon.kept_at == (1, 0)
    made.close()
    made = loader(mesh)
    got = mesh.restore()
    assert list(got) == list(state) and got["array"].dtype == np.int16
    for name in ("array", "none of it", "scalar"):
        assert np.array_equal(got.pop(name), state.pop(name)), name
    assert got == {**state, "pair": (1.5, {7: b"\0\1"})}
    for value in (object(), {"a": {1, 2}}, np.array([object()])):
        with pytest.raises(hopmesh.Error, match="a checkpoint can't hold a "):
            mesh.checkpoint(value)
    monkeypatch.setattr(program, "MOST_KEPT", 100)
    with pytest.raises(hopmesh.Error, match="bytes, and 100 can be kept: keep less"):
        mesh.checkpoint(np.zeros(10))


def test_checkpoints_that_are_damaged() -> None:
    value = {"a": np.arange(40), "b": [1, (2, "x")]}
    whole = packed(value)
    assert packing.unpack(whole)["b"] == value["b"]
    rng = np.random.default_rng(1)
    for cut in range(0, len(whole) - 64, 7):
        with pytest.raises(hopmesh.Error, match="the kept state can't be read"):
            packing.unpack(whole[:cut])
    for _ in range(2000):
        wrong = bytearray(whole)
        for place in rng.integers(0, 200, 3):
            wrong[place] = rng.integers(0, 256)
        try:
            packing.unpack(bytes(wrong))
        except hopmesh.Error:
            pass


def test_again_ends_a_script_with_75(daemon: FakeDaemon) -> None:
    daemon.odd["next"] = [None, again]
    script = (
        "import hopmesh\nfor _ in hopmesh.connect().loader('d', fanout=[3, 2], kind='numpy'): pass"
    )
    run = {**os.environ, "HOPMESH_API": daemon.path, "HOPMESH_RUN": "k"}
    done = subprocess.run([sys.executable, "-c", script], env=run, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (75, b"")
    assert daemon.jobs[0]["state"] == "running"
