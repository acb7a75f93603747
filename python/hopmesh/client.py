"""Requests to one daemon's API, and what its answers mean."""

from __future__ import annotations

import errno
import json
import os
import urllib.parse
from collections.abc import Iterator, Mapping
from socket import socket as Socket
from typing import Any, BinaryIO

from hopmesh import secret, tls, wire
from hopmesh.error import Error, Gone

# A node answers from its own state at once. A change may wait for a leader, and a stream has a
# line every two seconds.
READ_SECONDS = 10.0
CHANGE_SECONDS = 45.0
SILENT_SECONDS = 30.0
_TLS = "https://"
# What Go's server says to whoever speaks no TLS with it.
_TO_TLS = b"Client sent an HTTP request to an HTTPS server"


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

    def __init__(
        self,
        address: str,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
    ) -> None:
        """``address`` is ``unix:PATH``, ``HOST:PORT``, or the path of a socket or its folder.

        ``https://HOST:PORT`` needs a token, and may have the file of a CA certificate.
        """
        self._target: str | tuple[str, int]
        self._trust: tls.Trust | None = None
        if address.startswith(_TLS):
            if not (token := token or _known_token()):
                raise Error(
                    f"the API at {address} needs a token: give token= with what `hopmesh api "
                    "token create` prints"
                )
            host, port = _host_port(address.removeprefix(_TLS), address, f"{_TLS}HOST:PORT")
            self._target, self.address = (host, port), address
            self._trust = tls.Trust(token, ca)
            return
        if token is not None or ca is not None:
            raise Error(
                "a token is shown only over TLS, so token= and ca= go with "
                f"{_TLS}HOST:PORT, and not with {address}"
            )
        path = address.removeprefix("unix:")
        if path != address or "/" in address or os.path.exists(address):
            if not path:
                raise Error(f"the address {address!r} names no socket: give unix:PATH or HOST:PORT")
            if os.path.isdir(path):
                path = os.path.join(path, "hopmesh.sock")
            self._target, self.address = os.path.abspath(path), "unix:" + os.path.abspath(path)
            return
        self._target = _host_port(address, address, "unix:PATH or HOST:PORT")
        self.address = address

    @property
    def elsewhere(self) -> bool:
        """Reports whether the daemon may be on another machine, with files of its own."""
        return self._trust is not None

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
            pieces = answer.pieces()
            while True:
                try:
                    piece = next(pieces, None)
                except (wire.Cut, OSError) as error:
                    raise self._broken(error, None) from None
                if piece is None:
                    break
                to.write(piece)
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
        target, keys = self._target, [self._trust.token if self._trust else ""]
        if self._trust is None and method != "GET" and not isinstance(target, str):
            if known := secret.find(*target):
                keys = [key for key, _ in known]
                target = (known[0][1], target[1])
        body = None if document is None else json.dumps(document, default=plain).encode()
        while True:
            headers = {} if method == "GET" else {"Content-Type": "application/json"}
            headers |= more or {}
            if key := keys.pop(0):
                headers["Authorization"] = "Bearer " + key
            try:
                answer = wire.ask(target, method, path, headers, body, seconds, self._trust)
                if answer.status in (101, 200):
                    return answer
                with answer:
                    refusal = self._refusal(answer)
            except (wire.Cut, OSError, tls.Foreign) as error:
                raise self._broken(error, seconds) from None
            if answer.status != 403 or not keys:
                raise refusal

    def _refusal(self, answer: wire.Response) -> Error:
        text = answer.read()
        try:
            return Error(json.loads(text)["error"], answer.status)
        except (ValueError, KeyError, TypeError):
            if self._trust is None and text.startswith(_TO_TLS):
                return Error(
                    f"the daemon at {self.address} serves its API over TLS there: give "
                    f"'{_TLS}{self.address}' and token=",
                    answer.status,
                )
            return Error(
                f"what answers at {self.address} does not know this request ({answer.reason}): "
                "it is no hopmesh daemon, or one of another version",
                answer.status,
            )

    def _broken(self, error: Exception, seconds: float | None) -> Error:
        """Says in a sentence why the daemon could not be reached, or did not finish."""
        where = f"the daemon at {self.address}"
        if self._trust and (sentence := self._trust.explain(error, self.address)):
            return Error(sentence)
        if isinstance(error, wire.Unreached):
            return Error(f"{where} could not be reached within {wire.CONNECT_SECONDS:g} s")
        if isinstance(error, TimeoutError):
            lost = error.errno == errno.ETIMEDOUT  # as TCP has found, and not by a bound of ours
            waited = wire.ALIVE_SECONDS if lost or seconds is None else seconds
            return Error(f"{where} has said nothing for {waited:g} s")
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


def _host_port(text: str, address: str, wanted: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536 or set(host) & set("/?#@%\\ "):
        raise Error(f"{address!r} is no address of a daemon: give {wanted}")
    return host.strip("[]"), int(port)


def _known_token() -> str:
    """Returns the token of the environment, where the ``hopmesh`` command finds it too."""
    path = os.environ.get("HOPMESH_API_TOKEN_FILE")
    if not path:
        return os.environ.get("HOPMESH_API_TOKEN", "")
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline(1000).strip()
    except (OSError, ValueError) as error:
        raise Error(f"the API token can't be read: {error}") from None


def plain(value: Any) -> Any:
    """Returns what stands for a number or an array of numpy in JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise Error(f"{value!r} is a {type(value).__name__}: give a number, a word or a list of them")
