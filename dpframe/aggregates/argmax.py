"""Private choices among candidates, and what scores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import polars as pl

from dpframe.aggregates.aggregate import (
    Aggregate,
    BoundAggregate,
    Clamp,
    MeasurementUse,
    Noisy,
    ScoringAggregate,
    names_of,
)
from dpframe.aggregates.cells import CategoryCells
from dpframe.aggregates.histogram import read_categories, require_categories, stored_type
from dpframe.aggregates.measurement import Additive, Selection, Table, choice_impact
from dpframe.aggregates.request import GivenBounds, QueryScope, Request
from dpframe.aggregates.shapes import BestGroups, OneChoice, Ranks, Shape, ranks
from dpframe.aggregates.statistics import GridSum, RowCount, Statistic
from dpframe.aggregates.sum import grid_sum
from dpframe.aggregates.values import bounds_of, numeric_value, show_value
from dpframe.core.interval import grid_for
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity
from dpframe.core.tree import Column, Literal, substitute
from dpframe.errors import InvalidBounds, MissingKeys, UnsupportedOperation
from dpframe.frames.contributions import once_in_each
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import SELECTIONS
from dpframe.rows.fold import domain, words
from dpframe.rows.polars_dtypes import from_polars

# -- the private choice among categories, or among groups -----------------------------------------


@dataclass(frozen=True, slots=True)
class CategoryChoice(Selection):
    """The choice among categories, or among groups, of the one with the highest statistic.

    A row belongs to one category, so adding it changes one score by at most b, the largest
    contribution. For m rows of a group the range of changes is m b. Changing a row takes b from
    one score and gives b to another.

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
    def has_weights(self) -> bool:
        return False

    @property
    def candidates(self) -> int:
        return self.count

    @property
    def rounds(self) -> int:
        return self.winners

    def entries(self, scope: QueryScope) -> int:
        return 1 if self.cells is None or scope.entries is None else scope.entries

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.statistic.spread(scope)

    def node(self, scope: QueryScope) -> kernel.Choice:
        place = scope.rules.place(self.tables[0])
        return kernel.Choice((place,), "groups" if self.cells is None else "cells", self.winners)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        (table,) = self.tables
        if self.statistic.of_individuals and self.cells is not None:
            most = once_in_each(scope.facts, scope.groups, self.cells.tree, self.count).tight[0]
            b = scope.rules.addition(table).hi
            return ExactSensitivity(most, Fraction(most * b), Fraction(most * b * b), Fraction(b))
        self.spread(scope)
        return scope.rules.sensitivity(Additive(table), lambda: Additive(table).node(scope))

    def words(self) -> str:
        among = f"{self.count} groups" if self.cells is None else self.cells.words()
        return f"{best_of(self.winners)} of {among} by {self.statistic.words()}"


def best_of(winners: int) -> str:
    """How many are chosen, in words."""
    return "the best" if winners == 1 else f"the {winners} best"


# -- the private choice among public candidates that every row scores -----------------------------


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
    def has_weights(self) -> bool:
        return False

    @property
    def candidates(self) -> int:
        return len(self.statistics)

    @property
    def rounds(self) -> int:
        return self.winners

    def node(self, scope: QueryScope) -> kernel.Choice:
        return kernel.Choice(tuple(map(scope.rules.place, self.tables)), "tables", self.winners)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        return Additive(self.tables[0]).sensitivity(scope).repeat(self.candidates)

    def words(self) -> str:
        grid, dtype = self.statistics[0].grid, self.statistics[0].value.domain.dtype
        lo, hi = (show_value(grid.centre + end * grid.step, dtype) for end in (grid.lo, grid.hi))
        return (
            f"{best_of(self.winners)} of {self.candidates} candidates by the sum of their score "
            f"over all rows, clamped to [{lo}, {hi}] in each row; null and NaN add 0"
        )


def candidate_scores(
    request: Request, scope: QueryScope, candidates: pl.DataFrame, given: GivenBounds
) -> tuple[GridSum, ...]:
    """One sum per candidate: the score with the candidate's columns replaced by its values."""
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
            remedy="list at most 10,000 candidates",
        )
    types = {name: from_polars(dtype) for name, dtype in candidates.schema.items()}
    trees = [
        substitute(score, {n: Literal(v, types[n]) for n, v in row.items()})
        for row in candidates.iter_rows(named=True)
    ]
    values = [numeric_value(t, scope.facts.columns, "sum") for t in trees]
    ends = [bounds_of(v, given, "sum") for v in values]
    lo, hi = min(e[0] for e in ends), max(e[1] for e in ends)
    whole = all(v.is_whole for v in values) and lo.denominator == hi.denominator == 1
    grid = grid_for(lo, hi, centred=False, integers=whole)
    return tuple(GridSum(v, grid) for v in values)


