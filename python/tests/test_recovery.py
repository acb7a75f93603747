"""What is kept, and how a job goes on from it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from fake_daemon import LEAVE, FakeDaemon, again, loader, packed

import hopmesh
from hopmesh import packing, program
from hopmesh.mesh import Mesh

pytestmark = pytest.mark.quick


@pytest.fixture
def mesh(beside: Mesh) -> Mesh:
    return beside


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


def test_again_after_a_batch_that_was_announced(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.announces, daemon.odd["next"] = True, [None, None, again]
    made, seen = loader(mesh), []
    with pytest.raises(hopmesh.Again, match="n3 is gone"):
        for _ in made.epochs():
            for batch in made:
                seen.append(batch.step)
                mesh.all_reduce(1)
                mesh.checkpoint({"step": batch.step})
    assert seen == [1, 2, 3]  # the third is void
    made = loader(mesh)
    assert mesh.restore() == {"step": 2}
    left = [(batch.epoch, batch.step) for _ in made.epochs() for batch in made]
    assert left == [(1, 3), (2, 1), (2, 2), (2, 3)]


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


def test_a_script_whose_daemon_is_gone_ends_in_a_sentence(daemon: FakeDaemon) -> None:
    script = "import hopmesh\nmesh = hopmesh.connect()\n"
    loop = "for _ in mesh.loader('d', fanout=[3, 2], kind='numpy'): pass"
    run = {**os.environ, "HOPMESH_API": daemon.path, "HOPMESH_RUN": "k"}
    for rest, code in ((loop, 69), ("raise ValueError('so it is')", 1)):
        daemon.odd["next"] = [None, lambda session, question: LEAVE]
        done = subprocess.run(
            [sys.executable, "-c", script + rest],
            env=run, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code
        last = done.stderr.splitlines()
        if code == 69:
            assert len(last) == 1 and last[0].endswith("went away")
        else:
            assert "Traceback" in last[0] and last[-1] == "ValueError: so it is"
    daemon.close()
    done = subprocess.run(
        [sys.executable, "-c", script], env=run, capture_output=True, text=True, check=False
    )
    assert done.returncode == 69 and done.stderr.startswith("no daemon at unix:")
