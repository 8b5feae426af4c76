"""Numbers sorted into named bins.

Lowered to comparisons: the codes that Polars' own `cut` yields depend on the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, enum_type
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.polars_dtypes import to_polars
from dpframe.rows.quoted import quoted


@operation
class Cut(ParametricOperation):
    """Bins (-inf, b0], (b0, b1], ..., (bn, inf); `left_closed` moves each break to the bin above.

    Null and NaN are in no bin: they become null. Values are compared as Float64, as Polars does.
    """

    name = "cut"
    summary = "The bin that a number falls in, as an Enum; null for null and NaN."
    examples = (
        'pl.col("i64").cut([0, 10], labels=["low", "mid", "high"])',
        'pl.col("f64").cut([-1.5, 0, 2], labels=["a", "b", "c", "d"], left_closed=True)',
        'pl.col("u8").cut([100], labels=["small", "large"])',
    )
    breaks: tuple[float, ...]
    labels: tuple[str, ...]
    left_closed: bool

    def check(self) -> None:
        _check_breaks(self.breaks)
        bins = len(self.breaks) + 1
        if len(self.labels) != bins:
            raise InvalidBounds(
                f"{bins - 1} breaks make {bins} bins, and there are {len(self.labels)} labels",
                remedy="give one label for each bin",
            )
        if len(set(self.labels)) != bins:
            raise InvalidBounds("two bins of a cut have the same label")

    def domain(self, args: Sequence[Domain]) -> Domain:
        if not args[0].dtype.is_numeric:
            raise UnsupportedOperation(
                f"cut sorts numbers into bins, not {args[0].dtype}",
                remedy="make a number first, for example with .dt.year() or .cast(pl.Int64)",
            )
        nullable = args[0].nullable or args[0].nan
        return Domain(enum_type(self.labels), nullable=nullable, categories=self.labels)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        value = as_type(args[0], FLOAT64)
        names = [ns.lit(label, dtype=to_polars(enum_type(self.labels))) for label in self.labels]
        ends = [ns.lit(float(b), dtype=pl.Float64) for b in self.breaks]
        below = [value < end if self.left_closed else value <= end for end in ends]
        missing = value.is_null() | value.is_nan()
        expression: pl.Expr = ns.when(~missing).then(_search(ns, names, below))
        return expression

    def words(self, args: Sequence[str]) -> str:
        breaks = ", ".join(str(b).removesuffix(".0") for b in self.breaks)
        labels = ", ".join(quoted(label) for label in self.labels)
        closed = ", left_closed=True" if self.left_closed else ""
        return f"{args[0]}.cut([{breaks}], labels=[{labels}]{closed})"


def _search(ns: Namespace, names: Sequence[pl.Expr], below: Sequence[pl.Expr]) -> pl.Expr:
    """The name of the first bin that the value is below the end of, by bisection."""
    if not below:
        return names[0]
    middle = len(below) // 2
    lower = _search(ns, names[: middle + 1], below[:middle])
    upper = _search(ns, names[middle + 1 :], below[middle + 1 :])
    expression: pl.Expr = ns.when(below[middle]).then(lower).otherwise(upper)
    return expression


def _check_breaks(given: Sequence[float]) -> None:
    try:
        breaks = [float(b) for b in given]
    except (TypeError, ValueError, OverflowError):
        raise InvalidBounds("the breaks of a cut are not all numbers") from None
    if not all(map(math.isfinite, breaks)):
        raise InvalidBounds(
            "a break of a cut is infinite or NaN",
            remedy="leave it out: the outer bins have no end",
        )
    if not all(a < b for a, b in pairwise(breaks)):
        raise InvalidBounds("the breaks of a cut do not increase", remedy="sort them, each once")


OPERATIONS: tuple[Kind, ...] = (Cut,)
