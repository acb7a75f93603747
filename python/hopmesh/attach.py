"""The connection on which a program asks its daemon, and the memory that both share."""

from __future__ import annotations

import json
import math
import mmap
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmesh.error import Again, Error, Gone

PROTOCOL = "hopmesh-program/1"
VERSION = 1
_LONGEST = 1 << 20
# How much is read at once: few answers have more.
_PIECE = 1 << 13
_ALIGNED = 64
_MOST_DESCRIPTORS = 16


_ENCODER = json.JSONEncoder(allow_nan=False)


class _Garbage(Exception):
    """What the daemon sent is not of the protocol."""


class Region(NamedTuple):
    """A part of the shared memory, as messages name it."""

    memory: int
    offset: int
    bytes: int

    @classmethod
    def of(cls, value: Any) -> Region:
        """Reads a region out of a message."""
        if not isinstance(value, dict):
            raise _Garbage("a region is missing")
        return cls(whole(value, "memory"), whole(value, "offset"), whole(value, "bytes"))

    def message(self) -> dict[str, int]:
        """Returns the region as messages have it."""
        return {"memory": self.memory, "offset": self.offset, "bytes": self.bytes}

    def first(self, size: int) -> Region:
        """Returns the part of it that begins where it does."""
        assert size <= self.bytes
        return Region(self.memory, self.offset, size)


