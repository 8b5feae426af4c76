"""How likely laws of the number of rows are, given a noisy histogram of individuals.

Under the best limit one or two individuals have more rows, and noise of the histogram is some
tens of individuals: they are invisible. So all noisy counts are compared with expectations under
laws of the number of rows (Pareto, Lomax, log-normal, Weibull and uniform laws, of many sizes and
shapes). The weight of each law is the likelihood of the counts. Beforehand the five families
weigh the same.

No law is exact. The number in a bin may be off what a law expects by who happens to be there, and
by `_MISFIT` of it. So the number is taken to be between what the law expects and the noisy count,
nearer to that which is surer; within a bin individuals lie as the law says. If fewer than
`_NOBODY` are expected to have more rows, no individual is assumed to.

All floats here come from noisy counts, so privacy does not rest on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import AdditiveMechanism

__all__ = ["Tail", "tail_of"]

Floats = NDArray[np.float64]

_MISFIT = 0.06
_NOBODY = 0.5
_FARTHEST = 10.0**6
"""No individual is expected to have more rows, or more than ten times the last limit."""
_POINTS = 150
"""How many numbers of rows, in addition to the limits, laws are computed at."""
_LIKELY = 1e-3
"""Laws that are less likely than this much of the likeliest one count for nothing."""
_LEAST_LOG = -700.0
"""The exponential of less is no number that a float holds in full."""


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """What laws of the number of rows expect, given noisy counts.

    Parameters
    ----------
    weights
        How likely each law is; 1 in all.
    above
        The individuals with more than each limit, by law.
    dropped
        How many rows each limit drops, by law.
    """

    weights: Floats
    above: Floats
    dropped: Floats

    def median(self, numbers: Floats) -> float:
        """The median over the laws of a number that each has."""
        order = np.argsort(numbers, kind="stable")
        place = int(np.searchsorted(np.cumsum(self.weights[order]), 0.5))
        return float(numbers[order[min(place, len(order) - 1)]])


@lru_cache(maxsize=32)
def tail_of(ends: tuple[int, ...], counts: tuple[int, ...], law: AdditiveMechanism | None) -> Tail:
    """The laws that fit noisy counts, and what they expect.

    Parameters
    ----------
    ends
        At which the bins end, in rising order.
    counts
        The noisy number of individuals in each bin, and last of those above all.
    law
        The noise of each count; None if none exists.
    """
    points, shares_above, prior = _laws(ends)
    limits, numbers = np.array(ends, dtype=np.float64), np.array(counts, dtype=np.float64)
    at = np.searchsorted(points, limits)
    edges = np.pad(shares_above[:, at], ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0)))
    shares = edges[:, :-1] - edges[:, 1:]
    expected = max(1.0, float(sum(counts))) * shares
    spread = expected * (1 - shares) + (_MISFIT * expected) ** 2 + 1e-6
    off = numbers - expected
    fits = _log_density(off, spread, law).sum(axis=1) + prior
    likely = np.exp(np.maximum(fits - fits.max(), _LEAST_LOG))
    keep = likely > _LIKELY
    weights = likely[keep] / likely[keep].sum()
    trust = spread / (spread + _variance(law))
    inside = np.maximum(0.0, expected + off * trust)[keep]
    beyond = np.pad(np.cumsum(inside[:, :0:-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    place = np.searchsorted(limits, points)  # the bin of each point
    part = shares_above[keep] - edges[keep][:, place + 1]
    part = np.clip(part / np.maximum(shares[keep], 1e-300)[:, place], 0.0, 1.0)
    above = np.maximum(0.0, beyond[:, place] + inside[:, place] * part)
    above[above < _NOBODY] = 0.0
    parts = _between(above[:, :-1], above[:, 1:], np.diff(points))
    lost = np.pad(np.cumsum(parts[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    return Tail(weights, above[:, at], lost[:, at])


@lru_cache(maxsize=4)
def _laws(ends: tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
    """Numbers of rows, the share of individuals with more than each by every law, and the logarithm
    of the weight of each law beforehand.
    """
    farthest = max(_FARTHEST, 10.0 * ends[-1])
    limits = np.array(ends, dtype=np.float64)
    points = np.unique(np.concatenate([limits, np.geomspace(limits[0], farthest, _POINTS)]))
    powers = np.concatenate([np.arange(0.8, 2.01, 0.1), np.arange(2.25, 4.01, 0.25)])
    deviations = np.concatenate([np.arange(0.3, 1.91, 0.1), [2.1, 2.3, 2.6]])
    shapes = [0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85, 1, 1.3, 2, 4]
    start, pareto = _pairs(np.geomspace(0.5, 100, 24), powers)
    size, lomax = _pairs(np.geomspace(0.5, 300, 28), powers)
    middle, deviation = _pairs(np.arange(-2, 6.01, 0.2), deviations)
    scale, weibull = _pairs(np.geomspace(0.3, 1000, 37), shapes)
    most = np.array([*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500])
    families = [
        (np.maximum(points, start) / start) ** -pareto,
        (1 + points / size) ** -lomax,
        _erfc((np.log(points) - middle) / (deviation * math.sqrt(2))) / 2,
        np.exp(np.maximum(-((points / scale) ** weibull), _LEAST_LOG)),
        np.maximum(1 - points / most[:, None], 0.0),
    ]
    prior = [np.full(len(family), -math.log(len(family))) for family in families]
    return points, np.concatenate(families), np.concatenate(prior)


def _pairs(sizes: Floats, shapes: Floats | list[float]) -> list[Floats]:
    """Each size with each shape, as two columns."""
    return [part.reshape(-1, 1) for part in np.meshgrid(sizes, shapes)]


def _variance(law: AdditiveMechanism | None) -> float:
    return 0.0 if law is None else law.variance()


def _log_density(off: Floats, spread: Floats, law: AdditiveMechanism | None) -> Floats:
    """The logarithm of the density of noise and normal noise together at `off`, up to a constant.

    `spread` is the variance of the normal part. The noise is taken to be normal where it is
    Gaussian, and else Laplace noise of scale b. With v the variance of the normal part and x >= 0
    the density is then, times 4 b,

        exp(v / 2b^2 - x / b) erfc((v / b - x) / r) + exp(v / 2b^2 + x / b) erfc((v / b + x) / r),

    with r = sqrt(2 v), and exp(v / 2b^2 + x / b) = exp(((v / b + x) / r)^2 - x^2 / 2v).
    """
    variance = _variance(law)
    if law is None or not variance or law.is_normal:
        both = spread + variance
        normal: Floats = -(off**2 / both + np.log(both)) / 2
        return normal
    b, x, r = math.sqrt(variance / 2), np.abs(off), np.sqrt(2 * spread)
    near, middle = (spread / b - x) / r, -(x**2) / (2 * spread)
    first = np.where(
        near >= 0,
        middle + _log_erfcx(np.abs(near)),
        spread / (2 * b**2) - x / b + np.log(_erfc(np.minimum(near, 0.0))),
    )
    laplace: Floats = np.logaddexp(first, middle + _log_erfcx((spread / b + x) / r))
    return laplace


def _erfc(x: Floats) -> Floats:
    size = np.abs(x)
    tail = np.exp(np.maximum(_log_erfcx(size) - size**2, _LEAST_LOG))
    both: Floats = np.where(x >= 0, tail, 2 - tail)
    return both


_CHEBYSHEV = (
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806),
    *(0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277),
)


def _log_erfcx(x: Floats) -> Floats:
    """log(exp(x^2) erfc(x)) for x >= 0, to 2e-7 (Press et al., Numerical Recipes, erfcc)."""
    t = 1 / (1 + x / 2)
    series = np.zeros_like(t)
    for factor in reversed(_CHEBYSHEV):
        series = series * t + factor
    logarithm: Floats = series + np.log(t)
    return logarithm


def _between(many: Floats, few: Floats, width: Floats) -> Floats:
    """What those lose between two numbers of rows who have more than the first: the sum over l of
    those with more than l (Abel), which are taken half way between their means, arithmetic and
    geometric.
    """
    middle = (many + few) / 4 + np.sqrt(many * few) / 2
    sums: Floats = np.minimum(width, 1.0) * many + np.maximum(width - 1.0, 0.0) * middle
    return sums