# -- private selection of the best candidate ------------------------------------------------------


def _show_candidates(candidates: pl.DataFrame, length: int = 200) -> str:
    """A public frame of candidates, in a plan; the first rows where there are many."""
    rows: list[str] = []
    for row in candidates.iter_rows():
        rows.append(f"({', '.join(repr(v) if isinstance(v, str) else str(v) for v in row)})")
        if sum(len(r) + 2 for r in rows) > length:
            break
    rest = f" and {candidates.height - len(rows)} more" if candidates.height > len(rows) else ""
    return f"candidates ({', '.join(candidates.columns)}): {', '.join(rows)}{rest}"


@dataclass(frozen=True, slots=True, eq=False)
class BoundArgmax(BoundAggregate):
    """Winners, by their codes."""

    winners: int  # How many
    names: pl.Series | None  # The candidates by code; None where they are groups
    looks: Shape  # The shape of the result
    scored: tuple[Clamp, ...]  # What the score clamps
    candidates: pl.DataFrame | None  # A public frame of them, which the plan shows

    @property
    def shape(self) -> Shape:
        return self.looks

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return self.scored

    @property
    def note(self) -> str:
        out = "only the winner comes out, not its score"
        if self.winners > 1:
            out = f"only the {self.winners} winners come out, in order, not their scores"
        return out if self.candidates is None else f"{out}; {_show_candidates(self.candidates)}"

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        codes = pl.Series(self.name, values[0].reshape(-1), dtype=pl.Int64)
        return codes if self.names is None else self.names.gather(codes).alias(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Argmax(Aggregate):
    """The candidate with the highest score, chosen privately; only its identity comes out.

    Guarantee
    ---------
    Permute-and-flip (McKenna & Sheldon 2020) at scale R / epsilon; in zCDP, and in approximate DP
    from some five choices on, the exponential mechanism at rho = R^2 / (8 scale^2) (Cesar & Rogers
    2021). R is the range of
    score changes over candidates: k b for k rows per individual that each belong to one category
    and add at most b to its score (twice that under change-one). With `k` winners the cost is
    divided equally over k choices, each among those that are left, or all are read from one noisy
    table by the L1 or L2 of all scores, whichever has a smaller error. In a grouped frame each
    group chooses on its own rows, and a row belongs to one group. Where the score is the number
    of individuals, R is 1 in each group that an individual is in, for any number of rows.

    Proof
    -----
    A row belongs to one category and moves that score alone, by at most b; k rows change the
    difference of two scores by at most k b, in any division among categories. A row that changes
    takes b from one and gives b to another. With a frame of candidates a row adds to every score
    between lo and hi, or 0, so it changes the difference of two of them by at most w = max(hi,
    0) - min(lo, 0) in place of b. Where limits leave an individual m rows of each category at most,
      each score moves by at most m max(hi, 0) in one direction or m max(-lo, 0) in the other, so
      the difference of two of them changes by at most m w. An individual is counted once for each
      candidate that one of its rows belongs to, and not for others. So adding it moves every
      score by 0 or 1, and removing it by 0 or -1: the difference of two scores changes by at
      most 1. Why the mechanisms need no more than the range
    stands with them. Later choices are made after seeing earlier ones, at a cost that was fixed
    before: costs add up, in epsilon or in rho, and pairs that dominate their privacy losses
    compose (Zhu, Dong & Wang 2022, Theorem 10).
    """

    candidates: tuple[Any, ...] | pl.DataFrame | None = None
    k: int = 1
    bounds: GivenBounds = None
    best_group: bool = False

    kind: ClassVar[str] = "argmax"
    summary: ClassVar[str] = "the category, candidate or group with the highest score"
    mechanisms: ClassVar[tuple[str, ...]] = names_of(*SELECTIONS)
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("e").dp_argmax()',
        'pl.col("s").dp_argmax(candidates=["a", "b", ""])',
        'pl.col("e").dp_argmax(score=pl.col("i64").dp_sum((-3, 9)))',
        'pl.col("e").dp_argmax(score=pl.col("u8") * 2, k=2)',
    )

    @property
    def name_without_column(self) -> str | None:
        if isinstance(self.candidates, pl.DataFrame) and self.candidates.columns:
            return self.candidates.columns[0]
        return "len" if self.best_group else None

    @property
    def counts_missing(self) -> bool:
        return True

    def arguments(self) -> dict[str, Any]:
        return {"candidates": self.candidates, "k": self.k, "bounds": self.bounds}

    def bind(self, request: Request, scope: QueryScope) -> BoundArgmax:
        part, names = self._choice(request, scope)
        _check_winners(self.k, part.candidates, request)
        # each round gets its part of the cost, so its error is `rounds` times as large
        use = MeasurementUse(part, "argmax", choice_impact(part.candidates) * part.rounds**2)
        clamps = _score_clamps(request, scope)
        frame = self.candidates if isinstance(self.candidates, pl.DataFrame) else None
        return BoundArgmax(request, (use,), self.k, names, self._shape, clamps, frame)

    def _choice(
        self, request: Request, scope: QueryScope
    ) -> tuple[CategoryChoice | ScoredChoice, pl.Series | None]:
        """The choice, and the candidates in their order, unless they are groups."""
        candidates = self.candidates
        if isinstance(candidates, pl.DataFrame):
            statistics = candidate_scores(request, scope, candidates, self.bounds)
            return ScoredChoice(statistics, self.k), candidates.to_series(0)
        statistic = _score(request, scope, self.bounds)
        if self.best_group:
            return CategoryChoice(statistic, None, _count_groups(scope), self.k), None
        cells = _categories(request, scope, candidates)
        stored = stored_type(domain(cells.tree, scope.facts.columns).dtype)
        names = pl.Series(cells.categories, dtype=stored)
        return CategoryChoice(statistic, cells, cells.size, self.k), names

    @property
    def _shape(self) -> Shape:
        """The shape for a checked number of winners."""
        if self.best_group:
            return BestGroups(ranks(self.k))
        return Ranks(ranks(self.k)) if self.k > 1 else OneChoice()


