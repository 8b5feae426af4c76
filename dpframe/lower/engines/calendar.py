"""The calendar of dates and naive times in whole numbers: their parts, and days from parts.

An engine's own number of a moment may depend on the time zone of a session; its parts do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self, TypeAlias, TypeVar

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import BOOLEAN, DATE, INT64, STRING, DType, Scalar, datetime_type
from dpframe.core.interval import UNIT, interval
from dpframe.lower.engines import numbers
from dpframe.lower.engines.engine_expr import (
    DURATION,
    Dialect,
    EngineExpr,
    EngineScope,
    Node,
    combined,
)

# Operators of expressions as lowered operations write them: arithmetic, comparisons, conditions.
#
# They have Polars' names, as many as lowered operations need, with Polars' meaning on every engine.
# An expression is made when a frame takes it, for only then the types of its columns are known.

_Apply: TypeAlias = "Callable[[nw.Expr, nw.Expr], nw.Expr]"


class Operators:
    """An expression that a frame has yet to make.

    Parameters
    ----------
    dialect, node
        The engine, and how it is made.
    names
        The columns that it reads, by the names that plans use.
    reduces
        Whether it is an aggregate, or computed from one.
    name
        What its column will be called.
    """

    __slots__ = ("dialect", "name", "names", "node", "reduces")

    def __init__(
        self,
        dialect: Dialect,
        node: Node,
        names: Sequence[str] = (),
        reduces: bool = False,
        name: str | None = None,
    ) -> None:
        self.dialect = dialect
        self.node = node
        self.names = tuple(dict.fromkeys(names))
        self.reduces = reduces
        self.name = name

    def like(self, node: Node, names: Sequence[str], reduces: bool, name: str | None) -> Self:
        """Another expression of the same kind."""
        return type(self)(self.dialect, node, names, reduces, name)

    def lifted(self, value: Self | Scalar) -> Self:
        """An expression, or a Python value as one."""
        if isinstance(value, Operators):
            return value
        return self.like(Node(lambda scope: scope.dialect.python(value)), (), False, "literal")

    def then(self, function: Callable[..., EngineExpr], *others: Self | Scalar) -> Self:
        """A function of this and of others, which may be Python values."""
        operands = [self, *map(self.lifted, others)]

        def make(scope: EngineScope) -> EngineExpr:
            return function(scope, *(scope.made(o.node) for o in operands))

        names = [name for o in operands for name in o.names]
        return self.like(Node(make), names, any(o.reduces for o in operands), self.name)

    def alias(self, name: str) -> Self:
        return self.like(self.node, self.names, self.reduces, name)

    # -- arithmetic -----------------------------------------------------------------------------

    def __add__(self, other: Self | Scalar) -> Self:
        return self.then(_added, other)

    def __radd__(self, other: Self | Scalar) -> Self:
        return self.lifted(other).then(numbers.add, self)

    def __sub__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.sub, other)

    def __rsub__(self, other: Self | Scalar) -> Self:
        return self.lifted(other).then(numbers.sub, self)

    def __mul__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.mul, other)

    def __rmul__(self, other: Self | Scalar) -> Self:
        return self.lifted(other).then(numbers.mul, self)

    def __truediv__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.divided, other)

    def __floordiv__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.floor_divided, other)

    def __mod__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.remainder, other)

    def __neg__(self) -> Self:
        return self.then(numbers.negated)

    # -- comparisons ----------------------------------------------------------------------------

    def __eq__(self, other: Self | Scalar) -> Self:  # type: ignore[override]
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: Self | Scalar) -> Self:  # type: ignore[override]
        return self._compared(other, lambda a, b: a != b)

    def __lt__(self, other: Self | Scalar) -> Self:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: Self | Scalar) -> Self:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: Self | Scalar) -> Self:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: Self | Scalar) -> Self:
        return self._compared(other, lambda a, b: a >= b)

    __hash__ = object.__hash__

    def _compared(self, other: Self | Scalar, function: _Apply) -> Self:
        def compare(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
            a, b = numbers.matched(scope, a, b)
            scope.dialect.require_comparable(a.dtype)
            return combined(function(a.expr, b.expr), BOOLEAN, a, b)

        return self.then(compare, other)

    # -- conditions -----------------------------------------------------------------------------

    def __and__(self, other: Self | Scalar) -> Self:
        return self._joined(other, lambda a, b: a & b)

    def __or__(self, other: Self | Scalar) -> Self:
        return self._joined(other, lambda a, b: a | b)

    def __xor__(self, other: Self | Scalar) -> Self:
        return self._joined(other, lambda a, b: a != b)

    def __invert__(self) -> Self:
        return self.then(lambda _, a: a.having(~a.expr, BOOLEAN))

    def _joined(self, other: Self | Scalar, function: _Apply) -> Self:
        def join(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
            a, b = numbers.matched(scope, a, b)
            if not a.dtype.is_boolean:
                raise scope.dialect.refused("integers combined bit by bit")
            return combined(function(a.expr, b.expr), BOOLEAN, a, b)

        return self.then(join, other)


def _added(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    """A sum, or two texts as one: null where one is null."""
    if not a.dtype.is_text:
        return numbers.add(scope, a, b)
    a, b = numbers.matched(scope, a, b)
    return combined(nw.concat_str(a.expr, b.expr, separator=""), STRING, a, b)


# Dates and naive times from their physical numbers.

DAYS = (-1_400_000, 3_600_000)
"""The years -1863 to 11826: wider than the calendar by more than any span, and known to all
engines.
"""
MICROS_PER_DAY = 86_400 * 10**6


def reach(dtype: DType) -> tuple[int, int]:
    """The physical numbers that a moment is made of."""
    size = 1 if dtype == DATE else MICROS_PER_DAY
    return DAYS[0] * size, DAYS[1] * size


def moment_of(scope: EngineScope, number: EngineExpr, dtype: DType) -> EngineExpr:
    """The Date of a number of days, or the Datetime of one of microseconds; null far outside the
    calendar.
    """
    lo, hi = reach(dtype)
    known = number.interval.intersect(interval(lo, hi)) or interval(lo, hi)
    if not number.interval.within((lo, hi)):
        a = scope.once(number)
        least, most = (scope.dialect.constant(end, a.dtype).expr for end in (lo, hi))
        number = a.having(nw.when((a.expr >= least) & (a.expr <= most)).then(a.expr), a.dtype)
    if dtype == DATE:
        return scope.written(
            lambda x: f"DATE '1970-01-01' + CAST({x} AS INT)", [number], dtype, known
        )
    return scope.written(scope.dialect.from_micros, [number], dtype, known)


_PARTS = {
    "year": interval(-(10**7), 10**7),
    "month": interval(1, 12),
    "day": interval(1, 31),
    "ordinal_day": interval(1, 366),
    "hour": interval(0, 23),
    "minute": interval(0, 59),
    "second": interval(0, 59),
    "microsecond": interval(0, 999_999),
}
_YEARS = (-2_000, 12_000)
"""More than moments are made of."""
_DATETIME = datetime_type("us")
E = TypeVar("E", bound=Operators)


def part(moment: E, name: str) -> E:
    """One part as Int64."""

    def take(scope: EngineScope, a: EngineExpr) -> EngineExpr:
        require_moment(scope, a)
        sql = scope.dialect.microsecond
        if name == "microsecond" and sql is not None:
            return scope.written(sql, [a], INT64, _PARTS[name])
        return a.having(getattr(a.expr.dt, name)().cast(nw.Int64), INT64, _PARTS[name])

    return moment.then(take)


def days(moment: E) -> E:
    """Days since 1970-01-01, from year, month and day."""
    return days_of(part(moment, "year"), part(moment, "month"), part(moment, "day"))


def days_of(year: E, month: E, day: E) -> E:
    """Days since 1970-01-01 (Hinnant, days_from_civil)."""
    year = year - month.then(_is_early)
    era = year // 400
    of_era = year - era * 400
    of_year = ((month + 9) % 12 * 153 + 2) // 5 + day - 1
    day_of_era = of_era * 365 + of_era // 4 - of_era // 100 + of_year
    return era * 146097 + day_of_era - 719468


def _is_early(_: EngineScope, month: EngineExpr) -> EngineExpr:
    """1 for January and February, else 0: years are taken to begin in March."""
    one, zero = nw.lit(1, nw.Int64), nw.lit(0, nw.Int64)
    return month.having(nw.when(month.expr <= 2).then(one).otherwise(zero), INT64, UNIT)


def physical(moment: E) -> E:
    """Days, or microseconds, since 1970; microseconds of a duration."""
    date = days(moment)
    time = _micros(moment, date)

    def number(scope: EngineScope, a: EngineExpr) -> EngineExpr:
        if a.dtype == DURATION:
            return a.having(a.expr, INT64, a.interval)
        require_moment(scope, a)
        if a.interval.within(reach(a.dtype)):
            near = scope.made((near_days if a.dtype == DATE else near_micros)(moment).node)
            return replace(near, interval=a.interval)
        return scope.made((date if a.dtype == DATE else time).node)

    return moment.then(number)


def _micros(moment: E, date: E) -> E:
    hours = date * 24 + part(moment, "hour")
    seconds = (hours * 60 + part(moment, "minute")) * 60 + part(moment, "second")
    return seconds * 1_000_000 + part(moment, "microsecond")


# -- near the calendar: null farther away, so that numbers are known to be small. Lowered operations
# ask it of values inside the calendar alone; differences and casts are of `physical` numbers ----


def near_year(moment: E) -> E:
    """The year."""

    def keep(scope: EngineScope, a: EngineExpr) -> EngineExpr:
        a = scope.once(a)
        inside = (a.expr >= _YEARS[0]) & (a.expr <= _YEARS[1])
        return a.having(nw.when(inside).then(a.expr), INT64, interval(*_YEARS))

    return part(moment, "year").then(keep)


def near_days(moment: E) -> E:
    """Days since 1970-01-01."""
    return days_of(near_year(moment), part(moment, "month"), part(moment, "day"))


def near_micros(moment: E) -> E:
    """Microseconds since 1970 of a time."""
    return _micros(moment, near_days(moment))


def months(moment: E) -> E:
    """Months since the year 0."""
    return near_year(moment) * 12 + part(moment, "month") - 1


def same_day(month: E, day: E) -> E:
    """Days since 1970-01-01, from months since the year 0 and a day that is at most their last."""
    year, of_year = month // 12, month % 12 + 1
    return days_of(year, of_year, day.then(_lesser, length_of_month(year, of_year)))


def _lesser(_: EngineScope, day: EngineExpr, last: EngineExpr) -> EngineExpr:
    made = nw.when(day.expr <= last.expr).then(day.expr).otherwise(last.expr)
    return combined(made, INT64, day, last, known=_PARTS["day"])


def is_leap(year: E) -> E:
    return ((year % 4 < 1) & (year % 100 > 0)) | (year % 400 < 1)


def length_of_month(year: E, month: E) -> E:
    """28 to 31."""
    return month.then(_length, is_leap(year), (month + month // 8) % 2 + 30)


def _length(
    _: EngineScope, month: EngineExpr, leap: EngineExpr, otherwise: EngineExpr
) -> EngineExpr:
    longer, february = nw.lit(29, nw.Int64), nw.lit(28, nw.Int64)
    february = nw.when(leap.expr).then(longer).otherwise(february)
    made = nw.when(month.expr == 2).then(february).otherwise(otherwise.expr)
    return combined(made, INT64, month, leap, otherwise, known=interval(28, 31))


# -- moments --------------------------------------------------------------------------------------


def dated(number: E) -> E:
    """The date of a number of days."""
    return number.then(lambda scope, a: moment_of(scope, a, DATE))


def timed(number: E) -> E:
    """The time of a number of microseconds."""
    return number.then(lambda scope, a: moment_of(scope, a, _DATETIME))


def of_type(moment: E, of_date: E, of_time: E) -> E:
    """One or the other, by what the moment is."""

    def choose(scope: EngineScope, a: EngineExpr) -> EngineExpr:
        require_moment(scope, a)
        return scope.made((of_date if a.dtype == DATE else of_time).node)

    return moment.then(choose)


def moved(moment: E, span: E, sign: int) -> E:
    """A moment near the calendar, before or after a duration."""
    number = physical(span)
    micros = near_micros(moment)
    return timed(micros + number if sign > 0 else micros - number)


def between(later: E, earlier: E) -> E:
    """The duration from one moment near the calendar to another of the same type."""
    of_dates = (near_days(later) - near_days(earlier)) * MICROS_PER_DAY
    number = of_type(later, of_dates, near_micros(later) - near_micros(earlier))
    return number.then(lambda _, a: a.having(a.expr, DURATION, a.interval))


def require_moment(scope: EngineScope, a: EngineExpr) -> None:
    """Refuse what is neither a date nor a time that the engine has."""
    scope.dialect.require_comparable(a.dtype)
    if a.dtype.name not in ("Date", "Datetime"):
        raise scope.dialect.refused(f"dates of type {a.dtype}")
