"""Reproducible random bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.source import OSBits


class Seeded(OSBits):
    """Reproducible bits, so that a test that passes once passes always."""

    __slots__ = ("_rng",)

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def u16(self, n: int) -> NDArray[np.uint16]:
        return np.frombuffer(self._rng.bytes(2 * n), np.uint16)

    def u32(self, n: int) -> NDArray[np.uint32]:
        return np.frombuffer(self._rng.bytes(4 * n), np.uint32)

    def u64(self, n: int) -> NDArray[np.uint64]:
        return np.frombuffer(self._rng.bytes(8 * n), np.uint64)

    def bits(self, n: int) -> NDArray[np.int8]:
        return self._rng.integers(0, 2, n, np.int8)

    def int64bits(self) -> int:
        return int.from_bytes(self._rng.bytes(8), "little")
