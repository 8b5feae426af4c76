"""What one event costs in each currency that adds up, and the common parts of all accountants."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Literal, TypeAlias, assert_never

from dpframe.accounting.events import (
    AnyEvent,
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    PermuteAndFlipEvent,
    RandomizedResponseEvent,
    ZCDPEvent,
)
from dpframe.accounting.gaussian_noise import (
    delta_bound,
    epsilon_of_rho,
    least_true,
    normal_epsilon,
)
from dpframe.core.budget import amount
from dpframe.core.exact import Number, exact, float_down, float_up, show_input
from dpframe.errors import InvalidBudget, UnsupportedOperation

# What one event costs in each currency that adds up.


def pure_epsilon(event: AnyEvent) -> Fraction | None:
    """Epsilon, but for the `slack`; None for noise that has no finite one."""
    match event:
        case LaplaceEvent() | DiscreteLaplaceEvent():
            return exact(event.sensitivity) / exact(event.scale)
        case ExponentialEvent() | PermuteAndFlipEvent() | RandomizedResponseEvent() | ApproxEvent():
            return exact(event.epsilon)
        case GaussianEvent() | DiscreteGaussianEvent() | ZCDPEvent():
            return None
        case _:
            assert_never(event)


def slack(event: AnyEvent) -> Fraction:
    """The probability with which an event may fail altogether."""
    return exact(event.delta) if isinstance(event, ApproxEvent) else Fraction(0)


def shift_squared(event: GaussianEvent | DiscreteGaussianEvent) -> Fraction:
    """(sensitivity / sigma)**2."""
    return (exact(event.sensitivity) / exact(event.sigma)) ** 2


def zcdp_rho(event: AnyEvent) -> Fraction:
    """The zCDP cost, but for the `slack`.

    Gaussian noise: (sensitivity / sigma)**2 / 2 (Bun and Steinke 2016, Prop. 1.6; for integers
    Canonne, Kamath and Steinke 2020, Theorem 4). Bounded range: epsilon**2 / 8 (Cesar and Rogers
    2021). Pure privacy: epsilon**2 / 2 (Bun and Steinke 2016, Prop. 1.4).
    """
    match event:
        case GaussianEvent() | DiscreteGaussianEvent():
            return shift_squared(event) / 2
        case ZCDPEvent():
            return exact(event.rho)
        case ExponentialEvent():
            return exact(event.epsilon) ** 2 / 8
        case _:
            epsilon = pure_epsilon(event)
            assert epsilon is not None
            return epsilon**2 / 2


_SOUGHT: Final = 2.0**-18
"""How near to the least epsilon a search stops, relatively."""


@lru_cache(maxsize=4096)
def epsilon_at(event: AnyEvent, delta: float) -> float:
    """An epsilon with which the event is (epsilon, delta)-private, beyond its slack."""
    epsilon = pure_epsilon(event)
    if epsilon is not None:
        return float_up(epsilon)
    found = epsilon_of_rho(zcdp_rho(event), delta)
    if found == 0.0:
        return 0.0
    match event:
        case GaussianEvent():
            return min(found, normal_epsilon(float_up(shift_squared(event)), delta))
        case DiscreteGaussianEvent():
            return min(found, _on_integers(event, delta, found))
        case _:
            return found


def _on_integers(event: DiscreteGaussianEvent, delta: float, above: float) -> float:
    wide, variance = exact(event.sensitivity) ** 2, exact(event.sigma) ** 2
    entries = max(1, math.floor(wide))  # as many may change, by 1 each

    def private(epsilon: float) -> bool:
        return delta_bound(variance, entries, wide, Fraction(epsilon)) <= delta

    near = min(above, normal_epsilon(float_up(shift_squared(event)), delta)) or above
    low, high = near * 0.999, near * 1.001
    while low > near / 2**10 and private(low):  # narrow noise loses in steps, far below its bound
        low, high = 0.5 * low, low
    return least_true(private, low, high, _SOUGHT)


# The common parts of all accountants: reading the request, and finding delta from epsilon.

ValidFor: TypeAlias = Literal["within one plan", "across plans"]
WITHIN: Final = "within one plan"
"""Parameters of all events are fixed before any noise is drawn."""
ACROSS: Final = "across plans"
"""Later events may be chosen after seeing earlier results, while the sum stays within a budget."""

_SHIFT: Final = 700.0
"""Logarithms of delta are sought from -690 to 0, shifted to be positive."""
_HIGHEST: Final = 700.0 - 1e-6


class Accountant(ABC):
    """Counts events together by one theorem; every result is rounded towards more privacy loss.

    Parameters
    ----------
    events
        What happened to the same data, in any order, repeats included.

    Raises
    ------
    InvalidBudget
        When something else than an event is among them.
    UnsupportedOperation
        When the theorem says nothing about one of them.
    """

    method: ClassVar[str]
    """The name of the bound in `compare`."""
    valid_for: ClassVar[ValidFor]

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self.counts: Counter[AnyEvent] = Counter(events)
        """The events, and how often each occurs."""
        for event in self.counts:
            if not isinstance(event, Event):
                raise InvalidBudget(
                    f"{show_input(event)} is not an event",
                    remedy="write for example accounting.LaplaceEvent(10)",
                )
            if not self._covers(event):
                raise UnsupportedOperation(
                    f"{self.method} does not apply to {type(event).__name__}",
                    where=repr(event),
                    remedy="call accounting.compare(events, delta), which lists the bounds "
                    "that apply",
                )

    def epsilon(self, delta: Number) -> float:
        """The least epsilon that this bound gives at delta; infinity when it gives none.

        Raises
        ------
        InvalidBudget
            When delta is negative, 1 or more, or not a number.
        """
        asked = amount(delta, "delta")
        if asked >= 1:
            raise InvalidBudget(
                "delta is a probability below 1",
                where=f"delta={show_input(delta)}",
                remedy="write for example delta=1e-8",
            )
        return self._epsilon(asked) if self.counts else 0.0

    def delta(self, epsilon: Number) -> float:
        """The least delta that this bound gives at epsilon, within a relative 1e-8; at most 1.

        Raises
        ------
        InvalidBudget
            When epsilon is negative, infinite or not a number.
        """
        asked = amount(epsilon, "epsilon")
        return min(1.0, self._delta(asked)) if self.counts else 0.0

    def _covers(self, event: AnyEvent) -> bool:
        return True

    @property
    def _slack(self) -> Fraction:
        """The probability that some event fails, at most."""
        total = Fraction(0)
        for event, count in self.counts.items():
            total += count * slack(event)
        return total

    def _remaining_delta(self, delta: Fraction) -> float:
        """The remaining delta after failures, rounded down; 0 or less when nothing remains."""
        return float_down(delta - self._slack)

    @abstractmethod
    def _epsilon(self, delta: Fraction) -> float: ...

    def _delta(self, epsilon: Fraction) -> float:
        """The least delta that was seen to give no more than epsilon."""
        price = float_down(epsilon)
        if self._epsilon(Fraction(0)) <= price:
            return 0.0

        def enough(shifted: float) -> bool:
            return self._epsilon(Fraction(math.exp(shifted - _SHIFT))) <= price

        if not enough(_HIGHEST):
            return 1.0
        found = least_true(enough, 10.0, _HIGHEST, 2.0**-38)
        return math.exp(found - _SHIFT) * (1.0 + 1e-15)
