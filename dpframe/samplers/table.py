"""Exact draws from a finite table by lazy inversion.

The index is the number of boundaries F_j <= U. Sixteen bits of U decide through a guide table
unless a boundary is inside that 16-bit cell. Then 64 bits are compared with floor(2**64 F_j). A
tie (about 2**-55 per draw) reveals 64 bits more and is settled in exact integers of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.source import BitSource

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
