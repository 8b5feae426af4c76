"""The exponential mechanism, exactly, in one group of candidates or in many at once.

Candidate i has to be chosen with probability proportional to v_i = 2**s w_i exp(-x_i), where w_i is
its weight and x_i = (best - score_i) / scale. The choice is by rejection under whole numbers:

1. s is such that the sum of a group's v_i is about 2**60, and W_i >= v_i is a positive integer
   barely above v_i: a float64 product, enlarged by far more than its error and rounded up;
2. i is proposed with probability W_i / (W_1 + ... + W_n), by a uniform integer below the sum and
   integer cumulative sums;
3. i is accepted with probability v_i / W_i, otherwise its group proposes again.

Exact, given ideal bits: W_i / sum times v_i / W_i is proportional to v_i, for any W_i. They only
have to be large enough, which `_envelopes` proves, and the coin of step 3 needs exactly its
probability. Sixteen bits settle it except for a share of 2**-16, and the rest is settled in
integers with as many further bits as it takes. About 2**-20 of the proposals are rejected, for
any scores and weights, so the time barely depends on them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.exponential import SLACK, bracket_exp, decay
from dpframe.samplers.selection import check_scale
from dpframe.samplers.source import OS, BitSource
from dpframe.samplers.uniform import uniforms_below

MAX_WEIGHT: Final = 1 << 62

Codes = NDArray[np.int64]
Words = NDArray[np.uint64]
_Number = TypeVar("_Number", bound=np.generic)

_BLOCK: Final = 1 << 15
_TOTAL: Final = 60
"""Envelopes of a group add up to at most a little more than 2 to this."""
_SURE: Final = 1 << 24
"""An envelope from here on is accepted with a probability above 1 - 2**-19."""


def exponential_mechanism(
    scores: Codes, scale: Fraction, weights: Codes | None = None, source: BitSource = OS
) -> int:
    """An index drawn with probability proportional to ``weight * exp(score / scale)``.

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
    sizes = np.array([scores.size], np.int64)
    return int(exponential_mechanism_runs(scores, sizes, scale, weights, source)[0])


def exponential_mechanism_each(scores: Codes, scale: Fraction, source: BitSource = OS) -> Codes:
    """`exponential_mechanism` in each row of `scores`, without weights: the columns chosen.

    Raises
    ------
    ValueError
        When there is no candidate or the scale is out of range.
    """
    if scores.ndim != 2 or not scores.shape[1]:
        raise ValueError("scores must be a matrix of int64 with at least one column")
    rows, columns = scores.shape
    sizes = np.full(rows, columns, np.int64)
    chosen = exponential_mechanism_runs(scores.reshape(-1), sizes, scale, None, source)
    return np.asarray(chosen - np.arange(rows) * columns, np.int64)


def exponential_mechanism_runs(
    scores: Codes,
    sizes: Codes,
    scale: Fraction,
    weights: Codes | None = None,
    source: BitSource = OS,
) -> Codes:
    """`exponential_mechanism` in each of many groups, which have nothing to do with each other.

    Parameters
    ----------
    scores
        Any int64 values, those of one group after those of another.
    sizes
        How many candidates each group has, at least one.
    scale, weights, source
        As in `exponential_mechanism`; every group has a weight that is not 0.

    Returns
    -------
    numpy.ndarray
        A place in `scores` per group.

    Raises
    ------
    ValueError
        When a group has no candidate, or the scale or a weight is out of range.
    """
    check_scale(scale)
    if scores.ndim != 1 or scores.dtype != np.int64 or sizes.sum() != scores.size:
        raise ValueError("scores must be a non-empty vector of int64")
    kept = None if weights is None else _positive(scores, weights)
    if kept is not None and weights is not None:
        counts = np.append(0, np.cumsum(weights > 0))
        ends = np.cumsum(sizes)
        sizes = counts[ends] - counts[ends - sizes]
        scores, weights = scores[kept], weights[kept]
    if sizes.size and sizes.min() < 1:
        raise ValueError("scores must be a non-empty vector of int64")
    chosen = _choose(_gaps(scores, sizes), sizes, scale, weights, source)
    return chosen if kept is None else kept[chosen]


def _positive(scores: Codes, weights: Codes) -> Codes | None:
    """The places of weights above 0, None when all are."""
    if weights.shape != scores.shape or weights.dtype != np.int64:
        raise ValueError("weights must be int64 and as many as the scores")
    if weights.size and (weights.min() < 0 or weights.max() > MAX_WEIGHT):
        raise ValueError("weights must lie between 0 and 2**62")
    return None if weights.all() else np.flatnonzero(weights)


