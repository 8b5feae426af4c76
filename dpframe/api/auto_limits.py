"""``limits="auto"``: the limit that a query lacks is found when it runs."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from dpframe import pipeline
from dpframe.aggregates.query import Query
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
from dpframe.frames.step import Step
from dpframe.infer import LimitSearch

Limits: TypeAlias = Literal["auto"] | None
LIMITS: Final = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
"""Limits that may be found."""


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


def search_of(unlimited: Unlimited) -> LimitSearch:
    """How the limit that a query lacks is found: one on groups where that is enough, else one on
    rows in all, which bounds groups and rows in each as well.

    Raises
    ------
    DPFrameError
        When the query is refused under limits too.
    """
    by = () if unlimited.groups is None else unlimited.groups.by
    if by and all(named.tree == Column(named.name) for named in by):
        names = tuple(named.name for named in by)
        try:
            queries = [unlimited.under(LimitGroups(n, names)) for n in LIMITS]
            return LimitSearch("limit_groups", names, _search(unlimited, by), LIMITS, (*queries,))
        except UnboundedSensitivity:  # rows in each group need one too
            pass
    steps: list[Step] = [LimitRows(n) for n in LIMITS]
    return LimitSearch(
        "limit_rows", (), _search(unlimited, ()), LIMITS, tuple(map(unlimited.under, steps))
    )


def _search(unlimited: Unlimited, by: tuple[Named, ...]) -> Query:
    """How many individuals have how many rows, or groups, on the frame as it is."""
    relation = unlimited.rows.relation.then(PerIndividual(by))
    edges = [1, *(n + 1 for n in LIMITS)]
    number = GROUPS if by else ROWS
    column = PerIndividual.name_of(number, relation.facts)
    output = output_of(histogram(column, edges, other=True), f"individuals by {number}")
    return pipeline.ask(relation, None, [output])
