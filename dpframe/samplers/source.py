"""The only door to randomness, and uniform integers, coins and tables drawn from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

# The only door to randomness: the operating system's cryptographic generator.
#
# Nothing is buffered or kept between calls. A generator with state in the process would hand the
# same "random" bytes to two forked workers or to two clones of a virtual machine; noise that is
# used twice cancels out, and the privacy with it. For the same reason there is no seed.


class BitSource(Protocol):
    """Independent, uniform bits in the shapes that the samplers ask for.

    Tests pass scripted sources; released code always draws from `OS`.
    """

    def u16(self, n: int) -> NDArray[np.uint16]:
        """`n` words of 16 bits."""
        ...

    def u32(self, n: int) -> NDArray[np.uint32]:
        """`n` words of 32 bits."""
        ...

    def u64(self, n: int) -> NDArray[np.uint64]:
        """`n` words of 64 bits."""
        ...

    def bits(self, n: int) -> NDArray[np.int8]:
        """`n` single bits, each 0 or 1."""
        ...

    def int64bits(self) -> int:
        """64 bits as a Python integer in [0, 2**64)."""
        ...


class OSBits:
    """Bits from `os.urandom`, without any state of our own: safe under fork, threads and clones."""

    __slots__ = ()

    def u16(self, n: int) -> NDArray[np.uint16]:
        """`n` words of 16 bits."""
        return np.frombuffer(os.urandom(2 * n), np.uint16)

    def u32(self, n: int) -> NDArray[np.uint32]:
        """`n` words of 32 bits."""
        return np.frombuffer(os.urandom(4 * n), np.uint32)

    def u64(self, n: int) -> NDArray[np.uint64]:
        """`n` words of 64 bits."""
        return np.frombuffer(os.urandom(8 * n), np.uint64)

    def bits(self, n: int) -> NDArray[np.int8]:
        """`n` single bits, each 0 or 1."""
        packed = np.frombuffer(os.urandom((n + 7) // 8), np.uint8)
        return np.unpackbits(packed, count=n).view(np.int8)

    def int64bits(self) -> int:
        """64 bits as a Python integer in [0, 2**64)."""
        return int.from_bytes(os.urandom(8), "little")


OS: Final[BitSource] = OSBits()


def uniform_words(n: int, source: BitSource) -> NDArray[np.float64]:
    """`n` uniform multiples of 2**-53 in [0, 1), for post-processing only."""
    return np.asarray((source.u64(n) >> np.uint64(11)) * 2.0**-53, np.float64)


# Uniform integers below an end, by rejection: one, or one for each of many ends.


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


# Coins with exact probabilities that are multiples of 2**-128.

ONE = 1 << 128


def coins(
    probabilities: list[int],  # Numerators from 0 to 2**128
    which: NDArray[np.int64],  # A place in `probabilities` per coin
    source: BitSource = OS,  # For tests only
) -> NDArray[np.bool_]:
    """Independent coins: coin i is True with probability ``probabilities[which[i]] / 2**128``.

    A uniform integer of 128 bits is below the numerator; its upper half is compared first.
    """
    word = (1 << 64) - 1
    high = np.array([min(p, ONE - 1) >> 64 for p in probabilities], np.uint64)[which]
    low = np.array([min(p, ONE - 1) & word for p in probabilities], np.uint64)[which]
    sure = np.array([p >= ONE for p in probabilities], np.bool_)[which]
    first, second = source.u64(which.size), source.u64(which.size)
    below = (first < high) | ((first == high) & (second < low))
    return np.asarray(below | sure)


# Exact draws from a finite table by lazy inversion.
#
# The index is the number of boundaries F_j <= U. Sixteen bits of U decide through a guide table
# unless a boundary is inside that 16-bit cell. Then 64 bits are compared with floor(2**64 F_j). A
# tie (about 2**-55 per draw) reveals 64 bits more and is settled in exact integers of any length.

_SMALL: Final = 2048
"""Below this many draws the guide table does not pay: compare 64 bits at once."""

_UNDECIDED: Final = 0xFFFF

Brackets = Sequence[tuple[int, int]]


class LazyTable:
    """Boundaries 0 < F_1 <= F_2 <= ... < 1, known to any precision.

    Parameters
    ----------
    bounds
        Given a precision P, brackets ``lo <= 2**P F_j <= hi`` that get relatively tighter with P.
        The F_j must be irrational (then floors are certified after finitely many steps).
    """

    __slots__ = ("_bounds", "_floors", "_guide", "_words")

    def __init__(self, bounds: Callable[[int], Brackets]) -> None:
        self._bounds = bounds
        self._floors: dict[int, list[int]] = {}
        self._words = np.array(self.floors(64), np.uint64)
        self._guide: NDArray[np.uint16] | None = None

    def floors(self, precision: int) -> list[int]:
        """floor(2**precision F_j) for every j, exactly."""
        known = self._floors.get(precision)
        if known is not None:
            return known
        top = (1 << precision) - 1  # F_j < 1, so no floor is above this; the bracket may not know
        extra = 32
        while True:
            brackets = self._bounds(precision + extra)
            lows = [lo >> extra for lo, _ in brackets]
            highs = [min(hi >> extra, top) for _, hi in brackets]
            if lows == highs:
                self._floors[precision] = lows
                return lows
            extra *= 2

    def draw(self, n: int, source: BitSource) -> NDArray[np.int64]:
        """`n` independent indices between 0 and the number of boundaries."""
        if n < _SMALL:
            return self._by_words(source.u64(n), source)
        first = source.u16(n)
        index = self._guide_table().take(first)
        undecided = np.flatnonzero(index == _UNDECIDED)
        result = index.astype(np.int64)
        if undecided.size:  # the 16 bits that are known stay the top of the 64
            known = first[undecided].astype(np.uint64) << np.uint64(48)
            words = known | source.u64(undecided.size) >> np.uint64(16)
            result[undecided] = self._by_words(words, source)
        return result

    def _guide_table(self) -> NDArray[np.uint16]:
        if self._guide is None:
            cells = (self._words >> np.uint64(48)).astype(np.int64)
            inside = np.bincount(cells, minlength=1 << 16)
            guide = (np.cumsum(inside) - inside).astype(np.uint16)
            guide[inside > 0] = _UNDECIDED
            self._guide = guide
        return self._guide

    def _by_words(self, words: NDArray[np.uint64], source: BitSource) -> NDArray[np.int64]:
        index = np.searchsorted(self._words, words, "left").astype(np.int64, copy=False)
        inside = np.minimum(index, self._words.size - 1)
        for lane in np.flatnonzero(self._words[inside] == words):
            index[lane] = self._exactly(int(words[lane]), source)
        return index

    def _exactly(self, prefix: int, source: BitSource) -> int:
        bits = 64
        while True:
            floors = self.floors(bits)
            if prefix not in floors:
                return sum(value < prefix for value in floors)
            prefix, bits = prefix << 64 | source.int64bits(), bits + 64
