"""The typed functions `dp.count()`, `dp.sum("x", (0, 1))`, ..., which all other entrances call.

A method such as `pl.col("x").dp_sum((0, 1))` and a shortcut such as `frame.dp_sum("x", (0, 1))` are
these functions with the column given another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

import polars as pl

from dpframe.aggregates.argmax import Argmax
from dpframe.aggregates.bounds_search import Bounds
from dpframe.aggregates.cdf import DistributionFunction
from dpframe.aggregates.count import Count, DistinctValues
from dpframe.aggregates.histogram import Histogram
from dpframe.aggregates.mean import Mean, StandardDeviation, Variance
from dpframe.aggregates.quantile import Median, Quantile
from dpframe.aggregates.ratio import Ratio
from dpframe.aggregates.sum import Sum
from dpframe.api.expressions import (
    Counting,
    DPExpr,
    IntoBins,
    IntoBounds,
    IntoColumn,
    Noise,
    Per,
    aggregate_of,
    as_per,
    given_bounds,
    listed,
    make,
    require_rows_of,
)
from dpframe.api.registration import AGGREGATES
from dpframe.core.exact import Number, show_input
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.parse.groups import SetsAsked
from dpframe.sealed import sealed


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
        f"{show_input(denominator)}",
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
    if not isinstance(ddof, int) or isinstance(ddof, bool) or not 0 <= ddof < 2**31:
        raise InvalidBounds(
            f"ddof must be an integer from 0 to 2**31 - 1, not {show_input(ddof)}",
            where="ddof",
            remedy="write ddof=1",
        )
    return ddof


# -- Choices --------------------------------------------------------------------------------------


Choice: TypeAlias = Literal[
    "auto", "exponential", "permute_and_flip", "report_noisy_max", "noisy_table"
]


@sealed
def quantile(
    column: IntoColumn,
    q: Number | Sequence[Number],
    bounds: IntoBounds | None = None,
    candidates: Iterable[object] | None = None,
    *,
    per: Per = "row",
    weight: Number = 1.0,
    mechanism: Choice = "auto",
) -> DPExpr:
    """A quantile, or several as a list, chosen privately: only the value is released, without its
    score.

    A candidate c has the score -max(q n - #{x <= c}, #{x < c} - q n, 0) among n values: how far its
    ranks are from q n, which one row moves by at most max(q, 1 - q). The exponential mechanism
    (McSherry & Talwar 2007) chooses over bounds, where gaps between values count by their length.
    Permute-and-flip (McKenna & Sheldon 2020) chooses among candidates, except in zCDP and where a
    person is in many groups. Nulls and NaN are skipped. Several quantiles of one column, as a list
    or as several outputs of one query, are answered jointly if that has less error, and never
    cross.

    Parameters
    ----------
    column
        Column name or expression of numbers, dates or times.
    q
        Between 0 and 1 with at most six decimals; a list gives a list.
    bounds
        The interval (lo, hi) to choose from; values outside count as its ends. May be left out if
        dpframe can infer it.
    candidates
        Public values to choose from instead.
    per
        ``"row"``, or ``"unit"`` for the quantile over individuals of their totals in the group. A
        total is one value for each individual, so rows need no limit.
    weight
        As for `count`.
    mechanism
        ``"auto"``, or one of the two by name, or among candidates ``"report_noisy_max"`` or
        ``"noisy_table"``; with a name each quantile is chosen separately and pays its share.

    Raises
    ------
    UnboundedSensitivity
        When there are neither bounds nor candidates, or rows of an individual have no limit.
    InvalidBounds
        When both are given, or a q, bound or candidate makes no sense.
    UnsupportedOperation
        When the values have no order.
    """
    wanted = tuple(q) if isinstance(q, (list, tuple, pl.Series)) else q
    values = _values(bounds, candidates, "quantile")
    asked = Quantile(wanted, bounds, values, as_per(per, "quantile"))  # type: ignore[arg-type]  # checked where it is used
    return make(asked, column, weight=weight, mechanism=mechanism)


def _values(
    bounds: IntoBounds | None, candidates: Iterable[object] | None, written: str
) -> tuple[object, ...] | None:
    """The candidates of a quantile, where there are no bounds."""
    if bounds is not None and candidates is not None:
        raise InvalidBounds(
            "bounds and candidates are both given",
            where=f"dp_{written}(...)",
            remedy=(
                "leave bounds= out, to choose among the candidates",
                "leave candidates= out, to choose in the whole interval",
            ),
        )
    return None if candidates is None else listed(candidates, f"dp_{written}")


@sealed
def median(
    column: IntoColumn,
    bounds: IntoBounds | None = None,
    candidates: Iterable[object] | None = None,
    *,
    per: Per = "row",
    weight: Number = 1.0,
    mechanism: Choice = "auto",
) -> DPExpr:
    """The 0.5-quantile: see `quantile`, whose parameters and errors it has."""
    values = _values(bounds, candidates, "median")
    asked = Median(0.5, bounds, values, as_per(per, "median"))  # type: ignore[arg-type]  # checked where it is used
    return make(asked, column, weight=weight, mechanism=mechanism)


@sealed
def argmax(
    column: IntoColumn | None = None,
    score: pl.Expr | None = None,
    candidates: Iterable[object] | pl.DataFrame | None = None,
    k: int = 1,
    *,
    bounds: IntoBounds | None = None,
    weight: Number = 1.0,
    mechanism: Choice = "auto",
) -> DPExpr:
    """The candidate with the highest score, chosen privately. Its score is not released.

    The mechanism is permute-and-flip (McKenna & Sheldon 2020), or the exponential mechanism
    (McSherry & Talwar 2007), if that has the smaller error: in zCDP, and for many winners or
    groups with a delta. Several winners are read from one table of noisy scores if that has a
    smaller error than choosing one after another, which splits the cost.

    Parameters
    ----------
    column
        The column whose values are the candidates.
    score
        A dp aggregate, or a row-wise expression that is summed; None counts rows.
    candidates
        Values, or a public frame whose columns `score` uses; None takes the known categories.
    k
        How many winners; more than one come in order of selection, with a column `rank` from 1.
    bounds
        The bounds (lo, hi) of what one row adds to a row-wise score; may be left out if dpframe can
        infer them.
    weight, mechanism
        As for `quantile`.

    Raises
    ------
    MissingKeys
        When candidates would have to be read from private data.
    UnboundedSensitivity
        When one individual could move a score by any amount.
    InvalidBounds
        When `k` or the candidates make no sense.
    """
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise InvalidBounds(
            f"k must be a positive integer, not {show_input(k)}",
            where="dp_argmax(k=...)",
            remedy="write k=1 for the best candidate",
        )
    asked = Argmax(_candidates(candidates), k, bounds)  # type: ignore[arg-type]  # checked later
    wanted = aggregate_of(score, "a score") if isinstance(score, DPExpr) else score
    return make(asked, column, weight=weight, mechanism=mechanism, score=wanted)


def _candidates(
    given: Iterable[object] | pl.DataFrame | None,
) -> tuple[object, ...] | pl.DataFrame | None:
    if isinstance(given, pl.DataFrame):
        return given.clone()
    return None if given is None else listed(given, "dp_argmax")


# -- Tables of counts -----------------------------------------------------------------------------


@sealed
def histogram(
    column: IntoColumn,
    bins: IntoBins = None,
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
    bins: IntoBins = None,
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


# -- Grouping sets --------------------------------------------------------------------------------


@sealed
def rollup(*columns: object) -> SetsAsked:
    """Groups by all of the columns, by all but the last, ..., by the first, and all rows together;
    for `PrivateFrame.group_by`.

    One spend pays for all tables. dpframe chooses the best numbers to measure and computes every
    table from them by least squares, so that all tables add up.

    Parameters
    ----------
    columns
        Names or row-wise expressions, the coarsest first.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> rows = pl.DataFrame({"country": ["A", "B"], "sex": ["f", "m"]})
    >>> people = dp.Session(epsilon=1).protect(rows, unit=dp.Rows())
    >>> keys = {"country": ["A", "B"], "sex": ["f", "m"]}
    >>> query = people.group_by(dp.rollup("country", "sex"), keys=keys).dp_count()
    >>> query.collect(epsilon=1)["grouping"].to_list()  # 1 is without sex, 3 without both
    [0, 0, 0, 0, 1, 1, 3]
    """
    return SetsAsked("rollup", _columns(columns, "rollup"))


@sealed
def cube(*columns: object) -> SetsAsked:
    """Groups by every subset of the columns, all of them first; otherwise as `rollup`.

    Parameters
    ----------
    columns
        Names or row-wise expressions.
    """
    return SetsAsked("cube", _columns(columns, "cube"))


@sealed
def grouping_sets(sets: Iterable[object]) -> SetsAsked:
    """Groups by each of some sets of columns; otherwise as `rollup`.

    Parameters
    ----------
    sets
        A tuple or list of columns each, or one column; `()` is all rows together.

    Raises
    ------
    UnsupportedOperation
        When there is no set, or no column in any.
    """
    if isinstance(sets, (str, pl.Expr)) or not isinstance(sets, Iterable):
        raise UnsupportedOperation(
            "grouping sets are a list of tuples of columns",
            where=f"grouping_sets({show_input(sets)})",
            remedy='write for example dp.grouping_sets([("country", "sex"), ("country",), ()])',
        )
    found = [list(s) if isinstance(s, (list, tuple)) else [s] for s in sets]
    columns: dict[str, object] = {}
    made = []
    for one in found:
        names = [_name(column) for column in one]
        columns |= {n: c for n, c in zip(names, one, strict=True) if n not in columns}
        made.append(names)
    places = {name: place for place, name in enumerate(columns)}
    if not columns:
        raise _no_column("grouping_sets")
    numbers = tuple(tuple(dict.fromkeys(places[name] for name in names)) for names in made)
    return SetsAsked("grouping_sets", tuple(columns.values()), numbers)


def _columns(columns: tuple[object, ...], form: str) -> tuple[object, ...]:
    if len(columns) == 1 and isinstance(columns[0], (list, tuple)):
        columns = tuple(columns[0])
    if not columns:
        raise _no_column(form)
    return columns


def _no_column(form: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{form} needs at least one column",
        where=f"{form}(...)",
        remedy=("name a column", "aggregate the whole frame: frame.agg(...)"),
    )


def _name(column: object) -> str:
    """The names of the columns of sets, taken from expressions where they have one."""
    if isinstance(column, str):
        return column
    if isinstance(column, pl.Expr):
        found = column.meta.output_name(raise_if_undetermined=False)
        if found is not None:
            return found
    raise UnsupportedOperation(
        "a column of a grouping set is a name or an expression with one",
        where="grouping_sets([...])",
        remedy=("name the column", "give the expression a name with .alias(...)"),
    )


BY_NAME: Mapping[str, Callable[..., pl.Expr]] = MappingProxyType(
    {name: globals()[name] for name in AGGREGATES}
)
"""Every function that makes a dp expression: expressions have it as method ``dp_...``, jobs in TOML
as aggregate."""
