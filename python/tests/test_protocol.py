"""A daemon that does all that the protocol allows, and more."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from conftest import until
from fake_daemon import LEAVE, FakeDaemon, Session, loader, packed

import hopmesh
from hopmesh.mesh import Mesh

pytestmark = pytest.mark.quick


@pytest.fixture
def mesh(beside: Mesh) -> Mesh:
    return beside


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


REGION = {"memory": 2 ^ 2, "offset": 512, "bytes": 72}
LATER = {"type": "batch", "epoch": 1, "step": 2, "roots": 0, "nodes": 0}


def announcing_another(session: Session, question: dict[str, Any]) -> None:
    session.batch(following=LATER)
    session.announced = True  # the next is of step 1


GARBAGE = {
    "too long": (message(b"\xff\xff\xff\x7f"), "a message has 2147483647 bytes"),
    "empty": (message(b"\0\0\0\0"), "a message has 0 bytes"),
    "no JSON": (message(b"", b"{"), "a message is no JSON"),
    "deep": (message(b"", b"[" * 100_000), "a message is no JSON"),
    "no object": (message(b"", b"[]"), "a message has no type"),
    "no type": (message(b"", b'{"type":1}'), "a message has no type"),
    "another type": (message(b"", b'{"type":"kept"}'), "'next' was answered by 'kept'"),
    "descriptor": (
        message(b"", b'{"type":"done"}', descriptors=1),
        "one file descriptor, and others none",
    ),
    "none": (
        message(b"", b'{"type":"memory","id":9,"bytes":1}'),
        "one file descriptor, and others none",
    ),
    "two": (
        message(b"", b'{"type":"memory","id":9,"bytes":1}', descriptors=2),
        "one file descriptor, and others none",
    ),
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
    "announced": (batch(following=[1]), "what it announced is no batch"),
    "ready": (batch(following={"type": "ready"}), "what it announced is no batch"),
    "another": (announcing_another, "a batch is another than was announced"),
    "not announced": (batch(following=LATER), "'next' was answered by 'batch'"),
    "order": (batch(fresh_first=1), "fresh_first is neither true nor false"),
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
    # A shell has what it runs in the background ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(iter(made))
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(hopmesh.Error, match="was interrupted: make another loader"):
        next(iter(made))
    # In a notebook the next loader is another job, and nothing waits for the first.
    assert loader(mesh).job.id == "j2" and daemon.jobs[0]["state"] == "stopped"
