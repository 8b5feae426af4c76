"""Optimal composition of events when only their (epsilon, delta) is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.accountant import WITHIN, ValidFor
from dpframe.accounting.advanced import SplitAccountant
from dpframe.accounting.basic import needing_delta, pure_parts
from dpframe.accounting.composition import Composition
from dpframe.accounting.loss_laws import Translated
from dpframe.accounting.zcdp import epsilon_of_rho
from dpframe.core.exact import float_down, float_up
from dpframe.kernel.losses import Reported


class OptimalAccountant(SplitAccountant):
    """Kairouz, Oh and Viswanath 2015: no theorem that knows only epsilons and deltas gives less.

    Each event is at worst binary randomised response (Theorem 3.3), so the bound is the delta of
    many of those, at any epsilon; the kernel computes it, see `PrivacyLossAccountant`.
    """

    method: ClassVar[str] = "Kairouz-Oh-Viswanath"
    valid_for: ClassVar[ValidFor] = WITHIN

    def _composed(self, parts: Sequence[tuple[Fraction, int]], delta: float) -> float:
        if len(parts) == 1 and parts[0][1] == 1 and delta < 1e-15:
            return float_up(parts[0][0])
        rho = sum((n * e * e / 2 for e, n in parts), Fraction(0))
        return _responses(parts).epsilon(delta, epsilon_of_rho(rho, delta))

    def _delta(self, epsilon: Fraction) -> float:
        if needing_delta(self.counts.items()):
            return super()._delta(epsilon)
        parts = pure_parts(self.counts.items(), 0.0)
        assert parts is not None
        found = _responses(parts).delta(float_down(epsilon))
        return float_up(self._slack + Fraction(found))


def _responses(parts: Sequence[tuple[Fraction, int]]) -> Composition:
    pairs: Counter[Translated] = Counter()
    for epsilon, count in parts:
        if epsilon:
            pairs[Translated(Reported(epsilon, 2))] += count
    return Composition(pairs)
