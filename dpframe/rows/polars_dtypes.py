"""Column types, time zones and columns of constants as Polars has and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from io import BytesIO
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from dpframe.core.dtypes import DType
from dpframe.errors import UnsupportedOperation
from dpframe.rows.failures import FAILURES

# Column types to and from Polars.

_SIMPLE: dict[str, pl.DataType] = {
    name: getattr(pl, name)()
    for name in (
        *("Boolean", "Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32"),
        *("UInt64", "Float32", "Float64", "String", "Date", "Time", "Null", "Binary"),
        "Categorical",
    )
}


def from_polars(dtype: Any) -> DType:
    """The `DType` of a Polars type; an unknown type keeps its name and nothing else."""
    kind = dtype if isinstance(dtype, type) else type(dtype)
    name = kind.__name__
    match name:
        case "Datetime":
            unit = getattr(dtype, "time_unit", None) or "us"
            zone = getattr(dtype, "time_zone", None)
            return DType(name, unit=unit, zone=zone)
        case "Duration":
            return DType(name, unit=getattr(dtype, "time_unit", None) or "us")
        case "Enum":
            return DType(name, categories=tuple(dtype.categories.to_list()))
        case "Decimal":
            return DType(name, precision=dtype.precision or 38, scale=dtype.scale or 0)
        case "List":
            return DType(name, inner=from_polars(dtype.inner))
        case "Array":
            if len(getattr(dtype, "shape", (1,))) != 1:
                return DType("Array of arrays")
            return DType(name, inner=from_polars(dtype.inner), width=int(dtype.shape[0]))
        case "Struct":
            return DType(name, fields=tuple((f.name, from_polars(f.dtype)) for f in dtype.fields))
        case _:
            return DType(name)


def to_polars(dtype: DType) -> pl.DataType:
    """The Polars type of a `DType` that dpframe knows."""
    match dtype.name:
        case "Datetime":
            return pl.Datetime(dtype.unit or "us", dtype.zone)  # type: ignore[arg-type]
        case "Duration":
            return pl.Duration(dtype.unit or "us")  # type: ignore[arg-type]
        case "Enum":
            return pl.Enum(list(dtype.categories or ()))
        case "Decimal":
            return pl.Decimal(dtype.precision, dtype.scale or 0)
        case "List":
            assert dtype.inner is not None
            return pl.List(to_polars(dtype.inner))
        case "Array":
            assert dtype.inner is not None
            assert dtype.width is not None
            return pl.Array(to_polars(dtype.inner), dtype.width)
        case "Struct":
            return pl.Struct({n: to_polars(t) for n, t in dtype.fields or ()})
        case name:
            return _SIMPLE[name]


def schema_from_polars(schema: Mapping[str, pl.DataType]) -> dict[str, DType]:
    """Names and types of a Polars schema."""
    return {name: from_polars(dtype) for name, dtype in schema.items()}


# Constants in time zones, by the rules that Polars has for a zone.
#
# Python and Polars have time zone databases of their own. They differ about the clocks of long ago
# (by two minutes in Amsterdam before 1937), and about years to come where one of them is older.
# Polars takes a Python datetime for what the clocks of its zone show, so a constant is the moment
# at which they show that by its rules, and not by Python's.

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def since_epoch(value: datetime) -> int:
    """The microseconds from 1970-01-01 in UTC to a moment; one without a zone is in UTC."""
    zone = getattr(value.tzinfo, "key", None)
    if isinstance(zone, str) and zone != "UTC":
        found = _in_zone(value.replace(tzinfo=None), zone, value.fold)
        if found is not None:
            return found
    offset = value.utcoffset() or timedelta(0)
    return (value.replace(tzinfo=None) - _EPOCH - offset) // _MICROSECOND


def in_zone(moment: datetime, zone: ZoneInfo) -> datetime:
    """What clocks in a zone show at a moment, which is given in UTC. Raises `OverflowError` when
    Python does not have the year that they show.
    """
    if zone.key == "UTC":
        return moment.replace(tzinfo=zone)
    here = pl.Series([moment], dtype=pl.Datetime("us")).dt.replace_time_zone("UTC")
    try:
        clocks: datetime = (
            here.dt.convert_time_zone(zone.key).dt.replace_time_zone(None).to_list()[0]
        )
    except FAILURES as error:
        raise OverflowError from error
    is_second = since_epoch(moment) != _in_zone(clocks, zone.key, 0)
    return clocks.replace(tzinfo=zone, fold=int(is_second))


def is_shown(wall: datetime, zone: str, choice: str | None) -> bool:
    """Whether clocks in a zone ever show a time; only once, without a `choice` of two."""
    found = pl.Series([wall], dtype=pl.Datetime("us")).dt.replace_time_zone(
        zone,
        ambiguous=choice or "null",  # type: ignore[arg-type]
        non_existent="null",
    )
    return found.null_count() == 0


def _in_zone(wall: datetime, zone: str, fold: int) -> int | None:
    """The moment at which clocks in a zone show a time, first or again; None if they never do, or
    Polars does not have the zone.
    """
    try:
        found = pl.Series([wall], dtype=pl.Datetime("us")).dt.replace_time_zone(
            zone, ambiguous="latest" if fold else "earliest", non_existent="null"
        )
    except FAILURES:
        return None
    physical = found.to_physical().to_list()[0]
    return None if physical is None else int(physical)


def time_zone(name: str) -> str:
    """The time zone by the name that Polars knows it under. Raises `UnsupportedOperation` when
    Polars does not know it.
    """
    zone = _known(name)
    if zone is None:
        raise _unknown_zone(name)
    return zone


def require_zone(name: str) -> None:
    """Refuse a time zone that Polars does not know by this name."""
    if _known(name) != name:
        raise _unknown_zone(name)


def _unknown_zone(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{name!r} is not a time zone",
        remedy='write a name of the time zone database, such as "UTC" or "Europe/Paris"',
    )


@lru_cache(maxsize=256)
def _known(name: str) -> str | None:
    if name in ("", "*"):  # a wildcard of Polars
        return None
    try:
        cast = pl.Series([0], dtype=pl.Int64).cast(pl.Datetime("us", name))
        cast.dt.year()  # some settings defer the check of the name to its first use
    except FAILURES:
        return None
    return getattr(cast.dtype, "time_zone", None)


# Lists and Series that are constants of an expression: Arrow IPC streams of one column.

_CACHED_BYTES = 4_096


def read_ipc(data: bytes | list[int]) -> pl.Series:
    """The column in an IPC stream, given as bytes or as a list of byte values."""
    stream = bytes(data)
    return _column(stream) if len(stream) <= _CACHED_BYTES else _column.__wrapped__(stream)


@lru_cache(maxsize=256)
def _column(stream: bytes) -> pl.Series:
    return pl.read_ipc_stream(BytesIO(stream)).to_series()


# Column types as Polars writes them into an expression.

TIME_UNITS = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}


def read_dtype_expression(node: object) -> DType:
    """The type in a cast or a parse; types that depend on another expression are refused."""
    if isinstance(node, dict) and set(node) == {"Literal"}:
        return read_dtype(node["Literal"])
    raise UnsupportedOperation(
        "a type that is computed from another expression is not supported",
        remedy="write the type itself, such as pl.Float64",
    )


def read_dtype(node: object) -> DType:
    """The `DType` of a plain type. Raises `UnsupportedOperation` for a type that dpframe does not
    know, such as `Object`.
    """
    if isinstance(node, str):
        found = DType(node)
        if node in ("Datetime", "Duration", "Decimal", "List", "Array", "Struct", "Enum"):
            raise _unsupported_type(node)
    elif isinstance(node, dict) and len(node) == 1:
        [(name, body)] = node.items()
        found = _with_parameters(name, body)
    else:
        raise _unsupported_type("of this form")
    if not found.is_known:
        raise _unsupported_type(found.name)
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
            raise _unsupported_type(name)


def read_zone(node: Any) -> str | None:
    """A time zone's name, checked."""
    if node is None:
        return None
    return time_zone(node["inner"] if isinstance(node, dict) else node)


def _unsupported_type(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the type {name} is not supported",
        remedy="use Boolean, integers, floats, Decimal, String, Enum, Categorical, Date, Datetime, "
        "Duration, Time, List, Array or Struct",
    )
