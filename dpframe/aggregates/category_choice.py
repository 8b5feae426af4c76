"""The private choice among categories, or among groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.aggregates.cells import CategoryCells
from dpframe.aggregates.measurement import (
    Selection,
    Table,
    rows_of_cell,
)
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import Statistic
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.score_range import ScoreRange
from dpframe.core.sensitivity import ExactSensitivity, additive_sensitivity
from dpframe.frames.contributions import once_in_each


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
    def weighted(self) -> bool:
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

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        spread = self.spread(scope)
        if self.statistic.of_individuals and self.cells is not None:
            spread = once_in_each(scope.facts, scope.groups, self.cells.tree, self.count)
        return additive_sensitivity(
            self.statistic.contribution(scope.facts),
            spread,
            self.count * self.entries(scope),
            1 if self.cells is None else self.count,
            rows_of_cell(scope, self.cells),
        )

    def score_range(self, scope: QueryScope) -> ScoreRange:
        """Where each group has its own choice, rows in several groups affect several choices.
        Where groups are the candidates, or a limit leaves m rows for each, they change the
        difference of two scores by at most m times the width. One individual moves numbers of
        individuals by 0 or 1, all of them one way.
        """
        contribution = self.statistic.contribution(scope.facts)
        b, spread = contribution.magnitude, self.spread(scope)
        rows, groups, most = spread.tight
        if spread.changes:
            return ScoreRange.of_one(2 * most * b)
        joined = replace(contribution, always=False)  # a candidate need not have the row
        if self.cells is None:
            return ScoreRange.of_one(min(rows * b, most * joined.width))
        of_one = rows_of_cell(scope, self.cells)
        largest = most * b if of_one is None else min(most * b, of_one * joined.width)
        return ScoreRange.of_groups(min(rows * b, groups * largest), largest)

    def words(self) -> str:
        among = f"{self.count} groups" if self.cells is None else self.cells.words()
        return f"{best_of(self.winners)} of {among} by {self.statistic.words()}"


def best_of(winners: int) -> str:
    """How many are chosen, in words."""
    return "the best" if winners == 1 else f"the {winners} best"
