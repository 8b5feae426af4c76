"""Approximate likelihoods of quantiles chosen at once, by floats, for audits: to rank frames, and
to distinguish two frames.

Candidates of one rank are a run. A point with rows is as many runs as rows and one more, because
rows take random places of it. Each run is assumed equally long, which it is on average. Which
candidate of a run is chosen says nothing more, so an outcome is in which stretch each quantile
is: a point with rows, or all points between two of these.

The mass of a tuple of stretches is a sum over its runs of a product over parts; those of all tuples
are found one quantile after another, and what is less likely than `_RARE` is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.measurement import CellCounts, Table
from dpframe.aggregates.quantile_tree import QuantileTree
from dpframe.aggregates.quantiles_at_once import QuantilesAtOnce
from dpframe.audit.path_law import PathsApart
from dpframe.mechanisms import JointExponential, RecursiveExponential
from dpframe.release import Draw

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Counted = Mapping[Table, CellCounts]
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
        self._total, self._chosen = int(rows.sum()), part.chosen
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
    prepared: pipeline.Prepared, pair: tuple[Counted, Counted]
) -> Iterator[tuple[Draw, int, TuplesApart | PathsApart]]:
    """How well each choice of several quantiles, at once or nested, distinguishes two frames,
    where their rows differ: the draw, the group, and that.

    Parameters
    ----------
    prepared
        The plan.
    pair
        The exact tables of both sides.
    """
    for one in prepared.draws:
        part, law = one.measurement, one.law
        if not isinstance(part, (QuantilesAtOnce, QuantileTree)):
            continue
        (table,) = part.tables
        before, after = (counted[table] for counted in pair)
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
