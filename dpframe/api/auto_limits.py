"""``limits="auto"``: the limit that a query lacks is found when it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, TypeAlias

from dpframe import pipeline
from dpframe.aggregates.query import Query
from dpframe.api.dropped import with_dropped
from dpframe.api.expressions import output_of
from dpframe.api.functions import histogram
from dpframe.api.spend import Spend
from dpframe.api.unlimited import Unlimited
from dpframe.core.exact import as_given
from dpframe.core.tree import Column, Named
from dpframe.errors import InvalidBudget, UnboundedSensitivity, UnsupportedOperation
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.per_individual import GROUPS, ROWS, PerIndividual
from dpframe.infer import LimitSearch

Limits: TypeAlias = Literal["auto"] | None
LIMITS: Final = (*(step * 10**power for power in range(5) for step in (1, 2, 5)), 10**5)
"""Limits that may be found: two or two and a half times as much from one to the next, so that few
bins share what finds them.
"""
MOST_OF_FOUND: Final = 2000
"""The largest where groups that nobody listed appear: under more only those of thousands would, and
to plan for each takes longer the more there may be.
"""


def require_limits(limits: object, spend: Spend) -> None:
    """Refuse what is no way to limit, and spends that a limit cannot be found by.

    Raises
    ------
    UnsupportedOperation
        For another word than ``"auto"``.
    InvalidBudget
        For an accuracy instead of a spend.
    """
    if limits is None:
        return
    if limits != "auto":
        raise UnsupportedOperation(
            f"limits are not found by {as_given(limits)}",
            where="limits=...",
            remedy='write limits="auto", or limits of the frame: .limit_rows(n), .limit_groups(n)',
        )
    if spend.accuracy is not None:
        raise InvalidBudget(
            "nobody knows what an accuracy costs under a limit that is not found yet",
            where='limits="auto", accuracy=...',
            remedy="give a spend, such as epsilon=1",
        )


def search_of(unlimited: Unlimited, *, report_dropped: bool = False) -> LimitSearch:
    """How the limit that a query lacks is found: one on groups where that is enough, else one on
    rows in all, which bounds groups and rows in each as well.

    With `report_dropped` what tells which share of the rows is dropped is asked beside the query,
    under each limit.

    Raises
    ------
    DPFrameError
        When the query is refused under limits too.
    """
    groups = unlimited.groups
    by, most = () if groups is None else groups.by, LIMITS[-1]
    if groups is not None and groups.discovered:
        most = MOST_OF_FOUND
    limits = [n for n in LIMITS if n <= most]
    if by and all(named.tree == Column(named.name) for named in by):
        names = tuple(named.name for named in by)
        try:
            queries = [unlimited.under(LimitGroups(n, names)) for n in limits]
            search = _search(unlimited, by)
            return _sought("limit_groups", names, search, queries, report_dropped)
        except UnboundedSensitivity:  # rows in each group need one too
            pass
    queries = [unlimited.under(LimitRows(n)) for n in limits]
    return _sought("limit_rows", (), _search(unlimited, ()), queries, report_dropped)


def _sought(
    step: str, by: tuple[str, ...], search: Query, queries: list[Query], report_dropped: bool
) -> LimitSearch:
    queries = [replace(query, finds_limit=True) for query in queries]
    if not report_dropped:
        return LimitSearch(step, by, search, LIMITS, tuple((query,) for query in queries))
    told = [with_dropped(query) for query in queries]
    every = tuple(one.queries for one in told)
    return LimitSearch(step, by, search, LIMITS, every, told[0].weights)


def _search(unlimited: Unlimited, by: tuple[Named, ...]) -> Query:
    """How many individuals have how many rows, or groups, on the frame as it is."""
    relation = unlimited.rows.relation.then(PerIndividual(by))
    edges = [1, *(n + 1 for n in LIMITS)]
    number = GROUPS if by else ROWS
    column = PerIndividual.name_of(number, relation.facts)
    output = output_of(histogram(column, edges, other=True), f"individuals by {number}")
    return pipeline.ask(relation, None, [output])
