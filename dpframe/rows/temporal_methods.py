"""Methods of dates and times that give dates, times, or counts of a unit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from math import ceil, floor, trunc
from types import MappingProxyType
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import DATE, INT64, TIME, DType, datetime_type
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import interval
from dpframe.core.tree import Literal, Tree
from dpframe.errors import UnsupportedOperation
from dpframe.rows.given import Operand, operand, text
from dpframe.rows.literal_casts import zone_info
from dpframe.rows.operands import as_type, boolean
from dpframe.rows.operation import Kind, Namespace, on, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.spans import Span, require_resolution, span
from dpframe.rows.temporal import (
    DAY,
    INT64_LIMITS,
    Limits,
    TemporalMethod,
    calendar,
    floor_locally,
    guarded,
    has_gaps,
    image,
    in_zone,
    inside,
    kept_inside,
    may_be_off,
    move_locally,
    physical_units,
    point,
)
from dpframe.rows.written_dtypes import TIME_UNITS, read_zone
from dpframe.rows.zones import is_shown, require_zone

_DATES = (-(2**31), 2**31 - 1)
_FARTHEST = 2 * DAY
"""Seconds; no two local times differ by more."""
_LONGEST_MONTH = 31 * DAY
_SHORTER_MONTH = 3 * DAY
"""A month is at most this much shorter than another: across it two days may move farther from
each other."""


@operation
class IsLeapYear(TemporalMethod):
    """Whether the year has 366 days."""

    engines = EVERYWHERE
    examples = on("d dtz", "dt.is_leap_year()")

    def result(self, operand: Domain) -> Domain:
        return boolean(operand.nullable)


@operation
class DateOf(TemporalMethod):
    """The date, local where there is a zone; null outside the years 1 to 9999."""

    name = "dt_date"
    reads = ("TemporalExpr.Date",)
    engines = EVERYWHERE
    examples = on("dt dtz dtb", "dt.date()")

    def result(self, operand: Domain) -> Domain:
        day, off = physical_units(operand.dtype, DAY), int(operand.dtype.zone is not None)
        dates = operand.interval.increasing(lambda end: Fraction(floor(end / day)))
        return Domain(DATE, nullable=operand.nullable, interval=dates + interval(-off, off))


@operation
class TimeOf(TemporalMethod):
    """The time of day, local where there is a zone; null outside the years 1 to 9999."""

    name = "dt_time"
    reads = ("TemporalExpr.Time",)
    examples = on("dt dtz t", "dt.time()")
    types = ("Datetime", "Time")

    def result(self, operand: Domain) -> Domain:
        if operand.dtype == TIME:
            return operand
        return Domain(TIME, nullable=operand.nullable, interval=interval(0, DAY * 10**9 - 1))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if domains[0].dtype == TIME:
            return args[0]
        return TemporalMethod.lower(self, ns, args, domains)


@operation
class InUnit(TemporalMethod):
    """In a constant unit; null where it does not fit."""

    unit: str

    def check(self) -> None:
        if self.unit not in ("ms", "us", "ns"):
            raise ValueError(f"{self.unit!r} is not a time unit")

    @classmethod
    def parameters(cls, params: Any) -> Mapping[str, Any]:
        return {"unit": TIME_UNITS[params]}

    def limits(self, dtype: DType) -> Limits | None:
        factor, every = self._factor(dtype), _DATES if dtype.name == "Date" else INT64_LIMITS
        limits = ceil(INT64_LIMITS[0] / factor), floor(INT64_LIMITS[1] / factor)
        return None if limits[0] <= every[0] and limits[1] >= every[1] else limits

    def result(self, operand: Domain) -> Domain:
        factor = self._factor(operand.dtype)
        rounding: Callable[[Fraction], int] = trunc if operand.dtype.name == "Duration" else floor
        known = operand.interval.increasing(lambda end: Fraction(rounding(end * factor)))
        return Domain(self.type(operand.dtype), nullable=operand.nullable, interval=known)

    @abstractmethod
    def type(self, dtype: DType) -> DType:
        """The type of the result."""

    def _factor(self, dtype: DType) -> Fraction:
        """Units of the result for one physical unit of the operand."""
        per_second = DType("Duration", unit=self.unit).units_per_second
        if dtype.name == "Date":
            return Fraction(DAY * per_second)
        return Fraction(per_second, dtype.units_per_second)


@operation
class Timestamp(InUnit):
    """Units since 1970-01-01 (UTC where there is a zone); null where they do not fit."""

    reads = ("TemporalExpr.TimeStamp",)
    engines = EVERYWHERE
    examples = (
        *on("d dtz", 'dt.timestamp("ms")'),
        *on("dt", 'dt.timestamp("us")'),
        *on("dtb", 'dt.timestamp("ns")'),
    )

    def type(self, dtype: DType) -> DType:
        return INT64

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return as_type(InUnit.apply(self, ns, operand), INT64)


@operation
class CastTimeUnit(InUnit):
    """The same Datetime or Duration in another unit; null where it does not fit.

    A coarser unit rounds a Datetime down and a Duration towards zero, as Polars does.
    """

    examples = (
        *on("dt durb", 'dt.cast_time_unit("ms")'),
        *on("dtb dur", 'dt.cast_time_unit("ns")'),
    )
    types = ("Datetime", "Duration")

    def type(self, dtype: DType) -> DType:
        return replace(dtype, unit=self.unit)


class Move(TemporalMethod):
    """To another date or time of the same type; null where that is outside the years 1 to 9999, or
    a local time that the clock skips.
    """

    __slots__ = ()

    @abstractmethod
    def move(self, ns: Namespace, value: pl.Expr, dtype: DType) -> pl.Expr:
        """The move of a value for which it is defined."""

    @abstractmethod
    def slack(self, dtype: DType) -> int:
        """By how many physical units a later value may come to an earlier one."""

    def result(self, operand: Domain) -> Domain:
        def lower(value: pl.Expr) -> pl.Expr:
            return self.lower(pl, [value], [operand])

        return image(operand, lower, calendar(operand.dtype), self.slack(operand.dtype))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        moved = guarded(
            ns, args[0], dtype, self.limits(dtype), lambda value: self.move(ns, value, dtype)
        )
        return kept_inside(ns, moved, dtype, calendar(dtype))


class WithinMonth(Move):
    """A move that keeps the local time of day."""

    __slots__ = ()

    def limits(self, dtype: DType) -> Limits | None:
        return calendar(dtype, _LONGEST_MONTH)

    def slack(self, dtype: DType) -> int:
        # The time of day stays, so within a month a later value can come to an earlier one.
        day = 0 if dtype.name == "Date" else physical_units(dtype, DAY)
        return day + may_be_off(dtype, _LONGEST_MONTH)

    def move(self, ns: Namespace, value: pl.Expr, dtype: DType) -> pl.Expr:
        return move_locally(ns, value, dtype, lambda local: self.apply(ns, local))


@operation
class MonthStart(WithinMonth):
    """The first day of the month, at the same time; null where the clock skips that."""

    engines = EVERYWHERE
    examples = on("d dtz", "dt.month_start()")


@operation
class MonthEnd(WithinMonth):
    """The last day of the month, at the same time; null where the clock skips that."""

    engines = EVERYWHERE
    examples = on("dtb dtz", "dt.month_end()")


@operation
class OffsetBy(Move):
    """The date or time moved by a constant span such as 1mo or -2d12h.

    Months, weeks and days move local time; hours and less then move the instant. A day that a
    shorter month lacks becomes its last. A local time that the clock shows twice stays in the same
    showing. A Datetime in nanoseconds is null where it is within the span of the type's ends.
    """

    engines = EVERYWHERE
    examples = (
        *on("d", 'dt.offset_by("1mo")'),
        *on("dt", 'dt.offset_by("-1y2d")'),
        *on("dtb", 'dt.offset_by("36h")'),
        *on("dtz", 'dt.offset_by("1d12h")'),
        *on("dtms", 'dt.offset_by("-250ms")'),
    )
    called = MappingProxyType({"by": "offset"})
    by: str

    def check(self) -> None:
        span(self.by)

    def limits(self, dtype: DType) -> Limits | None:
        by = span(self.by)
        require_resolution(by, dtype, self.method)
        return calendar(dtype, by.seconds)

    def slack(self, dtype: DType) -> int:
        return may_be_off(dtype, _SHORTER_MONTH if span(self.by).months else 0)

    def move(self, ns: Namespace, value: pl.Expr, dtype: DType) -> pl.Expr:
        by, days = span(self.by), span(self.by).calendar_part
        if days.kinds:
            value = move_locally(ns, value, dtype, lambda local: local.dt.offset_by(days.text))
        if not by.nanoseconds:
            return value
        units = by.nanoseconds // (10**9 // dtype.units_per_second)
        signed = -units if by.negative else units
        return value + point(ns, signed, DType("Duration", unit=dtype.unit))


@operation
class ToBoundary(Move):
    """Outside the years 1 to 9999, and where the clock skips the boundary, the result is null."""

    called = MappingProxyType({"every": "window"})
    every: str

    def check(self) -> None:
        window(self.every)

    def limits(self, dtype: DType) -> Limits | None:
        """Where a Datetime in nanoseconds can be moved by two windows (weeks start in 1969)."""
        every = window(self.every)
        require_resolution(every, dtype, self.method)
        return calendar(dtype, 2 * every.seconds + 7 * DAY)

    def slack(self, dtype: DType) -> int:
        return may_be_off(dtype, window(self.every).seconds)


@operation
class Truncate(ToBoundary):
    """The last boundary of a constant window that is not later.

    Where the clock shows a boundary twice, the last showing that is not later is taken.
    """

    engines = EVERYWHERE
    examples = (
        *on("d", 'dt.truncate("1mo")'),
        *on("dt", 'dt.truncate("1h")'),
        *on("dtb", 'dt.truncate("1w")'),
        *on("dtz", 'dt.truncate("1d")'),
        *on("dtms", 'dt.truncate("15m")'),
    )

    def move(self, ns: Namespace, value: pl.Expr, dtype: DType) -> pl.Expr:
        return _truncate(ns, value, dtype, window(self.every))


@operation
class Round(ToBoundary):
    """The nearest boundary of a constant window.

    Ties go up. Parts of a day are counted on the clock's ticks, also where it is set.
    """

    engines = EVERYWHERE
    examples = (
        *on("d", 'dt.round("1mo")'),
        *on("dt", 'dt.round("1h")'),
        *on("dtb", 'dt.round("1w")'),
        *on("dtz", 'dt.round("30m")'),
    )

    def move(self, ns: Namespace, value: pl.Expr, dtype: DType) -> pl.Expr:
        every = window(self.every)
        if every.nanoseconds:
            half = every.nanoseconds // (2 * (10**9 // dtype.units_per_second))
            later = value + point(ns, half, DType("Duration", unit=dtype.unit))
            return _truncate(ns, later, dtype, every)

        def nearest(local: pl.Expr) -> pl.Expr:
            before = local.dt.truncate(every.text)
            after = before.dt.offset_by(every.text)
            is_nearer = (after - local) <= (local - before)
            found: pl.Expr = ns.when(is_nearer).then(after).otherwise(before)
            return found

        return move_locally(ns, value, dtype, nearest)


def _truncate(ns: Namespace, value: pl.Expr, dtype: DType, every: Span) -> pl.Expr:
    return floor_locally(ns, value, dtype, lambda local: local.dt.truncate(every.text))


def window(text: str) -> Span:
    """A span to truncate or round to: positive, and of one kind of unit."""
    every = span(text)
    if every.negative or every.kinds == 0:
        raise UnsupportedOperation(
            f"a window of {text!r} is not positive", remedy='use a positive one, such as "1d"'
        )
    if every.kinds > 1:
        raise UnsupportedOperation(
            f"a window of {text!r} mixes months, weeks, days or parts of a day",
            remedy='use one kind of unit, such as "36h" or "14d"',
        )
    return every


@operation
class ConvertTimeZone(TemporalMethod):
    """The same instant in another time zone.

    A Datetime without a zone is taken to be in UTC, as Polars takes it. Null less than a day inside
    the years 1 to 9999, so that local time is in those years too.
    """

    examples = (
        *on("dtz", 'dt.convert_time_zone("UTC")'),
        *on("dt", 'dt.convert_time_zone("America/New_York")'),
    )
    types = ("Datetime",)
    zone: str

    def check(self) -> None:
        require_zone(self.zone)

    @classmethod
    def parameters(cls, params: Any) -> Mapping[str, Any]:
        return {"zone": read_zone(params)}

    def limits(self, dtype: DType) -> Limits | None:
        return None

    def result(self, operand: Domain) -> Domain:
        dtype = replace(operand.dtype, zone=self.zone)
        return inside(replace(operand, dtype=dtype, categories=None), calendar(dtype))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = replace(domains[0].dtype, zone=self.zone)
        return kept_inside(ns, self.apply(ns, args[0]), dtype, calendar(dtype))


@operation
class ReplaceTimeZone(TemporalMethod):
    """The same local time in another time zone, or in none.

    Null where the clock of the new zone skips the local time or shows it twice, and where the
    result is less than a day inside the years 1 to 9999.
    """

    examples = (
        *on("dt", 'dt.replace_time_zone("Europe/Amsterdam")'),
        *on("dtz", "dt.replace_time_zone(None)"),
        *on("dtb", 'dt.replace_time_zone("UTC")'),
    )
    types = ("Datetime",)
    zone: str | None

    def check(self) -> None:
        if self.zone is not None:
            require_zone(self.zone)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, ambiguous = operand(operands[0]), operands[1]
        zone = read_zone(params[0])
        if isinstance(source, Literal):
            constant = zoned_constant(source, zone, operand(ambiguous))
            if constant is not None:
                return constant
        require_null_if_ambiguous(ambiguous, cls.method)
        return cls(zone).of(source)

    def limits(self, dtype: DType) -> Limits | None:
        return calendar(dtype, _FARTHEST)

    def result(self, operand: Domain) -> Domain:
        dtype = replace(operand.dtype, zone=self.zone)
        may_move = has_gaps(operand.dtype) or has_gaps(dtype)
        off = physical_units(dtype, _FARTHEST) if may_move else 0
        nullable = operand.nullable or has_gaps(dtype)
        moved = Domain(dtype, nullable=nullable, interval=operand.interval + interval(-off, off))
        return inside(moved, calendar(dtype))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return in_zone(operand, self.zone)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = replace(domains[0].dtype, zone=self.zone)
        moved = TemporalMethod.lower(self, ns, args, domains)
        return kept_inside(ns, moved, dtype, calendar(dtype))

    def arguments(self) -> str:
        return "None" if self.zone is None else quoted(self.zone)


def require_null_if_ambiguous(value: Operand, what: str) -> None:
    """Refuse a choice for ambiguous times that would differ from null, which they become."""
    if text(value, f"ambiguous= of {what}") not in ("raise", "null"):
        raise UnsupportedOperation(
            f"ambiguous='earliest' or 'latest' in {what} is not supported",
            remedy="leave it out: ambiguous and non-existent times become null",
        )


def zoned_constant(source: Literal, zone: str | None, ambiguous: Tree) -> Literal | None:
    """A constant in another zone; the oldest Polars writes ``pl.lit(datetime)`` this way."""
    value = source.value
    if not isinstance(value, datetime) or not isinstance(ambiguous, Literal):
        return None
    if source.parameter is not None:
        return None
    wall = value.replace(tzinfo=None, fold=0)
    dtype = datetime_type(source.dtype.unit or "us", zone)
    if zone is None:
        return Literal(wall, dtype)
    choice = ambiguous.value
    if not is_shown(wall, zone, str(choice) if choice in ("earliest", "latest") else None):
        return None
    return Literal(wall.replace(tzinfo=zone_info(zone), fold=int(choice == "latest")), dtype)


OPERATIONS: tuple[Kind, ...] = (
    *(IsLeapYear, DateOf, TimeOf, MonthStart, MonthEnd, Timestamp, CastTimeUnit),
    *(OffsetBy, Truncate, Round, ConvertTimeZone, ReplaceTimeZone),
)
