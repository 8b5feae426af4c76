"""The moments of prefixes and ranges of one tree, for any weights of its levels.

In a query of cells, the differences from the mean of siblings are in the subspace of their level,
and the means go on to the level above. A noisy sum of the nodes of a level hears of every
subspace up to that level, each times a number that is given here.

A prefix ends in one node of each level, and takes each of its siblings whole or not at all. So all
nodes below a sibling have one factor, and the moments of all prefixes follow level by level from
how many such nodes there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.axes import Axis
from dpframe.workloads.factors import block_sums

Floats: TypeAlias = "NDArray[np.float64]"
Moments: TypeAlias = tuple[Floats, Floats]
"""The sums of squared factors times variances, and of fourth powers times fourth cumulants."""

_AT_ONCE: Final = 1 << 16
"""Prefixes that are looked at together, which bounds the memory."""


@dataclass(frozen=True, slots=True)
class ToldLevels:
    """Noisy sums of the nodes of some levels, and what they count.

    Parameters
    ----------
    axis
        The cells.
    counts
        For each level from the root on, by what a query's part in its subspace is multiplied in the
        noisy sums of that level and of finer ones.
    levels
        Which levels have noisy sums, rising.
    seconds, fourths
        For each of them the second and fourth cumulant of what a node adds that is taken once.
    """

    axis: Axis
    counts: tuple[float, ...]
    levels: tuple[int, ...]
    seconds: tuple[float, ...]
    fourths: tuple[float, ...]

    def factors_of(self, start: int, stop: int) -> Iterator[tuple[int, Floats]]:
        """What the sum of the cells from `start` to `stop` - 1 takes of the noisy sums of each
        level that has some.
        """
        axis, wanted = self.axis, np.zeros(self.axis.size)
        wanted[start:stop] = 1.0
        apart = [wanted] * (axis.height + 1)
        for level in range(axis.height, 0, -1):
            means = block_sums(wanted, 0, axis.branching) / self._children(level)
            apart[level] = wanted - self._below(means, level)
            wanted = means
        apart[0] = wanted
        told = apart[0] * self.counts[0]
        for level in range(axis.height + 1):
            if level:
                told = self._below(told, level) + apart[level] * self.counts[level]
            if level in self.levels:
                yield level, told

    def moments_of(self, start: int, stop: int) -> tuple[float, float]:
        """The moments of the sum of the cells from `start` to `stop` - 1."""
        spread = fourth = 0.0
        for (_, factors), v, f in zip(
            self.factors_of(start, stop), self.seconds, self.fourths, strict=True
        ):
            squares = factors * factors
            spread += v * float(squares.sum())
            fourth += f * float((squares * squares).sum())
        return spread, fourth

    def moments(self) -> Moments:
        """The moments of the sums of the first 1, 2, ... cells."""
        size = self.axis.size
        found = np.empty((2, size))
        for first in range(1, size, _AT_ONCE):
            ends = np.arange(first, min(size, first + _AT_ONCE))
            found[:, ends - 1] = self._of_prefixes(ends)
        found[:, -1] = self.moments_of(0, size)
        return found[0], found[1]

    def _children(self, level: int) -> Floats:
        """For each node of the level above, how many children it has."""
        axis = self.axis
        parents = axis.nodes(level - 1)
        found = np.full(parents, float(axis.branching))
        found[-1] = axis.nodes(level) - (parents - 1) * axis.branching
        return found

    def _below(self, values: Floats, level: int) -> Floats:
        """The value of the parent for each node of a level."""
        return np.repeat(values, self.axis.branching)[: self.axis.nodes(level)]

    def _of_prefixes(self, ends: NDArray[np.int64]) -> Floats:
        """Of prefixes that take some cells and not all."""
        axis, counts = self.axis, self.counts
        second, fourth = _Power(self, self.seconds), _Power(self, self.fourths)
        pulls = [np.zeros(ends.size)] * (axis.height + 1)
        for level in range(axis.height, 0, -1):
            before, few = self._place(ends, level)
            pulls[level - 1] = (before + pulls[level]) / few
        told = pulls[0] * counts[0]
        squares = told * told
        found = np.stack([second.own(0) * squares, fourth.own(0) * squares * squares])
        for level in range(1, axis.height + 1):
            before, few = self._place(ends, level)
            mean, parents = pulls[level - 1], ends // axis.width(level - 1)
            whole, none = told + (1.0 - mean) * counts[level], told - mean * counts[level]
            after = few - before - 1.0
            told = told + (pulls[level] - mean) * counts[level]
            ragged = (parents == axis.nodes(level - 1) - 1) & (after > 0)
            whole, none, squares = whole * whole, none * none, told * told
            for line, power in zip(found, (second, fourth), strict=True):
                if power.is_zero:
                    continue
                if power is fourth:
                    whole, none, squares = whole * whole, none * none, squares * squares
                full, last = power.below(level)
                line += full * (before * whole + after * none)
                line += np.where(ragged, last - full, 0.0) * none + power.own(level) * squares
        return found

    def _place(self, ends: NDArray[np.int64], level: int) -> tuple[Floats, Floats]:
        """How many siblings stand before the node that a prefix ends in, and how many there are."""
        node, parent = ends // self.axis.width(level), ends // self.axis.width(level - 1)
        before = (node - parent * self.axis.branching).astype(np.float64)
        return before, self._children(level)[parent]


@dataclass(frozen=True, slots=True)
class _Power:
    """One moment of the noise of all nodes below one.

    Parameters
    ----------
    measured
        The tree.
    amounts
        For each measured level what a node adds whose numbers are all taken once.
    """

    measured: ToldLevels
    amounts: Sequence[float]

    @property
    def is_zero(self) -> bool:
        return not any(self.amounts)

    def own(self, level: int) -> float:
        """What a node of a level adds itself."""
        levels = self.measured.levels
        return self.amounts[levels.index(level)] if level in levels else 0.0

    def below(self, level: int) -> tuple[float, float]:
        """What a full node of a level adds with all below it, and what the last node does."""
        axis, full, last = self.measured.axis, 0.0, 0.0
        before = axis.nodes(level) - 1
        for at, amount in zip(self.measured.levels, self.amounts, strict=True):
            if at >= level:
                nodes = axis.branching ** (at - level)
                full += amount * nodes
                last += amount * (axis.nodes(at) - before * nodes)
        return full, last
