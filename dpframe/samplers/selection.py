"""Choices of one of many candidates, exactly, in one group or in many.

The exponential mechanism, exactly, in one group of candidates or in many at once.

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

from dpframe.samplers.cells import discrete_laplace_wide
from dpframe.samplers.exponential import SLACK, bernoulli_exp, bracket_exp, decay
from dpframe.samplers.source import OS, BitSource, uniform_below, uniforms_below

# Choosing one of many candidates, exactly: permute-and-flip and report noisy max.
#
# Permute-and-flip needs, per candidate, an event of probability p = exp(-(best - score) / scale).
# Sixteen random bits are compared with a float64 threshold that is widened by far more than its
# error. The few open lanes are settled in exact integers with as many further bits as it takes. So
# the choice is exact, given ideal bits. The exponential mechanism is in `envelope`.

MAX_SELECTION_SCALE: Final = Fraction(1 << 62)
MIN_SELECTION_SCALE: Final = Fraction(1, 1 << 10)

_BLOCK: Final = 1 << 15


def permute_and_flip(
    scores: NDArray[np.int64],  # Any int64 values, at least one
    scale: Fraction,  # Between 2**-10 and 2**62
    source: BitSource = OS,  # For tests only
) -> int:
    """The index chosen by permute-and-flip (McKenna and Sheldon 2020, Algorithm 1).

    Candidates are visited in random order and each is taken with probability exp((score - best) /
    scale); the first success wins. All flips are independent of the order, so that is a uniform
    choice among all successes, which needs no order. Raises `ValueError` when there is no candidate
    or the scale is out of range.
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


def report_noisy_max(
    scores: NDArray[np.int64],  # Any int64 values, at least one
    scale: Fraction,  # Between 2**-10 and 2**56
    source: BitSource = OS,  # For tests only
) -> int:
    """The index of the largest score plus discrete Laplace noise; ties are broken at random.

    Sums are compared as whole numbers, not modulo 2**64: a wrapped sum would win or lose wrongly.
    Raises `ValueError` when there is no candidate or the scale is out of range.
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


MAX_WEIGHT: Final = 1 << 62

Codes = NDArray[np.int64]
Words = NDArray[np.uint64]
_Number = TypeVar("_Number", bound=np.generic)

_TOTAL: Final = 60
"""Envelopes of a group add up to at most a little more than 2 to this."""
_SURE: Final = 1 << 24
"""An envelope from here on is accepted with a probability above 1 - 2**-19."""


def exponential_mechanism(
    scores: Codes,  # Any int64 values, at least one
    scale: Fraction,  # Between 2**-10 and 2**62
    # Integers from 0 to 2**62, not all 0; all 1 when left out. Weight 0 is never chosen.
    weights: Codes | None = None,
    source: BitSource = OS,  # For tests only
) -> int:
    """An index drawn with probability proportional to ``weight * exp(score / scale)``. Raises
    `ValueError` when there is no candidate, or the scale or a weight is out of range.
    """
    sizes = np.array([scores.size], np.int64)
    return int(exponential_mechanism_runs(scores, sizes, scale, weights, source)[0])


def exponential_mechanism_each(scores: Codes, scale: Fraction, source: BitSource = OS) -> Codes:
    """`exponential_mechanism` in each row of `scores`, without weights: the columns chosen. Raises
    `ValueError` when there is no candidate or the scale is out of range.
    """
    if scores.ndim != 2 or not scores.shape[1]:
        raise ValueError("scores must be a matrix of int64 with at least one column")
    rows, columns = scores.shape
    sizes = np.full(rows, columns, np.int64)
    chosen = exponential_mechanism_runs(scores.reshape(-1), sizes, scale, None, source)
    return np.asarray(chosen - np.arange(rows) * columns, np.int64)


def exponential_mechanism_runs(
    scores: Codes,  # Any int64 values, those of one group after those of another
    sizes: Codes,  # How many candidates each group has, at least one
    # `scale`, `weights`, `source`: as in `exponential_mechanism`; every group has a weight that is
    # not 0.
    scale: Fraction,
    weights: Codes | None = None,
    source: BitSource = OS,
) -> Codes:
    """`exponential_mechanism` in each of many groups, which have nothing to do with each other.
    Raises `ValueError` when a group has no candidate, or the scale or a weight is out of range.

    Returns
    -------
    numpy.ndarray
        A place in `scores` per group.
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
    chosen = _choose(_gaps_in_groups(scores, sizes), sizes, scale, weights, source)
    return chosen if kept is None else kept[chosen]


def _positive(scores: Codes, weights: Codes) -> Codes | None:
    """The places of weights above 0, None when all are."""
    if weights.shape != scores.shape or weights.dtype != np.int64:
        raise ValueError("weights must be int64 and as many as the scores")
    if weights.size and (weights.min() < 0 or weights.max() > MAX_WEIGHT):
        raise ValueError("weights must lie between 0 and 2**62")
    return None if weights.all() else np.flatnonzero(weights)


def _gaps_in_groups(scores: Codes, sizes: Codes) -> Words:
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


# One private choice in each of many groups at once, with the laws of `selection`.
#
# Rows are groups, columns candidates, and rows have nothing to do with each other: each gets its
# own bits, so the choices are independent.


def permute_and_flip_each(scores: Codes, scale: Fraction, source: BitSource = OS) -> Codes:
    """`permute_and_flip` in each row of `scores`. Raises `ValueError` when there is no candidate or
    the scale is out of range.
    """
    gaps = _gaps_in_rows(scores, scale)
    successes = flips(gaps.reshape(-1), scale, source).reshape(gaps.shape)
    return _one_of_each(successes, source)


def report_noisy_max_each(scores: Codes, scale: Fraction, source: BitSource = OS) -> Codes:
    """`report_noisy_max` in each row of `scores`. Raises `ValueError` when there is no candidate or
    the scale is out of range.
    """
    gaps = _gaps_in_rows(scores, scale)
    noise, wide = discrete_laplace_wide(scale, gaps.size, source)
    noise = noise.reshape(gaps.shape)
    if wide or (gaps > np.uint64(1 << 62)).any():  # sums that int64 may not hold: one by one
        width = gaps.shape[1]
        beyond: list[dict[int, int]] = [{} for _ in gaps]
        for place, drawn in wide.items():
            beyond[place // width][place % width] = drawn
        rows = zip(noise, gaps, beyond, strict=True)
        return np.array([noisy_winner(n, g, w, source) for n, g, w in rows], np.int64)
    totals = noise - gaps.view(np.int64)
    return _one_of_each(totals == totals.max(axis=1, keepdims=True), source)


def _gaps_in_rows(scores: Codes, scale: Fraction) -> NDArray[np.uint64]:
    """best - score of each row, exactly."""
    if scores.ndim != 2 or not scores.shape[1] or scores.dtype != np.int64:
        raise ValueError("scores must be a matrix of int64 with at least one column")
    check_scale(scale)
    best = scores.max(axis=1, keepdims=True, initial=-(2**63))
    return np.ascontiguousarray(best).view(np.uint64) - np.ascontiguousarray(scores).view(np.uint64)


def _one_of_each(counts: NDArray[np.bool_] | Codes, source: BitSource) -> Codes:
    """The column of one of a row's counted things, uniformly; every row has one at least."""
    sums = np.cumsum(counts, axis=1, dtype=np.int64)
    place = uniforms_below(sums[:, -1], source)
    return np.asarray((sums <= place[:, None]).sum(axis=1), np.int64)
