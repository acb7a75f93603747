"""TLS with nodes of one mesh: the one that a token pins, or the one whose CA is given.

Nodes have ids and not names, so certificates are not compared with addresses.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import socket
import ssl
from collections.abc import Iterator

from hopmesh.error import Error

_PREFIX = "hma1-"
_DIGEST, _SECRET, _CHECK = 32, 20, 2
_MOST_CERTIFICATES = 4
# OpenSSL's X509_V_FLAG_CHECK_SS_SIGNATURE: the digest covers a CA's key only, and this has its
# signature tie the rest to that.
_CHECK_OWN_SIGNATURE = 0x4000
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_HINT = "`hopmesh api token create` on any node of the mesh makes one"


class Foreign(Exception):
    """The peer is no node of the mesh. Nothing was sent to it."""


class Trust:
    """What a client shows to nodes of one mesh, and how it knows them. Threads may share it."""

    def __init__(self, token: str, ca: str | os.PathLike[str] | None = None) -> None:
        """``ca`` is a file of CA certificates. Without one, the token says whose they are."""
        self.token, self._pinned = _read(token)
        self._context: ssl.SSLContext | None = None
        self._given = ca is not None
        if ca is not None:
            try:
                self._context = _context(_certificates(ca))
            except ValueError:
                raise Error(
                    f"{ca} holds no CA certificate: give identity/ca.pem of a node's data directory"
                ) from None

    def learn(self, sock: socket.socket) -> bool:
        """Finds the pinned CA on a connection that is of no use any more.

        It reports whether it did so: it need not do that twice. Nothing is sent but a greeting.
        """
        if self._context is not None:
            return False
        asking = _bare()
        asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
        with asking.wrap_socket(sock, suppress_ragged_eofs=False) as met:
            for certificate in _chain(met)[1:]:
                if hashlib.sha256(_key(certificate)).digest() != self._pinned:
                    continue
                try:
                    self._context = _context(certificate)
                except ValueError:
                    break
                return True
        raise Foreign

    def wrap(self, sock: socket.socket) -> ssl.SSLSocket:
        """Returns a connection to a node of the mesh."""
        assert self._context is not None
        return self._context.wrap_socket(sock, suppress_ragged_eofs=False)

    def explain(self, error: Exception, address: str) -> str | None:
        """Returns what went wrong with TLS, in a sentence; None: something else did."""
        where = f"the node at {address}"
        if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code == _EXPIRED:
            return (
                f"{where} was not trusted: its certificate has expired by the clock of this "
                "machine: check the clocks of both"
            )
        if isinstance(error, (Foreign, ssl.SSLCertVerificationError)):
            whose, other = "the token is of", "make a token on that mesh"
            if self._given:
                whose, other = (
                    "the CA certificate is of",
                    "give identity/ca.pem of a node of that mesh",
                )
            return (
                f"{where} is not of the mesh that {whose}: nothing was sent to it; check the "
                f"address, or {other}"
            )
        if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError):
            return None
        if "ALERT" in (error.reason or ""):
            return (
                f"{where} has no certificate to show yet, since it is in no mesh, or speaks "
                "another TLS: see `hopmesh status` on its machine"
            )
        return f"no TLS is spoken at {address}: start the agent there with --api {address}"


def _bare() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.set_alpn_protocols(["http/1.1"])
    return context


def _context(certificates: bytes | str) -> ssl.SSLContext:
    """Returns what trusts these CAs. It raises ValueError if they are none."""
    context = _bare()
    context.verify_flags |= ssl.VerifyFlags(_CHECK_OWN_SIGNATURE)
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, TypeError) as error:  # the latter of what is no ASCII
        raise ValueError from error
    return context


def _certificates(path: str | os.PathLike[str]) -> str:
    try:
        with open(path, encoding="latin-1") as file:
            return file.read(1 << 20)
    except OSError as error:
        raise Error(f"the CA certificate can't be read: {error}") from None


def _read(token: str) -> tuple[str, bytes]:
    """Returns a token as it is sent, and the digest of the CA's key that it pins."""
    text = token.strip().lower()
    if not text.startswith(_PREFIX):
        raise Error(f"the API token is not usable: it does not start with {_PREFIX!r}; {_HINT}")
    size = _DIGEST + _SECRET + _CHECK
    want = len(_PREFIX) + (8 * size + 4) // 5
    if len(text) != want:
        raise Error(
            f"the API token is not usable: it has {len(text)} characters instead of {want}; "
            "copy it again, whole"
        )
    try:
        data = base64.b32decode(text[len(_PREFIX) :].upper() + "=" * (-(want - 5) % 8))
    except (binascii.Error, ValueError):
        raise Error(
            "the API token is not usable: it has a character that no token has; copy it again"
        ) from None
    sum = hashlib.sha256(_PREFIX.encode() + data[:-_CHECK]).digest()
    if len(data) != size or sum[:_CHECK] != data[-_CHECK:]:
        raise Error("the API token is not usable: a character in it is wrong; copy it again")
    return text, data[:_DIGEST]


def _chain(met: ssl.SSLSocket) -> list[bytes]:
    """Returns the certificates that a peer has shown, its own first. None is verified."""
    # Python has it as a method of the connection since 3.13.
    of = met if hasattr(met, "get_unverified_chain") else getattr(met, "_sslobj", None)
    find = getattr(of, "get_unverified_chain", None)
    if find is None:
        raise Error(
            "this Python can't show a peer's certificates: give ca= with identity/ca.pem of a node"
        )
    shown = [c if isinstance(c, bytes) else _der(c) for c in find() or []]
    return shown[:_MOST_CERTIFICATES]


def _der(certificate: object) -> bytes:
    encoded = certificate.public_bytes()  # type: ignore[attr-defined]  # PEM, of _ssl
    return ssl.PEM_cert_to_DER_cert(encoded)


def _key(certificate: bytes) -> bytes:
    """Returns the key in a certificate, as it is encoded there; b"" if it can't be found."""
    try:
        (_, whole, _), *_ = _parts(certificate)
        (_, signed, _), *_ = _parts(whole)
        parts = list(_parts(signed))
    except (IndexError, ValueError):
        return b""
    # Version, which may be missing; serial number, algorithm, issuer, validity, subject; the key.
    place = 6 if parts and parts[0][0] == 0xA0 else 5
    return parts[place][2] if len(parts) > place else b""


def _parts(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields the tag, the content and the whole of each part of DER."""
    at = 0
    while at < len(data):
        tag, size, begin = data[at], data[at + 1], at + 2
        if size & 0x80:
            more = size & 0x7F
            size, begin = int.from_bytes(data[begin : begin + more], "big"), begin + more
        if begin + size > len(data):
            raise ValueError
        yield tag, data[begin : begin + size], data[at : begin + size]
        at = begin + size
