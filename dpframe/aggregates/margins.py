"""Sums of groups and of runs of cells: margins of grouping sets, levels of trees, running sums."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Self

from dpframe.aggregates.cells import BinCells, Cells, UpToCells
from dpframe.aggregates.measurement import JointSums, Measurement, Table
from dpframe.aggregates.request import QueryScope
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity
from dpframe.core.units import Identifier
from dpframe.errors import require
from dpframe.frames.contributions import spread_of
from dpframe.frames.groups import SetGroups
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import AdditiveTask
from dpframe.workloads import (
    Axis,
    Degree,
    Factor,
    Part,
    RootPrefixes,
    Strategy,
    Wanted,
    Workload,
    best_tables,
    best_tables_with_total,
    tables,
    tables_with_total,
)
from dpframe.workloads.running import coefficients

# -- margins: sums of one exact table over some of its columns, with noise of their own -----------


@dataclass(frozen=True, slots=True)
class Margin(Measurement):
    """The sums of an exact table over all columns of grouping sets but some, and over the cells of
    a histogram where these are not among them.

    Guarantee
    ---------
    The sensitivities of the same sums grouped by those columns alone, with no more rows: those
    whose other columns have listed values too.

    Proof
    -----
    The table's entries are sums over disjoint sets of rows, one for each combination of listed
    values. A margin adds up those that agree in some columns, so its entries are sums over disjoint
    sets of rows again, and the rule for such sums holds. Limits on an individual's rows in groups
    by the columns of the margin hold for these rows, which are some of them. Limits in the finest
    groups hold for all together: no more groups by fewer columns, no more rows in all, and no
    more rows in a group than in all. A statistic of individuals has one contribution of each in a
    finest group, so no more of them in a group of the margin than that has finest ones. Cells of
    a histogram are disjoint sets of rows as well: a margin with them is a histogram by its
    columns, and one without them counts the rows that are in any. Integers that overflow wrap,
    and noise is added modulo 2**64, so distances stay what they were.
    """

    table: Table  # The table of the finest groups
    sizes: tuple[int, ...]  # How many values each of its columns has, and how many cells there are
    kept: tuple[int, ...]  # The columns of the margin, by their numbers
    by: tuple[str, ...]  # Their names

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.table,)

    @property
    def cells(self) -> int:
        """How many cells a finest group has."""
        return 1 if self.table.cells is None else self.table.cells.size

    @property
    def _columns(self) -> tuple[int, ...]:
        """The columns of the margin that are no cells."""
        return self.kept[:-1] if self._keeps_cells else self.kept

    @property
    def _keeps_cells(self) -> bool:
        return self.table.cells is not None and len(self.sizes) - 1 in self.kept

    def spread(self, scope: QueryScope) -> ContributionBounds:
        groups = scope.groups
        assert isinstance(groups, SetGroups)
        finest = self.table.statistic.spread(scope)
        if len(self._columns) == len(groups.sizes):
            return finest
        rows, in_groups, _ = finest.tight
        if not isinstance(scope.facts.unit, Identifier):  # whose rows may be in any groups
            return finest
        here = spread_of(scope.facts, groups.margin(self._columns))
        most = here.per_group
        if self.table.statistic.of_individuals:
            merged = math.prod(n for i, n in enumerate(groups.sizes) if i not in self._columns)
            most = merged if most is None else min(most, merged)
        return ContributionBounds(
            rows if here.rows is None else min(rows, here.rows),
            in_groups if here.groups is None else min(in_groups, here.groups),
            most,
            finest.changes,
        )

    def node(self, scope: QueryScope) -> kernel.Vector:
        place = scope.rules.place(self.table)
        return kernel.Vector((place,), ((1,),), self._columns, self._run, self._has_total)

    @property
    def _run(self) -> int:
        """How many neighbouring cells are added up; 0 for all."""
        return 0 if self.table.cells is not None and not self._keeps_cells else 1

    @property
    def _has_total(self) -> bool:
        return False

    @property
    def step(self) -> Fraction:
        return self.table.statistic.step

    def entries(self, scope: QueryScope) -> int:
        return self._groups

    @property
    def _groups(self) -> int:
        """How many sums there are."""
        return math.prod(self.sizes[i] for i in self.kept)

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> AdditiveTask:
        return AdditiveTask(name, sensitivity, mechanism)

    def words(self) -> str:
        together = "" if self.table.cells is None or self._keeps_cells else ", together"
        merged = len(self._columns) < len(self.sizes) - (self.table.cells is not None)
        if merged and self.table.statistic.of_individuals:
            together = ", one row for each of the finest groups that an individual is in"
        return f"{self.table.words()}{together}, {by_words(self.by)}"


@dataclass(frozen=True, slots=True)
class MarginWithTotal(Margin):
    """A margin with the sum of all its entries after them, where rows change and add numbers of one
    sign.

    Guarantee
    ---------
    The sensitivities of the margin: L1 = 2 k b, L2 = sqrt(2) k b, Linf = k b for k rows that add up
    to b each.

    Proof
    -----
    A row that changes moves b from one entry to another at most, and does not move the total. Or
    it leaves the entries, or enters one of them, and moves one entry and the total by at most b.
    """

    @property
    def _has_total(self) -> bool:
        return True

    def entries(self, scope: QueryScope) -> int:
        return super(MarginWithTotal, self).entries(scope) + 1

    def words(self) -> str:
        return f"{super(MarginWithTotal, self).words()}, and of all groups together"


def by_words(names: tuple[str, ...]) -> str:
    """By which columns, in a plan."""
    return f"by {' and '.join(names)}" if names else "of all groups together"


# -- sums of the cells of each group, and those of neighbours: one level of a tree of cells -------


@dataclass(frozen=True, slots=True)
class CellSums(Measurement):
    """Sums of the cells of each group with public whole factors."""

    table: Table  # The table of cells

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
    """

    branching: int  # How many children a node of the tree of cells has
    level: int  # The level of the runs; 0 has one run of all cells

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


