"""Counts of rows and of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import BoundAggregate, MeasurementUse, Noisy, ScoringAggregate
from dpframe.aggregates.measurement import COUNT, Additive, Table
from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.statistics import (
    DistinctCount,
    DistinctIndividuals,
    RowCount,
    Statistic,
    UnitCount,
    UnitRows,
    ValueCount,
    is_per_unit,
    require_rows_scored,
)
from dpframe.aggregates.values import is_listed
from dpframe.core.dtypes import Columns
from dpframe.core.exact import show_input
from dpframe.core.tree import Column, Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.fold import domain, words


def count_of(tree: Tree, columns: Columns) -> Additive:
    """The count of values of an expression; the count of rows where there are neither nulls nor
    NaN, so that both are one part.

    That they are one is a matter of accuracy, never of privacy: either count has sensitivity 1.
    """
    found = domain(tree, columns)
    return Additive(Table(ValueCount(tree))) if found.nullable or found.nan else COUNT


def units_with(tree: Tree | None) -> Additive:
    """The number of individuals, with a value of an expression if there is one."""
    return Additive(Table(UnitCount(tree)))


def as_count_series(name: str, values: Noisy, nonnegative: bool) -> pl.Series:
    """A noisy count as a column: signed and unbiased, clamped at 0 only on request."""
    if nonnegative:
        values = np.maximum(values, 0)
    return pl.Series(name, values.reshape(-1), dtype=pl.Int64)


UNBIASED: Final = "unbiased; "
"""What notes of results begin with that no clamp, weight or limit moves."""


def sign_note(nonnegative: bool) -> str:
    """What a plan says about results below zero."""
    if nonnegative:
        return "results below 0 become 0, which biases small ones upwards"
    return f"{UNBIASED}noise may make results negative"


@dataclass(frozen=True, slots=True, eq=False)
class BoundCount(BoundAggregate):
    """A noisy count, which is the result."""

    nonnegative: bool = False  # Whether negative results become 0
    of_totals: bool = False  # Whether it is made of totals of individuals, which are bounded

    monotone: ClassVar[bool] = True

    @property
    def is_plain_number(self) -> bool:
        return not self.nonnegative

    @property
    def is_nonnegative(self) -> bool:
        return self.nonnegative

    @property
    def note(self) -> str:
        return sign_note(self.nonnegative)

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return as_count_series(self.name, values[0], self.nonnegative)

    def plain(self, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        if not self.of_totals:
            return ()
        return (pl.len() if column is None else column.count(),)

    def of_plain(self, numbers: Sequence[pl.Series]) -> pl.Series:
        return numbers[0].cast(pl.Int64).alias(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Count(ScoringAggregate):
    """The number of rows, or of values of an expression that are neither null nor NaN.

    Guarantee
    ---------
    One row changes one entry by at most 1. Under add-remove adjacency L1 = L2 = Linf = k for k
    rows per individual, for any number of groups. Under change-one adjacency the number of all
    rows is public and costs nothing; a count of filtered rows or of values changes by at most k,
    and group counts by L1 = 2k, L2 = sqrt(2) k, Linf = k. With an identifier, at most r rows and
    m of them in each of g groups: L1 = min(r, g m), Linf = min(r, m), and L2 as for sums. With
    ``per="unit", bounds=(0, n)``: L1 = g n, L2 = sqrt(g) n, Linf = n.

    Proof
    -----
    A count is a sum of ones: the rule for sums over disjoint sets of rows, with b = 1. Whether a
    value is null or NaN depends on its row alone. Totals of individuals are clamped to [0, n] by
    the lowered query, for any rows.
    """

    nonnegative: bool = False
    per: Per = None
    bounds: GivenBounds = None

    kind: ClassVar[str] = "count"
    positional: ClassVar[tuple[str, ...]] = ("bounds",)
    summary: ClassVar[str] = "number of rows, or of values that are neither null nor NaN"
    examples: ClassVar[tuple[str, ...]] = ("dp.count()", 'pl.col("i64").dp_count()')

    @property
    def name_without_column(self) -> str:
        return "len"

    def bind(self, request: Request, scope: QueryScope) -> BoundCount:
        use = MeasurementUse(self._part(request, scope), "count")
        return BoundCount(request, (use,), self.nonnegative, self.per == "unit")

    def _part(self, request: Request, scope: QueryScope) -> Additive:
        if is_per_unit(request, scope, self.per, self.bounds):
            return Additive(Table(UnitRows(_most(request, self.bounds), request.tree)))
        if self.bounds is not None:
            if self.per is None:
                raise InvalidBounds(
                    "bounds= of a count limits how often one individual counts, and "
                    "this counts rows",
                    where=f"{request.name}: dp_count(bounds=...)",
                    remedy=('write dp.count(per="unit", bounds=(0, n))', "leave bounds= out"),
                )
            _most(request, self.bounds)  # a row is one individual here, and counts once
        return COUNT if request.tree is None else count_of(request.tree, scope.facts.columns)

    def score(self, request: Request, scope: QueryScope) -> Statistic:
        require_rows_scored(request, scope, self.per, self.bounds)
        return RowCount() if request.tree is None else ValueCount(request.tree)


def _most(request: Request, bounds: GivenBounds) -> int:
    """How many rows of an individual count in a group."""
    match bounds:
        case (0, int() as most) if is_listed(bounds) and not isinstance(most, bool):
            if 0 < most < 2**31:
                return most
    raise InvalidBounds(
        f"the bounds of a count are 0 and a positive integer, not {show_input(bounds)}",
        where=f'{request.name}: dp_count(per="unit", bounds=...)',
        remedy='write dp.count(per="unit", bounds=(0, n))',
    )


@dataclass(frozen=True, slots=True, eq=False)
class DistinctValues(ScoringAggregate):
    """The number of distinct values of an expression; nulls and NaN are not counted. For the
    identifier: the number of individuals.

    Guarantee
    ---------
    Adding or removing a row changes the number of distinct values in its group by at most 1;
    changing one by at most 1 in one group, or by 1 in each of two. So the sensitivities are those
    of a count of values. One individual is one individual in each of its groups: L1 = g, L2 =
    sqrt(g), Linf = 1 for g groups.

    Proof
    -----
    A row adds a value to the set of its group or finds it there: 0 or 1, however the other rows
    look. Rows of one individual are added one after another, so the changes add up as those of a
    count do. Individuals are distinct values of the identifier, and the one that differs between
    neighbours is one value in each group that it is in.
    """

    nonnegative: bool = False

    kind: ClassVar[str] = "n_unique"
    summary: ClassVar[str] = "number of distinct values, nulls and NaN not counted"
    examples: ClassVar[tuple[str, ...]] = ('pl.col("s").dp_n_unique()',)

    def bind(self, request: Request, scope: QueryScope) -> BoundCount:
        assert request.tree is not None
        dtype = domain(request.tree, scope.facts.columns).dtype
        if dtype.is_nested or not dtype.is_known:
            raise UnsupportedOperation(
                f"distinct values of type {dtype} cannot be counted",
                where=words(request.tree),
                remedy="take a field or an element of it first",
            )
        if _is_identifier(request.tree, scope):
            return BoundCount(
                request, (MeasurementUse(units_with(None), "n_unique"),), self.nonnegative
            )
        values = Additive(Table(DistinctCount(request.tree)))
        return BoundCount(request, (MeasurementUse(values, "n_unique"),), self.nonnegative)

    def score(self, request: Request, scope: QueryScope) -> Statistic:
        assert request.tree is not None
        if not _is_identifier(request.tree, scope):
            return DistinctCount(request.tree)
        if scope.facts.time is not None:  # a person in two windows is two individuals
            return UnitCount()
        return DistinctIndividuals(request.tree)


def _is_identifier(tree: Tree, scope: QueryScope) -> bool:
    who = scope.facts.identifier
    return who is not None and tree == Column(who)
