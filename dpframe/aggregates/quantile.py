"""Quantiles: chosen one by one, along a tree, all at once, or read off noisy counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.accounting.gaussian_noise import largest_rho
from dpframe.aggregates.aggregate import (
    Aggregate,
    BoundAggregate,
    Clamp,
    MeasurementUse,
    Noisy,
    Query,
    names_of,
)
from dpframe.aggregates.cdf import nondecreasing
from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.error import MOST_CELLS, RankError
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import Additive, Selection, Table, choice_impact, counts_of
from dpframe.aggregates.reconstructed_error import (
    CountedRuns,
    RunRankError,
    best_runs,
    squares_of_cells,
)
from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.shapes import ONE, Listed, Shape
from dpframe.aggregates.statistics import TotalValue, is_per_unit, total_value
from dpframe.aggregates.values import (
    Value,
    as_series,
    bounds_of,
    numeric_value,
    read_numbers,
    read_quantiles,
    whole_series,
)
from dpframe.core.budget import ZCDP, Budget
from dpframe.core.dtypes import DType
from dpframe.core.exact import Number, Rationals, are_rising, are_whole, floats, rationals, show
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity
from dpframe.errors import InvalidBounds
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import LevelChoice, level_choices
from dpframe.mechanisms import SELECTIONS, RecursiveTask, TogetherTask
from dpframe.rows.fold import words

# -- quantiles and medians, chosen by the exponential mechanism -----------------------------------

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
        return (counts_of(self.cells),)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.tables[0].statistic.spread(scope)

    @property
    def step(self) -> Fraction:
        return Fraction(1, self.q.denominator)

    @property
    def has_weights(self) -> bool:
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
        return scope.rules.of_scores(self.tables[0], -a, b - a).repeat(self.candidates)

    def words(self) -> str:
        target = f"{show(self.q)} * rows"
        score = f"score -max({target} - rows at or below, rows below - {target}, 0)"
        return f"{show(self.q)}-quantile of {self.cells.words()}; {self.cells.rest}; {score}"


@dataclass(frozen=True, slots=True, eq=False)
class BoundQuantile(BoundAggregate):
    """Chosen values, one for each quantile."""

    # The values as numbers, and the candidates.
    value: Value
    cells: PointCells | PositionCells
    quantiles: tuple[Fraction, ...]  # Which are chosen
    # What values are clamped to; None among listed candidates.
    bounds: tuple[Fraction, Fraction] | None
    q: Number | tuple[Number, ...]  # The request: a list for a list, be it of one

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
                _decode(f"q{i}", codes.reshape(-1).tolist(), self.cells, dtype)
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
        quantiles = read_quantiles(self.q, value)
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
        value = numeric_value(request.tree, scope.facts.columns, written)
        given = self.bounds if self.candidates is None else self.candidates
        per_unit = is_per_unit(request, scope, self.per, given, value.domain.dtype)
        if self.candidates is not None:
            numbers = _read_candidates(self.candidates, value)
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


def _decode(
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


def _read_candidates(candidates: object, value: Value) -> Sequence[Fraction]:
    where = f"{words(value.tree)}.dp_quantile(candidates=...)"
    assert isinstance(candidates, Iterable)
    numbers = _rising(read_numbers(candidates, value.domain.dtype, where))
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


# -- what ways to choose several quantiles of one column together have in common ------------------

_FEW = 12
"""This many quantiles are listed in plans."""


class ChosenTogether(Selection):
    """Several quantiles of one column, whose codes come in rising order."""

    __slots__ = ()

    cells: PointCells | PositionCells
    quantiles: tuple[Fraction, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return (counts_of(self.cells),)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.tables[0].statistic.spread(scope)

    @property
    def first(self) -> QuantileChoice:
        return QuantileChoice(self.cells, self.quantiles[0])

    @property
    def has_weights(self) -> bool:
        return True

    @property
    def candidates(self) -> int:
        return self.first.candidates

    @property
    def picks(self) -> int:
        return len(self.quantiles)


def quantile_words(quantiles: Sequence[Fraction]) -> str:
    """Quantiles, for plans."""
    found = [show(q) for q in quantiles]
    if len(found) > _FEW:
        return f"{len(found)} from {found[0]} to {found[-1]}"
    return ", ".join(found)


# -- quantiles that are read off noisy counts of all candidates -----------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CountedQuantile(BoundQuantile):
    """Quantiles from noisy counts, which have noise that one row moves by 1, however many quantiles
    are read off them.
    """

    why: str = ""  # Why they are, for plans
    runs: CountedRuns | None = None  # The counts in addition to cells, if any

    @property
    def note(self) -> str:
        whole = super(CountedQuantile, self).note
        return f"{whole}, read off noisy counts that are made to rise: {self.why}"

    @property
    def error(self) -> RankError | RunRankError:
        sides = 1 + isinstance(self.cells, PositionCells)
        least, most = min(self.quantiles), max(self.quantiles)
        if self.runs is None:
            return RankError(self.cells.size, sides * (1 + most))
        runs = self.runs
        return RunRankError(runs.size, runs.width, runs.share, least, most, sides)

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        counts = values[0] if self.runs is None else self.runs.rebuild(values[0], values[1])
        codes = codes_from_counts(counts, self.cells, self.quantiles)
        return super(CountedQuantile, self).combine([*codes])


def codes_from_counts(
    counts: NDArray[Any], cells: PointCells | PositionCells, quantiles: Sequence[Fraction]
) -> list[Noisy]:
    """For each quantile the candidate in each group whose ranks are nearest to it, the first one
    where several are: a larger quantile has no smaller candidate. `counts`: of shape (groups,
    cells), whole or rebuilt from several. `cells`: what they count. `quantiles`: which are wanted.
    """
    upto = nondecreasing(np.cumsum(counts, axis=1, dtype=np.float64))
    below = np.concatenate([np.minimum(upto[:, :1], 0.0), upto[:, :-1]], axis=1)
    rows = np.maximum(upto[:, -1:], 0.0)
    if isinstance(cells, PositionCells):
        below, upto = below[:, 1::2], upto[:, 1::2]
    found = []
    for q in quantiles:
        target = rows * float(q)
        away = np.maximum(np.maximum(below - target, target - upto), 0.0)
        found.append(away.argmin(axis=1))
    return found


# -- several quantiles that are chosen one inside the other ---------------------------------------

Levels = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class QuantileTree(ChosenTogether):
    """Several quantiles, each chosen among the rows between those that were chosen before.

    The score of a choice is that of a `QuantileChoice` of these rows, in ranks. Its scale is in
    proportion to the range by which one row moves such scores, so all choices cost the same.
    """

    cells: PointCells | PositionCells  # The candidates
    quantiles: tuple[Fraction, ...]  # In rising order, each once
    # Which of them are chosen at each level; no two of one level have the same neighbours among
    # those of earlier ones, so their rows are disjoint.
    levels: Levels
    why: str = ""  # Why they are chosen together, for plans

    @property
    def choices(self) -> tuple[LevelChoice, ...]:
        """The choice of each quantile, and by how much a row that comes or goes moves its scores
        against each other.
        """
        return _choices(self.quantiles, self.levels, False, False)

    @property
    def first(self) -> QuantileChoice:
        return QuantileChoice(self.cells, self.quantiles[self.levels[0][0]])

    @property
    def step(self) -> Fraction:
        return Fraction(1, math.lcm(*(q.denominator for q in self.quantiles)))

    @property
    def rounds(self) -> int:
        return len(self.levels)

    def node(self, scope: QueryScope) -> kernel.Levels:
        return kernel.Levels(scope.rules.place(self.tables[0]), self.quantiles, self.levels)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        """The sensitivity of the choice that a row moves most, in its own rows as in a group."""
        self.spread(scope)
        q = max((choice.quantile for choice in self.choices), key=lambda q: max(q, 1 - q))
        low, high = -q.numerator, q.denominator - q.numerator
        most = max(len(level) for level in self.levels)
        whole = scope.rules.of_scores(self.tables[0], low, high, most)
        return whole.scale(1 / (q.denominator * self.step)).repeat(self.candidates)

    def spans(self, scope: QueryScope) -> tuple[Fraction, ...]:
        """The scale of each choice, relative to the others: the range of its scores for one
        row."""
        changes = self.spread(scope).changes
        choices = _choices(self.quantiles, self.levels, changes, scope.entries is None)
        return tuple(choice.range for choice in choices)

    def scales(self, scope: QueryScope) -> tuple[Fraction, ...]:
        """The scale of each choice in steps of its own score, as a share of the whole scale in
        steps.
        """
        own = (choice.quantile.denominator * self.step for choice in self.choices)
        return tuple(a * b for a, b in zip(self.shares(scope), own, strict=True))

    def shares(self, scope: QueryScope) -> tuple[Fraction, ...]:
        """The scale of each choice as a share of the largest."""
        spans = self.spans(scope)
        return tuple(span / max(spans) for span in spans)

    def path(self, scope: QueryScope) -> Fraction:
        """How far off the rank of the worst quantile may be, where each choice is off by its share
        of 1 at most.
        """
        shares = self.shares(scope)
        return max(
            sum((near * shares[number] for number, near in found.items()), Fraction(0))
            for found in _effects_of_choices(self)
        )

    def expected_errors(self, scope: QueryScope) -> tuple[float, ...]:
        """About how far off ranks are, where choices are off by their spans independently."""
        spans = [float(span) for span in self.spans(scope)]
        return tuple(
            math.hypot(*(float(near) * spans[number] for number, near in found.items()))
            for found in _effects_of_choices(self)
        )

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> RecursiveTask:
        found = self.score_range(scope)
        return RecursiveTask(
            name,
            sensitivity,
            found,
            mechanism,
            self.rounds,
            candidates=self.candidates,
            shared=found.is_shared(self.spread(scope).changed_groups),
            chosen=self.picks,
            path=self.path(scope),
            why=self.why,
        )

    def words(self) -> str:
        count = len(self.quantiles)
        named = ([self.quantiles[number] for number in level] for level in self.levels)
        levels = "; ".join(quantile_words(level) for level in named)
        return (
            f"{count} quantiles of {self.cells.words()}, one inside the other, {levels}; "
            f"{self.cells.rest}; each among the rows between those before it, rows of one point in "
            "random order; score -max(q * rows - rows at or below, rows below - q * rows, 0) with "
            "the q that it is of these rows"
        )


@lru_cache(maxsize=256)
def _choices(
    quantiles: tuple[Fraction, ...], levels: Levels, changes: bool, alone: bool
) -> tuple[LevelChoice, ...]:
    """The choice of each quantile, in their order."""
    found = level_choices(quantiles, levels, changes, alone)
    return tuple(found[number] for number in range(len(quantiles)))


def _effects_of_choices(tree: QuantileTree) -> list[dict[int, Fraction]]:
    """The error of each quantile if a choice is off by 1, for each choice that matters to it.
    These are its own choice and those of either end, which move a quantile between them in
    proportion to its nearness.

    Both ends may depend on one choice, as that of one is among rows that end at the other.
    """
    found: dict[int, dict[int, Fraction]] = {}
    for number in (number for level in tree.levels for number in level):
        choice = tree.choices[number]
        own, q = {number: Fraction(1)}, choice.quantile
        for end, near in ((choice.lower, 1 - q), (choice.upper, q)):
            for other, moved in found.get(end, {}).items():
                own[other] = own.get(other, Fraction(0)) + near * moved
        found[number] = own
    return [found[number] for number in range(len(tree.quantiles))]


def levels_for(quantiles: Sequence[Fraction], depth: int) -> Levels:
    """Which quantiles to choose at each of this many levels: of those that leave no more on either
    side than later levels can hold, the one nearest to the middle of its rows. Raises `ValueError`
    when this many levels are too few.
    """
    if len(quantiles) >= 1 << depth:
        raise ValueError("there are more quantiles than the levels can hold")
    levels: list[list[int]] = [[] for _ in range(depth)]
    _fill(levels, quantiles, (0, len(quantiles)), (Fraction(0), Fraction(1)))
    return tuple(tuple(level) for level in levels if level)


def _fill(
    levels: Sequence[list[int]],
    quantiles: Sequence[Fraction],
    among: tuple[int, int],
    ends: tuple[Fraction, Fraction],
) -> None:
    first, last = among
    if first == last:
        return
    room = (1 << len(levels) - 1) - 1
    middle = (ends[0] + ends[1]) / 2
    number = min(
        range(max(first, last - 1 - room), min(last, first + room + 1)),
        key=lambda n: (abs(quantiles[n] - middle), n),
    )
    levels[0].append(number)
    _fill(levels[1:], quantiles, (first, number), (ends[0], quantiles[number]))
    _fill(levels[1:], quantiles, (number + 1, last), (quantiles[number], ends[1]))


# -- several quantiles that are chosen at once, as one tuple --------------------------------------


@dataclass(frozen=True, slots=True)
class QuantilesAtOnce(ChosenTogether):
    """All of several quantiles, by one choice among all ways to place them in order.

    A tuple of candidates cuts n rows into parts, one more than quantiles; a row is in the part that
    ends at the first candidate above it. The score is minus half the sum over parts of
    |rows in it - d n|, with d what is between its two quantiles: as many rows are on a wrong side
    of something. So no candidate has a rank that is further off than the score says.

    A row that comes adds 1 - d to the excess of its own part, and takes d from each other part,
    which is 2 (1 - d) together. It moves the score by at most 1 - d, with d that of the narrowest
    part, and the difference of two scores by twice as much. A row that changes its value takes 1
    from one part and brings it to another: at most 1, and 2.
    """

    cells: PointCells | PositionCells  # The candidates
    quantiles: tuple[Fraction, ...]  # In rising order, each once
    why: str = ""  # Why they are chosen together, for plans

    @property
    def parts(self) -> tuple[Fraction, ...]:
        """What is between neighbouring quantiles, and at the ends."""
        ends = (Fraction(0), *self.quantiles, Fraction(1))
        return tuple(b - a for a, b in pairwise(ends))

    @property
    def row(self) -> int:
        """How many steps of a part's size a row is."""
        return math.lcm(*(q.denominator for q in self.quantiles))

    @property
    def step(self) -> Fraction:
        """Half of the error of parts, since half of their sum is the score."""
        return Fraction(1, 2 * self.row)

    def node(self, scope: QueryScope) -> kernel.Ranks:
        return kernel.Ranks(scope.rules.place(self.tables[0]), self.quantiles)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        """As if a row added -d or 1 - d, whose larger is 1 - d and the difference 1."""
        self.spread(scope)
        d = min(self.parts)
        whole = scope.rules.of_scores(self.tables[0], -d.numerator, d.denominator - d.numerator)
        tuples = math.comb(self.candidates + self.picks - 1, self.picks)
        return whole.scale(1 / (d.denominator * self.step)).repeat(tuples)

    def expected_error(self) -> float:
        """About the sum of squared errors of ranks, at a scale of 1 row.

        Where rows lie close and are many, the sizes of the m + 1 parts are off by independent
        Laplace numbers at a scale of 2, given that they add up to 0. Given that k of these are
        above 0, the sum of them is gamma distributed and divided evenly at random, and so is that
        of the others. With a scale of 1, the squares of all add up to m (m + 1) / 4 (2 / (k +
        1) + 2 / (m + 2 - k)), and k has a probability in proportion to C(m + 1, k) C(m - 1, k - 1).
        The error of quantile j is the sum of j parts of m + 1 that are exchangeable: j (m + 1 -
        j) / m times the square of one.
        """
        m = self.picks
        weights = [math.comb(m + 1, k) * math.comb(m - 1, k - 1) for k in range(1, m + 1)]
        squares = sum(
            weight * (2 / (k + 1) + 2 / (m + 2 - k)) for k, weight in enumerate(weights, 1)
        )
        one = m / 4 * squares / sum(weights)
        return 4 * one * (m + 1) * (m + 2) / 6

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> TogetherTask:
        found = self.score_range(scope)
        return TogetherTask(
            name,
            sensitivity,
            found,
            mechanism,
            self.rounds,
            candidates=self.candidates,
            shared=found.is_shared(self.spread(scope).changed_groups),
            chosen=self.picks,
            why=self.why,
        )

    def words(self) -> str:
        return (
            f"{self.picks} quantiles of {self.cells.words()}, all at once: "
            f"{quantile_words(self.quantiles)}; {self.cells.rest}; rows of one point in random "
            "order; score -1/2 * sum over parts between neighbouring quantiles, from 0 to 1, of "
            "|rows in it - share of it * rows|"
        )


