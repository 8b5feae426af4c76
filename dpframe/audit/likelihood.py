"""How much more likely outcomes are on one of two frames, by what a plan states."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.aggregate import MeasurementKey, Noisy, Query
from dpframe.aggregates.cells import PointCells
from dpframe.aggregates.draw import Draw
from dpframe.aggregates.keys import WeighedKeys
from dpframe.aggregates.margins import JointMargins
from dpframe.aggregates.measurement import (
    CellCounts,
    Integers,
    JointSums,
    Measurement,
    Selection,
)
from dpframe.aggregates.quantile import QuantilesAtOnce, QuantileTree
from dpframe.core.exact import sqrt_up
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import LevelChoice
from dpframe.mechanisms import (
    AdditiveMechanism,
    JointExponential,
    RecursiveExponential,
    VectorMechanism,
)
from dpframe.optimise.measurements import PlannedMeasurement
from dpframe.release.numbers import PointRuns, is_identity
from dpframe.simulate import ExactTables, NoisyParts

# How much of its declared sensitivity a pair of neighbours moves each part of a plan.


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a part moves, as a share of what is declared for it."""

    name: str  # The part, as the plan names it
    # `l1`, `l2`: the shares; above 1 the declared sensitivity is wrong.
    l1: float
    l2: float


def reach_of(
    uses: Sequence[PlannedMeasurement],  # The parts of the plan
    query: Query,  # With the existing groups
    # `one`, `other`: the exact tables of both neighbours.
    one: ExactTables,
    other: ExactTables,
) -> list[Reach]:
    """The shares of all parts that an individual can move."""
    found = []
    for use in uses:
        if use.sensitivity.is_zero:
            continue
        part = first_of(use.part)
        if isinstance(part, Selection):
            moved = _ranges(part, query, one, other)
            whole = part.score_range(query.scope)
            bounds = whole.l1, whole.l2_squared
        else:
            moved = changes_of(part, one, other)
            of_keys = isinstance(part, WeighedKeys)  # whose sensitivity is in parts already
            whole_rows = use.sensitivity.scale(Fraction(1 if of_keys else query.scope.parts))
            bounds = whole_rows.l1, whole_rows.l2_squared
        l1 = sum(moved) / bounds[0]
        l2 = Fraction(sum(m * m for m in moved)) / bounds[1]
        label = use.name if use.role in (use.name, "count", "sum") else f"{use.name} ({use.role})"
        found.append(Reach(label, float(l1), float(sqrt_up(l2))))
    return found


def first_of(part: Measurement) -> Measurement:
    """A part; of choices the one that depends on no other choice."""
    return part.first if isinstance(part, Selection) else part


def changes_of(part: Measurement, one: ExactTables, other: ExactTables) -> list[int]:
    """The absolute changes of the entries that differ, of a vector that noise is added to."""
    a, b = entries_of(part, one), entries_of(part, other)
    moved = (abs(a.get(place, 0) - b.get(place, 0)) for place in a.keys() | b.keys())
    return [change for change in moved if change]


def entries_of(part: Measurement, counted: ExactTables) -> dict[tuple[int, int], int]:
    """The entries that are not zero of a vector that noise is added to, by group and cell."""
    exact = counted.exact
    node = exact.nodes[part]
    if isinstance(node, kernel.Appear) or is_identity(exact.places.plan, node):
        (table,) = counted.of(part)
        return entries_in(table)
    numbers = counted.numbers(part)
    return {(int(g), int(n)): int(numbers[g, n]) for g, n in np.argwhere(numbers)}


def entries_in(table: CellCounts) -> dict[tuple[int, int], int]:
    """The entries of an exact table that are not zero, by group and cell."""
    if table.groups is None or table.cells is None:
        places = np.flatnonzero(table.values)
        return {(int(i), 0): int(table.values[i]) for i in places}
    found = zip(table.groups.tolist(), table.cells.tolist(), table.values.tolist(), strict=True)
    return {(group, cell): value for group, cell, value in found if value}


