"""One private choice in each of many groups at once, with the laws of `selection`.

Rows are groups, columns candidates, and rows have nothing to do with each other: each gets its own
bits, so the choices are independent.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.cells import discrete_laplace_wide
from dpframe.samplers.selection import check_scale, flips, noisy_winner
from dpframe.samplers.source import OS, BitSource
from dpframe.samplers.uniform import uniforms_below

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
    check_scale(scale)
    best = scores.max(axis=1, keepdims=True, initial=-(2**63))
    return np.ascontiguousarray(best).view(np.uint64) - np.ascontiguousarray(scores).view(np.uint64)


def _one_of_each(counts: NDArray[np.bool_] | Codes, source: BitSource) -> Codes:
    """The column of one of a row's counted things, uniformly; every row has one at least."""
    sums = np.cumsum(counts, axis=1, dtype=np.int64)
    place = uniforms_below(sums[:, -1], source)
    return np.asarray((sums <= place[:, None]).sum(axis=1), np.int64)
