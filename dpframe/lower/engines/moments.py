"""Dates and naive times: their parts, and their physical numbers from those parts.

An engine's own number of a moment may depend on the time zone of a session; its parts do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpframe.core.dtypes import DATE, INT64
from dpframe.lower.engines.made import Made, Scope

if TYPE_CHECKING:
    from dpframe.lower.engines.expressions import Expression

_PARTS = {
    "year": (-(10**7), 10**7),
    "month": (1, 12),
    "day": (1, 31),
    "ordinal_day": (1, 366),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "microsecond": (0, 999_999),
}


class Moments:
    """Methods of dates and times, for values of the years 1 to 9999."""

    __slots__ = ("_moment",)

    def __init__(self, moment: Expression) -> None:
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        raise self._moment.ns.refused(f".dt.{name}")

    def _part(self, name: str) -> Expression:
        return self._moment._then(lambda scope, a: part(scope, a, name))

    def year(self) -> Expression:
        return self._part("year")

    def month(self) -> Expression:
        return self._part("month")

    def day(self) -> Expression:
        return self._part("day")

    def ordinal_day(self) -> Expression:
        return self._part("ordinal_day")

    def hour(self) -> Expression:
        return self._part("hour")

    def minute(self) -> Expression:
        return self._part("minute")

    def second(self) -> Expression:
        return self._part("second")

    def quarter(self) -> Expression:
        return (self.month() + 2) // 3

    def weekday(self) -> Expression:
        """Monday is 1."""
        return (days(self._moment) + 3) % 7 + 1

    def is_leap_year(self) -> Expression:
        year = self.year()
        return ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)

    def date(self) -> Expression:
        def take(scope: Scope, a: Made) -> Made:
            _require_moment(scope, a)
            return a.having(a.expr.cast(scope.ns.nw.Date), DATE)

        return self._moment._then(take)


def part(scope: Scope, a: Made, name: str) -> Made:
    """One part as Int64."""
    _require_moment(scope, a)
    nw = scope.ns.nw
    if name == "microsecond" and not scope.ns.has_microseconds:
        raise scope.ns.refused("fractions of seconds")
    return a.having(getattr(a.expr.dt, name)().cast(nw.Int64), INT64, *_PARTS[name])


def days(moment: Expression) -> Expression:
    """Days since 1970-01-01 (Hinnant, days_from_civil), from year, month and day."""
    month = moment.dt.month()
    early = moment.ns.when(month <= 2).then(1).otherwise(0)
    year = moment.dt.year() - early
    era = year // 400
    of_era = year - era * 400
    shifted = (month + 9) % 12
    of_year = (shifted * 153 + 2) // 5 + moment.dt.day() - 1
    day_of_era = of_era * 365 + of_era // 4 - of_era // 100 + of_year
    return era * 146097 + day_of_era - 719468


def physical(moment: Expression) -> Expression:
    """Days, or microseconds, since 1970."""

    def number(scope: Scope, a: Made) -> Made:
        _require_moment(scope, a)
        if a.dtype == DATE:
            return scope.made(days(moment))
        return scope.made(_microseconds(moment))

    return moment._then(number)


def _microseconds(moment: Expression) -> Expression:
    hours = days(moment) * 24 + moment.dt.hour()
    seconds = (hours * 60 + moment.dt.minute()) * 60 + moment.dt.second()
    return seconds * 1_000_000 + Moments(moment)._part("microsecond")


def _require_moment(scope: Scope, a: Made) -> None:
    scope.ns.require_comparable(a.dtype)
    if not a.dtype.is_temporal:
        raise scope.ns.refused(f"dates of type {a.dtype}")
