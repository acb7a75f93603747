"""Batches, sums and checkpoints of PyTorch, beside a fake daemon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_daemon import FakeDaemon, empty

import hopmesh
from hopmesh import packing
from hopmesh.mesh import Mesh

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture
def mesh(beside: Mesh) -> Mesh:
    return beside


def test_tensors_lie_in_the_shared_memory(mesh: Mesh) -> None:
    batches = iter(mesh.loader("d", fanout=[3, 2], kind="torch"))
    first = next(batches)
    assert isinstance(first, hopmesh.Batch)
    assert first.x.dtype == torch.float32 and first.edge_index.dtype == torch.int64
    assert first.x[0, 0] == 11 and first.y.tolist() == [1, -1]
    assert [adj.edge_index.shape[1] for adj in first.adjs] == [5, 4]
    for edges in (first.edge_index, *(adj.edge_index for adj in first.adjs)):
        assert all(row.is_contiguous() for row in edges)
    assert not first.edge_index.is_contiguous()  # it was not copied
    next(batches)
    assert first.x[0, 0] == 12  # the next batch lies where it did


def test_data_of_pyg(mesh: Mesh) -> None:
    pytest.importorskip("torch_geometric")
    for kind in ("pyg", "auto"):
        made = mesh.loader("d", fanout=[3, 2], kind=kind)
        data = next(iter(made))
        assert type(data).__name__ == "Data" and data.num_nodes == 6 and data.num_edges == 6
        assert data.batch_size == 2 and data.num_sampled_edges == [4, 2] and data.weight == 2
        assert list(data.to("cpu").adjs[1].size) == [5, 2]
        made.close()
    data = next(iter(mesh.loader("d", fanout=[3, 2], kind="numpy"))).to_pyg()
    assert data.x.shape == (6, 3) and data.validate()


def test_gradients(mesh: Mesh, daemon: FakeDaemon) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Linear(1, 1))
    model[1].bias.requires_grad_(False)
    model[0].weight.grad = torch.tensor([[1.0, 3.0]])
    model[0].bias.grad = torch.tensor([2.0])
    daemon.others = ([10, 10, 10, 8], 6)
    batches = iter(mesh.loader("d", fanout=[3, 2], kind="torch"))
    next(batches)
    assert mesh.all_reduce(model) is model
    # This batch counts 2. What the other rank adds is weighted already.
    assert model[0].weight.grad.tolist() == [[1.5, 2.0]] and model[0].bias.grad.tolist() == [1.75]
    assert model[1].weight.grad.tolist() == [[1.0]] and model[1].bias.grad is None
    asked = daemon.asked("sum")[-1]
    assert (asked["dtype"], asked["weight"], asked["region"]["bytes"]) == ("f32", 2, 16)
    # A rank without seed vertices gets the others' gradients, whatever its own are.
    daemon.odd["next"] = [empty]
    model[0].bias.grad.fill_(float("nan"))
    assert next(batches).weight == 0
    mesh.all_reduce(model)
    assert model[0].bias.grad.tolist() == pytest.approx([10 / 6])
    assert daemon.asked("sum")[-1]["region"] is None
    # Where some numbers are float64, all are summed so.
    daemon.others = (None, 0)
    model.double().zero_grad()
    model[0].weight.grad = torch.full((1, 2), 1 / 3, dtype=torch.float64)
    mesh.all_reduce(model, weight=3)
    assert model[0].weight.grad.tolist() == [[1 / 3, 1 / 3]]
    assert daemon.asked("sum")[-1]["dtype"] == "f64"


def test_tensors(mesh: Mesh, daemon: FakeDaemon) -> None:
    mesh.loader("d", fanout=[3, 2], kind="torch")
    daemon.others = ([1, 2, 3, 4], 1)
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.float64):
        tensor = torch.zeros(2, 2, dtype=dtype).t()
        assert mesh.all_reduce(tensor) is tensor and tensor.tolist() == [[1, 2], [3, 4]]
    assert mesh.all_reduce(torch.ones(4), op="mean").tolist() == [1, 1.5, 2, 2.5]
    with pytest.raises(hopmesh.Error, match="numbers of type complex64 can't be summed"):
        mesh.all_reduce(torch.zeros(4, dtype=torch.complex64))
    with pytest.raises(hopmesh.Error, match="sparse gradients can't be replaced"):
        mesh.all_reduce(torch.zeros(4).to_sparse())


def test_broadcast(mesh: Mesh, daemon: FakeDaemon) -> None:
    daemon.size, daemon.rank = 2, 1
    mesh.loader("d", fanout=[3, 2], kind="torch")
    model = torch.nn.BatchNorm1d(2)
    model(torch.zeros(3, 2))
    daemon.others = ([0.5, 1, 2, 3, 4, 5, 6, 7, 9], 1)
    mesh.broadcast(model)
    assert model.weight.tolist() == [0.5, 1] and model.running_var.tolist() == [6, 7]
    assert model.num_batches_tracked == 9
    assert daemon.asked("sum")[-1] == {"type": "sum", "dtype": "f64", "region": None, "weight": 0}


def test_checkpoints() -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    half = torch.arange(5, dtype=torch.bfloat16)
    state = {"m": model.state_dict(), "o": optimizer.state_dict(), "half": half}
    packed = packing.Packed({**state, "random": torch.get_rng_state()})
    into = np.empty(packed.size, np.uint8)
    packed.write(into)
    got = packing.unpack(into.tobytes())
    assert torch.equal(got["half"], half) and got["half"].dtype == torch.bfloat16
    assert torch.equal(got["random"], torch.get_rng_state())
    there = torch.nn.Linear(3, 2)
    there.load_state_dict(got["m"])
    other = torch.optim.Adam(there.parameters())
    other.load_state_dict(got["o"])
    for m, o in ((model, optimizer), (there, other)):
        o.zero_grad()
        m(torch.ones(1, 3)).sum().backward()
        o.step()
    assert torch.equal(model.weight, there.weight) and torch.equal(model.bias, there.bias)
