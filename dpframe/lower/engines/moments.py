"""Dates and naive times from their physical numbers."""

from __future__ import annotations

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import DATE, DType
from dpframe.core.interval import interval
from dpframe.lower.engines.dialect import DURATION
from dpframe.lower.engines.engine_expr import EngineExpr
from dpframe.lower.engines.engine_scope import EngineScope

__all__ = ["DURATION", "MICROS_PER_DAY", "moment_of", "reach"]

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
