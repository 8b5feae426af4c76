"""Parts: the noisy vectors that a plan draws. Several outputs may share one part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.cells import Cells
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import RowCount, Statistic
from dpframe.aggregates.unit_statistics import UnitCount
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.score_range import ScoreRange
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.errors import require
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import AdditiveTask, MechanismTask, ResponseTask, SelectionTask

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Table:
    """An exact table of integers that an engine computes.

    Parameters
    ----------
    statistic
        The integer per group (and cell).
    cells
        A second public key, or None.
    kept
        The columns that its groups are by, by their numbers, where it is of one of several grouping
        sets alone.
    """

    statistic: Statistic
    cells: Cells | None = None
    kept: tuple[int, ...] | None = None

    def words(self) -> str:
        if self.cells is None:
            return self.statistic.words()
        return f"{self.statistic.words()} in {self.cells.words()}; {self.cells.rest}"


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """An exact table as it comes from an engine: only cells that are not empty.

    Parameters
    ----------
    groups, cells, values
        One entry per group and cell that has rows, sorted by group and cell. Without cells, one
        value per group, and None for what needs no saying.
    size
        The number of groups.
    """

    groups: Integers | None
    cells: Integers | None
    values: Integers
    size: int

    @classmethod
    def of_groups(cls, groups: Integers, values: Integers, size: int) -> CellCounts:
        """A table without cells, from groups in any order."""
        seen = np.zeros(size, dtype=np.bool_)
        seen[groups] = True
        dense = np.zeros(size, dtype=np.int64)
        if np.count_nonzero(seen) == len(groups):  # each group is there once
            dense[groups] = values
        else:  # an engine split a group
            np.add.at(dense, groups, values)
        return cls(None, None, dense, size)

    @classmethod
    def of_cells(cls, groups: Integers, cells: Integers, values: Integers, size: int) -> CellCounts:
        """A table with cells, from entries in any order; those of one group and cell add up."""
        span = int(cells.max(initial=0)) + 1
        require(size * span < 2**63, "numbers of groups and cells fit in 64 bits")
        place = groups * span + cells
        order = np.argsort(place)
        groups, cells, values = groups[order], cells[order], values[order]
        first = np.diff(place[order], prepend=-1) != 0
        if not first.all():  # an engine split a group
            values = np.add.reduceat(values, np.flatnonzero(first))
            groups, cells = groups[first], cells[first]
        return cls(groups, cells, values, size)

    def offsets(self, first: int, end: int) -> Integers:
        """Where the entries of each group from `first` to `end` - 1 begin, and where they end."""
        assert self.groups is not None
        return np.searchsorted(self.groups, np.arange(first, end + 1))

    def dense(self, cells: int, first: int = 0, end: int | None = None) -> Integers:
        """Groups from `first` to `end` - 1 and all cells, zeros included; shape (groups, cells)."""
        last = self.size if end is None else end
        if self.groups is None or self.cells is None:
            return self.values[first:last].reshape(-1, 1)
        table = np.zeros((last - first, cells), dtype=np.int64)
        lo, hi = np.searchsorted(self.groups, [first, last])
        table[self.groups[lo:hi] - first, self.cells[lo:hi]] = self.values[lo:hi]
        return table


class Measurement(ABC):
    """One vector that gets its own noise or its own private selection."""

    __slots__ = ()

    @property
    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """The exact tables that it is made of."""

    @abstractmethod
    def node(self, scope: QueryScope) -> kernel.What:
        """The same as the kernel has it, with the places that `scope.rules` gives to tables."""

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        """How far one individual moves the vector (of scores, for selections), in `step`s.

        Raises
        ------
        UnboundedSensitivity
            When nothing limits it.
        """
        self.spread(scope)  # refuses what has no limits, in the words of the query
        return scope.rules.sensitivity(self, lambda: self.node(scope))

    def spread(self, scope: QueryScope) -> ContributionBounds:
        """How many contributions one individual may make, and in how many groups."""
        return scope.spread

    @property
    @abstractmethod
    def step(self) -> Fraction:
        """The value of 1 in the result's units."""

    @abstractmethod
    def entries(self, scope: QueryScope) -> int:
        """How many numbers, or selections, are released."""

    @abstractmethod
    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> MechanismTask:
        """What a mechanism must do to release it.

        Parameters
        ----------
        name
            The output, for messages.
        sensitivity
            As `sensitivity` says.
        mechanism
            The request: ``"auto"`` or a name.
        scope
            The scope of the query.
        """

    @abstractmethod
    def words(self) -> str:
        """What it holds, in a plan."""


