"""Cells between upper edges, the parts of a distribution function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from dpframe.aggregates.cells import Cells, missing_words
from dpframe.aggregates.edges import Edges, edge_words, is_counted
from dpframe.aggregates.placing import below
from dpframe.aggregates.tallies import Tally, UpToTally
from dpframe.aggregates.values import Value
from dpframe.core.domain import Columns
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change
from dpframe.core.rationals import numbers_of
from dpframe.frames.nodes import row_of
from dpframe.kernel import plan as kernel
from dpframe.rows.fold import lower, words
from dpframe.rows.operation import Namespace

__all__ = ["UpToCells"]


@dataclass(frozen=True, slots=True)
class UpToCells(Cells):
    """One cell for the values above each edge and up to the next one, which is included; the first
    one has all values up to the first edge.

    Null and NaN are in no cell. Infinities are values, and -0.0 is 0.0.

    Parameters
    ----------
    value
        The number.
    edges
        Rising upper edges.
    above
        Whether one last cell takes values above the last edge, which else count as the last edge.
    """

    engines = EVERYWHERE

    value: Value
    edges: Edges
    above: bool

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    @property
    def size(self) -> int:
        return self.edges.size + self.above

    @property
    def node(self) -> kernel.UpTo:
        return kernel.UpTo(row_of(self.value.tree), numbers_of(self.edges.exact), self.above)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        number = self._number(lower(self.value.tree, columns, ns), ns)
        known = number.is_not_null()
        if not is_counted(self.value):
            known = number.is_not_nan().fill_null(False)
        passed = below(number, self._between, ns)
        cell: pl.Expr = ns.when(known).then(passed).otherwise(ns.lit(None, dtype=ns.Int64))
        return cell

    def tally(self) -> Tally | None:
        return UpToTally(self._between)

    def numbers(self, columns: Columns) -> pl.Expr:
        return self._number(lower(self.value.tree, columns, pl), pl)

    @property
    def _between(self) -> list[int] | list[float]:
        """The edges that have a cell after them."""
        numbers = self.edges.numbers if self.above else self.edges.numbers[:-1]
        return list(numbers)

    def _number(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """The value as edges are: of a decimal the integer of its smallest unit."""
        if not self.value.domain.dtype.is_decimal:
            return self.value.number(column, ns)
        units: pl.Expr = column.to_physical().clip(-(2**63), 2**63 - 1).cast(ns.Int64, strict=False)
        return units

    def words(self) -> str:
        first, last = (edge_words(self.edges.numbers[i], self.value) for i in (0, -1))
        listed = f"{self.edges.size} upper edges from {first} to {last}, which are included"
        return f"steps of {words(self.value.tree)} between {listed}"

    @property
    def rest(self) -> str:
        outside = (
            "values above the last edge count in the total only"
            if self.above
            else "values outside count as the nearest end"
        )
        return f"{outside}, {missing_words(self.value)}"
