"""Parts of times of day as Int64, in local time where there is a zone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64, DType
from dpframe.core.interval import interval
from dpframe.core.tree import Options
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.temporal import Limits, calendar, guarded, inside, require_type


def _limits(dtype: DType) -> Limits | None:
    """Every value of a Time is a time of day; a Datetime must be inside the calendar."""
    return None if dtype.name == "Time" else calendar(dtype)


class ClockPart(RowOperation):
    """A number that is read from a time of day."""

    most: int

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_type(args[0], ("Datetime", "Time"), self.method)
        operand = inside(args[0], _limits(args[0].dtype))
        return Domain(INT64, nullable=operand.nullable, interval=interval(0, self.most))

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        dtype = domains[0].dtype
        return guarded(
            ns, args[0], dtype, _limits(dtype), lambda value: as_type(self.read(value), INT64)
        )

    def words(self, args: Sequence[str], options: Options) -> str:
        return f"{args[0]}.{self.method}()"

    @property
    def method(self) -> str:
        return self.name.replace("_", ".", 1)

    @abstractmethod
    def read(self, value: pl.Expr) -> pl.Expr:
        """The part of a value that is inside the calendar."""


class Hour(ClockPart):
    name = "dt_hour"
    summary = "Hour, 0 to 23; null outside the years 1 to 9999."
    examples = ('pl.col("dt").dt.hour()', 'pl.col("dtz").dt.hour()', 'pl.col("t").dt.hour()')
    most = 23

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.hour()


class Minute(ClockPart):
    name = "dt_minute"
    summary = "Minute, 0 to 59."
    examples = ('pl.col("dt").dt.minute()', 'pl.col("dtz").dt.minute()', 'pl.col("t").dt.minute()')
    most = 59

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.minute()


class Second(ClockPart):
    name = "dt_second"
    summary = "Whole second, 0 to 59."
    examples = ('pl.col("dt").dt.second()', 'pl.col("dtz").dt.second()', 'pl.col("t").dt.second()')
    most = 59

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.second()


class Millisecond(ClockPart):
    name = "dt_millisecond"
    summary = "Milliseconds since the last whole second, 0 to 999."
    examples = ('pl.col("dt").dt.millisecond()', 'pl.col("dtms").dt.millisecond()')
    most = 999

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.millisecond()


class Microsecond(ClockPart):
    name = "dt_microsecond"
    summary = "Microseconds since the last whole second, 0 to 999,999."
    examples = ('pl.col("dtz").dt.microsecond()', 'pl.col("t").dt.microsecond()')
    most = 999_999

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.microsecond()


class Nanosecond(ClockPart):
    name = "dt_nanosecond"
    summary = "Nanoseconds since the last whole second, 0 to 999,999,999."
    examples = ('pl.col("dtms").dt.nanosecond()', 'pl.col("t").dt.nanosecond()')
    most = 999_999_999

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.nanosecond()


OPERATIONS: tuple[RowOperation, ...] = (
    Hour(),
    Minute(),
    Second(),
    Millisecond(),
    Microsecond(),
    Nanosecond(),
)
