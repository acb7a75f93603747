"""The process that keeps the daemons of :func:`hopmesh.up`, and ends them with its parent.

It is run as a program, by itself, and imports nothing of this package. It reads orders as lines
of JSON. When its input ends, or its parent does, however that happens, it stops the daemons and
removes their folder. If it is killed itself, the system kills the daemons.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

_LOOK_SECONDS = 0.5
_STOP_SECONDS = 10.0
_SET_PARENT_DEATH_SIGNAL = 1


def _dies_with_this() -> Callable[[], None] | None:
    """Returns what a child runs so that it is killed when this process is."""
    if not sys.platform.startswith("linux"):
        return None
    control = ctypes.CDLL(None).prctl
    return lambda: control(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


class Keeper:
    """Starts and ends daemons. One thread uses it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.before = _dies_with_this()

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carries out one order."""
        name = order["name"]
        if order["do"] == "start":
            return {"pid": self.start(name, order["command"], order["token"])}
        if order["do"] == "kill":
            self.daemons[name].kill()
            self.daemons[name].wait()
        return {"code": self.daemons[name].poll()}

    def start(self, name: str, command: list[str], token: str) -> int:
        """Starts a daemon, whose log goes to a file, and gives it the token."""
        with open(os.path.join(self.folder, name + ".log"), "ab") as log:
            daemon = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, preexec_fn=self.before
            )
        self.daemons[name] = daemon
        assert daemon.stdin is not None
        try:
            daemon.stdin.write(token.encode() + b"\n")
            daemon.stdin.close()
        except BrokenPipeError:
            pass  # it has ended, which "look" tells
        return daemon.pid

    def end(self) -> None:
        """Stops all daemons and removes what they kept."""
        for daemon in self.daemons.values():
            if daemon.poll() is None:
                daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def main() -> None:
    """Reads orders until the input or the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    parent, keeper, rest = int(sys.argv[2]), Keeper(sys.argv[1]), b""
    try:
        while os.getppid() == parent:
            if not select.select([0], [], [], _LOOK_SECONDS)[0]:
                continue
            more = os.read(0, 1 << 16)
            if not more:
                break
            *orders, rest = (rest + more).split(b"\n")
            for order in map(json.loads, orders):
                try:
                    answer = keeper.obey(order)
                except OSError as error:
                    answer = {"error": str(error)}
                answer["number"] = order["number"]
                os.write(1, json.dumps(answer).encode() + b"\n")
    except BrokenPipeError:
        pass
    finally:
        keeper.end()


if __name__ == "__main__":
    main()
