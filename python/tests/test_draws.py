"""Batches beside the steps of a job, from a daemon that says what a test wants it to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_daemon import FakeDaemon, Session, again, loader

import hopmesh
from hopmesh import program
from hopmesh.mesh import Mesh

pytestmark = pytest.mark.quick


@pytest.fixture
def mesh(beside: Mesh) -> Mesh:
    return beside


def evaluation(mesh: Mesh, **more: Any) -> hopmesh.EvalLoader:
    made = mesh.loader("d", **{"split": "val", "fanout": [3, 2], "kind": "numpy", **more})
    assert isinstance(made, hopmesh.EvalLoader)
    return made


def test_the_course_of_an_evaluation(mesh: Mesh, daemon: FakeDaemon) -> None:
    made = evaluation(mesh, batch_size=2)
    assert [batch.ids.tolist() for batch in made] == [["a", ""], ["bc"]]
    asked = daemon.asked("draw")
    assert [(q["fanout"], q["number"], q["region"]["bytes"]) for q in asked] == [
        ([3, 2], 0, 16), ([3, 2], 0, 8)
    ]  # fmt: skip
    assert daemon.asked("own") == [{"type": "own", "part": "val"}]
    # It has a job of its own, which the next one goes on with.
    evaluation(mesh, split="test")
    assert len(daemon.jobs) == 1 and mesh.all_reduce(3) == 3
    evaluation(mesh, normalize_features="row")
    assert [job["state"] for job in daemon.jobs] == ["stopped", "running"]
    training = loader(mesh)
    assert [job["state"] for job in daemon.jobs] == ["stopped", "stopped", "running"]
    # Beside the steps of a job, it is that job's.
    next(iter(training))
    assert len(list(evaluation(mesh))) == 1 and len(daemon.jobs) == 3
    training.close()


def test_in_a_run(mesh: Mesh, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPMESH_RUN", "k")
    list(evaluation(mesh))
    loader(mesh)
    # All ranks have ended the first job together.
    kinds = [question["type"] for question in daemon.questions]
    assert kinds == ["hello", "own", "room", "draw", "stop", "hello"]
    keys = [job["recipe"]["sharing"]["values"]["program.run"] for job in daemon.jobs]
    assert keys == ["k", "k--2"] and daemon.jobs[0]["state"] == "running"


def test_evaluating_again_after_a_restart(
    mesh: Mesh, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPMESH_RUN", "k-7")
    for key in ("k-7", "k-7-1000001", "k-7-2000001"):
        made = hopmesh.connect(daemon.path)
        list(evaluation(made))
        assert daemon.jobs[-1]["recipe"]["sharing"]["values"]["program.run"] == key
        made._part._put_aside()
        daemon.jobs[-1]["state"] = "done"


def test_again(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.odd["draw"] = [again]
    with pytest.raises(hopmesh.Again):
        list(evaluation(mesh))


def test_wrong_answers(mesh: Mesh, daemon: FakeDaemon) -> None:
    def drawn(**wrong: Any) -> Any:
        return lambda session, question: session.drawn(question, **wrong)

    def owned(wrong: dict[str, Any]) -> Any:
        return lambda session, question: session.owned(**wrong)

    def others(session: Session, question: dict[str, Any]) -> None:
        session.view(question["region"], "<i8")[:] += 1
        session.drawn(question)

    for odd, sentence in (
        (others, "a batch is of other vertices than it was asked for"),
        (drawn(hop_nodes=[3, 0]), "hop_nodes is no list of 3 numbers"),
        (drawn(roots=2), "do not add up to the vertices"),
    ):
        daemon.odd["draw"] = [odd]
        with pytest.raises(hopmesh.Error, match="sent something wrong: .*" + sentence):
            list(evaluation(mesh))
    region = {"memory": 2, "offset": 64, "bytes": 16}
    given: list[tuple[dict[str, Any], str]] = [
        ({"ends": region}, "the ends of ids do not fit|outside of the shared memory"),
        ({"text": {**region, "bytes": 1 << 40}}, "outside of the shared memory"),
        ({"text": None}, "a region is missing"),
        ({"n_id": {**region, "bytes": 12}}, "has 12 bytes"),
    ]
    for wrong, sentence in given:
        daemon.odd["own"] = [owned(wrong)]
        with pytest.raises(hopmesh.Error, match="sent something wrong: .*" + sentence):
            evaluation(mesh)
    with pytest.raises(hopmesh.Error, match="a batch is asked for 0 vertices"):
        evaluation(mesh)
        assert mesh._part._aside is not None
        mesh._part._aside.draw(np.zeros(0, np.int64), [1], 0)


def test_a_node_without_a_part(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.attaches = [(409, "node n1 has no part in job j1")]
    made = daemon.job

    def elsewhere(key: str, state: str = "running", **more: Any) -> dict[str, Any]:
        return made(key, state, nodes=["n2", "n3"], **more)

    daemon.job = elsewhere  # type: ignore[method-assign]
    with pytest.raises(hopmesh.Error, match="n1 holds no part of d: connect to .* n2 or n3"):
        evaluation(mesh)
    assert daemon.jobs[0]["state"] == "stopped"


def test_more_than_one_batch_may_have(
    mesh: Mesh, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MOST_DRAWN", 2)
    with pytest.raises(hopmesh.Error, match="a batch is asked for 3 vertices: give 1 to 2"):
        list(evaluation(mesh))
