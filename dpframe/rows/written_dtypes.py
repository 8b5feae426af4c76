"""Column types as Polars writes them into an expression."""

from __future__ import annotations

from typing import Any

from dpframe.core.dtypes import DType
from dpframe.errors import UnsupportedOperation
from dpframe.rows.ipc import read_ipc
from dpframe.rows.zones import time_zone

TIME_UNITS = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}


def read_dtype_expression(node: Any) -> DType:
    """The type in a cast or a parse; types that depend on another expression are refused."""
    if isinstance(node, dict) and set(node) == {"Literal"}:
        return read_dtype(node["Literal"])
    raise UnsupportedOperation(
        "a type that is computed from another expression is not supported",
        remedy="write the type itself, such as pl.Float64",
    )


def read_dtype(node: Any) -> DType:
    """The `DType` of a plain type.

    Raises
    ------
    UnsupportedOperation
        For a type that dpframe does not know, such as `Object`.
    """
    if isinstance(node, str):
        found = DType(node)
        if node in ("Datetime", "Duration", "Decimal", "List", "Array", "Struct", "Enum"):
            raise _unknown(node)
    elif isinstance(node, dict) and len(node) == 1:
        [(name, body)] = node.items()
        found = _with_parameters(name, body)
    else:
        raise _unknown("this")
    if not found.is_known:
        raise _unknown(found.name)
    return found


def _with_parameters(name: str, body: Any) -> DType:
    match name, body:
        case "Datetime", [unit, zone]:
            return DType(name, unit=TIME_UNITS[unit], zone=read_zone(zone))
        case "Duration", str(unit):
            return DType(name, unit=TIME_UNITS[unit])
        case "Decimal", [precision, scale]:
            return DType(name, precision=precision or 38, scale=scale or 0)
        case "List", inner:
            return DType(name, inner=read_dtype(inner))
        case "Array", [inner, int(width)]:
            return DType(name, inner=read_dtype(inner), width=width)
        case "Struct", [*fields]:
            pairs = tuple((f["name"], read_dtype(f["dtype"])) for f in fields)
            return DType(name, fields=pairs)
        case "Enum", {"strings": data}:
            return DType(name, categories=tuple(read_ipc(data).to_list()))
        case "Categorical", _:
            return DType(name)
        case _:
            raise _unknown(name)


def read_zone(node: Any) -> str | None:
    """A time zone's name, checked."""
    if node is None:
        return None
    return time_zone(node["inner"] if isinstance(node, dict) else node)


def _unknown(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the type {name} is not supported",
        remedy="use Boolean, integers, floats, Decimal, String, Enum, Categorical, Date, Datetime, "
        "Duration, Time, List, Array or Struct",
    )
