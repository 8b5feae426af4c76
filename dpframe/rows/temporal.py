"""Dates, times and durations: spans, local time, their methods, parts and formats; sums of moments
and durations, and moments made of numbers.
"""

from __future__ import annotations

import re
import typing
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import partial
from math import ceil, floor, trunc
from operator import attrgetter
from types import MappingProxyType
from typing import ClassVar, TypeAlias

import polars as pl

from dpframe.core.dtypes import (
    DATE,
    INT64,
    INT128,
    STRING,
    TIME,
    Domain,
    DType,
    datetime_type,
    duration_type,
)
from dpframe.core.exact import show_input
from dpframe.core.interval import EVERYTHING, ZERO, Interval, interval
from dpframe.core.tree import Literal, Tree
from dpframe.core.units import EVERYWHERE
from dpframe.core.windows import AFTER, BEFORE, Every
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.rows.constants import cast_literal, from_physical, too_fine, zone_info
from dpframe.rows.layouts import together, unordered
from dpframe.rows.operands import INT64_LIMITS, as_type, boolean, in_int64, when
from dpframe.rows.operation import (
    Namespace,
    Node,
    Operand,
    PlainOperation,
    RowMethod,
    RowOperation,
    constant,
    on,
    operand,
    operation,
    spell_out,
)
from dpframe.rows.polars_dtypes import TIME_UNITS, is_shown, read_zone, require_zone, to_polars

# Constant spans of time as Polars writes them: ``"1mo"``, ``"-2d12h"``.

_SPAN = re.compile(r"(-?)((?:[0-9]+(?:ns|us|ms|mo|[smhdwqy]))+)")
_PART = re.compile(r"([0-9]+)(ns|us|ms|mo|[smhdwqy])")
_MONTHS = {"mo": 1, "q": 3, "y": 12}
_NANOSECONDS = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3_600 * 10**9,
}  # fmt: skip
_DAY_NS = 86_400 * 10**9
_MOST_MONTHS = 120_000
_MOST_DAYS = 100_000
"""Longer spans overflow inside older versions of Polars."""


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time; months, weeks and days follow the calendar, nanoseconds the clock."""

    # `months`, `weeks`, `days`, `nanoseconds`: the parts, none negative.
    months: int
    weeks: int
    days: int
    nanoseconds: int
    negative: bool = False  # Whether the whole span goes back in time

    @property
    def kinds(self) -> int:
        """How many kinds of units the span mixes."""
        return sum(map(bool, (self.months, self.weeks, self.days, self.nanoseconds)))

    @property
    def seconds(self) -> int:
        """At least as many seconds as the span can last."""
        days = 31 * self.months + 7 * self.weeks + self.days
        return days * 86_400 + -(-self.nanoseconds // 10**9)

    @property
    def calendar_part(self) -> Span:
        """Without the nanoseconds."""
        return Span(self.months, self.weeks, self.days, 0, self.negative)

    @property
    def text(self) -> str:
        """The span as Polars reads it."""
        parts = ((self.months, "mo"), (self.weeks, "w"), (self.days, "d"), (self.nanoseconds, "ns"))
        shown = "".join(f"{count}{unit}" for count, unit in parts if count)
        return ("-" if self.negative and shown else "") + (shown or "0d")


def span(text: str) -> Span:
    """The span that a text denotes. Raises `UnsupportedOperation` when it denotes none, or one that
    is too long to be safe.
    """
    match = _SPAN.fullmatch(text)
    if match is None:
        raise UnsupportedOperation(
            f"{text!r} is not a duration",
            remedy='write numbers and units, such as "1d", "2h30m" or "1mo" '
            "(ns, us, ms, s, m, h, d, w, mo, q, y)",
        )
    totals = {"months": 0, "weeks": 0, "days": 0, "nanoseconds": 0}
    for digits, unit in _PART.findall(match[2]):
        count = int(digits.lstrip("0")[:40] or "0")
        if unit in _MONTHS:
            totals["months"] += count * _MONTHS[unit]
        elif unit in _NANOSECONDS:
            totals["nanoseconds"] += count * _NANOSECONDS[unit]
        else:
            totals["weeks" if unit == "w" else "days"] += count
    found = Span(**totals, negative=match[1] == "-")
    fixed = (7 * found.weeks + found.days) * _DAY_NS + found.nanoseconds
    if found.months > _MOST_MONTHS or fixed > _MOST_DAYS * _DAY_NS:
        raise UnsupportedOperation(
            f"the duration {text!r} is too long",
            remedy=f"write at most 10,000 years in months or longer units, and {_MOST_DAYS:,} days "
            "in weeks or shorter ones",
        )
    return found


def require_resolution(found: Span, dtype: DType, what: str) -> None:
    """Refuse a span that a type cannot represent. Raises `UnsupportedOperation` for parts of a day
    on a Date, a part of the unit of a Datetime, or centuries on a Datetime in nanoseconds, which
    cannot hold them.
    """
    if dtype.name == "Date":
        if found.nanoseconds:
            raise UnsupportedOperation(
                f"{what} of a Date takes whole days", remedy='cast it to pl.Datetime("us") first'
            )
        return
    if found.nanoseconds % (10**9 // dtype.units_per_second):
        raise UnsupportedOperation(
            f"the duration is finer than the unit of {dtype}",
            remedy=("use a longer duration", 'write .dt.cast_time_unit("ns") first'),
        )
    if dtype.unit == "ns" and found.seconds > 2**62 // 10**9:
        raise UnsupportedOperation(
            f"the duration is too long for {dtype}, which spans the years 1677 to 2262",
            remedy='use .dt.cast_time_unit("us") first',
        )


# What operations on dates and times share: where they are defined, and local time.
#
# Polars panics, wraps or answers nonsense on dates far outside the calendar, differently from
# version to version. So an operation sees only dates of the years 1 to 9999 (for zoned times less
# one day at either end, so that local time stays inside too); others give null. A Datetime in
# nanoseconds spans the years 1677 to 2262 and is always inside.

FIRST_DAY = -719_162
"""0001-01-01, in days since 1970-01-01."""
LAST_DAY = 2_932_896
"""9999-12-31."""
MOST_KEYS = 60
"""Parts of times with a greater number among their values are no keys separately."""
DAY = 86_400
"""Seconds of a day."""
DATE_LIMITS = (-(2**31), 2**31 - 1)

Fold: TypeAlias = 'typing.Literal["earliest", "latest", "null"]'
"""Which of two moments a local time is that the clock shows twice."""
Limits: TypeAlias = "tuple[int, int]"
"""The first and last value of a type, in physical units, on which an operation is defined."""


def require_type(domain: Domain, names: Collection[str], what: str) -> None:
    """Refuse an operand of another type, with what to do."""
    dtype = domain.dtype
    if dtype.name in names:
        return
    if dtype.is_text:
        remedy = "parse it first, for example with .str.to_datetime(format)"
    elif dtype.name == "Date" and "Datetime" in names:
        remedy = 'cast it first, with .cast(pl.Datetime("us"))'
    elif dtype.name == "Datetime" and "Duration" in names:
        remedy = "subtract another date or time first"
    elif dtype.name == "Duration":
        remedy = "count its units, for example with .dt.total_seconds()"
    elif dtype.name == "Time":
        remedy = "take its parts, for example with .dt.hour()"
    else:
        remedy = "use a column of dates or times"
    raise UnsupportedOperation(
        f"{what} works on {' and '.join(names)}, not on {dtype}", remedy=remedy
    )


def physical_units(dtype: DType, seconds: int) -> int:
    """Some seconds, whole days for a Date, in a type's physical units."""
    return seconds // DAY if dtype.name == "Date" else seconds * dtype.units_per_second


