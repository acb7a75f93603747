"""The programs of docs/python.md run as they are written."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT


def test_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
        programs = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    # Those that need nothing but this tree import the package themselves.
    whole = [program for program in programs if program.startswith("import hopmesh")]
    assert len(whole) == 2
    os.symlink(os.path.join(ROOT, "engine"), tmp_path / "engine")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"x": np.ones((5, 1433)), "edge_index": np.array([[0, 1], [1, 2]])}
    for program in whole:
        exec(program, names)
    assert names["scores"].shape == (5, 7)
