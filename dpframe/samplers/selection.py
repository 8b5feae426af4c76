"""Choosing one of many candidates, exactly: permute-and-flip and the exponential mechanism.

Both need, per candidate, an event of probability p = exp(-(best - score) / scale) or of rate
proportional to it. Sixteen random bits per candidate are compared with a float64 threshold that is
widened by far more than its error; the few lanes that this leaves open are settled in exact
integers with as many further bits as it takes. So the choice is exact, given ideal bits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.cells import discrete_laplace_wide
from dpframe.samplers.exponential import bernoulli_exp, bracket_exp, taylor_exp
from dpframe.samplers.source import OS, BitSource

__all__ = [
    "MAX_SELECTION_SCALE",
    "MAX_WEIGHT",
    "MIN_SELECTION_SCALE",
    "exponential_mechanism",
    "permute_and_flip",
    "report_noisy_max",
    "uniform_below",
]

MAX_SELECTION_SCALE: Final = Fraction(1 << 62)
MIN_SELECTION_SCALE: Final = Fraction(1, 1 << 10)
MAX_WEIGHT: Final = 1 << 62

_BLOCK: Final = 1 << 15
_LN2: Final = math.log(2.0)
_FURTHEST: Final = 700.0
_SLACK: Final = 2.0**-20
"""Relative error allowed to `_decay`, which keeps within 2**-25."""


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
        distance = first - _decay(gap, rate) * 65536.0
        success = distance <= -1.0 - 65536 * _SLACK
        for lane in np.flatnonzero((distance < 65536 * _SLACK) ^ success):
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


def exponential_mechanism(
    scores: NDArray[np.int64],
    scale: Fraction,
    weights: NDArray[np.int64] | None = None,
    source: BitSource = OS,
) -> int:
    """An index drawn with probability proportional to ``weight * exp(score / scale)``.

    A Poisson race: in a round candidate i receives Poisson(rate_i) arrivals with
    rate_i = weight_i exp(-(best - score_i) / scale) / 2**m, and one of all arrivals of the first
    round that has any is chosen uniformly. Arrivals of independent Poisson variables, given their
    number, are independent draws with probabilities proportional to the rates, whatever m is; m is
    set so that a round expects 1 to 2 arrivals and its running time hardly depends on the data.

    Parameters
    ----------
    scores
        Any int64 values, at least one.
    scale
        Between 2**-10 and 2**62.
    weights
        Integers from 0 to 2**62, not all 0; all 1 when left out. Weight 0 is never chosen.
    source
        For tests only.

    Raises
    ------
    ValueError
        When there is no candidate, or the scale or a weight is out of range.
    """
    if weights is not None:
        chosen = _positive(weights, scores)
        if chosen.size < weights.size:
            inner = exponential_mechanism(scores[chosen], scale, weights[chosen], source)
            return int(chosen[inner])
    gaps = _gaps(scores, scale)
    if gaps.size == 1:
        return 0
    last, shift = _thresholds(gaps, float(1 / scale), weights)
    while True:
        arrivals: list[int] = []
        for start in range(0, gaps.size, _BLOCK):
            block = last[start : start + _BLOCK]
            first = source.u16(block.size)
            for lane in np.flatnonzero(first <= block):
                i = start + int(lane)
                weight = 1 if weights is None else int(weights[i])
                count = _arrivals(int(first[lane]), weight, int(gaps[i]) / scale, shift, source)
                arrivals.extend([i] * count)
        if arrivals:
            return arrivals[uniform_below(len(arrivals), source)]


def _positive(weights: NDArray[np.int64], scores: NDArray[np.int64]) -> NDArray[np.int64]:
    if weights.shape != scores.shape or weights.dtype != np.int64:
        raise ValueError("weights must be int64 and as many as the scores")
    if weights.size and (weights.min() < 0 or weights.max() > MAX_WEIGHT):
        raise ValueError("weights must lie between 0 and 2**62")
    return np.flatnonzero(weights)


def poisson_one(n: int, source: BitSource) -> NDArray[np.int64]:
    """`n` independent Poisson numbers of mean 1, exactly, by inversion."""
    floors = _poisson_floors()
    words = source.u64(n)
    drawn = np.searchsorted(floors, words, "left").astype(np.int64)
    inside = np.minimum(drawn, floors.size - 1)
    for lane in np.flatnonzero((floors[inside] == words) | (drawn == floors.size)):
        prefix, bits = int(words[lane]), 64
        while (count := _count(prefix, bits, 1, Fraction(0), 0)) is None:
            prefix, bits = prefix << 64 | source.int64bits(), bits + 64
        drawn[lane] = count
    return drawn


@lru_cache(maxsize=1)
def _poisson_floors() -> NDArray[np.uint64]:
    """floor(2**64 P(N <= j)) for j = 0, 1, ..., 12; what lies beyond is counted on."""
    lo, hi = bracket_exp(Fraction(1), 256)
    total, floors = Fraction(0), []
    for j in range(13):
        total += Fraction(1, math.factorial(j))
        below, above = total * lo / 2**192, total * hi / 2**192
        assert math.floor(below) == math.floor(above)
        floors.append(math.floor(below))
    return np.array(floors, np.uint64)


def _gaps(scores: NDArray[np.int64], scale: Fraction) -> NDArray[np.uint64]:
    """best - score, which fits in 64 bits without a sign but not with one."""
    if scores.ndim != 1 or scores.size == 0 or scores.dtype != np.int64:
        raise ValueError("scores must be a non-empty vector of int64")
    if not MIN_SELECTION_SCALE <= scale <= MAX_SELECTION_SCALE:
        raise ValueError("the scale of a selection is out of the range of the sampler")
    unsigned = np.ascontiguousarray(scores).view(np.uint64)
    return np.asarray(unsigned[np.argmax(scores)] - unsigned, np.uint64)


def _decay(gap: NDArray[np.uint64], rate: float) -> NDArray[np.float64]:
    """exp(-gap rate) within a relative 2**-25, or a little more than 0 when it is below e**-700.

    gap and rate are off by one rounding each and their product by a third: 700 * 3u < 2**-41; the
    reduction y = g - e ln 2 loses as little again; `taylor_exp` keeps 2**-26 for |y| <= 0.35; and
    the power of two is exact, because 2**-1011 is a normal number.
    """
    g = gap.astype(np.float64)
    g *= rate
    np.minimum(g, _FURTHEST, out=g)
    exponent = np.rint(g * (1.0 / _LN2))
    g -= exponent * _LN2
    result = taylor_exp(g, 7)
    bits = np.subtract(1023, exponent.astype(np.int64))
    bits <<= 52
    result *= bits.view(np.float64)
    return result


def _thresholds(
    gaps: NDArray[np.uint64], rate: float, weights: NDArray[np.int64] | None
) -> tuple[NDArray[np.uint16], int]:
    """Per candidate, the largest 16-bit prefix that may still bring an arrival; and m.

    P(arrivals >= 1) = 1 - exp(-rate_i) <= rate_i, so U >= rate_i means none.
    """
    rates = np.empty(gaps.size, np.float64)
    for start in range(0, gaps.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        rates[block] = _decay(gaps[block], rate)
        if weights is not None:
            rates[block] *= weights[block]
    shift = math.frexp(float(rates.sum()))[1] - 1
    rates *= 65536.0 * (1.0 + _SLACK) * 2.0**-shift
    np.ceil(rates, out=rates)
    np.clip(rates, 1.0, 65536.0, out=rates)
    rates -= 1.0
    return rates.astype(np.uint16), shift


def _arrivals(first: int, weight: int, x: Fraction, shift: int, source: BitSource) -> int:
    """A Poisson(weight exp(-x) / 2**shift) number, by inversion of a U that begins with `first`."""
    prefix, bits = first << 48 | source.int64bits() >> 16, 64
    while True:
        count = _count(prefix, bits, weight, x, shift)
        if count is not None:
            return count
        prefix, bits = prefix << 64 | source.int64bits(), bits + 64


def _count(prefix: int, bits: int, weight: int, x: Fraction, shift: int) -> int | None:
    """The n with P(N > n) <= U < P(N >= n) if the known bits of U prove it, otherwise None."""
    extra = 64 + weight.bit_length()
    width = bits + extra
    one = 1 << width
    lo, hi = bracket_exp(x, width - shift)
    lo, hi = weight * lo, weight * hi  # of 2**width times the mean
    low, high = prefix << extra, prefix + 1 << extra  # low <= 2**width U < high
    if low >= hi:  # 1 - exp(-mean) <= mean
        return 0
    term_lo = bracket_exp(Fraction(hi, one), width)[0]
    term_hi = bracket_exp(Fraction(lo, one), width)[1]
    sum_lo, sum_hi = term_lo, term_hi
    n = 0
    while True:  # sum_lo <= 2**width P(N <= n) <= sum_hi
        if low >= one - sum_lo:
            return n
        if high > one - sum_hi:
            return None
        n += 1
        term_lo = (term_lo * lo >> width) // n
        product = -(-term_hi * hi >> width)
        term_hi = -(-product // n)
        sum_lo, sum_hi = sum_lo + term_lo, sum_hi + term_hi


def uniform_below(n: int, source: BitSource = OS) -> int:
    """A uniform integer in [0, n), 0 < n < 2**64, by rejection."""
    unused = 64 - (n - 1).bit_length()
    while True:
        value = source.int64bits() >> unused
        if value < n:
            return value
