"""Graphs that are known by their names, where those who made them serve them."""

from __future__ import annotations

# The Open Graph Benchmark's archives that are read as they are. Their edges are listed once.
FROM = "https://snap.stanford.edu/ogb/data/nodeproppred/"
OGB = {"ogbn-arxiv": "arxiv.zip", "ogbn-products": "products.zip"}


def address(name: str) -> str | None:
    """Returns where the archive of a graph is."""
    archive = OGB.get(name)
    return FROM + archive if archive else None


def bring(name: str, why: object) -> str:
    """Says what to do where the daemon did not reach it."""
    return (
        f"{why}; if its network allows no other way, bring {address(name)} to the daemon's "
        f"machine and give its path, with undirected=True"
    )
