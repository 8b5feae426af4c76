"""What a draw of a physical plan is of: exact numbers, or scores, from the tables of the plan.

The kernel has computed how far one individual moves these. Here they are made, from the same node,
as the docstrings of `dpframe.kernel.plan` say. Sums wrap modulo 2**64, as the noise that is added
does: an overflow is the same before the noise and after it, so it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.measurement import CellCounts
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import is_product
from dpframe.kernel.moves import all_keys, cells_in
from dpframe.workloads import PeriodTree, block_sums, sum_of_night, toeplitz_sums

__all__ = [
    "AnyChoice",
    "PointRuns",
    "are_points",
    "candidates_of",
    "exact_numbers",
    "first_choice",
    "is_identity",
    "night_numbers",
    "rank_scores",
    "scores_of",
]

Integers: TypeAlias = NDArray[np.int64]
AnyChoice: TypeAlias = kernel.Choice | kernel.Rank | kernel.Ranks | kernel.Levels


@dataclass(frozen=True, slots=True, eq=False)
class PointRuns:
    """Candidates of one private selection per group: runs of points that have one score.

    Parameters
    ----------
    scores
        An exact integer score each, those of one group after those of another.
    weights
        How many points each stands for, at least one.
    starts
        The code of each run's first point.
    sizes
        How many runs each group has.
    """

    scores: Integers
    weights: Integers
    starts: Integers
    sizes: Integers


def dense(plan: kernel.Plan, place: int, counted: CellCounts) -> Integers:
    """All cells of a table, of shape (groups, cells)."""
    return counted.dense(cells_in(plan.tables[place].cells))


def exact_numbers(
    plan: kernel.Plan,
    what: kernel.Vector | kernel.Running | kernel.Reports,
    counted: Sequence[CellCounts],
) -> Integers:
    """The numbers that noise is added to, or that rows report.

    Parameters
    ----------
    plan, what
        A plan and what one of its draws is of.
    counted
        The tables of the draw, in its order. Each may be there several times, one after another;
        then so are the numbers.

    Returns
    -------
    numpy.ndarray
        Of shape (groups, numbers), modulo 2**64. With a total of all, one line, for each time that
        the tables are there.
    """
    match what:
        case kernel.Vector():
            return _vector(plan, what, counted)
        case kernel.Running(table, column):
            return toeplitz_sums(dense(plan, table, counted[0]), column)
        case kernel.Reports(table):
            return dense(plan, table, counted[0])


def _vector(plan: kernel.Plan, what: kernel.Vector, counted: Sequence[CellCounts]) -> Integers:
    sums = [
        _sums(plan.tables[place], dense(plan, place, table), what)
        for place, table in zip(what.tables, counted, strict=True)
    ]
    if what.matrix == ((1,),):
        (numbers,) = sums
    else:
        factors = np.array(what.matrix, dtype=np.int64).T
        groups, cells = sums[0].shape
        numbers = np.stack(sums, axis=-1).reshape(groups * cells, len(sums)) @ factors
        numbers = numbers.reshape(groups, cells * len(what.matrix))
    if not what.total:
        return numbers
    times = counted[0].size // max(1, _groups_in(plan.tables[what.tables[0]]))
    numbers = numbers.reshape(times, numbers.size // max(1, times))
    total = numbers.sum(axis=1, dtype=np.int64, keepdims=True)
    return np.concatenate([numbers, total], axis=1)


def _groups_in(table: kernel.Table) -> int:
    """How many groups a table with listed keys, or without keys, has."""
    return math.prod(table.keys.sizes) if isinstance(table.keys, kernel.Listed) else 1


def _sums(table: kernel.Table, cells: Integers, what: kernel.Vector) -> Integers:
    """The cells of a table, added up over the keys that are not kept, and over runs of cells."""
    every = all_keys(table)
    if what.kept != every:
        assert isinstance(table.keys, kernel.Listed)
        assert is_product(table.keys)  # which the kernel requires
        others = tuple(1 + axis for axis in every if axis not in what.kept)
        shaped = cells.reshape(-1, *table.keys.sizes, cells.shape[1])
        cells = shaped.sum(axis=others, dtype=np.int64).reshape(-1, cells.shape[1])
    return block_sums(cells, 1, what.run or cells.shape[1])


def is_identity(plan: kernel.Plan, what: kernel.What) -> bool:
    """Whether the numbers of a draw are those of a table, each on its own."""
    return (
        isinstance(what, kernel.Vector)
        and (what.matrix, what.run, what.total) == (((1,),), 1, False)
        and what.kept == all_keys(plan.tables[what.tables[0]])
    )


def night_numbers(nights: kernel.Nights, periods: Integers, period: int) -> Integers:
    """The sums that are drawn when a period ends.

    Parameters
    ----------
    nights
        Which these are.
    periods
        The number of each period so far, of shape (groups, periods).
    period
        The number of the period, from 0.

    Returns
    -------
    numpy.ndarray
        Of shape (groups, sums), modulo 2**64.
    """
    match nights.sums:
        case kernel.Root(column):
            return sum_of_night(periods, column, period)
        case kernel.Tree(branching, levels):
            return PeriodTree(nights.periods, branching, levels).sums(periods, period)


# Scores


def first_choice(what: AnyChoice) -> kernel.Choice | kernel.Rank:
    """The choice whose scores depend on no other choice."""
    match what:
        case kernel.Ranks(table, quantiles):
            return kernel.Rank(table, quantiles[0])
        case kernel.Levels(table, quantiles, levels):
            return kernel.Rank(table, quantiles[levels[0][0]])
    return what


def candidates_of(plan: kernel.Plan, what: kernel.Choice | kernel.Rank, groups: int) -> int:
    """How many candidates each choice has, where the tables have this many groups."""
    match what:
        case kernel.Choice(tables, "tables"):
            return len(tables)
        case kernel.Choice(_, "groups"):
            return groups
        case kernel.Choice((place,)):
            return cells_in(plan.tables[place].cells)
        case kernel.Rank(place):
            size = cells_in(plan.tables[place].cells)
            return size if are_points(plan.tables[place]) else (size - 1) // 2
    raise kernel.Refused("a choice by the numbers of several tables")


def are_points(table: kernel.Table) -> bool:
    """Whether the cells of a table are points. Many points may have one score."""
    cells = table.cells
    return isinstance(cells.cells if isinstance(cells, kernel.OfPeople) else cells, kernel.Points)


def scores_of(
    plan: kernel.Plan,
    what: kernel.Choice | kernel.Rank,
    counted: Sequence[CellCounts],
    first: int,
    end: int,
) -> Integers | PointRuns:
    """The scores of groups `first` to `end` - 1: a row each, where each candidate's code is its
    column, or runs where candidates stand for several points.
    """
    match what:
        case kernel.Choice(_, "groups"):  # one choice among all groups
            return counted[0].dense(1).reshape(1, -1)[first:end]
        case kernel.Choice(_, "tables"):
            return np.concatenate([table.dense(1, first, end) for table in counted], axis=1)
        case kernel.Choice((place,)):
            return counted[0].dense(cells_in(plan.tables[place].cells), first, end)
        case kernel.Rank(place, q):
            size = cells_in(plan.tables[place].cells)
            if are_points(plan.tables[place]):
                return _scores_of_points(counted[0], q, first, end, size)
            upto = np.cumsum(counted[0].dense(size, first, end), axis=1)
            return rank_scores(q, upto[:, :-1:2], upto[:, 1::2], upto[:, -1:])
    raise kernel.Refused("a choice by the numbers of several tables")


def rank_scores(q: Fraction, below: Integers, upto: Integers, rows: Integers) -> Integers:
    """The scores of `kernel.Rank`: of candidates with these numbers of rows before them and up to
    them, of all rows.
    """
    target, b = q.numerator * rows, q.denominator
    score: Integers = -np.maximum(np.maximum(target - b * upto, b * below - target), 0)
    return score


def _scores_of_points(
    table: CellCounts, q: Fraction, first: int, end: int, points: int
) -> PointRuns:
    """Runs of points with the same score: the occupied ones, and the gaps before and after."""
    assert table.cells is not None
    offsets = table.offsets(first, end)
    entries = np.diff(offsets)
    cells = table.cells[offsets[0] : offsets[-1]]
    sizes = 2 * entries + 1
    ends = np.cumsum(sizes)
    occupied = 2 * np.arange(cells.size) + 1 + np.repeat(np.arange(end - first), entries)
    starts = np.zeros(2 * cells.size + end - first, dtype=np.int64)
    starts[occupied] = cells
    starts[occupied + 1] = cells + 1
    weights = np.diff(starts, append=0)
    weights[ends - 1] += points  # what comes next begins another group, at 0
    rows = np.zeros_like(starts)
    rows[occupied] = table.values[offsets[0] : offsets[-1]]
    upto = np.cumsum(rows)
    upto -= np.repeat(upto[ends - sizes], sizes)  # a group begins with a gap, without rows
    kept = weights > 0
    left = np.append(0, np.cumsum(kept))
    scores = rank_scores(q, upto - rows, upto, np.repeat(upto[ends - 1], sizes))
    return PointRuns(scores[kept], weights[kept], starts[kept], left[ends] - left[ends - sizes])
