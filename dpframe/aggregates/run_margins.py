"""Margins of runs of cells: levels of distribution functions, by fewer columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpframe.aggregates.level_sums import run_words
from dpframe.aggregates.margins import Margin, MarginWithTotal, by_words
from dpframe.errors import require
from dpframe.workloads import Axis

__all__ = ["RunMargin", "RunMarginWithTotal"]


@dataclass(frozen=True, slots=True)
class RunMargin(Margin):
    """The sums of an exact table over runs of neighbouring cells, by some of the columns of
    grouping sets.

    Guarantee
    ---------
    The sensitivities of a margin of a histogram whose bins are the runs.

    Proof
    -----
    A row is in one cell of a finest group at most, and a cell is in one run. So the sums of runs by
    some columns are sums over disjoint sets of rows, and what limits an individual's rows there is
    what limits them in a margin by these columns. Integers that overflow wrap, and noise is added
    modulo 2**64, so distances stay what they were.

    Parameters
    ----------
    branching
        How many children a node of the tree of cells has.
    level
        The level of the runs.
    """

    branching: int
    level: int

    def __post_init__(self) -> None:
        require(self.kept[-1:] == (len(self.sizes) - 1,), "a table of runs keeps its cells")

    @property
    def axis(self) -> Axis:
        """The tree."""
        return Axis.ordered(self.sizes[-1], self.branching)

    @property
    def _run(self) -> int:
        return min(self.axis.width(self.level), self.sizes[-1])

    @property
    def _groups(self) -> int:
        return math.prod(self.sizes[i] for i in self._columns) * self.axis.nodes(self.level)

    def words(self) -> str:
        runs = run_words(self.axis, self.level)
        return f"{self.table.words()}; {runs}, {by_words(self.by[:-1])}"


@dataclass(frozen=True, slots=True)
class RunMarginWithTotal(MarginWithTotal, RunMargin):
    """A margin of runs with the sum of all its entries after them, where rows change.

    Guarantee
    ---------
    The sensitivities of the margin of runs: L1 = 2 k, L2 = sqrt(2) k, Linf = k for k rows.

    Proof
    -----
    The sensitivity of a margin with its total. A row that changes may leave one run for another
    and not move the total. Or it leaves all runs, or enters one, and moves one run and the total
    by 1.
    """
