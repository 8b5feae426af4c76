"""Privacy loss distributions, to account for events whose parameters are fixed.

Exact for noise, but for rounding. Of choices only the range of losses is known: those of one range
are taken together (`dpframe.kernel.choices`), others by a pair that is the worst at every epsilon
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.accountant import WITHIN, Accountant, ValidFor
from dpframe.accounting.basic import pure_parts, sum_of
from dpframe.accounting.composition import Composition
from dpframe.accounting.costs import zcdp_rho
from dpframe.accounting.events import AnyEvent
from dpframe.accounting.loss_laws import Translated, translated
from dpframe.accounting.zcdp import epsilon_of_rho
from dpframe.core.exact import decimal_up, float_down

__all__ = ["PrivacyLossAccountant"]


class PrivacyLossAccountant(Accountant):
    """The laws of the events' privacy losses together (Meiser and Mohammadi 2018; Koskela, Jälkö
    and Honkela 2020), as the kernel adds them up for plans.

    The epsilon of many events exceeds the exact one by about a ten-millionth. Where a few events
    have few different losses, and epsilon is a sum of these, delta is too large by up to a part in
    3,000. The sum of all losses is returned where it is smaller. See `dpframe.accounting.loss_laws`
    for the pairs and `dpframe.kernel.losses` for the proof. Of more than 1,000 kinds of events only
    the sum is known. Not valid across plans.
    """

    method: ClassVar[str] = "privacy loss distribution"
    valid_for: ClassVar[ValidFor] = WITHIN

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        super().__init__(events)
        pairs: Counter[Translated] = Counter()
        for event, count in self.counts.items():
            pair = translated(event)
            assert pair is not None
            pairs[pair] += count
        self._composition = Composition(pairs)
        self._rho = sum((n * zcdp_rho(event) for event, n in self.counts.items()), Fraction(0))
        parts = pure_parts(self.counts.items(), 0.0)
        self._sum = float("inf") if parts is None else decimal_up(sum_of(parts))

    def _covers(self, event: AnyEvent) -> bool:
        return translated(event) is not None

    def _epsilon(self, delta: Fraction) -> float:
        most = float_down(delta)
        found = self._composition.epsilon(most, epsilon_of_rho(self._rho, most))
        return min(found, self._sum) if delta > self._slack else found

    def _delta(self, epsilon: Fraction) -> float:
        return self._composition.delta(float_down(epsilon))
