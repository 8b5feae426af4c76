"""One private choice in each of many groups at once, with the laws of `selection`.

Rows are groups, columns candidates, and rows have nothing to do with each other: each gets its own
bits, so the choices are independent.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.cells import discrete_laplace_wide
from dpframe.samplers.selection import (
    MAX_SELECTION_SCALE,
    MIN_SELECTION_SCALE,
    flips,
    noisy_winner,
    poisson_one,
)
from dpframe.samplers.source import OS, BitSource

__all__ = ["exponential_mechanism_each", "permute_and_flip_each", "report_noisy_max_each"]

Codes = NDArray[np.int64]


def permute_and_flip_each(scores: Codes, scale: Fraction, source: BitSource = OS) -> Codes:
    """`permute_and_flip` in each row of `scores`.

    Raises
    ------
    ValueError
        When there is no candidate or the scale is out of range.
    """
    gaps = _gaps(scores, scale)
    successes = flips(gaps.reshape(-1), scale, source).reshape(gaps.shape)
    return _one_of_each(successes, source)


def exponential_mechanism_each(scores: Codes, scale: Fraction, source: BitSource = OS) -> Codes:
    """`exponential_mechanism` in each row of `scores`, without weights.

    In a round each candidate receives Poisson(1) arrivals, each of which stays with probability
    exp(-(best - score) / scale): the arrivals that stay are independent Poisson numbers with these
    means. One of all that stay is chosen; rows without any go round again, at most e**-1 of them.

    Raises
    ------
    ValueError
        When there is no candidate or the scale is out of range.
    """
    gaps = _gaps(scores, scale)
    chosen = np.empty(len(gaps), np.int64)
    left = np.arange(len(gaps))
    while left.size:
        gap = gaps[left]
        arrivals = poisson_one(gap.size, source)
        stays = flips(np.repeat(gap.reshape(-1), arrivals), scale, source)
        place = np.repeat(np.arange(gap.size), arrivals)[stays]
        counts = np.bincount(place, minlength=gap.size).reshape(gap.shape)
        done = counts.any(axis=1)
        chosen[left[done]] = _one_of_each(counts[done], source)
        left = left[~done]
    return chosen


def report_noisy_max_each(scores: Codes, scale: Fraction, source: BitSource = OS) -> Codes:
    """`report_noisy_max` in each row of `scores`.

    Raises
    ------
    ValueError
        When there is no candidate or the scale is out of range.
    """
    gaps = _gaps(scores, scale)
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


def _gaps(scores: Codes, scale: Fraction) -> NDArray[np.uint64]:
    """best - score of each row, exactly."""
    if scores.ndim != 2 or not scores.shape[1] or scores.dtype != np.int64:
        raise ValueError("scores must be a matrix of int64 with at least one column")
    if not MIN_SELECTION_SCALE <= scale <= MAX_SELECTION_SCALE:
        raise ValueError("the scale of a selection is out of the range of the sampler")
    best = scores.max(axis=1, keepdims=True, initial=-(2**63))
    return np.ascontiguousarray(best).view(np.uint64) - np.ascontiguousarray(scores).view(np.uint64)


def _one_of_each(counts: NDArray[np.bool_] | Codes, source: BitSource) -> Codes:
    """The column of one of a row's counted things, uniformly; every row has one at least."""
    sums = np.cumsum(counts, axis=1, dtype=np.int64)
    place = _uniforms_below(sums[:, -1], source)
    return np.asarray((sums <= place[:, None]).sum(axis=1), np.int64)


def _uniforms_below(ends: Codes, source: BitSource) -> Codes:
    """Uniform integers in [0, end), one per end, by rejection."""
    unused = np.array([64 - int(end - 1).bit_length() for end in ends.tolist()], np.uint64)
    result = np.zeros(ends.size, np.int64)
    left = np.flatnonzero(ends > 1)
    while left.size:
        drawn = (source.u64(left.size) >> unused[left]).astype(np.int64)
        inside = drawn < ends[left]
        result[left[inside]] = drawn[inside]
        left = left[~inside]
    return result
