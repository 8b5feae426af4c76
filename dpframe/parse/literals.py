"""Constants: from Polars' form to `Literal`, and lists of constants to `Values`."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from dpframe.core.domain import Scalar
from dpframe.core.dtypes import (
    DATE,
    FLOAT64,
    INT64,
    NULL,
    STRING,
    TIME,
    DType,
    datetime_type,
    duration_type,
    enum_type,
)
from dpframe.core.tree import Literal
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.parse.dtypes import TIME_UNITS, read_dtype, read_zone
from dpframe.parse.ipc import read_ipc
from dpframe.rows.literal import physical
from dpframe.rows.polars_dtypes import from_polars
from dpframe.rows.zones import in_zone

_EPOCH = datetime(1970, 1, 1)
_INT64 = (-(2**63), 2**63 - 1)
_TEMPORAL = ("Date", "Datetime", "Duration", "Time")


@dataclass(frozen=True, slots=True)
class Values:
    """Several constants: a list, or a Series that the analyst wrote.

    Only `is_in` and `replace` take them; anywhere else they would be rows of their own.
    """

    values: tuple[Scalar, ...]
    dtype: DType


def read_literal(body: Any) -> Literal | Values:
    """The constant in a ``Literal`` node.

    Raises
    ------
    UnsupportedOperation
        For integers beyond Int64, for instants finer than a microsecond or beyond year 9999, and
        for constants that are not scalars.
    """
    if not isinstance(body, Mapping) or len(body) != 1:
        raise _not_a_scalar()
    [(kind, value)] = body.items()
    match kind:
        case "Dyn":
            return _dynamic(value)
        case "Scalar":
            return _scalar(value)
        case "Series":
            return _series(read_ipc(value))
        case _:
            raise _not_a_scalar()


def _dynamic(node: Mapping[str, Any]) -> Literal:
    [(kind, value)] = node.items()
    match kind:
        case "Int":
            return Literal(_int64(value), INT64)
        case "Float":
            return Literal(float(value), FLOAT64)
        case "Str":
            return Literal(str(value), STRING)
        case _:
            raise _not_a_scalar()


def _whole(value: int | bytes) -> int:
    """A whole number; 128 bits are bytes where there are no larger numbers."""
    return int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else int(value)


def _int64(value: int | bytes) -> int:
    number = _whole(value)
    if not _INT64[0] <= number <= _INT64[1]:
        raise UnsupportedOperation(
            f"the constant {number} does not fit in Int64",
            remedy="use a number between -2**63 and 2**63 - 1, or a float",
        )
    return number


def _scalar(node: Mapping[str, Any]) -> Literal | Values:
    [(kind, value)] = node.items()
    match kind:
        case "Null":
            return Literal(None, NULL if value == "Null" else read_dtype(value))
        case "Boolean":
            return Literal(bool(value), DType("Boolean"))
        case "String" | "StringOwned":
            return Literal(str(value), STRING)
        case "Binary" | "BinaryOwned":
            return Literal(bytes(value), DType("Binary"))
        case "Float32":
            return Literal(_float32(float(value)), DType("Float32"))
        case "Float64":
            return Literal(float(value), FLOAT64)
        case "Decimal":
            return _decimal(*value)
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
            return Literal(_int64(value), DType(kind))
        case _:
            raise _not_a_scalar()


def _decimal(digits: int | bytes, *parameters: int) -> Literal:
    """A decimal from its digits and its scale; the oldest Polars leaves out the precision."""
    precision, scale = parameters if len(parameters) == 2 else (38, parameters[0])
    return _decimal_literal(_whole(digits), DType("Decimal", precision=precision, scale=scale))


def _decimal_literal(digits: int, dtype: DType) -> Literal:
    """A decimal constant: all its digits, and as many after the point as its type has."""
    parts = (1 if digits < 0 else 0, tuple(map(int, str(abs(digits)))), -(dtype.scale or 0))
    return Literal(Decimal(parts), dtype)


def _float32(value: float) -> float:
    """The nearest Float32, so that intervals made of the constant are exact."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _series(series: pl.Series) -> Values:
    """The values of a constant Series; one that holds a single list means that list."""
    if len(series) == 1 and isinstance(series.dtype, pl.List):
        inner = series.item()
        series = inner if inner is not None else pl.Series([], dtype=series.dtype.inner)
    return _values(series)


def _values(series: pl.Series) -> Values:
    dtype = from_polars(series.dtype)
    if dtype.is_nested or not dtype.is_known:
        raise _not_a_scalar()
    if dtype.name in ("Datetime", "Duration", "Time"):
        physical = series.to_physical().cast(pl.Int64).to_list()
        values = tuple(None if p is None else from_physical(p, dtype).value for p in physical)
    else:
        values = tuple(_int64(v) if type(v) is int else v for v in series.to_list())
    return Values(values, dtype)


def single(values: Values) -> Literal:
    """The one value of a Series used as an operand."""
    if len(values.values) != 1:
        raise UnsupportedOperation(
            f"a list or Series of {len(values.values)} values cannot be an operand: "
            "its values would line up with private rows",
            remedy="use one constant, or .is_in([...]) or .replace({...}) for several",
        )
    return Literal(values.values[0], values.dtype)


