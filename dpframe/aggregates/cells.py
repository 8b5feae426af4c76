"""Cells: a second public key of each row, for histograms, quantiles and selections.

Every row falls into at most one cell. Cells are numbered 0, 1, ... in public order; the lowered
expression gives the number, or null for a row that belongs to none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Self

import polars as pl

from dpframe.aggregates.placing import at_or_below, below
from dpframe.aggregates.tallies import BinTally, PointTally, PositionTally, Tally
from dpframe.aggregates.total_value import TotalValue
from dpframe.aggregates.values import Value, show_value
from dpframe.core.domain import Columns, Scalar
from dpframe.core.dtypes import STRING, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change, HasExprs
from dpframe.core.rationals import are_whole, floats, numbers_of, wholes
from dpframe.core.tree import Tree
from dpframe.errors import require
from dpframe.frames.nodes import row_of, text_of_constant
from dpframe.kernel import plan as kernel
from dpframe.rows.constants import listed
from dpframe.rows.fold import domain, lower, words
from dpframe.rows.layouts import unsigned_zero
from dpframe.rows.operation import Namespace

_SHORT = 60
"""Up to this many characters of categories or candidates are listed in plans."""


class Cells(HasExprs):
    """A row-wise map from rows to cell numbers."""

    __slots__ = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """How many cells there are."""

    @property
    def of_individuals(self) -> bool:
        """Whether individuals are in cells, by their totals, and not rows."""
        return False

    @property
    @abstractmethod
    def node(self) -> kernel.Cells:
        """The same as the kernel has it."""

    @abstractmethod
    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        """The number of each row's cell as Int64, null for none."""

    def tally(self) -> Tally | None:
        """What counts `numbers` by cell in NumPy, where cells are made of these."""
        return None

    def numbers(self, columns: Columns) -> pl.Expr:
        """What it counts, an Int64 or Float64 of each row in Polars."""
        raise NotImplementedError

    @abstractmethod
    def words(self) -> str:
        """What the cells are, in a plan."""

    @property
    @abstractmethod
    def rest(self) -> str:
        """The words of a plan for rows that are in none of the listed cells."""


@dataclass(frozen=True, slots=True)
class CategoryCells(Cells):
    """One cell per listed value.

    Parameters
    ----------
    tree
        The expression that is compared with the categories.
    categories
        The values, each once; None stands for null.
    other
        Whether one last cell takes all rows with another value.
    """

    engines = EVERYWHERE

    tree: Tree
    categories: tuple[Scalar, ...]
    other: bool = False

    def map_exprs(self, change: Change) -> Self:
        return replace(self, tree=change(self.tree))

    @property
    def size(self) -> int:
        return len(self.categories) + self.other

    @property
    def node(self) -> kernel.Values:
        texts = tuple(map(text_of_constant, self.categories))
        return kernel.Values(row_of(self.tree), texts, self.other)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        value = lower(self.tree, columns, ns)
        dtype = domain(self.tree, columns).dtype
        if dtype.is_text:
            value, dtype = value.cast(ns.String), STRING
        elif dtype.is_float:
            value = unsigned_zero(ns, value, dtype)
        rest = self.size - 1 if self.other else None
        codes = [i for i, c in enumerate(self.categories) if c is not None]
        if not codes:
            number = ns.lit(rest, dtype=ns.Int64)
        elif ns is pl and dtype == STRING and codes == list(range(len(codes))):
            listed_texts = pl.Enum(self._known(dtype))  # three times as fast
            number = value.cast(listed_texts, strict=False).to_physical().cast(pl.Int64)
            number = number.fill_null(rest) if rest is not None else number
        else:
            known = self._known(dtype)
            number = value.replace_strict(known, codes, default=rest, return_dtype=ns.Int64)
        null_cell = self.categories.index(None) if None in self.categories else rest
        null_code = ns.lit(null_cell, dtype=ns.Int64)
        cell: pl.Expr = ns.when(value.is_null()).then(null_code).otherwise(number)
        return cell

    def _known(self, dtype: DType) -> pl.Series:
        """The categories but null in the expression's own type: two that are one there would put
        rows into two cells, or make an engine fail depending on rows.
        """
        made = listed("", [c for c in self.categories if c is not None], dtype)
        found = made is not None and made.n_unique() == len(made)
        require(found, f"the categories of {words(self.tree)} are different values")
        assert made is not None
        return made

    def words(self) -> str:
        names = ", ".join("null" if c is None else repr(c) for c in self.categories)
        shown = f" ({names})" if len(names) <= _SHORT else ""
        count = len(self.categories)
        noun = "category" if count == 1 else "categories"
        return f"{count} {noun} of {words(self.tree)}{shown}"

    @property
    def rest(self) -> str:
        return "one more for all else" if self.other else "rows with other values are dropped"


