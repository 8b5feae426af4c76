"""Sums of the cells of each group, and those of neighbours: one level of a tree of cells."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from dpframe.aggregates.measurement import Measurement, Table
from dpframe.aggregates.request import QueryScope
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.errors import require
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import AdditiveTask
from dpframe.workloads import Axis

__all__ = ["CellSums", "LevelSums", "LevelSumsWithTotal", "run_words"]


@dataclass(frozen=True, slots=True)
class CellSums(Measurement):
    """Sums of the cells of each group with public whole factors.

    Parameters
    ----------
    table
        The table of cells.
    """

    table: Table

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers each group has."""

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.table,)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.table.statistic.spread(scope)

    def entries(self, scope: QueryScope) -> int:
        return (1 if scope.entries is None else scope.entries) * self.numbers

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> AdditiveTask:
        return AdditiveTask(name, sensitivity, mechanism)


@dataclass(frozen=True, slots=True)
class LevelSums(CellSums):
    """The sums of an exact table over runs of neighbouring cells of each group.

    Guarantee
    ---------
    The sensitivities of a histogram whose bins are the runs.

    Proof
    -----
    A row is in one cell of a group at most, and a cell is in one run. So the sums are over
    disjoint sets of rows, and the rule for such sums holds, with as many entries as there are
    runs. A row may be in no cell, so that one that changes may leave the only run. Integers that
    overflow wrap, and noise is added modulo 2**64, so distances stay what they were.

    Parameters
    ----------
    branching
        How many children a node of the tree of cells has.
    level
        The level of the runs; 0 has one run of all cells.
    """

    branching: int
    level: int

    @property
    def axis(self) -> Axis:
        """The tree."""
        assert self.table.cells is not None
        return Axis.ordered(self.table.cells.size, self.branching)

    @property
    def nodes(self) -> int:
        """How many runs there are."""
        return self.axis.nodes(self.level)

    @property
    def numbers(self) -> int:
        return self.nodes

    def node(self, scope: QueryScope) -> kernel.Vector:
        place, kept = scope.rules.place(self.table), scope.rules.columns(None)
        run = min(self.axis.width(self.level), self.axis.size)
        return kernel.Vector((place,), ((1,),), kept, run, self._has_total)

    @property
    def _has_total(self) -> bool:
        return False

    @property
    def step(self) -> Fraction:
        return self.table.statistic.step

    def words(self) -> str:
        return f"{self.table.words()}; {run_words(self.axis, self.level)}"


@dataclass(frozen=True, slots=True)
class LevelSumsWithTotal(LevelSums):
    """The sums of runs of one group, where rows change, and the sum of all of them after these.

    Guarantee
    ---------
    The sensitivities of the sums of runs: L1 = 2 k, L2 = sqrt(2) k, Linf = k for k rows.

    Proof
    -----
    A row that changes may leave one run for another and not move the total. Or it leaves all
    runs, or enters one, and moves one run and the total by 1. The rows
    are not in several groups, so none moves the total of another one.
    """

    @property
    def numbers(self) -> int:
        return self.nodes + 1

    @property
    def _has_total(self) -> bool:
        return True

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        require(scope.entries in (None, 1), "rows of one group move one total")
        return Measurement.sensitivity(self, scope)

    def words(self) -> str:
        return f"{super(LevelSumsWithTotal, self).words()}, and all of them together"


def run_words(axis: Axis, level: int) -> str:
    """Which runs a level has, in a plan."""
    width = axis.width(level)
    if width >= axis.size:
        return "all of them together"
    return "each by itself" if width == 1 else f"sums of {width} neighbours each"
