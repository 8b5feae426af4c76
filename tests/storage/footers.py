"""Footers of Parquet files that say something else than the files hold.

A footer is one struct of Thrift's compact protocol, which says the number and the type of each
field, so it can be read, changed and written without knowing what the fields mean.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

Fields: TypeAlias = "dict[int, tuple[int, Any]]"
"""The fields of a struct by number: type and value."""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_MAGIC: Final = b"PAR1"

ROW_GROUPS: Final = 4
"""Of a footer."""
COLUMNS, SORTING_COLUMNS = 1, 4
"""Of a row group."""
META_DATA: Final = 3
"""Of a column chunk."""
TYPE, VALUES, STATISTICS = 1, 5, 12
"""Of its metadata."""
MAX, MIN, NULL_COUNT, DISTINCT_COUNT, MAX_VALUE, MIN_VALUE = range(1, 7)
"""Of statistics."""


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def varint(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def zigzag(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self.byte()
        if kind in (_I16, _I32, _I64):
            return self.zigzag()
        if kind == _DOUBLE:
            self.at += 8
            return self.content[self.at - 8 : self.at]
        if kind == _BINARY:
            size = self.varint()
            self.at += size
            return self.content[self.at - size : self.at]
        if kind in (_LIST, _SET):
            head = self.byte()
            size, inner = head >> 4, head & 15
            size = self.varint() if size == 15 else size
            if inner in (_TRUE, _FALSE):
                return inner, [self.byte() for _ in range(size)]
            return inner, [self.value(inner) for _ in range(size)]
        assert kind == _STRUCT, kind
        return self.fields()

    def fields(self) -> Fields:
        found: Fields = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            found[number] = (head & 15, self.value(head & 15))
        return found


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _zigzag(number: int) -> bytes:
    return _varint((number << 1) ^ (number >> 63))


def _bytes_of(kind: int, value: Any) -> bytes:
    if kind in (_TRUE, _FALSE):
        return b""
    if kind == _BYTE:
        return bytes([value])
    if kind in (_I16, _I32, _I64):
        return _zigzag(value)
    if kind == _DOUBLE:
        return bytes(value)
    if kind == _BINARY:
        return _varint(len(value)) + value
    if kind in (_LIST, _SET):
        inner, items = value
        size = len(items)
        head = bytes([size << 4 | inner]) if size < 15 else bytes([0xF0 | inner]) + _varint(size)
        if inner in (_TRUE, _FALSE):
            return head + bytes(items)
        return head + b"".join(_bytes_of(inner, item) for item in items)
    return _written(value)


def _written(fields: Fields) -> bytes:
    made, before = bytearray(), 0
    for number in sorted(fields):
        kind, value = fields[number]
        if kind in (_TRUE, _FALSE):
            kind = _TRUE if value else _FALSE
        step = number - before
        made += bytes([step << 4 | kind]) if step < 16 else bytes([kind]) + _zigzag(number)
        made += _bytes_of(kind, value)
        before = number
    return bytes(made) + b"\x00"


def edit(path: Path, change: Callable[[Fields], None]) -> None:
    """Change the footer of a file."""
    content = path.read_bytes()
    assert content[-4:] == _MAGIC
    (size,) = struct.unpack("<I", content[-8:-4])
    fields = _Reader(content[-8 - size : -8]).fields()
    change(fields)
    footer = _written(fields)
    path.write_bytes(content[: -8 - size] + footer + struct.pack("<I", len(footer)) + content[-4:])


def columns_of(footer: Fields) -> list[Fields]:
    """The metadata of each column chunk of each row group."""
    groups = footer[ROW_GROUPS][1][1]
    return [chunk[META_DATA][1] for group in groups for chunk in group[COLUMNS][1][1]]


_WIDTHS = {1: "<i", 2: "<q", 4: "<f", 5: "<d"}
"""How numbers of Parquet's types are written."""


def _extreme(kind: int, size: int, *, high: bool) -> bytes:
    if kind == 0:
        return bytes([high])
    if kind in (4, 5):
        return struct.pack(_WIDTHS[kind], 1e30 if high else -1e30)
    if kind in (1, 2):
        bits = 31 if kind == 1 else 63
        return struct.pack(_WIDTHS[kind], 2**bits - 1 if high else -(2**bits))
    if kind == 7:
        return (b"\x7f" if high else b"\x80") + (b"\xff" if high else b"\x00") * (size - 1)
    return b"\xff" if high else b""


def state_extremes(footer: Fields, *, low: bool, high: bool) -> None:
    """Say that all values of each column are as large, or as small, as values of the type can be,
    or anything between them, and that none is null.
    """
    for column in columns_of(footer):
        kind = column[TYPE][1]
        stated = column.get(STATISTICS, (_STRUCT, {}))[1]
        size = len(stated.get(MIN_VALUE, stated.get(MIN, (0, b"0" * 8)))[1])
        least = _extreme(kind, size, high=not low)
        most = _extreme(kind, size, high=high)
        column[STATISTICS] = (
            _STRUCT,
            {
                MAX: (_BINARY, most),
                MIN: (_BINARY, least),
                NULL_COUNT: (_I64, 0),
                DISTINCT_COUNT: (_I64, 1),
                MAX_VALUE: (_BINARY, most),
                MIN_VALUE: (_BINARY, least),
            },
        )


def state_nulls(footer: Fields) -> None:
    """Say that all values of each column are null."""
    for group in footer[ROW_GROUPS][1][1]:
        for chunk in group[COLUMNS][1][1]:
            column = chunk[META_DATA][1]
            column[STATISTICS] = (_STRUCT, {NULL_COUNT: column[VALUES]})


def state_order(footer: Fields, column: int, *, descending: bool) -> None:
    """Say that the rows of each group are sorted by a column."""
    for group in footer[ROW_GROUPS][1][1]:
        order = {
            1: (_I32, column),
            2: (_TRUE, descending),
            3: (_TRUE, False),
        }
        group[SORTING_COLUMNS] = (_LIST, (_STRUCT, [order]))


def copy_statistics(footer: Fields, other: Path) -> None:
    """Say of each column what the footer of another file says: what was true before. Of a chunk of
    which that would say, by chance, that all values are null, its own statistics stay: see
    `state_nulls`.
    """
    content = other.read_bytes()
    (size,) = struct.unpack("<I", content[-8:-4])
    earlier = columns_of(_Reader(content[-8 - size : -8]).fields())
    for number, column in enumerate(columns_of(footer)):
        stated = earlier[number % len(earlier)].get(STATISTICS)
        if stated is not None and stated[1].get(NULL_COUNT, (_I64, 0))[1] < column[VALUES][1]:
            column[STATISTICS] = stated