def calendar(dtype: DType, margin: int = 0) -> Limits | None:
    """Where a Date or Datetime is inside the calendar; None when it always is.

    The margin is the time in seconds by which an operation may move a Datetime in nanoseconds,
    which must not overflow.
    """
    zoned = dtype.zone is not None
    if dtype.name == "Date":
        return FIRST_DAY, LAST_DAY
    per_second = dtype.units_per_second
    if dtype.unit == "ns":
        inward = (margin + (DAY if zoned else 0)) * per_second
        return None if inward == 0 else (INT64_LIMITS[0] + inward, INT64_LIMITS[1] - inward)
    days = 1 if zoned else 0
    return (
        (FIRST_DAY + days) * DAY * per_second,
        (LAST_DAY + 1 - days) * DAY * per_second - 1,
    )


def known_within(known: Interval, limits: Limits | None) -> Interval:
    """The interval of values that are inside the limits; unknown ends stay unknown."""
    if limits is None:
        return known
    low, high = Fraction(limits[0]), Fraction(limits[1])
    lo = None if known.lo is None else min(max(known.lo, low), high)
    hi = None if known.hi is None else max(min(known.hi, high), low)
    if lo is not None and hi is not None and lo > hi:
        return interval(*limits)
    return Interval(lo, hi)


def inside(domain: Domain, limits: Limits | None) -> Domain:
    """The facts about an operand once values outside the limits are null."""
    if limits is None:
        return domain
    proven = domain.interval.within(limits)
    return replace(
        domain,
        nullable=domain.nullable or not proven,
        interval=known_within(domain.interval, limits),
    )


def point(ns: Namespace, value: int, dtype: DType) -> pl.Expr:
    """A constant of a temporal type, from its physical value."""
    physical = pl.Int32 if dtype.name == "Date" else pl.Int64
    expression: pl.Expr = ns.lit(value, dtype=physical).cast(to_polars(dtype))
    return expression


def is_inside(ns: Namespace, value: pl.Expr, dtype: DType, limits: Limits) -> pl.Expr:
    """Whether a value is inside the limits; null for null."""
    return value.is_between(point(ns, limits[0], dtype), point(ns, limits[1], dtype))


def guarded(
    ns: Namespace,
    value: pl.Expr,
    dtype: DType,
    limits: Limits | None,
    function: Callable[[pl.Expr], pl.Expr],
) -> pl.Expr:
    """The function where the value is inside the limits, else null.

    The function is computed on every row, and some versions of Polars compute it on what lies
    behind a null too. So it is given a harmless date wherever the value is null or outside.
    """
    if limits is None and dtype.zone is None:
        return function(value)
    ok = is_inside(ns, value, dtype, limits or INT64_LIMITS)
    safe = when(ns, ok, value, point(ns, 0, dtype))
    return when(ns, ok, function(safe))


def kept_inside(ns: Namespace, value: pl.Expr, dtype: DType, limits: Limits | None) -> pl.Expr:
    """The value where it is inside the limits, else null."""
    return value if limits is None else when(ns, is_inside(ns, value, dtype, limits), value)