def _ranges(part: Selection, query: Query, one: ExactTables, other: ExactTables) -> list[int]:
    """The range of score changes in each group where scores differ."""
    found = []
    for group in differing_groups(part, query, one, other):
        scores = [_steps(side.scores(part, group, group + 1)) for side in (one, other)]
        points = np.union1d(scores[0][0], scores[1][0])
        a, b = (s[np.searchsorted(starts, points, "right") - 1] for starts, s in scores)
        changes = [int(x) - int(y) for x, y in zip(a, b, strict=True)]
        found.append(max(changes) - min(changes))
    return found


def _steps(ballots: Noisy | PointRuns) -> tuple[Noisy, Noisy]:
    """Codes from which on candidates have a score, and the scores."""
    if isinstance(ballots, PointRuns):
        return ballots.starts, ballots.scores
    return np.arange(ballots.shape[1]), ballots[0]


def differing_groups(
    part: Measurement, query: Query, one: ExactTables, other: ExactTables
) -> list[int]:
    """The groups in which the exact tables of a part differ; 0 where groups are candidates."""
    if isinstance(part, JointMargins):
        vectors = [counted.numbers(part) for counted in (one, other)]
        return np.flatnonzero((vectors[0] != vectors[1]).any(axis=1)).tolist()
    pairs = list(zip(one.of(part), other.of(part), strict=True))
    size = pairs[0][0].size
    found: set[int] = set()
    for before, after in pairs:
        a, b = entries_in(before), entries_in(after)
        found |= {place[0] for place, _ in a.items() ^ b.items()}
    apart = isinstance(part, JointSums) or part.entries(query.scope) == size
    return sorted(found) if apart else [0] * bool(found)


