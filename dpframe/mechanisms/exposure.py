"""What one individual can do to a release."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.core.sensitivity import ExactSensitivity


@dataclass(frozen=True, slots=True)
class Exposure:
    """What one individual can do to what a mechanism releases.

    Parameters
    ----------
    sensitivity
        The sensitivity of the exact numbers, in steps.
    repeats
        How often the individual meets the mechanism: rounds of a selection, rows that report on
        their own, groups that may appear; else once.
    ranges
        For selections: the ranges of score changes, one for each group that the individual touches.
    range_l1, range_l2_squared
        For selections: the largest sum, and sum of squares, of these ranges.
    shared
        Whether the ranges stand for others within their sum and maximum, see
        `dpframe.core.score_range.ScoreRange.is_shared`.
    """

    sensitivity: ExactSensitivity
    repeats: int = 1
    ranges: tuple[Fraction, ...] = ()
    range_l1: Fraction = Fraction(0)
    range_l2_squared: Fraction = Fraction(0)
    shared: bool = False
