"""Methods of dates, naive times and durations."""

from __future__ import annotations

from fractions import Fraction
from math import trunc
from typing import Any, Generic, TypeVar

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import DATE, INT64, duration_type
from dpframe.lower.engines import calendar
from dpframe.lower.engines.calendar import MICROS_PER_DAY
from dpframe.lower.engines.engine_expr import DURATION, EngineExpr, EngineScope
from dpframe.lower.engines.operators import Operators
from dpframe.rows.temporal import span

_EPOCH_MONTH = 1970 * 12
_MONDAY = 4
"""1970-01-05 in days since 1970: windows of weeks are counted from there, those of months from
January 1970.
"""
E = TypeVar("E", bound=Operators)


class TemporalOps(Generic[E]):
    """Methods of dates and times, for values of the years 1 to 9999, and of durations."""

    __slots__ = ("_moment",)

    def __init__(self, moment: E) -> None:
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        raise self._moment.dialect.refused(f".dt.{name}")

    # -- parts ----------------------------------------------------------------------------------

    def year(self) -> E:
        return calendar.part(self._moment, "year")

    def month(self) -> E:
        return calendar.part(self._moment, "month")

    def day(self) -> E:
        return calendar.part(self._moment, "day")

    def ordinal_day(self) -> E:
        return calendar.part(self._moment, "ordinal_day")

    def hour(self) -> E:
        return calendar.part(self._moment, "hour")

    def minute(self) -> E:
        return calendar.part(self._moment, "minute")

    def second(self) -> E:
        return calendar.part(self._moment, "second")

    def millisecond(self) -> E:
        return self.microsecond() // 1_000

    def microsecond(self) -> E:
        return calendar.part(self._moment, "microsecond")

    def nanosecond(self) -> E:
        return self.microsecond() * 1_000

    def quarter(self) -> E:
        return (self.month() + 2) // 3

    def weekday(self) -> E:
        """Monday is 1."""
        return (calendar.days(self._moment) + 3) % 7 + 1

    def century(self) -> E:
        return (self.year() + 99) // 100

    def millennium(self) -> E:
        return (self.year() + 999) // 1_000

    def is_leap_year(self) -> E:
        return calendar.is_leap(self.year())

    def days_in_month(self) -> E:
        return calendar.length_of_month(self.year(), self.month())

    def iso_year(self) -> E:
        """The year of the Thursday of the same week."""
        return calendar.part(self._thursday(), "year")

    def week(self) -> E:
        """Which Thursday of its year the one of the same week is."""
        return (calendar.part(self._thursday(), "ordinal_day") + 6) // 7

    def _thursday(self) -> E:
        number = calendar.near_days(self._moment)
        return calendar.dated(number - (number + 3) % 7 + 3)

    # -- other moments --------------------------------------------------------------------------

    def date(self) -> E:
        def take(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            calendar.require_moment(scope, a)
            return a.having(a.expr.cast(nw.Date), DATE)

        return self._moment.then(take)

    def month_start(self) -> E:
        return self._on_day(calendar.near_days(self._moment) - self.day() + 1)

    def month_end(self) -> E:
        first = calendar.near_days(self._moment) - self.day()
        return self._on_day(first + self.days_in_month())

    def offset_by(self, by: str) -> E:
        """Moved by months (to the last day if the day does not exist), then by days."""
        found = span(by)
        sign = -1 if found.negative else 1
        if found.nanoseconds:
            raise self._moment.dialect.refused("moving a date by parts of a day")
        number = calendar.near_days(self._moment)
        if found.months:
            month = calendar.months(self._moment) + sign * found.months
            number = calendar.same_day(month, self.day())
        return self._on_day(number + sign * (7 * found.weeks + found.days))

    def truncate(self, every: str) -> E:
        """The last beginning of a window that is not later."""
        found = span(every)
        if found.nanoseconds:
            micros = calendar.near_micros(self._moment)
            return calendar.timed(micros - micros % (found.nanoseconds // 1_000))
        if found.months:
            month = calendar.months(self._moment)
            first = month - (month - _EPOCH_MONTH) % found.months
            number = calendar.same_day(first, self.day() * 0 + 1)
        else:
            size, origin = (7 * found.weeks, _MONDAY) if found.weeks else (found.days, 0)
            number = calendar.near_days(self._moment)
            number = number - (number - origin) % size
        midnight = calendar.timed(number * MICROS_PER_DAY)
        return calendar.of_type(self._moment, calendar.dated(number), midnight)

    def _on_day(self, number: E) -> E:
        """A day as a value of the same type, at the same time of day."""
        date, time = calendar.near_days(self._moment), calendar.near_micros(self._moment)
        moved = (number - date) * MICROS_PER_DAY + time
        return calendar.of_type(self._moment, calendar.dated(number), calendar.timed(moved))

    # -- numbers --------------------------------------------------------------------------------

    def timestamp(self, unit: str) -> E:
        """Units since 1970; lowered operations see to it that they fit."""
        per_second = duration_type(unit).units_per_second
        micros = calendar.physical(self._moment)
        size = per_second // 10**6
        of_time = micros * size if size else micros // (10**6 // per_second)
        of_date = calendar.days(self._moment) * (86_400 * per_second)
        return calendar.of_type(self._moment, of_date, of_time)

    def total_days(self) -> E:
        return self._total(MICROS_PER_DAY)

    def total_hours(self) -> E:
        return self._total(3_600 * 10**6)

    def total_minutes(self) -> E:
        return self._total(60 * 10**6)

    def total_seconds(self) -> E:
        return self._total(10**6)

    def total_milliseconds(self) -> E:
        return self._total(1_000)

    def total_microseconds(self) -> E:
        return self._total(1)

    def total_nanoseconds(self) -> E:
        return self._total(1) * 1_000

    def _total(self, size: int) -> E:
        """How often this many microseconds are in a duration, towards zero."""

        def count(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            if a.dtype != DURATION:
                raise scope.dialect.refused(f"durations of type {a.dtype}")
            number = a.having(a.expr, INT64, a.interval)
            if size == 1:
                return number
            divided = scope.dialect.quotient
            known = a.interval.increasing(lambda end: Fraction(trunc(end / size)))
            sql = f"CAST({{}} {divided} {size} AS BIGINT)".format
            return scope.written(sql, [number], INT64, known)

        return self._moment.then(count)
