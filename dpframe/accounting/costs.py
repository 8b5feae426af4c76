"""What one event costs in each currency that adds up."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, assert_never

from dpframe.accounting.events import (
    AnyEvent,
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    PermuteAndFlipEvent,
    RandomizedResponseEvent,
    ZCDPEvent,
)
from dpframe.accounting.gaussian_delta import delta_bound
from dpframe.accounting.normal import normal_epsilon
from dpframe.accounting.search import least_true
from dpframe.accounting.zcdp import epsilon_of_rho
from dpframe.core.exact import exact, float_up


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