# -- margins of runs of cells: levels of distribution functions, by fewer columns -----------------


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
    """

    branching: int  # How many children a node of the tree of cells has
    level: int  # The level of the runs

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


# -- sums of cells with public factors, one up to each cell, for distribution functions -----------


@dataclass(frozen=True, slots=True)
class RootSums(CellSums):
    """For each cell of a group the sum of it and all cells before it, whose k-th last counts
    binom(2k, k) / 4^k, in whole parts of 2^16: the square root factorisation of a distribution
    function.

    Guarantee
    ---------
    With w the whole factors, P their sum and S that of their squares. Add-remove, at most r rows,
    m of them in a group, whose numbers in groups have at most the sum of squares q: L1 = r P,
    L2 = sqrt(q S), Linf = m w_0. Change-one, k rows, in one group: k times the largest norms of a
    column, or of the difference of two columns; in several groups L1 = 2 k P, L2 = k sqrt(2 S),
    Linf = k w_0.

    Proof
    -----
    A row is in one cell of one group at most and adds the column of the cell. Columns are parts of
    the first one, moved down, so no norm is larger than that of the first (`RootPrefixes`). The
    sum of the columns of m rows in one group has at most m times the norm. Groups are disjoint,
    so their squares add up; m rows in the first cell attain it. A row that changes leaves one
    column for another, or one of them is missing; in several groups the two may be in different
    groups. k rows: the triangle inequality. Integers that overflow wrap, and noise is added
    modulo 2**64, so distances stay what they were.
    """

    @property
    def root(self) -> RootPrefixes:
        """The factorisation."""
        assert self.table.cells is not None
        return RootPrefixes(self.table.cells.size)

    @property
    def numbers(self) -> int:
        return self.root.cells

    def node(self, scope: QueryScope) -> kernel.Running:
        return kernel.Running(scope.rules.place(self.table), tuple(coefficients(self.numbers)))

    @property
    def step(self) -> Fraction:
        return Fraction(1, self.root.unit)

    def words(self) -> str:
        return (
            f"{self.table.words()}; for each of them a sum of it and all before, of which the k-th "
            "last counts binom(2k, k) / 4^k, in whole parts of 2^16 (square root factorisation)"
        )


# -- which levels of a tree of cells to measure for a distribution function, and at which shares --


@lru_cache(maxsize=64)
def best_levels(
    cells: int, degree: Degree, of_all: Fraction, has_free_total: bool = False
) -> Strategy:
    """What to measure of this many cells: sums of nodes of levels of the best tree, or the cells
    alone where that has no larger error. `cells`: how many there are. `degree`: 2 where an epsilon
    is shared, 1 where a rho is. `of_all`: the square of how far one individual moves the sum of all
    cells, in the norm that noise is scaled to, relative to that of several sums. `has_free_total`:
    whether that sum may be one number more of a level, at no further cost.
    """
    wanted = (Wanted(("prefixes",)),)
    axis = Axis.ordered(cells, max(2, cells))
    alone = Part((Factor(axis, axis.height),))
    plain = Strategy(
        Workload((axis,), wanted), (alone,), (Fraction(1),), (_norm(alone, of_all),), degree
    )
    workload = Workload((Axis.ordered(cells),), wanted)
    found = best_tables(workload, degree, lambda part: _norm(part, of_all))
    least = plain if plain.objective() <= found.objective() else found
    if not has_free_total or cells < 2:
        return least
    for one in (plain.workload, workload):
        made = _with_total(one, degree, of_all)
        if made is not None and made.objective() < least.objective():
            least = made.in_order()
    return least


def _with_total(workload: Workload, degree: Degree, of_all: Fraction) -> Strategy | None:
    """The best levels for cells together with a level that holds the sum of all cells."""

    def norm(part: Part) -> Fraction:
        return _norm(part, of_all)

    (axis,) = workload.axes
    if axis.branching < axis.size or axis.size == 2:
        return best_tables_with_total(workload, degree, norm)
    return tables_with_total(workload, degree, norm, tables(workload, degree, norm))


def _norm(part: Part, of_all: Fraction) -> Fraction:
    return of_all if part.entries == 1 else Fraction(1)


def levels_of(strategy: Strategy) -> tuple[int, ...]:
    """The levels that are measured."""
    return tuple(part.levels[0] for part in strategy.parts)


def weights_of(strategy: Strategy) -> tuple[Fraction, ...]:
    """What a sum of each level counts in least squares, in proportion."""
    (axis,) = strategy.workload.axes
    return tuple(
        axis.width(level) * share**strategy.degree / norm
        for level, share, norm in zip(
            levels_of(strategy), strategy.shares, strategy.norms, strict=True
        )
    )


def strategy_words(strategy: Strategy, cells: str = "steps") -> str:
    """What is measured, at which shares, in a plan; `cells` is what they are there."""
    (axis,) = strategy.workload.axes
    kind = "rho" if strategy.degree == 1 else "epsilon"
    if len(strategy.parts) == 1:
        return f"added up from noisy counts of its {cells}"
    paid = list(zip(levels_of(strategy), strategy.shares, strict=True))
    if strategy.total is not None:
        del paid[strategy.total]
    total = sum((share for _, share in paid), Fraction(0))
    shown = [
        f"{run_words(axis, level)} ({float(100 * share / total):.0f}% of the {kind})"
        for level, share in reversed(paid)
    ]
    if strategy.total is not None:
        shown.append("all of them together, which no row that changes moves further, at no cost")
    return f"rebuilt by least squares from noisy counts of its {cells}: {', '.join(shown)}"


# -- several sums of one margin of grouping sets as one vector, so that one draw serves them all --


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMargins(JointSums):
    """Several sums of each group of a margin as one vector, so that one draw serves them all.

    Guarantee
    ---------
    The sensitivity of several sums as one vector (`JointSums`), grouped by the columns of the
    margin alone. A row that comes or goes moves the vector of one of its groups within the box of
    the widths, and an individual moves at most as many boxes as the margin has rows of it.

    Proof
    -----
    A margin of a vector of sums is the vector of their margins, because both are linear. Entry by
    entry it adds up disjoint sets of rows, so each row is in one entry of the margin and adds to
    it what it adds to its finest group. The number of rows and groups of one individual there is
    the same for all sums of the vector, and follows from `Margin` for each.
    """

    # The margin: sizes, the numbers of its columns and their names, as `Margin` has them.
    sizes: tuple[int, ...]
    columns: tuple[int, ...]
    by: tuple[str, ...]

    @classmethod
    def of(cls, joint: JointSums, margin: Margin) -> Self:
        """The sums by the columns of a margin."""
        own = {field.name: getattr(joint, field.name) for field in fields(JointSums)}
        return cls(**own, sizes=margin.sizes, columns=margin.kept, by=margin.by)

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The margin of each sum."""
        return tuple(Margin(table, self.sizes, self.columns, self.by) for table in self.sums)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.margins[0].spread(scope)

    def _columns(self, scope: QueryScope) -> tuple[int, ...]:
        return self.columns

    def groups(self, scope: QueryScope) -> int:
        return self.margins[0].entries(scope)

    def words(self) -> str:
        return "together: " + "; ".join(margin.words() for margin in self.margins)


