"""Runs a program so that it is killed when its parent is: ``python leash.py PARENT COMMAND...``.

It is run as a program, by itself, and imports nothing of this package.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1


def main() -> None:
    """Becomes the command."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != int(sys.argv[1]):
            sys.exit(1)  # the parent has ended already
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
