"""How the processes of a run find their job, and attach to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_daemon import FakeDaemon, loader

import hopmesh
from hopmesh import program, rendezvous
from hopmesh.client import Client
from hopmesh.mesh import Mesh

pytestmark = pytest.mark.quick


@pytest.fixture
def mesh(beside: Mesh) -> Mesh:
    return beside


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


def test_a_job_that_ends_before_its_script_attaches(
    daemon: FakeDaemon, mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = daemon.job("k", nodes=["n2"])
    daemon.attaches = [(409, "job j1 has ended")]
    real = Client.upgrade

    def late(self: Any, *given: Any) -> Any:
        job["state"] = "done"
        return real(self, *given)

    monkeypatch.setattr(Client, "upgrade", late)
    monkeypatch.setenv("HOPMESH_RUN", "k")
    with pytest.raises(hopmesh.Again, match="its other nodes have done it"):
        loader(mesh)


def test_the_job_of_a_run(daemon: FakeDaemon, mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPMESH_RUN", "k")
    made = loader(mesh)
    with pytest.raises(hopmesh.Error, match="job j1 is not done: finish its epochs"):
        loader(mesh)
    list(zip(made.epochs(), iter(lambda: list(made), None), strict=False))
    assert loader(mesh).job.id == "j2"  # the second loader of the script
    keys = [job["recipe"]["sharing"]["values"]["program.run"] for job in daemon.jobs]
    assert keys == ["k", "k--2"]
    # The same script, started again.
    again = hopmesh.connect(daemon.path)
    daemon.jobs[0]["state"] = "running"
    assert loader(again).job.id == "j1" and len(daemon.jobs) == 2
    for state, error, sentence in (
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
    with pytest.raises(hopmesh.Error, match="'k--2' is no key of a run: it ends in two dashes"):
        rendezvous.check_key("k--2")
    assert rendezvous.check_key("k-2") == "k-2"
    with pytest.raises(hopmesh.Error, match="'k/2' is no key of a run"):
        loader(hopmesh.connect(daemon.path))


def test_a_script_that_starts_again_in_its_second_loader(
    daemon: FakeDaemon, mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPMESH_RUN", "k")

    def script(mesh: Mesh) -> list[Any]:
        seen: list[Any] = []
        for _ in range(2):
            daemon.kept, daemon.kept_at = None, (1, 0)  # the next job has kept nothing
            made = loader(mesh)
            seen += [made.job.id, mesh.restore(), len(made), made.features]
            for epoch in made.epochs():
                for batch in made:
                    seen.append((epoch, batch.step))
                    if len(daemon.jobs) == 2:
                        raise KeyError
                mesh.checkpoint({"epoch": epoch})
        return seen

    with pytest.raises(KeyError):
        script(mesh)
    assert daemon.kept_at == (1, 0)  # the second job begins with what the first has come to
    daemon.jobs[0]["state"] = "done"
    del daemon.questions[:]
    mesh = hopmesh.connect(daemon.path)
    made = loader(mesh)
    assert (made.job.id, made.done, list(made.epochs())) == ("j1", True, [])
    assert mesh.restore() == {"epoch": 2} and mesh.all_reduce(1) == 1
    made = loader(mesh)
    assert made.job.id == "j2" and mesh.restore() == {"epoch": 2} and made.epoch == 1
    assert [q["type"] for q in daemon.questions] == ["hello", "room", "sum"]
    # Nothing is kept while the next job is not made.
    daemon.jobs[1]["state"] = "done"
    mesh = hopmesh.connect(daemon.path)
    assert [loader(mesh).done, loader(mesh).done] == [True, True] and mesh.restore() is None
    with pytest.raises(hopmesh.Error, match="job j2 is done: make the next loader first"):
        mesh.all_reduce(1)


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
