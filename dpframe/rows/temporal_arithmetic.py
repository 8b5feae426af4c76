"""Moments and durations added and subtracted, exactly.

Values are taken as whole numbers of their units, computed in 128 bits and put back; a result that
its type cannot hold is null. The result has Polars' type: the coarser of two time units, into which
both operands are converted first. A Date moved by a duration stays a Date, floored; the
difference of two dates is in microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import DATE, INT64, INT128, DType, datetime_type, duration_type
from dpframe.core.interval import Interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.operands import INT64_LIMITS, as_type
from dpframe.rows.temporal import DAY

DATE_LIMITS = (-(2**31), 2**31 - 1)
_COARSE_FIRST = ("ms", "us", "ns")


def is_temporal_sum(a: Domain, b: Domain) -> bool:
    """Whether two operands are added as moments or durations rather than as numbers."""
    return (a.dtype.is_temporal or b.dtype.is_temporal) and all(
        d.dtype.is_temporal or d.dtype.name == "Null" for d in (a, b)
    )


def sum_type(a: DType, b: DType, sign: int) -> DType:
    """The type of `a` plus (`sign` 1) or minus (-1) `b`.

    Raises
    ------
    UnsupportedOperation
        When the two cannot be added or subtracted.
    """
    a, b = _without_null(a, b)
    pair = (a.name, b.name)
    if pair == ("Duration", "Duration"):
        return duration_type(_coarser(a, b))
    if b.name == "Duration" and a.name in ("Date", "Datetime"):
        return DATE if a.name == "Date" else datetime_type(_coarser(a, b), a.zone)
    if sign > 0 and a.name == "Duration" and b.name in ("Date", "Datetime"):
        return sum_type(b, a, 1)
    if sign < 0 and pair == ("Time", "Time"):
        return duration_type("ns")
    if sign < 0 and a.name in ("Date", "Datetime") and b.name in ("Date", "Datetime"):
        if a.zone != b.zone:
            raise UnsupportedOperation(
                f"{a} and {b} are in different time zones",
                remedy="bring both to one zone first, with .dt.convert_time_zone(zone) or "
                ".dt.replace_time_zone(zone)",
            )
        return duration_type(_coarser(a, b))
    word = "added" if sign > 0 else "subtracted"
    raise UnsupportedOperation(
        f"{a} and {b} cannot be {word}",
        remedy="write a number of days or seconds as pl.duration(days=...)"
        " or as a datetime.timedelta",
    )


def added(a: Domain, b: Domain, sign: int) -> Domain:
    """The facts about `a` plus or minus `b`."""
    dtype = sum_type(a.dtype, b.dtype, sign)
    unit = working_unit(a.dtype, b.dtype, dtype)
    first, second = counted_interval(a, unit), counted_interval(b, unit)
    total = first + (second if sign > 0 else -second)
    if dtype == DATE:
        total = total.increasing(lambda end: Fraction(end // units_per_day(unit)))
    limits = DATE_LIMITS if dtype == DATE else INT64_LIMITS
    fits = total.within(limits)
    return Domain(
        dtype,
        nullable=a.nullable or b.nullable or not fits,
        interval=total if fits else _inside(total, limits),
    )


def add_moments(args: Sequence[pl.Expr], domains: Sequence[Domain], sign: int) -> pl.Expr:
    """`a` plus or minus `b`, null where the result's type cannot hold it."""
    a, b = domains
    dtype = sum_type(a.dtype, b.dtype, sign)
    unit = working_unit(a.dtype, b.dtype, dtype)
    first, second = (counted(e, d.dtype, unit) for e, d in zip(args, domains, strict=True))
    total = first + second if sign > 0 else first - second
    if dtype == DATE:
        total = total // units_per_day(unit)
    return as_type(as_type(total, INT64), dtype)


def units_per_day(unit: str) -> int:
    return DAY * duration_type(unit).units_per_second


def counted(expression: pl.Expr, dtype: DType, unit: str) -> pl.Expr:
    """A temporal value as a 128-bit number of units.

    Where its own unit is finer, a Datetime is floored and a Duration cut towards zero, as Polars
    converts them.
    """
    times, divided = unit_ratio(dtype, unit)
    if divided != 1 and dtype.unit is not None:
        expression, divided = as_type(expression, replace(dtype, unit=unit)), 1
    number = as_type(as_type(expression, INT64), INT128)
    if times != 1:
        number = number * times
    return number // divided if divided != 1 else number


def counted_interval(domain: Domain, unit: str) -> Interval:
    """The interval of such numbers."""
    times, divided = unit_ratio(domain.dtype, unit)
    rounded = math.trunc if domain.dtype.name == "Duration" else math.floor
    return domain.interval.increasing(lambda end: Fraction(rounded(end * times / divided)))


def unit_ratio(dtype: DType, unit: str) -> tuple[int, int]:
    """What a physical value is multiplied with, and then divided by, to count in `unit`."""
    if dtype.name == "Null":
        return 1, 1
    if dtype.name == "Date":
        return units_per_day(unit), 1
    own, wanted = dtype.units_per_second, duration_type(unit).units_per_second
    return max(1, wanted // own), max(1, own // wanted)


def working_unit(a: DType, b: DType, result: DType) -> str:
    """The unit in which moments and durations are added."""
    if result == DATE:
        return (a if a.name == "Duration" else b).unit or "us"
    return result.unit or "ns"


def _coarser(a: DType, b: DType) -> str:
    """The coarser of two time units; a Date has none, and the difference of two dates is in
    microseconds."""
    units = {dtype.unit for dtype in (a, b) if dtype.unit is not None}
    return next((unit for unit in _COARSE_FIRST if unit in units), "us")


def _without_null(a: DType, b: DType) -> tuple[DType, DType]:
    """A null operand takes the type that makes the sum a sum: that of a duration."""
    if a.name == "Null":
        return (duration_type(b.unit or "us") if b.name != "Time" else b), b
    if b.name == "Null":
        return a, (duration_type(a.unit or "us") if a.name != "Time" else a)
    return a, b


def _inside(total: Interval, limits: tuple[int, int]) -> Interval:
    """The ends that the type can hold; what lies outside becomes null."""
    return Interval(
        total.lo if total.lo is not None and limits[0] <= total.lo <= limits[1] else None,
        total.hi if total.hi is not None and limits[0] <= total.hi <= limits[1] else None,
    )
