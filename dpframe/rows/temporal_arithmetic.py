"""Moments and durations put together, added and subtracted, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from typing import Any

import polars as pl

from dpframe.core.dtypes import DATE, INT64, INT128, Domain, DType, datetime_type, duration_type
from dpframe.core.exact import as_given
from dpframe.core.interval import EVERYTHING, ZERO, Interval, interval
from dpframe.core.tree import Literal, Tree
from dpframe.core.units import EVERYWHERE
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.rows.constants import cast_literal, from_physical, too_fine
from dpframe.rows.layouts import together
from dpframe.rows.operands import INT64_LIMITS, as_type, in_int64, when
from dpframe.rows.operation import (
    Namespace,
    Operand,
    RowMethod,
    constant,
    operand,
    operation,
    spell_out,
)
from dpframe.rows.polars_dtypes import TIME_UNITS
from dpframe.rows.temporal import DAY, ReplaceTimeZone, require_null_if_ambiguous, require_type

# Moments and durations added and subtracted, exactly.
#
# Values are taken as whole numbers of their units, computed in 128 bits and put back; a result that
# its type cannot hold is null. The result has Polars' type: the coarser of two time units, into
# which both operands are converted first. A Date moved by a duration stays a Date, floored; the
# difference of two dates is in microseconds.

DATE_LIMITS = (-(2**31), 2**31 - 1)
_COARSE_FIRST = ("ms", "us", "ns")


def is_temporal_sum(a: Domain, b: Domain) -> bool:
    """Whether two operands are added as moments or durations rather than as numbers."""
    return (a.dtype.is_temporal or b.dtype.is_temporal) and all(
        d.dtype.is_temporal or d.dtype.name == "Null" for d in (a, b)
    )


def sum_type(a: DType, b: DType, sign: int) -> DType:
    """The type of `a` plus (`sign` 1) or minus (-1) `b`; refused where there is none. A null
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


# Dates, times and durations put together from numbers, or from a date and a time of day.
#
# Everything is computed with integers here, because Polars fails at a date that does not exist.

_EPOCH = date(1970, 1, 1)
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
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
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


def _in_zone(local: Tree, ambiguous: Tree, zone: Any) -> Tree:
    """The moment of a local time; refusals name the time zone, because the local time is not an
    operand that was written.
    """
    try:
        return ReplaceTimeZone.read((local, ambiguous), [zone, "Raise"])
    except DPFrameError as error:
        named = zone["inner"] if isinstance(zone, dict) else zone
        error.where = f"pl.datetime(..., time_zone={as_given(named)})"
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
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
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
    def parameters(cls, params: Any) -> Mapping[str, Any]:
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
    return Fraction(math.trunc(end * times / divided))


OPERATIONS = (*(MakeDatetime, MakeDuration, Combine),)
