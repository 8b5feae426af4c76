"""The law of a sum of many noises with public factors, as near as four moments say.

Gaussian noises with factors add up to Gaussian noise, and few Laplace noises to something between
Laplace and Gaussian noise. So the sum is taken for a Gaussian plus a Laplace noise with its
variance and its fourth cumulant: with an excess of e, which lies between 0 and 3, the Laplace part
has the share sqrt(e / 3) of the variance. Where one noise decides this is its law, and where many
do it is their limit. Variance and cumulant are those of the exact laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import AdditiveMechanism, CombinableNoise, CombinedNoise

__all__ = ["WeightedNoise", "cumulants_of_sum", "excess_of", "reaches_of"]

Floats: TypeAlias = "NDArray[np.float64]"

_POINTS: Final = 4001
_FAR: Final = Fraction(1, 10**9)
_NEXT_TO_NOTHING: Final = 1e-9
_BEYOND: Final = 1e-12
"""The mass that may be beyond the largest box in the moments."""
_ROOT: Final = math.sqrt(2.0)
_ROOT_TWO_PI: Final = math.sqrt(2.0 * math.pi)
_KNOTS: Final = np.linspace(0.0, 1.0, 65)


@lru_cache(maxsize=1024)
def excess_of(law: AdditiveMechanism) -> float:
    """The fourth cumulant of a symmetric noise over its squared variance; 0 where that is less.

    For a sum of numbers that are drawn jointly it is the excess of the sum, which rounding to
    whole steps changes little.
    """
    variance = law.variance()
    if variance < _NEXT_TO_NOTHING:
        return 0.0
    if isinstance(law, CombinedNoise):
        factors = np.array(law.factors, dtype=np.float64) / law.divisor
        return max(0.0, cumulants_of_sum(law.law, factors)[1] / variance**2)
    reach = law.quantile(1 - _FAR) + 1
    if reach <= _POINTS:
        whole = np.arange(0, reach, dtype=np.float64)
        powers = (whole + 1.0) ** 4 - whole**4  # summation by parts
        fourth = 2.0 * float(powers @ law.above(whole))
    else:
        places = (np.arange(_POINTS) + 0.5) * (reach / _POINTS)
        fourth = 2.0 * float((4.0 * places**3) @ law.above(np.floor(places))) * (reach / _POINTS)
    return max(0.0, fourth / variance**2 - 3.0)


def cumulants_of_sum(
    law: CombinableNoise | AdditiveMechanism, factors: Floats
) -> tuple[float, float]:
    """The variance and the fourth cumulant of a sum of the numbers of a vector with factors.

    In a box of half-widths h numbers are independent and uniform on whole numbers, with variances
    h (h + 1) / 3 and means of fourth powers of h (h + 1) (3 h**2 + 3 h - 1) / 15.
    """
    known = law.cumulants_of_sum(factors) if isinstance(law, CombinableNoise) else None
    if known is not None:
        return known
    boxes = law.boxes(_BEYOND) if isinstance(law, CombinableNoise) else None
    if boxes is None or not isinstance(law, CombinableNoise):
        assert isinstance(law, AdditiveMechanism)
        each, excess = law.variance(), excess_of(law)
        variance = float((factors**2).sum()) * each
        return variance, float((factors**4).sum()) * excess * each**2
    variance = float(_variances(law, factors.size) @ factors**2)
    half = np.floor(np.outer(boxes.radii, np.array(boxes.widths)) / boxes.fineness)
    squares = half * (half + 1.0) / 3.0
    fourths = half * (half + 1.0) * (3.0 * half * half + 3.0 * half - 1.0) / 15.0
    given = squares @ factors**2
    own = (fourths - 3.0 * squares**2) @ factors**4
    second = float(boxes.weights @ given)  # of boxes that are a little larger, where some are one
    if second < _NEXT_TO_NOTHING:
        return variance, 0.0
    fourth = float(boxes.weights @ (3.0 * given**2 + own)) - 3.0 * second**2
    return variance, fourth * (variance / second) ** 2


@lru_cache(maxsize=1024)
def _variances(law: CombinableNoise, numbers: int) -> Floats:
    """The variance of each number of a vector; their signs are independent, so variances add
    up."""
    units = (tuple(int(i == j) for i in range(numbers)) for j in range(numbers))
    return np.array([law.variance_of_sum(unit) for unit in units])


@dataclass(frozen=True, slots=True)
class WeightedNoise:
    """A sum of noises with factors.

    Parameters
    ----------
    spread
        Its variance, in steps squared.
    excess
        Its fourth cumulant over its squared variance, at most 3.
    """

    spread: float
    excess: float

    def variance(self) -> float:
        """In steps squared."""
        return self.spread

    def above(self, x: Floats) -> Floats:
        """P(noise > x) for each x, in steps."""
        if self.spread == 0.0:
            return np.where(x < 0, 1.0, 0.0)
        share = math.sqrt(min(self.excess, 3.0) / 3.0)
        normal = math.sqrt(max(0.0, (1.0 - share) * self.spread))
        scale = math.sqrt(share * self.spread / 2.0)
        return _tail(np.asarray(x, dtype=np.float64), normal, scale)

    def quantile(self, confidence: float | Fraction, cells: int = 1) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence, by the union
        bound. Results are whole steps, so errors up to a are noise up to a + 1/2.
        """
        return _quantile(self, (1.0 - float(confidence)) / max(1, cells))