class Connection:
    """Asks questions, each of which has one answer. One thread uses it."""

    def __init__(self, sock: socket.socket, where: str) -> None:
        self._socket, self._where = sock, where
        self._memories: dict[int, mmap.mmap] = {}
        self._numbers: set[int] = set()  # of all memories so far
        self._descriptors: list[int] = []
        self._unread = b""
        # Why nothing can be asked any more.
        self._over = ""
        # Whether the last answer was Again: only a greeting may follow.
        self.interrupted = False
        # While it talks: if that is interrupted, the next answer belongs to another question.
        self._cut = f"a wait for the daemon at {where} was interrupted: make another loader"
        # What is to be the answer that was not read yet, and the last one that was read late.
        self._expected: Mapping[str, Any] | None = None
        self.late: dict[str, Any] | None = None

    def close(self) -> None:
        """Ends the connection. Arrays of the shared memory stay readable while they are held."""
        self._over = self._over or "the connection to the daemon is closed: make another loader"
        self._expected = None
        self._memories.clear()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
        self._socket.close()

    @property
    def open(self) -> bool:
        """Reports whether questions can be asked."""
        return not self._over

    def ask(self, kind: str, *answers: str, **question: Any) -> dict[str, Any]:
        """Asks, and returns the answer, which is of one of some types.

        It raises Again where the job goes on in a new generation, and an Error where it failed
        or the daemon went away.
        """
        self.settle()
        self._put(kind, question)
        return self._hear(kind, answers)

    def tell(self, expected: Mapping[str, Any]) -> None:
        """Asks for what comes next where that is known already, and does not wait for it."""
        self.settle()
        self._put("next", {})
        self._over, self._expected = "", expected

    def settle(self) -> None:
        """Waits for the answer to what was said, as :meth:`ask` does, and keeps it in late.

        :meth:`ask` does so first. Until then nobody knows whether the job has to go on in a new
        generation instead.
        """
        if (expected := self._expected) is None:
            return
        self._expected = None
        answer = self._hear("next", (expected["type"],))
        if any(answer.get(name) != value for name, value in expected.items()):
            raise self._broken(_Garbage("a batch is another than was announced"))
        self.late = answer

    def _put(self, kind: str, question: Mapping[str, Any]) -> None:
        if self._over:
            raise Error(self._over)
        if self.interrupted and kind != "hello":
            raise Error("the job goes on from its last checkpoint: make the loader again")
        self.interrupted = False
        self._over = self._cut
        try:
            self._send({"type": kind, **question})
        except OSError as error:
            raise self._broken(error) from None

    def _hear(self, kind: str, answers: tuple[str, ...]) -> dict[str, Any]:
        self._over = self._cut
        try:
            while (answer := self._receive())["type"] == "memory":
                self._map(answer)
        except (_Garbage, OSError) as error:
            raise self._broken(error) from None
        if answer["type"] == "failed":
            self._over = str(answer.get("error") or "the job failed")
            self.close()
            raise Error(self._over)
        if answer["type"] == "again":
            self._over, self.interrupted = "", True
            raise Again(str(answer.get("why") or "its nodes changed"))
        if answer["type"] not in answers:
            raise self._broken(_Garbage(f"{kind!r} was answered by {answer['type']!r}"))
        self._over = ""
        return answer

    def array(self, region: Region, dtype: str, *shape: int) -> NDArray[Any]:
        """Returns a region as an array that lies in the shared memory."""
        if self._over:
            raise Error(self._over)
        memory = self._memories.get(region.memory)
        kind = np.dtype(dtype)
        count = math.prod(shape)
        if count * kind.itemsize != region.bytes:
            raise self._broken(_Garbage(f"an array of {shape} has {region.bytes} bytes"))
        if region.bytes == 0:
            return np.zeros(shape, kind)
        outside = memory is None or region.offset + region.bytes > len(memory)
        if memory is None or outside or region.offset % _ALIGNED != 0:
            raise self._broken(_Garbage("a region lies outside of the shared memory"))
        return np.frombuffer(memory, kind, count, region.offset).reshape(shape)

    def read(self, answer: Mapping[str, Any]) -> Answer:
        """Returns an answer, to take checked fields from it."""
        return Answer(self, answer)

    def _send(self, message: Mapping[str, Any]) -> None:
        text = _ENCODER.encode(message).encode()
        self._socket.sendall(len(text).to_bytes(4, "little") + text)

    def _receive(self) -> dict[str, Any]:
        self._fill(4)
        size = int.from_bytes(self._unread[:4], "little")
        if not 0 < size <= _LONGEST:
            raise _Garbage(f"a message has {size} bytes")
        self._fill(4 + size)
        text, self._unread = self._unread[4 : 4 + size], self._unread[4 + size :]
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            raise _Garbage("a message is no JSON") from None
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise _Garbage("a message has no type")
        given, due = len(self._descriptors), int(message["type"] == "memory")
        if given < due or (given > due and not self._unread):  # else those of later messages
            raise _Garbage("a message of type memory has one file descriptor, and others none")
        return message

    def _fill(self, size: int) -> None:
        """Reads until so many bytes are unread, and keeps the descriptors that come with them.

        They come no later than the message that they belong to, and in that order.
        """
        while len(self._unread) < size:
            piece, descriptors, flags, _ = socket.recv_fds(
                self._socket, max(size, _PIECE), _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
            self._descriptors += descriptors
            if flags & socket.MSG_CTRUNC:
                raise _Garbage("too many file descriptors came at once")
            if not piece:
                raise ConnectionError
            self._unread += piece

    def _map(self, message: Mapping[str, Any]) -> None:
        descriptor = self._descriptors.pop(0)
        try:
            number, size = whole(message, "id"), whole(message, "bytes")
            # Whoever reads behind the end of the file is killed.
            if size == 0 or os.fstat(descriptor).st_size < size:
                raise _Garbage("a shared memory is smaller than announced")
            if number in self._numbers:
                raise _Garbage("the number of a shared memory was used before")
            self._memories[number] = mmap.mmap(descriptor, size)
            self._numbers.add(number)
        finally:
            os.close(descriptor)
        drops = message.get("drops") or []
        if not isinstance(drops, list):
            raise _Garbage("drops is no list")
        for old in drops:
            self._memories.pop(old, None)  # it is unmapped when no array holds it

    def _broken(self, error: Exception) -> Error:
        """Ends the connection, and says why in a sentence."""
        if isinstance(error, _Garbage):
            self._over = f"the daemon at {self._where} sent something wrong: {error}"
            self.close()
            return Error(self._over)
        self._over = f"the daemon at {self._where} went away"
        self.close()
        return Gone(self._over)


class Answer:
    """An answer whose fields are checked when they are read."""

    def __init__(self, connection: Connection, fields: Mapping[str, Any]) -> None:
        self._connection, self._fields = connection, fields

    def number(self, name: str) -> int:
        """Returns a whole number of at least 0."""
        try:
            return whole(self._fields, name)
        except _Garbage as error:
            raise self._connection._broken(error) from None

    def numbers(self, name: str, count: int) -> list[int]:
        """Returns a list of whole numbers."""
        listed = self._fields.get(name)
        if not isinstance(listed, list) or len(listed) != count:
            raise self.wrong(f"{name} is no list of {count} numbers")
        for value in listed:
            if type(value) is not int or not 0 <= value < 1 << 62:
                raise self.wrong(f"{name} is no whole number")
        return listed

    def real(self, name: str) -> float:
        """Returns a number."""
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(f"{name} is no number")
        return float(value)

    def flag(self, name: str) -> bool:
        """Reports whether a field is true. One that is missing is false."""
        value = self._fields.get(name, False)
        if not isinstance(value, bool):
            raise self.wrong(f"{name} is neither true nor false")
        return value

    def word(self, name: str, known: Sequence[str]) -> str:
        """Returns one of some words. One that is missing is ""."""
        value = self._fields.get(name, "")
        if value != "" and value not in known:
            raise self.wrong(f"{name} is no word that this package knows")
        return str(value)

    def region(self, name: str) -> Region:
        """Returns a part of the shared memory."""
        try:
            return Region.of(self._fields.get(name))
        except _Garbage as error:
            raise self._connection._broken(error) from None

    def has(self, name: str) -> bool:
        """Reports whether a field is there and is not null."""
        return self._fields.get(name) is not None

    def wrong(self, what: str) -> Error:
        """Ends the connection, and returns the error of an answer that contradicts itself."""
        return self._connection._broken(_Garbage(what))


def whole(fields: Mapping[str, Any], name: str) -> int:
    """Returns a field that is a whole number of at least 0."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise _Garbage(f"{name} is no whole number")
    return value