def image(
    operand: Domain,
    function: Callable[[pl.Expr], pl.Expr],
    limits: Limits | None,
    slack: int = 0,
) -> Domain:
    """The facts about a function that keeps the type, from its values at the ends of the operand.

    The lowered function is run on these ends alone. A later operand has a later result, or one that
    is earlier by the slack at most, in physical units. Outside the limits the result is null.
    """
    known, dtype = operand.interval, operand.dtype
    if known.lo is None and known.hi is None:
        return replace(operand, nullable=True, categories=None)
    ends = [
        None if end is None else min(max(rounding(end), INT64_LIMITS[0]), INT64_LIMITS[1])
        for end, rounding in ((known.lo, floor), (known.hi, ceil))
    ]
    column = pl.Series("end", ends, dtype=pl.Int64).cast(to_polars(dtype))
    lo, hi = column.to_frame().select(function(pl.col("end")).to_physical())["end"].to_list()
    nullable = operand.nullable or lo is None or hi is None or has_gaps(dtype)
    low, high = limits or INT64_LIMITS
    lo = low if lo is None and ends[0] is not None else lo
    hi = high if hi is None and ends[1] is not None else hi
    known = interval(None if lo is None else lo - slack, None if hi is None else hi + slack)
    return replace(
        operand, nullable=nullable, interval=known_within(known, limits), categories=None
    )


def has_gaps(dtype: DType) -> bool:
    """Whether there are local times that the clock skips."""
    return dtype.zone not in (None, "UTC")


def may_be_off(dtype: DType, step: int) -> int:
    """By how much a later instant may come to an earlier result, of a function that does not
    decrease in local time and moves that in steps of this many seconds at most.

    Clocks are set back by a day at most. Over a boundary, they are where the step before begins;
    and results are instants again, which differ from local times by a day at most.
    """
    return physical_units(dtype, 2 * DAY + step) if has_gaps(dtype) else 0


def local_time(value: pl.Expr, dtype: DType) -> pl.Expr:
    """A Datetime without its zone, which it is assumed to have."""
    return value if dtype.zone is None else value.dt.replace_time_zone(None)


def in_zone(value: pl.Expr, zone: str | None, fold: Fold = "null") -> pl.Expr:
    """Local time as a Datetime in the zone.

    Times that the clock skips become null; times that it shows twice become the earliest, the
    latest, or null.
    """
    return value.dt.replace_time_zone(zone, ambiguous=fold, non_existent="null")


def move_locally(
    ns: Namespace, value: pl.Expr, dtype: DType, move: Callable[[pl.Expr], pl.Expr]
) -> pl.Expr:
    """The function of local time; a result that the clock shows twice stays in the same showing.

    A result that the clock skips is null.
    """
    if dtype.zone is None:
        return move(value)
    local = local_time(value, dtype)
    moved = move(local)
    is_first = in_zone(local, dtype.zone, "earliest") == value
    first, second = in_zone(moved, dtype.zone, "earliest"), in_zone(moved, dtype.zone, "latest")
    return when(ns, is_first, first, second)


def floor_locally(
    ns: Namespace, value: pl.Expr, dtype: DType, floor: Callable[[pl.Expr], pl.Expr]
) -> pl.Expr:
    """A function that goes back in local time; of two showings the last that is not later.

    A result that the clock skips is null.
    """
    if dtype.zone is None:
        return floor(value)
    floored = floor(local_time(value, dtype))
    first = in_zone(floored, dtype.zone, "earliest")
    second = in_zone(floored, dtype.zone, "latest")
    return when(ns, second <= value, second, first)


class TemporalOperation(RowOperation):
    """An operation on one date or time, null where it is not defined."""

    __slots__ = ()
    types: ClassVar[tuple[str, ...]] = ("Date", "Datetime")
    method: str

    @abstractmethod
    def result(self, operand: Domain) -> Domain:
        """The domain of the result for an operand for which it is defined."""

    @abstractmethod
    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        """The operation on such an operand."""

    def limits(self, dtype: DType) -> Limits | None:
        """Where it is defined; None for everywhere. Every value of a Time is a time of day."""
        return None if dtype.name == "Time" else calendar(dtype)

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], self.types, self.method)
        return self.result(inside(args[0], self.limits(args[0].dtype)))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        return guarded(ns, args[0], dtype, self.limits(dtype), lambda v: self.apply(ns, v))


class TemporalMethod(RowMethod, TemporalOperation):
    """A method of dates and times, with constants."""

    __slots__ = ()
    namespace = "dt"
    groups = ("TemporalExpr",)


