"""Histograms over categories or bins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import polars as pl

from dpframe.aggregates.aggregate import Aggregate, BoundAggregate, MeasurementUse, Noisy, names_of
from dpframe.aggregates.cells import BinCells, CategoryCells, comparable_edges
from dpframe.aggregates.count import as_count_series, sign_note
from dpframe.aggregates.measurement import Additive, Measurement, Responses, Table, counts_of
from dpframe.aggregates.reconstructed_error import BinRanges, Ranges
from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.shapes import Counts, Later, Shape
from dpframe.aggregates.statistics import RowCount, is_per_unit, total_value
from dpframe.aggregates.values import (
    bounds_of,
    numeric_value,
    or_declare,
    read_numbers,
    scalars_of,
)
from dpframe.core.dtypes import Domain, DType, Scalar
from dpframe.core.exact import Rationals, are_rising, are_whole, floats, nearest, show, show_input
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds, MissingKeys, UnsupportedOperation
from dpframe.mechanisms import ADDITIVE, REPORTS
from dpframe.rows.constants import listed
from dpframe.rows.fold import domain, words
from dpframe.rows.polars_dtypes import to_polars


@dataclass(frozen=True, slots=True, eq=False)
class BoundHistogram(BoundAggregate):
    """Noisy counts of cells."""

    cells: CategoryCells | BinCells  # The categories or bins
    column: str  # The name for the categories or bins, for any name of the output
    dtype: DType  # The expression's type
    nonnegative: bool  # Whether negative counts become 0

    monotone: ClassVar[bool] = True

    @property
    def shape(self) -> Shape:
        rows = Later(partial(_cells_frame, self.column, self.cells, self.dtype), self.cells.size)
        return Counts(rows, has_ends=isinstance(self.cells, BinCells))

    @property
    def is_nonnegative(self) -> bool:
        return self.nonnegative

    @property
    def note(self) -> str:
        found = sign_note(self.nonnegative)
        if not self.cells.of_individuals:
            return f"counts: {found}"
        rest = "the last row" if self.cells.other else "none: other=True adds a row for them"
        return (
            f"counts: {found}; of individuals by their totals and not of rows, and totals outside "
            f"the bins are in {rest}"
        )

    @property
    def ranges(self) -> Ranges | None:
        if not isinstance(self.cells, BinCells):
            return None
        edges = comparable_edges(self.cells.edges, self.cells.value)
        return BinRanges(self.cells.value, edges, self.nonnegative)

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return as_count_series(self.name, values[0][:, : self.cells.size], self.nonnegative)


@dataclass(frozen=True, slots=True, eq=False)
class Histogram(Aggregate):
    """How many rows fall into each category or bin; one noisy count each.

    The result has one row per category or bin: the category in a column of the expression's name,
    or for bins the text ``[0, 10)`` with `lower` and `upper` next to it, then `count`. Bins are
    left-closed and right-open, the last one closed. Values outside, null and NaN are dropped,
    unless `other=True` adds one last row for them.

    Guarantee
    ---------
    A row lies in at most one bin of one group. Add-remove: L1 = L2 = Linf = k for k rows per
    individual. Change-one: L1 = 2k, L2 = sqrt(2) k, Linf = k. With ``per="unit"`` an individual
    lies in at most one bin of each of its groups, by its total there: L1 = g, L2 = sqrt(g), Linf =
    1 for g groups.

    `mechanism="randomized_response"` is the local model, to compare with: every row reports its
    category or any one at random, at epsilon / k each (Warner 1965), and the counts are debiased.
    It hides what a row holds and not that it is there, so it needs change-one adjacency and a frame
    with all its rows.

    Proof
    -----
    Bins are public and no value lies in two of them, so bins times groups are disjoint sets of
    rows, and each noisy number is a count of one of them: the rule for sums with b = 1. A row that
    changes leaves one bin and enters another. A total follows from the rows of one individual in
    one group alone, so an individual adds 1 to one bin of each of its groups, and to no other.
    """

    bins: Any = None
    bounds: GivenBounds = None
    other: bool = False
    nonnegative: bool = False
    per: Per = None

    kind: ClassVar[str] = "histogram"
    positional: ClassVar[tuple[str, ...]] = ("bins",)
    mechanisms: ClassVar[tuple[str, ...]] = names_of(*ADDITIVE, *REPORTS)
    summary: ClassVar[str] = "rows per category or bin"
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("e").dp_histogram()',
        'pl.col("b").dp_histogram(other=True)',
        'pl.col("s").dp_histogram(["a", "b", ""])',
        'pl.col("f64").dp_histogram([-1.0, 0.0, 0.1, 5.0])',
        'pl.col("i64").dp_histogram(4, bounds=(0, 100))',
    )

    @property
    def counts_missing(self) -> bool:
        listed = isinstance(self.bins, (list, tuple)) and all(b is not None for b in self.bins)
        return self.other or not (listed or isinstance(self.bins, int))

    def bind(self, request: Request, scope: QueryScope) -> BoundHistogram:
        cells = self._of_totals(request, scope, self._cells(request, scope))
        part: Measurement = Additive(counts_of(cells))
        if request.mechanism == "randomized_response":
            _require_responses(request, scope, cells)
            part = Responses(Table(RowCount(), replace(cells, other=True)))
        assert request.tree is not None
        dtype = domain(request.tree, scope.facts.columns).dtype
        return BoundHistogram(
            request,
            (MeasurementUse(part, "histogram"),),
            cells,
            request.name,
            dtype,
            self.nonnegative,
        )

    def _cells(self, request: Request, scope: QueryScope) -> CategoryCells | BinCells:
        assert request.tree is not None
        found = domain(request.tree, scope.facts.columns)
        bins, other = self.bins, self.other
        if bins is None and self.bounds is None:
            known = require_categories(request.tree, found, '.dp_histogram(["a", "b"])')
            return CategoryCells(request.tree, known, other)
        numeric = found.dtype.is_numeric or found.dtype.is_temporal
        if bins is None or (isinstance(bins, int) and not isinstance(bins, bool)):
            return self._equal_bins(request, scope, 10 if bins is None else bins)
        where = f"{words(request.tree)}.dp_histogram(...)"
        if isinstance(bins, str) or not isinstance(bins, Iterable):
            raise InvalidBounds(
                f"bins must be a number or a list, not {show_input(bins)}",
                where=where,
                remedy=(
                    "write for example bins=[0, 10, 20]",
                    "write bins=10 where the bounds of the column are known",
                ),
            )
        if self.bounds is not None:
            raise InvalidBounds(
                "bounds= says where equal bins begin and end, and these bins are listed",
                where=where,
                remedy=("leave bounds= out", "give a number of bins"),
            )
        if numeric:
            value = numeric_value(request.tree, scope.facts.columns, "histogram")
            edges = read_numbers(bins, found.dtype, where)
            rising = _increasing(edges, where)
            value.require_int64(rising[0], rising[-1], where)
            return BinCells(value, rising, other)
        return CategoryCells(request.tree, read_categories(list(bins), found, where), other)

    def _of_totals(
        self, request: Request, scope: QueryScope, cells: CategoryCells | BinCells
    ) -> CategoryCells | BinCells:
        """Bins of the totals of individuals, where these are requested."""
        if self.per is None:
            return cells
        if isinstance(cells, CategoryCells):
            raise UnsupportedOperation(
                'per="unit" counts individuals by their totals, and categories have no total',
                where=f'{words(cells.tree)}.dp_histogram(per="unit")',
                remedy=(
                    "give edges: bins=[0, 10, 20]",
                    "count the individuals with each value: "
                    "group_by(column).agg(pl.col(identifier).dp_n_unique())",
                ),
            )
        number = self.bins is None or isinstance(self.bins, int)
        given = self.bounds if number else tuple(cells.edges)
        if not is_per_unit(request, scope, self.per, given, cells.value.domain.dtype):
            return cells
        ends = cells.edges[0], cells.edges[-1]
        return replace(cells, value=total_value(cells.value, ends))

    def _equal_bins(self, request: Request, scope: QueryScope, bins: int) -> BinCells:
        assert request.tree is not None
        value = numeric_value(request.tree, scope.facts.columns, "histogram")
        if not 1 <= bins <= 10**6:
            raise InvalidBounds(
                f"a histogram has between 1 and 1000000 bins, not {bins}",
                where=f"{words(request.tree)}.dp_histogram({bins})",
                remedy="write for example bins=10",
            )
        lo, hi = bounds_of(value, self.bounds, "histogram", distinct=True)
        value.require_int64(lo, hi, f"{words(request.tree)}.dp_histogram({bins})")
        return BinCells(value, _equally_far(lo, hi, bins), self.other)


def _equally_far(lo: Fraction, hi: Fraction, parts: int) -> Rationals:
    """The ends of this many equal parts."""
    common = math.lcm(lo.denominator, hi.denominator)
    first, last = int(lo * common), int(hi * common)
    step = last - first
    return Rationals(range(first * parts, last * parts + step, step), common * parts)


def _require_responses(
    request: Request, scope: QueryScope, cells: CategoryCells | BinCells
) -> None:
    """Refuse randomised response where the number of reports would reveal something. Raises
    `UnsupportedOperation` under add-remove adjacency, in groups, and after rows were dropped.
    """
    if cells.of_individuals:
        why = "it is rows that report"
        remedy = 'use per="row"'
    elif scope.facts.unit.adjacency != "change-one":
        why = "the number of responses reveals whether a row exists, which add-remove protects"
        remedy = 'protect the frame with unit=dp.Rows(adjacency="change-one")'
    elif scope.groups is not None:
        why = "the number of responses in a group reveals who is in it"
        remedy = "make the group a part of the category, for example with pl.concat_str(...)"
    elif not scope.facts.complete:
        why = "after a filter the number of responses reveals how many rows passed it"
        remedy = "give dropped rows a category of their own instead, with pl.when(...)"
    else:
        return
    raise UnsupportedOperation(
        f"randomised response cannot release this histogram: {why}",
        where=f"{request.name}: mechanism='randomized_response'",
        remedy=remedy,
    )


def require_categories(tree: Tree, found: Domain, way: str) -> tuple[Scalar, ...]:
    """The categories of a type or declaration; `way` lists them in the query. Raises `MissingKeys`
    when the values are not known without reading the data.
    """
    if found.categories is None:
        raise MissingKeys(
            f"the values of {words(tree)} are not known, and they may not be read from "
            "private data",
            where=words(tree),
            remedy=or_declare(f"list them: {way}", tree, "categories", '["a", "b"]'),
        )
    return found.categories


def read_categories(values: list[Any], found: Domain, where: str) -> tuple[Scalar, ...]:
    """Categories that a user listed, checked against the column's type."""
    if found.dtype.is_nested or not found.dtype.is_known:
        raise UnsupportedOperation(
            f"values of type {found.dtype} cannot be categories",
            where=where,
            remedy="take a field or an element of it first",
        )
    if not values:
        raise InvalidBounds(
            "the list of categories is empty", where=where, remedy="list at least one value"
        )
    made = listed("", values, found.dtype)
    if made is None:
        raise InvalidBounds(
            f"the listed categories are not values of type {found.dtype}",
            where=where,
            remedy=f"list values of type {found.dtype}",
        )
    if made.n_unique() != len(values):
        raise InvalidBounds(
            "a category is listed twice", where=where, remedy="list each category once"
        )
    return tuple(made.to_list())


