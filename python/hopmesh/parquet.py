"""Reads the Parquet files that hopmesh writes: plain columns, uncompressed, without nulls."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmesh.error import Error

_NUMBERS = {1: "<i4", 2: "<i8", 4: "<f4", 5: "<f8"}
_TEXT = 6


def read(data: bytes) -> dict[str, NDArray[Any]]:
    """Returns the columns by name. Text becomes an array of objects."""
    try:
        if data[:4] != b"PAR1" or data[-4:] != b"PAR1":
            raise ValueError("it does not begin and end as one")
        (size,) = struct.unpack("<I", data[-8:-4])
        footer = _Compact(data, len(data) - 8 - size).fields()
        parts: dict[str, list[NDArray[Any]]] = {}
        for group in footer[4]:
            for chunk in group[1]:
                about = chunk[3]
                column = parts.setdefault(about[3][-1].decode(), [])
                column.extend(_pages(data, about))
        return {name: np.concatenate(column) for name, column in parts.items()}
    except (ValueError, KeyError, IndexError, TypeError, struct.error) as error:
        raise Error(f"the predictions are no Parquet file that can be read: {error}") from None


def _pages(data: bytes, about: dict[int, Any]) -> list[NDArray[Any]]:
    """Returns the pages of one column of one row group."""
    kind, codec, left, at = about[1], about[4], about[5], about[9]
    if codec != 0:
        raise ValueError("it is compressed")
    pages = []
    while left > 0:
        head = _Compact(data, at)
        fields = head.fields()
        size = fields[3]
        of = fields.get(5) or fields.get(8)
        if of is None or of[2 if 5 in fields else 4] != 0:
            raise ValueError("its values are not plain")
        page = _values(kind, data[head.at : head.at + size], of[1])
        pages.append(page)
        left, at = left - len(page), head.at + size
    return pages


def _values(kind: int, page: bytes, count: int) -> NDArray[Any]:
    if kind in _NUMBERS:
        return np.frombuffer(page, dtype=_NUMBERS[kind], count=count)
    if kind != _TEXT:
        raise ValueError(f"a column has the type {kind}")
    texts, at = np.empty(count, dtype=object), 0
    for i in range(count):
        (size,) = struct.unpack_from("<I", page, at)
        texts[i] = page[at + 4 : at + 4 + size].decode()
        at += 4 + size
    return texts


class _Compact:
    """Reads Thrift's compact protocol, in which Parquet's heads are written."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def fields(self) -> dict[int, Any]:
        """Returns a struct as its fields by number."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _value(self, kind: int) -> Any:
        if kind in (1, 2, 3):  # of a list: a boolean or a byte
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            self.at += 8
            return struct.unpack_from("<d", self.data, self.at - 8)[0]
        if kind == 8:
            size = self._unsigned()
            self.at += size
            return self.data[self.at - size : self.at]
        if kind in (9, 10):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._unsigned()
            return [self._value(head & 15) for _ in range(size)]
        if kind == 12:
            return self.fields()
        raise ValueError(f"a field has the unknown type {kind}")
