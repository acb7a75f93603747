"""Scripts are kept running beside daemons."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import alive, until
from fake_daemon import FakeDaemon

import hopmesh
from hopmesh import runner
from hopmesh.client import Client

pytestmark = pytest.mark.quick

# Does one thing after another: each start takes the next word of its arguments.
SCRIPT = """
import os, sys, time
own = os.path.join(os.path.dirname(sys.argv[0]), os.path.basename(os.environ["HOPMESH_API"]))
with open(own + ".starts", "a") as file:
    file.write("x")
start = os.path.getsize(own + ".starts")
print("start", start, os.environ["HOPMESH_RUN"], flush=True)
do = sys.argv[start]
if do == "again":
    sys.exit(75)
if do == "gone":
    sys.exit(69)
if do == "fail late":
    while not os.path.exists(os.path.join(os.path.dirname(own), "n2.pid")):
        time.sleep(0.05)
if do.startswith("fail"):
    sys.exit("it went wrong")
if do == "signal":
    os.kill(os.getpid(), 9)
if do == "wait":
    open(own + ".pid", "w").write(str(os.getpid()))
    time.sleep(600)
if do == "other":
    while not os.path.exists(os.path.join(os.path.dirname(own), "n2.starts")):
        time.sleep(0.05)
if do == "grandchild":
    os.fork() or time.sleep(3)
