"""Reads .safetensors files with numpy alone."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmesh.error import Error

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
_LONGEST_HEAD = 100 << 20


def read(path: str | os.PathLike[str]) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Returns the metadata and the tensors of a file. BF16 becomes float32."""
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > _LONGEST_HEAD:
                raise ValueError("its head is too large")
            head = json.loads(file.read(size))
            data = file.read()
        metadata = head.pop("__metadata__", {})
        return metadata, {name: _tensor(about, data) for name, about in head.items()}
    except OSError as error:
        raise Error(f"{os.fspath(path)} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Error(f"{os.fspath(path)} is no whole .safetensors file: {error}") from None


def _tensor(about: dict[str, Any], data: bytes) -> NDArray[Any]:
    begin, end = about["data_offsets"]
    if not 0 <= begin <= end <= len(data):
        raise ValueError("a tensor lies outside of it")
    flat = np.frombuffer(data[begin:end], dtype=np.dtype(_TYPES[about["dtype"]]))
    if about["dtype"] == "BF16":
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(about["shape"])
