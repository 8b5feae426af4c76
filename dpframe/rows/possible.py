"""Whether a condition may hold of a row, by interval arithmetic.

The answer "no" is a proof; without further knowledge the answer is "maybe". A condition is true,
false or null, and is known by which of the first two it may be.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache

import polars as pl

from dpframe.core.dtypes import Domain, DType
from dpframe.core.interval import EVERYTHING, Interval, interval
from dpframe.core.tree import Call, Column, Literal, Tree
from dpframe.core.windows import AFTER, BEFORE, Every, first_day
from dpframe.rows.comparison import IsBetween
from dpframe.rows.constants import physical
from dpframe.rows.fold import domain
from dpframe.rows.logic import And, IsNotNull, IsNull, Not, Or
from dpframe.rows.lookup import IsIn
from dpframe.rows.operands import INT64_LIMITS
from dpframe.rows.temporal import (
    DAY,
    FIRST_DAY,
    LAST_DAY,
    ReplaceTimeZone,
    Truncate,
    calendar,
    physical_units,
)

# Which times a calendar window holds, in physical units and by the clocks of a zone.

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_NEAR = 27 * 3_600
"""Seconds; clocks and UTC differ by less, also where clocks are set."""

Times = tuple[Interval, Interval]
"""Where times lie in physical units, and where what the clocks show lies in the same units."""


def times_of(first: int, last: int, every: Every, dtype: DType) -> Times | None:
    """The times of windows from one to another; None if none exist.

    Those before the calendar and after it are each one window, which is taken to reach a few days
    into it.
    """
    start, end = calendar(dtype) or INT64_LIMITS
    margin = physical_units(dtype, 3 * DAY)  # days by which clocks are never off
    lo = None if first <= BEFORE[every] else _begins(first, every, dtype, end)
    hi = None if last >= AFTER[every] else _begins(last + 1, every, dtype, end + margin)
    if lo is not None and last >= AFTER[every]:
        lo = min(lo, end - margin)
    if hi is not None and first <= BEFORE[every]:
        hi = start + margin if last <= BEFORE[every] else max(hi, start + margin)
    shown = _interval(lo, None if hi is None else hi - 1)
    if shown is None or dtype.zone is None:
        return None if shown is None else (shown, shown)
    known = instants(shown, dtype)
    return None if known is None else (known, shown)


def instants(shown: Interval, dtype: DType) -> Interval | None:
    """Every instant at which the clocks of a zone show something that lies in an interval, and
    others only where clocks are set; None where they never do.
    """
    assert dtype.zone is not None
    lo = None if shown.lo is None else _reached(int(shown.lo), dtype, "earliest")
    hi = None if shown.hi is None else _reached(int(shown.hi) + 1, dtype, "latest")
    return _interval(lo, None if hi is None else hi - 1)


def _interval(lo: int | None, hi: int | None) -> Interval | None:
    if lo is None and hi is None:
        return EVERYTHING
    if lo is not None and hi is not None and lo > hi:
        return None
    return Interval(None if lo is None else Fraction(lo), None if hi is None else Fraction(hi))


def _begins(number: int, every: Every, dtype: DType, after: int) -> int:
    """The beginning of a window, in the units of a type; of that after the calendar the one
    given.
    """
    day = None if number >= AFTER[every] else first_day(every, number)
    days = None if day is None else day.toordinal() - _EPOCH_DAY
    return after if days is None else physical_units(dtype, days * DAY)


@lru_cache(maxsize=4096)
def _reached(shown: int, dtype: DType, which: str) -> int:
    """From when on clocks show a time or a later one: at first, or for good.

    Where clocks skip the time, it is when they do. Far from the years that zones know, no earlier
    and no later than clocks can be.
    """
    per_second = dtype.units_per_second
    micros = shown * 1_000_000 // per_second
    if not -(2**55) < micros < 2**57:  # the years 828 to 6537
        return shown + (-1 if which == "earliest" else 1) * _NEAR * per_second
    found = _instant(micros, str(dtype.zone), which)
    if found is None:
        return _skipped(micros, str(dtype.zone)) * per_second // 1_000_000
    below = shown * 1_000_000 - micros * per_second  # what microseconds do not hold
    return (found * per_second + below) // 1_000_000


def _instant(micros: int, zone: str, which: str) -> int | None:
    """When the clocks of a zone show a time, or for good what is not before it; in microseconds."""
    wall = pl.Series([micros], dtype=pl.Datetime("us"))
    zoned = wall.dt.replace_time_zone(zone, ambiguous=which, non_existent="null")  # type: ignore[arg-type]
    found: int | None = zoned.to_physical().item()
    if found is None or which == "earliest":
        return found
    before = pl.Series([found - 1], dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    goes_back = before.dt.replace_time_zone(None).to_physical().item() < micros
    return found if goes_back else _instant(micros, zone, "earliest")


def _skipped(micros: int, zone: str) -> int:
    """When the clocks of a zone skip a time, which they do at a whole second; in microseconds."""
    second = micros // 1_000_000
    seconds = pl.int_range(second - _NEAR, second + _NEAR, eager=True) * 1_000_000
    clocks = seconds.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    shown = clocks.dt.replace_time_zone(None).to_physical()
    found: int = seconds.filter(shown >= micros).to_list()[0]
    return found


_OF_CLOCKS = frozenset(
    ("dt_date", "dt_year", "dt_quarter", "dt_month", "dt_day", "dt_weekday", "dt_ordinal_day")
)
"""Operations on what clocks show, and on nothing else of a time with a zone."""
_NULL_OF_NULL = _OF_CLOCKS | {
    "dt_time",
    "dt_truncate",
    "dt_round",
    "dt_convert_time_zone",
    "dt_replace_time_zone",
    "dt_month_start",
    "dt_month_end",
    "dt_offset_by",
}
"""Operations whose result is null where their operand is, in addition to those that declare
it."""
_EPOCH = date(1970, 1, 1)
_PARTS: Mapping[str, tuple[Callable[[date], object], Callable[[date], int]]] = {
    "dt_month": (lambda day: day.year, lambda day: day.month),
    "dt_quarter": (lambda day: day.year, lambda day: (day.month - 1) // 3 + 1),
    "dt_ordinal_day": (lambda day: day.year, lambda day: day.timetuple().tm_yday),
    "dt_day": (lambda day: (day.year, day.month), lambda day: day.day),
    "dt_weekday": (lambda day: (day.toordinal() - 1) // 7, date.isoweekday),
}
"""Parts that rise in each year, month or week, and their distinguishing fields."""
_NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


TIME, CLOCK = "\0time", "\0clock"
"""What stands for a time in a condition, and for what the clocks of its zone show then."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of the columns that a condition reads."""

    # Their domains; those of `TIME` and, of a time with a zone, of `CLOCK` among them.
    columns: Mapping[str, Domain]
    none: frozenset[str] = frozenset()  # Those that are null

    def of(self, tree: Tree) -> Domain:
        """What is known of an expression."""
        match tree:
            case Call(Truncate() as op, (Column(name),)) if name == TIME and CLOCK in self.columns:
                shown = domain(op.of(Column(CLOCK)), self.columns).interval
                dtype = self.columns[TIME].dtype
                return Domain(dtype, interval=instants(shown, dtype) or Interval())
            case Call(op, (operand,)) if op.name in _PARTS:
                found = domain(tree, self.columns)
                return replace(found, interval=_of_part(op.name, self.of(operand), found.interval))
        return domain(tree, self.columns)

    def is_null(self, tree: Tree) -> bool:
        """Whether an expression is null for sure."""
        match tree:
            case Column(name):
                return name in self.none
            case Literal(value):
                return value is None
            case Call(op, args) if op.propagates_null or op.name in _NULL_OF_NULL:
                return any(map(self.is_null, args))
            case _:
                return False


