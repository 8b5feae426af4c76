"""Uniform integers below an end, by rejection: one, or one for each of many ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.source import OS, BitSource

__all__ = ["uniform_below", "uniforms_below"]


def uniform_below(n: int, source: BitSource = OS) -> int:
    """A uniform integer in [0, n), 0 < n < 2**64."""
    unused = 64 - (n - 1).bit_length()
    while True:
        value = source.int64bits() >> unused
        if value < n:
            return value


def uniforms_below(ends: NDArray[np.int64], source: BitSource = OS) -> NDArray[np.int64]:
    """Independent uniform integers in [0, end), one per end above 0."""
    used = (ends - 1).astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):  # ones from the highest one down
        used |= used >> np.uint64(shift)
    result = np.zeros(ends.size, np.int64)
    left = np.flatnonzero(ends > 1)
    while left.size:
        drawn = (source.u64(left.size) & used[left]).astype(np.int64)
        inside = drawn < ends[left]
        result[left[inside]] = drawn[inside]
        left = left[~inside]
    return result
