"""The programs of docs/python.md run as they are written."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the programs that can run in this folder: they import the package themselves."""
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
        found: list[str] = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    # Others have the name of their file in the first line.
    for program in found:
        if name := re.match(r"# (\w+\.py)\n", program):
            (tmp_path / name[1]).write_text(program, encoding="utf-8")
    os.symlink(os.path.join(ROOT, "engine"), tmp_path / "engine")
    monkeypatch.chdir(tmp_path)
    return [p for p in found if p.startswith(("import hopmesh", "import os"))]


def test_programs(programs: list[str]) -> None:
    whole = [program for program in programs if "mesh.run(" not in program]
    assert len(whole) == 4
    left: dict[str, Any] = {}
    for program in whole:
        edges = np.array([[0, 1], [1, 2]])
        names: dict[str, Any] = {"x": np.ones((5, 1433)), "edge_index": edges}
        exec(program, names)
        left |= names
    assert left["scores"].shape == (5, 7) and left["said"].shape == (65, 3)
    assert left["relations"] == ["writes", "cites", "rev-writes"]
    assert np.allclose(left["logits"], left["same"], rtol=1e-4, atol=1e-5)


@pytest.mark.torch
def test_your_own_model(programs: list[str]) -> None:
    pytest.importorskip("torch")
    (program,) = [program for program in programs if "mesh.run(" in program]
    names: dict[str, Any] = {}
    exec(program, names)
    assert [epoch["epoch"] for epoch in names["epochs"]] == list(range(1, 21))
    assert names["epochs"][-1]["loss"] < 0.5 * names["epochs"][0]["loss"]