# -- several quantiles of one column: answered together where that has less expected error --------
# The decision does not depend on data. It uses the range of a choice's scores for one row, the
# number of choices that share the cost, the effect of a wrong end on the ranks between, and the
# number of candidates. In ranks, the squares of errors are about
#
# *Separately*: each of n quantiles has 1 / n of the cost.
#
# *One inside the other* (Kaplan, Schnapp and Stemmer 2022): each level has its part of the cost,
# and about log2(n) levels hold all. Ends that are off move what lies between.
#
# *At once* (Gillenwater, Joseph and Kulesza 2021): one choice of all, at the whole cost, whose
# score adds up what is wrong everywhere; nothing is divided among levels or quantiles.
#
# *Read off* noisy counts of all candidates: q (1 - q) of the squared noise of all of them together,
# if rows were spread over them evenly. If an epsilon is shared and it has a smaller error, runs of
# neighbours are counted too, which add up less noise (`counted_runs`).
#
# Noise is in proportion to the parts of an epsilon, and to the root of those of a rho. A choice at
# scale t is off by about t one way or the other, which has the square 2 t**2.

_MOST_PARTS = 10**6
"""Of quantiles that are chosen together: the least common denominator."""
_MOST_COUNTS = 1 << 18
"""Of numbers that quantiles of all groups are read off."""
_WORTH = 1.1
"""The factor by which the sum of squared errors must fall; otherwise choices stay separate, which
are easier to explain."""
_SLOWER = 1.15
"""The further factor for quantiles at once. They take ten times as long to draw, and where rows
are in few places their errors exceed the expected ones more (docs/benchmarks.md)."""
_FLIPS = Fraction(1, 2)
"""Permute-and-flip has no larger error than the exponential mechanism, and at least half as
much."""
MOST_AT_ONCE, _MOST_GROUPS = 12, 64
"""Of quantiles that are chosen at once, and of groups in which they are: it takes milliseconds
each."""
_SHARPEST, _WIDEST = 0.25, 2000.0
"""Scales in rows, between which that is offered: sharper ones gain nothing and would need more
places for rows that tie; how long it takes grows with the scale."""
_MOST_EPSILON = Fraction(10**4)

