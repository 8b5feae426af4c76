"""Parts of times of day as Int64, in local time where there is a zone."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import interval
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, PlainOperation, on, operation
from dpframe.rows.temporal import MOST_KEYS, Limits, calendar, guarded, inside, require_type


def _limits(dtype: DType) -> Limits | None:
    """Every value of a Time is a time of day; a Datetime must be inside the calendar."""
    return None if dtype.name == "Time" else calendar(dtype)


@operation
class ClockPart(PlainOperation):
    """A number that is read from a time of day, by the engine's method of the same name."""

    name: str
    reads: tuple[str, ...]
    summary: str
    examples: tuple[str, ...]
    most: int
    engines = EVERYWHERE

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Datetime", "Time"), f"dt.{self.method}")
        operand = inside(args[0], _limits(args[0].dtype))
        return Domain(INT64, nullable=operand.nullable, interval=interval(0, self.most))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype

        def read(value: pl.Expr) -> pl.Expr:
            return as_type(getattr(value.dt, self.method)(), INT64)

        return guarded(ns, args[0], dtype, _limits(dtype), read)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.{self.method}()"

    @property
    def few_values(self) -> range | None:
        return range(self.most + 1) if self.most <= MOST_KEYS else None

    @property
    def method(self) -> str:
        return self.name.removeprefix("dt_")


def _part(method: str, columns: str, summary: str, most: int) -> ClockPart:
    reads = (f"TemporalExpr.{method.capitalize()}",)
    return ClockPart(f"dt_{method}", reads, summary, on(columns, f"dt.{method}()"), most)


OPERATIONS: tuple[Kind, ...] = (
    _part("hour", "dt dtz t", "Hour, 0 to 23; null outside the years 1 to 9999.", 23),
    _part("minute", "dt dtz t", "Minute, 0 to 59.", 59),
    _part("second", "dt dtz t", "Whole second, 0 to 59.", 59),
    _part("millisecond", "dt dtms", "Milliseconds since the last whole second, 0 to 999.", 999),
    _part(
        "microsecond",
        "dtz t dt",
        "Microseconds since the last whole second, 0 to 999,999.",
        999_999,
    ),
    _part(
        "nanosecond",
        "dtms t dt",
        "Nanoseconds since the last whole second, 0 to 999,999,999.",
        999_999_999,
    ),
)
