"""The one error that this package raises about meshes, daemons and files."""

from __future__ import annotations


class Error(Exception):
    """What went wrong, in one sentence.

    ``status`` is the HTTP status of a daemon's answer, or 0 if no daemon answered.
    """

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status
