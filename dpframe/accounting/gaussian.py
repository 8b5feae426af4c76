"""Gaussian differential privacy: squared distances add up."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.accountant import ACROSS, Accountant, ValidFor
from dpframe.accounting.events import AnyEvent, DiscreteGaussianEvent, GaussianEvent
from dpframe.accounting.loss_laws import smoothed_distance
from dpframe.accounting.normal import log_delta_normal, normal_epsilon
from dpframe.core.exact import float_up


class GaussianDPAccountant(Accountant):
    """Gaussian events only: mu**2 = sum((sensitivity / sigma)**2), converted exactly.

    Dong, Roth and Su 2022, Corollary 3.3; Balle and Wang 2018, Theorem 8.

    Discrete noise is seen as continuous noise rounded at random, at a slightly larger mu
    (`dpframe.accounting.gaussian_delta`).
    """

    method: ClassVar[str] = "Gaussian DP"
    valid_for: ClassVar[ValidFor] = ACROSS

    @property
    def mu(self) -> float:
        """The distance between two unit normals that are as hard to distinguish; rounded up."""
        return math.sqrt(self._squared_and_factor()[0]) * (1.0 + 2.0**-50)

    def _covers(self, event: AnyEvent) -> bool:
        if isinstance(event, DiscreteGaussianEvent):
            return smoothed_distance(event) is not None
        return isinstance(event, GaussianEvent)

    def _squared_and_factor(self) -> tuple[float, float]:
        squared, factor = Fraction(0), 0.0
        for event, count in self.counts.items():
            assert isinstance(event, (GaussianEvent, DiscreteGaussianEvent))
            found = smoothed_distance(event)
            assert found is not None
            squared += count * found[0]
            factor += count * found[1]
        return float_up(squared), factor * (1.0 + 1e-9)

    def _epsilon(self, delta: Fraction) -> float:
        squared, factor = self._squared_and_factor()
        left = self._left(delta) * math.exp(-factor) * (1.0 - 1e-15)
        return normal_epsilon(squared, left) + 2.0 * factor if left > 0.0 else math.inf

    def _delta(self, epsilon: Fraction) -> float:
        squared, factor = self._squared_and_factor()
        lowered = max(0.0, float(epsilon) * (1.0 - 1e-15) - 2.0 * factor)
        log_delta = log_delta_normal(math.sqrt(squared) * (1.0 + 1e-15), lowered)
        return max(math.exp(log_delta + factor), 1e-300) * (1.0 + 1e-14)
