"""Concentrated privacy: rho adds up, even if later steps are chosen after earlier ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.accountant import ACROSS, Accountant, ValidFor
from dpframe.accounting.costs import zcdp_rho
from dpframe.accounting.zcdp import epsilon_of_rho, log_delta_zcdp, loose_epsilon_of_rho
from dpframe.core.exact import float_up


class ZCDPAccountant(Accountant):
    """Sums of rho (Bun and Steinke 2016, Lemma 2.3), converted by Canonne, Kamath and Steinke 2020,
    Proposition 12. Failures add to delta (delta-approximate zCDP).
    """

    method: ClassVar[str] = "zCDP, tight"
    valid_for: ClassVar[ValidFor] = ACROSS

    @property
    def rho(self) -> Fraction:
        """The sum, exactly."""
        return sum((n * zcdp_rho(event) for event, n in self.counts.items()), Fraction(0))

    def _epsilon(self, delta: Fraction) -> float:
        return epsilon_of_rho(self.rho, self._left(delta))

    def _delta(self, epsilon: Fraction) -> float:
        log_delta = log_delta_zcdp(self.rho, epsilon)
        return float_up(self._slack + Fraction(max(math.exp(log_delta), 1e-300)))


class LooseZCDPAccountant(ZCDPAccountant):
    """The same sums by rho + 2 sqrt(rho ln(1 / delta)) (Bun and Steinke 2016, Prop. 1.3)."""

    method: ClassVar[str] = "zCDP, loose"

    def _epsilon(self, delta: Fraction) -> float:
        return loose_epsilon_of_rho(self.rho, self._left(delta))

    def _delta(self, epsilon: Fraction) -> float:
        return Accountant._delta(self, epsilon)