def from_physical(value: int, dtype: DType) -> Literal:
    """A temporal constant from its physical units."""
    try:
        if not _INT64[0] <= value <= _INT64[1]:
            raise OverflowError
        if dtype.name == "Date":
            return Literal(date(1970, 1, 1) + timedelta(days=value), dtype)
        micros, rest = divmod(value * 10**6, dtype.units_per_second)
        if rest:
            raise UnsupportedOperation(
                "a constant finer than a microsecond is not supported",
                remedy="round it to microseconds",
            )
        span = timedelta(microseconds=micros)
        match dtype.name:
            case "Duration":
                return Literal(span, dtype)
            case "Time":
                if not 0 <= value < 86_400 * 10**9:
                    raise OverflowError
                return Literal((_EPOCH + span).time(), dtype)
            case _:
                return Literal(_in_zone(_EPOCH + span, dtype.zone), dtype)
    except OverflowError:
        raise UnsupportedOperation(
            "a date or duration in the expression is out of range",
            remedy="use one between the years 1 and 9999",
        ) from None


def _in_zone(moment: datetime, zone: str | None) -> datetime:
    return moment if zone is None else in_zone(moment, zone_info(zone))


def zone_info(zone: str) -> ZoneInfo:
    """Python's time zone of that name."""
    try:
        return ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        raise UnsupportedOperation(
            f"the time zone {zone!r} is not known to Python",
            remedy="install the package tzdata, or use UTC",
        ) from None


def to_physical(value: Scalar, dtype: DType) -> int | None:
    """A temporal constant in its physical units; None for any other."""
    if not isinstance(value, (date, time, timedelta)):
        return None
    units = physical(value, dtype)
    return None if units is None else math.floor(units)


def cast_literal(literal: Literal, dtype: DType) -> Literal | None:
    """The constant as another type, when that loses nothing and cannot fail; else None.

    Oldest Polars writes ``pl.lit(1, dtype=pl.Int8)`` as a cast, newer ones as a typed constant;
    both become the same tree.
    """
    value = literal.value
    if value is None or literal.dtype == dtype:
        return Literal(value, dtype)
    match value:
        case bool():
            return None
        case int() if dtype.name in _TEMPORAL:
            return _or_none(value, dtype) if literal.dtype.is_integer else None
        case int() | float() | Decimal():
            return _cast_number(value, dtype)
        case str() if dtype.name in ("String", "Categorical"):
            return Literal(value, dtype)
        case str() if dtype.name == "Enum" and value in (dtype.categories or ()):
            return Literal(value, dtype)
        case date() | timedelta() if dtype.name in _TEMPORAL:
            return _cast_temporal(literal, dtype)
        case _:
            return None


def _cast_number(value: float | Decimal, dtype: DType) -> Literal | None:
    if not math.isfinite(value):
        number = float(value)
        return Literal(number, dtype) if dtype.is_float else None
    exact = Fraction(value)
    if dtype.is_float:
        return _cast_float(exact, dtype)
    if dtype.is_integer and exact.denominator == 1:
        low, high = dtype.limits or (0, 0)
        return Literal(int(exact), dtype) if low <= exact <= high else None
    if dtype.is_decimal:
        digits = exact * 10 ** (dtype.scale or 0)
        if digits.denominator == 1 and abs(digits) < 10 ** (dtype.precision or 38):
            return _decimal_literal(int(digits), dtype)
    return None


def _cast_float(exact: Fraction, dtype: DType) -> Literal | None:
    try:
        number = float(exact)
    except OverflowError:
        return None
    if Fraction(number) != exact:
        return None
    return Literal(_float32(number) if dtype.name == "Float32" else number, dtype)


def _cast_temporal(literal: Literal, dtype: DType) -> Literal | None:
    """Casts that keep the physical instant; those that depend on a time zone are left alone."""
    units = to_physical(literal.value, literal.dtype)
    if units is None:
        return None
    source, zoned = literal.dtype, literal.dtype.zone is not None or dtype.zone is not None
    match source.name, dtype.name:
        case "Date", "Datetime" if not zoned:
            return _or_none(units * 86_400 * dtype.units_per_second, dtype)
        case "Datetime", "Date" if not zoned:
            return _or_none(units // (86_400 * source.units_per_second), dtype)
        case "Datetime", "Time" if not zoned:
            day = 86_400 * source.units_per_second
            return _or_none(units % day * (10**9 // source.units_per_second), dtype)
        case "Datetime", "Datetime":
            return _or_none(units * dtype.units_per_second // source.units_per_second, dtype)
        case "Duration", "Duration":  # towards zero, where instants are rounded down
            scaled = abs(units) * dtype.units_per_second // source.units_per_second
            return _or_none(scaled if units >= 0 else -scaled, dtype)
        case _:
            return None


def _or_none(units: int, dtype: DType) -> Literal | None:
    try:
        return from_physical(units, dtype)
    except DPFrameError:
        return None


def _not_a_scalar() -> UnsupportedOperation:
    return UnsupportedOperation(
        "a constant that is not a single number, text, Boolean, date or time is not supported",
        remedy="use one constant, or .is_in([...]) or .replace({...}) for several",
    )