# -- the axes of tables by grouping sets ----------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class SetAxes:
    """The axes of the tables that one aggregate is made of."""

    groups: SetGroups  # The grouping sets
    cells: Cells | None = None  # What each group is divided into, in every set; None for one number

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each axis has."""
        sizes = self.groups.sizes
        return sizes if self.cells is None else (*sizes, self.cells.size)

    @property
    def width(self) -> int:
        """How many numbers a group has."""
        return 1 if self.cells is None else self.cells.size

    @property
    def names(self) -> tuple[str, ...]:
        """What each axis is called in plans."""
        names = tuple(self.groups.names)
        if self.cells is None:
            return names
        if isinstance(self.cells, UpToCells):
            return (*names, "step")
        return (*names, "bin" if isinstance(self.cells, BinCells) else "category")

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The axes of each set's table, by their numbers."""
        if self.cells is None:
            return self.groups.sets
        last = len(self.groups.sizes)
        return tuple((*kept, last) for kept in self.groups.sets)

    @property
    def kept(self) -> list[tuple[bool, ...]]:
        """For each set whether its table has each axis."""
        axes = range(len(self.sizes))
        return [tuple(i in kept for i in axes) for kept in self.sets]

    @property
    def everything(self) -> tuple[int, ...]:
        """The numbers of all axes."""
        return tuple(range(len(self.sizes)))

    def margin(self, table: Table, kept: tuple[int, ...]) -> Margin:
        """The sums of a table over all axes but those."""
        return Margin(table, self.sizes, kept, tuple(self.names[i] for i in kept))

    def measured(self, table: Table, part: Part) -> Margin:
        """The sums of a table that a part of a strategy is, of runs of cells where it has such."""
        margin, last = self.margin(table, columns_of(part)), part.factors[-1]
        if not last.axis.is_ordered or last.level in (0, last.axis.height):
            return margin
        about = margin.table, margin.sizes, margin.kept, margin.by
        return RunMargin(*about, last.axis.branching, last.level)


def columns_of(part: Part) -> tuple[int, ...]:
    """The axes that a part is a table of, by their numbers."""
    return tuple(i for i, level in enumerate(part.levels) if level)
