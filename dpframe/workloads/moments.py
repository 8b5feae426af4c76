"""The moments of prefixes and ranges, where levels of trees or tables are measured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.axes import Axis, block_sums

# The moments of prefixes and ranges of one tree, for any weights of its levels.
#
# In a query of cells, the differences from the mean of siblings are in the subspace of their level,
# and the means go on to the level above. A noisy sum of the nodes of a level hears of every
# subspace up to that level, each times a number that is given here.
#
# A prefix ends in one node of each level, and takes each of its siblings whole or not at all. So
# all nodes below a sibling have one factor, and the moments of all prefixes follow level by level
# from how many such nodes there are.

Floats: TypeAlias = "NDArray[np.float64]"
Moments: TypeAlias = tuple[Floats, Floats]
"""The sums of squared factors times variances, and of fourth powers times fourth cumulants."""

_AT_ONCE: Final = 1 << 16
"""Prefixes that are looked at together, which bounds the memory."""


@dataclass(frozen=True, slots=True)
class ToldLevels:
    """Noisy sums of the nodes of some levels, and what they count."""

    axis: Axis  # The cells
    # For each level from the root on, by what a query's part in its subspace is multiplied in the
    # noisy sums of that level and of finer ones.
    counts: tuple[float, ...]
    levels: tuple[int, ...]  # Which levels have noisy sums, rising
    # `seconds`, `fourths`: for each of them the second and fourth cumulant of what a node adds that
    # is taken once.
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
    """One moment of the noise of all nodes below one."""

    measured: ToldLevels  # The tree
    # For each measured level what a node adds whose numbers are all taken once.
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


# How much of each noisy number is in a prefix or a range, where levels of one tree are measured.
#
# Least squares, level by level, makes of the sums y of the nodes of each measured level
#
#     v is the weighted estimate of a node from level l and finer ones: sum over k >= l of w_k y_k /
#     W_l, x = v + (x of the parent - sum of v of all its children) / (number of these children)
#
# with x = v at the root, where w_k is the weight of level k and W_l the sum of those from l on.
# Take a query with the factors a on the nodes of a level. The part that differs from the mean of
# siblings goes to v, and the mean goes to the parent; the part of v goes to all levels below it.
# That is exact for trees whose last nodes have fewer children too.
#
# How much noise is in a prefix or a range of one group, where tables by several sets of columns and
# levels of one tree are measured.
#
# A noisy table by the columns C with the sums of a level is informative about every subspace of a
# set A of its columns and a level up to its own. Its weight there is relative to the sum of the
# weights of all informative tables. A number of a group by the columns S has in the subspace of A
# the factor
#
#     the product over A of (1 - 1/n, or -1/n where an entry differs from the group), over the
#     product of the n of the columns of S that are not in A,
#
# times what its prefix or range has there. So entries of C that differ from the group in the same
# columns of S have the same factors along the tree, which are those of `ToldLevels`.

Columns: TypeAlias = tuple[int, ...]
Cumulants: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MeasuredTables:
    """Noisy tables of the sums of runs of cells."""

    sizes: tuple[int, ...]  # How many values each column has
    axis: Axis  # The cells of each group
    # For each noisy table its columns, and the level of its runs.
    tables: tuple[tuple[Columns, int], ...]
    # For each a number in proportion to what its sums count: the finest cells, of the full tree,
    # that an entry stands for over the variance of its noise.
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.tables) or min(self.weights, default=0.0) <= 0:
            raise ValueError("each noisy table has a weight")
        if len(set(self.tables)) < len(self.tables):
            raise ValueError("each noisy table is measured once")
        known = range(len(self.sizes))
        for columns, level in self.tables:
            if any(i not in known for i in columns) or list(columns) != sorted({*columns}):
                raise ValueError("the columns of a noisy table must exist")
            if not 0 <= level <= self.axis.height:
                raise ValueError("a noisy table has runs of a level")

    def tells(self, kept: Columns) -> bool:
        """Whether all that a group by some columns needs is measured."""
        height, several = self.axis.height, {i for i in kept if self.sizes[i] > 1}
        return any(several <= {*columns} and level == height for columns, level in self.tables)

    def moments(
        self,
        kept: Columns,  # The columns
        # `variances`, `fourths`: second and fourth cumulants of the noise of each table.
        variances: Cumulants,
        fourths: Cumulants,
    ) -> Moments:
        """The moments of the sums of the first 1, 2, ... cells of a group by some columns."""
        spread, fourth = np.zeros(self.axis.size), np.zeros(self.axis.size)
        for told in self._levels(kept, variances, fourths):
            more = told.moments()
            spread += more[0]
            fourth += more[1]
        return spread, fourth

    def moments_of(
        self, kept: Columns, start: int, stop: int, variances: Cumulants, fourths: Cumulants
    ) -> tuple[float, float]:
        """The moments of the sum of the cells from `start` to `stop` - 1 of such a group."""
        moments = [told.moments_of(start, stop) for told in self._levels(kept, variances, fourths)]
        return math.fsum(v for v, _ in moments), math.fsum(f for _, f in moments)

    def _levels(
        self, kept: Columns, variances: Cumulants, fourths: Cumulants
    ) -> Iterator[ToldLevels]:
        """What each kind of entries counts: those of the same columns that differ from the group in
        the same ones.
        """
        for columns in dict.fromkeys(columns for columns, _ in self.tables):
            numbers = [n for n, table in enumerate(self.tables) if table[0] == columns]
            numbers.sort(key=lambda n: self.tables[n][1])
            levels = tuple(self.tables[n][1] for n in numbers)
            apart = math.prod(self.sizes[i] for i in columns if i not in kept)
            for counts, alike in self._counts(kept, columns):
                times = apart * alike
                yield ToldLevels(
                    self.axis,
                    counts,
                    levels,
                    tuple(times * variances[n] * self.weights[n] ** 2 for n in numbers),
                    tuple(times * fourths[n] * self.weights[n] ** 4 for n in numbers),
                )

    def _counts(self, kept: Columns, columns: Columns) -> Iterator[tuple[tuple[float, ...], int]]:
        """What each level counts in the entries that agree with the group in some of the columns
        and differ in others, and how many these are.
        """
        sizes, shared = self.sizes, [i for i in columns if i in kept]
        heard = {
            subset: self._heard(subset)
            for k in range(len(shared) + 1)
            for subset in itertools.combinations(shared, k)
        }
        for same in itertools.product((True, False), repeat=len(shared)):
            agree = dict(zip(shared, same, strict=True))
            alike = math.prod(1 if agree[i] else sizes[i] - 1 for i in shared)
            if not alike:
                continue
            counts = np.zeros(self.axis.height + 1)
            for subset, told in heard.items():
                own = math.prod((1.0 if agree[i] else 0.0) - 1.0 / sizes[i] for i in subset)
                counts += told * (own / math.prod(sizes[i] for i in kept if i not in subset))
            yield tuple(counts.tolist()), alike

    def _heard(self, subset: Columns) -> Floats:
        """For each level, one over the total weight of the tables with information on its
        subspace; 0 without any."""
        height = self.axis.height
        total = np.zeros(height + 1)
        for (columns, level), weight in zip(self.tables, self.weights, strict=True):
            if {*subset} <= {*columns}:
                total[: level + 1] += weight
        return np.divide(1.0, total, where=total > 0, out=np.zeros(height + 1))