def _gaps(scores: Codes, sizes: Codes) -> Words:
    """best - score within each group, which fits in 64 bits without a sign but not with one."""
    if not sizes.size:
        return np.empty(0, np.uint64)
    best = np.maximum.reduceat(scores, np.cumsum(sizes) - sizes)
    unsigned = np.ascontiguousarray(scores).view(np.uint64)
    return np.asarray(_spread(best.view(np.uint64), sizes) - unsigned, np.uint64)


def _choose(
    gaps: Words, sizes: Codes, scale: Fraction, weights: Codes | None, source: BitSource
) -> Codes:
    last = np.cumsum(sizes) - 1
    chosen = last.copy()
    left = np.flatnonzero(sizes > 1)
    if not left.size:
        return chosen
    envelopes, shifts = _envelopes(gaps, sizes, float(1 / scale), weights)
    sums = np.cumsum(envelopes, dtype=np.uint64)  # modulo 2**64, as their differences are
    before = sums[last - sizes + 1] - envelopes[last - sizes + 1]
    totals = (sums[last] - before).astype(np.int64)
    while left.size:
        point = before[left] + uniforms_below(totals[left], source).astype(np.uint64)
        found = _first_above(sums, before[left], point, last[left] - sizes[left] + 1, last[left])
        first = source.u16(left.size)
        accepted = (first < 0xFFFF) & (envelopes[found] >= _SURE)
        for lane in np.flatnonzero(~accepted):
            i = int(found[lane])
            weight = 1 if weights is None else int(weights[i])
            accepted[lane] = _accept(
                int(first[lane]),
                int(envelopes[i]),
                (weight, int(gaps[i]) / scale, int(shifts[left[lane]])),
                source,
            )
        chosen[left[accepted]] = found[accepted]
        left = left[~accepted]
    return chosen


def _envelopes(
    gaps: Words, sizes: Codes, rate: float, weights: Codes | None
) -> tuple[Words, NDArray[np.int64]]:
    """W_i >= v_i of all candidates, and s of each group.

    `decay` is within a relative 2**-25 of exp(-x); the weight as a float, two products and the
    power of two lose 2**-51 more. So (1 + 2**-20) times the product is at least v_i and at most
    (1 + 2**-19.9) v_i, before it is rounded up. Below exp(-700), and where the product is not a
    normal number, v_i < 1 <= W_i. A group's best candidate has v_i >= 2**s, so s < 60.
    """
    rates = np.empty(gaps.size, np.float64)
    for start in range(0, gaps.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        rates[block] = decay(gaps[block], rate)
        if weights is not None:
            rates[block] *= weights[block]
    totals = np.add.reduceat(rates, np.cumsum(sizes) - sizes)
    shifts = _TOTAL - np.frexp(totals)[1].astype(np.int64)
    rates *= _spread(np.ldexp(1.0 + SLACK, shifts), sizes)
    np.ceil(rates, out=rates)
    np.maximum(rates, 1.0, out=rates)
    return rates.astype(np.uint64), shifts


def _spread(values: NDArray[_Number], sizes: Codes) -> NDArray[_Number]:
    """Each group's value for each of its candidates."""
    return values if values.size == 1 else np.repeat(values, sizes)


def _first_above(sums: Words, before: Words, point: Words, lo: Codes, hi: Codes) -> Codes:
    """The first place from `lo` to `hi` whose sum is above the point, counted from `before`; the
    sum at `hi` always is.
    """
    reach = point - before
    while (lo < hi).any():
        middle = (lo + hi) >> 1
        above = sums[middle] - before > reach
        lo, hi = np.where(above, lo, middle + 1), np.where(above, middle, hi)
    return hi


def _accept(
    first: int, envelope: int, wanted: tuple[int, Fraction, int], source: BitSource
) -> bool:
    """True with probability v / envelope, v = 2**s weight exp(-x), for a U beginning with `first`.

    exp(-x) is irrational unless x = 0 (Lindemann-Weierstrass), and then it is known exactly, so
    that both comparisons fail only as long as U and v / envelope have the same binary digits.
    """
    weight, x, shift = wanted
    up, down = max(shift, 0), max(-shift, 0)
    extra = 64 + weight.bit_length() + up
    prefix, bits = first << 48 | source.int64bits() >> 16, 64
    while True:
        lo, hi = bracket_exp(x, bits + extra)
        unit = envelope << extra + down  # of 2**(bits + extra + down) U
        if (prefix + 1) * unit <= weight * lo << up:
            return True
        if prefix * unit >= weight * hi << up:
            return False
        prefix, bits = prefix << 64 | source.int64bits(), bits + 64
