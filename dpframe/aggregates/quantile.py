"""Quantiles and medians, chosen by the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import polars as pl

from dpframe.aggregates.aggregate import Aggregate, names_of
from dpframe.aggregates.asked_quantiles import asked_quantiles
from dpframe.aggregates.bound import BoundAggregate, Clamp, MeasurementUse, Noisy
from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.impact import choice_impact
from dpframe.aggregates.measurement import Selection, Table, counted
from dpframe.aggregates.per_unit import is_per_unit
from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.shapes import ONE, Listed, Shape
from dpframe.aggregates.total_value import TotalValue, total_value
from dpframe.aggregates.values import (
    Value,
    as_series,
    bounds_of,
    numbers_of,
    numeric_value,
    whole_series,
)
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.dtypes import DType
from dpframe.core.exact import Number, show
from dpframe.core.rationals import Rationals, are_rising, are_whole, floats, rationals
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.errors import InvalidBounds
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import SELECTIONS
from dpframe.rows.fold import domain, words

POINTS = 1 << 20
"""How finely an interval is divided where its values are not integers."""


@dataclass(frozen=True, slots=True)
class QuantileChoice(Selection):
    """The choice of one quantile among public points.

    The score of a candidate c is minus the distance of the rank q n, of n rows, from the ranks
    [#{x < c}, #{x <= c}] that c has: -max(q n - #{x <= c}, #{x < c} - q n, 0), times the
    denominator of q so that it is an integer. A row adds -q or 1 - q to #{x < c} - q n, and q or
    q - 1 to q n - #{x <= c}, so it moves the score by at most m = max(q, 1 - q); a row that changes
    its value, by at most 1.
    """

    cells: PointCells | PositionCells
    q: Fraction

    @property
    def tables(self) -> tuple[Table, ...]:
        return (counted(self.cells),)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.tables[0].statistic.spread(scope)

    @property
    def step(self) -> Fraction:
        return Fraction(1, self.q.denominator)

    @property
    def weighted(self) -> bool:
        return isinstance(self.cells, PointCells)

    @property
    def candidates(self) -> int:
        return (
            self.cells.points if isinstance(self.cells, PointCells) else (self.cells.size - 1) // 2
        )

    def node(self, scope: QueryScope) -> kernel.Rank:
        return kernel.Rank(scope.rules.place(self.tables[0]), self.q)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        """The score is the largest of 0 and two sums over rows, to which each row adds -q or 1 -
        q, or q or q - 1; the largest moves by no more than any of them. Every candidate has one
        in each group.
        """
        self.spread(scope)
        a, b = self.q.numerator, self.q.denominator
        return scope.rules.of_scores(self.tables[0], -a, b - a).repeated(self.candidates)

    def words(self) -> str:
        target = f"{show(self.q)} * rows"
        score = f"score -max({target} - rows at or below, rows below - {target}, 0)"
        return f"{show(self.q)}-quantile of {self.cells.words()}; {self.cells.rest}; {score}"


@dataclass(frozen=True, slots=True, eq=False)
class BoundQuantile(BoundAggregate):
    """Chosen values, one for each quantile.

    Parameters
    ----------
    value, cells
        The values as numbers, and the candidates.
    quantiles
        Which are chosen.
    bounds
        What values are clamped to; None among listed candidates.
    q
        The request: a list for a list, be it of one.
    """

    value: Value
    cells: PointCells | PositionCells
    quantiles: tuple[Fraction, ...]
    bounds: tuple[Fraction, Fraction] | None
    q: Number | tuple[Number, ...]

    @property
    def is_list(self) -> bool:
        """Whether a list is requested."""
        return isinstance(self.q, tuple)

    @property
    def shape(self) -> Shape:
        return Listed(tuple(f"q={q}" for q in self.q)) if isinstance(self.q, tuple) else ONE

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        if self.bounds is None:
            return ()
        return (Clamp(self.value.tree, self.bounds, self.is_of_totals, biases=False),)

    @property
    def is_of_totals(self) -> bool:
        return isinstance(self.value, TotalValue)

    @property
    def note(self) -> str:
        found = "the chosen values, as a list" if self.is_list else "the chosen value"
        if not self.is_of_totals:
            return found
        ends = "" if self.bounds is None else "; totals outside the bounds count as the nearer one"
        return f"{found}, of individuals' totals and not of rows{ends}"

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        dtype = self.value.domain.dtype
        return self._result(
            [
                _chosen(f"q{i}", codes.reshape(-1).tolist(), self.cells, dtype)
                for i, codes in enumerate(values)
            ]
        )

    def plain(self, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        if column is None:
            return ()
        return tuple(_best_scored(column, q) for q in self.quantiles)

    def of_plain(self, numbers: Sequence[pl.Series]) -> pl.Series:
        dtype = self.value.domain.dtype
        return self._result([as_series(f"{i}", column, dtype) for i, column in enumerate(numbers)])

    def _result(self, columns: Sequence[pl.Series]) -> pl.Series:
        if not self.is_list:
            return columns[0].alias(self.name)
        lists = pl.concat_list(pl.all()).alias(self.name)
        return pl.DataFrame(columns).select(lists).to_series()


@dataclass(frozen=True, slots=True, eq=False)
class Quantile(Aggregate):
    """One or several quantiles, each a private choice among candidates or all points of the bounds.

    Over bounds, integers are all candidates (up to 2**20 of them), other values a grid of
    2**20 points; gaps between data count by their length. Several quantiles come as a list.

    Guarantee
    ---------
    The score's sensitivity is k max(q, 1 - q) under add-remove and k under change-one adjacency;
    of totals k is 1. The exponential mechanism (McSherry & Talwar 2007) chooses over bounds,
    permute-and-flip (McKenna & Sheldon 2020) over listed candidates if not in zCDP. There are
    three ways to answer several quantiles with the same candidates, and dpframe takes the one with
    the least expected error in ranks. Separate choices each pay a share. Nested choices pay once
    for each level. The third way reads all quantiles from noisy counts of the candidates, under
    pure DP also of runs of neighbours. The results are in increasing order.

    Proof
    -----
    The score of c is minus the distance of the rank q n from [#{x < c}, #{x <= c}], that is
    -max(q n - #{x <= c}, #{x < c} - q n, 0): 0 for every quantile, however many values tie. A row
    that comes adds q to the first if it is above c and q - 1 otherwise, and to the second 1 - q
    if it is below c and -q otherwise. So each moves by at most max(q, 1 - q), and the largest of
    three numbers moves by no more than any of them. A row that changes does not change n and
    moves
    #{x <= c} and #{x < c} by at most 1 each. Scores of two candidates may move in opposite ways, so
    the range that mechanisms need is twice as much. For q = 0 the score is -#{x < c}, for q = 1
    -#{x > c}: a row moves all of them one way, and the range is once as much. Choices one inside
    the other are `recursive_exponential`; counts are a histogram, those of runs another one, and
    their costs add up. To put quantiles in order, or to fit counts of candidates to both, to make
    them rise and to read ranks off them, is post-processing.
    Points with equal scores are drawn as a run, which gives each the probability that it has alone.
    With ``per="unit"`` an individual is one value, its total, in each of at most g groups.
    """

    q: Number | tuple[Number, ...]
    bounds: GivenBounds = None
    candidates: tuple[Any, ...] | None = None
    per: Per = None

    kind: ClassVar[str] = "quantile"
    positional: ClassVar[tuple[str, ...]] = ("q", "bounds")
    summary: ClassVar[str] = "one or several quantiles, among candidates or over bounds"
    mechanisms: ClassVar[tuple[str, ...]] = names_of(*SELECTIONS)
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("i64").dp_quantile(0.5, (0, 100))',
        'pl.col("f64").dp_quantile([0.25, 0.75], (-1, 1))',
        'pl.col("f64").dp_quantile(0.9, candidates=[-1.0, 0.0, 0.5, 2.0])',
    )

    def bind(self, request: Request, scope: QueryScope) -> BoundQuantile:
        value, cells, bounds = self._cells(request, scope)
        quantiles = asked_quantiles(self.q, value)
        parts = [QuantileChoice(cells, q) for q in quantiles]
        uses = tuple(
            MeasurementUse(part, "quantile", choice_impact(part.candidates)) for part in parts
        )
        return BoundQuantile(request, uses, value, cells, quantiles, bounds, self.q)

    def _cells(
        self, request: Request, scope: QueryScope
    ) -> tuple[Value, PointCells | PositionCells, tuple[Fraction, Fraction] | None]:
        """The value, the candidates, and the bounds where all points within are candidates."""
        assert request.tree is not None
        written = self.method
        value = numeric_value(request.tree, domain(request.tree, scope.facts.columns), written)
        given = self.bounds if self.candidates is None else self.candidates
        per_unit = is_per_unit(request, scope, self.per, given, value.domain.dtype)
        if self.candidates is not None:
            numbers = _listed(self.candidates, value)
            value = total_value(value, (numbers[0], numbers[-1])) if per_unit else value
            return value, PositionCells(value, numbers), None
        lo, hi = bounds_of(value, self.bounds, written, distinct=True)
        value = total_value(value, (lo, hi)) if per_unit else value
        if value.is_wide:
            value.require_int64(lo, hi, f"{words(value.tree)}.dp_{written}(...)")
        elif value.is_whole:  # values are clamped, and a result must fit Int64
            lo, hi = max(lo, Fraction(-(2**63))), min(hi, Fraction(2**63 - 1))
            if lo >= hi:
                raise InvalidBounds(
                    f"no value of type {value.domain.dtype} lies within the bounds",
                    where=f"{words(value.tree)}.dp_{written}(...)",
                    remedy="give the range of the values: (low, high)",
                )
        width = hi - lo
        whole = value.is_whole and lo.denominator == 1 and hi.denominator == 1
        if whole:
            step = Fraction(-(-int(width + 1) // POINTS))
            return value, PointCells(value, lo, step, int(width // step) + 1), (lo, hi)
        return value, PointCells(value, lo, width / (POINTS - 1), POINTS), (lo, hi)


@dataclass(frozen=True, slots=True, eq=False)
class Median(Quantile):
    """The 0.5-quantile, by its own name.

    Guarantee
    ---------
    The guarantee of the quantile.

    Proof
    -----
    It is one.
    """

    @property
    def method(self) -> str:
        return "median"

    def arguments(self) -> dict[str, Any]:
        return {"bounds": self.bounds, "candidates": self.candidates, "per": self.per}


def _best_scored(column: pl.Expr, q: Fraction) -> pl.Expr:
    """The least value with the best score, 0, as a private choice without noise would find it: the
    first in order whose rank is at least q of the number of values.
    """
    values = column.drop_nulls().sort()
    ranks = values.cum_count().cast(pl.Int64)
    target = q.numerator * values.len().cast(pl.Int64)
    return values.filter(ranks * q.denominator >= target).first()


def _chosen(
    name: str, codes: list[int], cells: PointCells | PositionCells, dtype: DType
) -> pl.Series:
    """The values that codes stand for: cut to integers or units, or the nearest floats."""
    whole = dtype.is_integer or dtype.is_temporal
    if isinstance(cells, PositionCells):
        if whole and are_whole(cells.candidates):
            return whole_series(name, [int(cells.candidates[code]) for code in codes], dtype)
        known = floats(cells.candidates)
        return pl.Series(name, [known[code] for code in codes], dtype=pl.Float64)
    below = math.lcm(cells.lo.denominator, cells.step.denominator)
    lo, step = int(cells.lo * below), int(cells.step * below)
    above = [lo + code * step for code in codes]
    if whole:
        return whole_series(name, [n // below if n >= 0 else -(-n // below) for n in above], dtype)
    return pl.Series(name, [n / below for n in above], dtype=pl.Float64)


def _listed(candidates: object, value: Value) -> Sequence[Fraction]:
    where = f"{words(value.tree)}.dp_quantile(candidates=...)"
    assert isinstance(candidates, Iterable)
    numbers = _rising(numbers_of(candidates, value.domain.dtype, where))
    most = 2**63 - 1 - value.is_wide if value.is_whole else 2**100
    if numbers and max(abs(numbers[0]), abs(numbers[-1])) > most:
        raise InvalidBounds(
            f"a candidate is larger than {'Int64 holds' if value.is_whole else '2**100'}",
            where=where,
            remedy="list values that the column could have",
        )
    if not numbers:
        raise InvalidBounds(
            "the list of candidates is empty", where=where, remedy="write candidates=[0, 10, 20]"
        )
    return numbers


def _rising(numbers: Sequence[Fraction]) -> Sequence[Fraction]:
    """Each number once, in order."""
    if are_rising(numbers):
        return numbers
    if isinstance(numbers, Rationals):
        return Rationals(sorted(set(numbers.numerators)), numbers.denominator)
    return rationals(sorted(set(numbers)))
