"""PyG's own loaders on a dataset of the mesh."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CORA

import hopmesh

torch: Any = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
pytestmark = pytest.mark.torch
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "examples", "sage.py")


@pytest.fixture(scope="module")
def cora() -> Any:
    """Three nodes, of which this process talks to the second."""
    with hopmesh.up(nodes=3) as mesh:
        mesh.import_("cora", CORA, shards=6)
        yield mesh.at("n2")


def test_batches(cora: Any) -> None:
    from torch_geometric.loader import NeighborLoader

    store, graph = data = cora.pyg("cora")
    whole = cora.load_dataset("cora")
    edges = set(zip(*whole.edge_index.tolist(), strict=True))
    degrees = np.bincount(whole.edge_index[1], minlength=2708)
    assert np.array_equal(data.y.numpy(), whole.y[data.ids])
    for part in ("train", "val", "test"):
        mask = getattr(whole, part + "_mask")[data.ids]
        assert np.array_equal(getattr(data, part + "_mask").numpy(), mask) and mask.any()
    assert (data.num_nodes, data.num_features, data.num_classes) == (2708, 1433, 7)
    assert data.num_edges == len(edges)
    fanout = [4, 3]
    for stores in (data, (store, graph)):
        loader = NeighborLoader(
            stores, num_neighbors=fanout, input_nodes=data.val_mask, batch_size=96,
            neighbor_sampler=cora.sampler("cora", fanout),
        )  # fmt: skip
        seeds = []
        for batch in loader:
            ids = data.ids[batch.n_id]
            assert batch.validate() and len(set(ids.tolist())) == batch.num_nodes == len(ids)
            assert np.array_equal(batch.x.numpy(), whole.x[ids])
            assert np.array_equal(batch.y.numpy(), whole.y[ids])
            assert torch.equal(batch.input_id, batch.n_id[: batch.batch_size])
            seeds += ids[: batch.batch_size].tolist()
            assert sum(batch.num_sampled_nodes) == len(ids)
            assert sum(batch.num_sampled_edges) == batch.num_edges
            drawn = batch.edge_index.numpy()
            assert set(zip(*ids[drawn].tolist(), strict=True)) <= edges
            assert len(np.unique(drawn, axis=1).T) == batch.num_edges
            # A vertex has as many neighbours as there are, up to the hop's fan-out.
            first, count = 0, np.bincount(drawn[1], minlength=len(ids))
            for reached, most in zip(batch.num_sampled_nodes, fanout, strict=False):
                span = slice(first, first + reached)
                assert np.array_equal(count[span], np.minimum(degrees[ids[span]], most))
                first += reached
            assert not count[first:].any()
        assert sorted(seeds) == np.flatnonzero(whole.val_mask).tolist()
    # Another epoch draws others.
    assert len(list(loader)) == 6 and next(iter(loader)).edge_index.shape != batch.edge_index.shape
    every = NeighborLoader(
        data, num_neighbors=[-1], input_nodes=torch.tensor([7, 3]), batch_size=2,
        neighbor_sampler=cora.sampler("cora", -1),
    )  # fmt: skip
    (batch,) = every
    assert batch.num_edges == degrees[data.ids[[7, 3]]].sum()


def test_stores(cora: Any) -> None:
    store, graph = data = cora.pyg("cora")
    whole = cora.load_dataset("cora")
    index = torch.tensor([5, 2, 5, 2707])
    rows = store.get_tensor(None, "x", index)
    assert np.array_equal(rows.numpy(), whole.x[data.ids[index]])
    assert store.get_tensor(None, "x", None).shape == (2708, 1433)
    assert store.get_tensor(None, "y", 3).tolist() == [whole.y[data.ids[3]]]
    assert store.get_tensor(None, "y", slice(2, 5)).shape == (3,)
    assert store.get_tensor(None, "train_mask", slice(0, 4)).dtype == torch.bool
    assert store.get_tensor_size(group_name=None, attr_name="x", index=None) == (2708, 1433)
    wrong: list[tuple[Any, str]] = [
        (
            lambda: graph.get_edge_index(*graph.get_all_edge_attrs()),
            r"neighbor_sampler=mesh.sampler\('cora', num_neighbors\)",
        ),
        (lambda: store.put_tensor(rows, None, "x", None), "is read-only: import another"),
        (lambda: cora.sampler("cora", [3, 0]), "and -1 for all"),
        (lambda: cora.pyg("none"), "none"),
    ]
    for ask, sentence in wrong:
        with pytest.raises(hopmesh.Error, match=sentence):
            ask()


def test_a_loader_in_another_process(cora: Any) -> None:
    from torch_geometric.loader import NeighborLoader

    data = cora.pyg("cora")
    loader = NeighborLoader(
        data, num_neighbors=[3], input_nodes=data.train_mask, num_workers=1,
        neighbor_sampler=cora.sampler("cora", [3]),
    )  # fmt: skip
    with pytest.raises(Exception, match="leave the loader's num_workers at 0"):
        list(loader)


def test_nodes_come_and_go() -> None:
    with hopmesh.up(nodes=3) as mesh:
        mesh.import_("cora", CORA, shards=6)
        data = mesh.pyg("cora")
        whole = mesh.load_dataset("cora")
        ids = data.ids
        store, _ = data
        sampler = mesh.sampler("cora", [3, 3])
        mesh.kill("n3")
        from torch_geometric.sampler import NodeSamplerInput

        for seed in range(0, 2708, 300):
            out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([seed])))
            x = store.get_tensor(None, "x", out.node)
            assert np.array_equal(x.numpy(), whole.x[ids[out.node]])


def test_the_stock_example_with_two_other_lines(cora: Any, tmp_path: Path) -> None:
    stock = Path(EXAMPLE).read_text()
    ours = stock.replace(
        'data = Planetoid("data", name="Cora")[0]',
        'import hopmesh; mesh = hopmesh.connect(); data = mesh.pyg("cora")',
    ).replace(
        "batch_size=32, shuffle=True)",
        'batch_size=32, shuffle=True, neighbor_sampler=mesh.sampler("cora", [10, 10]))',
    )
    lines = difflib.ndiff(stock.splitlines(), ours.splitlines())
    assert sum(line.startswith("+ ") for line in lines) == 2
    script = tmp_path / "ours.py"
    script.write_text(ours)
    folder = os.path.dirname(os.path.dirname(hopmesh.__file__))
    run = {**os.environ, "HOPMESH_ADDR": cora.address, "PYTHONPATH": folder}
    cora._part._put_aside()  # a node does one job at a time
    done = subprocess.run(
        [sys.executable, str(script)], env=run, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [re.fullmatch(r"Epoch \d+: loss (.*), train accuracy (.*)", line)
             for line in done.stdout.splitlines()]  # fmt: skip
    losses = [float(match[1]) for match in found if match]
    assert len(losses) == 12 and losses[-1] < 0.3 * losses[0]


def test_what_stays_behind_is_said(cora: Any) -> None:
    n = np.arange(30)
    described: dict[str, Any] = {"edge_attr": np.ones((30, 2), np.float32), "edge_features": "all"}
    masks = {"train_mask": n < 10, "val_mask": n > 20, "test_mask": n == 15}
    edges = np.stack([n, (n + 1) % 30])
    made = cora.import_("said", edge_index=edges, y=n % 2, x=np.eye(30), **masks, **described)
    with pytest.warns(UserWarning, match="edges of said have features, which PyG's stores"):
        cora.pyg("said")
    made.remove(force=True)
