"""How a number of a plan follows from several that are drawn together."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.fields import EXACT
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.mechanisms import Box, box_of


@dataclass(frozen=True, slots=True)
class JointDraw:
    """A vector that is drawn at once, and one number that follows from it.

    Parameters
    ----------
    widths, turned
        By how much a row that comes or goes, or one that stays and changes, moves each number of
        the vector at most.
    exact
        The sensitivity of all vectors, one for each group, in steps.
    factors, divisor
        The number is the sum of factor times drawn number, over the divisor.
    """

    widths: tuple[int, ...]
    turned: tuple[int, ...]
    exact: ExactSensitivity
    factors: tuple[int, ...] = field(metadata={EXACT: True})
    divisor: int = field(metadata={EXACT: True})

    def box(self, spread: ContributionBounds, grouped: bool) -> Box:
        """What one individual moves the vectors within."""
        return box_of(self.widths, self.turned, spread, grouped)

    @property
    def reach(self) -> Fraction:
        """By how much a row that comes or goes moves the number, where it moves each of the drawn
        ones by as much as it can.
        """
        return self._moved(self.widths)

    @property
    def turned_reach(self) -> Fraction:
        """The same of a row that stays and changes."""
        return self._moved(self.turned)

    def _moved(self, by: tuple[int, ...]) -> Fraction:
        moved = sum(abs(factor) * width for factor, width in zip(self.factors, by, strict=True))
        return Fraction(moved, self.divisor)
