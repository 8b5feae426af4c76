"""Sums of groups and of runs of cells: margins of grouping sets, levels of trees, running sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Self

from dpframe.aggregates.aggregate import MeasurementUse
from dpframe.aggregates.cells import BinCells, Cells, UpToCells
from dpframe.aggregates.measurement import JointSums, Measurement, Table
from dpframe.aggregates.request import QueryScope
from dpframe.core.exact import dyadic_down
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity
from dpframe.core.tree import Forms
from dpframe.core.units import Identifier
from dpframe.errors import require
from dpframe.frames.contributions import spread_of
from dpframe.frames.groups import SetGroups
from dpframe.kernel import plan as kernel
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
from dpframe.workloads.prefix_sums import coefficients

# -- margins: sums of one exact table by some of its columns and by runs of its cells, with noise -


@dataclass(frozen=True, slots=True)
class Margin(Measurement):
    """The sums of an exact table over all columns of grouping sets but some, over runs of
    neighbouring cells, or over both. Where rows change and add numbers of one sign, the sum of all
    entries may stand after them.

    Guarantee
    ---------
    The sensitivities of the same sums grouped by those columns alone, with no more rows: those
    whose other columns have listed values too. With runs they are the sensitivities of a histogram
    whose bins are the runs. With the total, where rows change, they stay what they are: L1 = 2 k b,
    L2 = sqrt(2) k b, Linf = k b for k rows that add up to b each.

    Proof
    -----
    The table's entries are sums over disjoint sets of rows, one for each combination of listed
    values. A margin adds up those that agree in some columns, so its entries are sums over disjoint
    sets of rows again, and the rule for such sums holds. Limits on an individual's rows in groups
    by the columns of the margin hold for these rows, which are some of them. Limits in the finest
    groups hold for all together: no more groups by fewer columns, no more rows in all, and no
    more rows in a group than in all. A statistic of individuals has one contribution of each in a
    finest group, so no more of them in a group of the margin than that has finest ones.

    *Cells.* Cells of a histogram are disjoint sets of rows as well: a margin with them is a
    histogram by its columns, and one without them counts the rows that are in any. A row is in one
    cell of a group at most, and a cell is in one run, so sums of runs are over disjoint sets of
    rows too. A row may be in no cell, so that one that changes may leave the only run.

    *Totals.* A row that changes moves b from one entry to another at most, and does not move the
    total. Or it leaves the entries, or enters one of them, and moves one entry and the total by at
    most b. Without grouping sets rows are of one group, so none moves the total of another one.

    Integers that overflow wrap, and noise is added modulo 2**64, so distances stay what they were.
    """

    table: Table  # The table of the finest groups
    # How many values each column of grouping sets has, and how many cells there are; empty where
    # each group of the query has its own sums of runs.
    sizes: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()  # The columns of the margin, by their numbers
    by: tuple[str, ...] = ()  # Their names
    # How many children a node of the tree of cells has whose nodes are the runs; 0 without runs.
    branching: int = 0
    level: int = 0  # The level of the runs; 0 has one run of all cells
    has_total: bool = False  # Whether the sum of all entries stands after them

    FORMS: ClassVar[Forms] = {
        f"{name}{'WithTotal' * total}": {**fields, "has_total": total}
        for total in (False, True)
        for name, fields in (
            ("LevelSums", {"sizes": (), "kept": (), "by": ()}),
            ("Margin", {"branching": 0, "level": 0}),
            ("RunMargin", dict[str, object]()),
        )
    }

    def __post_init__(self) -> None:
        if self.sizes and self.branching and self.kept[-1:] != (len(self.sizes) - 1,):
            raise ValueError("a table of runs keeps its cells")
        if not self.sizes and not self.branching:
            raise ValueError("sums of each group are over runs of its cells")

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.table,)

    @property
    def is_by_sets(self) -> bool:
        """Whether it is a table by columns of grouping sets, of shape (numbers, 1)."""
        return bool(self.sizes)

    @property
    def axis(self) -> Axis:
        """The tree of cells."""
        assert self.table.cells is not None
        return Axis.ordered(self.sizes[-1] if self.sizes else self.table.cells.size, self.branching)

    @property
    def _columns(self) -> tuple[int, ...]:
        """The columns of the margin that are no cells."""
        return self.kept[:-1] if self._keeps_cells else self.kept

    @property
    def _keeps_cells(self) -> bool:
        if not self.sizes:
            return True
        return self.table.cells is not None and len(self.sizes) - 1 in self.kept

    def spread(self, scope: QueryScope) -> ContributionBounds:
        finest = self.table.statistic.spread(scope)
        if not self.sizes:
            return finest
        groups = scope.groups
        assert isinstance(groups, SetGroups)
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
        columns = self._columns if self.sizes else scope.rules.columns(None)
        return kernel.Vector((place,), ((1,),), columns, self._run, self.has_total)

    @property
    def _run(self) -> int:
        """How many neighbouring cells are added up; 0 for all of a group."""
        if self.branching:
            return min(self.axis.width(self.level), self.axis.size)
        return 1 if self.table.cells is None or self._keeps_cells else 0

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        alone = not self.has_total or self.is_by_sets or scope.entries in (None, 1)
        require(alone, "rows of one group move one total")
        return Measurement.sensitivity(self, scope)

    @property
    def step(self) -> Fraction:
        return self.table.statistic.step

    @property
    def numbers(self) -> int:
        """How many numbers there are; without grouping sets those of each group."""
        kept = self._columns if self.branching else self.kept
        runs = self.axis.nodes(self.level) if self.branching else 1
        return math.prod(self.sizes[i] for i in kept) * runs + self.has_total

    def entries(self, scope: QueryScope) -> int:
        groups = 1 if self.is_by_sets or scope.entries is None else scope.entries
        return groups * self.numbers

    def shape(self, groups: int, scope: QueryScope) -> tuple[int, int]:
        return (self.numbers, 1) if self.is_by_sets else (groups, self.numbers)

    def words(self) -> str:
        total = ", and of all groups together" * self.has_total
        if not self.sizes:
            total = ", and all of them together" * self.has_total
            return f"{self.table.words()}; {run_words(self.axis, self.level)}{total}"
        if self.branching:
            runs = run_words(self.axis, self.level)
            return f"{self.table.words()}; {runs}, {by_words(self.by[:-1])}{total}"
        together = "" if self.table.cells is None or self._keeps_cells else ", together"
        merged = len(self._columns) < len(self.sizes) - (self.table.cells is not None)
        if merged and self.table.statistic.of_individuals:
            together = ", one row for each of the finest groups that an individual is in"
        return f"{self.table.words()}{together}, {by_words(self.by)}{total}"


def by_words(names: tuple[str, ...]) -> str:
    """By which columns, in a plan."""
    return f"by {' and '.join(names)}" if names else "of all groups together"


def run_words(axis: Axis, level: int) -> str:
    """Which runs a level has, in a plan."""
    width = axis.width(level)
    if width >= axis.size:
        return "all of them together"
    return "each by itself" if width == 1 else f"sums of {width} neighbours each"


# -- sums of cells with public factors, one up to each cell, for distribution functions -----------


@dataclass(frozen=True, slots=True)
class RootSums(Measurement):
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

    table: Table  # The table of cells

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.table,)

    @property
    def root(self) -> RootPrefixes:
        """The factorisation."""
        assert self.table.cells is not None
        return RootPrefixes(self.table.cells.size)

    @property
    def numbers(self) -> int:
        """How many numbers each group has."""
        return self.root.cells

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.table.statistic.spread(scope)

    def entries(self, scope: QueryScope) -> int:
        return (1 if scope.entries is None else scope.entries) * self.numbers

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

_BITS: Final = 20


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
    tree = best_tables(workload, degree, lambda part: _norm(part, of_all))
    least = plain if plain.objective() <= tree.objective() else tree
    if not has_free_total or cells < 2:
        return least
    for one in (plain.workload, workload):
        with_total = _with_total(one, degree, of_all)
        if with_total is not None and with_total.objective() < least.objective():
            least = with_total.in_order()
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


def level_margins(table: Table, strategy: Strategy) -> Iterator[Margin]:
    """The sums of the runs of each level that is measured of a table of cells."""
    (axis,) = strategy.workload.axes
    for level in levels_of(strategy):
        yield Margin(table, branching=axis.branching, level=level)


def uses_of(
    strategy: Strategy,
    margins: Iterable[Margin],  # What each part is
    role: str,  # What plans call it
    weight: Fraction,  # How much the error of the strategy counts
    is_shared: bool = True,  # See `MeasurementUse`
) -> list[MeasurementUse]:
    """The parts of a strategy, with what makes a plan's cost be shared as it says."""
    objective = dyadic_down(Fraction(strategy.objective()), _BITS) * weight
    uses = [
        MeasurementUse(margin, role, objective * share ** (strategy.degree + 1), share, is_shared)
        for margin, share in zip(margins, strategy.shares, strict=True)
    ]
    if strategy.total is not None and strategy.total_of is not None:
        carrier = uses[strategy.total_of]  # whose vector has the total, and pays for it
        assert isinstance(carrier.part, Margin)
        carrier = replace(carrier, part=replace(carrier.part, has_total=True))
        uses[strategy.total_of] = carrier
        uses[strategy.total] = replace(carrier, impact=Fraction(0))
    return uses


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
    def masks(self) -> list[tuple[bool, ...]]:
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

    def margins(self, table: Table, strategy: Strategy) -> Iterator[Margin]:
        """What each part of a strategy is."""
        return (self.margin_of_part(table, part) for part in strategy.parts)

    def margin_of_part(self, table: Table, part: Part) -> Margin:
        """The sums of a table that a part of a strategy is, of runs of cells where it has such."""
        margin, last = self.margin(table, columns_of(part)), part.factors[-1]
        if not last.axis.is_ordered or last.level in (0, last.axis.height):
            return margin
        return replace(margin, branching=last.axis.branching, level=last.level)


def columns_of(part: Part) -> tuple[int, ...]:
    """The axes that a part is a table of, by their numbers."""
    return tuple(i for i, level in enumerate(part.levels) if level)
