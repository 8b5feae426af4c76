"""Coins with exact probabilities that are multiples of 2**-128."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.source import OS, BitSource

ONE = 1 << 128


def coins(
    probabilities: list[int], which: NDArray[np.int64], source: BitSource = OS
) -> NDArray[np.bool_]:
    """Independent coins: coin i is True with probability ``probabilities[which[i]] / 2**128``.

    A uniform integer of 128 bits is below the numerator; its upper half is compared first.

    Parameters
    ----------
    probabilities
        Numerators from 0 to 2**128.
    which
        A place in `probabilities` per coin.
    source
        For tests only.
    """
    word = (1 << 64) - 1
    high = np.array([min(p, ONE - 1) >> 64 for p in probabilities], np.uint64)[which]
    low = np.array([min(p, ONE - 1) & word for p in probabilities], np.uint64)[which]
    sure = np.array([p >= ONE for p in probabilities], np.bool_)[which]
    first, second = source.u64(which.size), source.u64(which.size)
    below = (first < high) | ((first == high) & (second < low))
    return np.asarray(below | sure)
