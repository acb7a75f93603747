"""The notebooks of docs/tutorials run as they are written, and are stored whole."""

from __future__ import annotations

import base64
import copy
import glob
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import hopmesh

TUTORIALS = os.path.join(ROOT, "docs", "tutorials")
NOTEBOOKS = sorted(glob.glob("*.ipynb", root_dir=TUTORIALS))
LARGEST_PICTURE = 60_000
# Cells run one after the other in one process. What each prints ends with a zero byte.
RUN = """
import json, sys
names = {"__name__": "__main__"}
for number, source in enumerate(json.load(sys.stdin), 1):
    exec(compile(source, f"<code cell {number}>", "exec"), names)
    print(end="\\0", flush=True)
"""
KEYS = {
    "markdown": {"cell_type", "id", "metadata", "source"},
    "code": {"cell_type", "execution_count", "id", "metadata", "outputs", "source"},
    "stream": {"name", "output_type", "text"},
    "display_data": {"data", "metadata", "output_type"},
}


def load(name: str) -> dict[str, Any]:
    with open(os.path.join(TUTORIALS, name), encoding="utf-8") as file:
        book: dict[str, Any] = json.load(file)
    return book


def code(book: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def printed(cell: dict[str, Any]) -> str:
    return "".join(line for o in cell["outputs"] for line in o.get("text", []))


def faults(book: dict[str, Any]) -> Iterator[str]:
    """Yields what is wrong with the form of a notebook, by the schema of nbformat 4.5."""
    if book.keys() != {"cells", "metadata", "nbformat", "nbformat_minor"}:
        yield f"the keys of the notebook are {sorted(book)}"
    if (book.get("nbformat"), book.get("nbformat_minor")) != (4, 5):
        yield "the format is not 4.5"
    kernel = book["metadata"].get("kernelspec", {})
    if not (kernel.get("name") == "python3" and kernel.get("display_name")):
        yield "no kernel is named"
    ids = [cell.get("id", "") for cell in book["cells"]]
    if len(set(ids)) < len(ids) or not all(re.fullmatch(r"[\w-]{1,64}", id) for id in ids):
        yield f"the ids of cells are {ids}"
    if [cell["execution_count"] for cell in code(book)] != list(range(1, len(code(book)) + 1)):
        yield "the cells were not run in their order"
    for cell in book["cells"]:
        where = cell.get("id")
        if cell.keys() != KEYS.get(cell["cell_type"]) or cell["metadata"] != {}:
            yield f"the keys of cell {where} are {sorted(cell)}"
        if not lines(cell["source"]):
            yield f"the source of cell {where} is no list of lines"
        for output in cell.get("outputs", []):
            if output.keys() != KEYS.get(output["output_type"]):
                yield f"an output of cell {where} is {output['output_type']}: {sorted(output)}"
            elif output["output_type"] == "stream" and not (
                output["name"] == "stdout" and lines(output["text"])
            ):
                yield f"what cell {where} prints is no list of lines"


def lines(text: Any) -> bool:
    """Reports whether a text is split after each of its newlines."""
    return isinstance(text, list) and text == "".join(text).splitlines(keepends=True) != []


def test_linked() -> None:
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
        assert sorted(re.findall(r"\(tutorials/([\w-]+\.ipynb)\)", file.read())) == NOTEBOOKS != []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_form(name: str) -> None:
    book = load(name)
    assert list(faults(book)) == []
    for broken in ("nbformat", "metadata", "id", "source", "execution_count", "outputs"):
        other = copy.deepcopy(book)
        if broken == "nbformat":
            other["nbformat_minor"] = 4
        elif broken == "metadata":
            other["metadata"] = {}
        elif broken == "outputs":
            code(other)[0]["outputs"][0]["output_type"] = "error"
        else:
            code(other)[0][broken] = code(other)[1][broken] if broken == "id" else "2"
        assert list(faults(other)), broken


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_outputs(name: str) -> None:
    book = load(name)
    assert len(book["cells"]) <= 14 and all(cell["outputs"] for cell in code(book))
    for cell in code(book):
        text = printed(cell)
        # Nothing of the machine that has run it.
        assert not re.search(r"(?<![\w.])/[A-Za-z]\w*/|Traceback|Warning", text), text
    data = [output["data"] for cell in code(book) for output in cell["outputs"] if "data" in output]
    pictures = [base64.b64decode(d["image/png"], validate=False) for d in data]
    assert pictures and all(picture.startswith(b"\x89PNG\r\n") for picture in pictures)
    assert max(map(len, pictures)) < LARGEST_PICTURE


@pytest.mark.torch
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs(name: str, tmp_path: Path) -> None:
    for module in ("torch", "torch_geometric", "matplotlib", "pandas"):
        pytest.importorskip(module)
    book = load(name)
    here = tmp_path / "docs" / "tutorials"  # where a notebook runs: in its own folder
    here.mkdir(parents=True)
    os.symlink(os.path.join(ROOT, "engine"), tmp_path / "engine")
    package = os.path.dirname(os.path.dirname(os.path.abspath(hopmesh.__file__)))
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(["".join(cell["source"]) for cell in code(book)]),
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": package},
        cwd=here,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *said, rest = done.stdout.split("\0")
    assert rest == "" and len(said) == len(code(book))
    for cell, now in zip(code(book), said, strict=True):
        assert last(now) == last(printed(cell)), f"cell {cell['id']}: store what it prints now"


def last(text: str) -> str:
    """Returns the last line of a text without its numbers, which differ from run to run."""
    return " ".join(re.sub(r"\d+(\.\d+)?", "0", text.splitlines()[-1]).split())
