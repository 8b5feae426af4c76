"""Constants that an analyst wrote: their types and facts, their words and lowering, their casts."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from dpframe.core.dtypes import (
    BOOLEAN,
    DATE,
    FLOAT64,
    NULL,
    STRING,
    TIME,
    Domain,
    DType,
    Scalar,
    datetime_type,
    duration_type,
)
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.core.parameters import Listed
from dpframe.core.tree import Constant, Literal
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.rows.failures import FAILURES
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import in_zone, since_epoch, to_polars

# Constants: their domain, words and lowering.

_EPOCH_DAY = date(1970, 1, 1)
_MOST_DIGITS = 4_000


def physical(value: Scalar, dtype: DType) -> Fraction | None:
    """A constant as a number in physical units, or None when it has none (text, null, NaN, inf)."""
    match value:
        case bool() | int():
            return Fraction(value)
        case Decimal():
            sensible = value.is_finite() and abs(value.adjusted()) < _MOST_DIGITS
            return Fraction(value) if sensible else None
        case float():
            return Fraction(value) if math.isfinite(value) else None
        case datetime():
            micros = since_epoch(value)
            if dtype.name == "Date":
                return Fraction(micros // 86_400_000_000)
            return Fraction(micros * dtype.units_per_second, 10**6)
        case date():
            days = (value - _EPOCH_DAY).days
            return Fraction(
                days * (86_400 * dtype.units_per_second if dtype.name == "Datetime" else 1)
            )
        case timedelta():
            micros = value // timedelta(microseconds=1)
            return Fraction(micros * dtype.units_per_second, 10**6)
        case time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return Fraction(seconds * 10**9 + value.microsecond * 1000)
        case _:
            return None


def literal_domain(literal: Literal) -> Domain:
    """A constant is one point, null only when it is null."""
    value = literal.value
    number = physical(value, literal.dtype)
    return Domain(
        literal.dtype,
        nullable=value is None,
        nan=isinstance(value, float) and math.isnan(value),
        interval=EVERYTHING if number is None else Interval(number, number),
        categories=() if value is None else (value,),
    )


def literal_words(literal: Literal) -> str:
    """The constant as Python writes it; a parameter by its name."""
    if literal.parameter is not None:
        return f":{literal.parameter.name}"
    match literal.value:
        case str(text):
            return f'"{text}"' if '"' not in text else repr(text)
        case datetime() as moment:
            return f'datetime("{moment.isoformat(sep=" ")}")'
        case date() as day:
            return f'date("{day.isoformat()}")'
        case time() as clock:
            return f'time("{clock.isoformat()}")'
        case timedelta() as span:
            return f'duration("{span}")'
        case other:
            return str(other)


def literal_lower(literal: Literal, ns: Namespace) -> pl.Expr:
    """The constant, typed, so that no engine widens or narrows it on its own."""
    if literal.dtype.name == "Null":
        null: pl.Expr = ns.lit(None)
        return null
    expression: pl.Expr = ns.lit(literal.value, dtype=to_polars(literal.dtype))
    return expression


def constant_type(value: Scalar) -> DType:
    """The type of a Python value: the widest of its kind, so that no engine narrows it."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            for name in ("Int64", "UInt64", "Int128"):
                low, high = DType(name).limits or (0, 0)
                if low <= value <= high:
                    return DType(name)
            raise OverflowError("an integer constant does not fit in 128 bits")
        case float():
            return FLOAT64
        case str():
            return STRING
        case Decimal():
            exponent = value.as_tuple().exponent
            if not isinstance(exponent, int):
                raise ValueError("a Decimal constant is not finite")
            return DType("Decimal", precision=38, scale=max(0, -exponent))
        case datetime():
            key = getattr(value.tzinfo, "key", None)
            zone = key if isinstance(key, str) else "UTC"
            return datetime_type("us", None if value.tzinfo is None else zone)
        case date():
            return DATE
        case time():
            return TIME
        case timedelta():
            return duration_type("us")
        case bytes():
            return DType("Binary")
        case _:
            raise TypeError(f"a constant of type {type(value).__name__} is not known")