def by_clocks(tree: Tree) -> Tree:
    """The same condition of a time with a zone, where what clocks show is read from `CLOCK`."""
    match tree:
        case Call(op, (Column(name),)) if name == TIME and op.name in _OF_CLOCKS:
            return Call(op, (Column(CLOCK),))
        case Call(ReplaceTimeZone(zone=None), (Column(name),)) if name == TIME:
            return Column(CLOCK)
        case Call(op, args):
            return Call(op, tuple(map(by_clocks, args)))
        case _:
            return tree


def _of_part(name: str, operand: Domain, widest: Interval) -> Interval:
    """A part of dates that lie in one year, or in one month."""
    known, dtype = operand.interval, operand.dtype
    if not known.is_bounded or dtype.zone is not None or not dtype.is_temporal:
        return widest
    unit = physical_units(dtype, DAY)
    first, last = (int(end // unit) for end in known.ends)
    if not FIRST_DAY <= first <= last <= LAST_DAY:
        return widest
    begin, end = (_EPOCH + timedelta(days=day) for day in (first, last))
    alike, part = _PARTS[name]
    if alike(begin) != alike(end):
        return widest
    return Interval(Fraction(part(begin)), Fraction(part(end)))


def may_be(tree: Tree, wanted: bool, known: Known) -> bool:
    """Whether a condition may be true, or false, in a row with these known values."""
    match tree:
        case Literal(value):
            return value is wanted
        case Call(Not(), (operand,)):
            return may_be(operand, not wanted, known)
        case Call(And(), (left, right)):
            both = (may_be(left, wanted, known), may_be(right, wanted, known))
            return all(both) if wanted else any(both)
        case Call(Or(), (left, right)):
            both = (may_be(left, wanted, known), may_be(right, wanted, known))
            return any(both) if wanted else all(both)
        case Call(IsNull() | IsNotNull() as op, (operand,)):
            if isinstance(op, IsNull) is wanted:
                return known.is_null(operand) or known.of(operand).nullable
            return not known.is_null(operand)
        case Call(IsIn() as op, (operand,)):
            return _may_be_listed(op, operand, wanted, known)
        case _ if known.is_null(tree):
            return False
        case Call(IsBetween() as op, (value, low, high)):
            above = "ge" if op.closed in ("both", "left") else "gt"
            below = "le" if op.closed in ("both", "right") else "lt"
            ends = ((above, low), (below, high))
            if wanted:
                return all(_may_compare(name, value, end, known) for name, end in ends)
            return any(_may_compare(_NEGATED[name], value, end, known) for name, end in ends)
        case Call(op, (left, right)) if op.name in _NEGATED:
            return _may_compare(op.name if wanted else _NEGATED[op.name], left, right, known)
        case _:
            return True


def _may_compare(name: str, left: Tree, right: Tree, known: Known) -> bool:
    """Whether two values may compare so; where one is null for sure, they do not."""
    if known.is_null(left) or known.is_null(right):
        return False
    a, b = known.of(left), known.of(right)
    # By what physical numbers of the two types are multiplied to be compared exactly.
    if a.dtype.is_integer and b.dtype.is_integer:
        factors = 1, 1
    elif {a.dtype.name, b.dtype.name} <= {"Date", "Datetime"} and (a.dtype.zone is None) == (
        b.dtype.zone is None
    ):
        factors = _nanoseconds(a.dtype), _nanoseconds(b.dtype)
    else:  # they are compared in another way
        return True
    one, other = (d.interval * interval(n, n) for d, n in zip((a, b), factors, strict=True))
    match name:
        case "lt":
            return one.lo is None or other.hi is None or one.lo < other.hi
        case "le":
            return one.lo is None or other.hi is None or one.lo <= other.hi
        case "gt":
            return other.lo is None or one.hi is None or other.lo < one.hi
        case "ge":
            return other.lo is None or one.hi is None or other.lo <= one.hi
        case "eq":
            return one.intersect(other) is not None
        case _:
            return not (one.is_point and one == other)


def _nanoseconds(dtype: DType) -> int:
    """The nanoseconds of one physical unit."""
    return DAY * 10**9 if dtype.name == "Date" else 10**9 // dtype.units_per_second


def _may_be_listed(op: IsIn, operand: Tree, wanted: bool, known: Known) -> bool:
    """Whether a value may be among some constants, or outside them."""
    listed_null = None in op.values
    if known.is_null(operand):
        return op.nulls_equal and listed_null is wanted
    if not wanted:
        return True
    found = known.of(operand)
    if op.nulls_equal and listed_null and found.nullable:
        return True
    numbers = _numbers(op, found.dtype)
    return numbers is None or holds_one(found.interval, numbers)


@lru_cache(maxsize=64)
def _numbers(op: IsIn, dtype: DType) -> tuple[Fraction, ...] | None:
    """The constants in the units of a type, sorted; None where they may be compared otherwise."""
    if not dtype.is_integer and dtype.name not in ("Date", "Datetime"):
        return None
    found = []
    for value in op.values:
        if value is None:
            continue
        if dtype.is_integer and not isinstance(value, int):
            return None
        number = physical(value, dtype)
        if number is None:
            return None
        found.append(number)
    return tuple(sorted(found))


def holds_one(known: Interval, numbers: Sequence[Fraction | int]) -> bool:
    """Whether one of some numbers, which are sorted, lies in an interval."""
    start = 0 if known.lo is None else bisect_left(numbers, known.lo)
    return start < len(numbers) and (known.hi is None or numbers[start] <= known.hi)
