"""Report noisy max: a private choice by adding noise to every score."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from dpframe.core.exact import float_up
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.confidence import DIGITS, miss
from dpframe.mechanisms.discrete_laplace import chance_apart
from dpframe.mechanisms.scaled_selection import ScaledSelection
from dpframe.samplers.cells import MAX_SCALE, MIN_SCALE


@dataclass(frozen=True, slots=True)
class ReportNoisyMax(ScaledSelection):
    """The candidate with the largest score plus discrete Laplace noise; ties at random.

    Sensitivity enters as the *range* of score changes, largest minus smallest, and the cost is
    range / scale (Dwork and Roth 2014, Claim 3.9). With the order in which ties are broken and
    the others' noise fixed, i wins when its noise reaches a threshold. Only differences of scores
    matter, so a change moves that threshold by at most the range. P(noise >= x + range) is at
    least exp(-range / scale) P(noise >= x), term by term, for whole ranges. It has a larger error
    than permute-and-flip at the same cost (Ding, Kifer, Sayyid, Wang and Zhang 2021), so it is
    never chosen unasked.
    """

    name: ClassVar[str] = "report_noisy_max"
    label: ClassVar[str] = "report noisy max"
    least: ClassVar[Fraction] = MIN_SCALE
    largest: ClassVar[Fraction] = MAX_SCALE

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.NoisyMax(self.scale)

    def rho(self, range_l1: Fraction) -> Fraction:
        """The zCDP cost, epsilon**2 / 2 (Bun and Steinke 2016, Prop. 1.4)."""
        return self.epsilon(range_l1) ** 2 / 2

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the chosen score is within this much of the best one; rounded up.

        A candidate that is a below the best wins only if its noise exceeds the best one's by a, see
        `dpframe.mechanisms.discrete_laplace.chance_apart`; summed over the other candidates.

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        ValueError
            When there is no candidate.
        """
        if candidates < 1:
            raise ValueError("at least one candidate is needed")
        rest = miss(confidence)
        allowed = DIGITS.divide(Decimal(rest.numerator), Decimal(rest.denominator))
        if candidates == 1:
            return 0.0
        low, high = -1, 1
        while (candidates - 1) * chance_apart(self.scale, high) > allowed:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if (candidates - 1) * chance_apart(self.scale, middle) > allowed:
                low = middle
            else:
                high = middle
        return float_up(Fraction(high))
