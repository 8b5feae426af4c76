"""Expressions of an engine behind Narwhals, with what is surely known of them.

Narwhals gives engines one language, not one meaning: sums that overflow raise on one and wrap on
another, casts round or cut off. So each expression carries its type and the interval in which its
numbers surely lie. Intervals come from types, constants and clamping alone, never from
declarations, and only decide which of two forms with the same meaning is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import narwhals.stable.v2 as nw

from dpframe.core.domain import Scalar
from dpframe.core.dtypes import DType
from dpframe.core.interval import EVERYTHING, Interval, interval
from dpframe.rows.operands import INT64_LIMITS

INT64_RANGE = interval(*INT64_LIMITS)
ROWS = interval(0, 2**62)
"""Numbers of rows."""


@dataclass(frozen=True, slots=True, eq=False)
class EngineExpr:
    """An expression of the engine.

    Parameters
    ----------
    expr
        The Narwhals expression.
    dtype
        Its type.
    interval
        Where its numbers surely lie, null and NaN aside.
    stage
        After how many stages of columns it can be computed.
    column
        The name underneath of the column that it is, if it is one.
    constant
        The value of a constant, in a tuple.
    untyped
        Whether it is a Python value that takes the type of what it meets.
    is_whole
        Whether it is a float whose numbers are surely whole.
    """

    expr: nw.Expr
    dtype: DType
    interval: Interval = EVERYTHING
    stage: int = 0
    column: str | None = None
    constant: tuple[Scalar, ...] = ()
    untyped: bool = False
    is_whole: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is a column or constant, which may be used any number of times."""
        return self.column is not None or bool(self.constant)

    @property
    def is_null(self) -> bool:
        """Whether it is the constant null."""
        return bool(self.constant) and self.constant[0] is None

    def having(self, expr: nw.Expr, dtype: DType, known: Interval = EVERYTHING) -> EngineExpr:
        """What was computed from this alone."""
        return EngineExpr(expr, dtype, known, self.stage)


def combined(
    expr: nw.Expr, dtype: DType, *operands: EngineExpr, known: Interval = EVERYTHING
) -> EngineExpr:
    """What was computed from some operands."""
    return EngineExpr(expr, dtype, known, max((o.stage for o in operands), default=0))


def hull(*parts: EngineExpr) -> Interval:
    """The interval in which the values of all lie; null has none."""
    found = [part.interval for part in parts if not part.is_null]
    return reduce(Interval.hull, found) if found else EVERYTHING
