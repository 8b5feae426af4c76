"""What private selections have in common: a scale, and a cost of range / scale."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpframe.mechanisms.rounding import (
    in_range,
    nonnegative,
    positive_budget,
    positive_sensitivity,
)
from dpframe.samplers.selection import MAX_SELECTION_SCALE, MIN_SELECTION_SCALE

__all__ = ["ScaledSelection"]


@dataclass(frozen=True, slots=True)
class ScaledSelection:
    """A private choice whose pure cost is the range of score changes over its scale.

    Sensitivity enters as the *range* of score changes: the largest minus the smallest change of any
    candidate's score between neighbours. It is twice the sensitivity in general, and once when all
    scores move the same way (monotonic scores). Each mechanism says why its cost is no more.

    Parameters
    ----------
    scale
        In units of the score. Below 2**-10 it is raised to that.

    Raises
    ------
    InvalidBudget
        When the scale is larger than can be drawn.
    ValueError
        When the scale is not an exact number above 0.
    """

    scale: Fraction
    least: ClassVar[Fraction] = MIN_SELECTION_SCALE
    largest: ClassVar[Fraction] = MAX_SELECTION_SCALE

    def __post_init__(self) -> None:
        scale = in_range(self.scale, self.least, self.largest, "the scale of the selection")
        object.__setattr__(self, "scale", scale)

    @classmethod
    def for_pure(cls, range_l1: Fraction, epsilon: Fraction) -> Self:
        """The sharpest epsilon-private choice: scale = range / epsilon.

        Parameters
        ----------
        range_l1
            The range of score changes, summed over the groups that one unit can touch.
        epsilon
            Above 0.
        """
        wide = positive_sensitivity(range_l1, "range_l1")
        return cls(wide / positive_budget(epsilon, "epsilon"))

    def epsilon(self, range_l1: Fraction) -> Fraction:
        """The pure cost, range / scale, exactly."""
        return nonnegative(range_l1, "range_l1") / self.scale
