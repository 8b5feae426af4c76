"""Quantiles that are chosen one inside the other, in many groups at once.

Each row of a point takes one of 2**16 places of it at random, so that rows that tie can be on both
sides of a choice; places are the candidates. They are drawn where they matter only: a point with
rows is proposed as a whole, by its best score, which is that of all its rows together. If it is
taken, its rows take their places, and a place of it is kept with probability
exp((its score - best score) / scale), else its group proposes again among finer pieces. So each
place is chosen as often as if all rows had had their places before (rejection under an envelope,
for any places), and rows that took theirs keep them in later choices.

How long that takes depends on the rows, as it does where an engine counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.measurement import CellCounts
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import cells_in, level_choices, parts_of_row
from dpframe.mechanisms.noise import (
    PLACES,
    choose_points,
    keep_points,
    place_rows,
    selection_scale,
)
from dpframe.release.numbers import are_points, rank_scores

__all__ = ["choose_recursively"]

_FEW_ROWS = 2
"""Where cells have this few rows on average, all take their places at once, which is faster."""

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Cells one after another, each of `places` places. They are points, which all are candidates;
    or each second one is equal to a candidate, and the others are between two.
    """

    cells: int
    points: bool
    places: int

    @property
    def end(self) -> int:
        return self.cells * self.places

    def candidates_before(self, place: Integers) -> Integers:
        """How many candidates are before a place: all places of points are, and those of cells that
        are equal to a listed candidate.
        """
        if self.points:
            return place
        cell, inner = np.divmod(place, self.places)
        return np.asarray((cell >> 1) * self.places + np.where(cell & 1, inner, 0), np.int64)

    def place_of(self, candidate: Integers) -> Integers:
        """Where a candidate is, by how many are before it."""
        if self.points:
            return candidate
        point, inner = np.divmod(candidate, self.places)
        return np.asarray((2 * point + 1) * self.places + inner, np.int64)

    def code_of(self, place: Integers) -> Integers:
        """The point or listed candidate that a place belongs to."""
        cell = place // self.places
        return cell if self.points else cell >> 1


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """Where rows are, sorted by group and place: whole cells whose rows have taken no places yet,
    and single places.
    """

    group: Integers
    place: Integers
    rows: Integers
    whole: Flags

    def where(self, kept: Flags) -> _Pieces:
        return _Pieces(self.group[kept], self.place[kept], self.rows[kept], self.whole[kept])


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Candidates with one score at best, group after group; and what that follows from.

    Parameters
    ----------
    scores, weights, sizes
        As the mechanism takes them.
    before
        How many candidates of the line are before each run.
    below, total
        How many rows are below the run, and in its group.
    piece
        Which piece it is; -1 between pieces.
    """

    scores: Integers
    weights: Integers
    sizes: Integers
    before: Integers
    below: Integers
    total: Integers
    piece: Integers


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """One choice in each of many groups, of quantile `q` of the rows that are left to it."""

    scale: Fraction
    line: _Line
    groups: int
    q: Fraction

    def among(self, pieces: _Pieces, low: Integers, high: Integers) -> tuple[Integers, _Pieces]:
        """The place that each group chooses among those from `low` to before `high`, and the pieces
        with the places that rows have taken by then.
        """
        chosen = np.zeros_like(low)
        left = np.arange(low.size)
        while left.size:
            runs = self._runs(pieces, left, low[left], high[left])
            run, nth = choose_points(self.scale, runs.scores, runs.weights, runs.sizes)
            place = self.line.place_of(runs.before[run] + nth)
            chosen[left] = place
            whole = np.flatnonzero(runs.piece[run] >= 0)
            whole = whole[pieces.whole[runs.piece[run[whole]]]]
            if not whole.size:
                break
            pieces, kept = self._place_rows(pieces, runs, run[whole], place[whole])
            left = left[whole[~kept]]
        return chosen, pieces

    def _runs(self, pieces: _Pieces, left: Integers, low: Integers, high: Integers) -> _Runs:
        """The pieces of some groups, and what is before, between and after them."""
        if left.size == self.groups:
            piece = np.arange(pieces.group.size)
        else:
            piece = np.flatnonzero(np.isin(pieces.group, left, kind="table"))
        entries = np.bincount(np.searchsorted(left, pieces.group[piece]), minlength=left.size)
        sizes = 2 * entries + 1
        ends = np.cumsum(sizes)
        heads = ends - sizes
        at = 2 * np.arange(piece.size) + 1 + np.repeat(np.arange(left.size), entries)
        begin = np.empty(int(ends[-1]), np.int64)
        begin[heads] = low
        begin[at] = pieces.place[piece]
        begin[at + 1] = pieces.place[piece] + np.where(pieces.whole[piece], self.line.places, 1)
        before = self.line.candidates_before(begin)
        after = np.append(before[1:], 0)
        after[ends - 1] = self.line.candidates_before(high)
        rows = np.zeros_like(begin)
        rows[at] = pieces.rows[piece]
        upto = np.cumsum(rows)
        upto -= np.repeat(upto[heads], sizes)  # what is first has no rows
        total = np.repeat(upto[ends - 1], sizes)
        number = np.full_like(begin, -1)
        number[at] = piece
        scores = rank_scores(self.q, upto - rows, upto, total)
        return _Runs(scores, after - before, sizes, before, upto - rows, total, number)

    def _place_rows(
        self, pieces: _Pieces, runs: _Runs, run: Integers, place: Integers
    ) -> tuple[_Pieces, Flags]:
        """Let the rows of cells that were proposed take their places; and whether the place of each
        that was proposed is kept.
        """
        cell = runs.piece[run]
        tie, inner, rows = place_rows(pieces.rows[cell], self.line.places)
        key, wanted = tie * self.line.places + inner, place % self.line.places
        wanted += np.arange(cell.size) * self.line.places
        sums = np.append(0, np.cumsum(rows))
        heads = sums[np.searchsorted(tie, np.arange(cell.size))]
        below = runs.below[run] + sums[np.searchsorted(key, wanted)] - heads
        upto = runs.below[run] + sums[np.searchsorted(key, wanted, side="right")] - heads
        score = rank_scores(self.q, below, upto, runs.total[run])
        kept = keep_points(self.scale, runs.scores[run] - score)
        others = np.ones(pieces.group.size, np.bool_)
        others[cell] = False
        old = pieces.where(others)
        group = np.append(old.group, pieces.group[cell][tie])
        places = np.append(old.place, pieces.place[cell][tie] + inner)
        order = np.lexsort((places, group))
        made = _Pieces(
            group[order],
            places[order],
            np.append(old.rows, rows)[order],
            np.append(old.whole, np.zeros(tie.size, np.bool_))[order],
        )
        return made, kept


def choose_recursively(
    plan: kernel.Plan,
    what: kernel.Levels,
    law: kernel.Exponential,
    counted: CellCounts,
    span: tuple[int, int],
) -> Integers:
    """The codes of all quantiles in the groups of a span: a row each, nondecreasing."""
    table = plan.tables[what.table]
    first, end = span
    line = _Line(cells_in(table.cells), are_points(table), PLACES)
    pieces = _whole_cells(counted, line, first, end)
    if pieces.rows.sum() <= _FEW_ROWS * pieces.rows.size:
        pieces = _all_placed(pieces, line)
    changes = plan.neighbours == "change-one"
    nodes = level_choices(what.quantiles, what.levels, changes, table.keys is None)
    largest, parts = max(node.range for node in nodes.values()), parts_of_row(what.quantiles)
    by_ends = {(node.lower, node.upper): number for number, node in nodes.items()}
    chosen: dict[int, Integers] = {-1: np.zeros(end - first, np.int64)}
    waiting: list[tuple[int, int, _Pieces]] = [(-1, -1, pieces)]
    while waiting:
        lower, upper, pieces = waiting.pop()
        number = by_ends.get((lower, upper))
        if number is None:
            continue
        node = nodes[number]
        high = np.full(end - first, line.end) if upper < 0 else chosen[upper] + 1
        # the scale of the law is in parts of a row, the score in those of its own quantile
        scale = law.scale * node.range / largest * node.quantile.denominator / parts
        step = _Choice(selection_scale(scale), line, end - first, node.quantile)
        chosen[number], pieces = step.among(pieces, chosen[lower], high)
        below = pieces.place < chosen[number][pieces.group]
        waiting += [(lower, number, pieces.where(below)), (number, upper, pieces.where(~below))]
    codes = [line.code_of(chosen[number]) for number in range(len(what.quantiles))]
    return np.stack(codes, axis=1)


def _whole_cells(counted: CellCounts, line: _Line, first: int, end: int) -> _Pieces:
    """The occupied cells of some groups."""
    assert counted.groups is not None
    assert counted.cells is not None
    lo, hi = np.searchsorted(counted.groups, [first, end])
    cells, rows = counted.cells[lo:hi], counted.values[lo:hi]
    whole = np.ones(cells.size, np.bool_)
    return _Pieces(counted.groups[lo:hi] - first, cells * line.places, rows, whole)


def _all_placed(pieces: _Pieces, line: _Line) -> _Pieces:
    """The same rows, after all have taken their places."""
    tie, inner, rows = place_rows(pieces.rows, line.places)
    whole = np.zeros(tie.size, np.bool_)
    return _Pieces(pieces.group[tie], pieces.place[tie] + inner, rows, whole)
