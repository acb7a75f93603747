"""A mesh in child processes of this one, for notebooks and tests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from hopmesh import binary, keeper, rendezvous, runner
from hopmesh.client import Client
from hopmesh.error import Error
from hopmesh.mesh import Mesh

_START_SECONDS = 60.0
_END_SECONDS = 20.0
# Switches of the program that are no settings of a daemon.
_SWITCHES = ("HOPMESH_CPU", "HOPMESH_CUDA", "HOPMESH_LIBCUDA", "HOPMESH_CUBLAS")


class LocalMesh(Mesh):
    """The mesh that :func:`hopmesh.up` starts. It is a :class:`Mesh`, seen from its first node.

    Use it in ``with``, or call :meth:`down`. If this process ends first, however it ends, the
    daemons end and their folder is removed.
    """

    def __init__(
        self,
        nodes: int,
        memory: str | None,
        device: str,
        logdir: str | os.PathLike[str] | None = None,
    ) -> None:
        if nodes < 1:
            raise Error(f"a mesh of {nodes} nodes can't be: give 1 or more")
        program = binary.find()
        self._folder = tempfile.mkdtemp(prefix="hopmesh-")
        self._keeper = _Keeper(self._folder)
        self._down = weakref.finalize(self, self._keeper.end)
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        self.pids: dict[str, int] = {}
        self._command = [program, "agent", "--listen", "127.0.0.1:0", "--device", device]
        self._command += ["--python", sys.executable]
        if memory:
            self._command += ["--memory", memory]
        # The first node writes the jobs of all.
        self._logdir = [] if logdir is None else ["--logdir", os.path.abspath(logdir)]
        super().__init__(Client(self._socket(self.nodes[0])))
        try:
            self._form()
        except BaseException:
            self.down()
            raise

    def __enter__(self) -> LocalMesh:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    def down(self) -> None:
        """Stops all nodes and removes what they kept. It may be called twice."""
        self._down()

    def at(self, node: str) -> Mesh:
        """Returns the same mesh, seen from another of its nodes."""
        if node not in self.nodes:
            raise Error(f"there is no node {node!r}: there are {', '.join(self.nodes)}")
        seen = Mesh(Client(self._socket(node)))
        seen._folders = self._folders
        return seen

    def kill(self, node: str) -> None:
        """Kills a node at once, as if its machine had lost its power."""
        self.at(node)
        self._keeper.order("kill", node)

    def restart(self, node: str) -> None:
        """Starts a node again that was killed or has ended, and returns when it is ready."""
        if runner.alive(self.at(node)._client):
            raise Error(f"node {node} runs: kill it first")
        self._start(node, self._logdir if node == self.nodes[0] else [], "")
        self._await(node, time.monotonic() + _START_SECONDS)

    def add(self) -> str:
        """Starts one more node, and returns its name when it has joined."""
        node = f"n{len(self.nodes) + 1}"
        deadline = time.monotonic() + _START_SECONDS
        self._join([node], deadline)
        self.nodes.append(node)
        self._folders.append(os.path.join(self._folder, node))
        return node

    def run(self, script: str | os.PathLike[str], arguments: Sequence[str] = ()) -> None:
        """Runs a script beside each node that lives, and returns when its job is done.

        The script uses :func:`hopmesh.connect` and :meth:`Mesh.loader`. Its output is printed
        here, with the node's name in front. When a node dies, the others start the script again,
        which goes on from the last checkpoint; so they do when one joins or comes back, beside
        which it is started too. If the script fails beside one node, all are ended, and an Error
        has its last line.
        """
        path = os.path.abspath(script)
        if not os.path.isfile(path):
            raise Error(f"there is no script {path}: give the path of a Python file")
        live = {node: client for node, client in self._clients().items() if runner.alive(client)}
        if not live:
            raise Error("this mesh is down: hopmesh.up() starts another")
        command = [sys.executable, path, *arguments]
        folders = {"HOPMESH_FOLDERS": os.pathsep.join(self._folders)}
        runner.run(live, rendezvous.new_key(), command, _show, folders, self._clients)

    def _clients(self) -> dict[str, Client]:
        return {node: Client(self._socket(node)) for node in self.nodes}

    def log(self, node: str) -> str:
        """Returns what a node has logged so far."""
        self.at(node)
        with open(os.path.join(self._folder, node + ".log"), encoding="utf-8") as file:
            return file.read()

    def _socket(self, node: str) -> str:
        return "unix:" + os.path.join(self._folder, node, "hopmesh.sock")

    def _form(self) -> None:
        self._folders = [os.path.join(self._folder, node) for node in self.nodes]
        first, *others = self.nodes
        self._start(first, ["--bootstrap", *self._logdir], "")
        deadline = time.monotonic() + _START_SECONDS
        self._await(first, deadline)
        if not others:
            return
        self._join(others, deadline)
        while sum(m["status"] == "alive" for m in self.members()) < len(self.nodes):
            _pause(deadline, "the nodes did not see each other in time")

    def _join(self, nodes: Sequence[str], deadline: float) -> None:
        """Starts nodes that join the mesh, and returns when they are ready."""
        address = next(m["address"] for m in self.members() if m["status"] == "alive")
        token = self._client.post("/v1/tokens", {"ttl": "1h"})["token"]
        for node in nodes:
            self._start(node, ["--join", address, "--token-file", "-"], token)
        for node in nodes:
            self._await(node, deadline)

    def _start(self, node: str, how: list[str], token: str) -> None:
        folder = os.path.join(self._folder, node)
        command = [*self._command, "--data-dir", folder, "--name", node, *how]
        self.pids[node] = self._keeper.order("start", node, command=command, token=token)["pid"]

    def _await(self, node: str, deadline: float) -> None:
        """Returns when a node is ready."""
        client = Client(self._socket(node))
        while True:
            if (code := self._keeper.order("look", node)["code"]) is not None:
                raise Error(f"node {node} ended with {code}; its log ends: {self._last(node)}")
            try:
                if client.get("/v1/status")["ready"]:
                    return
            except Error:
                pass  # it is not listening yet
            _pause(deadline, f"node {node} is not ready in time; its log ends: ", node, self)

    def _last(self, node: str) -> str:
        return " ".join(self.log(node).split("\n")[-4:]).strip()


def _show(node: str, line: str) -> None:
    print(f"{node}: {line}", flush=True)


def _pause(deadline: float, sentence: str, node: str = "", mesh: LocalMesh | None = None) -> None:
    """Waits for a moment, or raises an Error with the sentence after the deadline."""
    if time.monotonic() > deadline:
        raise Error(sentence + (mesh._last(node) if mesh else ""))
    time.sleep(0.05)


class _Keeper:
    """This side of the process that keeps the daemons."""

    def __init__(self, folder: str) -> None:
        self._lock, self._owner, self._folder = threading.Lock(), os.getpid(), folder
        self._asked = 0
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("HOPMESH_") or name in _SWITCHES
        }
        environment |= runner.imports()  # for scripts that the daemons run
        # In a session of its own, Ctrl-C in a terminal does not reach it.
        self._process = subprocess.Popen(
            [sys.executable, "-I", keeper.__file__, folder, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )

    def order(self, do: str, name: str, **more: Any) -> dict[str, Any]:
        """Has the keeper do something, and returns its answer."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        with self._lock:
            self._asked += 1
            asked = {"number": self._asked, "do": do, "name": name, **more}
            answer: dict[str, Any] = {}
            try:
                process.stdin.write(json.dumps(asked).encode() + b"\n")
                process.stdin.flush()
                while answer.get("number") != self._asked:  # Ctrl-C may have left others unread
                    answer = json.loads(process.stdout.readline())
            except (OSError, ValueError):
                raise Error("this mesh is down: hopmesh.up() starts another") from None
        if "error" in answer:
            raise Error(f"node {name} can't be started: {answer['error']}")
        return answer

    def end(self) -> None:
        """Ends the daemons, and waits for that."""
        if os.getpid() != self._owner:
            return  # a copy of the process that owns them
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        with self._lock:
            with contextlib.suppress(OSError):  # it was killed before it had read all
                process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)  # if the keeper was killed


def up(
    nodes: int = 3,
    *,
    memory: str | None = None,
    device: str = "auto",
    logdir: str | os.PathLike[str] | None = None,
) -> LocalMesh:
    """Starts a mesh on this machine and returns it when it is ready.

    The nodes are child processes on loopback, at free ports, in a temporary folder. They end with
    this process, also if it is killed. ``memory`` bounds what each of them takes, such as
    ``"4GiB"``. The epochs of all jobs go to the folder ``logdir``, if given, for TensorBoard::

        with hopmesh.up(nodes=3) as mesh:
            print(mesh.members())
    """
    return LocalMesh(nodes, memory, device, logdir)
