"""Sums over ranks, and what they broadcast."""

from __future__ import annotations

import numpy as np
import pytest
from fake_daemon import FakeDaemon, empty, loader

import hopmesh
from hopmesh.mesh import Mesh

pytestmark = pytest.mark.quick


@pytest.fixture
def mesh(beside: Mesh) -> Mesh:
    return beside


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


@pytest.mark.parametrize("dtype", ["int64", "uint64", ">i8"])
def test_large_whole_numbers(mesh: Mesh, daemon: FakeDaemon, dtype: str) -> None:
    """They arrive as they were, and are not summed where that would change them."""
    daemon.size = 2
    loader(mesh)
    numbers = np.array([2**53 + 1, 2**63 - 1, 7, 0], dtype)
    if dtype != "uint64":
        numbers[3] = -(2**63)
    assert mesh.broadcast(numbers) is numbers
    daemon.others = (daemon.summed[-1].tolist(), 1)
    assert np.array_equal(mesh.broadcast(np.zeros_like(numbers), root=1), numbers)
    daemon.others = ([0], 1)
    for value in (numbers[:1], -(2**52), np.int64(2**60)):
        with pytest.raises(hopmesh.Error, match="too large to be summed exactly over 2 ranks"):
            mesh.all_reduce(value)
        mesh.all_reduce(value, op="mean", weight=0)  # it does not count


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


def test_a_mean_to_which_no_rank_brings_anything(mesh: Mesh, daemon: FakeDaemon) -> None:
    made = loader(mesh)
    daemon.others = np.zeros(0), 0
    values = np.ones(3, np.float32)
    mesh.all_reduce(values, op="mean", weight=0)
    assert values.tolist() == [0, 0, 0]
    made.close()
