"""The functions of tables of counts: `dp.histogram` and `dp.cdf`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from dpframe.aggregates.cdf import DistributionFunction
from dpframe.aggregates.histogram import Histogram
from dpframe.api.arguments import Counting, IntoBounds, Noise, Per, as_per, given_bounds, listed
from dpframe.api.expressions import DPExpr, IntoColumn
from dpframe.api.make import make, require_rows_of
from dpframe.core.exact import Number
from dpframe.sealed import sealed

__all__ = ["cdf", "histogram"]


@sealed
def histogram(
    column: IntoColumn,
    bins: int | Iterable[Any] | None = None,
    *,
    bounds: IntoBounds | None = None,
    other: bool = False,
    nonnegative: bool = False,
    per: Per = "row",
    weight: Number = 1.0,
    mechanism: Counting = "auto",
) -> DPExpr:
    """Rows per category or bin.

    The result has a row for each. The column's name holds the category, or for bins a text such as
    ``[0, 10)``, followed by `lower` and `upper`. The last column is `count`. Bins include their
    left edge and not their right one, except for the last bin, which includes both.

    Parameters
    ----------
    column
        Column name or expression.
    bins
        Edges, a number of equal bins within the bounds, or categories; None takes the categories
        of an Enum, Boolean or declared column.
    bounds
        The bounds (lo, hi) for a number of bins; may be left out if dpframe can infer them.
    other
        Whether one last row counts everything else: other values, null and NaN.
    per
        ``"row"``, or ``"unit"`` to count individuals by bins of their totals in the group. Each
        individual is in one bin, so rows need no limit.
    nonnegative, weight
        As for `count`.
    mechanism
        ``"auto"``, or ``"randomized_response"``, which is the local model (Warner 1965), for
        comparison, under change-one adjacency.

    Raises
    ------
    MissingKeys
        When categories would have to be read from private data, and there is no delta to find them.
    UnboundedSensitivity
        When bins have no bounds, or rows of an individual have no limit.
    InvalidBounds
        When edges are not rising, or the number of bins is not an integer.
    """
    whole = bins is None or isinstance(bins, (int, str))
    some = bins if whole else listed(bins, "dp_histogram")  # type: ignore[arg-type]
    asked = Histogram(some, given_bounds(bounds), other, nonnegative, as_per(per, "histogram"))
    return make(asked, column, weight=weight, mechanism=mechanism)


@sealed
def cdf(
    column: IntoColumn,
    bins: int | Iterable[Any] | None = None,
    *,
    bounds: IntoBounds | None = None,
    nonnegative: bool = False,
    per: Literal["row"] = "row",
    weight: Number = 1.0,
    mechanism: Noise = "auto",
) -> DPExpr:
    """The distribution function of a column: how many rows have a value up to each edge.

    The result has a row for each edge, with three columns. The first has the column's name and
    holds the edge. `count` is the number of rows up to and including the edge. `share` is the count
    divided by the number of all rows with a value, from the same release. Null and NaN do not count
    as values, infinities do. Rows above the last listed edge count only in the divisor of `share`.
    With a number of bins, values are clamped to the bounds, so the last row counts all of them.

    dpframe chooses the best numbers to measure and computes all counts from them: with ten to a
    hundred times less noise than separate counts up to each edge.

    Parameters
    ----------
    column
        Column name or expression of numbers, dates or times.
    bins
        Rising edges, or a number of equal bins within the bounds, whose upper edges are used.
    bounds
        The bounds (lo, hi) for a number of bins; may be left out if dpframe can infer them.
    nonnegative
        Whether counts are made to rise from 0: the nearest rising numbers are released.
    per
        Only ``"row"``.
    weight, mechanism
        As for `count`.

    Raises
    ------
    UnboundedSensitivity
        When bins have no bounds, or rows of an individual have no limit.
    InvalidBounds
        When edges are not rising, or the number of bins makes no sense.
    UnsupportedOperation
        When the column holds no numbers.
    """
    require_rows_of(per, "cdf")
    whole = bins is None or isinstance(bins, (int, str))
    some = bins if whole else listed(bins, "dp_cdf")  # type: ignore[arg-type]
    asked = DistributionFunction(some, given_bounds(bounds), nonnegative)
    return make(asked, column, weight=weight, mechanism=mechanism)
