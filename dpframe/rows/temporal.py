"""What operations on dates and times share: where they are defined, and local time.

Polars panics, wraps or answers nonsense on dates far outside the calendar, differently from version
to version. So an operation sees only dates of the years 1 to 9999 (for zoned times less one day at
either end, so that local time stays inside too); others give null. A Datetime in nanoseconds spans
the years 1677 to 2262 and is always inside.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import ClassVar, TypeAlias
import typing

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import DType
from dpframe.core.interval import Interval, interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.method import MethodOperation
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.polars_dtypes import to_polars

FIRST_DAY = -719_162
"""0001-01-01, in days since 1970-01-01."""
LAST_DAY = 2_932_896
"""9999-12-31."""
MOST_KEYS = 60
"""Parts of times with a greater number among their values are no keys separately."""
DAY = 86_400
"""Seconds of a day."""
INT64_LIMITS = (-(2**63), 2**63 - 1)

Fold: TypeAlias = 'typing.Literal["earliest", "latest", "null"]'
"""Which of two moments a local time is that the clock shows twice."""
Limits: TypeAlias = "tuple[int, int]"
"""The first and last value of a type, in physical units, on which an operation is defined."""


def require_type(domain: Domain, names: Collection[str], what: str) -> None:
    """Refuse an operand of another type, with what to do."""
    if domain.dtype.name not in names:
        raise UnsupportedOperation(
            f"{what} works on {' and '.join(names)}, not on {domain.dtype}",
            remedy=_remedy(domain.dtype, names),
        )


def _remedy(dtype: DType, names: Collection[str]) -> str:
    if dtype.is_text:
        return "parse it first, for example with .str.to_datetime(format)"
    if dtype.name == "Date" and "Datetime" in names:
        return 'cast it first, with .cast(pl.Datetime("us"))'
    if dtype.name == "Datetime" and "Duration" in names:
        return "subtract another date or time first"
    if dtype.name == "Duration":
        return "count its units, for example with .dt.total_seconds()"
    if dtype.name == "Time":
        return "take its parts, for example with .dt.hour()"
    return "use a column of dates or times"


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
    safe = ns.when(ok).then(value).otherwise(point(ns, 0, dtype))
    expression: pl.Expr = ns.when(ok).then(function(safe))
    return expression


def kept_inside(ns: Namespace, value: pl.Expr, dtype: DType, limits: Limits | None) -> pl.Expr:
    """The value where it is inside the limits, else null."""
    if limits is None:
        return value
    expression: pl.Expr = ns.when(is_inside(ns, value, dtype, limits)).then(value)
    return expression


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
    ends = [_end(known.lo, floor), _end(known.hi, ceil)]
    lo, hi = _at_ends(ends, dtype, function)
    nullable = operand.nullable or lo is None or hi is None or has_gaps(dtype)
    low, high = limits or INT64_LIMITS
    lo = low if lo is None and ends[0] is not None else lo
    hi = high if hi is None and ends[1] is not None else hi
    found = interval(None if lo is None else lo - slack, None if hi is None else hi + slack)
    return replace(
        operand, nullable=nullable, interval=known_within(found, limits), categories=None
    )


def _end(end: Fraction | None, rounding: Callable[[Fraction], int]) -> int | None:
    if end is None:
        return None
    return min(max(rounding(end), INT64_LIMITS[0]), INT64_LIMITS[1])


def _at_ends(
    ends: list[int | None], dtype: DType, function: Callable[[pl.Expr], pl.Expr]
) -> list[int | None]:
    """The function's physical values at the ends that are known."""
    column = pl.Series("end", ends, dtype=pl.Int64).cast(to_polars(dtype))
    results = column.to_frame().select(function(pl.col("end")).to_physical())["end"]
    return [None if result is None else int(result) for result in results.to_list()]


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
    expression: pl.Expr = ns.when(is_first).then(first).otherwise(second)
    return expression


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
    expression: pl.Expr = ns.when(second <= value).then(second).otherwise(first)
    return expression


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


class TemporalMethod(MethodOperation, TemporalOperation):
    """A method of dates and times, with constants."""

    __slots__ = ()
    namespace = "dt"
    groups = ("TemporalExpr",)
