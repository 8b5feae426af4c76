"""``report_dropped=True``: which share of the rows limits dropped, or bounds clamped values of.

Two more counts are measured in one plan with the query: the rows that limits keep and bounds do
not change, and all rows before limits. They are separate measurements with their own noise and
cost. Their sensitivities follow from the limits of their frames: the count of rows before limits
uses a limit of ten times as many rows. The share follows from both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import polars as pl

from dpframe import pipeline
from dpframe.aggregates.bound import Clamp, is_told
from dpframe.aggregates.count import Count
from dpframe.aggregates.group_keys import require_numbers
from dpframe.aggregates.query import Query
from dpframe.api.expressions import output_of
from dpframe.api.functions import count
from dpframe.api.limit_ways import unlimited_relation
from dpframe.api.make import make
from dpframe.core.domain import Columns
from dpframe.core.dtypes import FLOAT64, INT64
from dpframe.core import tree
from dpframe.core.tree import Named, Tree
from dpframe.core.units import Identifier
from dpframe.errors import UnsupportedOperation
from dpframe.frames.contributions import spread_of
from dpframe.frames.grouping_sets import SetGroups
from dpframe.frames.groups import Groups
from dpframe.frames.limit_rows import LimitRows
from dpframe.infer import Queries
from dpframe.rows.comparison import IsBetween
from dpframe.rows.fold import domain
from dpframe.rows.logic import And, Not, When
from dpframe.rows.nulls import IsNotNan

__all__ = ["DROPPED", "with_dropped", "with_share"]

DROPPED: Final = "dropped"
_SHARES: Final = (Fraction(18), Fraction(1), Fraction(1))
"""The weights of the query and of the two counts, by which they share the spend."""
_TIMES: Final = 10
"""Rows before limits are counted under a limit of this many times the query's limit."""
_UNLIMITED: Final = 100
"""The limit for that count where rows of an individual are not limited."""


def with_dropped(asked: Query) -> Queries:
    """The query, and the two counts that give the share of dropped rows.

    Raises
    ------
    UnsupportedOperation
        When a column of the result has the share's name.
    """
    require_numbers(asked.aggregates, "report_dropped=True", "nothing drops out of one")
    groups = asked.groups
    names = [o.name for o in asked.outputs] + ([] if groups is None else [*groups.names])
    if DROPPED in names:
        raise UnsupportedOperation(
            f"the result has a column {DROPPED!r} already",
            where="report_dropped=True",
            remedy="give the output another name, with .alias(...)",
        )
    if groups is not None and not _is_listed(asked, groups):
        groups = None
    kept, before = asked.relation, unlimited_relation(asked.relation)
    if isinstance(kept.facts.unit, Identifier):
        spread = spread_of(kept.facts, asked.groups)
        most = _TIMES * spread.tight[0] if spread.is_bounded else _UNLIMITED
        if not spread.is_bounded or (groups is None and spread.rows is None):
            kept = kept.then(LimitRows(most))  # where groups alone have limits
        before = before.then(LimitRows(most))
    untouched = _untouched([c for a in asked.aggregates for c in a.clamps], kept.facts.columns)
    left = count() if untouched is None else make(Count(), Named("left", untouched))
    is_found = asked.finds_limit and kept is asked.relation  # they share what is drawn
    as_they_are = pipeline.ask(kept, groups, [output_of(left, "rows as they are")])
    return Queries(
        (
            replace(asked, tells_dropped=True),
            replace(as_they_are, tells_dropped=True, finds_limit=is_found),
            pipeline.ask(before, groups, [output_of(count(), "rows before limits")]),
        ),
        _SHARES,
    )


def _is_listed(asked: Query, groups: Groups) -> bool:
    """Whether a result has a row for each of some listed groups."""
    return not (groups.discovered or isinstance(groups, SetGroups) or asked.chooses_groups)


def _untouched(clamps: Iterable[Clamp], columns: Columns) -> Tree | None:
    """1 for a row whose values are all within bounds, null for others; None where nothing is
    clamped."""
    outside: list[Tree] = []
    for clamp in dict.fromkeys(clamps):
        found = domain(clamp.tree, columns)
        if not is_told(clamp, columns):
            continue
        ends = [_constant(end, found.dtype.is_integer) for end in clamp.bounds]
        beyond: Tree = Not().of(IsBetween("both").of(clamp.tree, *ends))
        if found.nan:
            beyond = And().of(beyond, IsNotNan().of(clamp.tree))
        outside.append(beyond)
    result: Tree | None = None
    for beyond in outside:
        inner = tree.Literal(1, INT64) if result is None else result
        result = When().of(beyond, tree.Literal(None, INT64), inner)
    return result


def _constant(end: Fraction, whole: bool) -> tree.Literal:
    if whole and end.denominator == 1:
        return tree.Literal(int(end), INT64)
    return tree.Literal(float(end), FLOAT64)


def with_share(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The result with the share of what was dropped: of each group where it has a row for each
    listed group, and of all rows otherwise.
    """
    result, left, before = frames
    kept, every = left["rows as they are"], before["rows before limits"]
    if kept.len() != result.height:
        kept, every = (pl.Series([found.sum()]) for found in (kept, every))
    numbers = pl.DataFrame({"kept": kept, "every": every})
    share = (1 - pl.col("kept") / pl.col("every")).clip(0.0, 1.0)
    found = numbers.select(pl.when(pl.col("every") >= 1).then(share)).to_series()
    if found.len() != result.height:
        found = pl.Series([found.item()] * result.height, dtype=pl.Float64)
    return result.with_columns(found.alias(DROPPED))
