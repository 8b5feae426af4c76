"""Numbers sorted into named bins.

Lowered to comparisons: the codes that Polars' own `cut` yields depend on the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, enum_type
from dpframe.core.tree import Options
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.options import flag_option, quoted, texts_option
from dpframe.rows.polars_dtypes import to_polars


class Cut(RowOperation):
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

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        if not args[0].dtype.is_numeric:
            raise UnsupportedOperation(
                f"cut sorts numbers into bins, not {args[0].dtype}",
                remedy="make a number first, for example with .dt.year() or .cast(pl.Int64)",
            )
        labels = _labels(options)
        nullable = args[0].nullable or args[0].nan
        return Domain(enum_type(labels), nullable=nullable, categories=labels)

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        labels, breaks = _labels(options), _breaks(options)
        left_closed = flag_option(options, "left_closed")
        value = as_type(args[0], FLOAT64)
        names = [ns.lit(label, dtype=to_polars(enum_type(labels))) for label in labels]
        below = [
            value < ns.lit(b, dtype=pl.Float64)
            if left_closed
            else value <= ns.lit(b, dtype=pl.Float64)
            for b in breaks
        ]
        missing = value.is_null() | value.is_nan()
        expression: pl.Expr = ns.when(~missing).then(_search(ns, names, below))
        return expression

    def words(self, args: Sequence[str], options: Options) -> str:
        breaks = ", ".join(str(b).removesuffix(".0") for b in _given(options))
        labels = ", ".join(quoted(label) for label in texts_option(options, "labels"))
        closed = ", left_closed=True" if flag_option(options, "left_closed") else ""
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


def _given(options: Options) -> tuple[float, ...]:
    """The breaks as they were written."""
    return cast("tuple[float, ...]", options["breaks"])


def _breaks(options: Options) -> tuple[float, ...]:
    """The breaks, checked."""
    try:
        breaks = tuple(float(b) for b in _given(options))
    except (TypeError, ValueError, OverflowError):
        raise InvalidBounds("the breaks of a cut are not all numbers") from None
    if not all(map(math.isfinite, breaks)):
        raise InvalidBounds(
            "a break of a cut is infinite or NaN",
            remedy="leave it out: the outer bins have no end",
        )
    if not all(a < b for a, b in pairwise(breaks)):
        raise InvalidBounds("the breaks of a cut do not increase", remedy="sort them, each once")
    return breaks


def _labels(options: Options) -> tuple[str, ...]:
    """The labels, checked against the breaks."""
    labels, breaks = texts_option(options, "labels"), _breaks(options)
    if len(labels) != len(breaks) + 1:
        raise InvalidBounds(
            f"{len(breaks)} breaks make {len(breaks) + 1} bins, and there are {len(labels)} labels",
            remedy="give one label for each bin",
        )
    if len(set(labels)) != len(labels):
        raise InvalidBounds("two bins of a cut have the same label")
    return labels


OPERATIONS: tuple[RowOperation, ...] = (Cut(),)