def _count_groups(scope: QueryScope) -> int:
    """How many groups there are to choose among."""
    assert scope.groups is not None
    if scope.groups.discovered:
        raise MissingKeys(
            "dp_argmax() by group chooses among public keys, and none are listed",
            where=f"{scope.groups.words()}.dp_argmax()",
            remedy=(
                "list them: group_by(..., keys=[...])",
                "find the groups with .group_by(...).len(), and take the largest of "
                "the released result",
            ),
        )
    return scope.groups.size


def _categories(
    request: Request, scope: QueryScope, candidates: tuple[Any, ...] | None
) -> CategoryCells:
    assert request.tree is not None
    found = domain(request.tree, scope.facts.columns)
    if candidates is None:
        known = require_categories(request.tree, found, '.dp_argmax(candidates=["a", "b"])')
        return CategoryCells(request.tree, known)
    where = f"{words(request.tree)}.dp_argmax(candidates=...)"
    return CategoryCells(request.tree, read_categories(list(candidates), found, where))


def _score(request: Request, scope: QueryScope, given: GivenBounds) -> Statistic:
    """The statistic that ranks categories; `given` bounds what a row adds to a row-wise score."""
    match request.score:
        case None:
            _require_no_bounds(given)
            return RowCount()
        case Request() as inner:
            _require_no_bounds(given)
            return _aggregate_score(inner, scope)
        case tree:
            value = numeric_value(tree, scope.facts.columns, "sum")
            return grid_sum(value, bounds_of(value, given, "sum"))


def _require_no_bounds(given: GivenBounds) -> None:
    """Refuse bounds where no row-wise score is summed: they would bound nothing."""
    if given is not None:
        raise InvalidBounds(
            "bounds= limits what one row adds to a row-wise score, and there is no row-wise score",
            where="dp_argmax(bounds=...)",
            remedy=("leave bounds= out", "give score= a row-wise expression"),
        )


def _aggregate_score(inner: Request, scope: QueryScope) -> Statistic:
    if not isinstance(inner.aggregate, ScoringAggregate):
        raise UnsupportedOperation(
            f"a {inner.kind} cannot be the score of candidates",
            where="dp_argmax(score=...)",
            why="its sensitivity is not that of a sum over rows",
            remedy="score by dp.count(), .dp_sum(bounds), .dp_n_unique() or a row-wise expression",
        )
    return inner.aggregate.score(inner, scope)


def _score_clamps(request: Request, scope: QueryScope) -> tuple[Clamp, ...]:
    """What an aggregate clamps that scores categories."""
    inner = request.score
    if isinstance(inner, Request) and isinstance(inner.aggregate, Aggregate):
        return inner.aggregate.bind(inner, scope).clamps
    return ()


def _check_winners(winners: int, candidates: int, request: Request) -> None:
    if not 1 <= winners <= candidates:
        where = words(request.tree) if isinstance(request.tree, Column) else "dp_argmax"
        raise InvalidBounds(
            f"k = {winners} winners cannot be chosen from {candidates} candidates",
            where=where,
            remedy=f"give k between 1 and {candidates}",
        )
