"""Margins: sums of one exact table over some of its columns, with noise of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpframe.aggregates.measurement import Measurement, Table
from dpframe.aggregates.request import QueryScope
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.core.units import Identifier
from dpframe.frames.contributions import spread_of
from dpframe.frames.grouping_sets import SetGroups
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import AdditiveTask

__all__ = ["Margin", "MarginWithTotal", "by_words"]


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

    Parameters
    ----------
    table
        The table of the finest groups.
    sizes
        How many values each of its columns has, and how many cells there are.
    kept
        The columns of the margin, by their numbers.
    by
        Their names.
    """

    table: Table
    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    by: tuple[str, ...]

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
