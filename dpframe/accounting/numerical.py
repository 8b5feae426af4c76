"""Privacy loss distributions, to account for events whose parameters are fixed.

Exact for noise, but for rounding. Of choices only the range of losses is known: those of one range
are taken together (`dpframe.kernel.choices`), others by a pair that is the worst at every epsilon
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar, Final

from dpframe.accounting.accountant import WITHIN, Accountant, ValidFor
from dpframe.accounting.basic import pure_parts, sum_of
from dpframe.accounting.composition import Composition
from dpframe.accounting.costs import zcdp_rho
from dpframe.accounting.events import AnyEvent
from dpframe.accounting.loss_laws import FINE, Translated, translated
from dpframe.accounting.zcdp import epsilon_of_rho
from dpframe.core.exact import decimal_up, float_down
from dpframe.kernel.losses import MOST_SUMS

_ADDED: Final = 1e-9
"""Which part of epsilon may be too much where losses have many sums."""
_ENOUGH: Final = 512
"""A few equal events with continuous noise get as many steps as keep the sums of losses few, and at
least these. Then delta is exact, but for the steps.
"""


class PrivacyLossAccountant(Accountant):
    """The laws of the events' privacy losses together (Meiser and Mohammadi 2018; Koskela, Jälkö
    and Honkela 2020), as the kernel adds them up for plans.

    Where losses have few different sums the result is exact up to rounding, see
    `dpframe.kernel.losses`; elsewhere epsilon exceeds the exact one by about a part in 10**8. The
    sum of all losses is returned where it is smaller. See `dpframe.accounting.loss_laws`
    for the pairs and `dpframe.kernel.losses` for the proof. Of more than 1,000 kinds of events only
    the sum is known. Not valid across plans.
    """

    method: ClassVar[str] = "privacy loss distribution"
    valid_for: ClassVar[ValidFor] = WITHIN

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        super().__init__(events)
        pairs: Counter[Translated] = Counter()
        for event, count in self.counts.items():
            steps = MOST_SUMS // (2 * count) if len(self.counts) == 1 else 0
            pair = translated(event, steps if steps >= _ENOUGH else FINE)
            assert pair is not None
            pairs[pair] += count
        self._composition = Composition(pairs, _ADDED)
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
