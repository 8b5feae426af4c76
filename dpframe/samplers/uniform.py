"""Uniform integers below an end, by rejection: one, or one for each of many ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.source import OS, BitSource


def uniform_below(n: int, source: BitSource = OS) -> int:
    """A uniform integer in [0, n), 0 < n < 2**64."""
    unused = 64 - (n - 1).bit_length()
    while True:
        value = source.int64bits() >> unused
        if value < n:
            return value


def uniform_integer(end: int, source: BitSource = OS) -> int:
    """A uniform integer in [0, end), however large."""
    used = (end - 1).bit_length()
    words = -(-used // 64)
    while True:
        value = 0
        for _ in range(words):
            value = value << 64 | source.int64bits()
        value >>= 64 * words - used
        if value < end:
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


_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def scaled_uniforms(ends: NDArray[np.int64], source: BitSource = OS) -> NDArray[np.int64]:
    """Independent uniform integers in [0, end), one per end above 0: floor(end U) for U of 64 bits.

    From the words that give a value, those whose product with the end is below 2**64 mod end,
    modulo 2**64, are rejected; as many are left for each value (Lemire 2019). That happens with
    probability end / 2**64 at most, so smaller ends all take the same steps.
    """
    wide = ends.astype(np.uint64)
    result, low = _product(source.u64(wide.size), wide)
    close = np.flatnonzero(low < wide)
    while close.size:
        end = wide[close]
        again = close[low[close] < (np.uint64(0) - end) % end]
        if not again.size:
            break
        result[again], low[again] = _product(source.u64(again.size), wide[again])
        close = again[low[again] < wide[again]]
    return result.view(np.int64)


def _product(
    words: NDArray[np.uint64], ends: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The upper and the lower 64 bits of products, from those of their halves."""
    a, b, c, d = words >> _HALF, words & _LOW, ends >> _HALF, ends & _LOW
    first, second = b * c, a * d
    carried = (b * d >> _HALF) + (first & _LOW) + (second & _LOW)
    high = a * c + (first >> _HALF) + (second >> _HALF) + (carried >> _HALF)
    return high, words * ends
