"""Approximate likelihoods of nested quantiles, by floats, for audits: to rank frames, and to
distinguish two frames.

As in `tuple_law`, candidates of one rank are a run. A point with rows is as many runs as rows and
one more, each assumed equally long. An outcome is the stretch of each quantile: a point with
rows, or all candidates between two of these. What is chosen at one node depends on the runs that
were chosen at its ends. Of an end that is a point the middle run is taken for all: that is right
but for ends at points with many rows. So the logarithms of ratios that are found here are good
scores, and what events of them prove is counted in runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.cells import PointCells
from dpframe.aggregates.quantile_tree import QuantileNode, QuantileTree
from dpframe.mechanisms import RecursiveExponential

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_PATHS: Final = 1024
"""This many paths are followed on each frame, to estimate what both reveal."""


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Runs in rising order: the rank of each, the logarithm of how many candidates it is, and in
    which stretch it is.
    """

    ranks: Integers
    logs: Floats
    stretch: Integers

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
    def middles(self) -> Integers:
        """The middle run of each stretch that has any."""
        numbers = np.arange(2 * (int(self.stretch[-1]) // 2) + 2)
        first = np.searchsorted(self.stretch, numbers)
        last = np.searchsorted(self.stretch, numbers, side="right") - 1
        return np.asarray((first + np.maximum(last, first)) // 2, np.int64)

    def logs_among(self, node: QuantileNode, scale: float, low: Integers, high: Integers) -> Floats:
        """The log-likelihoods of each run between ends, where some exist."""
        start = self.ranks[low]
        rows = self.ranks[high] - start
        own = self.ranks[None] - start[:, None]
        away = np.abs(node.q.denominator * own - node.q.numerator * rows[:, None])
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
        The error of each choice, in steps of its own score, as a share of that of the law.
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
        self._tree, self._nodes = tree, tree.nodes
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

    def ratios(self, codes: Integers) -> Floats:
        """The logarithm of how much more likely chosen codes are on the one frame; a row each."""
        cells = codes if isinstance(self._tree.cells, PointCells) else 2 * codes + 1
        at = np.searchsorted(self._cells, cells)
        return self._told(2 * at + (np.append(self._cells, -1)[at] == cells))

    def _told(self, stretches: Integers) -> Floats:
        kinds, inverse = np.unique(stretches, axis=0, return_inverse=True)
        one, other = (self._logs(line, kinds) for line in self._lines)
        return np.asarray((one - other)[inverse.reshape(-1)])

    def _logs(self, line: _Line, stretches: Integers) -> Floats:
        """The logarithm of how likely it is that quantiles are in stretches; a row each."""
        middles, found = line.middles, np.zeros(len(stretches))
        heads = np.flatnonzero(np.diff(line.stretch, prepend=-1))
        place = np.searchsorted(line.stretch[heads], stretches)
        for number in self._order:
            node = self._nodes[number]
            low, high = (
                np.full(len(stretches), otherwise) if end is None else middles[stretches[:, end]]
                for end, otherwise in ((node.lower, 0), (node.upper, line.ranks.size - 1))
            )
            pairs, inverse = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
            logs = line.logs_among(node, self._scales[number], pairs[0], pairs[1])
            masses = np.add.reduceat(np.exp(logs), heads, axis=1)
            mine = masses[inverse.reshape(-1), place[:, number]]
            found += np.log(np.maximum(mine, 1e-300))
        return found

    def _followed(self, line: _Line) -> Integers:
        """Stretches of quantiles that are chosen as they are on a line: the same ones each time,
        spread as evenly as a sequence of Kronecker does it.
        """
        chosen: dict[int, Integers] = {}
        for number, root in zip(self._order, _roots(len(self._order)), strict=True):
            node = self._nodes[number]
            low = np.zeros(_PATHS, np.int64) if node.lower is None else chosen[node.lower]
            last = np.full(_PATHS, line.ranks.size - 1)
            high = last if node.upper is None else chosen[node.upper]
            pairs, inverse = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
            logs = line.logs_among(node, self._scales[number], pairs[0], pairs[1])
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