@lru_cache(maxsize=4096)
def _quantile(noise: WeightedNoise, miss: float) -> int:
    if noise.spread == 0.0:
        return 0
    return max(0, math.ceil(_reach(noise, miss) - 0.5))


def _reach(noise: WeightedNoise, miss: float) -> float:
    """What |noise| exceeds with a probability of no more than `miss`."""
    low, high = 0.0, math.sqrt(noise.spread)
    while 2.0 * float(noise.above(np.array([high]))[0]) > miss:
        low, high = high, 2.0 * high
    while high - low > 2.0**-30 * high:
        middle = (low + high) / 2.0
        if 2.0 * float(noise.above(np.array([middle]))[0]) > miss:
            low = middle
        else:
            high = middle
    return high


def reaches_of(spreads: Floats, excesses: Floats, level: float) -> NDArray[np.int64]:
    """`WeightedNoise(spread, excess).quantile(level)` of many noises, but for interpolation between
    excesses.
    """
    shares = np.sqrt(np.clip(excesses, 0.0, 3.0) / 3.0)
    far = np.sqrt(spreads) * np.interp(shares, _KNOTS, _unit_reaches(1.0 - level))
    return np.maximum(0.0, np.ceil(far - 0.5)).astype(np.int64)


@lru_cache(maxsize=64)
def _unit_reaches(miss: float) -> Floats:
    """How far noise of variance 1 reaches, by the share that is Laplace noise."""
    return np.array([_reach(WeightedNoise(1.0, 3.0 * share**2), miss) for share in _KNOTS.tolist()])


def _tail(x: Floats, normal: float, scale: float) -> Floats:
    """P(N + L > x) of a normal deviation and a Laplace scale. With z = x / normal, r = normal /
    scale, the normal density f, its tail Q and Mills' ratio R = Q / f, it is

        Q(z) + f(z) (R(r - z) - R(r + z)) / 2     (Reed and Jorgensen 2004).
    """
    far = np.abs(x)
    if scale < 1e-6 * normal:
        upper = _normal_tail(far / normal)
    elif normal < 1e-6 * scale:
        upper = np.exp(-far / scale) / 2.0
    else:
        z, r = np.minimum(far / normal, 1e9), normal / scale
        density = np.exp(-z * z / 2.0) / _ROOT_TWO_PI
        left = np.where(
            z > r,
            np.exp(np.minimum(r * r / 2.0 - r * z, 0.0)) * _normal_tail(np.minimum(r - z, 0.0)),
            density * _mills(np.maximum(r - z, 0.0)),
        )
        upper = _normal_tail(z) + (left - density * _mills(r + z)) / 2.0
    return np.where(x >= 0, upper, 1.0 - upper)


def _normal_tail(z: Floats) -> Floats:
    return np.array([math.erfc(v / _ROOT) / 2.0 for v in z.reshape(-1).tolist()]).reshape(z.shape)


def _mills(z: Floats) -> Floats:
    """Q / f of numbers that are not negative; from 25 on by the asymptotic series."""
    near = np.minimum(z, 25.0)
    direct = _normal_tail(near) * np.exp(near * near / 2.0) * _ROOT_TWO_PI
    far = np.maximum(z, 25.0)
    series = (1.0 - 1.0 / far**2 + 3.0 / far**4) / far
    return np.where(z < 25.0, direct, series)
