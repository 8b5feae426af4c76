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
from dpframe.kernel.frame import Bounds, Facts, reach_of
from dpframe.kernel.moves import Addition, Norms, addition_of, norms_of
from dpframe.kernel.plan import Plan, Table, Vector

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]
BOUNDS = frame.bounds_of


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
