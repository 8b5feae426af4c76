"""Constants in another type: from physical units, and from other types."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

from dpframe.core.domain import Scalar
from dpframe.core.dtypes import DType
from dpframe.core.tree import Literal
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.rows.literal import physical
from dpframe.rows.zones import in_zone

_EPOCH = datetime(1970, 1, 1)
_INT64 = (-(2**63), 2**63 - 1)
_TEMPORAL = ("Date", "Datetime", "Duration", "Time")


def decimal_literal(digits: int, dtype: DType) -> Literal:
    """A decimal constant: all its digits, and as many after the point as its type has."""
    parts = (1 if digits < 0 else 0, tuple(map(int, str(abs(digits)))), -(dtype.scale or 0))
    return Literal(Decimal(parts), dtype)


def nearest_float32(value: float) -> float:
    """The nearest Float32, so that intervals made of the constant are exact."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def from_physical(value: int, dtype: DType) -> Literal:
    """A temporal constant from its physical units."""
    try:
        if not _INT64[0] <= value <= _INT64[1]:
            raise OverflowError
        if dtype.name == "Date":
            return Literal(date(1970, 1, 1) + timedelta(days=value), dtype)
        micros, rest = divmod(value * 10**6, dtype.units_per_second)
        if rest:
            raise too_fine()
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
        raise out_of_range() from None


def too_fine() -> UnsupportedOperation:
    """The refusal of a date or duration that Python would round."""
    return UnsupportedOperation(
        "a constant finer than a microsecond is not supported", remedy="round it to microseconds"
    )


def out_of_range() -> UnsupportedOperation:
    """The refusal of a date or duration that Python cannot hold."""
    return UnsupportedOperation(
        "a date or duration in the expression is out of range",
        remedy="write a date between the years 1 and 9999, or a shorter duration",
    )


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
    if literal.parameter is not None:  # plans keep the cast of a parameter as it was written
        return literal if literal.dtype == dtype else None
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
            return decimal_literal(int(digits), dtype)
    return None


def _cast_float(exact: Fraction, dtype: DType) -> Literal | None:
    try:
        number = float(exact)
    except OverflowError:
        return None
    if Fraction(number) != exact:
        return None
    return Literal(nearest_float32(number) if dtype.name == "Float32" else number, dtype)


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
