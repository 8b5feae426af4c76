"""Choosing one of many candidates, exactly: permute-and-flip and report noisy max.

Permute-and-flip needs, per candidate, an event of probability p = exp(-(best - score) / scale).
Sixteen random bits are compared with a float64 threshold that is widened by far more than its
error. The few open lanes are settled in exact integers with as many further bits as it takes. So
the choice is exact, given ideal bits. The exponential mechanism is in `envelope`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.cells import discrete_laplace_wide
from dpframe.samplers.exponential import SLACK, bernoulli_exp, decay
from dpframe.samplers.source import OS, BitSource
from dpframe.samplers.uniform import uniform_below

MAX_SELECTION_SCALE: Final = Fraction(1 << 62)
MIN_SELECTION_SCALE: Final = Fraction(1, 1 << 10)

_BLOCK: Final = 1 << 15


def permute_and_flip(scores: NDArray[np.int64], scale: Fraction, source: BitSource = OS) -> int:
    """The index chosen by permute-and-flip (McKenna and Sheldon 2020, Algorithm 1).

    Candidates are visited in random order and each is taken with probability
    exp((score - best) / scale); the first success wins. All flips are independent of the order, so
    that is a uniform choice among all successes, which needs no order.

    Parameters
    ----------
    scores
        Any int64 values, at least one.
    scale
        Between 2**-10 and 2**62.
    source
        For tests only.

    Raises
    ------
    ValueError
        When there is no candidate or the scale is out of range.
    """
    successes = np.flatnonzero(flips(_gaps(scores, scale), scale, source))
    return int(successes[uniform_below(successes.size, source)])


def flips(gaps: NDArray[np.uint64], scale: Fraction, source: BitSource) -> NDArray[np.bool_]:
    """Independent coins that come up with probability exp(-gap / scale), one per gap."""
    rate = float(1 / scale)
    coins = np.empty(gaps.size, np.bool_)
    for start in range(0, gaps.size, _BLOCK):
        gap = gaps[start : start + _BLOCK]
        first = source.u16(gap.size)
        distance = first - decay(gap, rate) * 65536.0
        success = distance <= -1.0 - 65536 * SLACK
        for lane in np.flatnonzero((distance < 65536 * SLACK) ^ success):
            prefix = int(first[lane]) << 48 | source.int64bits() >> 16
            success[lane] = bernoulli_exp(int(gap[lane]) / scale, source, prefix, 64)
        coins[start : start + gap.size] = success
    return coins


def report_noisy_max(scores: NDArray[np.int64], scale: Fraction, source: BitSource = OS) -> int:
    """The index of the largest score plus discrete Laplace noise; ties are broken at random.

    Sums are compared as whole numbers, not modulo 2**64: a wrapped sum would win or lose wrongly.

    Parameters
    ----------
    scores
        Any int64 values, at least one.
    scale
        Between 2**-10 and 2**56.
    source
        For tests only.

    Raises
    ------
    ValueError
        When there is no candidate or the scale is out of range.
    """
    gaps = _gaps(scores, scale)
    noise, wide = discrete_laplace_wide(scale, gaps.size, source)
    return noisy_winner(noise, gaps, wide, source)


def noisy_winner(
    noise: NDArray[np.int64], gaps: NDArray[np.uint64], wide: dict[int, int], source: BitSource
) -> int:
    """The index of the largest noise - gap, whose noise is in `wide` where int64 does not hold it;
    one of those that have it, at random.
    """
    near = gaps <= np.uint64(1 << 62)
    near[list(wide)] = False
    best, winners = _largest(noise, gaps, near)
    # Sums that int64 may not hold, as floats off by less than 2**13 first, then as they are.
    floats = noise.astype(np.float64) - gaps.astype(np.float64)
    rivals = ~near if best is None else ~near & (floats >= best - 2.0**13)
    for i in dict.fromkeys([*np.flatnonzero(rivals).tolist(), *wide]):
        total = wide.get(i, int(noise[i])) - int(gaps[i])
        if best is None or total > best:
            best, winners = total, [i]
        elif total == best:
            winners.append(i)
    return winners[uniform_below(len(winners), source)]


def _largest(
    noise: NDArray[np.int64], gaps: NDArray[np.uint64], near: NDArray[np.bool_]
) -> tuple[int | None, list[int]]:
    """The largest noise - gap among lanes that are `near`, and the lanes that have it."""
    lanes = np.flatnonzero(near)
    if not lanes.size:
        return None, []
    totals = noise[lanes] - gaps[lanes].view(np.int64)
    best = int(totals.max())
    return best, lanes[totals == best].tolist()


def _gaps(scores: NDArray[np.int64], scale: Fraction) -> NDArray[np.uint64]:
    """best - score, which fits in 64 bits without a sign but not with one."""
    if scores.ndim != 1 or scores.size == 0 or scores.dtype != np.int64:
        raise ValueError("scores must be a non-empty vector of int64")
    check_scale(scale)
    unsigned = np.ascontiguousarray(scores).view(np.uint64)
    return np.asarray(unsigned[np.argmax(scores)] - unsigned, np.uint64)


def check_scale(scale: Fraction) -> None:
    """Refuse a scale that the samplers are not made for."""
    if not MIN_SELECTION_SCALE <= scale <= MAX_SELECTION_SCALE:
        raise ValueError("the scale of a selection is out of the range of the sampler")
