"""Sums and copies of numbers over all ranks of a job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmesh.error import Error
from hopmesh.program import Program

_OPERATIONS = ("sum", "mean")
# What a float32 holds exactly, by the last word of numpy's and torch's names.
_NARROW = ("float32", "float16", "bfloat16")
# Whole numbers that a float64 may not hold, and up to where it holds all of them.
_WIDE = ("int64", "uint64")
_EXACT = 2**53


def all_reduce(program: Program, value: Any, op: str | None, weight: float | None) -> Any:
    """Does what :meth:`Mesh.all_reduce` says."""
    module = hasattr(value, "parameters")
    op = op or ("mean" if module else "sum")
    if op not in _OPERATIONS:
        raise Error(f"op is {op!r}: give 'sum' or 'mean'")
    if weight is None:
        weight = program.weight if op == "mean" else 1.0
    if weight < 0:
        raise Error(f"a weight of {weight} can't be: give 0 or more")
    if module:
        parameters = [p for p in value.parameters() if p.requires_grad]
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = parameter.detach().clone().zero_()
        parts = [_Tensor(p.grad) for p in parameters]
        _reduce(program, parts, op, weight)
        return value
    scalar = isinstance(value, (bool, int, float, np.generic))
    if scalar:
        if isinstance(value, (int, np.integer)) and (op == "sum" or weight != 0):
            _check_exact(abs(int(value)), program.size)
        value = np.array(value, np.float64)
    _reduce(program, _parts(value), op, weight)
    return value.item() if scalar else value


def broadcast(program: Program, value: Any, root: int) -> Any:
    """Does what :meth:`Mesh.broadcast` says."""
    if not 0 <= root < program.size:
        raise Error(f"there is no rank {root}: there are {program.size} ranks, from 0 on")
    if hasattr(value, "state_dict"):
        parts = [part for tensor in value.state_dict().values() for part in _parts(tensor)]
    else:
        parts = _parts(value)
    halved: list[_Part] = [_Halves(part) if part.dtype in _WIDE else part for part in parts]
    own = program.rank == root
    count, dtype = _shape(halved)
    numbers, _ = _sum(program, halved, count, dtype, 1.0, scale=1.0, takes_part=own)
    if not own:
        _fill(halved, numbers)
    return value


class _Array:
    """An array of numpy, whose numbers are read and replaced."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array, self.count = array, array.size
        self.dtype = array.dtype.name
        if array.dtype.kind not in "biuf":
            raise Error(f"numbers of type {self.dtype} can't be summed: give floats or whole ones")

    def whole(self) -> NDArray[Any]:
        """Returns a copy of what are whole numbers, in this machine's order of bytes."""
        return self._array.astype(self.dtype).reshape(-1)

    def read(self, into: NDArray[Any]) -> None:
        into[:] = self._array.reshape(-1)

    def replace(self, numbers: NDArray[Any]) -> None:
        self._array[...] = numbers.reshape(self._array.shape)


class _Tensor:
    """A tensor of PyTorch, on any device."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor.detach()
        self.count = self._tensor.numel()
        self.dtype = str(tensor.dtype).rpartition(".")[2]
        if self._tensor.is_complex():
            raise Error(f"numbers of type {self.dtype} can't be summed: give floats or whole ones")

    def whole(self) -> NDArray[Any]:
        """Returns a copy of what are whole numbers."""
        numbers: NDArray[Any] = self._tensor.cpu().numpy()
        return numbers.flatten()

    def read(self, into: NDArray[Any]) -> None:
        import torch

        tensor = self._tensor.to_dense() if self._tensor.is_sparse else self._tensor
        torch.from_numpy(into).copy_(tensor.reshape(-1))

    def replace(self, numbers: NDArray[Any]) -> None:
        import torch

        if self._tensor.is_sparse:
            raise Error("sparse gradients can't be replaced: make the embedding with sparse=False")
        self._tensor.copy_(torch.from_numpy(numbers).reshape(self._tensor.shape))


class _Halves:
    """Whole numbers of eight bytes, of which each half goes as a number of its own."""

    dtype = "float64"

    def __init__(self, part: _Array | _Tensor) -> None:
        self._part, self.count = part, 2 * part.count

    def read(self, into: NDArray[Any]) -> None:
        numbers = self._part.whole().view(np.uint64)
        into[: len(numbers)], into[len(numbers) :] = numbers & 0xFFFFFFFF, numbers >> 32

    def replace(self, numbers: NDArray[Any]) -> None:
        low, high = numbers.astype(np.uint64).reshape(2, -1)
        self._part.replace((low | high << np.uint64(32)).view(self._part.dtype))


_Part = _Array | _Tensor | _Halves


def _check_exact(largest: int, ranks: int) -> None:
    if largest * ranks >= _EXACT:
        raise Error(
            f"{largest} is too large to be summed exactly over {ranks} ranks: whole numbers have "
            "to be below 2**53, and so do their sums; divide them first, or give floats"
        )


def _parts(value: Any) -> list[_Array | _Tensor]:
    if isinstance(value, np.ndarray):
        return [_Array(value)]
    if hasattr(value, "detach"):
        return [_Tensor(value)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [part for one in value for part in _parts(one)]
    raise Error(
        f"a {type(value).__name__} can't be summed: give a model, a tensor, an array, a number, "
        "or a list of tensors or arrays"
    )


def _shape(parts: Sequence[_Part]) -> tuple[int, str]:
    """Returns how many numbers there are, and the type that holds all of them."""
    count = sum(part.count for part in parts)
    if count == 0:
        raise Error("there is nothing to sum: the model has no parameters, or the list is empty")
    return count, "<f4" if all(part.dtype in _NARROW for part in parts) else "<f8"


def _reduce(program: Program, parts: Sequence[_Array | _Tensor], op: str, weight: float) -> None:
    count, dtype = _shape(parts)
    scale = weight if op == "mean" else 1.0
    for part in parts if scale != 0 else ():
        if part.dtype in _WIDE:
            whole = part.whole()
            largest = max(int(whole.max(initial=0)), -int(whole.min(initial=0)))
            _check_exact(math.ceil(largest * max(1.0, scale)), program.size)
    numbers, total = _sum(program, parts, count, dtype, weight, scale, takes_part=scale != 0)
    if op == "mean" and total != 0:
        numbers /= total
    _fill(parts, numbers)


def _sum(
    program: Program,
    parts: Sequence[_Part],
    count: int,
    dtype: str,
    weight: float,
    scale: float,
    takes_part: bool,
) -> tuple[NDArray[Any], float]:
    """Returns the sums, in shared memory, and that of the weights."""
    if not takes_part:
        # Whatever this rank has computed does not count, and may be no number.
        return program.sum_of_others(count, dtype)
    buffer = program.buffer(count, dtype)
    at = 0
    for part in parts:
        part.read(buffer[at : at + part.count])
        at += part.count
    if scale != 1:
        buffer *= scale
    return buffer, program.sum(buffer, weight)


def _fill(parts: Sequence[_Part], numbers: NDArray[Any]) -> None:
    at = 0
    for part in parts:
        part.replace(numbers[at : at + part.count])
        at += part.count
