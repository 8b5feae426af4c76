"""How a number of a plan follows from several that are drawn jointly."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.fields import EXACT
from dpframe.core.sensitivity import ExactSensitivity, joint_sensitivity, stays
from dpframe.mechanisms import Arch, Box, box_of


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
    conditions, kept
        For rows that change: the condition of each number (0 means that the row is there, else an
        expression has a value), and its movement by a row that meets the condition before and
        after. See `dpframe.core.sensitivity.joint_sensitivity`. Empty where each number is one on
        its own.
    arches
        The places of numbers that are a count of values, their sum, and the sum of their squares.
    """

    widths: tuple[int, ...]
    turned: tuple[int, ...]
    exact: ExactSensitivity
    factors: tuple[int, ...] = field(metadata={EXACT: True})
    divisor: int = field(metadata={EXACT: True})
    conditions: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    arches: tuple[Arch, ...] = ()

    def box(self, spread: ContributionBounds, grouped: bool) -> Box:
        """What one individual moves the vectors within."""
        return box_of(self.widths, self.turned, spread, grouped, self.arches)

    def sensitivity(self, spread: ContributionBounds, grouped: bool) -> ExactSensitivity:
        """The sensitivity of the vectors, by how rows move them."""
        about = spread, grouped, self.conditions, self.kept
        return joint_sensitivity(self.widths, self.turned, *about)

    @property
    def reach(self) -> Fraction:
        """By how much a row that comes or goes moves the number, where it moves each of the drawn
        ones by as much as it can.
        """
        return Fraction(sum(self._times(self.widths)), self.divisor)

    @property
    def turned_reach(self) -> Fraction:
        """The same of a row that stays and changes, or comes or goes."""
        if not self.conditions:
            return Fraction(sum(self._times(self.turned)), self.divisor)
        widths, kept = self._times(self.widths), self._times(self.kept)
        return Fraction(max(sum(widths), stays(widths, self.conditions, kept)), self.divisor)

    def _times(self, by: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(abs(factor) * width for factor, width in zip(self.factors, by, strict=True))
