"""Finds the secret that a daemon on loopback wants from whoever changes something.

The daemon writes it into a folder that only its own user can read, in a file named after the
address.
"""

from __future__ import annotations

import ipaddress
import os
import stat
import tempfile


def find(host: str, port: int) -> list[tuple[str, str]]:
    """Returns pairs of a secret and the host that it belongs to, the likeliest first."""
    found: list[tuple[str, str]] = []
    for meant in _meant(host):
        name = f"[{meant}]" if ":" in meant else meant
        for folder in _folders():
            if _closed(folder):
                secret = _read(os.path.join(folder, f"api-{name}:{port}"))
                if secret and (secret, meant) not in found:
                    found.append((secret, meant))
        if found:
            break
    return found


def _meant(host: str) -> list[str]:
    if host.lower() == "localhost":
        return ["127.0.0.1", "::1"]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return []
    return [str(address)] if address.is_loopback else []


def _folders() -> list[str]:
    run = os.environ.get("XDG_RUNTIME_DIR", "")
    first = [os.path.join(run, "hopmesh")] if os.path.isabs(run) else []
    return [*first, os.path.join(tempfile.gettempdir(), f"hopmesh-{os.geteuid()}")]


def _closed(folder: str) -> bool:
    """Reports whether a folder is this user's and closed to all others."""
    try:
        info = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_mode & 0o077 == 0 and info.st_uid == os.geteuid()


def _read(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        text = file.read(100).decode("latin-1").removesuffix("\n")
    wanted = len(text) == 64 and all(c in "0123456789abcdef" for c in text)
    return text if wanted else ""