Family = tuple[PointCells | PositionCells, Fraction]
Join = Callable[[BoundQuantile], BoundAggregate]


@dataclass(frozen=True, slots=True, eq=False)
class JointQuantile(BoundQuantile):
    """Quantiles that are chosen together with others."""

    places: tuple[int, ...] = ()  # Which of the chosen ones are its own

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        (codes,) = values
        own = [codes[:, place] for place in self.places]
        return super(JointQuantile, self).combine(own)


@dataclass(frozen=True, slots=True)
class _Squares:
    """The sum of squared errors in ranks, at an epsilon of 1 and at a rho of 1."""

    of_epsilon: float
    of_rho: float

    def at(self, spend: Budget) -> float:
        """The least that a spend buys."""
        if isinstance(spend, ZCDP):
            return self.of_rho / float(spend.main)
        pure = self.of_epsilon / float(spend.main) ** 2
        if not spend.slack:
            return pure
        epsilon = min(spend.main, _MOST_EPSILON)
        return min(pure, self.of_rho / float(largest_rho(epsilon, math.log(spend.slack))))


def answer_together(query: Query, spend: Budget) -> Query:
    """The query with the quantiles of one column answered jointly where that has a smaller error.
    They must share their candidates and weight, and name no mechanism.
    """
    families: dict[Family, list[BoundQuantile]] = {}
    for aggregate in query.aggregates:
        if isinstance(aggregate, BoundQuantile) and aggregate.request.mechanism == "auto":
            families.setdefault((aggregate.cells, aggregate.request.weight), []).append(aggregate)
    joined: dict[int, BoundAggregate] = {}
    for members in families.values():
        join = _best_way(members, query.scope, spend)
        if join is not None:
            joined |= {id(member): join(member) for member in members}
    if not joined:
        return query
    outputs = []
    for output in query.outputs:
        found: Mapping[str, BoundAggregate] = {
            name: joined.get(id(aggregate), aggregate)
            for name, aggregate in output.aggregates.items()
        }
        outputs.append(replace(output, aggregates=found))
    return replace(query, outputs=tuple(outputs))


