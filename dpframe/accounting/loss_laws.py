"""Events as the kernel knows their privacy losses: each has a pair of laws that are at least as
easy to distinguish as its outputs.

Pairs, and why they add up, are in `dpframe.kernel.losses`; why a vector of Laplace noise follows
from one number in `dpframe.kernel.trade_offs`. Two steps are here.

*Continuous Laplace noise*, scale 1, moved by e, has the delta 1 - exp((epsilon - max(e,
|epsilon|)) / 2). Discrete noise of scale s that moves by e s steps has this delta where epsilon is
one of e - 2 j / s. Between these its delta is linear in exp(epsilon), and so above a convex
function of exp(epsilon), such as this one. So discrete noise on any number of steps stands for
continuous noise. With n steps delta is more by a part of e**2 / (8 n**2) at most.

*Pure* (epsilon, delta)-privacy: a failure with probability delta, else binary randomised response
(Kairouz, Oh and Viswanath 2015, Theorem 3.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, assert_never

from dpframe.accounting.costs import shift_squared, slack
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
from dpframe.accounting.gaussian_delta import smoothing
from dpframe.core.exact import exact
from dpframe.kernel.losses import Geometrics, Loss, Normals, Ranged, Reported, Wholes


@dataclass(frozen=True, slots=True)
class Translated:
    """An event's pair.

    Parameters
    ----------
    law
        The law of the loss, if the event does not fail.
    failure
        The probability that it fails.
    factor
        K such that the pair, with epsilon lowered by 2 K and delta raised by exp(K), dominates.
    """

    law: Loss
    failure: Fraction = Fraction(0)
    factor: float = 0.0


FINE: Final = 1 << 20
"""The steps that stand for continuous noise, unless there are few events."""
LARGEST_STEPPED: Final = Fraction(256**2)
_FACTOR: Final = 2.0**-44


def translated(event: AnyEvent, steps: int = FINE) -> Translated | None:
    """The dominating pair of an event; None when only its Renyi divergences are known. Continuous
    Laplace noise has this many steps.

    Discrete Gaussian noise whose sensitivity is not 1 is seen as continuous noise rounded at
    random, see `dpframe.kernel.compose.gaussian_delta`.
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
    found = _smoothed(variance, l2_squared)
    return None if found is None else Translated(Normals(found[0]), factor=found[1])


def smoothed_distance(
    event: GaussianEvent | DiscreteGaussianEvent,
) -> tuple[Fraction, float] | None:
    """(sensitivity / sigma)**2 of continuous noise, and K of `Translated`; None with too little
    noise for smoothing.
    """
    if isinstance(event, GaussianEvent):
        return shift_squared(event), 0.0
    return _smoothed(exact(event.sigma) ** 2, exact(event.sensitivity) ** 2)


def _smoothed(variance: Fraction, l2_squared: Fraction) -> tuple[Fraction, float] | None:
    entries = math.floor(l2_squared)
    smoothed = smoothing(entries, _FACTOR) if entries < 10**200 else variance
    return (l2_squared / (variance - smoothed), _FACTOR) if variance > smoothed else None
