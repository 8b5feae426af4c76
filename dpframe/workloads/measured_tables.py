"""How much noise is in a prefix or a range of one group, where tables by several sets of columns
and levels of one tree are measured.

A noisy table by the columns C with the sums of a level is informative about every subspace of a
set A of its columns and a level up to its own. Its weight there is relative to the sum of the
weights of all informative tables. A number of a group by the columns S has in the subspace of A
the factor

    the product over A of (1 - 1/n, or -1/n where an entry differs from the group), over the
    product of the n of the columns of S that are not in A,

times what its prefix or range has there. So entries of C that differ from the group in the same
columns of S have the same factors along the tree, which are those of `ToldLevels`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.axes import Axis
from dpframe.workloads.told_levels import Moments, ToldLevels

Floats: TypeAlias = "NDArray[np.float64]"
Columns: TypeAlias = tuple[int, ...]
Cumulants: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MeasuredTables:
    """Noisy tables of the sums of runs of cells.

    Parameters
    ----------
    sizes
        How many values each column has.
    axis
        The cells of each group.
    tables
        For each noisy table its columns, and the level of its runs.
    weights
        For each a number in proportion to what its sums count: the finest cells, of the full tree,
        that an entry stands for over the variance of its noise.
    """

    sizes: tuple[int, ...]
    axis: Axis
    tables: tuple[tuple[Columns, int], ...]
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

    def moments(self, kept: Columns, variances: Cumulants, fourths: Cumulants) -> Moments:
        """The moments of the sums of the first 1, 2, ... cells of a group by some columns.

        Parameters
        ----------
        kept
            The columns.
        variances, fourths
            Second and fourth cumulants of the noise of each table.
        """
        spread, fourth = np.zeros(self.axis.size), np.zeros(self.axis.size)
        for told in self._told(kept, variances, fourths):
            more = told.moments()
            spread += more[0]
            fourth += more[1]
        return spread, fourth

    def moments_of(
        self, kept: Columns, start: int, stop: int, variances: Cumulants, fourths: Cumulants
    ) -> tuple[float, float]:
        """The moments of the sum of the cells from `start` to `stop` - 1 of such a group."""
        found = [told.moments_of(start, stop) for told in self._told(kept, variances, fourths)]
        return math.fsum(v for v, _ in found), math.fsum(f for _, f in found)

    def _told(
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