# Methods of dates and times that give dates, times, or counts of a unit.

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
    def parameters(cls, params: Node) -> Mapping[str, object]:
        return {"unit": TIME_UNITS[params]}

    def limits(self, dtype: DType) -> Limits | None:
        factor, every = self._factor(dtype), DATE_LIMITS if dtype.name == "Date" else INT64_LIMITS
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
    examples = spell_out(
        'd.dt.timestamp("ms"); dtz.dt.timestamp("ms"); dt.dt.timestamp("us"); '
        'dtb.dt.timestamp("ns")'
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
    examples = spell_out(
        'd.dt.offset_by("1mo"); dt.dt.offset_by("-1y2d"); dtb.dt.offset_by("36h"); '
        'dtz.dt.offset_by("1d12h"); dtms.dt.offset_by("-250ms")'
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
    examples = spell_out(
        'd.dt.truncate("1mo"); dt.dt.truncate("1h"); dtb.dt.truncate("1w"); dtz.dt.truncate("1d"); '
        'dtms.dt.truncate("15m")'
    )

    def move(self, ns: Namespace, value: pl.Expr, dtype: DType) -> pl.Expr:
        return _truncate(ns, value, dtype, window(self.every))


@operation
class Round(ToBoundary):
    """The nearest boundary of a constant window; half a month is 14 days, as in Polars.

    Half a window is a length of time: 14 days for each month, 12 hours for each day. It is added,
    and the last boundary that is not later is the result.
    """

    engines = EVERYWHERE
    examples = spell_out(
        'd.dt.round("1mo"); dt.dt.round("1h"); dtb.dt.round("1w"); dtz.dt.round("30m")'
    )

    def move(self, ns: Namespace, value: pl.Expr, dtype: DType) -> pl.Expr:
        every = window(self.every)
        half = (
            (28 * every.months + 7 * every.weeks + every.days) * _DAY_NS + every.nanoseconds
        ) // 2
        if dtype.name == "Date":  # boundaries are at midnight, so half a day decides nothing
            later, days = value, half // _DAY_NS
            for _ in range(-(-days // _MOST_DAYS)):  # an offset has no more days than that
                later = later.dt.offset_by(f"{min(days, _MOST_DAYS)}d")
                days -= _MOST_DAYS
        else:
            physical = half // (10**9 // dtype.units_per_second)
            later = value + point(ns, physical, DType("Duration", unit=dtype.unit))
        return _truncate(ns, later, dtype, every)


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

    examples = spell_out(
        'dtz.dt.convert_time_zone("UTC"); dt.dt.convert_time_zone("America/New_York")'
    )
    types = ("Datetime",)
    zone: str

    def check(self) -> None:
        require_zone(self.zone)

    @classmethod
    def parameters(cls, params: Node) -> Mapping[str, object]:
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

    examples = spell_out(
        'dt.dt.replace_time_zone("Europe/Amsterdam"); dtz.dt.replace_time_zone(None); '
        'dtb.dt.replace_time_zone("UTC")'
    )
    types = ("Datetime",)
    zone: str | None

    def check(self) -> None:
        if self.zone is not None:
            require_zone(self.zone)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        source, ambiguous = operand(operands[0]), operands[1]
        zone = read_zone(params[0])
        if isinstance(source, Literal):
            zoned = zoned_constant(source, zone, operand(ambiguous))
            if zoned is not None:
                return zoned
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


def require_null_if_ambiguous(value: Operand, what: str) -> None:
    """Refuse a choice for ambiguous times that would differ from null, which they become."""
    if constant(value, f"ambiguous= of {what}", "str") not in ("raise", "null"):
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


# Whole numbers that are read from dates, times of day and durations, as Int64, in local time where
# there is a zone.

_EPOCH = date(1970, 1, 1)


@operation
class TemporalNumber(TemporalOperation, PlainOperation):
    """A number that a method without constants reads."""

    @abstractmethod
    def interval_of(self, operand: Domain) -> Interval:
        """Where the numbers of values lie that have one."""

    def result(self, operand: Domain) -> Domain:
        return Domain(INT64, nullable=operand.nullable, interval=self.interval_of(operand))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return as_type(attrgetter(self.method)(operand)(), INT64)


@operation
class DatePart(TemporalNumber):
    """A part of a date."""

    values: tuple[int, int] | Callable[[date], int]
    """The least and the most that it can be; or what it is of a date, where it never decreases as
    time goes on.
    """
    engines = EVERYWHERE

    def interval_of(self, operand: Domain) -> Interval:
        if isinstance(self.values, tuple):
            return interval(*self.values)
        # The first and last local date, which a zone may move by a day.
        dtype, known = operand.dtype, operand.interval
        farthest = 2**63 // (DAY * 10**9) + 2
        earliest, latest = (-farthest, farthest) if dtype.unit == "ns" else (FIRST_DAY, LAST_DAY)
        day, off = physical_units(dtype, DAY), int(dtype.zone is not None)
        first = earliest if known.lo is None else int(known.lo // day) - off
        last = latest if known.hi is None else int(known.hi // day) + off
        days = (min(max(day, earliest), latest) for day in (first, last))
        return interval(*(self.values(_EPOCH + timedelta(days=day)) for day in days))

    @property
    def few_values(self) -> range | None:
        if not isinstance(self.values, tuple) or self.values[1] > MOST_KEYS:
            return None
        return range(self.values[0], self.values[1] + 1)


@operation
class ClockPart(DatePart):
    """A part of a time of day."""

    types = ("Datetime", "Time")
    engines = EVERYWHERE


@operation
class Total(TemporalNumber):
    """A duration in a unit, towards zero; null where it does not fit in Int64."""

    unit: int
    """Its nanoseconds."""
    types = ("Duration",)
    engines = EVERYWHERE

    def read(self, operands: Sequence[Operand], params: Node) -> Tree:
        if params is not None and params.get("fractional"):
            raise UnsupportedOperation(
                f"{self.method}(fractional=True) is not supported",
                remedy="divide a finer total, such as .dt.total_seconds() / 86400",
            )
        return self.of(*operands)

    def interval_of(self, operand: Domain) -> Interval:
        size = self._size(operand.dtype)
        return operand.interval.increasing(lambda end: Fraction(trunc(end / size)))

    def limits(self, dtype: DType) -> Limits | None:
        size = self._size(dtype)
        return None if size >= 1 else (ceil(INT64_LIMITS[0] * size), trunc(INT64_LIMITS[1] * size))

    def _size(self, dtype: DType) -> Fraction:
        return Fraction(dtype.units_per_second * self.unit, 10**9)


def _period(day: date, years: int) -> int:
    return (day.year - 1) // years + 1


def _iso_year(day: date) -> int:
    return day.isocalendar().year


def _of(
    method: str, columns: str, summary: str, read: str | None = None
) -> tuple[str, str, tuple[str, ...], str, tuple[str, ...]]:
    """What a method is called here and in Polars, what it gives, and examples."""
    reads = f"TemporalExpr.{read or method.title().replace('_', '')}"
    return f"dt_{method}", f"dt.{method}", (reads,), summary, on(columns, f"dt.{method}()")


def _total(unit: str, summary: str, nanoseconds: int) -> Total:
    name, method, reads, _, examples = _of(f"total_{unit}", "dur durb", summary)
    between = spell_out(f"(dt - dtb).dt.total_{unit}()")
    return Total(name, method, reads, summary, (*examples, *between), nanoseconds)


_NULL = "null outside the years 1 to 9999"
_SECOND = "since the last whole second"
_TOO_LONG = "null where they do not fit in Int64"


# Dates and times written as text, by a constant format.

LONGEST_FORMAT = 256
_DIRECTIVE = re.compile(r"%([-_0](?=[a-zA-Z]))?(\.?[369]?f|:*z|.|$)", re.DOTALL)
_DAY_CODES = frozenset("YCymbBhdeaAwuUWGgVjDxFv")
_TIME_CODES = frozenset([*"HkIlPpMSfRTXr", ".f", ".3f", ".6f", ".9f", "3f", "6f", "9f"])
_ANY = frozenset("nt%")
_MOMENT = frozenset("cs")
_ZONE = frozenset(["Z", "z", ":z"])
_NUMBERS = frozenset("YCymdewuUWGgVjHkIlMSf")
"""Directives that may be padded in another way, with -, _ or 0 before the letter."""
_ISO = {"iso": " ", "iso:strict": "T"}
_FRACTION = {"ms": "%.3f", "us": "%.6f", "ns": "%.9f"}


@operation
class ToString(TemporalMethod):
    """The date or time as text, by a constant format of chrono's directives, or in ISO form; null
    outside the years 1 to 9999. Also dt.strftime.

    Only directives that every value of the type has: others fail when a row is written.
    """

    examples = spell_out(
        'd.dt.to_string("%Y-%m-%d"); dt.dt.strftime("%d.%m.%y %H:%M:%S%.3f"); '
        'dtms.dt.to_string("%-d %B, %A week %V of %G (%j) %I%p 100%%"); dt.dt.to_string(); '
        'd.dt.to_string("iso"); dtz.dt.to_string("%F %T%:z"); t.dt.to_string("%H%M")'
    )
    types = ("Date", "Datetime", "Time")
    format: str

    def result(self, operand: Domain) -> Domain:
        check_format(self.format, operand.dtype)
        return Domain(STRING, nullable=operand.nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        form = check_format(self.format, dtype)
        text = guarded(ns, args[0], dtype, self.limits(dtype), lambda v: v.dt.to_string(form))
        return unordered(ns, text)


def check_format(form: str, dtype: DType) -> str:
    """The format in chrono's directives, which every value of the type must have."""
    if form in _ISO:
        if dtype.name in ("Date", "Time"):
            return "%F" if dtype.name == "Date" else "%T%.f"
        zone = "" if dtype.zone is None else "%:z"
        return f"%F{_ISO[form]}%T{_FRACTION[dtype.unit or 'us']}{zone}"
    if len(form) > LONGEST_FORMAT:
        raise UnsupportedOperation(
            f"the format is longer than {LONGEST_FORMAT} characters", remedy="use a shorter one"
        )
    allowed = _allowed(dtype)
    for match in _DIRECTIVE.finditer(form):
        padding, directive = match.groups()
        if directive not in allowed or (padding and directive not in _NUMBERS):
            raise UnsupportedOperation(
                f"the directive {match[0]!r} of a format is not supported for {dtype}",
                remedy='use directives of chrono that the type has, such as "%Y-%m-%d" for a date '
                'and "%H:%M:%S" for a time',
            )
    if form == "polars":
        raise UnsupportedOperation(
            "the format 'polars' is not supported", remedy='use "iso", or write the directives'
        )
    return form


def _allowed(dtype: DType) -> frozenset[str]:
    if dtype.name == "Date":
        return _ANY | _DAY_CODES
    if dtype.name == "Time":
        return _ANY | _TIME_CODES
    return (
        _ANY
        | _DAY_CODES
        | _TIME_CODES
        | _MOMENT
        | (_ZONE if dtype.zone is not None else frozenset())
    )


# The number of the calendar window that a time is in, on every engine.
#
# A date is its own day. All other times before the year 1 are in one window, and so are those after
# 9999 (for times with a zone a day further inside, as in operations on dates). The number of a time
# is never null, and never decreases from one local time to a later one.

NO_TIME = -(2**31)
"""Stands for the window of rows without a time; no other has this number."""
INFINITE_DAY = 2**40
"""The number of the window of an infinite date, which DuckDB has; no date has this day."""


def window_number(
    ns: Namespace,
    value: pl.Expr,  # The number in the given type
    dtype: DType,
    every: Every,  # The length of windows
) -> pl.Expr:
    """The window of a Date or Datetime as Int64, by the clocks of its zone; never null."""
    limits = calendar(dtype)
    if dtype.name == "Date" and every == "1d":
        number = as_type(value.to_physical(), INT64) - (FIRST_DAY - 1)
        ends = -INFINITE_DAY, INFINITE_DAY
    else:
        number = guarded(ns, value, dtype, limits, lambda known: _number(known, every, ns))
        ends = BEFORE[every], AFTER[every]
    others = [ns.lit(NO_TIME, dtype=ns.Int64)]
    if limits is not None:
        low, high = (point(ns, limit, dtype) for limit in limits)
        first, last = (ns.lit(end, dtype=ns.Int64) for end in ends)
        above = ns.when(value > high).then(last).otherwise(None)
        others.insert(0, when(ns, value < low, first, above))
    return unordered(ns, ns.coalesce(number, *others))


def _number(value: pl.Expr, every: Every, ns: Namespace) -> pl.Expr:
    """The number of a time that is inside the calendar."""
    if every in ("1d", "1w"):
        day = as_type(value.dt.date().to_physical(), INT64) - (FIRST_DAY - 1)
        return day if every == "1d" else (day - 1) // 7
    year = as_type(value.dt.year(), INT64)
    if every == "1y":
        return year
    month = as_type(value.dt.month(), INT64) - 1
    return year * 12 + month if every == "1mo" else year * 4 + month // 3


# Moments and durations added and subtracted, exactly.
#
# Values are taken as whole numbers of their units, computed in 128 bits and put back; a result that
# its type cannot hold is null. The result has Polars' type: the coarser of two time units, into
# which both operands are converted first. A Date moved by a duration stays a Date, floored; the
# difference of two dates is in microseconds.

_COARSE_FIRST = ("ms", "us", "ns")


def is_temporal_sum(a: Domain, b: Domain) -> bool:
    """Whether two operands are added as moments or durations rather than as numbers."""
    return (a.dtype.is_temporal or b.dtype.is_temporal) and all(
        d.dtype.is_temporal or d.dtype.name == "Null" for d in (a, b)
    )


def sum_type(a: DType, b: DType, sign: int) -> DType:
    """The type of `a` plus (`sign` 1) or minus (-1) `b`; refused where the sum has no type. A null
    operand takes the type of a duration, which makes the sum a sum.
    """
    if a.name == "Null":
        a = duration_type(b.unit or "us") if b.name != "Time" else b
    elif b.name == "Null":
        b = duration_type(a.unit or "us") if a.name != "Time" else a
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
    # What lies outside becomes null.
    low, high = limits
    ends = (end if end is not None and low <= end <= high else None for end in (total.lo, total.hi))
    return Domain(
        dtype,
        nullable=a.nullable or b.nullable or not fits,
        interval=total if fits else Interval(*ends),
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
    rounded = trunc if domain.dtype.name == "Duration" else floor
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


# Dates, times and durations put together from numbers, or from a date and a time of day.
#
# Everything is computed with integers here, because Polars fails at a date that does not exist.

_FIRST_YEAR, _LAST_YEAR = 1, 9999
_CLOCK = (("hour", 23), ("minute", 59), ("second", 59), ("microsecond", 999_999))
_SIZES = (3_600 * 10**6, 60 * 10**6, 10**6, 1)
"""The sizes of the parts of a time, in microseconds."""
_PER_DAY = DAY * 10**6
_SPANS = (
    ("weeks", 7 * DAY * 10**9),
    ("days", DAY * 10**9),
    ("hours", 3_600 * 10**9),
    ("minutes", 60 * 10**9),
    ("seconds", 10**9),
    ("milliseconds", 10**6),
    ("microseconds", 10**3),
    ("nanoseconds", 1),
)
"""The parts of a duration, in nanoseconds."""


def _require_whole(what: str, domains: Sequence[Domain]) -> None:
    for domain in domains:
        if not (domain.dtype.is_integer or domain.dtype.name == "Null"):
            raise UnsupportedOperation(
                f"the parts of {what} are integers, not {domain.dtype}",
                remedy="cast them first, with .cast(pl.Int64)",
            )


@operation
class MakeDatetime(RowMethod):
    """A date and time from integers (also pl.date and pl.time); null where the date does not exist
    in the years 1 to 9999, or the time does not exist.

    Of year, month, day, hour, minute, second and microsecond.

    Days are counted from years that begin in March, where a leap day is the last one: so month m of
    them, from 0, begins (153 m + 2) // 5 days after the year does. A day exists if its month has
    this many.
    """

    name = "datetime"
    reads = ("TemporalExpr.DatetimeFunction",)
    engines = EVERYWHERE
    examples = spell_out(
        "pl.datetime(i64, u8, 31); pl.datetime(2024, i8, u8, hour=7, minute=30); "
        'pl.datetime(i32, 2, 29, time_unit="ns"); '
        'pl.datetime(2023, 2, u32, 1, 2, 3, i64, time_unit="ms"); pl.date(i32 * 100, i8, 29); '
        "pl.date(2024, d.dt.month(), 30); pl.time(i8, u8, 1)"
    )
    unit: str

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        *parts, ambiguous = map(operand, operands)
        unit = TIME_UNITS[params["time_unit"]]
        if not all(isinstance(part, Literal) for part in parts):
            local = cls(unit).of(*parts)
            if params["time_zone"] is None:
                return local
            require_null_if_ambiguous(ambiguous, "pl.datetime")
            return _in_zone(local, ambiguous, params["time_zone"])
        numbers = [constant(part, "a part of pl.datetime", "int") for part in parts]
        try:
            moment = Literal(datetime(*numbers), datetime_type())
        except (ValueError, OverflowError):
            raise UnsupportedOperation(
                "pl.datetime has a part out of range", remedy="write a date that exists"
            ) from None
        made = cast_literal(moment, datetime_type(unit))
        if made is None:
            raise UnsupportedOperation(
                "pl.datetime is out of range of nanoseconds",
                remedy='write one between the years 1678 and 2261, or time_unit="us"',
            )
        return _in_zone(made, ambiguous, params["time_zone"])

    def domain(self, args: Sequence[Domain]) -> Domain:
        _require_whole("pl.datetime", args)
        # From the first moment of the first year to the last one of the last.
        dtype, years = datetime_type(self.unit), in_int64(args[0]).interval
        lo, hi = years.lo, years.hi
        first = _FIRST_YEAR if lo is None else min(max(int(lo), _FIRST_YEAR), _LAST_YEAR)
        last = _LAST_YEAR if hi is None else min(max(int(hi), first), _LAST_YEAR)
        days = [(date(first, 1, 1) - _EPOCH).days, (date(last, 12, 31) - _EPOCH).days + 1]
        per_day = DAY * dtype.units_per_second
        known = interval(days[0] * per_day, days[1] * per_day - 1)
        known = known if known.within(INT64_LIMITS) else EVERYTHING
        return Domain(dtype, nullable=True, interval=known)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        parts = [as_type(e, INT64) for e in args]
        return together(ns, parts, lambda *parts: _moment(ns, parts, self.unit))

    def words(self, args: Sequence[str]) -> str:
        year, month, day, *clock = args
        shown = [year, month, day]
        shown += [f"{n}={v}" for (n, _), v in zip(_CLOCK, clock, strict=True) if v != "0"]
        shown += [] if self.unit == "us" else [f'time_unit="{self.unit}"']
        return f"datetime({', '.join(shown)})"


def _in_zone(local: Tree, ambiguous: Tree, zone: object) -> Tree:
    """The moment of a local time; refusals name the time zone, because the local time is not an
    operand that was written.
    """
    try:
        return ReplaceTimeZone.read((local, ambiguous), [zone, "Raise"])
    except DPFrameError as error:
        named = zone["inner"] if isinstance(zone, dict) else zone
        error.where = f"pl.datetime(..., time_zone={show_input(named)})"
        raise error from None


def _moment(ns: Namespace, parts: Sequence[pl.Expr], unit: str) -> pl.Expr:
    """The moment of year, month, day and the parts of a time; null if none exists."""
    year, month, day, *clock = parts
    exists = year.is_between(_FIRST_YEAR, _LAST_YEAR) & month.is_between(1, 12) & (day >= 1)
    year, month = year.clip(_FIRST_YEAR, _LAST_YEAR), month.clip(1, 12)
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    february = when(ns, leap, ns.lit(29), ns.lit(28))
    exists = exists & (day <= when(ns, month == 2, february, (month + month // 8) % 2 + 30))
    day = day.clip(1, 31)
    months = year * 12 + month - 3
    in_march, since = months // 12, months % 12
    days = (
        in_march * 365 + in_march // 4 - in_march // 100 + in_march // 400
        + (since * 153 + 2) // 5 + day - 719_469
    )  # fmt: skip
    micros = days * _PER_DAY
    for part, (_, most), size in zip(clock, _CLOCK, _SIZES, strict=True):
        exists = exists & part.is_between(0, most)
        micros = micros + part.clip(0, most) * size
    dtype = datetime_type(unit)
    if unit == "ms":
        micros = micros // 1_000
    elif unit == "ns":
        micros = as_type(as_type(micros, INT128) * 1_000, INT64)
    return when(ns, exists, as_type(micros, dtype))


@operation
class MakeDuration(RowMethod):
    """A duration from integers; what is finer than its unit is cut off from each of them, and what
    does not fit is null.

    Of weeks, days, hours, minutes, seconds, milliseconds, microseconds and nanoseconds.
    """

    name = "duration"
    reads = ("TemporalExpr.Duration",)
    engines = EVERYWHERE
    examples = spell_out(
        'pl.duration(days=i64, hours=2); pl.duration(weeks=i8, milliseconds=i32, time_unit="ms"); '
        'pl.duration(microseconds=i64, nanoseconds=i64b, time_unit="ms"); '
        'pl.duration(seconds=u64, nanoseconds=i8); pl.duration(hours=i8, time_unit="ns")'
    )
    unit: str

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        parts = [operand(value) for value in operands]
        unit = TIME_UNITS[params]
        if not all(isinstance(part, Literal) for part in parts):
            return cls(unit).of(*parts)
        counts = [constant(part, "a part of pl.duration", "int") for part in parts]
        nanoseconds = sum(n * size for n, (_, size) in zip(counts, _SPANS, strict=True))
        micros, rest = divmod(nanoseconds, 1_000)
        if rest:
            raise too_fine()
        return replace(from_physical(micros, duration_type("us")), dtype=duration_type(unit))

    def domain(self, args: Sequence[Domain]) -> Domain:
        _require_whole("pl.duration", args)
        dtype = duration_type(self.unit)
        parts = [in_int64(d) for d in args]
        total = ZERO
        for part, (_, size) in zip(parts, _SPANS, strict=True):
            times, divided = _ratio(size, dtype)
            count = partial(_cut_off, times=times, divided=divided)
            total = total + part.interval.increasing(count)
        fits = total.within(INT64_LIMITS)
        return Domain(
            dtype,
            nullable=not fits or any(p.nullable for p in parts),
            interval=total if fits else EVERYTHING,
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = duration_type(self.unit)
        total: pl.Expr | None = None
        for arg, known, (_, size) in zip(args, domains, _SPANS, strict=True):
            if known.interval == ZERO and not known.nullable:
                continue
            times, divided = _ratio(size, dtype)
            number = as_type(as_type(arg, INT64), INT128) * times
            if divided != 1:  # towards zero
                up = ns.when(number < 0).then(divided - 1).otherwise(0)
                number = (number + as_type(up, INT128)) // divided
            total = number if total is None else total + number
        whole = ns.lit(0) if total is None else total
        return as_type(as_type(whole, INT64), dtype)

    def words(self, args: Sequence[str]) -> str:
        shown = [f"{n}={v}" for (n, _), v in zip(_SPANS, args, strict=True) if v != "0"]
        shown += [] if self.unit == "us" else [f'time_unit="{self.unit}"']
        return f"duration({', '.join(shown)})"


@operation
class Combine(RowMethod):
    """The day of a date or Datetime without zone, with a time of day; null out of range."""

    namespace = "dt"
    groups = ("TemporalExpr",)
    arity = 2
    examples = spell_out(
        'd.dt.combine(t); dt.dt.combine(time(12, 30)); dtms.dt.combine(t, "ns"); '
        'd.dt.combine(t, time_unit="ms")'
    )
    unit: str

    @classmethod
    def parameters(cls, params: Node) -> Mapping[str, object]:
        return {"unit": TIME_UNITS[params]}

    def domain(self, args: Sequence[Domain]) -> Domain:
        day, clock = args
        require_type(day, ("Date", "Datetime"), "dt.combine")
        if day.dtype.zone is not None:
            raise UnsupportedOperation(
                f"dt.combine does not work on {day.dtype}",
                remedy="use .dt.replace_time_zone(None) first, and .dt.replace_time_zone(zone) "
                "on the result",
            )
        if clock.dtype.name != "Null":
            require_type(clock, ("Time",), "the time of dt.combine")
        dtype = datetime_type(self.unit)
        per_day = DAY * dtype.units_per_second
        own = 1 if day.dtype.name == "Date" else DAY * day.dtype.units_per_second
        days = day.interval.increasing(lambda end: Fraction(end // own))
        known = Interval(
            None if days.lo is None else days.lo * per_day,
            None if days.hi is None else days.hi * per_day + per_day - 1,
        )
        fits = known.within(INT64_LIMITS)
        nullable = not fits or day.nullable or clock.nullable
        return Domain(dtype, nullable=nullable, interval=known if fits else EVERYTHING)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype, source = datetime_type(self.unit), domains[0].dtype
        days = as_type(args[0], INT64)
        if source.name == "Datetime":
            days = days // (DAY * source.units_per_second)
        clock = as_type(as_type(args[1], DType("Time")), INT64) // (10**9 // dtype.units_per_second)
        total = as_type(days, INT128) * (DAY * dtype.units_per_second) + as_type(clock, INT128)
        return as_type(as_type(total, INT64), dtype)

    def words(self, args: Sequence[str]) -> str:
        unit = "" if self.unit == "us" else f", {self.unit!r}"
        return f"{args[0]}.dt.combine({args[1]}{unit})"


def _ratio(size: int, dtype: DType) -> tuple[int, int]:
    """What a part is multiplied with, and then divided by, to count in the unit."""
    unit = 10**9 // dtype.units_per_second
    return max(1, size // unit), max(1, unit // size)


def _cut_off(end: Fraction, times: int, divided: int) -> Fraction:
    return Fraction(trunc(end * times / divided))


OPERATIONS = (
    *(IsLeapYear, DateOf, TimeOf, MonthStart, MonthEnd, Timestamp, CastTimeUnit),
    *(OffsetBy, Truncate, Round, ConvertTimeZone, ReplaceTimeZone),
    DatePart(*_of("year", "d dtb dtz", f"Calendar year; {_NULL}."), partial(_period, years=1)),
    DatePart(
        *_of("iso_year", "d dtb", f"Year that the ISO week belongs to; {_NULL}."),
        _iso_year,
    ),
    DatePart(
        *_of("century", "d dtb", "Century: 20 for the years 1901 to 2000."),
        partial(_period, years=100),
    ),
    DatePart(
        *_of("millennium", "dt dtb", "Millennium: 2 for the years 1001 to 2000."),
        partial(_period, years=1_000),
    ),
    DatePart(*_of("quarter", "d dtms", "Quarter of the year, 1 to 4."), (1, 4)),
    DatePart(*_of("month", "d dtz", "Month, 1 to 12."), (1, 12)),
    DatePart(*_of("week", "d dtz", "ISO week, 1 to 53."), (1, 53)),
    DatePart(*_of("weekday", "d dtz", "Day of the week, 1 (Monday) to 7.", "WeekDay"), (1, 7)),
    DatePart(*_of("day", "d dtz", "Day of the month, 1 to 31."), (1, 31)),
    DatePart(*_of("ordinal_day", "d dtz", "Day of the year, 1 to 366."), (1, 366)),
    DatePart(*_of("days_in_month", "d dtz", "Length of the month, 28 to 31."), (28, 31)),
    ClockPart(*_of("hour", "dt dtz t", f"Hour, 0 to 23; {_NULL}."), (0, 23)),
    ClockPart(*_of("minute", "dt dtz t", "Minute, 0 to 59."), (0, 59)),
    ClockPart(*_of("second", "dt dtz t", "Whole second, 0 to 59."), (0, 59)),
    ClockPart(*_of("millisecond", "dt dtms", f"Milliseconds {_SECOND}, 0 to 999."), (0, 999)),
    ClockPart(
        *_of("microsecond", "dtz t dt", f"Microseconds {_SECOND}, 0 to 999,999."), (0, 999_999)
    ),
    ClockPart(
        *_of("nanosecond", "dtms t dt", f"Nanoseconds {_SECOND}, 0 to 999,999,999."),
        (0, 999_999_999),
    ),
    _total("days", "Whole days, towards zero.", DAY * 10**9),
    _total("hours", "Whole hours, towards zero.", 3_600 * 10**9),
    _total("minutes", "Whole minutes, towards zero.", 60 * 10**9),
    _total("seconds", "Whole seconds, towards zero.", 10**9),
    _total("milliseconds", f"Whole milliseconds, towards zero; {_TOO_LONG}.", 10**6),
    _total("microseconds", f"Whole microseconds, towards zero; {_TOO_LONG}.", 10**3),
    _total("nanoseconds", f"Nanoseconds; {_TOO_LONG}.", 1),
    ToString,
    *(MakeDatetime, MakeDuration, Combine),
)
