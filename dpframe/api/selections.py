"""The functions that choose: `dp.quantile`, `dp.median`, `dp.argmax`. Only what wins comes out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import polars as pl

from dpframe.aggregates.argmax import Argmax
from dpframe.aggregates.quantile import Median, Quantile
from dpframe.api.arguments import IntoBounds, Per, as_per, listed
from dpframe.api.expressions import DPExpr, IntoColumn, aggregate_of
from dpframe.api.make import make
from dpframe.core.exact import Number, as_given
from dpframe.errors import InvalidBounds
from dpframe.sealed import sealed

Choice: TypeAlias = Literal[
    "auto", "exponential", "permute_and_flip", "report_noisy_max", "noisy_table"
]


@sealed
def quantile(
    column: IntoColumn,
    q: Number | Sequence[Number],
    bounds: IntoBounds | None = None,
    candidates: Iterable[Any] | None = None,
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
    bounds: IntoBounds | None, candidates: Iterable[Any] | None, written: str
) -> tuple[Any, ...] | None:
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
    candidates: Iterable[Any] | None = None,
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
    candidates: Iterable[Any] | pl.DataFrame | None = None,
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
            f"k must be a positive integer, not {as_given(k)}",
            where="dp_argmax(k=...)",
            remedy="write k=1 for the best candidate",
        )
    asked = Argmax(_candidates(candidates), k, bounds)  # type: ignore[arg-type]  # checked later
    wanted = aggregate_of(score, "a score") if isinstance(score, DPExpr) else score
    return make(asked, column, weight=weight, mechanism=mechanism, score=wanted)


def _candidates(
    given: Iterable[Any] | pl.DataFrame | None,
) -> tuple[Any, ...] | pl.DataFrame | None:
    if isinstance(given, pl.DataFrame):
        return given.clone()
    return None if given is None else listed(given, "dp_argmax")