def _best_way(members: Sequence[BoundQuantile], scope: QueryScope, spend: Budget) -> Join | None:
    """The way with the least expected error; None for separate choices."""
    cells = members[0].cells
    quantiles = tuple(sorted({*chain.from_iterable(member.quantiles for member in members)}))
    apart = [QuantileChoice(cells, q) for q in quantiles]
    if len(quantiles) < 2 or not spend.main or apart[0].sensitivity(scope).is_zero:
        return None
    error = _apart(apart, scope).at(spend)
    ways: list[tuple[float, Join]] = []
    if math.lcm(*(q.denominator for q in quantiles)) <= _MOST_PARTS:
        trees = [(_tree(tree, scope).at(spend), tree) for tree in _trees(cells, quantiles)]
        least, tree = min(trees, key=lambda found: found[0])
        tree = replace(tree, why=_why_tree(tree, _ratio(error, least)))
        repeats = tree.rounds if isinstance(spend, ZCDP) else tree.rounds**2
        ways.append((least, lambda member: _joint_choice(member, tree, repeats)))
    inner = quantiles[0] > 0 and quantiles[-1] < 1  # the ends are below and above all rows
    if (
        inner
        and cells.size <= MOST_CELLS
        and Additive(counts_of(cells)).entries(scope) <= _MOST_COUNTS
    ):
        ways.append(_by_counts(cells, quantiles, scope, spend, error))
    once = _at_once(cells, quantiles, scope, spend)
    if once is not None:
        joint = replace(
            once, why=_why_at_once(once, _ratio(error, _squares(once, scope).at(spend)))
        )
        found = _squares(once, scope).at(spend) * _SLOWER
        ways.append((found, lambda member: _joint_choice(member, joint, 1)))
    if not ways:
        return None
    least, join = min(ways, key=lambda way: way[0])
    return join if least * _WORTH < error else None