@dataclass(frozen=True, slots=True)
class Additive(Measurement):
    """A vector of sums over disjoint sets of rows: one entry per group, or per group and cell."""

    table: Table

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.table,)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.table.statistic.spread(scope)

    def node(self, scope: QueryScope) -> kernel.Vector:
        place, kept = scope.rules.place(self.table), scope.rules.columns(self.table.kept)
        return kernel.Vector((place,), ((1,),), kept, 1, total=False)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        found = Measurement.sensitivity(self, scope)
        return found if scope.parts == 1 else found.scaled(Fraction(1, scope.parts))

    @property
    def step(self) -> Fraction:
        return self.table.statistic.step

    def entries(self, scope: QueryScope) -> int:
        groups = 1 if scope.entries is None else scope.entries
        return groups * (1 if self.table.cells is None else self.table.cells.size)

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> AdditiveTask:
        return AdditiveTask(name, sensitivity, mechanism)

    def words(self) -> str:
        return self.table.words()


@dataclass(frozen=True, slots=True)
class Responses(Measurement):
    """How many rows report each cell, when every row reports on its own, under change-one adjacency
    and with no row dropped: then every row has a report and their number is public.

    Parameters
    ----------
    table
        Rows per cell; its cells have one for all else, so that every row is in one.
    """

    table: Table

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.table,)

    @property
    def categories(self) -> int:
        assert self.table.cells is not None
        return self.table.cells.size

    def node(self, scope: QueryScope) -> kernel.Reports:
        return kernel.Reports(scope.rules.place(self.table))

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        return Additive(self.table).sensitivity(scope)

    @property
    def step(self) -> Fraction:
        return Fraction(1)

    def entries(self, scope: QueryScope) -> int:
        return self.categories

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> ResponseTask:
        return ResponseTask(name, sensitivity, self.categories, scope.spread.tight[0])

    def words(self) -> str:
        return f"responses of every row: {self.table.words()}"


class Selection(Measurement):
    """A private choice among public candidates, in each group."""

    __slots__ = ()

    def score_range(self, scope: QueryScope) -> ScoreRange:
        """The range of score changes, for the mechanism."""
        self.spread(scope)
        return scope.rules.score_range(self, lambda: self.node(scope))

    @property
    @abstractmethod
    def candidates(self) -> int:
        """How many candidates there are, weighted ones counted by their weight."""

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """Whether candidates stand for several points each, which only the exponential mechanism
        draws.
        """

    @property
    def rounds(self) -> int:
        """How many choices one row takes part in, one after another."""
        return 1

    @property
    def chosen(self) -> int:
        """How many candidates come out in each group."""
        return self.rounds

    @property
    def first(self) -> Selection:
        """The choice that depends on no other."""
        return self

    def entries(self, scope: QueryScope) -> int:
        return 1 if scope.entries is None else scope.entries

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> SelectionTask:
        found = self.score_range(scope)
        return SelectionTask(
            name,
            sensitivity,
            found,
            mechanism,
            self.rounds,
            self.weighted,
            self.candidates,
            found.is_shared(self.spread(scope).touched),
        )


def counted(cells: Cells) -> Table:
    """How many rows, or individuals, are in each cell."""
    return Table(UnitCount() if cells.of_individuals else RowCount(), cells)


COUNT = Additive(Table(RowCount()))
"""The number of rows per group, shared by everything that needs it."""