class NumberCells(Cells):
    """Cells of numbers: of rows, or of the totals of individuals."""

    __slots__ = ()

    value: Value

    @property
    def of_individuals(self) -> bool:
        return isinstance(self.value, TotalValue)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        return self.place(self.value.number(lower(self.value.tree, columns, ns), ns), ns)

    def numbers(self, columns: Columns) -> pl.Expr:
        return self.value.number(lower(self.value.tree, columns, pl), pl)

    @abstractmethod
    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        """The number of the cell of an Int64 or Float64, null for none."""

    @property
    def node(self) -> kernel.Cells:
        return (
            kernel.OfPeople(self._node, self.totals.grid.node)
            if self.of_individuals
            else self._node
        )

    @property
    @abstractmethod
    def _node(self) -> kernel.Edges | kernel.Points | kernel.Between:
        """The same of rows, or of totals as if they were rows."""

    @property
    def totals(self) -> TotalValue:
        """What is gathered of individuals, where these are in cells."""
        assert isinstance(self.value, TotalValue)
        return self.value


@dataclass(frozen=True, slots=True)
class BinCells(NumberCells):
    """Bins between edges: left-closed and right-open, the last one closed.

    Parameters
    ----------
    value
        The number that is binned.
    edges
        Strictly increasing, at least two.
    other
        Whether one last cell takes nulls, NaN and values outside the edges.
    """

    engines = EVERYWHERE

    value: Value
    edges: Sequence[Fraction]
    other: bool = False

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    @property
    def size(self) -> int:
        return len(self.edges) - 1 + self.other

    @property
    def _node(self) -> kernel.Edges:
        return kernel.Edges(row_of(self.value.tree), numbers_of(self.edges), self.other)

    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        edges = comparable_edges(self.edges, self.value)
        code = at_or_below(number, edges[:-1], ns) - 1
        inside = (number >= edges[0]) & (number <= edges[-1])
        rest = ns.lit(self.size - 1 if self.other else None, dtype=ns.Int64)
        cell: pl.Expr = ns.when(inside.fill_null(False)).then(code).otherwise(rest)
        return cell

    def tally(self) -> Tally | None:
        return BinTally(comparable_edges(self.edges, self.value), self.other)

    def words(self) -> str:
        dtype = self.value.domain.dtype
        lo, hi = show_value(self.edges[0], dtype), show_value(self.edges[-1], dtype)
        return f"{len(self.edges) - 1} bins of {self.value.words} from {lo} to {hi}"

    @property
    def rest(self) -> str:
        outside = "null, NaN and values outside"
        return f"one more for {outside}" if self.other else f"{outside} are dropped"


