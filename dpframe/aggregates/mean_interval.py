"""Where exact means lie, given noisy sums and counts.

With centred sum S' = n m + X and count N' = n + Y the number S' - m N' is X - m Y, whose law is
known for every m. So {m : |S' - m N'| <= q(m)}, with q(m) the quantile of |X - m Y|, holds the
exact mean with the given confidence, for any data (Fieller 1954). It needs no division, so it is
as right where the noisy count is 0 or below, and where it is far from that it is no wider than
the error of the mean is. Clamped results need no care: the set is of what is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.joint_noise import JointNoise, pulls

__all__ = ["least_within", "mean_ends"]

Floats: TypeAlias = "NDArray[np.float64]"
Ends: TypeAlias = "tuple[Floats, Floats]"

_CELLS: Final = 32
_UP: Final = 1.0 + 2e-3
_AT_ONCE: Final = 1 << 16


def mean_ends(total: Floats, count: Floats, noise: JointNoise, half: float, miss: Fraction) -> Ends:
    """The least and the largest mean, around the middle of the bounds; NaN if none exists.

    Parameters
    ----------
    total, count
        The noisy sums around the middle, and the noisy counts: one for each group.
    noise
        The joint noise of the sum and the count.
    half
        Half the width of the bounds.
    miss
        How often the exact mean may lie outside.
    """
    knots, reach = _reaches(noise, half, miss)
    ends = [
        _fieller(total[i : i + _AT_ONCE], count[i : i + _AT_ONCE], knots, reach)
        for i in range(0, max(1, total.size), _AT_ONCE)
    ]
    return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])


def _fieller(total: Floats, count: Floats, knots: Floats, reach: Floats) -> Ends:
    """The ends of the union over cells of means; within a cell one half-width is enough for all
    means."""
    low, high = np.full(total.shape, np.inf), np.full(total.shape, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for a, b, q in zip(knots[:-1], knots[1:], reach, strict=True):
            first, last = (total - q) / count, (total + q) / count
            least, most = np.minimum(first, last), np.maximum(first, last)
            every = (count == 0) & (np.abs(total) <= q)
            least = np.where(count == 0, np.where(every, a, np.inf), np.maximum(least, a))
            most = np.where(count == 0, np.where(every, b, -np.inf), np.minimum(most, b))
            found = least <= most
            low = np.where(found, np.minimum(low, least), low)
            high = np.where(found, np.maximum(high, most), high)
    empty = low > high
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


@lru_cache(maxsize=256)
def _reaches(noise: JointNoise, half: float, miss: Fraction) -> Ends:
    """Ends of cells of means, and for each cell a bound on the quantile of |X - m Y| in it.

    It rises with |m|: sums of symmetric unimodal noises spread more with larger coefficients.
    """
    slices = noise.slices(float(miss), pulls((half,)))
    (y,) = slices.others
    knots = np.linspace(-half, half, 2 * _CELLS + 1)
    sides = knots[_CELLS:] if noise.even else knots

    def missed(q: Floats) -> Floats:
        shift = sides[:, None] * y
        return slices.outside(shift - q[:, None], shift + q[:, None])

    found = least_within(missed, sides.size, float(miss), half) * _UP
    every = np.append(found[:0:-1], found) if noise.even else found
    return knots, np.maximum(every[:-1], every[1:])


def least_within(
    missed: Callable[[Floats], Floats], size: int, allowed: float, unit: float
) -> Floats:
    """For each of `size` laws the least q, about, with missed(q) <= allowed; never below it.

    Tails are about exponential: lines through their logarithms are followed, within a bracket.
    """
    low, over = np.zeros(size), np.full(size, np.nan)
    high = np.full(size, unit)
    under = missed(high)
    while (short := under > allowed).any():
        low, over = np.where(short, high, low), np.where(short, under, over)
        high = np.where(short, high * 4, high)
        under = missed(high)
    over = np.where(np.isnan(over), missed(low), over)
    low = np.where(over > allowed, low, 0.0)
    high = np.where(over > allowed, high, 0.0)
    for _ in range(40):
        if (high <= low * _UP).all() or (high <= unit * 1e-13).all():
            break
        fall = np.log(np.maximum(over, 1e-300)) - np.log(np.maximum(under, 1e-300))
        rest = np.log(np.maximum(over, 1e-300)) - math.log(allowed)
        share = np.clip(rest / np.maximum(fall, 1e-12) + 0.01, 0.05, 0.95)
        middle = low + share * (high - low)
        at = missed(middle)
        short = at > allowed
        low, over = np.where(short, middle, low), np.where(short, at, over)
        high, under = np.where(short, high, middle), np.where(short, under, at)
    return high
