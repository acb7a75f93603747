"""Turns what a program keeps in a checkpoint into bytes, and back.

Dicts, lists, tuples, numbers, texts, bytes, arrays and tensors are kept. Reading them runs no
code, unlike pickle: a checkpoint may come from another node.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmesh.error import Error

_MAGIC = b"hopmesh1"
_HEAD = len(_MAGIC) + 8
_ALIGNED = 64
# Numpy has no bfloat16: its bits travel as whole numbers.
_BFLOAT16 = "bfloat16"


class Packed:
    """A value whose size is known, to be written where there is room for it."""

    def __init__(self, value: Any) -> None:
        """``value`` must not change until it is written."""
        self._arrays: list[NDArray[Any]] = []
        self._data = 0
        tree = json.dumps(self._encode(value)).encode()
        self._head = _MAGIC + len(tree).to_bytes(8, "little") + tree
        self._begin = _up(len(self._head))
        self.size = self._begin + self._data

    def write(self, into: NDArray[np.uint8]) -> None:
        """Writes the value into an array of its size."""
        into[: len(self._head)] = np.frombuffer(self._head, np.uint8)
        into[len(self._head) : self._begin] = 0
        at = self._begin
        for array in self._arrays:
            end = at + array.nbytes
            into[at:end] = array.reshape(-1).view(np.uint8)
            at = _up(end)
            into[end:at] = 0

    def _encode(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, dict):
            return {"dict": [[self._encode(k), self._encode(v)] for k, v in value.items()]}
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self._encode(v) for v in value]}
        if isinstance(value, (bytes, bytearray)):
            return self._placed("bytes", np.frombuffer(value, np.uint8), "")
        if hasattr(value, "detach") and hasattr(value, "cpu"):
            tensor = value.detach().cpu()
            if bits := str(tensor.dtype).endswith(_BFLOAT16):
                import torch

                tensor = tensor.view(torch.int16)
            return self._placed("tensor", tensor.numpy(), _BFLOAT16 if bits else "")
        if isinstance(value, np.generic):
            return self._encode(value.item())
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return self._placed("array", value, "")
        raise Error(
            f"a checkpoint can't hold a {type(value).__name__}: give dicts, lists, numbers, "
            "texts, bytes, arrays and tensors, such as those of state_dict()"
        )

    def _placed(self, kind: str, array: NDArray[Any], dtype: str) -> dict[str, Any]:
        whole = np.ascontiguousarray(array)
        self._arrays.append(whole)
        place = self._data
        self._data = _up(place + whole.nbytes)
        return {kind: [dtype or whole.dtype.str, list(array.shape), place]}


def unpack(data: bytes) -> Any:
    """Returns the value that was packed, in memory of its own."""
    try:
        if not data.startswith(_MAGIC):
            raise ValueError("it was not made by mesh.checkpoint")
        size = int.from_bytes(data[len(_MAGIC) : _HEAD], "little")
        if size > len(data) - _HEAD:
            raise ValueError("it is cut off")
        tree = json.loads(data[_HEAD : _HEAD + size])
        return _decode(tree, memoryview(data)[_up(_HEAD + size) :])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Error(f"the kept state can't be read: {error}") from None


def _decode(tree: Any, data: memoryview) -> Any:
    if not isinstance(tree, dict):
        if isinstance(tree, list):
            raise ValueError("a list has no type")
        return tree
    ((kind, held),) = tree.items()
    if kind == "dict":
        return {_decode(k, data): _decode(v, data) for k, v in held}
    if kind == "list":
        return [_decode(v, data) for v in held]
    if kind == "tuple":
        return tuple(_decode(v, data) for v in held)
    name, shape, place = held
    dtype = np.dtype(np.int16 if name == _BFLOAT16 else name)
    count = 1
    for length in shape:
        count *= length
    if dtype.hasobject or min([place, *shape]) < 0 or place + count * dtype.itemsize > len(data):
        raise ValueError("an array lies outside of it")
    array = np.frombuffer(data, dtype, count, place).reshape(shape).copy()
    if kind == "bytes":
        return array.tobytes()
    if kind == "array":
        return array
    if kind != "tensor":
        raise ValueError(f"it has a {kind}")
    try:
        import torch
    except ImportError:
        raise Error("the kept state has tensors: pip install torch") from None
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if name == _BFLOAT16 else tensor


def _up(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
