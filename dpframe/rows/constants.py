"""Constants that an analyst wrote: their types, and their facts."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT64,
    NULL,
    STRING,
    TIME,
    DType,
    datetime_type,
    duration_type,
)
from dpframe.core.parameters import Listed
from dpframe.core.tree import Constant, Literal
from dpframe.rows.literal import literal_domain, literal_words


def constant_type(value: Scalar) -> DType:
    """The type of a Python value: the widest of its kind, so that no engine narrows it."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return _integer_type(value)
        case float():
            return FLOAT64
        case str():
            return STRING
        case Decimal():
            return _decimal_type(value)
        case datetime():
            return datetime_type("us", _zone(value))
        case date():
            return DATE
        case time():
            return TIME
        case timedelta():
            return duration_type("us")
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


def _integer_type(value: int) -> DType:
    for name in ("Int64", "UInt64", "Int128"):
        limits = DType(name).limits
        if limits is not None and limits[0] <= value <= limits[1]:
            return INT64 if name == "Int64" else DType(name)
    raise OverflowError("an integer constant does not fit in 128 bits")


def _decimal_type(value: Decimal) -> DType:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError("a Decimal constant is not finite")
    return DType("Decimal", precision=38, scale=max(0, -exponent))


def _zone(value: datetime) -> str | None:
    if value.tzinfo is None:
        return None
    key = getattr(value.tzinfo, "key", None)
    return key if isinstance(key, str) else "UTC"
