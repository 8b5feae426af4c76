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
from dpframe.aggregates.level_sums import LevelSums
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import CellCounts, Measurement, Runs, Selection, Table
from dpframe.aggregates.query import Query
from dpframe.aggregates.root_sums import RootSums
from dpframe.core.exact import sqrt_up
from dpframe.infer import PlannedMeasurement

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
    for use in uses:
        if use.sensitivity.is_zero:
            continue
        if isinstance(use.part, Selection):
            first = use.part.first  # what is chosen after it depends on what was chosen
            moved = _ranges(first, query, one, other)
            whole = first.score_range(query.scope)
            bounds = whole.l1, whole.l2_squared
        else:
            moved = changes_of(use.part, one, other)
            of_keys = isinstance(use.part, WeighedKeys)  # whose sensitivity is in parts already
            whole_rows = use.sensitivity.scaled(Fraction(1 if of_keys else query.scope.parts))
            bounds = whole_rows.l1, whole_rows.l2_squared
        l1 = sum(moved) / bounds[0]
        l2 = Fraction(sum(m * m for m in moved)) / bounds[1]
        label = use.name if use.role in (use.name, "count", "sum") else f"{use.name} ({use.role})"
        found.append(Reach(label, float(l1), float(sqrt_up(l2))))
    return found


def changes_of(part: Measurement, one: Counted, other: Counted) -> list[int]:
    """The absolute changes of the entries that differ, of a vector that noise is added to."""
    a, b = entries_of(part, one), entries_of(part, other)
    moved = (abs(a.get(place, 0) - b.get(place, 0)) for place in a.keys() | b.keys())
    return [change for change in moved if change]


def entries_of(part: Measurement, counted: Counted) -> dict[tuple[int, int], int]:
    """The entries that are not zero of a vector that noise is added to, by group and cell."""
    (table,) = part.tables
    if isinstance(part, LevelSums):
        return _entries_of_runs(part, counted[table])
    if isinstance(part, RootSums):
        sums = part.of(counted[table].dense(part.numbers))
        return {(int(g), int(n)): int(sums[g, n]) for g, n in np.argwhere(sums)}
    if not isinstance(part, Margin):
        return entries_in(counted[table])
    margin = part.exact(counted[table]).reshape(-1)
    return {(int(i), 0): int(margin[i]) for i in np.flatnonzero(margin)}


def _entries_of_runs(part: LevelSums, table: CellCounts) -> dict[tuple[int, int], int]:
    width = part.axis.width(part.level)
    found: dict[tuple[int, int], int] = {}
    for (group, cell), value in entries_in(table).items():
        run = group, cell // width
        found[run] = found.get(run, 0) + value
        if part.numbers > part.nodes:  # the total, after the runs
            found[group, part.nodes] = found.get((group, part.nodes), 0) + value
    return {run: value for run, value in found.items() if value}


def entries_in(table: CellCounts) -> dict[tuple[int, int], int]:
    """The entries of an exact table that are not zero, by group and cell."""
    if table.groups is None or table.cells is None:
        places = np.flatnonzero(table.values)
        return {(int(i), 0): int(table.values[i]) for i in places}
    found = zip(table.groups.tolist(), table.cells.tolist(), table.values.tolist(), strict=True)
    return {(group, cell): value for group, cell, value in found if value}


def _ranges(part: Selection, query: Query, one: Counted, other: Counted) -> list[int]:
    """The range of score changes in each group where scores differ."""
    found = []
    for group in differing_groups(part, query, one, other):
        scores = [
            _steps(part.ballots([counted[t] for t in part.tables], group, group + 1))
            for counted in (one, other)
        ]
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


def differing_groups(part: Measurement, query: Query, one: Counted, other: Counted) -> list[int]:
    """The groups in which the exact tables of a part differ; 0 where groups are candidates."""
    if isinstance(part, JointMargins):
        vectors = [part.vector([counted[t] for t in part.tables]) for counted in (one, other)]
        differing: list[int] = np.flatnonzero((vectors[0] != vectors[1]).any(axis=1)).tolist()
        return differing
    size = one[part.tables[0]].size
    found: set[int] = set()
    for table in part.tables:
        a, b = entries_in(one[table]), entries_in(other[table])
        found |= {place[0] for place, _ in a.items() ^ b.items()}
    apart = isinstance(part, JointSums) or part.entries(query.scope) == size
    return sorted(found) if apart else [0] * bool(found)
