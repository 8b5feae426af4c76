"""Decodes the MessagePack form of an expression.

JSON has no NaN and no infinities: Polars writes ``null`` for all three. Its other form keeps them
and has the same structure, so it is read instead when a float is missing.
"""

from __future__ import annotations

import struct
from typing import Any

_FIXED = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_LENGTHS = {0: ">B", 1: ">H", 2: ">I"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def decode(data: bytes) -> Any:
    """The one value in `data`; maps become dicts and binary strings become bytes.

    Raises
    ------
    ValueError
        When `data` is not one complete MessagePack value.
    """
    try:
        value, end = _value(data, 0)
    except (IndexError, struct.error):
        raise ValueError("not a MessagePack value") from None
    if end != len(data):
        raise ValueError("bytes after a MessagePack value")
    return value


def _value(data: bytes, at: int) -> tuple[Any, int]:
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag < 0x90:
        return _map(data, at, tag & 0x0F)
    if tag < 0xA0:
        return _array(data, at, tag & 0x0F)
    if tag < 0xC0:
        return _text(data, at, tag & 0x1F)
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag in _FIXED:
        return _number(data, at, _FIXED[tag])
    return _sized(data, at, tag)


def _sized(data: bytes, at: int, tag: int) -> tuple[Any, int]:
    if 0xC4 <= tag <= 0xC6:
        size, at = _number(data, at, _LENGTHS[tag - 0xC4])
        return _bytes(data, at, size)
    if 0xD9 <= tag <= 0xDB:
        size, at = _number(data, at, _LENGTHS[tag - 0xD9])
        return _text(data, at, size)
    if tag in (0xDC, 0xDD):
        size, at = _number(data, at, _LENGTHS[tag - 0xDB])
        return _array(data, at, size)
    if tag in (0xDE, 0xDF):
        size, at = _number(data, at, _LENGTHS[tag - 0xDD])
        return _map(data, at, size)
    raise ValueError("an extension type of MessagePack")


def _number(data: bytes, at: int, form: str) -> tuple[Any, int]:
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)


def _bytes(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise IndexError
    return data[at : at + size], at + size


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    raw, at = _bytes(data, at, size)
    return raw.decode(), at


def _array(data: bytes, at: int, size: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(size):
        item, at = _value(data, at)
        items.append(item)
    return items, at


def _map(data: bytes, at: int, size: int) -> tuple[dict[Any, Any], int]:
    entries = {}
    for _ in range(size):
        key, at = _value(data, at)
        entries[key], at = _value(data, at)
    return entries, at
