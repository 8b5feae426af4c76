"""Dominating pairs: each event has a pair of laws that are at least as easy to distinguish as its
outputs.

The *privacy loss* of a pair (P, Q) at an outcome is L = ln(P / Q). Its law under P decides
everything: delta(epsilon) = E[(1 - exp(epsilon - L))+]. A pair dominates a mechanism when its delta
is at least the mechanism's at every epsilon, in both directions (data with and without a unit).
Dominating pairs compose: if each event's parameters are fixed, the product of the pairs dominates
all events together, in any order (Zhu, Dong and Wang 2022, Theorem 10).

Every pair here is symmetric: exchanging P and Q turns L into -L and leaves its law as it was. So
one direction is both, for adding and for removing a unit.

Write T(epsilon) = exp(-epsilon / 2) (1 - delta(epsilon)); the lower, the less private.

*Laplace*, scale 1, moved by e: T = exp(-max(e, |epsilon|) / 2). *Discrete Laplace* with q =
exp(-1 / s), moved by D: the same with e = D / s where epsilon is one of (D - 2 j) / s, and between
those delta is linear in exp(epsilon). A vector moved by D in all is no easier to distinguish than
one entry moved by D: for two entries moved by a and b the T of both is F(epsilon) =
E[T_a(epsilon - L_b) exp(-L_b / 2)]. It is even, does not rise on (0, a + b) (differentiate; terms
cancel because |T'| = T / 2 outside (-a, a)), and from a + b on it equals T of the one entry,
which is constant before. On the integers the same holds with differences.

*Vectors of Laplace noise* moved by a and b are dominated by ones whose moves differ more and have
the same sum. In the mass exp(-L / 2) P(L) of one move a factor of exp(-a / 2) depends on the sum
only, and the rest is (with U_a for equal masses at a, a - 2, ..., -a) U_a - q U_(a - 2), on the
integers. By U_a U_b = U_(a + b) + ... + U_|a - b| the masses of a + 1 and b - 1 less those of a and
b, d = a - b >= 0, are q (U_(d + 2) + U_(d - 2)) - (1 + q**2) U_d (with U_(-1) = 0, U_(-2) = -U_0):
below 0 up to |L| = d, q at d + 2, and 0 beyond. The argument is that for choices in groups, below.

*Bounded range* e (exponential mechanism): pairs with losses t and t - e are the worst, t in (0, e)
(Dong, Durfee and Rogers 2020). The largest delta over t, reached at t = (epsilon + e) / 2, is
(1 - exp((epsilon - e) / 2))**2 / (1 - exp(-e)), convex in exp(epsilon), so it has a pair.

*Choices in several groups*, of ranges a and b: the pair of (a, b) is dominated by that of ranges
that differ more and have the same sum s (that majorise them, like (s, 0)). With d = |a - b| the
product's mass exp(-L / 2) P(L) has the density C(d) (s - max(|L|, d)) on (-s, s), where C(d) =
1 / (8 (cosh(s / 2) - cosh(d / 2))). From d to a larger one C grows and C(d) (s - d) falls (cosh is
convex), so the difference D of the densities is below 0 next to 0 and above 0 farther out. H =
exp(-epsilon / 2) times the difference of deltas is even, H'' - H / 4 = D, and H > 0 where only D
>= 0 lies beyond. Were H < 0 at its least point, D < 0 there, so H'' < H / 4 < 0, and it were not
the least. Hence most is revealed where as many groups as possible have the largest range, and one
has the rest. Rounds of one choice are made after earlier ones are seen. Pairs that dominate each
round, for any earlier results, dominate all rounds together (the same Theorem 10), and so do
their rho (Bun and Steinke 2016, Lemma 2.3).

*Pure* (epsilon, delta)-privacy: a failure with probability delta, else binary randomised response
(Kairouz, Oh and Viswanath 2015, Theorem 3.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, assert_never

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
from dpframe.core.exact import dyadic_up, exact
from dpframe.kernel.choices import cells_of

__all__ = [
    "LARGEST_STEPPED",
    "Choices",
    "HalfLine",
    "LossLaw",
    "Normal",
    "Response",
    "SteppedLaplace",
    "SteppedNormal",
    "Translated",
    "discrete_gaussian_pair",
    "smoothed_distance",
    "translated",
]


@dataclass(frozen=True, slots=True)
class Response:
    """Randomised response: losses epsilon, -epsilon, and 0 for the other categories."""

    epsilon: Fraction
    categories: int = 2


@dataclass(frozen=True, slots=True)
class HalfLine:
    """Losses in (-epsilon, epsilon) with a density proportional to exp(loss / 2).

    With `atoms` it is Laplace noise: half of the mass lies at epsilon, exp(-epsilon) / 2 at
    -epsilon. Without, it is bounded range; `alone` where several may not be taken together.
    """

    epsilon: Fraction
    atoms: bool
    alone: bool = False


@dataclass(frozen=True, slots=True)
class SteppedLaplace:
    """Discrete Laplace noise: losses step * (steps - 2 j), j from 0 to steps."""

    step: Fraction
    steps: int


@dataclass(frozen=True, slots=True)
class Normal:
    """Gaussian noise: the loss is N(d**2 / 2, d**2)."""

    d_squared: Fraction


@dataclass(frozen=True, slots=True)
class SteppedNormal:
    """Discrete Gaussian noise moved by 1: at x the loss is (1 - 2 x) / (2 sigma**2)."""

    sigma_squared: Fraction


@dataclass(frozen=True, slots=True)
class Choices:
    """This many choices of bounded range epsilon together, see `dpframe.kernel.choices`."""

    epsilon: Fraction
    times: int

    @property
    def step(self) -> Fraction:
        """The step of the grid."""
        return self.epsilon / cells_of(self.times)


LossLaw: TypeAlias = Response | HalfLine | SteppedLaplace | Normal | SteppedNormal | Choices


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

    law: LossLaw
    failure: Fraction = Fraction(0)
    factor: float = 0.0


_MOST_STEPS: Final = 256
_BITS: Final = 40
"""The bits of the losses of noise on many steps, so that nearly equal ones are one law."""
LARGEST_STEPPED: Final = Fraction(256**2)
_FACTOR: Final = 2.0**-44


def translated(event: AnyEvent) -> Translated | None:
    """The dominating pair of an event; None when only its Renyi divergences are known.

    Integers with many steps are treated as continuous. Discrete Laplace noise is dominated by
    Laplace noise at epsilon + 1 / (4 s**2): between its points T falls below theirs by a factor of
    cosh(1 / (2 s)) at most. Discrete Gaussian noise whose sensitivity is not 1 is seen as
    continuous noise rounded at random, see `dpframe.accounting.gaussian_delta`.
    """
    match event:
        case LaplaceEvent():
            return Translated(HalfLine(exact(event.sensitivity) / exact(event.scale), True))
        case DiscreteLaplaceEvent():
            return Translated(_discrete_laplace(1 / exact(event.scale), int(event.sensitivity)))
        case GaussianEvent():
            return Translated(Normal(shift_squared(event)))
        case DiscreteGaussianEvent():
            return discrete_gaussian_pair(exact(event.sigma) ** 2, exact(event.sensitivity) ** 2)
        case ExponentialEvent():
            alone = isinstance(event, SharedExponentialEvent)
            return Translated(HalfLine(exact(event.epsilon), False, alone))
        case RandomizedResponseEvent():
            return Translated(Response(exact(event.epsilon), int(event.categories)))
        case PermuteAndFlipEvent() | ApproxEvent():
            return Translated(Response(exact(event.epsilon)), slack(event))
        case ZCDPEvent():
            return None
        case _:
            assert_never(event)


def _discrete_laplace(step: Fraction, steps: int) -> LossLaw:
    """Of discrete Laplace noise of scale 1 / `step`, moved by `steps` in all."""
    if steps == 1:
        return Response(step)
    if steps <= _MOST_STEPS:
        return SteppedLaplace(step, steps)
    return HalfLine(dyadic_up(steps * step + step * step / 4, _BITS), True)


def discrete_gaussian_pair(
    variance: Fraction, l2_squared: Fraction, largest_stepped: Fraction = LARGEST_STEPPED
) -> Translated | None:
    """Of discrete Gaussian noise; None with too little noise for smoothing.

    Noise beyond `largest_stepped` is smoothed, which adds some 2 / variance to the squared distance
    and makes all of it one law.
    """
    if l2_squared < 2 and variance <= largest_stepped:  # one entry changes, by 1
        return Translated(SteppedNormal(variance))
    found = _smoothed(variance, l2_squared)
    return None if found is None else Translated(Normal(found[0]), factor=found[1])


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
