"""Requests to one daemon's API, and what its answers mean."""

from __future__ import annotations

import errno
import json
import os
import urllib.parse
from collections.abc import Iterator, Mapping
from socket import socket as Socket
from typing import Any, BinaryIO

from hopmesh import secret, wire
from hopmesh.error import Error, Gone

# A node answers from its own state at once. A change may wait for a leader, and a stream has a
# line every two seconds.
READ_SECONDS = 10.0
CHANGE_SECONDS = 45.0
SILENT_SECONDS = 30.0


def default_address() -> str:
    """Returns where the daemon is that a script of a run belongs to.

    Elsewhere it returns where the ``hopmesh`` command looks for the daemon, too.
    """
    if os.environ.get("HOPMESH_RUN") and (address := os.environ.get("HOPMESH_API")):
        return address  # elsewhere HOPMESH_API is where an agent is to serve
    if address := os.environ.get("HOPMESH_ADDR"):
        return address
    folder = os.environ.get("HOPMESH_DATA_DIR")
    if not folder:
        shared = os.environ.get("XDG_DATA_HOME", "")
        if os.geteuid() == 0:
            folder = "/var/lib/hopmesh"
        elif os.path.isabs(shared):
            folder = os.path.join(shared, "hopmesh")
        else:
            folder = os.path.expanduser("~/.local/share/hopmesh")
    return "unix:" + os.path.join(folder, "hopmesh.sock")


class Client:
    """Talks to one daemon. Each request has a connection of its own, so threads may share it."""

    def __init__(self, address: str) -> None:
        """``address`` is ``unix:PATH``, ``HOST:PORT``, or the path of a socket or its folder."""
        self._target: str | tuple[str, int]
        path = address.removeprefix("unix:")
        if path != address or "/" in address or os.path.exists(address):
            if not path:
                raise Error(f"the address {address!r} names no socket: give unix:PATH or HOST:PORT")
            if os.path.isdir(path):
                path = os.path.join(path, "hopmesh.sock")
            self._target, self.address = os.path.abspath(path), "unix:" + os.path.abspath(path)
            return
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise Error(f"{address!r} is no address of a daemon: give unix:PATH or HOST:PORT")
        self._target, self.address = (host.strip("[]"), int(port)), address

    @property
    def socket(self) -> str | None:
        """The path of the unix socket; None over TCP."""
        return self._target if isinstance(self._target, str) else None

    def get(self, path: str) -> Any:
        """Returns what the daemon says of its own state."""
        return self._call("GET", path, None, READ_SECONDS)

    def post(self, path: str, document: Any = None) -> Any:
        """Asks for a change, and returns when it is done."""
        return self._call("POST", path, document, CHANGE_SECONDS)

    def delete(self, path: str) -> Any:
        """Asks for something to be removed, and returns when it is gone."""
        return self._call("DELETE", path, None, CHANGE_SECONDS)

    def stream(self, method: str, path: str, document: Any = None) -> Iterator[dict[str, Any]]:
        """Yields the lines of a long operation, the last one included.

        It raises an Error if the operation fails, or the daemon goes away or falls silent.
        """
        with self._send(method, path, document, SILENT_SECONDS) as answer:
            try:
                for line in answer.lines():
                    event = json.loads(line)
                    if failure := event.get("error"):
                        raise Error(failure["error"], failure["status"])
                    yield event
                    if event.keys() & {"end", "dataset", "done"}:
                        return
            except (wire.Cut, OSError, ValueError) as error:
                raise self._broken(error, SILENT_SECONDS) from None
        raise Error(f"the daemon at {self.address} went away before it was done")

    def fetch(self, path: str, document: Any, to: BinaryIO) -> None:
        """Writes a file that the daemon makes. If it fails, some may have been written."""
        with self._send("POST", path, document, None) as answer:
            try:
                for piece in answer.pieces():
                    to.write(piece)
            except (wire.Cut, ConnectionError) as error:
                raise self._broken(error, 0) from None
        if "hopmesh-end" in answer.trailers:
            return
        status, _, sentence = answer.trailers.get("hopmesh-error", "").partition(" ")
        if not status.isdigit():
            raise Error(f"the daemon at {self.address} went away before the file was whole")
        raise Error(urllib.parse.unquote(sentence), int(status))

    def upgrade(self, path: str, protocol: str) -> Socket:
        """Returns a connection on which both sides speak another protocol from now on."""
        headers = {"Connection": "Upgrade", "Upgrade": protocol}
        answer = self._send("GET", path, None, CHANGE_SECONDS, headers)
        if answer.status == 101 and answer.headers.get("upgrade", "").lower() == protocol.lower():
            return answer.take()
        answer.close()
        raise Error(
            f"the daemon at {self.address} does not speak {protocol}: it is of another version"
        )

    def _call(self, method: str, path: str, document: Any, seconds: float) -> Any:
        with self._send(method, path, document, seconds) as answer:
            try:
                return json.loads(answer.read())
            except (wire.Cut, OSError, ValueError) as error:
                raise self._broken(error, seconds) from None

    def _send(
        self,
        method: str,
        path: str,
        document: Any,
        seconds: float | None,
        more: Mapping[str, str] | None = None,
    ) -> wire.Response:
        """Returns a successful answer, whose body is to be read. ``more`` are headers."""
        target, keys = self._target, [""]
        if method != "GET" and not isinstance(target, str):
            if known := secret.find(*target):
                keys = [key for key, _ in known]
                target = (known[0][1], target[1])
        body = None if document is None else json.dumps(document).encode()
        while True:
            headers = {} if method == "GET" else {"Content-Type": "application/json"}
            headers |= more or {}
            if key := keys.pop(0):
                headers["Authorization"] = "Bearer " + key
            try:
                answer = wire.ask(target, method, path, headers, body, seconds)
                if answer.status in (101, 200):
                    return answer
                with answer:
                    refusal = self._refusal(answer)
            except (wire.Cut, OSError) as error:
                raise self._broken(error, seconds) from None
            if answer.status != 403 or not keys:
                raise refusal

    def _refusal(self, answer: wire.Response) -> Error:
        try:
            return Error(json.loads(answer.read())["error"], answer.status)
        except (ValueError, KeyError, TypeError):
            return Error(
                f"what answers at {self.address} does not know this request ({answer.reason}): "
                "it is no hopmesh daemon, or one of another version",
                answer.status,
            )

    def _broken(self, error: Exception, seconds: float | None) -> Error:
        """Says in a sentence why the daemon could not be reached, or did not finish."""
        where = f"the daemon at {self.address}"
        if isinstance(error, TimeoutError):
            return Error(f"{where} has said nothing for {seconds or wire.CONNECT_SECONDS:g} s")
        if isinstance(error, PermissionError):
            return Error(
                f"this user may not talk to {where}: use the user that runs `hopmesh agent`"
            )
        if isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ECONNREFUSED):
            return Gone(
                f"no daemon at {self.address}: start one with `hopmesh agent`, give "
                "hopmesh.connect another address, or try hopmesh.up() for a mesh of its own"
            )
        if isinstance(error, (wire.Cut, ConnectionError)):
            return Gone(f"{where} went away before it had answered")
        if isinstance(error, ValueError):
            return Error(f"the answer of {where} can't be read: {error}")
        return Error(f"talk to {where}: {error}")
