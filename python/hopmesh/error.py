"""The errors that this package raises."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

# The exit codes of a script of a run that is to start again, and of one whose daemon is gone.
AGAIN, GONE = 75, 69


class Error(Exception):
    """What went wrong, in one sentence.

    ``status`` is the HTTP status of a daemon's answer, or 0 if no daemon answered.
    """

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


class Gone(Error):
    """The daemon went away.

    A script of a run need not catch it: it ends the process with code 69 and the sentence, and
    the run goes on with the other nodes.
    """


class Again(SystemExit):
    """The nodes of a job have changed, and all go on together from the last checkpoint.

    What was computed since is void. A script of a run does not catch it: it ends the process
    with code 75, and the run starts the script again. Elsewhere, catch it and do as at the start:
    make the loader, and take up what ``mesh.restore()`` returns.
    """

    def __init__(self, why: str) -> None:
        super().__init__(AGAIN)
        self.why = why

    def __str__(self) -> str:
        return f"the job goes on from its last checkpoint: {self.why}"


def end_in_a_sentence() -> None:
    """Has a script of a run whose daemon is gone end by one sentence and GONE."""
    if sys.excepthook is not _sentence:
        _before.append(sys.excepthook)
        sys.excepthook = _sentence


_before: list[Any] = []


def _sentence(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, Gone):
        _before[-1](kind, error, trace)
        return
    print(error, file=sys.stderr, flush=True)
    raise SystemExit(GONE)
