"""Graphs that are imported by their names."""

from __future__ import annotations

from typing import Any

import pytest

import hopmesh
from hopmesh.mesh import Mesh

pytestmark = pytest.mark.quick


def test_by_name(beside: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(beside, "_import", lambda *request: asked.append(request))
    beside.import_("ogbn-arxiv", shards=8)
    beside.import_("ogbn-products", "/data/products")
    (options, paths), (_, given) = asked
    assert paths == ["https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"]
    assert options["undirected"] and options["shards"] == 8
    assert given == ["/data/products"]


def test_where_the_network_forbids_it(beside: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*request: Any) -> None:
        raise hopmesh.Error("snap.stanford.edu can't be reached", 503)

    monkeypatch.setattr(beside, "_import", refuse)
    with pytest.raises(hopmesh.Error, match="bring https://snap.stanford.edu/.*/products.zip to"):
        beside.import_("ogbn-products")
