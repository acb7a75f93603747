"""A daemon on another machine is used over TLS, with a token."""

from __future__ import annotations

import io
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import Arrays, until
from fake_daemon import FakeDaemon

import hopmesh
from hopmesh import binary, tls, wire


class Served(NamedTuple):
    """A node that serves its API over TLS."""

    address: str
    folder: str
    tokens: dict[str, str]  # by scope


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with _serving(tmp_path_factory.mktemp("served")) as one:
        yield one


class _serving:
    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __enter__(self) -> Served:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"https://127.0.0.1:{free.getsockname()[1]}"
        self.process = subprocess.Popen(
            [binary.find(), "agent", "--bootstrap", "--device", "cpu", "--listen", "127.0.0.1:0",
             "--data-dir", self.folder, "--api", address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            here = hopmesh.Mesh(hopmesh.client.Client(self.folder))
            until("the node is ready", lambda: _quietly(lambda: here.status()["ready"]))
            tokens = {
                scope: str(here._client.post("/v1/access", {"scope": scope, "ttl": "1h"})["token"])
                for scope in ("read", "operate")
            }
        except BaseException:
            self.__exit__()
            raise
        return Served(address, self.folder, tokens)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)


def _quietly(holds: Callable[[], Any]) -> bool:
    try:
        return bool(holds())
    except hopmesh.Error:
        return False


def refused(match: str, *arguments: Any, **more: Any) -> None:
    with pytest.raises(hopmesh.Error, match=match) as caught:
        hopmesh.connect(*arguments, **more)
    assert "\n" not in str(caught.value)


def test_a_mesh_over_tls(served: Served, ring: Arrays, tmp_path: Path) -> None:
    np.savez(tmp_path / "ring.npz", **ring)
    for more in ({}, {"ca": os.path.join(served.folder, "identity", "ca.pem")}):
        mesh = hopmesh.connect(served.address, token=served.tokens["operate"], **more)
        name = f"ring{len(more)}"
        mesh.import_(name, str(tmp_path / "ring.npz"))
        job = mesh.train(name, model="gcn", layers=2, hidden=4, epochs=2)
        assert [epoch["epoch"] for epoch in job] == [1, 2]
        job.wait(progress=False)
        assert len(job.predictions().classes) == 60
    with pytest.raises(hopmesh.Error, match="batches come through shared memory, so the daemon"):
        mesh.loader("ring0", fanout=[2], kind="numpy")
    with pytest.raises(hopmesh.Error, match="so the daemon must be on this machine"):
        mesh.import_("g", **ring)


def test_what_a_token_allows(served: Served) -> None:
    mesh = hopmesh.connect(served.address, token=" " + served.tokens["read"].upper() + "\n")
    assert len(mesh.members()) == 1
    with pytest.raises(hopmesh.Error, match="scope") as caught:
        mesh.generate("g", kind="sbm", vertices=10, edges=20)
    assert caught.value.status == 403


def test_tokens_that_are_wrong(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    good = served.tokens["read"]
    other = "b" if good[9] != "b" else "c"
    refused("does not start with 'hma1-'", served.address, token="secret")
    refused("copy it again, whole", served.address, token=good[:-1])
    refused("a character that no token has", served.address, token=good[:-1] + "1")
    refused("a character in it is wrong", served.address, token=good[:9] + other + good[10:])
    monkeypatch.delenv("HOPMESH_API_TOKEN", raising=False)
    monkeypatch.delenv("HOPMESH_API_TOKEN_FILE", raising=False)
    refused("needs a token: give token= with what `hopmesh api token create`", served.address)
    monkeypatch.setenv("HOPMESH_API_TOKEN", good)
    assert hopmesh.connect(served.address).status()["ready"]
    here = hopmesh.connect(served.folder)
    ended = here._client.post("/v1/access", {"scope": "read", "ttl": "1h"})
    here._client.delete(f"/v1/access/{ended['id']}")
    with pytest.raises(hopmesh.Error) as caught:
        hopmesh.connect(served.address, token=ended["token"])
    assert caught.value.status == 401


def test_nodes_of_another_mesh(served: Served, tmp_path: Path) -> None:
    with _serving(tmp_path) as another:
        token = another.tokens["read"]
        refused(
            "not of the mesh that the token is of: nothing was sent", served.address, token=token
        )
        ca = os.path.join(another.folder, "identity", "ca.pem")
        refused("the CA certificate is of: nothing", served.address, token=token, ca=ca)
    nothing = tmp_path / "nothing.pem"
    refused("certificate can't be read", served.address, token=token, ca=nothing)
    nothing.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    refused(
        "holds no CA certificate: give identity/ca.pem", served.address, token=token, ca=nothing
    )


def test_a_ca_that_is_none(served: Served, tmp_path: Path) -> None:
    (tmp_path / "ca.der").write_bytes(bytes(range(256)))
    with pytest.raises(hopmesh.Error, match="holds no CA certificate: give identity/ca.pem"):
        hopmesh.connect(served.address, token=served.tokens["read"], ca=tmp_path / "ca.der")


def test_what_is_no_tls(served: Served, daemon: FakeDaemon) -> None:
    token, plain = served.tokens["read"], served.address.removeprefix("https://")
    refused("token= and ca= go with https://HOST:PORT", plain, token=token)
    refused("serves its API over TLS there: give 'https://", plain)
    refused("'https://here' is no address of a daemon", "https://here", token=token)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(10)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"https://127.0.0.1:{server.getsockname()[1]}"
        refused(f"no TLS is spoken at {re.escape(address)}", address, token=token)
        thread.join()
    refused("no daemon at https://127.0.0.1:", address, token=token)


@pytest.mark.quick
def test_keys_of_certificates_that_are_damaged() -> None:
    rng = np.random.default_rng(1)
    whole = bytes.fromhex("3014 3010 a003020102 020101 3000 3000 3000 3000 3000".replace(" ", ""))
    for cut in range(len(whole)):
        tls._key(whole[:cut])
    for _ in range(2000):
        tls._key(rng.bytes(int(rng.integers(0, 40))))
    signed = bytes.fromhex("a00302010202010130003000300030003003020107")
    inner = b"\x30" + bytes([len(signed)]) + signed
    assert tls._key(b"\x30\x81" + bytes([len(inner)]) + inner) == bytes.fromhex("3003020107")


def test_machine_that_vanishes() -> None:
    """Waits without a bound end once the other machine is gone, with a sentence."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            with server.accept()[0] as sock:
                sock.recv(1 << 16)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nsome")
                gone.wait(30)

        gone = threading.Event()
        threading.Thread(target=answer, daemon=True).start()
        with wire.ask(("127.0.0.1", port), "POST", "/v1/x", {}, None, None) as got:
            sock = got._socket
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
        gone.set()


def test_nobody_answers(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"https://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(hopmesh.Error, match="could not be reached within 0.3 s"):
            hopmesh.connect(address, token=served.tokens["read"]).status()


def test_file_that_ends_with_silence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def silent(response: wire.Response) -> Iterator[bytes]:
        yield b"some"
        raise TimeoutError(110, "Connection timed out")

    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(28, "No space left on device")

    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for _ in range(2):
                with server.accept()[0] as sock:
                    sock.recv(1 << 16)
                    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        monkeypatch.setattr(wire.Response, "pieces", silent)
        client = hopmesh.client.Client(f"127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(hopmesh.Error, match="has said nothing for 30 s"):
            client.fetch("/v1/x", None, io.BytesIO())
        with pytest.raises(OSError, match="No space"):  # which is not the daemon's
            client.fetch("/v1/x", None, Full())