print("ends without a line's end", end="")
"""


class Shown(list[str]):
    def __call__(self, node: str, line: str) -> None:
        self.append(f"{node}: {line}")


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[dict[str, FakeDaemon]]:
    made = {name: FakeDaemon(str(tmp_path / name)) for name in ("n1", "n2")}
    (tmp_path / "script.py").write_text(SCRIPT)
    yield made
    for daemon in made.values():
        daemon.close()


def run(daemons: dict[str, FakeDaemon], *words: str) -> Shown:
    shown = Shown()
    folder = os.path.dirname(next(iter(daemons.values())).path)
    command = [sys.executable, os.path.join(folder, "script.py"), *words]
    clients = {name: Client(daemon.path) for name, daemon in daemons.items()}
    try:
        runner.run(clients, "k", command, shown, {})
    except hopmesh.Error as error:
        shown.append(str(error))
    return shown


def test_output_and_restarts(daemons: dict[str, FakeDaemon]) -> None:
    shown = run(daemons, "again", "again", "end")
    for name in daemons:
        assert [line for line in shown if line.startswith(name)] == [
            f"{name}: start 1 k",
            f"{name}: starts again from the last checkpoint",
            f"{name}: start 2 k",
            f"{name}: starts again from the last checkpoint",
            f"{name}: start 3 k",
            f"{name}: ends without a line's end",
        ]


def test_a_script_that_always_starts_again_waits_longer_each_time(
    daemons: dict[str, FakeDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_SHORTEST_REST", 0.1)
    monkeypatch.setattr(runner, "_LONGEST_REST", 0.2)
    begun = time.monotonic()
    assert "n1: start 4 k" in run({"n1": daemons["n1"]}, "again", "again", "again", "end")
    assert time.monotonic() - begun >= 0.1 + 0.2 + 0.2


def test_a_job_that_is_done_is_not_started_again(daemons: dict[str, FakeDaemon]) -> None:
    one = {"n1": daemons["n1"]}
    one["n1"].job("k", state="done")
    assert run(one, "again") == ["n1: start 1 k"]
    one["n1"].job("k--2", state="running")
    assert len(run(one, "", "again", "end")) == 4


@pytest.mark.parametrize(
    "do, sentence",
    [
        ("fail", "the script beside n1 ended with exit code 1: it went wrong"),
        ("signal", "the script beside n1 ended by signal 9: start 1 k"),
    ],
)
def test_a_script_that_fails(
    daemons: dict[str, FakeDaemon], monkeypatch: pytest.MonkeyPatch, do: str, sentence: str
) -> None:
    monkeypatch.setattr(runner, "_GRACE_SECONDS", 0.2)
    daemons["n1"].job("k")
    daemons["n1"].job("another")
    assert run({"n1": daemons["n1"]}, do)[-1] == sentence
    # Nobody waits for its sums any more.
    assert [job["state"] for job in daemons["n1"].jobs] == ["stopped", "running"]


def test_a_daemon_that_is_back_before_its_script_has_ended(
    daemons: dict[str, FakeDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script was ended for it, which is no failure: it starts again."""
    monkeypatch.setattr(runner, "_SHORTEST_REST", 0.1)
    monkeypatch.setattr(runner, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(runner, "_GRACE_SECONDS", 0.2)
    pid = os.path.join(os.path.dirname(daemons["n1"].path), "n1.pid")
    gone = [True]

    def there(client: Client) -> bool:
        return not (os.path.exists(pid) and gone and gone.pop())

    monkeypatch.setattr(runner, "alive", there)
    shown = run({"n1": daemons["n1"]}, "wait", "end")
    assert "n1: starts again from the last checkpoint" in shown
    assert shown[-1] == "n1: ends without a line's end"


def test_the_others_end_with_a_script_that_fails(
    daemons: dict[str, FakeDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_GRACE_SECONDS", 0.2)
    folder = os.path.dirname(daemons["n1"].path)
    with open(os.path.join(folder, "n2.starts"), "w", encoding="ascii") as file:
        file.write("x")
    shown = run(daemons, "fail late", "wait")
    assert shown[-1].startswith("the script beside n1 ended with exit code")
    with open(os.path.join(folder, "n2.pid"), encoding="ascii") as file:
        assert not alive(int(file.read() or 0))


def test_a_daemon_that_is_gone(daemons: dict[str, FakeDaemon], tmp_path: Path) -> None:
    (tmp_path / "n2.starts").write_text("x")
    path = tmp_path / "n1.pid"

    def kill() -> None:
        until("the first script runs", lambda: path.exists() and path.read_text() != "")
        daemons["n1"].close()

    thread = threading.Thread(target=kill)
    thread.start()
    shown = run(daemons, "wait", "end")
    thread.join()
    assert "n1: its daemon is gone" in shown and "n2: start 2 k" in shown
    assert not alive(int(path.read_text()))


def test_a_daemon_that_came_back(
    daemons: dict[str, FakeDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_GRACE_SECONDS", 0.2)
    shown = run({"n1": daemons["n1"]}, "gone", "end")
    assert "n1: starts again from the last checkpoint" in shown and "n1: start 2 k" in shown


def test_all_daemons_are_gone(daemons: dict[str, FakeDaemon], tmp_path: Path) -> None:
    one = {"n1": daemons["n1"]}
    daemons["n1"].close()
    os.unlink(daemons["n1"].path)
    assert run(one, "wait")[-1] == "the daemons are gone, and with them the run"


def test_a_node_that_joins(daemons: dict[str, FakeDaemon]) -> None:
    clients = {name: Client(daemon.path) for name, daemon in daemons.items()}
    daemons["n2"].job("k")
    folder, shown = os.path.dirname(daemons["n1"].path), Shown()
    command = [sys.executable, os.path.join(folder, "script.py"), "other"]
    runner.run({"n1": clients["n1"]}, "k", command, shown, {}, lambda: clients)
    assert shown.count("n2: starts too, from the last checkpoint") == 1 and "n2: start 1 k" in shown
    assert not any(line.startswith("n1: starts") for line in shown)


def test_nodes_that_a_run_goes_on_beside(daemons: dict[str, FakeDaemon]) -> None:
    daemon, client = daemons["n1"], Client(daemons["n1"].path)
    assert not runner._goes_on(client, "k")  # it knows of no job
    daemon.job("another")
    job = daemon.job("k")
    assert runner._goes_on(client, "k")
    daemon.ready = False
    assert not runner._goes_on(client, "k")
    daemon.ready, job["state"] = True, "done"
    assert not runner._goes_on(client, "k")
    job["state"] = "running"
    daemon.close()
    assert not runner._goes_on(client, "k")


def test_what_a_script_started_holds_its_output(daemons: dict[str, FakeDaemon]) -> None:
    assert run({"n1": daemons["n1"]}, "grandchild")[-1].endswith("line's end")


def test_command(daemons: dict[str, FakeDaemon], tmp_path: Path) -> None:
    daemon = daemons["n1"]

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        whole = [sys.executable, "-m", "hopmesh.run", "--addr", daemon.path, *arguments]
        return subprocess.run(whole, capture_output=True, text=True, check=False)

    script = str(tmp_path / "script.py")
    done = command("--run", "word", script, "again", "end")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["n1: start 2 word", "n1: ends without a line's end"]
    os.unlink(tmp_path / "n1.starts")
    done = command(script, "fail")
    assert done.returncode == 1
    assert "hopmesh.run: the script beside n1 ended with exit code 1: it went" in done.stderr
    daemon.members.append({"name": "n2", "id": "b", "status": "alive"})
    done = command(script, "end")
    assert done.returncode == 1
    assert "the mesh has 2 nodes, and each needs the script beside it: give --run" in done.stderr
    for word in ("a b", "none", "x" * 57):
        assert f"'{word}' is no key of a run" in command("--run", word, script).stderr


def test_scripts_end_with_the_run(daemons: dict[str, FakeDaemon], tmp_path: Path) -> None:
    script = str(tmp_path / "script.py")
    command = [sys.executable, "-m", "hopmesh.run", "--addr", daemons["n1"].path, script, "wait"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        path = tmp_path / "n1.pid"
        until("the script runs", lambda: path.exists() and path.read_text() != "")
        pid = int(path.read_text())
        assert alive(pid)
        running.kill()
    until("the script is gone", lambda: not alive(pid))