def _extremes(numbers: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The least and the greatest."""
    if not numbers:
        return ()
    if isinstance(numbers, Rationals):
        ends = min(numbers.numerators), max(numbers.numerators)
        return tuple(Fraction(end, numbers.denominator) for end in ends)
    return min(numbers), max(numbers)


def _increasing(edges: Sequence[Fraction], where: str) -> Sequence[Fraction]:
    if any(math.isinf(nearest(edge)) for edge in _extremes(edges)):
        raise InvalidBounds(
            "an edge is too large for Float64", where=where, remedy="write a smaller edge"
        )
    if len(edges) < 2 or not are_rising(edges):
        raise InvalidBounds(
            "edges must be at least two and strictly increasing",
            where=where,
            remedy="write for example bins=[0, 10, 20]",
        )
    return edges


@lru_cache(maxsize=8)
def _cells_frame(name: str, cells: CategoryCells | BinCells, dtype: DType) -> pl.DataFrame:
    """Categories or bins as public columns, with a row each."""
    if isinstance(cells, BinCells):
        return _bins_frame(name, cells)
    listed = [*cells.categories, *([None] if cells.other else [])]
    return pl.DataFrame({name: pl.Series(name, listed, dtype=stored_type(dtype))})


def stored_type(dtype: DType) -> Any:
    """The type of released categories: Categorical is what a process made it, so they are text."""
    return pl.String if dtype.name == "Categorical" else to_polars(dtype)


def _bins_frame(name: str, cells: BinCells) -> pl.DataFrame:
    dtype = cells.value.domain.dtype
    exact = not cells.value.is_whole or are_whole(cells.edges)
    edges = scalars_of(cells.edges, dtype) if exact else floats(cells.edges)
    labels = [_label(edge) for edge in edges]
    text: list[str | None] = [f"[{lo}, {hi})" for lo, hi in itertools.pairwise(labels)]
    text[-1] = f"[{labels[-2]}, {labels[-1]}]"
    lower: list[Any] = list(edges[:-1])
    upper: list[Any] = list(edges[1:])
    if cells.other:
        text, lower, upper = [*text, "other"], [*lower, None], [*upper, None]
    return pl.DataFrame({name: text, "lower": lower, "upper": upper}, strict=False)


def _label(edge: object) -> str:
    return show(edge, 12) if isinstance(edge, (int, float)) else str(edge)
