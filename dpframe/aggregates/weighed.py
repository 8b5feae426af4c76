"""Aggregates of weighted individuals: those that add up over them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from dpframe.aggregates.bound import BoundAggregate
from dpframe.aggregates.group_keys import BEST_ROUNDS, group_keys_in
from dpframe.aggregates.measurement import Additive, Measurement
from dpframe.aggregates.query import Output
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import DistinctCount
from dpframe.core.tree import column_names
from dpframe.core.units import Identifier
from dpframe.errors import UnsupportedOperation
from dpframe.frames.contributions import spread_of
from dpframe.frames.grouping_sets import SetGroups
from dpframe.frames.groups import Groups
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_norm import LimitNorm
from dpframe.frames.relation import Relation
from dpframe.frames.without_found import WithoutFound, rounds_of

__all__ = ["MOST_FOUND", "require_adds_up", "with_weights"]

MOST_FOUND: Final = 256
"""The number of unlisted groups in which a weighted individual counts, unless it is limited."""

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
            "limit_norm does not work with grouping sets",
            where=_WHERE,
            remedy=(
                "use .limit_groups(n, by=...) and .limit_rows(n) instead of it",
                "write one group_by for each set",
            ),
        )
    if not all(_adds_up(use.part) for use in bound.uses):
        raise UnsupportedOperation(
            f"limit_norm does not work with {bound.request.kind}",
            where=_WHERE,
            why="only counts, sums and what is computed from them can weight individuals",
            remedy="use .limit_rows(n) or .limit_groups(n, by=...) instead of it",
        )


def with_weights(relation: Relation, groups: Groups | None, outputs: Iterable[Output]) -> Relation:
    """The frame by whose individuals unlisted groups can be found.

    If only the groups are requested, and an individual may be in any number of them, individuals
    are weighted so that the norm of one is 1. That hides an individual in many groups as well as
    one in few, and no limit has to be chosen. The groups may be found in rounds: then a step
    comes before that leaves out what rounds before have found. Numbers are of weighed individuals
    only where `limit_norm` was written.

    Groups with one individual alone are hidden by a threshold, which has to know in how many an
    individual may be; `MOST_FOUND` is more than most have, and its logarithm is what it costs. All
    that is steps as an analyst could write them.

    Raises
    ------
    UnsupportedOperation
        When several rounds are requested where individuals are not weighed by that.
    """
    asked = [bound for output in outputs for bound in output.aggregates.values()]
    keys = group_keys_in(asked)
    rounds = 1 if keys is None else BEST_ROUNDS if keys.rounds is None else keys.rounds
    found = _weighed(relation, groups, keys is not None, rounds)
    if keys is not None and keys.rounds is not None and rounds_of(found) != keys.rounds:
        raise UnsupportedOperation(
            "dp_groups(rounds=...) needs an identifier, no limits, and groups that are "
            "not lists, structs or floats",
            where=f"dp_groups(rounds={keys.rounds})",
            remedy=(
                "write dp_groups() without rounds=",
                "leave limit_groups, limit_rows and limit_norm out",
            ),
        )
    return found


def _weighed(relation: Relation, groups: Groups | None, only_keys: bool, rounds: int) -> Relation:
    """The frame with these steps, where they are what it needs."""
    if groups is None or not groups.discovered or not isinstance(relation.facts.unit, Identifier):
        return relation
    known, columns = spread_of(relation.facts, groups), relation.facts.columns
    used = tuple(sorted({name for n in groups.by for name in column_names(n.tree)}))
    types = [columns[name].dtype for name in used]
    if known.groups is not None or known.rows is not None or not used:
        return relation
    if any(dtype.is_float or dtype.is_nested or not dtype.is_known for dtype in types):
        return relation
    if relation.facts.norm is None:
        if not only_keys:
            return relation
        if rounds > 1:
            relation = relation.then(WithoutFound(groups.by, rounds, groups.keys))
        relation = relation.then(LimitNorm(Fraction(1)))
    return relation.then(LimitGroups(MOST_FOUND, used))


def _adds_up(part: Measurement) -> bool:
    return (
        isinstance(part, Additive)
        and part.table.cells is None
        and not isinstance(part.table.statistic, DistinctCount)
    )