# Approximate likelihoods of nested quantiles, by floats, for audits: to rank frames, and to
# distinguish two frames.
#
# As in `tuple_law`, candidates of one rank are a run. A point with rows is as many runs as rows and
# one more, each assumed equally long. An outcome is the stretch of each quantile: a point with
# rows, or all candidates between two of these. What is chosen at one node depends on the runs that
# were chosen at its ends. Of an end that is a point the middle run is taken for all: that is right
# but for ends at points with many rows. So the logarithms of ratios that are found here are good
# scores, and what events of them prove is counted in runs.

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_PATHS: Final = 1024
"""This many paths are followed on each frame, to estimate what both reveal."""


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Runs in rising order: the rank of each, the logarithm of how many candidates it is, and in
    which stretch it is.
    """

    ranks: Places
    logs: Floats
    stretch: Places

    @classmethod
    def of(cls, tree: QuantileTree, rows: Mapping[int, int], cells: Sequence[int]) -> _Line:
        """The line for this many rows in some cells; all of these separate stretches."""
        dense = isinstance(tree.cells, PointCells)

        def before(cell: int) -> int:
            return cell if dense else cell // 2  # every other cell is a listed candidate

        found: list[tuple[int, float, int]] = []
        rank = last = 0
        for number, cell in enumerate(cells):
            here = rows.get(cell, 0)
            if before(cell) > last:
                found.append((rank, math.log(before(cell) - last), 2 * number))
            last = before(cell + 1)
            if last > before(cell):
                each = -math.log(here + 1)
                found += [(r, each, 2 * number + 1) for r in range(rank, rank + here + 1)]
            rank += here
        if tree.candidates > last:
            found.append((rank, math.log(tree.candidates - last), 2 * len(cells)))
        ranks, logs, stretch = zip(*found, strict=True)
        return cls(np.array(ranks), np.array(logs), np.array(stretch))

    @property
    def middles(self) -> Places:
        """The middle run of each stretch that has any."""
        numbers = np.arange(2 * (int(self.stretch[-1]) // 2) + 2)
        first = np.searchsorted(self.stretch, numbers)
        last = np.searchsorted(self.stretch, numbers, side="right") - 1
        return np.asarray((first + np.maximum(last, first)) // 2, np.int64)

    def logs_among(self, choice: LevelChoice, scale: float, low: Places, high: Places) -> Floats:
        """The log-likelihoods of each run between ends, where some exist."""
        q, start = choice.quantile, self.ranks[low]
        rows = self.ranks[high] - start
        own = self.ranks[None] - start[:, None]
        away = np.abs(q.denominator * own - q.numerator * rows[:, None])
        number = np.arange(self.ranks.size)
        inside = (number >= low[:, None]) & (number <= high[:, None])
        logs = np.where(inside, self.logs - away / scale, -np.inf)
        most = logs.max(axis=1, keepdims=True)
        whole = most + np.log(np.exp(logs - most).sum(axis=1, keepdims=True))
        return np.asarray(logs - whole)


class PathsApart:
    """How two frames are distinguished by quantiles that are chosen one inside the other.

    Parameters
    ----------
    tree, law
        What is chosen, and how.
    scales
        The error of each choice, in steps of its own score, as a share of the error of the law.
    sides
        How many rows each cell has on both frames, where there are any.
    """

    def __init__(
        self,
        tree: QuantileTree,
        law: RecursiveExponential,
        scales: Sequence[Fraction],
        sides: tuple[Mapping[int, int], Mapping[int, int]],
    ) -> None:
        self._tree, self._choices = tree, tree.choices
        self._scales = [float(law.scale * scale) for scale in scales]
        self._order = [number for level in tree.levels for number in level]
        cells = sorted(sides[0].keys() | sides[1].keys())
        self._cells = np.array(cells, np.int64)
        self._lines = [_Line.of(tree, side, cells) for side in sides]

    @property
    def masses(self) -> tuple[Floats, Floats]:
        """The probabilities of outcomes on both frames, with the same number of outcomes from
        each: together they are a sample of their mixture.
        """
        told = np.concatenate([self._told(self._followed(line)) for line in self._lines])
        one, other = (1.0 / (1.0 + np.exp(np.clip(sign * told, -99, 99))) for sign in (-1, 1))
        return one / one.sum(), other / other.sum()

    def ratios(self, codes: Places) -> Floats:
        """The logarithm of how much more likely chosen codes are on the one frame; a row each."""
        cells = codes if isinstance(self._tree.cells, PointCells) else 2 * codes + 1
        at = np.searchsorted(self._cells, cells)
        return self._told(2 * at + (np.append(self._cells, -1)[at] == cells))

    def _told(self, stretches: Places) -> Floats:
        kinds, inverse = np.unique(stretches, axis=0, return_inverse=True)
        one, other = (self._logs(line, kinds) for line in self._lines)
        return np.asarray((one - other)[inverse.reshape(-1)])

    def _logs(self, line: _Line, stretches: Places) -> Floats:
        """The logarithm of how likely it is that quantiles are in stretches; a row each."""
        middles, found = line.middles, np.zeros(len(stretches))
        heads = np.flatnonzero(np.diff(line.stretch, prepend=-1))
        place = np.searchsorted(line.stretch[heads], stretches)
        for number in self._order:
            choice = self._choices[number]
            low, high = (
                np.full(len(stretches), otherwise) if end < 0 else middles[stretches[:, end]]
                for end, otherwise in ((choice.lower, 0), (choice.upper, line.ranks.size - 1))
            )
            pairs, inverse = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
            logs = line.logs_among(choice, self._scales[number], pairs[0], pairs[1])
            masses = np.add.reduceat(np.exp(logs), heads, axis=1)
            mine = masses[inverse.reshape(-1), place[:, number]]
            found += np.log(np.maximum(mine, 1e-300))
        return found

    def _followed(self, line: _Line) -> Places:
        """Stretches of quantiles that are chosen as they are on a line: the same ones each time,
        spread as evenly as a sequence of Kronecker does it.
        """
        chosen: dict[int, Places] = {}
        for number, root in zip(self._order, _roots(len(self._order)), strict=True):
            choice = self._choices[number]
            low = np.zeros(_PATHS, np.int64) if choice.lower < 0 else chosen[choice.lower]
            last = np.full(_PATHS, line.ranks.size - 1)
            high = last if choice.upper < 0 else chosen[choice.upper]
            pairs, inverse = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
            logs = line.logs_among(choice, self._scales[number], pairs[0], pairs[1])
            upto = np.exp(logs).cumsum(axis=1)[inverse.reshape(-1)]
            at = np.arange(1, _PATHS + 1) * root % 1.0
            passed = (upto < (at * upto[:, -1])[:, None]).sum(axis=1)
            chosen[number] = np.minimum(np.maximum(passed, low), high)
        runs = np.stack([chosen[number] for number in range(len(self._order))], axis=1)
        return np.asarray(line.stretch[runs], np.int64)


def _roots(most: int) -> list[float]:
    """Square roots of primes; no whole multiples of these add up to a whole number."""
    found: list[int] = []
    number = 2
    while len(found) < most:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return [math.sqrt(prime) for prime in found]


# Approximate likelihoods of quantiles chosen at once, by floats, for audits: to rank frames, and to
# distinguish two frames.
#
# Candidates of one rank are a run. A point with rows is as many runs as rows and one more, because
# rows take random places of it. Each run is assumed equally long, which it is on average. Which
# candidate of a run is chosen says nothing more, so an outcome is in which stretch each quantile
# is: a point with rows, or all points between two of these.
#
# The mass of a tuple of stretches is a sum over its runs of a product over parts; those of all
# tuples are found one quantile after another, and what is less likely than `_RARE` is left out.

_RARE = 1e-6
"""So likely the first quantiles of a tuple have to be for what follows to be looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Candidates of one rank each: the rank, the logarithm of their share of all points, and in
    which stretch they are.
    """

    ranks: Integers
    logs: Floats
    stretch: Integers

    @classmethod
    def of(cls, rows: Integers, points: Integers, candidates: int) -> _Runs:
        """The runs for this many rows at some points; all of these separate stretches."""
        ranks, logs, stretch, rank, next_point = [], [], [], 0, 0
        for number, (point, here) in enumerate(zip(points.tolist(), rows.tolist(), strict=True)):
            if point > next_point:
                ranks.append(rank)
                logs.append(math.log((point - next_point) / candidates))
                stretch.append(2 * number)
            ranks += range(rank, rank + here + 1)
            logs += [-math.log(candidates * (here + 1))] * (here + 1)
            stretch += [2 * number + 1] * (here + 1)
            rank, next_point = rank + here, point + 1
        if candidates > next_point:
            ranks.append(rank)
            logs.append(math.log((candidates - next_point) / candidates))
            stretch.append(2 * points.size)
        return cls(np.array(ranks), np.array(logs), np.array(stretch))


class _TupleLaw:
    """Which stretches the quantiles of one group are in, and how likely that is.

    Parameters
    ----------
    part, law
        What is chosen, and how.
    rows, points
        How many rows there are at some points, in rising order. Stretch 2 i + 1 is point i, and
        2 i what is below it.
    """

    def __init__(
        self, part: QuantilesAtOnce, law: JointExponential, rows: Integers, points: Integers
    ) -> None:
        self._scale, self._row = float(law.scale), part.row
        self._total, self._chosen = int(rows.sum()), part.picks
        self._goals = [int(share * part.row) * self._total for share in part.parts]
        self._runs = _Runs.of(rows, points, part.candidates)
        ranks = self._runs.ranks
        gaps = np.subtract.outer(ranks, ranks).T * self._row
        later = np.triu(np.ones(gaps.shape, np.bool_), 1)
        self._falls = [np.where(later, self._decay(gaps - goal), 0.0) for goal in self._goals]
        self._after: list[Floats] = []
        self._complete()

    def tuples(self) -> dict[tuple[int, ...], float]:
        """Stretches of all quantiles, and their probability."""
        runs, stretches = self._runs, np.unique(self._runs.stretch)
        found = np.zeros((1, 0), np.int64)
        before = [self._decay(runs.ranks * self._row - self._goals[0])[None]]
        whole, mass = float(before[0][0] @ self._open(0, 1)), np.ones(1)
        for number in range(1, self._chosen + 1):
            last = found[:, -1] if number > 1 else np.zeros(1, np.int64)
            parent, place = np.nonzero(stretches[None] >= last[:, None])
            found = np.column_stack([found[parent], stretches[place]])
            before = [each[parent] for each in before]
            mass = self._added(found, before, self._open).sum(axis=1) / whole
            kept = mass > _RARE
            found, mass, before = found[kept], mass[kept], [each[kept] for each in before]
            before.append(self._added(found, before, self._closed) @ self._falls[number])
        return dict(zip(map(tuple, found.tolist()), mass.tolist(), strict=True))

    def _added(
        self, found: Integers, before: list[Floats], weight: Callable[[int, int], Floats]
    ) -> Floats:
        """Sums over how many of the last quantiles share a run, for each run of their stretch."""
        number = found.shape[1]
        total = np.zeros((len(found), self._runs.ranks.size))
        for first in range(number):
            same = (found[:, first:] == found[:, -1:]).all(axis=1)
            total[same] += before[first][same] * weight(first, number)
        return np.where(self._runs.stretch[None] == found[:, -1:], total, 0.0)

    def _closed(self, first: int, end: int) -> Floats:
        """The weight of quantiles from one number to another that have a run for themselves."""
        size = end - first
        empty = sum(self._goals[first + 1 : end]) / self._scale
        return np.asarray(np.exp(size * self._runs.logs - math.lgamma(size + 1) - empty))

    def _open(self, first: int, end: int) -> Floats:
        """The same where later quantiles may share it too, for any later ones."""
        later = range(end, self._chosen + 1)
        weights = [self._closed(first, last) * self._after[last] for last in later]
        return np.asarray(np.sum(weights, axis=0))

    def _complete(self) -> None:
        """Weights of all that may come after each quantile, where it is the last in its run."""
        ends = self._decay((self._total - self._runs.ranks) * self._row - self._goals[-1])
        self._after = [np.zeros_like(ends)] * self._chosen + [ends]
        for number in range(self._chosen - 1, 0, -1):
            self._after[number] = self._falls[number] @ self._open(number, number + 1)

    def _decay(self, away: Integers) -> Floats:
        return np.asarray(np.exp(-np.abs(away) / self._scale))


def choices_apart(
    prepared: pipeline.Prepared,  # The plan
    pair: tuple[ExactTables, ExactTables],  # The exact tables of both sides
) -> Iterator[tuple[Draw, int, TuplesApart | PathsApart]]:
    """How well each choice of several quantiles, at once or nested, distinguishes two frames,
    where their rows differ: the draw, the group, and that.
    """
    for one in prepared.draws:
        part, law = one.measurement, one.law
        if not isinstance(part, (QuantilesAtOnce, QuantileTree)):
            continue
        before, after = (table for counted in pair for table in counted.of(part))
        for group in range(before.size):
            rows = _rows_of(before, group), _rows_of(after, group)
            if rows[0] == rows[1]:
                continue
            if isinstance(part, QuantilesAtOnce) and isinstance(law, JointExponential):
                yield one, group, TuplesApart(part, law, *rows)
            elif isinstance(part, QuantileTree) and isinstance(law, RecursiveExponential):
                scales = part.scales(prepared.query.scope)
                yield one, group, PathsApart(part, law, scales, rows)


class TuplesApart:
    """How two frames are distinguished by one choice of several quantiles.

    Parameters
    ----------
    part, law
        What is chosen, and how.
    one, other
        How many rows each point has on both frames, where there are any.
    """

    def __init__(
        self,
        part: QuantilesAtOnce,
        law: JointExponential,
        one: Mapping[int, int],
        other: Mapping[int, int],
    ) -> None:
        self._points = np.array(sorted(one.keys() | other.keys()), np.int64)
        laws = [
            _TupleLaw(
                part,
                law,
                np.array([side.get(point, 0) for point in self._points.tolist()], np.int64),
                self._points,
            ).tuples()
            for side in (one, other)
        ]
        tuples = laws[0].keys() | laws[1].keys()
        self._masses = {each: tuple(law.get(each, _RARE) for law in laws) for each in tuples}

    @property
    def outcomes(self) -> list[tuple[int, ...]]:
        """In which stretch each quantile is: 2 i + 1 is point i, and 2 i what is below it."""
        return list(self._masses)

    @property
    def masses(self) -> tuple[Floats, Floats]:
        """The probabilities of all outcomes, on both frames."""
        one, other = zip(*self._masses.values(), strict=True)
        return np.array(one), np.array(other)

    def ratios(self, codes: Integers) -> Floats:
        """The logarithm of how much more likely chosen codes are on the one frame; a row each."""
        at = np.searchsorted(self._points, codes)
        there = np.append(self._points, -1)[at] == codes
        stretches = 2 * at + there
        found = np.zeros(len(codes))
        for number, each in enumerate(map(tuple, stretches.tolist())):
            one, other = self._masses.get(each, (1.0, 1.0))
            found[number] = math.log(one / other)
        return found


def _rows_of(counted: CellCounts, group: int) -> dict[int, int]:
    assert counted.cells is not None
    lo, hi = counted.offsets(group, group + 1).tolist()
    cells, rows = counted.cells[lo:hi], counted.values[lo:hi]
    return dict(zip(cells.tolist(), rows.tolist(), strict=True))


Noise = AdditiveMechanism | VectorMechanism
_DIGITS = 6
"""Ratios that are the same but for the rounding of sums are one."""


def is_noise_alone(prepared: pipeline.Prepared) -> bool:
    """Whether all that a plan draws is noise on numbers, to which other people mean nothing."""
    return all(_adds_noise(one) for one in prepared.draws)


def _adds_noise(one: Draw) -> bool:
    added = isinstance(one.law, (AdditiveMechanism, VectorMechanism))
    return added and not isinstance(one.measurement, Selection)


def stated_loss(prepared: pipeline.Prepared, one: ExactTables, other: ExactTables) -> float:
    """How much privacy two frames lose by the noise that the plan states.

    The log of how much more likely no noise is than noise that undoes the move, over all draws:
    the rho that Gaussian noise uses, the epsilon that a box or Laplace noise uses.
    """
    loss = 0.0
    adding = [draw for draw in prepared.draws if _adds_noise(draw)]
    for draw in adding:
        part, law = draw.measurement, draw.law
        assert isinstance(law, (AdditiveMechanism, VectorMechanism))
        if isinstance(part, JointSums):
            moved = one.numbers(part) - other.numbers(part)
        else:
            moved = np.array(changes_of(part, one, other), dtype=np.int64)
        if moved.size:
            loss += float((law.log_masses(np.zeros_like(moved)) - law.log_masses(moved)).sum())
    return loss


class StatedRatios:
    """The laws by which a plan distinguishes two frames, and what they are of on each. Choices are
    included only where several quantiles are chosen jointly, and groups that do not appear are not.

    Parameters
    ----------
    prepared
        The plan.
    pair
        The exact tables of both sides.
    """

    def __init__(self, prepared: pipeline.Prepared, pair: tuple[ExactTables, ExactTables]) -> None:
        adding = [one for one in prepared.draws if _adds_noise(one)]
        self._adding = list[tuple[MeasurementKey, Noise, Integers, Integers, Integers]]()
        for one in adding:
            assert isinstance(one.law, (AdditiveMechanism, VectorMechanism))
            mine, other = (counted.numbers(one.measurement) for counted in pair)
            moved = np.flatnonzero((mine != other).any(axis=1))
            key = one.keys[0] if one.rebuilt is None else one.vector
            if moved.size:
                self._adding.append((key, one.law, moved, mine[moved], other[moved]))
        self._choosing = list(choices_apart(prepared, pair))

    def of(
        self,
        # `noisy`, `kept`: what was drawn in all runs at once, and which groups appear.
        noisy: NoisyParts,
        kept: NDArray[np.bool_] | None,
        runs: int,  # How many there are
    ) -> Floats:
        """The log of the ratio of the probabilities on both sides of the draws in each run."""
        found = np.zeros(runs)
        for key, law, moved, mine, other in self._adding:
            numbers = noisy[key].reshape(runs, -1, mine.shape[1])[:, moved]
            ratios = law.log_masses(numbers - mine) - law.log_masses(numbers - other)
            ratios = ratios.reshape(runs, moved.size, -1).sum(axis=2)
            if kept is not None:
                ratios = np.where(kept.reshape(runs, -1)[:, moved], ratios, 0.0)
            found += ratios.sum(axis=1)
        for one, group, apart in self._choosing:
            codes = noisy[one.keys[0]]
            ratios = apart.ratios(codes.reshape(runs, -1, codes.shape[1])[:, group])
            there = True if kept is None else kept.reshape(runs, -1)[:, group]
            found += np.where(there, ratios, 0.0)
        return np.round(found, _DIGITS)
