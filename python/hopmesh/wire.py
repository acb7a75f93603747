"""HTTP over one connection a request, by unix socket or TCP.

The standard library's client drops trailers, and a daemon says in one whether a file is whole.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import BinaryIO, cast

from hopmesh.tls import Trust

CONNECT_SECONDS = 5.0
ALIVE_SECONDS = 30.0
_PIECE = 1 << 16
_LONGEST_LINE = 64 << 20


class Unreached(TimeoutError):
    """Nobody answered at the address within CONNECT_SECONDS."""


class Cut(Exception):
    """The connection ended before the answer did."""


class Response:
    """An answer, which is read from its connection. Close it, or use it in ``with``."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._file = cast(BinaryIO, sock.makefile("rb"))
        self.trailers: dict[str, str] = {}
        line = self._file.readline(_PIECE).decode("latin-1").rstrip("\r\n")
        words = line.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
            self.close()
            raise Cut
        self.status = int(words[1])
        self.reason = " ".join(words[1:])
        self.headers = self._fields()

    def __enter__(self) -> Response:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection, whether all was read or not."""
        self._file.close()
        self._socket.close()

    def take(self) -> socket.socket:
        """Returns the connection of an upgraded request, where the daemon speaks when asked.

        It is the caller's from now on, without a bound on waits.
        """
        self._file.close()
        self._socket.settimeout(None)
        return self._socket

    def wait_at_most(self, seconds: float | None) -> None:
        """Bounds how long each read waits for the daemon."""
        self._socket.settimeout(seconds)

    def pieces(self) -> Iterator[bytes]:
        """Yields the body. Raises Cut if the connection ends before it does."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            yield from self._chunks()
            return
        left = int(self.headers.get("content-length", "-1"))
        while left != 0:
            piece = self._file.read(min(_PIECE, left) if left > 0 else _PIECE)
            if not piece:
                if left > 0:
                    raise Cut
                return
            left -= len(piece) if left > 0 else 0
            yield piece

    def read(self) -> bytes:
        """Returns the whole body."""
        return b"".join(self.pieces())

    def lines(self) -> Iterator[bytes]:
        """Yields the body line by line, as each arrives."""
        rest = b""
        for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
            if len(rest) > _LONGEST_LINE:
                raise Cut
        if rest:
            yield rest

    def _chunks(self) -> Iterator[bytes]:
        while True:
            head = self._file.readline(_PIECE).split(b";")[0].strip()
            try:
                left = int(head, 16)
            except ValueError:
                raise Cut from None
            if left == 0:
                self.trailers = self._fields()
                return
            while left > 0:
                piece = self._file.read(min(left, _PIECE))
                if not piece:
                    raise Cut
                left -= len(piece)
                yield piece
            if self._file.readline(_PIECE) not in (b"\r\n", b"\n"):
                raise Cut

    def _fields(self) -> dict[str, str]:
        return {
            name.lower(): value for name, value in http.client.parse_headers(self._file).items()
        }


def _keep_alive(sock: socket.socket) -> None:
    """Has waits for a machine that is gone end with TimeoutError, ALIVE_SECONDS later."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def ask(
    target: str | tuple[str, int],
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None,
    seconds: float | None,
    trust: Trust | None = None,
) -> Response:
    """Sends a request and returns the answer, with its header read.

    ``target`` is the path of a unix socket, or a host and port; with ``trust``, TLS is spoken
    there. ``seconds`` bounds each wait.
    """
    if isinstance(target, str):
        host, sock = "localhost", socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        name = f"[{target[0]}]" if ":" in target[0] else target[0]
        host, sock = f"{name}:{target[1]}", None
    reached = False
    try:
        if sock is None:
            sock = socket.create_connection(cast("tuple[str, int]", target), CONNECT_SECONDS)
            if trust and trust.learn(sock):
                sock = socket.create_connection(cast("tuple[str, int]", target), CONNECT_SECONDS)
            _keep_alive(sock)
            if trust:
                sock = trust.wrap(sock)
        else:
            sock.settimeout(CONNECT_SECONDS)
            sock.connect(cast(str, target))
        sock.settimeout(seconds)
        reached = True
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
        if "Connection" not in headers:
            lines.append("Connection: close")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        elif method != "GET":
            lines.append("Content-Length: 0")
        sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))
        return Response(sock)
    except BaseException as error:
        if sock is not None:
            sock.close()
        if isinstance(error, TimeoutError) and not reached:
            raise Unreached from None
        raise
