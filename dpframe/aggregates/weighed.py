"""What may be asked of individuals that are weighed: what adds up over them."""

from __future__ import annotations

from dpframe.aggregates.bound import BoundAggregate
from dpframe.aggregates.measurement import Additive, Measurement
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import DistinctCount
from dpframe.errors import UnsupportedOperation
from dpframe.frames.grouping_sets import SetGroups

__all__ = ["require_adds_up"]

_WHERE = "limit_norm(...)"


def require_adds_up(bound: BoundAggregate, scope: QueryScope) -> None:
    """Refuse what is no sum over individuals, where these are weighed.

    Raises
    ------
    UnsupportedOperation
        With what to write instead.
    """
    if scope.norm is None:
        return
    groups = scope.groups
    if isinstance(groups, SetGroups):
        raise UnsupportedOperation(
            "results by grouping sets do not know individuals that are weighed",
            where=_WHERE,
            remedy="use limit_groups and limit_rows, or one group_by for each set",
        )
    if groups is not None and groups.discovered:
        raise UnsupportedOperation(
            "groups that nobody listed are found by whole individuals, not by weighed ones",
            where=_WHERE,
            remedy="list the groups with keys=[...], or use limit_groups",
        )
    if not all(_adds_up(use.part) for use in bound.uses):
        raise UnsupportedOperation(
            f"individuals are weighed, and the {bound.request.kind} does not add up over them",
            where=_WHERE,
            remedy="use limit_rows or limit_groups for it; counts, sums, means and variances can "
            "be of weighed individuals, and a histogram is a count by groups of bins",
        )


def _adds_up(part: Measurement) -> bool:
    return (
        isinstance(part, Additive)
        and part.table.cells is None
        and not isinstance(part.table.statistic, DistinctCount)
    )