def _joint_choice(member: BoundQuantile, part: ChosenTogether, repeats: int) -> JointQuantile:
    impact = choice_impact(part.candidates) * repeats * len(member.quantiles)
    return JointQuantile(
        member.request,
        (MeasurementUse(part, "quantile", impact, is_shared=False),),
        member.value,
        member.cells,
        member.quantiles,
        member.bounds,
        member.q,
        tuple(part.quantiles.index(q) for q in member.quantiles),
    )


def _by_counts(
    cells: PointCells | PositionCells,
    quantiles: tuple[Fraction, ...],
    scope: QueryScope,
    spend: Budget,
    error: float,
) -> tuple[float, Join]:
    """Quantiles that are read off counts of cells, and of runs where these gain something.

    They are compared with other ways as if cells were counted alone: among more candidates than
    that allows, one choice of all has a smaller error on rows that leave most of them empty.
    """
    counts = Additive(counts_of(cells))
    least = _counts(counts, quantiles, scope).at(spend)
    runs, left = _runs_beside(counts, quantiles, scope, spend)
    why = _why_counts(cells.size, _ratio(error, least * left), runs)
    return least, lambda member: _from_counts(member, counts, runs, why)


def _from_counts(
    member: BoundQuantile, counts: Additive, runs: CountedRuns | None, why: str
) -> CountedQuantile:
    """The squared error of a rank is q (1 - q) of that of all counts together, and a count's
    impact is 1."""
    spread = sum((q * (1 - q) for q in member.quantiles), Fraction(0))
    impact = max(Fraction(1), spread * member.cells.size)
    alone = (MeasurementUse(counts, "quantile.counts", impact, is_shared=False),)
    uses = alone if runs is None else _levels(counts.table, runs, impact)
    return CountedQuantile(
        member.request,
        uses,
        member.value,
        member.cells,
        member.quantiles,
        member.bounds,
        member.q,
        why,
        runs,
    )


