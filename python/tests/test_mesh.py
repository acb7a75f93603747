"""Meshes come up, are found, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CORA, alive, until

import hopmesh
from hopmesh import binary

PARENT = """
import sys, hopmesh
mesh = hopmesh.up(nodes=2)
print(mesh._folder, mesh._keeper._process.pid, *mesh.pids.values(), flush=True)
sys.stdin.read()
"""


def test_up(mesh: hopmesh.LocalMesh) -> None:
    members = mesh.members()
    assert sorted(m["name"] for m in members) == ["n1", "n2", "n3"] == mesh.nodes
    assert {m["status"] for m in members} == {"alive"}
    assert mesh.status()["ready"] and mesh.at("n2").status()["node"] == "n2"
    assert "msg=ready" in mesh.log("n1")
    with pytest.raises(hopmesh.Error, match="there is no node 'n9': there are n1, n2, n3"):
        mesh.at("n9")


def test_connect(mesh: hopmesh.LocalMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    path = mesh.address.removeprefix("unix:")
    monkeypatch.setenv("HOPMESH_ADDR", mesh.address)
    for address in (mesh.address, path, os.path.dirname(path), None):
        found = hopmesh.connect(address)
        assert found.status()["node"] == "n1" and found.address == mesh.address
    monkeypatch.delenv("HOPMESH_ADDR")
    monkeypatch.setenv("HOPMESH_DATA_DIR", os.path.dirname(path))
    assert hopmesh.connect().status()["node"] == "n1"


def test_no_daemon(tmp_path: Path) -> None:
    with pytest.raises(hopmesh.Error) as refused:
        hopmesh.connect(tmp_path.as_posix())
    said = f"no daemon at unix:{tmp_path}/hopmesh.sock: start one with `hopmesh agent`"
    assert str(refused.value).startswith(said) and refused.value.status == 0
    for address in ("nonsense", "host:", "host:99999", "unix:"):
        with pytest.raises(hopmesh.Error, match="give unix:PATH or HOST:PORT"):
            hopmesh.connect(address)


def test_errors_are_the_daemons(mesh: hopmesh.LocalMesh) -> None:
    with pytest.raises(hopmesh.Error) as refused:
        mesh.dataset("none")
    assert refused.value.status == 404
    expected = "there is no dataset none: `hopmesh dataset list` shows those there are"
    assert str(refused.value) == expected
    with pytest.raises(hopmesh.Error, match="--dropout is 2, but must be at least 0 and below 1"):
        mesh.train("cora", dropout=2)
    with pytest.raises(hopmesh.Error, match="no such file|does not exist|there is no"):
        mesh.import_("nothing", "/no/such/file.npz")


def test_down() -> None:
    with hopmesh.up(nodes=1) as mesh:
        folder, pids = mesh._folder, [*mesh.pids.values(), mesh._keeper._process.pid]
        assert os.path.isdir(folder) and all(map(alive, pids))
    assert not os.path.exists(folder) and not any(map(alive, pids))
    mesh.down()
    with pytest.raises(hopmesh.Error, match="no daemon at"):
        mesh.members()
    with pytest.raises(hopmesh.Error, match="this mesh is down"):
        mesh.kill("n1")
    with pytest.raises(hopmesh.Error, match="a mesh of 0 nodes can't be"):
        hopmesh.up(nodes=0)


@pytest.mark.parametrize("victim", ["parent", "keeper"])
def test_nothing_outlives_its_parent(victim: str) -> None:
    command = [sys.executable, "-c", PARENT]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as parent:
        try:
            assert parent.stdout is not None
            folder, keeper, *pids = parent.stdout.readline().split()
            daemons = [int(pid) for pid in pids]
            assert len(daemons) == 2 and all(map(alive, daemons))
            os.kill(parent.pid if victim == "parent" else int(keeper), signal.SIGKILL)
            until("the daemons are gone", lambda: not any(map(alive, daemons)), 20)
            if victim == "keeper":
                assert parent.stdin is not None
                parent.stdin.close()
                assert parent.wait(20) == 0
            until("all is gone", lambda: not alive(int(keeper)) and not os.path.exists(folder))
        finally:
            parent.kill()


def test_down_without_keeper() -> None:
    mesh = hopmesh.up(nodes=1)
    os.kill(mesh._keeper._process.pid, signal.SIGKILL)
    until("the daemon is gone", lambda: not alive(mesh.pids["n1"]))
    with pytest.raises(hopmesh.Error, match="this mesh is down: hopmesh.up"):
        mesh.kill("n1")
    mesh.down()
    assert not os.path.exists(mesh._folder)


def test_loopback(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [binary.find(), "agent", "--bootstrap", "--data-dir", str(tmp_path / "n")]
    command += ["--name", "n", "--listen", "127.0.0.1:0", "--api", address]

    def ready() -> bool:
        try:
            return bool(hopmesh.connect(address).status()["ready"])
        except hopmesh.Error:
            return False

    with open(tmp_path / "log", "wb") as log, subprocess.Popen(command, stderr=log) as daemon:
        try:
            until("the daemon is ready", ready)
            # Who changes something needs the secret, which is found by the address.
            mesh = hopmesh.connect(address)
            assert mesh.import_("cora", CORA).vertices == 2708
            with pytest.raises(hopmesh.Error, match="this daemon is elsewhere"):
                mesh.load_dataset("cora")
        finally:
            daemon.terminate()
