"""The typed module functions `dp.count()`, `dp.sum("x", (0, 1))`, ... and what all entrances share.

A method such as `pl.col("x").dp_sum((0, 1))` and a shortcut such as `frame.dp_sum("x", (0, 1))` are
these functions with the column given another way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import polars as pl

from dpframe.aggregates.bounds_search import Bounds
from dpframe.aggregates.count import Count, DistinctValues
from dpframe.aggregates.mean import Mean, StandardDeviation, Variance
from dpframe.aggregates.ratio import Ratio
from dpframe.aggregates.sum import Sum
from dpframe.api.arguments import IntoBounds, Noise, Per, as_per, given_bounds
from dpframe.api.expressions import DPExpr, IntoColumn
from dpframe.api.make import make
from dpframe.api.registration import AGGREGATES
from dpframe.api.selections import argmax, median, quantile
from dpframe.api.tables import cdf, histogram
from dpframe.core.exact import Number, as_given
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.sealed import sealed

__all__ = [
    "argmax",
    "bounds",
    "cdf",
    "count",
    "histogram",
    "mean",
    "median",
    "n_unique",
    "quantile",
    "ratio",
    "std",
    "sum",
    "var",
]


@sealed
def count(
    column: IntoColumn | None = None,
    *,
    per: Per = "row",
    bounds: IntoBounds | None = None,
    nonnegative: bool = False,
    weight: Number = 1.0,
    mechanism: Noise = "auto",
) -> DPExpr:
    """The number of rows, or of values of a column that are neither null nor NaN.

    Parameters
    ----------
    column
        Column name or expression; None counts rows, and the result is named ``len``.
    per, bounds
        With ``per="unit"`` and ``bounds=(0, n)`` an individual counts at most n times in a group.
    nonnegative
        Whether negative noisy counts become 0 (which biases small counts upwards).
    weight
        Share of the query's cost relative to its other outputs.
    mechanism
        ``"auto"`` takes the one with the least error.

    Raises
    ------
    UnboundedSensitivity
        When an individual may have any number of rows, and there is no limit.
    InvalidBounds
        When `bounds` are given for rows, or are not 0 and a positive integer.
    InvalidBudget
        When the weight is not positive.
    UnsupportedOperation
        For a mechanism that does not release counts. These come when the query is built.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.count().alias("n")
    <dp expression: dp.count()>
    """
    asked = Count(nonnegative, as_per(per, "count"), given_bounds(bounds))
    return make(asked, column, weight=weight, mechanism=mechanism)


@sealed
def sum(
    column: IntoColumn,
    bounds: IntoBounds | None = None,
    *,
    per: Per = "row",
    nonnegative: bool = False,
    weight: Number = 1.0,
    mechanism: Noise = "auto",
) -> DPExpr:
    """The sum of a column, each row clamped to `bounds`; nulls and NaN add nothing.

    Parameters
    ----------
    column
        Column name or expression of numbers, Booleans or durations.
    bounds
        The pair (lo, hi) in the column's units; may be left out where it can be inferred.
    per
        ``"row"`` clamps each row. ``"unit"`` clamps an individual's total in a group; with one row
        per individual this is the same.
    nonnegative, weight, mechanism
        As for `count`.

    Raises
    ------
    UnboundedSensitivity
        When no bounds are given or known, or rows of an individual have no limit.
    InvalidBounds
        When bounds are reversed, infinite or not numbers.
    UnsupportedOperation
        When the column has no sum.
    """
    asked = Sum(given_bounds(bounds), as_per(per, "sum"), nonnegative)
    return make(asked, column, weight=weight, mechanism=mechanism)


@sealed
def mean(
    column: IntoColumn,
    bounds: IntoBounds | None = None,
    *,
    per: Per = "row",
    shrink: bool = False,
    weight: Number = 1.0,
    mechanism: Noise = "auto",
) -> DPExpr:
    """The mean of values clamped to `bounds`; nulls and NaN are skipped.

    It is a noisy sum, centred in the bounds, divided by a noisy count, and clamped to the bounds.
    Null where the noisy count is below 1. The mean of numbers is a float, that of dates and times
    has their type.

    Parameters
    ----------
    column
        Column name or expression of numbers, Booleans, dates or times.
    bounds
        The pair (lo, hi); may be left out where it can be inferred.
    per
        ``"row"``, or ``"unit"`` for the mean, over individuals, of each one's total in the group,
        clamped to `bounds`.
    shrink
        Whether to move the means of groups towards their common mean, more so the larger their
        noise is relative to their spread. With many small groups the total error is several times
        smaller, at the same privacy. But the result is biased: groups look more alike than they
        are. A group whose noisy count is below 1 gets the common mean, not null. `Plan.accuracy`
        then has no bound on the error; intervals are those of means without shrinkage.
    weight, mechanism
        As for `count`.

    Raises
    ------
    UnboundedSensitivity, UnsupportedOperation
        As for `sum`.
    InvalidBounds
        When bounds are reversed, equal, infinite or not numbers.
    """
    asked = Mean(given_bounds(bounds), as_per(per, "mean"), shrink)
    return make(asked, column, weight=weight, mechanism=mechanism)


@sealed
def var(
    column: IntoColumn,
    bounds: IntoBounds | None = None,
    *,
    ddof: int = 1,
    per: Per = "row",
    weight: Number = 1.0,
    mechanism: Noise = "auto",
) -> DPExpr:
    """The variance of values clamped to `bounds`, in the square of their units.

    It is computed from a noisy count, sum and sum of squares, and clamped to what the bounds allow.
    Null where the noisy count is below 1 or not above `ddof`.

    Parameters
    ----------
    column
        Column name or expression of numbers.
    bounds
        The pair (lo, hi); may be left out where it can be inferred.
    ddof
        As in Polars: the sum of squares is divided by the count less `ddof`.
    per
        ``"row"``, or ``"unit"`` for the variance of the totals of individuals.
    weight, mechanism
        As for `count`.

    Raises
    ------
    UnboundedSensitivity, UnsupportedOperation, InvalidBounds
        As for `mean`; `InvalidBounds` also for a `ddof` that is not an integer of at least 0.
    """
    asked = Variance(given_bounds(bounds), _ddof(ddof), as_per(per, "var"))
    return make(asked, column, weight=weight, mechanism=mechanism)


@sealed
def std(
    column: IntoColumn,
    bounds: IntoBounds | None = None,
    *,
    ddof: int = 1,
    per: Per = "row",
    weight: Number = 1.0,
    mechanism: Noise = "auto",
) -> DPExpr:
    """The standard deviation of values clamped to `bounds`, in their units: the root of `var`.

    Parameters
    ----------
    column, bounds, ddof, per, weight, mechanism
        As for `var`.

    Raises
    ------
    UnboundedSensitivity, UnsupportedOperation, InvalidBounds
        As for `var`.
    """
    asked = StandardDeviation(given_bounds(bounds), _ddof(ddof), as_per(per, "std"))
    return make(asked, column, weight=weight, mechanism=mechanism)


@sealed
def ratio(
    column: IntoColumn,
    denominator: IntoColumn,
    bounds: IntoBounds | None = None,
    *,
    denominator_bounds: IntoBounds | None = None,
    per: Per = "row",
    weight: Number = 1.0,
    mechanism: Noise = "auto",
) -> DPExpr:
    """The total of one column divided by the total of another, where both are clamped jointly.

    If one of a row's two numbers exceeds its bounds, both are multiplied by the largest factor that
    brings both within bounds. The row keeps its ratio and counts less. Clamping two sums separately
    would bias their ratio if one of them is clamped more. The totals are drawn jointly, and the
    interval is that of Fieller (1954). Null where the denominator is within its own noise.

    Parameters
    ----------
    column, denominator
        Column names or expressions of numbers or Booleans; nulls and NaN count as 0.
    bounds, denominator_bounds
        The bounds (lo, hi) of each column; both pairs must contain 0. May be left out if dpframe
        can infer them. If a bound is 0, a value beyond it adds nothing, and neither does the other
        number of its row.
    per
        ``"row"``, or ``"unit"`` for an individual's pair of totals in the group, as for `sum`.
    weight, mechanism
        As for `count`.

    Raises
    ------
    UnboundedSensitivity, UnsupportedOperation
        As for `sum`, and for dates, times and durations.
    InvalidBounds
        When bounds do not hold 0, are reversed, infinite or not numbers.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.ratio("paid by card", "paid", (0, 50), denominator_bounds=(0, 50), per="unit")
    <dp expression: col("paid by card").dp_ratio(col("paid"), (0, 50), denominator_bounds=(0, 50), \
per='unit')>
    """
    below = _below(denominator)
    lower = given_bounds(denominator_bounds)
    asked = Ratio(given_bounds(bounds), lower, as_per(per, "ratio"))
    return make(asked, column, weight=weight, mechanism=mechanism, denominator=below)


def _below(denominator: IntoColumn) -> pl.Expr:
    """What stands below a line, as a row-wise expression."""
    if isinstance(denominator, str):
        return pl.col(denominator)
    if isinstance(denominator, pl.Expr) and not isinstance(denominator, DPExpr):
        return denominator
    raise UnsupportedOperation(
        "the denominator of a ratio is a column or a row-wise expression, not "
        f"{as_given(denominator)}",
        where="dp_ratio(denominator=...)",
        remedy='write pl.col("a").dp_ratio("b", (0, high), denominator_bounds=(0, high))',
    )


@sealed
def n_unique(
    column: IntoColumn,
    *,
    nonnegative: bool = False,
    weight: Number = 1.0,
    mechanism: Noise = "auto",
) -> DPExpr:
    """The number of distinct values of a column; nulls and NaN are not counted.

    For the identifier it is the number of individuals, which needs no limit if there are no
    groups.

    Parameters
    ----------
    column
        Column name or expression.
    nonnegative, weight, mechanism
        As for `count`.

    Raises
    ------
    UnboundedSensitivity
        When rows or groups of an individual have no limit.
    UnsupportedOperation
        For nested columns.
    """
    return make(DistinctValues(nonnegative), column, weight=weight, mechanism=mechanism)


@sealed
def bounds(column: IntoColumn, *, weight: Number = 1.0, mechanism: Noise = "auto") -> DPExpr:
    """Powers of two between which most values lie, as a list [lower, upper]; null if the noise
    hides the values.

    For columns with an unknown range: spend a little on bounds, then use them as public bounds.

    Parameters
    ----------
    column
        Column name or expression of numbers.
    weight, mechanism
        As for `count`.

    Raises
    ------
    UnboundedSensitivity
        When rows of an individual have no limit.
    UnsupportedOperation
        When the column holds no numbers.
    """
    return make(Bounds(), column, weight=weight, mechanism=mechanism)


def _ddof(ddof: int) -> int:
    if not isinstance(ddof, int) or isinstance(ddof, bool) or ddof < 0:
        raise InvalidBounds(
            f"ddof must be an integer from 0, not {as_given(ddof)}",
            where="ddof",
            remedy="write ddof=1",
        )
    return ddof


BY_NAME: Mapping[str, Callable[..., pl.Expr]] = MappingProxyType(
    {name: globals()[name] for name in AGGREGATES}
)
"""Every function that makes a dp expression: expressions have it as method ``dp_...``, jobs in TOML
as aggregate."""
