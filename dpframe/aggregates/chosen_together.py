"""What ways to choose several quantiles of one column together have in common."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.measurement import Selection, Table, counted
from dpframe.aggregates.quantile import QuantileChoice
from dpframe.aggregates.request import QueryScope
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.exact import show

__all__ = ["ChosenTogether", "listed"]

_FEW = 12
"""This many quantiles are listed in plans."""


class ChosenTogether(Selection):
    """Several quantiles of one column, whose codes come in rising order."""

    __slots__ = ()

    cells: PointCells | PositionCells
    quantiles: tuple[Fraction, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return (counted(self.cells),)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.tables[0].statistic.spread(scope)

    @property
    def first(self) -> QuantileChoice:
        return QuantileChoice(self.cells, self.quantiles[0])

    @property
    def weighted(self) -> bool:
        return True

    @property
    def candidates(self) -> int:
        return self.first.candidates

    @property
    def chosen(self) -> int:
        return len(self.quantiles)


def listed(quantiles: Sequence[Fraction]) -> str:
    """Quantiles, for plans."""
    found = [show(q) for q in quantiles]
    if len(found) > _FEW:
        return f"{len(found)} from {found[0]} to {found[-1]}"
    return ", ".join(found)