def _runs_beside(
    counts: Additive, quantiles: tuple[Fraction, ...], scope: QueryScope, spend: Budget
) -> tuple[CountedRuns | None, float]:
    """The runs to count in addition to cells where epsilons are shared, and the remaining part of
    the squared error. None where that gains nothing, or one individual moves sums by more than
    cells.
    """
    cells = counts.tables[0].cells
    assert cells is not None
    if isinstance(spend, ZCDP) or spend.slack:
        return None, 1.0
    moved = counts.sensitivity(scope).l1
    scale = moved / spend.main
    runs = best_runs(cells.size, quantiles, scale)
    if runs is None:
        return None, 1.0
    levels = _levels(counts.table, runs, Fraction(1))
    if any(use.part.sensitivity(scope).l1 != moved for use in levels):
        return None, 1.0
    alone = squares_of_cells(cells.size, quantiles, scale)
    return runs, runs.squares(quantiles, scale) / alone


def _levels(table: Table, runs: CountedRuns, impact: Fraction) -> tuple[MeasurementUse, ...]:
    """Runs and cells, which share the cost as they should: impacts are cubes of what they get."""
    return tuple(
        MeasurementUse(
            Margin(table, branching=runs.width, level=level),
            "quantile.counts",
            impact * share**3,
            share,
            is_shared=False,
        )
        for level, share in ((1, runs.share), (2, 1 - runs.share))
    )


