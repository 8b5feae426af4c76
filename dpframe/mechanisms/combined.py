"""The noise of a number that is rebuilt from several noisy ones.

The release is a vector of noisy integers. An output may be a sum of some of them, times whole
factors, over a divisor: a count c from the noisy n and 2 c - n is half of their sum. That is
rounded to the nearest integer, and what lies halfway goes up or down by a fair coin. All of it is
post-processing: the cost is that of the vector.

Without noise the sum is a multiple of the divisor, so the noise is that of the sum, over the
divisor and rounded the same way. It is symmetric, and with D the divisor and S the noise of the sum

    P(noise > a) = (P(S >= D (a + 1/2)) + P(S > D (a + 1/2))) / 2

for whole a of at least 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidBounds
from dpframe.mechanisms.combinable import CombinableNoise
from dpframe.mechanisms.confidence import log_tier, miss_per_cell
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.mechanism import AdditiveMechanism, Mechanism, log_deviation
from dpframe.mechanisms.noise_sums import Tail
from dpframe.samplers import OS, BitSource

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent
    from dpframe.accounting.loss_laws import Translated


Floats = NDArray[np.float64]

_FEW: Final = 8.0
"""Deviations, in steps, up to which the variance is added up: above it, rounding is equivalent to
independent."""
_KNOTS: Final = 1024
"""Up to this many steps tails are known at each; beyond at as many places, with chords between
them: tails are convex, so chords lie above."""
_DEEP: Final = 1e-18
_DEEPEST: Final = 1e-250
"""Tails are found one by one below the first, and taken to be the second below that."""


class _OfLaw:
    """An attribute of a class that its objects take from the law that they hold."""

    def __init__(self, name: str, otherwise: str) -> None:
        self._name, self._otherwise = name, otherwise

    def __get__(self, instance: CombinedNoise | None, owner: type) -> str:
        return self._otherwise if instance is None else getattr(instance.law, self._name)


@dataclass(frozen=True, slots=True)
class CombinedNoise(AdditiveMechanism):
    """The noise of one number that is made of several noisy ones: the nearest integer to
    (f_1 z_1 + f_2 z_2 + ...) / divisor, halves up or down by a fair coin.

    Nothing is drawn from it on its own, and it costs what drawing the vector costs.

    Parameters
    ----------
    law
        The law of the noise z: of the vector, or of each of its numbers, drawn independently.
    factors
        The factors of the numbers of the vector.
    divisor
        Above 0.

    Raises
    ------
    ValueError
        When the numbers of factors and numbers differ, or the divisor is not above 0.
    """

    law: CombinableNoise
    factors: tuple[int, ...]
    divisor: int
    name: ClassVar[str] = cast("str", _OfLaw("name", "combined_noise"))
    label: ClassVar[str] = cast("str", _OfLaw("label", "combined noise"))
    scale_label: ClassVar[str] = cast("str", _OfLaw("scale_label", "scale"))

    @classmethod
    def of(cls, law: Mechanism, factors: tuple[int, ...], divisor: int) -> Self:
        """Of a law that is not yet known to be one.

        Raises
        ------
        ValueError
            When it is no noise that numbers can be made of.
        """
        if not isinstance(law, CombinableNoise):
            raise ValueError(f"no numbers are made of {law.name} noise")
        return cls(law, factors, divisor)

    def __post_init__(self) -> None:
        if {*map(type, self.factors)} != {int}:
            raise ValueError("the factors of combined noise are whole numbers")
        self.law.requires(self.factors)
        if type(self.divisor) is not int or self.divisor < 1:
            raise ValueError("the divisor of combined noise is a whole number above 0")

    @property
    def alike(self) -> CombinedNoise:
        """The same noise, of numbers that are alike the same ones: what is known of one is known of
        all.
        """
        return CombinedNoise(self.law, self.law.alike(self.factors), self.divisor)

    def shown_scale(self, step: Fraction) -> float:
        """The scale of the sum, by the law of its numbers; rounded up."""
        return self.law.scale_of_sum(self.factors, step / self.divisor)

    def epsilon_cost(self, exposure: Exposure) -> Fraction | None:
        """The cost of the vector."""
        return self.law.epsilon_cost(exposure)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of the vector."""
        return self.law.rho_cost(exposure)

    def mu_squared_cost(self, exposure: Exposure) -> Fraction | None:
        """The cost of the vector."""
        return self.law.mu_squared_cost(exposure)

    def delta_at(self, epsilon: Fraction, exposure: Exposure) -> Fraction:
        """The delta of the vector."""
        return self.law.delta_at(epsilon, exposure)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """The events of the vector."""
        return self.law.events(exposure)

    def pairs(self, exposure: Exposure, largest_stepped: Fraction) -> Iterable[Translated | None]:
        """The dominating pairs of the vector."""
        return self.law.pairs(exposure, largest_stepped)

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the deviation."""
        return log_deviation(self.variance())

    def details(self) -> str:
        """The details of the vector."""
        return self.law.details()

    def variance(self) -> float:
        """In steps squared, right to about one part in 1000."""
        return _variance(self.alike)

    def quantile(self, confidence: float | Fraction, cells: int = 1) -> int:
        """An a with P(max of |noise| over `cells` draws <= a) >= confidence, the smallest one but
        for half a percent.

        Parameters
        ----------
        confidence
            Between 0 and 1; a float means the decimal that it prints as.
        cells
            How many independent vectors there are; the number of each must keep within a.

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1, or is so near to 1 that tails are not
            known.
        """
        miss = float(miss_per_cell(confidence, cells)) * (1.0 - 2.0**-50)
        if miss < _DEEPEST:
            raise InvalidBounds(
                "the error of numbers with joint noise is known for a confidence of up to "
                "1 - 1e-250 only",
                remedy=(
                    "write a lower confidence",
                    "write mechanism='discrete_laplace' for the output",
                ),
            )
        return _least_covering(self.alike, miss)

    def beyond(self, a: int, miss: float, rough: bool = False) -> float:
        """P(|noise| > a) for whole a of at least 0, never too small, where it is above `miss`; a
        little more of it where that may be rough.
        """
        return self.at_least(a + 1, _tail_of(self.law, self.factors, log_tier(miss), rough))

    def at_least(self, k: int, tail: Tail) -> float:
        """P(|noise| >= k) for whole k of at least 1, by the tail of the sum."""
        odd = self.divisor * (2 * k - 1)  # over 2 is the place from which on it is rounded farther
        if odd % 2:
            return min(1.0, 2.0 * tail(odd // 2))
        return min(1.0, tail(odd // 2 - 1) + tail(odd // 2))

    def above(self, x: Floats) -> Floats:
        """P(noise > x) for each x, in steps, never too small for x of at least 0."""
        k = np.floor(x) + 1.0
        beyond = _above(self.alike, np.where(k >= 1.0, k, 1.0 - k))
        return np.where(k >= 1.0, beyond, 1.0 - beyond)


@lru_cache(maxsize=256)
def _tail_of(law: CombinableNoise, factors: tuple[int, ...], tier: int, rough: bool) -> Tail:
    return law.tail_of_sum(factors, tier, rough)


@lru_cache(maxsize=4096)
def _least_covering(noise: CombinedNoise, miss: float) -> int:
    """The least a with P(|noise| > a) <= miss, sought first where tails are known roughly."""

    def rough(a: int) -> float:
        return noise.beyond(a, miss, rough=True)

    def fine(a: int) -> float:
        return noise.beyond(a, miss)

    wide = max(1, math.ceil(2.0 * math.sqrt(_unrounded(noise))))
    if not noise.law.has_rough_tails:
        return _least(fine, miss, wide, wide)
    about = _least(rough, miss, wide, wide)
    return _least(fine, miss, about, max(1, about >> 10))


def _least(beyond: Callable[[int], float], miss: float, guess: int, step: int) -> int:
    """The least a >= 0 with beyond(a) <= miss, where beyond falls.

    Parameters
    ----------
    beyond, miss
        These.
    guess
        Where it is sought first.
    step
        How far from there next, then twice as far each time.
    """
    found = beyond(guess)
    if found > miss:
        low, high = (guess, found), (guess, found)
        while high[1] > miss:
            low, high = high, (high[0] + step, beyond(high[0] + step))
            step *= 2
    else:
        low, high = (guess, found), (guess, found)
        while low[1] <= miss:
            if low[0] == 0:
                return 0
            high, place = low, max(0, low[0] - step)
            low = (place, beyond(place))
            step *= 2
    return _between(beyond, miss, low, high)


def _between(
    beyond: Callable[[int], float], miss: float, low: tuple[int, float], high: tuple[int, float]
) -> int:
    """The least a with beyond(a) <= miss, between a place where that does not hold and one where it
    does: at the place where a line through the logarithms meets it, or in the middle.
    """
    (below, over), (above, under) = ((a, math.log(max(p, 1e-300) / miss)) for a, p in (low, high))
    middle = False
    while above - below > 1:
        share = 0.5 if middle else over / (over - under)
        at = min(max(below + round((above - below) * share), below + 1), above - 1)
        width, found = above - below, beyond(at)
        if found > miss:
            below, over = at, math.log(found / miss)
        else:
            above, under = at, math.log(max(found, 1e-300) / miss)
        middle = above - below > width // 2
    return above


@lru_cache(maxsize=1024)
def _variance(noise: CombinedNoise) -> float:
    found, divisor = _unrounded(noise), noise.divisor
    if divisor == 1:
        return found
    if divisor == 2:
        return found + noise.law.oddness_of_sum(noise.factors) / 4
    if found <= _FEW**2:
        return _added_up(noise)
    return found + (divisor**2 - 1 if divisor % 2 else divisor**2 + 2) / (12.0 * divisor**2)


def _unrounded(noise: CombinedNoise) -> float:
    """The variance of the sum over the divisor."""
    return noise.law.variance_of_sum(noise.factors) / noise.divisor**2


def _added_up(noise: CombinedNoise) -> float:
    """The sum of (2 k - 1) P(|noise| >= k)."""
    k = np.arange(1.0, 2.0 + _least_covering(noise, _DEEP))
    return 2.0 * float((2.0 * k - 1.0) @ _above(noise, k))


def _above(noise: CombinedNoise, k: Floats) -> Floats:
    """P(noise >= k) for whole k of at least 1."""
    found = np.interp(k, *_table(noise, _DEEP))
    reach = _least_covering(noise, _DEEP)
    if (k > reach).any():
        far = np.interp(k, *_table(noise, _DEEPEST))
        found = np.where(k > reach, far, found)
    return found


@lru_cache(maxsize=256)
def _table(noise: CombinedNoise, miss: float) -> tuple[Floats, Floats]:
    """Places, and P(noise >= place) at each, down to about `miss`."""
    reach = 1 + _least_covering(noise, miss)
    if reach <= _KNOTS:
        places = np.arange(1.0, reach + 1.0)
    else:
        places = np.unique(np.rint(np.linspace(1.0, float(reach), _KNOTS)))
    tail = _tail_of(noise.law, noise.factors, log_tier(miss), noise.law.has_rough_tails)
    return places, np.array([0.5 * noise.at_least(int(place), tail) for place in places])


def fair_coins(n: int, source: BitSource | None = None) -> NDArray[np.int64]:
    """`n` independent numbers that are 0 or 1 as often, by which halves are rounded. `source` is
    for tests.
    """
    return (OS if source is None else source).bits(n).astype(np.int64)
