"""How much of each noisy number is in a prefix or a range, where levels of one tree are measured.

Least squares, level by level, makes of the sums y of the nodes of each measured level

    v = what level l and finer ones say of a node, weighted:  sum over k >= l of w_k y_k / W_l,
    x = v + (x of the parent - sum of v of all its children) / (number of these children)

with x = v at the root, where w_k is the weight of level k and W_l the sum of those from l on. So of
a query with the factors a on the nodes of a level, the part that differs from the mean of siblings
goes to v, and the mean goes to the parent; and what v gets goes to all levels below it. That is
exact for trees whose last nodes have fewer children too.

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

__all__ = ["MeasuredLevels"]

Floats: TypeAlias = "NDArray[np.float64]"
Moments: TypeAlias = tuple[Floats, Floats]
"""The sums of squared factors times variances, and of fourth powers times fourth cumulants."""

_AT_ONCE: Final = 1 << 16
"""Prefixes that are looked at together, which bounds the memory."""


@dataclass(frozen=True, slots=True)
class MeasuredLevels:
    """Levels of the tree of one axis, of which the sums of nodes are measured.

    Parameters
    ----------
    axis
        The cells.
    levels
        Which levels are measured, rising; the cells themselves are the last.
    weights
        For each a number in proportion to what its sums count: the cells of a full node over the
        variance of the noise.
    """

    axis: Axis
    levels: tuple[int, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = list(self.levels) == sorted({*self.levels})
        if not rising or not self.levels or self.levels[-1] != self.axis.height:
            raise ValueError("the cells are measured, and each level once")
        if len(self.weights) != len(self.levels) or min(self.weights) <= 0 or self.levels[0] < 0:
            raise ValueError("each level that is measured has a weight")

    def factors_of(self, start: int, stop: int) -> Iterator[Floats]:
        """What the sum of the cells from `start` to `stop` - 1 takes of the noisy numbers of each
        measured level.
        """
        axis, wanted = self.axis, np.zeros(self.axis.size)
        wanted[start:stop] = 1.0
        apart = [wanted] * (axis.height + 1)
        for level in range(axis.height, 0, -1):
            means = block_sums(wanted, 0, axis.branching) / self._children(level)
            apart[level] = wanted - self._below(means, level)
            wanted = means
        apart[0] = wanted
        heard, weights = self._heard, dict(zip(self.levels, self.weights, strict=True))
        told = apart[0] / heard[0]
        for level in range(axis.height + 1):
            if level:
                told = self._below(told, level) + apart[level] / heard[level]
            if level in weights:
                yield told * weights[level]

    def moments_of(
        self, start: int, stop: int, variances: Sequence[float], fourths: Sequence[float]
    ) -> tuple[float, float]:
        """The moments of the sum of the cells from `start` to `stop` - 1.

        Parameters
        ----------
        start, stop
            Which cells.
        variances, fourths
            Second and fourth cumulants of the noise of each measured level.
        """
        spread = fourth = 0.0
        for factors, v, f in zip(self.factors_of(start, stop), variances, fourths, strict=True):
            squares = factors * factors
            spread += v * float(squares.sum())
            fourth += f * float((squares * squares).sum())
        return spread, fourth

    def moments(self, variances: Sequence[float], fourths: Sequence[float]) -> Moments:
        """The moments of the sums of the first 1, 2, ... cells."""
        size = self.axis.size
        found = np.empty((2, size))
        for first in range(1, size, _AT_ONCE):
            ends = np.arange(first, min(size, first + _AT_ONCE))
            found[:, ends - 1] = self._of_prefixes(ends, variances, fourths)
        found[:, -1] = self.moments_of(0, size, variances, fourths)
        return found[0], found[1]

    @property
    def _heard(self) -> list[float]:
        """For each level the sum of the weights of it and of finer ones."""
        return [
            sum(w for at, w in zip(self.levels, self.weights, strict=True) if at >= level)
            for level in range(self.axis.height + 1)
        ]

    def _children(self, level: int) -> Floats:
        """For each node of the level above, how many children it has."""
        axis = self.axis
        parents = axis.nodes(level - 1)
        found = np.full(parents, float(axis.branching))
        found[-1] = axis.nodes(level) - (parents - 1) * axis.branching
        return found

    def _below(self, values: Floats, level: int) -> Floats:
        """Of each node of a level what its parent has."""
        return np.repeat(values, self.axis.branching)[: self.axis.nodes(level)]

    def _of_prefixes(
        self, ends: NDArray[np.int64], variances: Sequence[float], fourths: Sequence[float]
    ) -> Floats:
        """Of prefixes that take some cells and not all."""
        axis, heard = self.axis, self._heard
        second = _Power(self, [v * w**2 for v, w in zip(variances, self.weights, strict=True)])
        fourth = _Power(self, [f * w**4 for f, w in zip(fourths, self.weights, strict=True)])
        pulls = [np.zeros(ends.size)] * (axis.height + 1)
        for level in range(axis.height, 0, -1):
            before, few = self._place(ends, level)
            pulls[level - 1] = (before + pulls[level]) / few
        told = pulls[0] / heard[0]
        squares = told * told
        found = np.stack([second.own(0) * squares, fourth.own(0) * squares * squares])
        for level in range(1, axis.height + 1):
            before, few = self._place(ends, level)
            mean, parents = pulls[level - 1], ends // axis.width(level - 1)
            whole, none = told + (1.0 - mean) / heard[level], told - mean / heard[level]
            after = few - before - 1.0
            told = told + (pulls[level] - mean) / heard[level]
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

    measured: MeasuredLevels
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
