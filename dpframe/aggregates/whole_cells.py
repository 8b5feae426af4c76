"""Cells with one more for all rows that are in none of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from dpframe.aggregates.cells import Cells
from dpframe.aggregates.tallies import Tally, WholeTally
from dpframe.core.domain import Columns
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change
from dpframe.frames.nodes import has_no_node
from dpframe.kernel import plan as kernel
from dpframe.rows.operation import Namespace

__all__ = ["WholeCells"]


@dataclass(frozen=True, slots=True)
class WholeCells(Cells):
    """Cells, and a last one for the rows that are in none of them, so that each row is in one.

    Parameters
    ----------
    some
        The cells.
    """

    engines = EVERYWHERE

    some: Cells

    def map_exprs(self, change: Change) -> Self:
        return replace(self, some=self.some.map_exprs(change))

    @property
    def size(self) -> int:
        return self.some.size + 1

    @property
    def node(self) -> kernel.Whole:
        inner = self.some.node
        if isinstance(inner, kernel.OfPeople | kernel.Whole):
            raise has_no_node("cells of individuals with one more for all others")
        return kernel.Whole(inner)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        cell = self.some.row(columns, ns)
        last = ns.lit(self.some.size, dtype=ns.Int64)
        made: pl.Expr = ns.when(cell.is_null()).then(last).otherwise(cell)
        return made

    def tally(self) -> Tally | None:
        some = self.some.tally()
        return None if some is None else WholeTally(some)

    def numbers(self, columns: Columns) -> pl.Expr:
        return self.some.numbers(columns)

    def words(self) -> str:
        return self.some.words()

    @property
    def rest(self) -> str:
        return f"{self.some.rest}; one more for all other rows"
