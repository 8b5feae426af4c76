"""Privacy loss distributions, to account for events whose parameters are fixed.

Exact for noise. Of choices only the range of losses is known: those of one range are taken together
(`dpframe.kernel.choices`), others by a pair that is the worst at every epsilon alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.accountant import WITHIN, Accountant, ValidFor
from dpframe.accounting.basic import pure_parts, sum_of
from dpframe.accounting.composition import Composition
from dpframe.accounting.events import AnyEvent
from dpframe.accounting.loss_laws import Translated, translated
from dpframe.core.exact import decimal_up, float_down

__all__ = ["PrivacyLossAccountant"]


class PrivacyLossAccountant(Accountant):
    """The laws of the events' privacy losses, convolved (Meiser and Mohammadi 2018; Koskela, Jälkö
    and Honkela 2020), on a grid that only adds loss.

    Exact up to rounding for randomised response and for discrete noise on integers at sensitivity 1
    (discrete Laplace noise up to 256) when the losses have a common step. Otherwise it exceeds
    the exact value by a few parts in 10**8. The excess is larger when very many different events
    are composed, or when an epsilon is close to the sum of all, because the largest loss is rounded
    up to a point of the grid. The sum itself is returned where it is smaller. See
    `dpframe.accounting.loss_laws`, `dots` and `convolution` for the proofs. Not valid
    across plans.
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
        parts = pure_parts(self.counts.items(), 0.0)
        self._sum = float("inf") if parts is None else decimal_up(sum_of(parts))

    def _covers(self, event: AnyEvent) -> bool:
        return translated(event) is not None

    def _epsilon(self, delta: Fraction) -> float:
        found = self._composition.epsilon(float_down(delta))
        return min(found, self._sum) if delta > self._slack else found

    def _delta(self, epsilon: Fraction) -> float:
        return self._composition.delta(float_down(epsilon))
