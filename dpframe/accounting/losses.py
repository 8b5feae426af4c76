"""Events as pairs of privacy losses, and their composition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, assert_never

from dpframe.accounting.accountant import shift_squared, slack
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
    SharedExponentialEvent,
    ZCDPEvent,
)
from dpframe.accounting.gaussian_noise import (
    least_reaching,
    log_delta_normal,
    normal_epsilon,
    smoothing,
)
from dpframe.core.exact import dyadic_up, exact, float_up
from dpframe.kernel.losses import (
    ADDED,
    Geometrics,
    Loss,
    Normals,
    Ranged,
    Reported,
    Wholes,
    losses_delta,
)

# Events as the kernel knows their privacy losses: each has a pair of laws that are at least as easy
# to distinguish as its outputs.
#
# Pairs, and why they add up, are in `dpframe.kernel.losses`; why a vector of Laplace noise follows
# from one number in `dpframe.kernel.trade_offs`. Two steps are here.
#
# *Continuous Laplace noise*, scale 1, moved by e, has the delta 1 - exp((epsilon - max(e,
# |epsilon|)) / 2). Discrete noise of scale s that moves by e s steps has this delta where epsilon
# is one of e - 2 j / s. Between these its delta is linear in exp(epsilon), and so above a convex
# function of exp(epsilon), such as this one. So discrete noise on any number of steps stands for
# continuous noise. With n steps delta is more by a part of e**2 / (8 n**2) at most.
#
# *Pure* (epsilon, delta)-privacy: a failure with probability delta, else binary randomised response
# (Kairouz, Oh and Viswanath 2015, Theorem 3.3).


@dataclass(frozen=True, slots=True)
class Translated:
    """An event's pair."""

    law: Loss  # The law of the loss, if the event does not fail
    failure: Fraction = Fraction(0)  # The probability that it fails
    # K such that the pair, with epsilon lowered by 2 K and delta raised by exp(K), dominates.
    factor: float = 0.0


FINE: Final = 1 << 20
"""The steps that stand for continuous noise, unless there are few events."""
LARGEST_STEPPED: Final = Fraction(256**2)
_FACTOR: Final = 2.0**-44


def translate(event: AnyEvent, steps: int = FINE) -> Translated | None:
    """The dominating pair of an event; None when only its Renyi divergences are known. Continuous
    Laplace noise has this many steps.

    Discrete Gaussian noise whose sensitivity is not 1 is seen as continuous noise rounded at
    random, see `dpframe.kernel.losses.gaussian_delta`.
    """
    match event:
        case LaplaceEvent():
            epsilon = exact(event.sensitivity) / exact(event.scale)
            return Translated(Geometrics(epsilon / steps, steps))
        case DiscreteLaplaceEvent():
            return Translated(Geometrics(1 / exact(event.scale), int(event.sensitivity)))
        case GaussianEvent():
            return Translated(Normals(shift_squared(event)))
        case DiscreteGaussianEvent():
            return discrete_gaussian_pair(exact(event.sigma) ** 2, exact(event.sensitivity) ** 2)
        case ExponentialEvent():
            shared = isinstance(event, SharedExponentialEvent)
            return Translated(Ranged(exact(event.epsilon), shared))
        case RandomizedResponseEvent():
            return Translated(Reported(exact(event.epsilon), int(event.categories)))
        case PermuteAndFlipEvent() | ApproxEvent():
            return Translated(Reported(exact(event.epsilon), 2), slack(event))
        case ZCDPEvent():
            return None
        case _:
            assert_never(event)


def discrete_gaussian_pair(
    variance: Fraction, l2_squared: Fraction, largest_stepped: Fraction = LARGEST_STEPPED
) -> Translated | None:
    """Of discrete Gaussian noise; None with too little noise for smoothing.

    Noise beyond `largest_stepped` is smoothed, which adds some 2 / variance to the squared distance
    and makes all of it one law.
    """
    if l2_squared < 2 and variance <= largest_stepped:  # one entry changes, by 1
        return Translated(Wholes(variance))
    found = _smooth(variance, l2_squared)
    return None if found is None else Translated(Normals(found[0]), factor=found[1])


def smoothed_distance(
    event: GaussianEvent | DiscreteGaussianEvent,
) -> tuple[Fraction, float] | None:
    """(sensitivity / sigma)**2 of continuous noise, and K of `Translated`; None with too little
    noise for smoothing.
    """
    if isinstance(event, GaussianEvent):
        return shift_squared(event), 0.0
    return _smooth(exact(event.sigma) ** 2, exact(event.sensitivity) ** 2)


def _smooth(variance: Fraction, l2_squared: Fraction) -> tuple[Fraction, float] | None:
    entries = math.floor(l2_squared)
    smoothed = smoothing(entries, _FACTOR) if entries < 10**200 else variance
    return (l2_squared / (variance - smoothed), _FACTOR) if variance > smoothed else None


# Many dominating pairs together: the kernel computes their delta, and here epsilon is found.

_NEAR = 1e-9
"""How much of an epsilon that is searched for may be too much."""


class Composition:
    """Independent events by their dominating pairs.

    Parameters
    ----------
    pairs
        How often each occurs. Gaussian ones are one together: their squared distances add up.
    added
        Which part of epsilon may be too much, about. Less takes longer.
    """

    def __init__(self, pairs: Mapping[Translated, int], added: float = ADDED) -> None:
        self._added = added
        losses: Counter[Loss] = Counter()
        failure, log_factor, normal = Fraction(0), 0.0, Fraction(0)
        for pair, count in pairs.items():
            failure += count * pair.failure
            log_factor += count * pair.factor
            if isinstance(pair.law, Normals):
                normal += dyadic_up(count * pair.law.d_squared)  # short numbers add up fast
            else:
                losses[pair.law] += count
        self._normal = normal if not losses else None
        """The squared distance, where all noise is Gaussian."""
        if normal:
            losses[Normals(normal)] += 1
        self._losses = frozenset(losses.items())
        self._failure = float_up(failure)
        self._log_factor = log_factor * (1.0 + 1e-9)

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta at an epsilon of at least 0."""
        if self._failure >= 1.0:
            return 1.0
        lowered = max(0.0, epsilon - 2.0 * self._log_factor)
        losses = self._of_losses(lowered) * math.exp(self._log_factor)
        return min(1.0, (self._failure + losses) * (1.0 + 1e-15))

    def epsilon(self, delta: float, start: float) -> float:
        """An epsilon at which `delta` is an upper bound, a billionth too large at most; infinity
        if none is found. The search begins at `start`.
        """
        left = (delta - self._failure) * math.exp(-self._log_factor) * (1.0 - 1e-14)
        if left <= 0.0:
            return math.inf
        if self._normal is not None:
            least = normal_epsilon(float_up(self._normal), left) if self._normal else 0.0
        else:
            least = self._search(math.log(left), start)
        return least + 2.0 * self._log_factor

    def _of_losses(self, epsilon: float) -> float:
        if self._normal is not None:
            if not self._normal:
                return 0.0
            d = math.sqrt(float_up(self._normal)) * (1.0 + 1e-15)
            return math.exp(log_delta_normal(d, epsilon))
        return float_up(losses_delta(self._losses, Fraction(epsilon), self._added))

    def _search(self, target: float, start: float) -> float:
        def log_delta(epsilon: float) -> float:
            found = self._of_losses(epsilon)
            return math.log(found) if found else -math.inf

        return least_reaching(log_delta, target, max(start, 1e-12), _NEAR)
