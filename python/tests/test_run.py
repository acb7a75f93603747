"""`hopmesh run` starts a script beside daemons, and keeps it running."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import CORA, until

import hopmesh
from hopmesh import binary
from hopmesh.mesh import Mesh

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts", "beside.py")


def test_a_node_dies_meanwhile(tmp_path: Path) -> None:
    with hopmesh.up(nodes=3) as mesh:
        mesh.import_("cora", CORA)
        command = [binary.find(), "run", "--addr", mesh.address, "--json", "--nodes", "all"]
        run = subprocess.Popen(
            [*command, SCRIPT, str(tmp_path), "3"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        def first() -> bool:
            return len(list(tmp_path.glob("n*.2"))) == 3

        until(
            "all wait in the second epoch, or it has ended",
            lambda: first() or run.poll() is not None,
        )
        assert first(), run.communicate()
        mesh.kill("n3")
        (tmp_path / "go").touch()
        out, notes = run.communicate(timeout=120)
        assert run.returncode == 0, notes
        assert json.loads(out)["nodes"] and len(json.loads(out)["run"]) == 16
        lines = notes.splitlines()
        assert "n3: its daemon is gone" in lines
        for node in ("n1", "n2"):
            assert f"{node}: starts again from the last checkpoint" in lines
            assert f"{node}: done" in lines
        assert any("of 2 3 after {'epoch': 1}" in line for line in lines), notes
        (job,) = mesh.jobs.values()
        assert job.state == "done" and [e["loss"] for e in job.history] == [140, 140, 140]
        # The folders of scripts are gone with them.
        for node in ("n1", "n2"):
            held = Path(mesh._folder, node, "scripts")
            assert not held.exists() or not list(held.iterdir())


def test_a_script_that_fails(
    mesh: Mesh, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "fails.py"
    script.write_text("import sys\nprint(sys.argv[1:])\nsys.exit('it went wrong')\n")
    seen = Mesh(mesh._client)  # as it is seen by whoever has not started it
    with pytest.raises(hopmesh.Error, match="the script beside n[123] ended with exit code 1: it"):
        seen.run(script, ["--a", "b c"])
    assert "['--a', 'b c']" in capsys.readouterr().out
    script.write_text("print('fine')\n")
    seen.run(script)
    assert sorted(capsys.readouterr().out.split()) == sorted("n1: fine n2: fine n3: fine".split())
    with pytest.raises(hopmesh.Error, match="can't be read"):
        seen.run(tmp_path / "none.py")
