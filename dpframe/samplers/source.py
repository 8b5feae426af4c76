"""The only door to randomness: the operating system's cryptographic generator.

Nothing is buffered or kept between calls. A generator with state in the process would hand the same
"random" bytes to two forked workers or to two clones of a virtual machine; noise that is used twice
cancels out, and the privacy with it. For the same reason there is no seed.
"""

from __future__ import annotations

import os
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray


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
