"""Noisy vectors: what is drawn, separately or jointly, and how far one individual moves it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.cells import Cells
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import RowCount, Statistic, UnitCount
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity, ScoreRange
from dpframe.errors import require
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import (
    AdditiveTask,
    Arch,
    MechanismTask,
    ResponseTask,
    SelectionTask,
    box_of,
)

# -- parts: the noisy vectors that a plan draws. Several outputs may share one part ---------------

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Table:
    """An exact table of integers that an engine computes."""

    statistic: Statistic  # The integer per group (and cell)
    cells: Cells | None = None  # A second public key, or None
    # The columns that its groups are by, by their numbers, where it is of one of several grouping
    # sets alone.
    kept: tuple[int, ...] | None = None

    def words(self) -> str:
        if self.cells is None:
            return self.statistic.words()
        return f"{self.statistic.words()} in {self.cells.words()}; {self.cells.rest}"


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """An exact table as it comes from an engine: only cells that are not empty."""

    # One entry per group and cell that has rows, sorted by group and cell. Without cells, one value
    # per group, and None for what needs no saying.
    groups: Integers | None
    cells: Integers | None
    values: Integers
    size: int  # The number of groups

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
        """How far one individual moves the vector (of scores, for selections), in `step`s. Raises
        `UnboundedSensitivity` when nothing limits it.
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

    def shape(self, groups: int, scope: QueryScope) -> tuple[int, int]:
        """The shape of its noisy numbers. `groups`: how many groups the query has."""
        cells = self.tables[0].cells
        return groups, 1 if cells is None else cells.size

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> MechanismTask:
        """What a mechanism must do to release it. `name`: the output, for messages. `sensitivity`:
        as `sensitivity` says. `mechanism`: ``"auto"``, or the name in the request. `scope`: the
        scope of the query.
        """
        return AdditiveTask(name, sensitivity, mechanism)

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
        return found if scope.parts == 1 else found.scale(Fraction(1, scope.parts))

    @property
    def step(self) -> Fraction:
        return self.table.statistic.step

    def entries(self, scope: QueryScope) -> int:
        groups = 1 if scope.entries is None else scope.entries
        return groups * (1 if self.table.cells is None else self.table.cells.size)

    def words(self) -> str:
        return self.table.words()


@dataclass(frozen=True, slots=True)
class Responses(Measurement):
    """How many rows report each cell, when every row reports on its own, under change-one adjacency
    and with no row dropped: then every row has a report and their number is public.
    """

    table: Table  # Rows per cell; its cells have one for all else, so that every row is in one

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
    def has_weights(self) -> bool:
        """Whether candidates stand for several points each, which only the exponential mechanism
        draws.
        """

    @property
    def rounds(self) -> int:
        """How many choices one row takes part in, one after another."""
        return 1

    @property
    def picks(self) -> int:
        """How many candidates come out in each group."""
        return self.rounds

    @property
    def first(self) -> Selection:
        """The choice that depends on no other."""
        return self

    def entries(self, scope: QueryScope) -> int:
        return 1 if scope.entries is None else scope.entries

    def shape(self, groups: int, scope: QueryScope) -> tuple[int, int]:
        return self.entries(scope), self.picks

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
            self.has_weights,
            self.candidates,
            found.is_shared(self.spread(scope).changed_groups),
        )


def counts_of(cells: Cells) -> Table:
    """How many rows, or individuals, are in each cell."""
    return Table(UnitCount() if cells.of_individuals else RowCount(), cells)


COUNT = Additive(Table(RowCount()))
"""The number of rows per group, shared by everything that needs it."""