def constant(value: Scalar) -> Literal:
    """A Python value as a typed constant."""
    return Literal(value, constant_type(value))


def constant_words(value: Constant) -> str:
    """A constant as Python writes it; long tuples are cut short."""
    if isinstance(value, Listed):
        return f":{value.parameter.name}"
    if isinstance(value, tuple):
        shown = [constant_words(item) for item in value[:8]]
        return ", ".join(shown if len(value) <= 8 else [*shown, f"... {len(value)} in all"])
    if isinstance(value, DType):
        return str(value)
    return literal_words(constant(value))


def sole_value(domain: Domain) -> Scalar:
    """The value of an operand that is a constant, or None when it is not one."""
    if domain.categories is None or len(domain.categories) != 1 or domain.nullable:
        return None
    return domain.categories[0]


def constants(values: tuple[Scalar, ...]) -> list[Domain]:
    """The facts about each of several constants."""
    return [literal_domain(constant(value)) for value in values]


def sole_integer(domain: Domain) -> int | None:
    """The value of an operand that is a whole constant of an integer type."""
    value = sole_value(domain)
    return value if isinstance(value, int) and domain.dtype.is_integer else None


def sole_number(domain: Domain) -> Fraction | None:
    """The value of an operand that is a finite numeric constant."""
    return domain.interval.lo if domain.interval.is_point and not domain.nan else None


# Values that a person listed, as a column of a given type.


def listed(name: str, values: Sequence[object], dtype: DType) -> pl.Series | None:
    """The values as a column that holds exactly them; None when some are not values of the type.

    Polars would take some for others: a moment for the millisecond before it, 1.5 for 1, 2**53 + 1
    for a float. Dates are midnights of moments without a zone, numbers are rounded to Float32 as in
    comparisons with it, zero has no sign, and NaN is no value. Categories are text.
    """
    stored = pl.String() if dtype.name == "Categorical" else to_polars(dtype)
    given = list(values)
    if not dtype.is_boolean and not {bool, np.bool_}.isdisjoint(map(type, given)):
        return None
    try:
        if dtype.name == "Datetime" and dtype.zone is None:
            given = [datetime.combine(v, time()) if type(v) is date else v for v in given]
        if dtype.is_float:
            given = [None if v is None else _real(v, dtype) for v in given]
        made = pl.Series(name, given, dtype=stored, strict=True)
        same = made.dtype == stored and made.to_list() == given
    except FAILURES:  # of Polars, which panics at some Decimals
        return None
    return made if same else None


def _real(value: Any, dtype: DType) -> Any:
    """A number as a column of floats holds it, without the sign of a zero. Raises `TypeError,
    ValueError` when it is no number, or NaN.
    """
    if isinstance(value, str) or value != value:
        raise ValueError("not a number")
    return float(np.float32(value)) + 0.0 if dtype.name == "Float32" else value + 0


# Constants in another type: from physical units, and from other types.

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
                moment = _EPOCH + span
                zone = None if dtype.zone is None else zone_info(dtype.zone)
                return Literal(moment if zone is None else in_zone(moment, zone), dtype)
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
        try:
            number = float(exact)
        except OverflowError:
            return None
        if Fraction(number) != exact:
            return None
        return Literal(nearest_float32(number) if dtype.name == "Float32" else number, dtype)
    if dtype.is_integer and exact.denominator == 1:
        low, high = dtype.limits or (0, 0)
        return Literal(int(exact), dtype) if low <= exact <= high else None
    if dtype.is_decimal:
        digits = exact * 10 ** (dtype.scale or 0)
        if digits.denominator == 1 and abs(digits) < 10 ** (dtype.precision or 38):
            return decimal_literal(int(digits), dtype)
    return None


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
