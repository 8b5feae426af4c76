"""Sums of cells with public factors, one up to each cell, for distribution functions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.aggregates.level_sums import CellSums
from dpframe.aggregates.request import QueryScope
from dpframe.kernel import plan as kernel
from dpframe.workloads import RootPrefixes
from dpframe.workloads.running import coefficients

__all__ = ["RootSums"]


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
