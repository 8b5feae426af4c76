"""Constants: from Polars' form to `Literal`, and lists of constants to `Values`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import polars as pl

from dpframe.core.dtypes import (
    DATE,
    FLOAT64,
    NULL,
    STRING,
    TIME,
    DType,
    datetime_type,
    duration_type,
    enum_type,
)
from dpframe.core.tree import Literal
from dpframe.errors import UnsupportedOperation
from dpframe.rows.constants import constant, decimal_literal, from_physical, nearest_float32
from dpframe.rows.operation import Node, Values
from dpframe.rows.polars_dtypes import TIME_UNITS, from_polars, read_dtype, read_ipc, read_zone


def read_literal(body: Node) -> Literal | Values:
    """The constant in a ``Literal`` node."""
    if not isinstance(body, Mapping) or len(body) != 1:
        raise _not_a_scalar()
    [(kind, value)] = body.items()
    match kind:
        case "Scalar":
            return _scalar(value)
        case "Dyn" if {*value} & {"Int", "Float", "Str"}:  # without a type
            return _scalar(value)
        case "Series":
            series = read_ipc(value)
            if len(series) == 1 and isinstance(series.dtype, pl.List):  # one list means its values
                inner = series.item()
                series = inner if inner is not None else pl.Series([], dtype=series.dtype.inner)
            return _values(series)
        case _:
            raise _not_a_scalar()


def _whole(value: int | bytes) -> int:
    """A whole number; 128 bits are bytes where there are no larger numbers."""
    return int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else int(value)


def _scalar(node: Node) -> Literal | Values:
    [(kind, value)] = node.items()
    match kind:
        case "Null":
            return Literal(None, NULL if value == "Null" else read_dtype(value))
        case "Boolean":
            return Literal(bool(value), DType("Boolean"))
        case "Int":
            return constant(_whole(value))
        case "Str" | "String" | "StringOwned":
            return Literal(str(value), STRING)
        case "Binary" | "BinaryOwned":
            return Literal(bytes(value), DType("Binary"))
        case "Float32":
            return Literal(nearest_float32(float(value)), DType("Float32"))
        case "Float" | "Float64":
            return Literal(float(value), FLOAT64)
        case "Decimal":  # the oldest Polars leaves out the precision
            digits, *precision, scale = value
            dtype = DType("Decimal", precision=precision[0] if precision else 38, scale=scale)
            return decimal_literal(_whole(digits), dtype)
        case "Date" | "Time":
            return from_physical(int(value), DATE if kind == "Date" else TIME)
        case "Datetime" | "DatetimeOwned":
            unit, zone = TIME_UNITS[value[1]], read_zone(value[2])
            return from_physical(int(value[0]), datetime_type(unit, zone))
        case "Duration":
            return from_physical(int(value[0]), duration_type(TIME_UNITS[value[1]]))
        case "Enum" | "EnumOwned":
            names = tuple(read_ipc(value["categories"]).to_list())
            return Literal(names[value["value"]], enum_type(names))
        case "Categorical" | "CategoricalOwned":
            return Literal(str(value["value"]), DType("Categorical"))
        case "List":
            return _values(read_ipc(value))
        case _ if DType(kind).is_integer:
            return Literal(_whole(value), DType(kind))
        case _:
            raise _not_a_scalar()


def _values(series: pl.Series) -> Values:
    dtype = from_polars(series.dtype)
    if dtype.is_nested or not dtype.is_known:
        raise _not_a_scalar()
    if dtype.name in ("Datetime", "Duration", "Time"):
        physical = series.to_physical().cast(pl.Int64).to_list()
        values = tuple(None if p is None else from_physical(p, dtype).value for p in physical)
    else:
        values = tuple(series.to_list())
    return Values(values, dtype)


def _not_a_scalar() -> UnsupportedOperation:
    return UnsupportedOperation(
        "a constant that is not a single number, text, Boolean, date or time is not supported",
        remedy=("use one constant", "compare with several values: .is_in([...])"),
    )


# Decodes the MessagePack form of an expression.
#
# JSON has no NaN and no infinities: Polars writes ``null`` for all three. Its other form keeps them
# and has the same structure, so it is read instead when a float is missing.


_FIXED = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h",
    0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def decode(data: bytes) -> Node:
    """The one value in `data`; maps become dicts and binary strings become bytes."""
    try:
        value, end = _value(data, 0)
    except (IndexError, struct.error):
        raise ValueError("not a MessagePack value") from None
    if end != len(data):
        raise ValueError("bytes after a MessagePack value")
    return value


def _value(data: bytes, at: int) -> tuple[Node, int]:
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag in _FIXED:
        return _number(data, at, _FIXED[tag])
    if tag < 0xC0:
        read = _map if tag < 0x90 else _array if tag < 0xA0 else _text
        return read(data, at, tag & (0x0F if tag < 0xA0 else 0x1F))
    if tag not in _SIZED:
        raise ValueError("an extension type of MessagePack")
    reader, form = _SIZED[tag]
    size, at = _number(data, at, form)
    return reader(data, at, size)


def _number(data: bytes, at: int, form: str) -> tuple[Node, int]:
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)


def _bytes(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise IndexError
    return data[at : at + size], at + size


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    raw, at = _bytes(data, at, size)
    return raw.decode(), at


def _array(data: bytes, at: int, size: int) -> tuple[list[Node], int]:
    items = []
    for _ in range(size):
        item, at = _value(data, at)
        items.append(item)
    return items, at


def _map(data: bytes, at: int, size: int) -> tuple[dict[Node, Node], int]:
    entries = {}
    for _ in range(size):
        key, at = _value(data, at)
        entries[key], at = _value(data, at)
    return entries, at


_SIZED: Mapping[int, tuple[Callable[[bytes, int, int], tuple[Node, int]], str]] = {
    0xC4: (_bytes, ">B"), 0xC5: (_bytes, ">H"), 0xC6: (_bytes, ">I"),
    0xD9: (_text, ">B"), 0xDA: (_text, ">H"), 0xDB: (_text, ">I"),
    0xDC: (_array, ">H"), 0xDD: (_array, ">I"), 0xDE: (_map, ">H"), 0xDF: (_map, ">I"),
}  # fmt: skip
"""What reads a value whose size is written before it, and the form of that size."""