# -- several sums of the same rows as one vector, so that one draw serves them all ----------------
# One row moves all of its group's sums at once, but not each by the most that it could. With c
# between lo and hi, and n the number of rows, the numbers n and 2 c - (lo + hi) n move by at most 1
# and hi - lo. Noise that covers just that set is less than noise that covers each sum on its own.


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How a sum follows from noisy numbers: sum(factor * number) / divisor, rounded."""

    factors: tuple[int, ...]  # One for each number
    divisor: int  # Above 0

    def of(self, noisy: Integers) -> tuple[Integers, Integers]:
        """The integers, rounded down, and where a half has to be rounded by a coin: 0 where it is
        clear, which is done already, 1 where it is not. `noisy`: of shape (groups, numbers).

        Notes
        -----
        Modulo 2**64 as the numbers are. Fractions are compared with a half in floats, which can
        take for a half what differs from it by less than 2**-45.
        """
        whole = np.zeros(noisy.shape[0], dtype=np.int64)
        part = np.zeros(noisy.shape[0], dtype=np.float64)
        for place, factor in enumerate(self.factors):
            if factor:
                common = math.gcd(factor, self.divisor)
                quotient, fraction = _ratio(
                    noisy[:, place], factor // common, self.divisor // common
                )
                whole += quotient
                part += fraction
        over = np.floor(part)
        whole += over.astype(np.int64)
        part -= over
        half = np.abs(part - 0.5) <= _HALF
        whole += ((part > 0.5) & ~half).astype(np.int64)
        return whole, half.astype(np.int64)


_HALF = 2.0**-45


def has_several(groups: int) -> bool:
    """Whether a row may leave one of this many groups for another."""
    return groups > 1


def _ratio(numbers: Integers, factor: int, divisor: int) -> tuple[Integers, np.ndarray]:
    """numbers * factor / divisor as integers and fractions in [0, 1)."""
    quotient, rest = np.divmod(numbers, np.int64(divisor))
    if divisor == 1:
        return quotient * np.int64(factor), np.zeros(numbers.size)
    if abs(factor) * divisor < 2**63:
        more, rest = np.divmod(rest * np.int64(factor), np.int64(divisor))
        return quotient * np.int64(factor) + more, rest / float(divisor)
    parts = [divmod(r * factor, divisor) for r in rest.tolist()]
    more = np.array([q for q, _ in parts], dtype=np.int64)
    return quotient * np.int64(factor) + more, np.array([r / divisor for _, r in parts])


@dataclass(frozen=True, slots=True)
class JointSums(Measurement):
    """Several sums of each group as one vector, so that one draw serves them all.

    The numbers that are drawn are integer combinations of sums: usually the number of rows n, and
    2 c - (lo + hi) n for a sum c of values in [lo, hi], or half of that where it is whole. The
    sums are rebuilt from the noisy numbers and rounded to the nearest integer.

    Guarantee
    ---------
    One row that comes or goes moves number j of one vector by at most its width w_j, all numbers
    at once. So r rows of one individual move the vectors of all groups by at most r boxes of
    these half-widths together; the norms follow (`dpframe.kernel.moves`). Noise for that is
    drawn from a discrete box at epsilon / r for each row, or is discrete Gaussian noise by L2.

    Proof
    -----
    A row adds (1, c) to the vector of its group, with c in [lo, hi] where it adds a value and 0
    where that is null; lo <= 0 <= hi, so 2 c - (lo + hi) lies in [lo - hi, hi - lo] in either case.
    Rows are added one after another, and boxes add up. Under change-one adjacency a row leaves one
    vector for another, each by at most its box, or stays in its own and moves number j by at most
    t_j, or comes, or goes. For a row that stays it is known which numbers move together
    (`conditions`). A number of rows does not move, as the row is there before and after. A number
    of values, and a sum of the same expression, move only where that has a value, since both skip
    the rows where it is null or NaN. The rebuilt and rounded numbers are computed from noisy
    numbers alone.

    *Arches.* Values are placed on a grid at s of -h to h, and their squares at 2 u - Q with s**2 /
    h**2 <= u / Q <= 1 (`grid_of_squares`), made of the very column of places that is added up
    (`row_columns`); a row is counted wherever it has a place. So over their widths 1, h and Q it
    adds (1, x, y) with 2 x**2 - 1 <= y <= 1, or (1, 0, 0) where it is counted and has no value, or
    nothing: all in the hull of the arch (`dpframe.samplers.box`) and its mirror image.
    """

    sums: tuple[Table, ...]  # The exact tables, without cells
    matrix: tuple[tuple[int, ...], ...]  # For each number that is drawn its factors of the tables
    # By how much a row that comes or goes, or one that stays and changes, moves each number.
    widths: tuple[int, ...]
    turned: tuple[int, ...]
    # Of rows that change: what one needs to move each number, and by how much it does where it
    # meets that before and after; nothing where each number is one on its own.
    conditions: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    # The places of numbers that are a count of values, their sum, and the sum of their squares.
    arches: tuple[Arch, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.sums

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.sums[0].statistic.spread(scope)

    def node(self, scope: QueryScope) -> kernel.Vector:
        places = tuple(map(scope.rules.place, self.sums))
        return kernel.Vector(places, self.matrix, self._columns(scope), 1, total=False)

    def _columns(self, scope: QueryScope) -> tuple[int, ...]:
        """The key columns of each vector, by their numbers."""
        return scope.rules.columns(None)

    def groups(self, scope: QueryScope) -> int:
        """How many vectors there are."""
        return 1 if scope.entries is None else scope.entries

    @property
    def step(self) -> Fraction:
        return Fraction(1)

    def entries(self, scope: QueryScope) -> int:
        return self.groups(scope) * len(self.widths)

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> AdditiveTask:
        box = None
        if mechanism == "auto":
            about = self.widths, self.turned, self.spread(scope)
            box = box_of(*about, has_several(self.groups(scope)), self.arches)
        return AdditiveTask(name, sensitivity, mechanism, box)

    def words(self) -> str:
        return "together: " + "; ".join(table.words() for table in self.sums)


# -- the weight of a private choice's error relative to a count's ---------------------------------

_LN2 = Fraction(693, 1000)


def choice_impact(candidates: int) -> Fraction:
    """The square of ln(candidates) / sqrt(2), at least 1.

    The chosen score is about ln(candidates) ranges over epsilon below the best (McSherry & Talwar
    2007, Theorem 7). The error of a count is sqrt(2) times its sensitivity over epsilon. Both are
    relative to the number of rows. Logarithms are taken in whole bits, the same everywhere.
    """
    logarithm = (candidates - 1).bit_length() * _LN2
    return max(Fraction(1), logarithm * logarithm / 2)
