"""Sources of bits that say what a test tells them to."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers import OSBits


class Script(OSBits):
    """Plays back words per width; asking for more than was scripted fails the test."""

    __slots__ = ("_played",)

    def __init__(
        self,
        *,
        u16: Iterable[int] = (),
        u32: Iterable[int] = (),
        u64: Iterable[int] = (),
        bits: Iterable[int] = (),
        single: Iterable[int] = (),
    ) -> None:
        self._played = {16: list(u16), 32: list(u32), 64: list(u64), 1: list(bits), 0: list(single)}

    def _take(self, width: int, n: int) -> list[int]:
        words = self._played[width]
        assert len(words) >= n, f"the script has {len(words)} words of width {width}, not {n}"
        taken, self._played[width] = words[:n], words[n:]
        return taken

    def u16(self, n: int) -> NDArray[np.uint16]:
        return np.array(self._take(16, n), np.uint16)

    def u32(self, n: int) -> NDArray[np.uint32]:
        return np.array(self._take(32, n), np.uint32)

    def u64(self, n: int) -> NDArray[np.uint64]:
        return np.array(self._take(64, n), np.uint64)

    def bits(self, n: int) -> NDArray[np.int8]:
        return np.array(self._take(1, n), np.int8)

    def int64bits(self) -> int:
        return self._take(0, 1)[0]

    def exhausted(self) -> bool:
        """Whether everything that was scripted has been asked for."""
        return not any(self._played.values())
