"""A mesh and graphs that tests share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_daemon
import numpy as np
import pytest
from fake_daemon import FakeDaemon

import hopmesh
from hopmesh.mesh import Mesh

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORA = os.path.join(ROOT, "engine", "graph", "cora", "cora.npz")
Arrays = dict[str, Any]


def until(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    """Polls until something holds, and fails after some seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it took too long until {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Reports whether a process runs. One that nobody has waited for does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def write_library(folder: Path) -> None:
    """Writes a graph with types. Papers cite some papers that they name, too."""
    r, n = np.random.default_rng(3), np.arange(60)
    parts: Arrays = {"train_mask": n < 30, "val_mask": (n >= 30) & (n < 45), "test_mask": n >= 45}
    for kind in ("nodes", "edges"):
        (folder / kind).mkdir(parents=True)
    x = r.normal(size=(60, 3)).astype(np.float32)
    np.savez(folder / "nodes/paper.npz", x=x, y=n % 3, **parts)
    np.savez(folder / "nodes/author.npz", num_nodes=np.int64(25))
    cites = r.integers(0, 60, (2, 200))
    relations: list[tuple[str, Any]] = [
        ("author-writes-paper", [r.integers(0, 25, 150), r.integers(0, 60, 150)]),
        ("paper-cites-paper", cites),
        ("paper-names-paper", np.concatenate([cites[:, :50], r.integers(0, 60, (2, 50))], axis=1)),
    ]
    for name, ends in relations:
        np.savez(folder / "edges" / f"{name}.npz", edge_index=np.stack(list(ends)))


@pytest.fixture(scope="session")
def mesh() -> Iterator[hopmesh.LocalMesh]:
    """Three nodes that no test kills, with Cora."""
    with hopmesh.up(nodes=3) as mesh:
        mesh.import_("cora", CORA)
        yield mesh


@pytest.fixture
def ring() -> Arrays:
    """A small graph: a ring of 60 vertices with chords, in three classes."""
    n = np.arange(60)
    there = np.concatenate([n, n, n])
    back = np.concatenate([(n + 1) % 60, (n + 3) % 60, (n * 7) % 60])
    y = n % 3
    return {
        "edge_index": np.stack([there, back]),
        "x": np.stack([np.sin(n), np.cos(n), y == 0, y == 1], axis=1).astype(np.float32),
        "y": y,
        "train_mask": n < 30,
        "val_mask": (n >= 30) & (n < 45),
        "test_mask": n >= 45,
    }


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[FakeDaemon]:
    """A daemon that says what a test wants it to."""
    with fake_daemon.serving(str(tmp_path)) as serving:
        yield serving


@pytest.fixture
def beside(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    """The mesh that it is of, for a process that no run has started."""
    monkeypatch.delenv("HOPMESH_RUN", raising=False)
    return hopmesh.connect(daemon.path)
