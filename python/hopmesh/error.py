"""The errors that this package raises."""

from __future__ import annotations

AGAIN = 75


class Error(Exception):
    """What went wrong, in one sentence.

    ``status`` is the HTTP status of a daemon's answer, or 0 if no daemon answered.
    """

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


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
