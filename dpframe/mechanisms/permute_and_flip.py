"""Permute-and-flip: the better private choice under pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import float_up
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.confidence import DIGITS, miss
from dpframe.mechanisms.scaled_selection import ScaledSelection
from dpframe.mechanisms.tasks import SelectionTask


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(ScaledSelection):
    """Candidates in random order, each taken with probability exp((score - best) / scale).

    Sensitivity enters as the *range* of score changes, largest minus smallest, and the cost is
    range / scale. Why: only differences from the best score matter, so subtracting the smallest
    change from all scores changes nothing and leaves changes between 0 and the range. For such
    one-sided changes the bound holds without a factor of 2 (McKenna and Sheldon 2020, on monotonic
    scores). It follows from the equal law, the maximum of score + Exp(scale) noise (Ding, Kifer,
    Sayyid, Wang and Zhang 2021). With the others' noise fixed, i wins when its noise exceeds a
    threshold. The change moves that threshold by at most the range in either direction, and
    P(noise > x + range) >= exp(-range / scale) P(noise > x).
    """

    name: ClassVar[str] = "permute_and_flip"
    label: ClassVar[str] = "permute-and-flip"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.PermuteAndFlip(self.scale)

    @classmethod
    def is_preferred(cls, task: SelectionTask, share: Budget) -> bool:
        """If epsilon is shared and each candidate is one point."""
        return not task.weighted and not isinstance(share, ZCDP)

    @classmethod
    def reason(cls, task: SelectionTask, share: Budget) -> str:
        """Why it chooses, for plans."""
        auto = task.mechanism == "auto" and not isinstance(share, ZCDP)
        return "never worse than the exponential mechanism" if auto else "as asked"

    def rho(self, range_l1: Fraction) -> Fraction:
        """The zCDP cost, epsilon**2 / 2 (Bun and Steinke 2016, Prop. 1.4).

        There is no discount as for the exponential mechanism: with two candidates whose gap grows
        from 0 to r, the loser's probability falls from 1/2 to exp(-r / scale) / 2.
        """
        return self.epsilon(range_l1) ** 2 / 2

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the chosen score is within this much of the best one; rounded up.

        scale * ln((candidates - 1) / (2 (1 - confidence))), at least 0. A candidate that is a below
        the best succeeds with probability at most exp(-a / scale), and then it is chosen with
        probability at most 1/2, because the best one has succeeded too; sum over the candidates.
        That is less than the exponential mechanism's (McKenna and Sheldon 2020, Theorem 2).

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        ValueError
            When there is no candidate.
        """
        if candidates < 1:
            raise ValueError("at least one candidate is needed")
        odds = (candidates - 1) / (2 * miss(confidence))
        if odds <= 1:
            return 0.0
        log = DIGITS.ln(DIGITS.divide(Decimal(odds.numerator), Decimal(odds.denominator)))
        return float_up(self.scale * Fraction(log))
