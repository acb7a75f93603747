"""Finds the ``hopmesh`` program, and asks it what needs no daemon."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Any

from hopmesh.error import Error


def find() -> str:
    """Returns the path of the program that came with this package, or of one on the path.

    The environment variable PYTHON_HOPMESH names another.
    """
    if own := os.environ.get("PYTHON_HOPMESH"):
        if not os.access(own, os.X_OK):
            raise Error(f"PYTHON_HOPMESH is {own}, which is no program: name another or unset it")
        return os.path.abspath(own)
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    if (user := f"{os.name}_user") in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", user))
    for folder in folders:
        path = os.path.join(folder, "hopmesh")
        if os.access(path, os.X_OK):
            return path
    if found := shutil.which("hopmesh"):
        return found
    raise Error(
        "the program hopmesh is not here: install a wheel made by `make wheel`, put it on the "
        "path, or name it in PYTHON_HOPMESH"
    )


def options(of: str = "") -> list[dict[str, Any]]:
    """Lists the settings that :meth:`Mesh.train` takes, of all or of one model or strategy.

    Each has ``key``, ``values``, ``default``, ``applies`` and ``help``.
    """
    command = [find(), "train", "options", "--json", *([of] if of else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise Error(done.stderr.strip().removeprefix("hopmesh: "))
    listed: list[dict[str, Any]] = json.loads(done.stdout)
    return listed
