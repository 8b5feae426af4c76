"""Mistakes to plant in the kernel's rules of sensitivity, by which the planner plans too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dpframe.aggregates import request
from dpframe.core.sensitivity import ContributionBounds
from dpframe.frames import contributions
from dpframe.kernel import frame, moves
from dpframe.kernel.frame import Bounds, Facts, Reach, reach_of
from dpframe.kernel.moves import Addition, Moves, Norms, addition_of, moves_of, norms_of
from dpframe.kernel.plan import Plan, Table, Vector

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]
BOUNDS = frame.bounds_of
CHANGES = moves._of_changes


def bounds(change: Callable[[Bounds, Facts, Any], Bounds]) -> Plant:
    """Other bounds of an individual's rows, given the true ones, the frame and the keys."""

    def wrong(facts: Facts, keys: Any, kept: tuple[int, ...]) -> Bounds:
        return change(BOUNDS(facts, keys, kept), facts, keys)

    def plant(patch: Patch) -> None:
        patch.setattr(frame, "bounds_of", wrong)
        patch.setattr(contributions, "bounds_of", wrong)

    return plant


def norms(change: Callable[[Norms, ContributionBounds, Addition], Norms]) -> Plant:
    """Other norms of one table's numbers, given the true ones, the reach of an individual and what
    a row adds.
    """

    def wrong(plan: Plan, facts: Sequence[Facts], what: Any) -> Norms:
        found = norms_of(plan, facts, what)
        if not isinstance(what, Vector) or len(what.tables) > 1:
            return found
        table, changes = plan.tables[what.tables[0]], plan.neighbours == "change-one"
        reach = reach_of(facts[0], table, what.kept, False, changes)
        spread = ContributionBounds(reach.rows, reach.groups, reach.most, changes)
        return change(found, spread, addition_of(table, 0))

    return lambda patch: patch.setattr(request, "norms_of", wrong)


def norms_where(is_meant: Callable[[Any], bool], change: Callable[[Norms], Norms]) -> Plant:
    """Other norms of some of what may be drawn, given the true ones."""

    def wrong(plan: Plan, facts: Sequence[Facts], what: Any) -> Norms:
        found = norms_of(plan, facts, what)
        return change(found) if is_meant(what) else found

    return lambda patch: patch.setattr(request, "norms_of", wrong)


def are_free(found: Norms) -> Norms:
    """The norms of what nobody is charged for."""
    return replace(found, l0=0, l1=0, l2_squared=0, linf=0)


def never_meet(found: Norms) -> Norms:
    """Norms as if rows of one individual never moved the same number."""
    return replace(found, l2_squared=found.l1, linf=min(found.linf, 1))


def has_runs(what: Any) -> bool:
    """Whether it is the sums of runs of several cells, but not of all."""
    return isinstance(what, Vector) and 1 < what.run < 40


def plans(change: Callable[[Plan, Sequence[Facts]], tuple[Plan, Sequence[Facts]]]) -> Plant:
    """Norms of another plan than the one that runs."""

    def wrong(plan: Plan, facts: Sequence[Facts], what: Any) -> Norms:
        plan, facts = change(plan, facts)
        if isinstance(what, Vector) and plan.tables[what.tables[0]].keys is None:
            what = replace(what, kept=())
        return norms_of(plan, facts, what)

    return lambda patch: patch.setattr(request, "norms_of", wrong)


def additions(kind: type, change: Callable[[Addition, Any], Addition]) -> Plant:
    """Other additions of a row, to tables of one kind."""

    def wrong(table: Table, place: int) -> Addition:
        found = addition_of(table, place)
        return change(found, table.adds) if isinstance(table.adds, kind) else found

    def plant(patch: Patch) -> None:
        patch.setattr(moves, "addition_of", wrong)
        patch.setattr(request, "addition_of", wrong)

    return plant


def joint_additions(change: Callable[[Addition], Addition]) -> Plant:
    """Other additions of a row to the numbers of one vector, from which its moves follow."""

    def wrong(additions: Sequence[Addition], matrix: Sequence[Sequence[int]]) -> Moves:
        return moves_of(tuple(map(change, additions)), matrix)

    return lambda patch: patch.setattr(moves, "moves_of", wrong)


def joint_moves(change: Callable[[Moves], Moves]) -> Plant:
    """Other moves of the numbers of a vector, given the true ones."""

    def wrong(additions: Sequence[Addition], matrix: Sequence[Sequence[int]]) -> Moves:
        return change(moves_of(additions, matrix))

    return lambda patch: patch.setattr(moves, "moves_of", wrong)


def changes(change: Callable[[Norms, Reach, Moves], Norms]) -> Plant:
    """Other norms where rows change, given the true ones, the reach of an individual and how far a
    row moves the numbers.
    """

    def wrong(facts: Facts, table: Table, reach: Reach, moved: Moves, entries: Any) -> Norms:
        return change(CHANGES(facts, table, reach, moved, entries), reach, moved)

    return lambda patch: patch.setattr(moves, "_of_changes", wrong)
