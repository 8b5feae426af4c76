"""Constants: their domain, words and lowering."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import DType
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.core.tree import Literal
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars
from dpframe.rows.zones import since_epoch

_EPOCH = date(1970, 1, 1)
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
            days = (value - _EPOCH).days
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