@dataclass(frozen=True, slots=True)
class PointCells(NumberCells):
    """Evenly spaced points; each value is clamped and goes to the nearest one.

    Parameters
    ----------
    value
        The number.
    lo, step, points
        The first point, the distance between points, and how many there are.
    """

    engines = EVERYWHERE

    value: Value
    lo: Fraction
    step: Fraction
    points: int

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    @property
    def size(self) -> int:
        return self.points

    @property
    def _node(self) -> kernel.Points:
        return kernel.Points(row_of(self.value.tree), self.lo, self.step, self.points)

    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        origin = self._origin
        if origin:
            number = number.clip(origin, ceil(self._hi)) - origin
        scaled = number.cast(ns.Float64) - float(self.lo - origin)
        for scale in self._scales:
            scaled = scaled * scale
        inside = (scaled + 0.5).floor().clip(0.0, float(self.points - 1))
        return inside.cast(ns.Int64, strict=False).clip(0, self.points - 1)

    @property
    def _hi(self) -> Fraction:
        return self.lo + (self.points - 1) * self.step

    @property
    def _origin(self) -> int:
        """What is taken from whole numbers that floats do not distinguish, before they are
        floats; 0 where floats do.
        """
        lo, hi = self.lo, self._hi
        near = max(abs(lo), abs(hi)) <= 2**52
        if near or not self.value.is_whole or hi - lo > 2**61:
            return 0
        return floor(lo)

    @property
    def _scales(self) -> tuple[float, ...]:
        """What a distance from the first point is multiplied by, one after another."""
        scale = 1 / self.step
        if scale > 2**1000:  # too large for a float
            return 2.0**512, float(scale / 2**512)
        return (float(scale),)

    def tally(self) -> Tally | None:
        if self._origin:
            return None
        return PointTally(float(self.lo), self._scales, self.points)

    def words(self) -> str:
        dtype = self.value.domain.dtype
        lo = show_value(self.lo, dtype)
        hi = show_value(self.lo + (self.points - 1) * self.step, dtype)
        kind = "whole numbers" if self.step == 1 and dtype.is_integer else "points"
        return f"{self.value.words} among {self.points} {kind} in [{lo}, {hi}]"

    @property
    def rest(self) -> str:
        return f"values outside count as the nearest end, {missing_words(self.value)}"


@dataclass(frozen=True, slots=True)
class PositionCells(NumberCells):
    """Where a value stands among sorted candidates.

    Cell 2i + 1 means equal to candidate i, cell 2i between candidates i - 1 and i.
    """

    engines = EVERYWHERE

    value: Value
    candidates: Sequence[Fraction]

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    @property
    def size(self) -> int:
        return 2 * len(self.candidates) + 1

    @property
    def _node(self) -> kernel.Between:
        return kernel.Between(row_of(self.value.tree), numbers_of(self.candidates))

    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        edges = comparable_edges(self.candidates, self.value)
        code = at_or_below(number, edges, ns) + below(number, edges, ns)
        if self.value.is_whole:
            known = number.is_not_null()
        else:
            known = number.is_not_nan().fill_null(False)
        cell: pl.Expr = ns.when(known).then(code).otherwise(ns.lit(None, dtype=ns.Int64))
        return cell

    def tally(self) -> Tally | None:
        return PositionTally(comparable_edges(self.candidates, self.value))

    def words(self) -> str:
        dtype = self.value.domain.dtype
        listed = ", ".join(show_value(c, dtype) for c in self.candidates[: _SHORT // 2])
        shown = f" ({listed})" if len(listed) <= _SHORT else ""
        return f"{self.value.words} among {len(self.candidates)} candidates{shown}"

    @property
    def rest(self) -> str:
        return missing_words(self.value)


def missing_words(value: Value) -> str:
    """What becomes of rows without a number, in a plan."""
    return "null and NaN are skipped" if value.domain.dtype.is_float else "null is skipped"


def comparable_edges(numbers: Sequence[Fraction], value: Value) -> list[int] | list[float]:
    """Constants in the number's own type, so that comparisons are exact. If some do not fit
    Int64, whole numbers are compared as floats, whose distances exceed 1 beyond 2**53.
    """
    if value.is_whole and are_whole(numbers):
        whole = wholes(numbers)
        if min(whole) >= -(2**63) and max(whole) < 2**63:
            return whole
    return floats(numbers)
