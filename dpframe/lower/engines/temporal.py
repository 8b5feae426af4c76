"""Dates and naive times: their parts, and their physical numbers from those parts.

An engine's own number of a moment may depend on the time zone of a session; its parts do not.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import DATE, INT64
from dpframe.core.interval import UNIT, interval
from dpframe.lower.engines.engine_expr import EngineExpr
from dpframe.lower.engines.engine_scope import EngineScope
from dpframe.lower.engines.operators import Operators

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
E = TypeVar("E", bound=Operators)


class TemporalOps(Generic[E]):
    """Methods of dates and times, for values of the years 1 to 9999."""

    __slots__ = ("_moment",)

    def __init__(self, moment: E) -> None:
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        raise self._moment.dialect.refused(f".dt.{name}")

    def year(self) -> E:
        return part(self._moment, "year")

    def month(self) -> E:
        return part(self._moment, "month")

    def day(self) -> E:
        return part(self._moment, "day")

    def ordinal_day(self) -> E:
        return part(self._moment, "ordinal_day")

    def hour(self) -> E:
        return part(self._moment, "hour")

    def minute(self) -> E:
        return part(self._moment, "minute")

    def second(self) -> E:
        return part(self._moment, "second")

    def quarter(self) -> E:
        return (self.month() + 2) // 3

    def weekday(self) -> E:
        """Monday is 1."""
        return (days(self._moment) + 3) % 7 + 1

    def is_leap_year(self) -> E:
        year = self.year()
        return ((year % 4 < 1) & (year % 100 > 0)) | (year % 400 < 1)

    def date(self) -> E:
        def take(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            _require_moment(scope, a)
            return a.having(a.expr.cast(nw.Date), DATE)

        return self._moment.then(take)


def part(moment: E, name: str) -> E:
    """One part as Int64."""

    def take(scope: EngineScope, a: EngineExpr) -> EngineExpr:
        _require_moment(scope, a)
        if name == "microsecond" and not scope.dialect.has_microseconds:
            raise scope.dialect.refused("fractions of seconds")
        return a.having(getattr(a.expr.dt, name)().cast(nw.Int64), INT64, _PARTS[name])

    return moment.then(take)


def days(moment: E) -> E:
    """Days since 1970-01-01 (Hinnant, days_from_civil), from year, month and day."""
    month = part(moment, "month")
    year = part(moment, "year") - month.then(_is_early)
    era = year // 400
    of_era = year - era * 400
    of_year = ((month + 9) % 12 * 153 + 2) // 5 + part(moment, "day") - 1
    day_of_era = of_era * 365 + of_era // 4 - of_era // 100 + of_year
    return era * 146097 + day_of_era - 719468


def _is_early(_: EngineScope, month: EngineExpr) -> EngineExpr:
    """1 for January and February, else 0: years are taken to begin in March."""
    one, zero = nw.lit(1, nw.Int64), nw.lit(0, nw.Int64)
    return month.having(nw.when(month.expr <= 2).then(one).otherwise(zero), INT64, UNIT)


def physical(moment: E) -> E:
    """Days, or microseconds, since 1970."""
    date = days(moment)
    hours = date * 24 + part(moment, "hour")
    seconds = (hours * 60 + part(moment, "minute")) * 60 + part(moment, "second")
    time = seconds * 1_000_000 + part(moment, "microsecond")

    def number(scope: EngineScope, a: EngineExpr) -> EngineExpr:
        _require_moment(scope, a)
        return scope.made((date if a.dtype == DATE else time).node)

    return moment.then(number)


def _require_moment(scope: EngineScope, a: EngineExpr) -> None:
    scope.dialect.require_comparable(a.dtype)
    if not a.dtype.is_temporal:
        raise scope.dialect.refused(f"dates of type {a.dtype}")
