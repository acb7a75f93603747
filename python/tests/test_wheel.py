"""The wheel has all that is needed beside numpy."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import hopmesh_wheel
import numpy as np
import pytest

from hopmesh import binary

USE = """
import sys, hopmesh
with hopmesh.up(nodes=1) as mesh:
    mesh.generate("g", kind="sbm", vertices=300, edges=2000, features=8, classes=3)
    job = mesh.train("g", epochs=3).wait()
    graph = mesh.load_dataset("g")
    print(job.model().predict(graph.x, graph.edge_index).shape, job.predictions().classes.shape)
try:
    job.frame()
except hopmesh.Error as error:
    print(error)
print(hopmesh.__version__, sorted({"pandas", "torch", "tqdm"} & set(sys.modules)))
"""


def test_numpy_is_enough(tmp_path: Path) -> None:
    name = hopmesh_wheel.make(binary.find(), "v1.2.3", str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert "hopmesh/py.typed" in wheel.namelist() and wheel.testzip() is None
    here = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", here], check=True)
    python = str(here / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", python]
    options = ["--no-index", "--no-deps", str(tmp_path / name)]
    subprocess.run([*pip, "install", *options], check=True)
    packages = next((here / "lib").iterdir()) / "site-packages"
    numpy = Path(np.__file__).parent
    for folder in (numpy, numpy.parent / "numpy.libs"):
        os.symlink(folder, packages / folder.name)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("HOPMESH_", "PYTHON"))}
    use = [python, "-c", USE]
    done = subprocess.run(use, env=plain, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "(300, 3) (300,)",
        "pandas is not here: pip install pandas",
        "1.2.3 []",
    ], done.stderr
    said = subprocess.run([here / "bin" / "hopmesh", "version"], capture_output=True, check=True)
    assert said.stdout.startswith(b"hopmesh ")


def test_versions() -> None:
    for said, number in {
        "v1.2.3": "1.2.3",
        "1.2.3": "1.2.3",
        "1.2.0rc1": "1.2.0rc1",
        "v1.2.3-4-gabc123-dirty": "1.2.3+4.gabc123.dirty",
        "ac65262-dirty": "0+ac65262.dirty",
        "dev": "0+dev",
    }.items():
        assert hopmesh_wheel.version(said) == number


def test_only_static_programs_for_linux(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is not static"):
        hopmesh_wheel.machine(os.path.realpath(sys.executable))
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n" + "\n" * 100)
    with pytest.raises(SystemExit, match="is no 64-bit program for Linux"):
        hopmesh_wheel.machine(str(script))
