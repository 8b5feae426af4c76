"""The limit that a query lacks is found when it runs, unless ``limits=None`` refuses that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.api.dropped import with_dropped
from dpframe.api.expressions import output_of
from dpframe.api.functions import histogram
from dpframe.api.spend import Spend
from dpframe.api.unlimited import Unlimited
from dpframe.core.exact import as_given
from dpframe.core.tree import Column, Named
from dpframe.errors import InvalidBudget, UnboundedSensitivity, UnsupportedOperation
from dpframe.frames.filter import DropNulls, Filter
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.per_individual import GROUPS, ROWS, PerIndividual
from dpframe.frames.relation import Relation
from dpframe.frames.with_columns import Drop, Rename, Select, WithColumns
from dpframe.infer import LimitSearch

Limits: TypeAlias = Literal["auto"] | None
LIMITS: Final = (*(step * 10**power for power in range(5) for step in (1, 2, 5)), 10**5)
"""Limits that may be found: two or two and a half times as much from one to the next, so that few
bins share what finds them.
"""
MOST_OF_FOUND: Final = 2000
"""The largest limit where groups are chosen privately: under a larger one only groups of
thousands would appear, and planning takes longer with each candidate.
"""
_NO_MORE_ROWS = Filter, DropNulls, WithColumns, Select, Rename, Drop
"""Steps after which no individual has more rows than before."""


def require_limits(limits: object) -> None:
    """Refuse an unknown value of ``limits=``.

    Raises
    ------
    UnsupportedOperation
        For another word than ``"auto"``.
    """
    if limits is not None and limits != "auto":
        raise UnsupportedOperation(
            f'limits={as_given(limits)} is neither "auto" nor None',
            where="limits=...",
            remedy=(
                "leave limits= out",
                "write limits=None and a limit of the frame: .limit_rows(n) or "
                ".limit_groups(n, by=...)",
            ),
        )


def require_amount(spend: Spend) -> None:
    """Refuse spends that a limit cannot be found by.

    Raises
    ------
    InvalidBudget
        For an accuracy instead of a spend.
    """
    if spend.accuracy is not None:
        raise InvalidBudget(
            "accuracy= needs a limit on what one individual adds, and this query finds "
            "its limit when it runs",
            where="accuracy=...",
            why="the cost of an accuracy depends on that limit",
            remedy=("write the limit: .limit_rows(n)", "give a spend, such as epsilon=1"),
        )


def search_of(unlimited: Unlimited, *, report_dropped: bool = False) -> LimitSearch:
    """How the limit that a query lacks is found: one on groups where that is enough, else one on
    rows in all, which bounds groups and rows in each as well.

    With `report_dropped` the plan also measures the share of dropped rows, under each limit.

    Raises
    ------
    DPFrameError
        When the query is refused under limits too.
    """
    found = _search_for([unlimited], [unlimited])
    if not report_dropped:
        return found
    told = [with_dropped(query) for (query,) in found.queries]
    every = tuple(one.queries for one in told)
    return replace(found, queries=every, weights=told[0].weights)


def search_of_several(
    asked: Sequence[Query | Unlimited], weights: tuple[Fraction, ...] | None
) -> LimitSearch:
    """Build one search for a limit that serves all queries of a list that lack one; the other
    queries run in the same plan.

    Several that lack one share it: it is on rows, and found on the frame that they have in common,
    where an individual has at least as many rows as in each of them.

    Raises
    ------
    UnsupportedOperation
        When they lack limits on different frames: a plan that finds several limits has no finite
        form, because it would list the queries under every combination of limits.
    """
    lacking = [one for one in asked if isinstance(one, Unlimited)]
    return replace(_search_for(asked, lacking), weights=weights)


def _search_for(asked: Sequence[Query | Unlimited], lacking: Sequence[Unlimited]) -> LimitSearch:
    first, *others = lacking
    groups = first.groups
    discovered = any(one.groups is not None and one.groups.discovered for one in lacking)
    limits = [n for n in LIMITS if n <= (MOST_OF_FOUND if discovered else LIMITS[-1])]
    by = () if groups is None or others else groups.by
    if by and all(named.tree == Column(named.name) for named in by):
        names = tuple(named.name for named in by)
        try:
            queries = _under(asked, [LimitGroups(n, names) for n in limits])
            search = _search(first.rows.relation, by)
            return LimitSearch("limit_groups", names, search, LIMITS, queries)
        except UnboundedSensitivity:  # rows in each group need one too
            pass
    relation = (
        first.rows.relation if not others else _shared([one.rows.relation for one in lacking])
    )
    queries = _under(asked, [LimitRows(n) for n in limits])
    return LimitSearch("limit_rows", (), _search(relation, ()), LIMITS, queries)


def _under(
    asked: Sequence[Query | Unlimited], steps: Sequence[LimitRows | LimitGroups]
) -> tuple[tuple[Query, ...], ...]:
    """The queries under each limit; those that lack none as they are."""
    return tuple(
        tuple(
            replace(one.under(step), finds_limit=True) if isinstance(one, Unlimited) else one
            for one in asked
        )
        for step in steps
    )


def _shared(relations: Sequence[Relation]) -> Relation:
    """The frame that some come from by steps that make no row of none.

    Raises
    ------
    UnsupportedOperation
        When there is no shared relation.
    """
    first, *others = relations
    size = 0
    while all(
        size < len(one.steps) and one.steps[size][0] is first.steps[size][0] for one in relations
    ) and size < len(first.steps):
        size += 1
    later = [step for one in relations for step, _ in one.steps[size:]]
    same = all(other.token == first.token for other in others)
    if not same or not all(isinstance(step, _NO_MORE_ROWS) for step in later):
        raise UnsupportedOperation(
            "several of these queries lack a limit on what one individual adds, and "
            "they are of different frames",
            where="session.collect([...])",
            why="a plan that finds a limit for each frame has no finite form",
            remedy=("collect each query separately", "write their limits: .limit_rows(n)"),
        )
    facts = first.facts if size == len(first.steps) else first.steps[size][1]
    return replace(first, steps=first.steps[:size], facts=facts)


def _search(rows: Relation, by: tuple[Named, ...]) -> Query:
    """The query for the number of individuals by their numbers of rows, or groups, on the
    unlimited frame."""
    relation = rows.then(PerIndividual(by))
    edges = [1, *(n + 1 for n in LIMITS)]
    number = GROUPS if by else ROWS
    column = PerIndividual.name_of(number, relation.facts)
    output = output_of(histogram(column, edges, other=True), f"individuals by {number}")
    return pipeline.ask(relation, None, [output])
