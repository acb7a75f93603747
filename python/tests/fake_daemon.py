"""A daemon that speaks the programs' protocol, and what a real one rarely or never says."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hopmesh
from hopmesh import packing
from hopmesh.mesh import Mesh

FEATURES, CLASSES, LAYERS = 3, 4, 2
HOP_NODES, HOP_EDGES, HOP_FRESH = [2, 3, 1], [4, 5], [4, 2]
# The order in which edges lie, by their order by hops.
FRESH_FIRST = [0, 1, 2, 3, 7, 8, 4, 5, 6]


class Session:
    """One attached program. A test may answer questions itself, with what it is given here."""

    def __init__(self, daemon: FakeDaemon, sock: socket.socket) -> None:
        self.daemon, self.socket = daemon, sock
        self.memories: dict[int, mmap.mmap] = {}
        self.batches = self.later = self.room = -1
        self.ready = self.announced = False

    def serve(self) -> None:
        """Answers questions until the program leaves."""
        while (question := self.receive()) is not None:
            self.daemon.questions.append(question)
            kind = question["type"]
            odd = self.daemon.odd.get(kind)
            if odd:
                answer = odd.pop(0)
                if answer is not None:
                    if answer(self, question) is LEAVE:
                        return
                    continue
            getattr(self, "on_" + kind)(question)

    def receive(self) -> dict[str, Any] | None:
        head = self.socket.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            return None
        body = self.socket.recv(int.from_bytes(head, "little"), socket.MSG_WAITALL)
        question: dict[str, Any] = json.loads(body)
        return question

    def send(self, kind: str, *descriptors: int, **fields: Any) -> None:
        body = json.dumps({"type": kind, **fields}).encode()
        self.raw(len(body).to_bytes(4, "little") + body, *descriptors)

    def raw(self, data: bytes, *descriptors: int) -> None:
        if not descriptors:
            self.socket.sendall(data)
            return
        socket.send_fds(self.socket, [data[:1]], descriptors)
        self.socket.sendall(data[1:])

    def memory(self, size: int, drops: list[int] | None = None, **wrong: Any) -> int:
        """Makes memory and hands it over. Its numbers are in no order."""
        self.daemon.memories += 1
        number, descriptor = self.daemon.memories ^ 2, os.memfd_create("fake")
        os.ftruncate(descriptor, size)
        self.memories[number] = mmap.mmap(descriptor, size)
        self.send(
            "memory", descriptor, **{"id": number, "bytes": size, "drops": drops or [], **wrong}
        )
        os.close(descriptor)
        return number

    def view(self, region: dict[str, int], dtype: str = "u1") -> NDArray[Any]:
        size = region["bytes"] // np.dtype(dtype).itemsize
        return np.frombuffer(self.memories[region["memory"]], dtype, size, region["offset"])

    def put(self, memory: int, offset: int, array: NDArray[Any]) -> dict[str, int]:
        region = {"memory": memory, "offset": offset, "bytes": array.nbytes}
        self.view(region)[:] = np.ascontiguousarray(array).reshape(-1).view("u1")
        return region

    def on_hello(self, question: dict[str, Any]) -> None:
        daemon, state = self.daemon, None
        if daemon.kept is not None:
            kept = np.frombuffer(daemon.kept, "u1")
            state = self.put(self.memory(len(kept)), 0, kept)
        daemon.epoch, daemon.step = daemon.kept_at
        self.ready, self.announced = True, False
        self.send(
            "ready", version=1, rank=daemon.rank, size=daemon.size, node="n1",
            epoch=daemon.epoch, epochs=daemon.epochs, step=daemon.step, steps=daemon.steps,
            vertices=100, features=FEATURES, classes=CLASSES, layers=LAYERS, seed=1, state=state,
            **({"targets": daemon.targets} if daemon.targets else {}),
            **({"relations": 9, "weighted": True, "edge_features": 2} if daemon.along else {}),
        )  # fmt: skip

    def on_next(self, question: dict[str, Any]) -> None:
        daemon = self.daemon
        if daemon.epoch > daemon.epochs:
            self.send("done")
        elif daemon.step < daemon.steps:
            daemon.step += 1
            self.batch()
        elif daemon.step == daemon.steps:
            daemon.step += 1
            self.send("last", epoch=daemon.epoch)
        else:
            self.send("end", epoch=daemon.epoch)
            daemon.epoch, daemon.step = daemon.epoch + 1, 0

    def batch(self, **wrong: Any) -> None:
        """Sends a batch whose features are ten times the epoch, plus the step."""
        if self.batches < 0:
            self.batches = self.memory(4096)
        daemon = self.daemon
        kind, fields = "batch", self.fields(daemon.step)
        if self.announced:
            kind, self.announced = "announced", False
            fields = {"epoch": daemon.epoch, "step": daemon.step}
        if daemon.announces and daemon.step < daemon.steps:
            if self.later < 0:
                self.later = self.memory(4096)
            self.batches, self.later = self.later, self.batches
            self.announced = True
            fields["following"] = {"type": "batch", **self.fields(daemon.step + 1)}
        self.send(kind, **{**fields, **wrong})

    def fields(self, step: int) -> dict[str, Any]:
        daemon, nodes = self.daemon, sum(HOP_NODES)
        x = np.full((nodes, FEATURES), 10 * daemon.epoch + step, "<f4")
        edges = np.arange(2 * sum(HOP_EDGES), dtype="<i8").reshape(2, -1) % nodes
        if daemon.fresh_first:
            edges = edges[:, FRESH_FIRST]
        return {
            "epoch": daemon.epoch, "step": step, "steps": daemon.steps,
            "roots": HOP_NODES[0], "nodes": nodes, "hop_nodes": HOP_NODES, "hop_edges": HOP_EDGES,
            "hop_fresh": HOP_FRESH, "fresh_first": daemon.fresh_first,
            "n_id": self.put(self.batches, 0, 7 * np.arange(nodes, dtype="<i8")),
            "x": self.put(self.batches, 512, x),
            "edge_index": self.put(self.batches, 1024, edges),
            "y": self.put(self.batches, 2048, self.labels()),
            **self.along(),
        }  # fmt: skip

    def along(self) -> dict[str, Any]:
        """Returns what edges have: the number of each by hops, and what is made of it."""
        if not self.daemon.along:
            return {}
        n = np.array(FRESH_FIRST if self.daemon.fresh_first else range(sum(HOP_EDGES)))
        rows = np.stack([n, -n], axis=1).astype("<f4")
        return {
            "edge_type": self.put(self.batches, 2304, n.astype("<i8")),
            "edge_weight": self.put(self.batches, 2560, (n / 2).astype("<f4")),
            "edge_attr": self.put(self.batches, 2816, rows),
        }

    def labels(self) -> NDArray[Any]:
        """Returns those of the two seed vertices, of which the second has none."""
        if self.daemon.targets:
            return np.array([[0, 1, 0.5, np.nan], [np.nan] * 4], "<f4")
        return np.array([1, -1], "<i8")

    def on_draw(self, question: dict[str, Any]) -> None:
        """Sends a batch of single vertices, whatever the fan-outs are."""
        self.drawn(question)

    def drawn(self, question: dict[str, Any], **wrong: Any) -> None:
        vertices, hops = self.view(question["region"], "<i8"), len(question["fanout"])
        none, n = [0] * hops, len(vertices)
        lists = self.memory(4096)
        fields = {
            "epoch": 0, "step": question["number"], "steps": 0, "roots": n, "nodes": n,
            "hop_nodes": [n, *none], "hop_edges": none, "hop_fresh": none,
            "n_id": self.put(lists, 0, vertices),
            "x": self.put(lists, 512, np.full((n, FEATURES), 7, "<f4")),
            "edge_index": self.put(lists, 1024, np.zeros((2, 0), "<i8")),
            "y": self.put(lists, 2048, np.full(n, -1, "<i8")),
        }  # fmt: skip
        self.send("batch", **{**fields, **wrong})

    def on_own(self, question: dict[str, Any]) -> None:
        self.owned()

    def owned(self, **wrong: Any) -> None:
        """Sends three vertices whose ids are texts."""
        lists = self.memory(4096)
        fields = {
            "n_id": self.put(lists, 0, np.array([4, 5, 9], "<i8")),
            "ends": self.put(lists, 64, np.array([1, 1, 3], "<i8")),
            "text": self.put(lists, 128, np.frombuffer(b"abc", "u1")),
        }
        self.send("owned", **{**fields, **wrong})

    def on_room(self, question: dict[str, Any]) -> None:
        drops = [self.room] if self.room >= 0 else []
        self.room = self.memory(question["bytes"], drops)
        region = {"memory": self.room, "offset": 0, "bytes": question["bytes"]}
        self.send("room", region=region)

    def on_sum(self, question: dict[str, Any]) -> None:
        """Adds what another rank would, if the test gave some."""
        numbers, weight = self.daemon.others
        total = question["weight"] + weight
        dtype = {"f32": "<f4", "f64": "<f8"}[question["dtype"]]
        if question["region"] is None:
            assert numbers is not None
            sums = np.asarray(numbers, dtype)
            region = self.put(self.memory(sums.nbytes or 64), 0, sums)
            self.send("summed", weight=total, region=region, bytes=sums.nbytes)
            return
        added = self.view(question["region"], dtype)
        self.daemon.summed.append(added.copy())
        if numbers is not None:
            added += np.asarray(numbers, dtype)
        self.send("summed", weight=total)

    def on_keep(self, question: dict[str, Any]) -> None:
        daemon = self.daemon
        daemon.kept = self.view(question["region"]).tobytes()
        over = daemon.step >= daemon.steps
        daemon.kept_at = (daemon.epoch + 1, 0) if over else (daemon.epoch, daemon.step)
        self.send("kept")

    def on_report(self, question: dict[str, Any]) -> None:
        self.send("noted")

    def on_stop(self, question: dict[str, Any]) -> None:
        self.daemon.epoch = self.daemon.epochs + 1
        self.send("done")


Odd = Callable[[Session, dict[str, Any]], object]
LEAVE = object()


class FakeDaemon:
    """Serves one job of a mesh at a unix socket."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.epochs, self.steps, self.rank, self.size = 2, 3, 0, 1
        self.epoch, self.step, self.memories = 1, 0, 0
        self.ready = True
        self.targets = ""  # what y has columns of
        self.along = False  # True: edges have relations, weights and features
        self.fresh_first = True  # False: as daemons before had it
        self.announces = False  # True: the next batch is always prepared in time
        self.kept: bytes | None = None
        self.kept_at = (1, 0)
        # What the other ranks add to each sum, and their weight.
        self.others: tuple[Any, float] = (None, 0)
        # By type of question: how the next ones are answered instead. None: as usual.
        self.odd: dict[str, list[Odd | None]] = {}
        self.questions: list[dict[str, Any]] = []
        self.summed: list[NDArray[Any]] = []
        self.requests: list[tuple[str, Any]] = []
        self.jobs: list[dict[str, Any]] = []
        self.attaches: list[tuple[int, str]] = []
        self.members = [{"name": "n1", "id": "a1", "status": "alive"}]
        # Called at each look at the jobs.
        self.looked: Callable[[], object] = lambda: None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(20)
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Goes away with all connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def asked(self, kind: str) -> list[dict[str, Any]]:
        return [question for question in self.questions if question["type"] == kind]

    def job(self, key: str, state: str = "running", **more: Any) -> dict[str, Any]:
        """Adds a job to those of the mesh."""
        about = {
            "id": f"j{len(self.jobs) + 1}", "state": state, "dataset": "d", "error": "",
            "strategy": "program", "history": [], "epochs_total": 2, "steps": 3,
            "recipe": {"sharing": {"strategy": "program", "values": {"program.run": key}}},
        }  # fmt: skip
        self.jobs.append({**about, **more})
        return self.jobs[-1]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(sock,), daemon=True).start()

    def _answer(self, sock: socket.socket) -> None:
        self._open.add(sock)
        try:
            with contextlib.suppress(OSError):
                self._request(sock)
        finally:
            self._open.discard(sock)
            sock.close()

    def _request(self, sock: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = sock.recv(1)
            if not piece:
                return
            head += piece
        line, *lines = head.decode().split("\r\n")
        method, path, _ = line.split()
        headers = {k.lower(): v for k, _, v in (text.partition(": ") for text in lines)}
        size = int(headers.get("content-length", "0"))
        body = json.loads(sock.recv(size, socket.MSG_WAITALL)) if size else None
        if path.endswith("/attach"):
            status, text = self.attaches.pop(0) if self.attaches else (101, "")
            if status == 101:
                assert headers["upgrade"] == "hopmesh-program/1"
                sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                             b"Upgrade: hopmesh-program/1\r\n\r\n")  # fmt: skip
                Session(self, sock).serve()
                return
            answer: Any = {"error": text}
        else:
            status, answer = 200, self._document(method, path, body)
        data = json.dumps(answer).encode()
        sock.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(data)) + data)

    def _document(self, method: str, path: str, body: Any) -> Any:
        if method == "POST":
            self.requests.append((path, body))
            if path == "/v1/jobs":
                values = {one["key"]: one["value"] for one in body["set"]}
                return {"id": self.job(values["program.run"], dataset=body["dataset"])["id"]}
            job = next(job for job in self.jobs if f"/{job['id']}/" in path)
            job["state"] = "stopped"
            return {"ok": True}
        if path == "/v1/members":
            return self.members
        if path.startswith("/v1/datasets/"):
            sizes = {"vertices": 100, "edges": 9, "features": FEATURES, "classes": CLASSES}
            return {"name": path.rpartition("/")[2], **sizes}
        if path == "/v1/status":
            return {"node": "n1", "ready": self.ready}
        if path == "/v1/jobs":
            self.looked()
            return self.jobs
        return next(job for job in self.jobs if path.endswith("/" + job["id"]))


@contextlib.contextmanager
def serving(folder: str) -> Iterator[FakeDaemon]:
    """Serves while the body runs."""
    daemon = FakeDaemon(os.path.join(folder, "hopmesh.sock"))
    try:
        yield daemon
    finally:
        daemon.close()


def loader(mesh: Mesh, **more: Any) -> hopmesh.Loader:
    made = mesh.loader("d", **{"fanout": [3, 2], "kind": "numpy", "epochs": 2, **more})
    assert isinstance(made, hopmesh.Loader)
    return made


def again(session: Session, question: dict[str, Any]) -> None:
    session.send("again", why="n3 is gone")


def empty(session: Session, question: dict[str, Any]) -> None:
    session.daemon.step += 1
    none = {"memory": 0, "offset": 0, "bytes": 0}
    session.send("batch", epoch=1, step=session.daemon.step, steps=3, roots=0, nodes=0,
                 hop_nodes=[0, 0, 0], hop_edges=[0, 0], n_id=none, x=none, edge_index=none,
                 y=none)  # fmt: skip


def packed(value: Any) -> bytes:
    made = packing.Packed(value)
    into = np.empty(made.size, np.uint8)
    made.write(into)
    return into.tobytes()
