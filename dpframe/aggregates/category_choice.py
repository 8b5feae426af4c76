"""The private choice among categories, or among groups."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.aggregates.cells import CategoryCells
from dpframe.aggregates.measurement import Additive, Selection, Table
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import Statistic
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.frames.contributions import once_in_each
from dpframe.kernel import plan as kernel


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
