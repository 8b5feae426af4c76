"""The private choice among public candidates that every row scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from dpframe.aggregates.category_choice import best_of
from dpframe.aggregates.measurement import Additive, Selection, Table
from dpframe.aggregates.request import GivenBounds, QueryScope, Request
from dpframe.aggregates.statistics import GridSum
from dpframe.aggregates.values import bounds_of, numeric_value, show_value
from dpframe.core.grid import grid_for
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.core.tree import Literal, substitute
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.kernel import plan as kernel
from dpframe.rows.fold import domain
from dpframe.rows.polars_dtypes import from_polars


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

    def node(self, scope: QueryScope) -> kernel.Choice:
        return kernel.Choice(tuple(map(scope.rules.place, self.tables)), "tables", self.winners)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        return Additive(self.tables[0]).sensitivity(scope).repeated(self.candidates)

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
    values = [numeric_value(t, domain(t, scope.facts.columns), "sum") for t in trees]
    ends = [bounds_of(v, given, "sum") for v in values]
    lo, hi = min(e[0] for e in ends), max(e[1] for e in ends)
    whole = all(v.is_whole for v in values) and lo.denominator == hi.denominator == 1
    grid = grid_for(lo, hi, centred=False, integers=whole)
    return tuple(GridSum(v, grid) for v in values)
