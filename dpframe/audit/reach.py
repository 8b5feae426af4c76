"""How much of its declared sensitivity a pair of neighbours moves each part of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpframe.aggregates.bound import Noisy
from dpframe.aggregates.joint_margins import JointMargins
from dpframe.aggregates.joint_sums import JointSums
from dpframe.aggregates.keys import WeighedKeys
from dpframe.aggregates.measurement import CellCounts, Measurement, Selection, Table
from dpframe.aggregates.query import Query
from dpframe.core.exact import sqrt_up
from dpframe.infer import PlannedMeasurement
from dpframe.kernel import plan as kernel
from dpframe.planning import Exact
from dpframe.release.numbers import Runs, is_identity

Counted = Mapping[Table, CellCounts]


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a part moves, as a share of what is declared for it.

    Parameters
    ----------
    name
        The part, as the plan names it.
    l1, l2
        The shares; above 1 the declared sensitivity is wrong.
    """

    name: str
    l1: float
    l2: float


def reach_of(
    uses: Sequence[PlannedMeasurement], query: Query, one: Counted, other: Counted
) -> list[Reach]:
    """The shares of all parts that an individual can move.

    Parameters
    ----------
    uses
        The parts of the plan.
    query
        With the existing groups.
    one, other
        The exact tables of both neighbours.
    """
    found = []
    moving = [use for use in uses if not use.sensitivity.is_zero]
    exact = Exact.of(query, (first_of(use.part) for use in moving))
    for use in moving:
        part = first_of(use.part)
        if isinstance(part, Selection):
            moved = _ranges(exact, part, query, one, other)
            whole = part.score_range(query.scope)
            bounds = whole.l1, whole.l2_squared
        else:
            moved = changes_of(exact, part, one, other)
            of_keys = isinstance(part, WeighedKeys)  # whose sensitivity is in parts already
            whole_rows = use.sensitivity.scaled(Fraction(1 if of_keys else query.scope.parts))
            bounds = whole_rows.l1, whole_rows.l2_squared
        l1 = sum(moved) / bounds[0]
        l2 = Fraction(sum(m * m for m in moved)) / bounds[1]
        label = use.name if use.role in (use.name, "count", "sum") else f"{use.name} ({use.role})"
        found.append(Reach(label, float(l1), float(sqrt_up(l2))))
    return found


def first_of(part: Measurement) -> Measurement:
    """A part; of choices the one that depends on no other choice."""
    return part.first if isinstance(part, Selection) else part


def changes_of(exact: Exact, part: Measurement, one: Counted, other: Counted) -> list[int]:
    """The absolute changes of the entries that differ, of a vector that noise is added to."""
    a, b = entries_of(exact, part, one), entries_of(exact, part, other)
    moved = (abs(a.get(place, 0) - b.get(place, 0)) for place in a.keys() | b.keys())
    return [change for change in moved if change]


def entries_of(exact: Exact, part: Measurement, counted: Counted) -> dict[tuple[int, int], int]:
    """The entries that are not zero of a vector that noise is added to, by group and cell."""
    node = exact.nodes[part]
    if isinstance(node, kernel.Appear) or is_identity(exact.plan, node):
        (table,) = exact.tables_of(part, counted)
        return entries_in(table)
    numbers = exact.numbers(part, counted)
    return {(int(g), int(n)): int(numbers[g, n]) for g, n in np.argwhere(numbers)}


def entries_in(table: CellCounts) -> dict[tuple[int, int], int]:
    """The entries of an exact table that are not zero, by group and cell."""
    if table.groups is None or table.cells is None:
        places = np.flatnonzero(table.values)
        return {(int(i), 0): int(table.values[i]) for i in places}
    found = zip(table.groups.tolist(), table.cells.tolist(), table.values.tolist(), strict=True)
    return {(group, cell): value for group, cell, value in found if value}


def _ranges(exact: Exact, part: Selection, query: Query, one: Counted, other: Counted) -> list[int]:
    """The range of score changes in each group where scores differ."""
    found = []
    for group in differing_groups(exact, part, query, one, other):
        scores = [_steps(exact.scores(part, side, group, group + 1)) for side in (one, other)]
        points = np.union1d(scores[0][0], scores[1][0])
        a, b = (s[np.searchsorted(starts, points, "right") - 1] for starts, s in scores)
        changes = [int(x) - int(y) for x, y in zip(a, b, strict=True)]
        found.append(max(changes) - min(changes))
    return found


def _steps(ballots: Noisy | Runs) -> tuple[Noisy, Noisy]:
    """Codes from which on candidates have a score, and the scores."""
    if isinstance(ballots, Runs):
        return ballots.starts, ballots.scores
    return np.arange(ballots.shape[1]), ballots[0]


def differing_groups(
    exact: Exact, part: Measurement, query: Query, one: Counted, other: Counted
) -> list[int]:
    """The groups in which the exact tables of a part differ; 0 where groups are candidates."""
    if isinstance(part, JointMargins):
        vectors = [exact.numbers(part, counted) for counted in (one, other)]
        differing: list[int] = np.flatnonzero((vectors[0] != vectors[1]).any(axis=1)).tolist()
        return differing
    size = one[part.tables[0]].size
    found: set[int] = set()
    for table in part.tables:
        a, b = entries_in(one[table]), entries_in(other[table])
        found |= {place[0] for place, _ in a.items() ^ b.items()}
    apart = isinstance(part, JointSums) or part.entries(query.scope) == size
    return sorted(found) if apart else [0] * bool(found)
