"""Report noisy max: a private choice by adding noise to every score."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.core.exact import float_up
from dpframe.mechanisms.confidence import DIGITS, miss
from dpframe.mechanisms.discrete_laplace import chance_apart
from dpframe.mechanisms.peeling import peel
from dpframe.mechanisms.scaled_selection import ScaledSelection
from dpframe.samplers import OS, BitSource, report_noisy_max, report_noisy_max_each
from dpframe.samplers.cells import MAX_SCALE, MIN_SCALE

__all__ = ["ReportNoisyMax"]


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

    def select(self, scores: NDArray[np.int64], source: BitSource | None = None) -> int:
        """The index of one candidate among int64 `scores`, exact given ideal bits.

        `source` is for tests only.
        """
        return report_noisy_max(scores, self.scale, OS if source is None else source)

    def select_each(
        self, scores: NDArray[np.int64], source: BitSource | None = None
    ) -> NDArray[np.int64]:
        """The index of one candidate per row of `scores`, each choice on its own."""
        return report_noisy_max_each(scores, self.scale, OS if source is None else source)

    def select_top(
        self, scores: NDArray[np.int64], k: int, source: BitSource | None = None
    ) -> list[int]:
        """`k` different candidates in order of selection; costs k times one selection."""
        return peel(lambda s, _: self.select(s, source), scores, k)
