"""Totals of individuals as values: what histograms and quantiles of individuals are of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from dpframe.aggregates.statistics import GridSum
from dpframe.aggregates.unit_statistics import UnitTotal
from dpframe.aggregates.values import Value
from dpframe.core.domain import Columns, Domain
from dpframe.core.dtypes import FLOAT64, INT64
from dpframe.core.grid import Grid, grid_for
from dpframe.rows.fold import words
from dpframe.rows.operation import Namespace

__all__ = ["TotalValue", "total_value", "totals_on"]


@dataclass(frozen=True, slots=True)
class TotalValue(Value):
    """The total of an individual's rows in a group, as a number; null where no row has a value.

    Parameters
    ----------
    of_rows
        What is known of each row's value; `domain` is of totals.
    grid
        How finely rows are placed before they are added up: integers exactly, others to a part of
        the range in which totals are distinguished.
    """

    of_rows: Domain
    grid: Grid

    @property
    def words(self) -> str:
        return f"each individual's total of {words(self.tree)}"

    @property
    def _gathered(self) -> UnitTotal:
        return UnitTotal(GridSum(Value(self.tree, self.of_rows), self.grid))

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        """The integer of each row."""
        found = self._gathered.row(columns, ns)
        assert found is not None
        return found

    def per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """The sum of an individual's integers."""
        return self._gathered.per_unit(column, ns)

    def total(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """That sum in the units of the value."""
        return self._gathered.number(column, ns)


def total_value(value: Value, ends: tuple[Fraction, Fraction]) -> TotalValue:
    """The totals of a value.

    Parameters
    ----------
    value
        The value of each row.
    ends
        Between what totals are distinguished.
    """
    value.require_totals()
    lo, hi = ends
    whole = value.is_whole and lo.denominator == 1 and hi.denominator == 1
    return totals_on(value, grid_for(lo, hi, centred=False, integers=whole))


def totals_on(value: Value, grid: Grid) -> TotalValue:
    """The totals of a value whose rows are placed on a grid."""
    dtype = value.domain.dtype
    if not dtype.is_temporal:
        dtype = INT64 if value.is_whole else FLOAT64
    return TotalValue(value.tree, Domain(dtype), value.domain, grid)