def _apart(choices: Sequence[QuantileChoice], scope: QueryScope) -> _Squares:
    n = len(choices)
    pure, rho = Fraction(0), Fraction(0)
    for choice in choices:
        moved, squared = choice.score_range(scope), choice.step**2
        flips = 1 if choice.has_weights else _FLIPS
        pure += (moved.l1 * flips * n) ** 2 * squared
        rho += moved.l2_squared * n * squared / 8
    return _Squares(float(2 * pure), float(2 * rho))


def _trees(
    cells: PointCells | PositionCells, quantiles: tuple[Fraction, ...]
) -> Iterator[QuantileTree]:
    """Trees of few levels: more of them leave room for choices near the middle of their rows."""
    fewest = len(quantiles).bit_length()
    for depth in range(fewest, min(fewest + 2, len(quantiles)) + 1):
        yield QuantileTree(cells, quantiles, levels_for(quantiles, depth))


def _tree(tree: QuantileTree, scope: QueryScope) -> _Squares:
    """As the spans of choices say, in multiples of the error of a choice with a span of 1."""
    moved, widest = tree.score_range(scope), max(tree.spans(scope)) / tree.step
    squares = sum(error * error for error in tree.expected_errors(scope))
    pure = float((moved.l1 / widest * tree.rounds) ** 2)
    rho = float(moved.l2_squared / widest**2 * tree.rounds / 8)
    return _Squares(2 * squares * pure, 2 * squares * rho)


def _at_once(
    cells: PointCells | PositionCells,
    quantiles: tuple[Fraction, ...],
    scope: QueryScope,
    spend: Budget,
) -> QuantilesAtOnce | None:
    """All by one choice, where that can be drawn in good time; None elsewhere.

    Between listed candidates many rows may lie, so that ranks may all be far from what they should
    be; of points, some place of each has any rank.
    """
    groups = 1 if scope.entries is None else scope.entries
    if not isinstance(cells, PointCells) or len(quantiles) > MOST_AT_ONCE:
        return None
    part = QuantilesAtOnce(cells, quantiles)
    if part.row > _MOST_PARTS or groups > _MOST_GROUPS:
        return None
    scale = math.sqrt(_squares(part, scope).at(spend) / part.expected_error())
    return part if _SHARPEST <= scale <= _WIDEST else None


def _squares(part: QuantilesAtOnce, scope: QueryScope) -> _Squares:
    moved, squares = part.score_range(scope), part.expected_error() * float(part.step**2)
    return _Squares(squares * float(moved.l1**2), squares * float(moved.l2_squared / 8))


def _counts(counts: Additive, quantiles: Sequence[Fraction], scope: QueryScope) -> _Squares:
    moved, cells = counts.sensitivity(scope), counts.tables[0].cells
    assert cells is not None
    squares = cells.size * sum((q * (1 - q) for q in quantiles), Fraction(0))
    return _Squares(float(2 * moved.l1**2 * squares), float(moved.l2_squared * squares / 2))


def _ratio(error: float, least: float) -> str:
    return f"{math.sqrt(error / least) if least else math.inf:.2g}"


def _why_tree(tree: QuantileTree, gain: str) -> str:
    return (
        f"a level costs once, as a row is on one side of each choice: {tree.rounds} levels have "
        f"about {gain} times less error than {tree.picks} choices apart"
    )


def _why_at_once(part: QuantilesAtOnce, gain: str) -> str:
    return (
        f"one choice of all {part.picks} pays once and has about {gain} times less error than "
        "choices apart"
    )


def _why_counts(cells: int, gain: str, runs: CountedRuns | None) -> str:
    beside = "" if runs is None else f", and sums of {runs.width} neighbours each,"
    return f"{cells} counts{beside} have about {gain} times less error than choices apart"
