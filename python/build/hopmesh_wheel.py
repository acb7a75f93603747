"""Makes wheels that contain the package and the ``hopmesh`` program.

Run as a program, it makes a wheel of a program that was built before::

    python3 build/hopmesh_wheel.py --program ../bin/hopmesh --version 1.2.0 --into ../dist

It is also what ``pip install ./python`` calls, which takes ``bin/hopmesh`` of this tree. It needs
nothing but Python.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import struct
import tomllib
import zipfile
from typing import Any

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(os.path.dirname(HERE), "bin", "hopmesh")
# A static program needs no C library, so that any Linux runs it.
_MACHINES = {62: "x86_64", 183: "aarch64"}
_TAGS = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"
_INTERPRETER = 3
_TIME = (2020, 1, 1, 0, 0, 0)  # the same files make the same wheel


def machine(program: str) -> str:
    """Returns the machine that a program is for. It must be a static program for Linux."""
    with open(program, "rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"{program} is no 64-bit program for Linux: wheels are for Linux only")
        (kind,), (at,) = struct.unpack_from("<H", head, 18), struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(at)
        segments = file.read(size * count)
    for i in range(count):
        if struct.unpack_from("<I", segments, i * size)[0] == _INTERPRETER:
            raise SystemExit(f"{program} is not static: build it with CGO_ENABLED=0")
    if kind not in _MACHINES:
        raise SystemExit(f"{program} is for machine {kind}, for which there are no wheels")
    return _MACHINES[kind]


def version(said: str) -> str:
    """Returns a version as Python writes it, whatever `git describe` has said."""
    said = said.removeprefix("v")
    if re.fullmatch(r"\d+(\.\d+)*((a|b|rc)\d+)?", said):
        return said
    base, _, rest = said.partition("-")
    if not re.fullmatch(r"\d+(\.\d+)+", base):
        base, rest = "0", said
    return f"{base}+{'.'.join(re.findall('[a-z0-9]+', rest.lower()))}"


def metadata(number: str) -> str:
    """Returns the METADATA of the package."""
    with open(os.path.join(HERE, "pyproject.toml"), "rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {number}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
    ]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    return "\n".join([*lines, ""])


def make(program: str, said: str, into: str) -> str:
    """Writes a wheel and returns its name."""
    number, tags = version(said), _TAGS.format(machine(program))
    name, about = f"hopmesh-{number}-py3-none-{tags}.whl", f"hopmesh-{number}.dist-info"
    records = []
    os.makedirs(into, exist_ok=True)
    path = os.path.join(into, name)
    with zipfile.ZipFile(path + ".part", "w", zipfile.ZIP_DEFLATED) as wheel:

        def put(inside: str, data: bytes, mode: int = 0o644) -> None:
            entry = zipfile.ZipInfo(inside, _TIME)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{inside},sha256={digest},{len(data)}\n")

        package = os.path.join(HERE, "hopmesh")
        for file in sorted(os.listdir(package)):
            if file.endswith((".py", ".typed")):
                put(f"hopmesh/{file}", _bytes(os.path.join(package, file)))
        put(f"hopmesh-{number}.data/scripts/hopmesh", _bytes(program), 0o755)
        licence = os.path.join(os.path.dirname(HERE), "LICENSE")
        put(f"{about}/licenses/LICENSE", _bytes(licence))
        put(f"{about}/METADATA", metadata(number).encode())
        kinds = "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))
        head = "Wheel-Version: 1.0\nGenerator: hopmesh\nRoot-Is-Purelib: false\n"
        put(f"{about}/WHEEL", (head + kinds).encode())
        listed = "".join([*records, f"{about}/RECORD,,\n"])
        wheel.writestr(zipfile.ZipInfo(f"{about}/RECORD", _TIME), listed)
    os.replace(path + ".part", path)
    return name


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """Makes a wheel for pip, of the program that `make build` has made."""
    if not os.path.exists(PROGRAM):
        raise SystemExit(f"{PROGRAM} is not there: run `make build` first")
    return make(PROGRAM, os.environ.get("VERSION", "0"), wheel_directory)


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Refuses: what pip installs contains a program that Python can't build."""
    raise SystemExit("there is no source distribution of hopmesh: run `make wheel`")


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def main() -> None:
    """Makes the wheel that the arguments ask for, and prints its path."""
    parser = argparse.ArgumentParser(description="makes a wheel with the hopmesh program")
    parser.add_argument("--program", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--into", required=True)
    given = parser.parse_args()
    print(os.path.join(given.into, make(given.program, given.version, given.into)))


if __name__ == "__main__":
    main()
