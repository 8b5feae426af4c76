"""Intervals that hold the exact results with a given confidence: post-processing, so they are free.

The noise of each part is at most a with some confidence, by the exact quantile of its law, so the
part's exact integer is within a of the noisy one, and the exact result lies between what the ends
make of it. Where a result has several parts each gets an equal share of what may go wrong (union
bound). The ends of arithmetic follow by interval arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

import polars as pl

from dpframe.aggregates.aggregate import Noisy
from dpframe.aggregates.part import Part
from dpframe.aggregates.query import Output
from dpframe.aggregates.registry import BY_KIND
from dpframe.aggregates.request import Request, Scope
from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64
from dpframe.core.exact import float_down, float_up
from dpframe.core.interval import Interval
from dpframe.core.tree import Tree
from dpframe.mechanisms import AdditiveLaw, Law
from dpframe.rows.fold import domain

Ends: TypeAlias = "tuple[pl.Series, pl.Series]"
Laws: TypeAlias = "Mapping[tuple[Part, str], Law]"


def interval_of(
    output: Output,
    scope: Scope,
    noisy: Mapping[tuple[Part, str], Noisy],
    laws: Laws,
    confidence: Fraction,
) -> Ends | None:
    """The lower and upper ends of one output, a value per row; None for what is no number.

    Ends of arithmetic are null where nothing is known.
    """
    parts = {
        (use.part, request.mechanism)
        for request in output.requests.values()
        for use in BY_KIND[request.kind].uses(request, scope)
    }
    if not all(isinstance(laws.get(key), AdditiveLaw) for key in parts):
        return None  # the error of a selection is one of its score
    level = 1 - (1 - confidence) / len(parts)
    found = {p: _request(r, scope, noisy, laws, level) for p, r in output.requests.items()}
    if output.post is None:
        return next(iter(found.values()))
    ends = {placeholder: pair for placeholder, pair in found.items() if pair is not None}
    if output.post_tree is None or len(ends) < len(found):
        return None
    return _arithmetic(output.name, output.post_tree, ends)


def _request(
    request: Request,
    scope: Scope,
    noisy: Mapping[tuple[Part, str], Noisy],
    laws: Laws,
    level: Fraction,
) -> Ends | None:
    aggregate = BY_KIND[request.kind]
    values, reach = [], []
    for use in aggregate.uses(request, scope):
        law = laws[(use.part, request.mechanism)]
        assert isinstance(law, AdditiveLaw)
        values.append(noisy[(use.part, request.mechanism)])
        reach.append(law.quantile(level))
    return aggregate.interval(request, scope, values, reach)


def _arithmetic(name: str, tree: Tree, ends: Mapping[str, Ends]) -> Ends | None:
    """The ends of a formula, row by row, by the interval arithmetic of expressions."""
    if not all(end.dtype.is_numeric() for pair in ends.values() for end in pair):
        return None
    size = len(next(iter(ends.values()))[0])
    columns = {p: (low.to_list(), high.to_list()) for p, (low, high) in ends.items()}
    lower: list[float | None] = []
    upper: list[float | None] = []
    for row in range(size):
        known = {
            p: Domain(FLOAT64, nullable=False, interval=_between(low[row], high[row]))
            for p, (low, high) in columns.items()
        }
        result = domain(tree, known).interval
        lower.append(None if result.lo is None else float_down(result.lo))
        upper.append(None if result.hi is None else float_up(result.hi))
    return pl.Series(name, lower, dtype=pl.Float64), pl.Series(name, upper, dtype=pl.Float64)


def _between(low: float | int | None, high: float | int | None) -> Interval:
    return Interval(
        None if low is None else Fraction(low), None if high is None else Fraction(high)
    )
