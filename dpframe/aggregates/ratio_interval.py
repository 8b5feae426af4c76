"""Where sums of noisy numbers, and ratios of such sums, lie.

The error of a sum with public factors is the same sum of the noises, whose law is known. For a
ratio r of two such sums, a' / b', the number a' - r b' has a known law for each r, so {r : |a' -
r b'| <= q(r)} holds the exact ratio with the confidence asked for (Fieller 1954). With r =
tan(w), and a' and b' in units of their noise, this is {w : |a' cos(w) - b' sin(w)| <= q(w)}, an
interval around the angle of the release. It has no ends where b' may be 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.joint_noise import JointNoise, Slices, pulls
from dpframe.aggregates.mean_interval import least_within

__all__ = ["ratio_ends", "sum_reach"]

Floats: TypeAlias = "NDArray[np.float64]"
Ends: TypeAlias = "tuple[Floats, Floats]"

_CELLS: Final = 96
_UP: Final = 1.0 + 2e-3
_TYPICAL: Final = Fraction(2, 3)


def sum_reach(noise: JointNoise, factors: tuple[float, ...], miss: float) -> float:
    """The least q with P(|sum of factor * noise| > q) <= miss, or barely more than that.

    Parameters
    ----------
    noise
        The noise of the numbers, in their own units.
    factors
        One for each.
    miss
        A probability.
    """
    return float(_reaches(noise, (factors,), miss)[0])


def ratio_ends(
    above: Floats,
    below: Floats,
    noise: JointNoise,
    factors: tuple[tuple[float, ...], tuple[float, ...]],
    miss: float,
) -> Ends:
    """The least and the largest ratio; NaN for both where there are no ends.

    Parameters
    ----------
    above, below
        The noisy sums, constants included: one of each for each group.
    noise
        The noise of the numbers that they are sums of.
    factors
        The factors of the numbers in either sum.
    miss
        How often the exact ratio may lie outside.
    """
    units = [sum_reach(noise, side, miss) or 1.0 for side in factors]
    angles = np.linspace(-math.pi / 2, math.pi / 2, _CELLS + 1)
    turned = tuple(
        tuple(
            math.cos(angle) * a / units[0] - math.sin(angle) * b / units[1]
            for a, b in zip(*factors, strict=True)
        )
        for angle in angles.tolist()
    )
    reach = _reaches(noise, turned, miss)
    first, last = _around(above / units[0], below / units[1], angles, reach)
    with np.errstate(invalid="ignore"):
        open_ended = ~((first > -math.pi / 2) & (last < math.pi / 2))
    scale = units[0] / units[1]
    return (
        np.where(open_ended, np.nan, np.tan(first) * scale),
        np.where(open_ended, np.nan, np.tan(last) * scale),
    )


def _around(a: Floats, b: Floats, angles: Floats, reach: Floats) -> Ends:
    """The least and the largest angle of the set, around that of a / b between -pi/2 and pi/2.

    |a cos(w) - b sin(w)| is the distance from 0 times the sine of the difference of angles.
    """
    far = np.hypot(a, b)
    flip = np.where(b < 0, -1.0, 1.0)
    middle = np.arctan2(a * flip, b * flip)
    low, high = np.zeros(a.shape), np.zeros(a.shape)
    for start, end, q in zip(
        angles[:-1], angles[1:], np.maximum(reach[:-1], reach[1:]), strict=True
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = np.where(q >= far, math.pi / 2, np.arcsin(np.minimum(1.0, q / far)))
        for turn in (-math.pi, 0.0, math.pi):
            left, right = start + turn - middle, end + turn - middle
            right_in, left_in = np.minimum(right, wide), np.maximum(left, -wide)
            found = left_in <= right_in
            low = np.where(found, np.minimum(low, left_in), low)
            high = np.where(found, np.maximum(high, right_in), high)
    return middle + low, middle + high


@lru_cache(maxsize=256)
def _reaches(noise: JointNoise, rows: tuple[tuple[float, ...], ...], miss: float) -> Floats:
    """For each row of factors the quantile of the size of the sum.

    The law of the first noise is exact in slices of the others, so it is the one that weighs most.
    """
    table = np.asarray(rows, dtype=np.float64)
    columns = range(table.shape[1])
    spread = [noise.unit(i) * (noise.reach(i, _TYPICAL) + 0.1) for i in columns]
    leads = np.argmax(np.abs(table) * np.asarray(spread), axis=1)
    found = np.zeros(len(table))
    for lead in np.unique(leads).tolist():
        mine, rest = leads == lead, [i for i in columns if i != lead]
        scale = np.abs(table[mine, lead])
        scale = np.where(scale > 0, scale, 1.0)
        factors = table[mine][:, rest] / scale[:, None] * np.sign(table[mine, lead])[:, None]
        pull = pulls(np.abs(factors).max(axis=0).tolist())
        slices = noise.of((lead, *rest)).slices(miss, pull)
        others = np.stack(slices.others) if rest else np.zeros((0, slices.weights.size))
        shift = factors @ others

        def missed(q: Floats, shift: Floats = shift, slices: Slices = slices) -> Floats:
            return slices.outside(-q[:, None] - shift, q[:, None] - shift)

        found[mine] = least_within(missed, int(mine.sum()), miss, spread[lead]) * scale
    return found * _UP
