"""Drawing: the only place where exact tables meet noise.

What is drawn, and by which law, is read from the physical plan that the kernel has verified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import MeasurementKey, Noisy
from dpframe.aggregates.draw import Draw, Places
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import (
    CellCounts,
    Selection,
    Table,
)
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import cells_in, level_choices, parts_of_row
from dpframe.mechanisms import fair_coins
from dpframe.mechanisms.noise import (
    PLACES,
    TIES,
    Runs,
    appear,
    choose_each,
    choose_points,
    choose_top_each,
    choose_tuple,
    keep_points,
    noise,
    place_rows,
    report,
    selection_scale,
)
from dpframe.release.numbers import (
    PointRuns,
    are_points,
    candidates_of,
    exact_numbers,
    first_choice,
    night_numbers,
    rank_scores,
    scores_of,
)

# Quantiles that are chosen one inside the other, in many groups at once.
#
# Each row of a point takes one of 2**16 places of it at random, so that rows that tie can be on
# both sides of a choice; places are the candidates. They are drawn where they matter only: a point
# with rows is proposed as a whole, by its best score, the score of all its rows together. If it
# is taken, its rows take their places, and a place of it is kept with probability exp((its score -
# best score) / scale), else its group proposes again among finer pieces. So each place is chosen as
# often as if all rows had had their places before (rejection under an envelope, for any places),
# and rows that took theirs keep them in later choices.
#
# How long that takes depends on the rows, as it does where an engine counts them.

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


# One quantile of very many rows, chosen without a score of every row.
#
# Far from its rank no point is likely, and points there need no scores of their own: many of them
# are proposed together, by the best score among them. One that is proposed is kept with probability
# exp((its score - that score) / scale), else the group proposes again. So each point is chosen as
# often as if all had been proposed by their own scores (rejection under an envelope, whichever
# points are taken together).
#
# Points are merged if their scores are within an eighth of their distance to the best, so that few
# proposals are rejected. This matters only where they are eight scales and more away, and there a
# point weighs exp(-8) of one at the rank at most. How long it takes depends on the rows, as it does
# where an engine counts them.


NEAR: Final = 1 << 12
"""This many points with rows on either side of the rank have scores of their own."""
MANY: Final = 4 * NEAR
"""Of fewer points with rows each has a score of its own."""
_GROWTH: Final = 9 / 8


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows of one group, sorted.

    Parameters
    ----------
    cells
        The points that have rows, rising.
    ranks
        How many rows there are before each of them, and how many in all.
    target, step
        The rank that is wanted times `step`, the denominator of the quantile.
    """

    cells: Integers
    ranks: Integers
    target: int
    step: int

    def score(self, below: Integers, upto: Integers) -> Integers:
        """Scores of points with this many rows before them, and this many up to them, as
        `QuantileChoice` has them.
        """
        short, over = self.target - self.step * upto, self.step * below - self.target
        return np.asarray(-np.maximum(np.maximum(short, over), 0), np.int64)

    def score_of(self, point: int) -> int:
        """The score of one point."""
        ends = np.searchsorted(self.cells, [point, point + 1])
        return int(self.score(*self.ranks[ends]))

    def near(self) -> tuple[int, int]:
        """From which entry on, and up to which, each point has a score of its own. The rows before
        the first are too few for the rank, and those up to the last are enough.
        """
        wanted = -(-self.target // self.step)
        middle = int(np.searchsorted(self.ranks[1:], wanted))
        return max(0, middle - NEAR), min(self.cells.size, middle + NEAR)

    def outwards(self, entry: int, towards: int) -> list[int]:
        """Entries from one on, to the first or to behind the last. Before each there are an
        eighth more rows too few or too many than before the previous one. Rounding only moves
        them.
        """
        result, last = [entry], 0 if towards < 0 else self.cells.size
        rank = self.target / self.step
        while result[-1] != last:
            now = result[-1]
            away = abs(int(self.ranks[now]) - rank) * _GROWTH
            place = int(np.searchsorted(self.ranks, rank + towards * away))
            place = min(place, now - 1) if towards < 0 else max(place, now + 1)
            result.append(min(max(place, 0), self.cells.size))
        return result


def choose_point(scale: Fraction, q: Fraction, cells: Integers, rows: Integers, points: int) -> int:
    """The point that the exponential mechanism chooses of one group, as if all had scores.

    Parameters
    ----------
    scale
        The scale of the exponential mechanism, in units of the score.
    q
        The quantile.
    cells, rows
        The points that have rows, rising, and how many each has; at least one.
    points
        How many points there are in all.
    """
    ranks = np.append(0, np.cumsum(rows))
    found = _Rows(cells, ranks, q.numerator * int(ranks[-1]), q.denominator)
    starts, scores, own = _proposals(found)
    weights = np.diff(starts, append=points)
    kept = np.flatnonzero(weights)
    sizes = np.array([kept.size])
    while True:
        run, place = choose_points(scale, scores[kept], weights[kept], sizes)
        chosen = int(kept[run[0]])
        point = int(starts[chosen] + place[0])
        gap = 0 if chosen in own else int(scores[chosen]) - found.score_of(point)
        if keep_points(scale, np.array([gap]))[0]:
            return point


def _proposals(found: _Rows) -> tuple[Integers, Integers, range]:
    """Where each run of points begins, the best score in it, and which runs have it at each of
    their points.

    A run on the left is from one entry to before another, which has the most rows before it; as
    they are too few, the points just before it are the best. One on the right begins with an entry
    that has enough rows before it; the more there are before a point, the worse it is.
    """
    low, high = found.near()
    left, right = found.outwards(low, -1), found.outwards(high, 1)
    entries = np.arange(low, high)
    near = np.stack([found.cells[entries], found.cells[entries] + 1], axis=1).reshape(-1)
    before, after = found.ranks[entries], found.ranks[entries + 1]
    scores = np.stack([found.score(before, after), found.score(after, after)], axis=1).reshape(-1)
    if not low:  # the points before all entries
        left = [0, 0]
    beginnings = np.array([found.cells[n] if n else 0 for n in reversed(left[1:])], np.int64)
    of_left, of_right = found.ranks[left[-2::-1]], found.ranks[right[:-1]]
    return (
        np.concatenate([beginnings, near, found.cells[right[:-1]]]),
        np.concatenate([found.score(of_left, of_left), scores, found.score(of_right, of_right)]),
        range(len(beginnings), len(beginnings) + len(near)),
    )


# Quantiles that are chosen jointly: how rows with equal values are put in order.
#
# Each row takes one of 2**32 places within its value at random, in two steps of 16 coins. Places
# are drawn only where they matter: in values with ranks near some quantile, and in other values
# once a candidate tuple contains them. Rows keep the places that they took.
#
# Privacy does not need this many places. They ensure a place for about each rank. With fewer places
# all good tuples could be missing, and the draw would take too long where billions of rows have the
# same value. The time depends on the rows, as it does where an engine counts them.


class PlacedRows:
    """The rows of one group among the places of all points.

    Parameters
    ----------
    cells, rows
        The points with rows, in rising order, and how many each has.
    points
        How many points there are.
    """

    __slots__ = ("_rows", "_sizes", "_starts", "candidates", "rows")

    def __init__(self, cells: Integers, rows: Integers, points: int) -> None:
        whole = math.prod(TIES)
        self.candidates, self.rows = points * whole, int(rows.sum())
        self._starts, self._rows = cells * whole, rows
        self._sizes = np.full(cells.size, whole)

    def runs(self, windows: Sequence[tuple[int, int]]) -> Runs:
        """The candidates between places with rows, where their ranks are in a window. What is on
        either side of these has taken its places.
        """
        self._place(windows)
        upto = np.append(0, np.cumsum(self._rows))
        keys = self._starts + self._sizes  # the first candidate that a row is before
        starts, ends = np.append(0, keys), np.append(keys - self._sizes + 1, self.candidates)
        kept = _within(upto, upto, windows) & (ends > starts)
        return Runs(starts[kept], (ends - starts)[kept], upto[kept])

    def ranks(self, chosen: Sequence[int]) -> list[int]:
        """The number of rows before each of some places; all rows have taken their places by
        then."""
        self._place([(0, self.rows)])
        upto = np.append(0, np.cumsum(self._rows))
        result: list[int] = upto[np.searchsorted(self._starts, chosen, "left")].tolist()
        return result

    def _place(self, windows: Sequence[tuple[int, int]]) -> None:
        """Let rows take their places where their ranks touch a window."""
        size = math.prod(TIES)
        for ties in TIES:
            upto = np.cumsum(self._rows)
            wide = (self._sizes == size) & (size > 1)
            size //= ties
            wanted = np.flatnonzero(wide & _within(upto - self._rows, upto, windows))
            if not wanted.size:
                continue
            point, place, rows = place_rows(self._rows[wanted], ties)
            others = np.ones(self._rows.size, np.bool_)
            others[wanted] = False
            starts = np.append(self._starts[others], self._starts[wanted][point] + place * size)
            order = np.argsort(starts, kind="stable")
            self._rows = np.append(self._rows[others], rows)[order]
            self._sizes = np.append(self._sizes[others], np.full(rows.size, size))[order]
            self._starts = starts[order]


def _within(low: Integers, high: Integers, windows: Sequence[tuple[int, int]]) -> Flags:
    """Which of some ranges of ranks have one in a window."""
    result = np.zeros(low.size, np.bool_)
    for first, last in windows:
        result |= (low <= last) & (high >= first)
    return result


def choose_at_once(
    plan: kernel.Plan,
    what: kernel.Ranks,
    law: kernel.Exponential,
    counted: CellCounts,
    groups: int,
) -> Integers:
    """The codes of all quantiles in each group: a row each, nondecreasing."""
    assert counted.cells is not None
    candidates = candidates_of(plan, first_choice(what), groups)
    parts = parts_of_row(what.quantiles)
    shares = [int(q * parts) for q in what.quantiles]
    offsets = counted.offsets(0, groups)
    places, result = math.prod(TIES), np.empty((groups, len(shares)), np.int64)
    for group, (lo, hi) in enumerate(pairwise(offsets.tolist())):
        line = PlacedRows(counted.cells[lo:hi], counted.values[lo:hi], candidates)
        chosen = choose_tuple(law.scale, line, shares, parts)
        result[group] = [place // places for place in chosen]
    return result


_AT_ONCE = 1 << 20
"""Scores that are chosen among at the same time, which bounds the memory."""


@dataclass(slots=True, eq=False)
class CandidateScores:
    """Scores of one exact table that are chosen among again and again, remembered up to a size: to
    make them takes longer than to choose.
    """

    room: int = 1 << 24
    kept: dict[tuple[kernel.What, int, int], Noisy | PointRuns] = field(default_factory=dict)

    def of(
        self,
        plan: kernel.Plan,
        what: kernel.Choice | kernel.Rank,
        tables: Sequence[CellCounts],
        span: tuple[int, int],
    ) -> Noisy | PointRuns:
        """The scores of the groups of a span; callers must not write to them."""
        result = self.kept.get((what, *span))
        if result is None:
            result = scores_of(plan, what, tables, *span)
            arrays = [result.scores, result.weights] if isinstance(result, PointRuns) else [result]
            if arrays[0].size <= self.room:
                self.room -= arrays[0].size
                self.kept[(what, *span)] = result
                for array in arrays:
                    array.setflags(write=False)
        return result


def draw(
    one: Draw,
    places: Places,
    counted: Mapping[int, CellCounts],
    ballots: CandidateScores | None = None,
) -> dict[MeasurementKey, Noisy]:
    """The noisy integers of all parts that are drawn at once, and of the vector that they follow
    from where that is another.

    `counted` has the exact tables by their places in the plan. `ballots` are those of earlier draws
    from the same tables, if there are to be more.
    """
    node = places.node(one)
    tables = [counted[place] for place in kernel.tables_of(node.what)]
    drawn = draw_node(places.plan, node.what, node.law, tables, ballots)
    if isinstance(one.measurement, Selection) and isinstance(node.what, kernel.Vector):
        # candidates whose numbers all have noise: the largest follow from these
        numbers = drawn.reshape(-1, one.measurement.candidates)
        drawn = choose_top_each(kernel.Exact(), numbers, one.measurement.rounds)
    if isinstance(one.measurement, Margin) and one.measurement.is_by_sets:
        drawn = drawn.reshape(-1, 1)
    return derive_parts(one, drawn)


def draw_period(node: kernel.Draw, periods: Integers, period: int) -> Noisy:
    """The noisy sums that a stream draws when a period ends. `periods`: the exact number of each
    period so far, of shape (groups, periods). `period`: the number of the period, from 0. Returns
    an array of shape (groups, sums).
    """
    assert isinstance(node.what, kernel.Nights)
    numbers = night_numbers(node.what, periods, period)
    numbers += noise(node.law, numbers.size).reshape(numbers.shape)
    return numbers


def derive_parts(one: Draw, vector: Noisy) -> dict[MeasurementKey, Noisy]:
    """The parts that follow from noisy numbers, and these."""
    if one.rebuilt is None:
        return {one.keys[0]: vector}
    result = {one.vector: vector}
    for key, rebuilt in zip(one.keys, one.rebuilt, strict=True):
        whole, half = rebuilt.of(vector)
        result[key] = (whole + (half & fair_coins(half.size))).reshape(-1, 1)
    return result


def draw_node(
    plan: kernel.Plan,
    what: kernel.What,
    law: kernel.Law,
    tables: Sequence[CellCounts],
    ballots: CandidateScores | None = None,
) -> Noisy:
    """What one draw of a plan gives.

    Returns
    -------
    numpy.ndarray
        Of shape (groups, numbers); of choices (groups, codes of candidates).

    Notes
    -----
    Exact integers and noise are added modulo 2**64, so that an overflow, should there be one, is
    the same whether it happens before or after the noise: it never costs privacy.
    """
    match what, law:
        case kernel.Reports(), kernel.Response():
            return report(law, exact_numbers(plan, what, tables)[0]).reshape(1, -1)
        case kernel.Vector() | kernel.Running(), _:
            exact = exact_numbers(plan, what, tables)
            drawn = noise(law, len(exact) if isinstance(law, kernel.Box) else exact.size)
            noisy = drawn.reshape(exact.shape)
            noisy += exact
            return noisy
        case kernel.Levels(), kernel.Exponential():
            groups = tables[0].size
            spans = _spans(plan, what, tables, 0, groups)
            found = [choose_recursively(plan, what, law, tables[0], span) for span in spans]
            return np.concatenate(found) if found else np.empty((0, len(what.quantiles)), np.int64)
        case kernel.Ranks(), kernel.Exponential():
            return choose_at_once(plan, what, law, tables[0], tables[0].size)
        case kernel.Ranks(place, quantiles) | kernel.Levels(place, quantiles), kernel.Exact():
            each = (kernel.Rank(place, q) for q in quantiles)
            return np.concatenate([_best(plan, one, tables) for one in each], axis=1)
        case kernel.Choice() | kernel.Rank(), kernel.Exact():
            return _best(plan, what, tables)
        case kernel.Choice() | kernel.Rank(), _:
            return _choose(plan, what, law, tables, ballots or CandidateScores(room=0))
        case _:
            raise kernel.Refused(f"{what} cannot be drawn by the law {law}")


def _groups(what: kernel.Choice | kernel.Rank, tables: Sequence[CellCounts]) -> int:
    """How many choices there are."""
    return 1 if isinstance(what, kernel.Choice) and what.among == "groups" else tables[0].size


def _rounds(what: kernel.Choice | kernel.Rank) -> int:
    return what.rounds if isinstance(what, kernel.Choice) else 1


def _choose(
    plan: kernel.Plan,
    what: kernel.Choice | kernel.Rank,
    law: kernel.Law,
    tables: Sequence[CellCounts],
    box: CandidateScores,
) -> Noisy:
    groups, rounds = _groups(what, tables), _rounds(what)
    codes = np.empty((groups, rounds), dtype=np.int64)
    many = _with_many_points(plan, what, tables)
    for group in many:
        codes[group, 0] = _of_many(plan, what, law, tables[0], group)
    for low, high in pairwise([-1, *many, groups]):
        for first, end in _spans(plan, what, tables, low + 1, high):
            ballots = box.of(plan, what, tables, (first, end))
            if isinstance(ballots, PointRuns):
                scale = _scale_of_points(law)
                about = ballots.scores, ballots.weights, ballots.sizes
                run, point = choose_points(scale, *about)
                codes[first:end, 0] = ballots.starts[run] + point
            elif rounds == 1:
                codes[first:end, 0] = choose_each(law, ballots)
            else:
                codes[first:end] = choose_top_each(law, ballots, rounds)
    return codes


def _scale_of_points(law: kernel.Law) -> Fraction:
    """The scale of the only law that chooses among weighted candidates."""
    if isinstance(law, kernel.Exponential):
        return law.scale
    raise kernel.Refused(f"points cannot be chosen by the law {type(law).__name__}")


def _with_many_points(
    plan: kernel.Plan, what: kernel.Choice | kernel.Rank, tables: Sequence[CellCounts]
) -> list[int]:
    """The groups in which not every point with rows needs a score."""
    if not isinstance(what, kernel.Rank) or not are_points(plan.tables[what.table]):
        return []
    entries = np.diff(tables[0].offsets(0, tables[0].size))
    return [int(group) for group in np.flatnonzero(entries >= MANY)]


def _of_many(
    plan: kernel.Plan,
    what: kernel.Choice | kernel.Rank,
    law: kernel.Law,
    table: CellCounts,
    group: int,
) -> int:
    """The code that is chosen in such a group."""
    assert isinstance(what, kernel.Rank)
    assert table.cells is not None
    low, high = table.offsets(group, group + 1)
    own = slice(int(low), int(high))
    points = candidates_of(plan, what, 1)
    rows = table.cells[own], table.values[own]
    return choose_point(_scale_of_points(law), what.quantile, *rows, points)


def _best(
    plan: kernel.Plan, what: kernel.Choice | kernel.Rank, tables: Sequence[CellCounts]
) -> Noisy:
    """The best candidates of scores that no individual can change."""
    groups, rounds = _groups(what, tables), _rounds(what)
    codes = np.empty((groups, rounds), dtype=np.int64)
    for first, end in _spans(plan, what, tables, 0, groups):
        ballots = scores_of(plan, what, tables, first, end)
        if isinstance(ballots, PointRuns):
            heads = np.cumsum(ballots.sizes) - ballots.sizes
            best = np.repeat(np.maximum.reduceat(ballots.scores, heads), ballots.sizes)
            winners = np.flatnonzero(ballots.scores == best)
            codes[first:end, 0] = ballots.starts[winners[np.searchsorted(winners, heads)]]
        else:
            codes[first:end] = choose_top_each(kernel.Exact(), ballots, rounds)
    return codes


def _spans(
    plan: kernel.Plan,
    what: kernel.Choice | kernel.Rank | kernel.Levels,
    tables: Sequence[CellCounts],
    low: int,
    high: int,
) -> Iterator[tuple[int, int]]:
    """First group and end of pieces of some groups that are chosen in at the same time."""
    if low == high:
        return pairwise(list[int]())
    if isinstance(what, kernel.Levels) or (
        isinstance(what, kernel.Rank) and are_points(plan.tables[what.table])
    ):  # two runs per entry of the table, and one more
        load = 2 * tables[0].offsets(low, high) + np.arange(high - low + 1)
        load -= load[0]
        cuts = low + np.searchsorted(load, np.arange(_AT_ONCE, int(load[-1]), _AT_ONCE))
    else:
        rows = max(1, _AT_ONCE // candidates_of(plan, what, tables[0].size))
        cuts = np.arange(low + rows, high, rows)
    return pairwise(np.unique([low, *cuts.tolist(), high]).tolist())


# Choosing the groups that appear.


Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """How groups are chosen, given exact numbers of individuals, rows or weights.

    Parameters
    ----------
    table
        The exact table that the choice needs.
    rows
        The most rows of one individual, where rows are counted.
    law
        The law by which groups appear.
    noise
        The noise of the released number by which they do, if they do by one.
    """

    table: Table
    rows: int
    law: kernel.Law
    noise: kernel.Law | None = None

    @property
    def rounds(self) -> tuple[KeyChoice, ...]:
        """The choice of each round, of groups that were not found before."""
        if not isinstance(self.law, kernel.WeighedThreshold):
            return (self,)
        each = (kernel.WeighedThreshold((one,)) for one in self.law.rounds)
        return tuple(replace(self, law=law) for law in each)

    def individuals(self, counts: Numbers) -> Numbers:
        """The least number of individuals who have that many rows."""
        return np.asarray(-(-counts // self.rows), np.int64)

    def keep(self, counts: Numbers) -> tuple[NDArray[np.bool_], Numbers | None]:
        """Whether groups with such numbers appear, and the noisy numbers where these decide. One
        whose number is 0 never does.
        """
        there = counts > 0
        match self.law:
            case kernel.Threshold(least) if self.noise is not None:
                noisy = counts + noise(self.noise, counts.size)
                return there & (noisy >= least), noisy
            case kernel.WeighedThreshold(((least, sigma_squared),)):
                noisy = counts + noise(kernel.Gaussian(sigma_squared), counts.size)
                return there & (noisy >= least), None
            case kernel.Geometric():
                return there & appear(self.law, self.individuals(counts)), None
        raise kernel.Refused(f"groups cannot appear by the law {type(self.law).__name__}")


def chooser_of(draws: Iterable[Draw], places: Places) -> KeyChoice | None:
    """How groups are chosen, where groups are not listed."""
    for one in draws:
        if isinstance(one.measurement, KeySelection):
            node = places.node(one)
            assert isinstance(node.what, kernel.Appear)
            by = (
                places.plan.draws[node.law.draw] if isinstance(node.law, kernel.Threshold) else None
            )
            noise_of_number = None if by is None else by.law
            return KeyChoice(
                places.tables[node.what.table], node.what.rows, node.law, noise_of_number
            )
    return None


def numbers_of_groups(
    draws: Sequence[Draw], places: Places, noisy: NDArray[np.int64] | None
) -> dict[MeasurementKey, Noisy]:
    """The numbers that groups were chosen by: they are released as they were then."""
    if noisy is None:
        return {}
    laws = (places.node(draw).law for draw in draws)
    number = next(law.draw for law in laws if isinstance(law, kernel.Threshold))
    (one,) = (draw for draw in draws if places.draws[draw] == number)
    return derive_parts(one, noisy.reshape(-1, 1))
