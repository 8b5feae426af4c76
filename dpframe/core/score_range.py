"""The largest change in the difference of two scores by one individual."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.core.sensitivity import concentrated

__all__ = ["ScoreRange"]


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """How much one individual can change scores *relative to each other*.

    A selection compares scores, so in a group only the range R of the score changes matters: their
    maximum minus their minimum over candidates. R is at most twice the score's sensitivity, and
    equal to it where all scores move in the same direction.

    Parameters
    ----------
    l1
        The largest sum of ranges over groups.
    l2_squared
        The largest sum of squared ranges over groups.
    linf
        The largest range in one group.
    """

    l1: Fraction
    l2_squared: Fraction
    linf: Fraction

    @property
    def groups(self) -> tuple[Fraction, ...]:
        """As many groups with the largest range as L1 allows, and one with what is left.

        Choices in these groups cost no less than in any others within L1 and Linf, see
        `dpframe.accounting.losses`.
        """
        return concentrated(self.l1, self.linf)

    def is_shared(self, touched: int) -> bool:
        """Whether the ranges in this many groups may differ from those of `groups`, so that they
        are neither each at most one of these nor parts of one of them.
        """
        return self.linf < self.l1 < touched * self.linf
