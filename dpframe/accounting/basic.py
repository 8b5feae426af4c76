"""Basic composition, and what happens side by side."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.accountant import ACROSS, Accountant, ValidFor
from dpframe.accounting.costs import epsilon_at, pure_epsilon
from dpframe.accounting.events import AnyEvent
from dpframe.core.exact import decimal_up, float_down


class BasicAccountant(Accountant):
    """Epsilons add up, and deltas (Dwork, Kenthapadi, McSherry, Mironov and Naor 2006).

    Exact for pure events. Events that have no finite epsilon share the delta that others leave
    equally.
    """

    method: ClassVar[str] = "basic"
    valid_for: ClassVar[ValidFor] = ACROSS

    def _epsilon(self, delta: Fraction) -> float:
        left = delta - self._slack
        if left < 0:
            return float("inf")
        needy = needing_delta(self.counts.items())
        parts = pure_parts(self.counts.items(), float_down(left / needy) if needy else 0.0)
        return float("inf") if parts is None else decimal_up(sum_of(parts))

    def _delta(self, epsilon: Fraction) -> float:
        if needing_delta(self.counts.items()):
            return super()._delta(epsilon)
        parts = pure_parts(self.counts.items(), 0.0)
        return decimal_up(self._slack) if parts and sum_of(parts) <= epsilon else 1.0


def needing_delta(counts: Iterable[tuple[AnyEvent, int]]) -> int:
    """How many events have no finite epsilon."""
    return sum(count for event, count in counts if pure_epsilon(event) is None)


def pure_parts(
    counts: Iterable[tuple[AnyEvent, int]], share: float
) -> list[tuple[Fraction, int]] | None:
    """Epsilons and how often each occurs, when each event without one is given `share` of delta.

    None when one of them is infinite.
    """
    found = []
    for event, count in counts:
        epsilon = pure_epsilon(event)
        if epsilon is None:
            at_share = epsilon_at(event, share) if share > 0.0 else float("inf")
            if at_share == float("inf"):
                return None
            epsilon = Fraction(at_share)
        found.append((epsilon, count))
    return found


def sum_of(parts: Iterable[tuple[Fraction, int]]) -> Fraction:
    return sum((epsilon * count for epsilon, count in parts), Fraction(0))
