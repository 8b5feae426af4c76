"""Private selection of the best candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import Aggregate
from dpframe.aggregates.bound import BoundAggregate, Clamp, Noisy, Use
from dpframe.aggregates.cells import CategoryCells
from dpframe.aggregates.count import Count, DistinctValues
from dpframe.aggregates.histogram import known_categories, listed_categories, stored_as
from dpframe.aggregates.impact import choice_impact
from dpframe.aggregates.part import (
    CellCounts,
    Integers,
    Selection,
    Table,
)
from dpframe.aggregates.per_unit import is_per_unit
from dpframe.aggregates.request import Request, Scope
from dpframe.aggregates.shapes import BestGroups, OneChoice, Ranks, Shape, ranks
from dpframe.aggregates.statistics import (
    DistinctIndividuals,
    GridSum,
    RowCount,
    Statistic,
)
from dpframe.aggregates.sum import Sum, grid_sum
from dpframe.aggregates.values import bounds_of, numeric_value, show_value
from dpframe.core.exact import as_given
from dpframe.core.grid import grid_for
from dpframe.core.score_range import ScoreRange
from dpframe.core.sensitivity import Contribution, ExactSensitivity, additive_sensitivity
from dpframe.core.spread import Spread
from dpframe.core.tree import Column, Literal, substitute
from dpframe.errors import InvalidBounds, MissingKeys, UnsupportedOperation
from dpframe.frames.contributions import once_in_each, rows_of_value
from dpframe.rows.fold import domain, words

_SCORES = {scoring.kind: scoring for scoring in (Count(), Sum(), DistinctValues())}
"""Aggregates that can score candidates."""


@dataclass(frozen=True, slots=True)
class CategoryChoice(Selection):
    """The choice among categories, or among groups, of the one with the highest statistic.

    A row belongs to one category, so adding it changes one score by at most b, the largest
    contribution, and the range of changes is m b for m rows of a group; changing it takes b from
    one and gives b to another.

    Parameters
    ----------
    statistic
        The score of a category.
    cells
        The categories; None when the groups themselves are the candidates.
    count
        How many candidates there are.
    rounds
        How many winners are chosen.
    """

    statistic: Statistic
    cells: CategoryCells | None
    count: int
    winners: int = 1

    @property
    def tables(self) -> tuple[Table, ...]:
        return (Table(self.statistic, self.cells),)

    @property
    def step(self) -> Fraction:
        return self.statistic.step

    @property
    def weighted(self) -> bool:
        return False

    @property
    def candidates(self) -> int:
        return self.count

    @property
    def rounds(self) -> int:
        return self.winners

    def entries(self, scope: Scope) -> int:
        return 1 if self.cells is None or scope.entries is None else scope.entries

    def spread(self, scope: Scope) -> Spread:
        return self.statistic.spread(scope)

    def sensitivity(self, scope: Scope) -> ExactSensitivity:
        spread = self.spread(scope)
        if isinstance(self.statistic, DistinctIndividuals) and self.cells is not None:
            spread = once_in_each(scope.facts, scope.groups, self.cells.tree, self.count)
        return additive_sensitivity(
            self.statistic.contribution(scope.facts),
            spread,
            self.count * self.entries(scope),
            1 if self.cells is None else self.count,
        )

    def score_range(self, scope: Scope) -> ScoreRange:
        """Rows in several groups are so many choices where each group has its own; where groups are
        the candidates, or a limit leaves m rows for each, they move scores apart by m times the
        width at most. One individual moves numbers of individuals by 0 or 1, all of them one way.
        """
        contribution = self.statistic.contribution(scope.facts)
        b, spread = contribution.magnitude, self.spread(scope)
        rows, groups, most = spread.tight
        if spread.changes:
            return ScoreRange.of_one(2 * most * b)
        joined = replace(contribution, always=False)  # a candidate need not have the row
        if self.cells is None:
            return ScoreRange.of_one(min(rows * b, most * joined.width))
        of_one = rows_of_value(scope.facts, scope.groups, self.cells.tree)
        largest = most * b if of_one is None else min(most * b, of_one * joined.width)
        return ScoreRange.of_groups(min(rows * b, groups * largest), largest)

    def ballots(self, counted: Sequence[CellCounts], first: int, end: int) -> Integers:
        if self.cells is None:  # one choice among all groups
            return counted[0].dense(1).reshape(1, -1)[first:end]
        return counted[0].dense(self.count, first, end)

    def words(self) -> str:
        among = f"{self.count} groups" if self.cells is None else self.cells.words()
        return f"{_top(self.winners)} of {among} by {self.statistic.words()}"


@dataclass(frozen=True, slots=True)
class ScoredChoice(Selection):
    """The choice among public candidates, each scored by a sum over all rows.

    A row adds to the score of every candidate, between lo and hi or 0, so scores can differ by the
    width w = max(hi, 0) - min(lo, 0) in how they change.
    """

    statistics: tuple[GridSum, ...]
    winners: int = 1

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(Table(s) for s in self.statistics)

    @property
    def step(self) -> Fraction:
        return self.statistics[0].step

    @property
    def weighted(self) -> bool:
        return False

    @property
    def candidates(self) -> int:
        return len(self.statistics)

    @property
    def rounds(self) -> int:
        return self.winners

    def _contribution(self) -> Contribution:
        return self.statistics[0].grid.contribution

    def sensitivity(self, scope: Scope) -> ExactSensitivity:
        one = additive_sensitivity(self._contribution(), scope.spread, scope.entries)
        return one.repeated(self.candidates)

    def score_range(self, scope: Scope) -> ScoreRange:
        width, spread = self._contribution().width, scope.spread
        rows, _, most = spread.tight
        if spread.changes:
            return ScoreRange.of_one(2 * most * width)
        return ScoreRange(rows * width, spread.l2_squared * width * width, most * width)

    def ballots(self, counted: Sequence[CellCounts], first: int, end: int) -> Integers:
        columns = [table.dense(1, first, end) for table in counted]
        return np.concatenate(columns, axis=1)

    def words(self) -> str:
        grid, dtype = self.statistics[0].grid, self.statistics[0].value.domain.dtype
        lo, hi = (show_value(grid.centre + end * grid.step, dtype) for end in (grid.lo, grid.hi))
        return (
            f"{_top(self.winners)} of {self.candidates} candidates by the sum of their score over "
            f"all rows, clamped to [{lo}, {hi}] in each row; null and NaN add 0"
        )


def _shown(candidates: pl.DataFrame, length: int = 200) -> str:
    """A public frame of candidates, in a plan; the first rows where there are many."""
    rows: list[str] = []
    for row in candidates.iter_rows():
        rows.append(f"({', '.join(repr(v) if isinstance(v, str) else str(v) for v in row)})")
        if sum(len(r) + 2 for r in rows) > length:
            break
    rest = f" and {candidates.height - len(rows)} more" if candidates.height > len(rows) else ""
    return f"candidates ({', '.join(candidates.columns)}): {', '.join(rows)}{rest}"


def _top(winners: int) -> str:
    return "the best" if winners == 1 else f"the {winners} best"


@dataclass(frozen=True, slots=True, eq=False)
class BoundArgmax(BoundAggregate):
    """Winners, by their codes.

    Parameters
    ----------
    winners
        How many.
    names
        The candidates by code; None where they are groups.
    looks
        The shape of the result.
    scored
        What the score clamps.
    """

    winners: int
    names: pl.Series | None
    looks: Shape
    scored: tuple[Clamp, ...]

    @property
    def shape(self) -> Shape:
        return self.looks

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return self.scored

    @property
    def note(self) -> str:
        candidates = self.request.parameters.get("candidates")
        out = "only the winner comes out, not its score"
        if self.winners > 1:
            out = f"only the {self.winners} winners come out, in order, not their scores"
        return f"{out}; {_shown(candidates)}" if isinstance(candidates, pl.DataFrame) else out

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        codes = pl.Series(self.name, values[0].reshape(-1), dtype=pl.Int64)
        return codes if self.names is None else self.names.gather(codes).alias(self.name)


class Argmax(Aggregate):
    """The candidate with the highest score, chosen privately; only its identity comes out.

    Guarantee
    ---------
    Permute-and-flip (McKenna & Sheldon 2020) at scale R / epsilon; in zCDP, and in approximate DP
    from some five choices on, the exponential mechanism at rho = R^2 / (8 scale^2) (Cesar & Rogers
    2021). R is the range of
    score changes over candidates: k b for k rows per individual that each belong to one category
    and add at most b to its score (twice that under change-one). With `k` winners the cost is
    divided equally over k choices, each among those that are left. In a grouped frame each group
    chooses on its own rows, and a row belongs to one group. Where the score is the number of
    individuals, R is 1 in each group that an individual is in, whatever its rows.

    Proof
    -----
    A row belongs to one category and moves that score alone, by at most b; k rows move scores apart
    by at most k b, however they are divided. A row that changes takes b from one and gives b to
    another. With a frame of candidates a row adds to every score between lo and hi, or 0, so it
    moves two of them apart by at most w = max(hi, 0) - min(lo, 0) in place of b. Where limits leave
    an individual m rows of each category at most, each score moves by at most m max(hi, 0) one way
    or m max(-lo, 0) the other, so two of them move apart by at most m w. An individual is counted
    once for each candidate that one of its rows belongs to, and not for others, so adding it moves
    every score by 0 or 1, and removing it by 0 or -1: two of them by at most 1 apart. Why the
    mechanisms need no more than the range stands with them. Later choices are made after seeing
    earlier ones, at a cost that was fixed before: costs add up, in epsilon or in rho, and pairs
    that dominate their privacy losses compose (Zhu, Dong & Wang 2022, Theorem 10).
    """

    kind: ClassVar[str] = "argmax"
    summary: ClassVar[str] = "the category, candidate or group with the highest score"
    mechanisms: ClassVar[tuple[str, ...]] = (
        "auto",
        "exponential",
        "permute_and_flip",
        "report_noisy_max",
    )
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("e").dp_argmax()',
        'pl.col("s").dp_argmax(candidates=["a", "b", ""])',
        'pl.col("e").dp_argmax(score=pl.col("i64").dp_sum((-3, 9)))',
        'pl.col("e").dp_argmax(score=pl.col("u8") * 2, k=2)',
    )

    def bind(self, request: Request, scope: Scope) -> BoundArgmax:
        winners = int(request.parameters.get("k", 1))
        part, names, shape = self._choice(request, scope, winners)
        _check_winners(winners, part.candidates, request)
        # each of several rounds has its part of the cost, and errs by so much more
        use = Use(part, "argmax", choice_impact(part.candidates) * part.rounds**2)
        return BoundArgmax(request, (use,), winners, names, shape, _score_clamps(request, scope))

    def _choice(
        self, request: Request, scope: Scope, winners: int
    ) -> tuple[CategoryChoice | ScoredChoice, pl.Series | None, Shape]:
        """The choice, the candidates in their order, unless they are groups, and the shape."""
        shape = Ranks(ranks(winners)) if winners > 1 else OneChoice()
        candidates = request.parameters.get("candidates")
        if isinstance(candidates, pl.DataFrame):
            statistics = _candidate_scores(request, scope, candidates)
            return ScoredChoice(statistics, winners), candidates.to_series(0), shape
        statistic = _score(request, scope)
        if request.parameters.get("best_group"):
            size = _listed_groups(scope)
            part = CategoryChoice(statistic, None, size, winners)
            return part, None, BestGroups(ranks(winners))
        cells = _categories(request, scope)
        stored = stored_as(domain(cells.tree, scope.facts.columns).dtype)
        names = pl.Series(cells.categories, dtype=stored)
        return CategoryChoice(statistic, cells, cells.size, winners), names, shape


def _listed_groups(scope: Scope) -> int:
    """How many groups there are to choose among."""
    assert scope.groups is not None
    if scope.groups.discovered:
        raise MissingKeys(
            "the best group is chosen among public keys, and nobody listed any",
            where=f"{scope.groups.words()}.dp_argmax()",
            remedy="list them: group_by(..., keys=[...])",
        )
    return scope.groups.size


def _categories(request: Request, scope: Scope) -> CategoryCells:
    assert request.tree is not None
    found = domain(request.tree, scope.facts.columns)
    candidates = request.parameters.get("candidates")
    if candidates is None:
        return CategoryCells(request.tree, known_categories(request.tree, found))
    where = f"{words(request.tree)}.dp_argmax(candidates=...)"
    if isinstance(candidates, str) or not hasattr(candidates, "__iter__"):
        raise InvalidBounds(
            f"candidates must be a list or a frame, not {as_given(candidates)}",
            where=where,
            remedy='write for example candidates=["a", "b"]',
        )
    return CategoryCells(request.tree, listed_categories(list(candidates), found, where))


def _score(request: Request, scope: Scope) -> Statistic:
    """The statistic that ranks categories."""
    match request.score:
        case None:
            return RowCount()
        case Request() as inner:
            return _aggregate_score(inner, scope)
        case tree:
            value = numeric_value(tree, domain(tree, scope.facts.columns), "sum")
            return grid_sum(value, bounds_of(value, None, "sum"))


def _aggregate_score(inner: Request, scope: Scope) -> Statistic:
    if is_per_unit(inner, scope):
        raise UnsupportedOperation(
            "candidates are scored by rows, not by totals of individuals",
            where="dp_argmax(score=...)",
            remedy='leave out per="unit"; limit_rows bounds what one individual adds to a score',
        )
    scoring = _SCORES.get(inner.kind)
    if scoring is None:
        raise UnsupportedOperation(
            f"a {inner.kind} cannot score candidates: its sensitivity is not that of a sum over "
            "rows",
            where="dp_argmax(score=...)",
            remedy="score by dp.count(), .dp_sum(bounds), .dp_n_unique() or a row-wise expression",
        )
    return scoring.score(inner, scope)


def _score_clamps(request: Request, scope: Scope) -> tuple[Clamp, ...]:
    """What an aggregate clamps that scores categories."""
    inner = request.score
    return _SCORES[inner.kind].bind(inner, scope).clamps if isinstance(inner, Request) else ()


def _candidate_scores(
    request: Request, scope: Scope, candidates: pl.DataFrame
) -> tuple[GridSum, ...]:
    """One sum per candidate: the score with the candidate's columns replaced by its values."""
    from dpframe.rows.polars_dtypes import from_polars

    score = request.score
    if score is None or isinstance(score, Request):
        raise UnsupportedOperation(
            "candidates from a frame need a score for each row and candidate",
            where="dp_argmax(candidates=<frame>)",
            remedy="give score= a row-wise expression that uses the candidates' columns",
        )
    if not 1 <= candidates.height <= 10_000:
        raise InvalidBounds(
            f"there must be between 1 and 10000 candidates, not {candidates.height}",
            where="dp_argmax(candidates=<frame>)",
            remedy="list the candidates that are worth choosing",
        )
    types = {name: from_polars(dtype) for name, dtype in candidates.schema.items()}
    trees = [
        substitute(score, {n: Literal(v, types[n]) for n, v in row.items()})
        for row in candidates.iter_rows(named=True)
    ]
    values = [numeric_value(t, domain(t, scope.facts.columns), "sum") for t in trees]
    given = request.parameters.get("bounds")
    ends = [bounds_of(v, given, "sum") for v in values]
    lo, hi = min(e[0] for e in ends), max(e[1] for e in ends)
    whole = all(v.is_whole for v in values) and lo.denominator == hi.denominator == 1
    grid = grid_for(lo, hi, centred=False, integers=whole)
    return tuple(GridSum(v, grid) for v in values)


def _check_winners(winners: int, candidates: int, request: Request) -> None:
    if not 1 <= winners <= candidates:
        where = words(request.tree) if isinstance(request.tree, Column) else "dp_argmax"
        raise InvalidBounds(
            f"k = {winners} winners cannot be chosen from {candidates} candidates",
            where=where,
            remedy=f"give k between 1 and {candidates}",
        )
