"""Sums of the first 1, 2, ... cells of a table by the square root factorisation, at once.

The matrix that adds up the first cells is Toeplitz, and the square of the lower triangular
Toeplitz matrix W with the coefficients w_k = binom(2 k, k) / 4**k (Henzinger, Upadhyay and
Upadhyay 2023; see `dpframe.workloads.running`). W x is measured, and the sums are W times it, or
rather what follows exactly from the coefficients as they are rounded to whole parts: so rounding
costs a little accuracy, and no privacy.

Guarantee
---------
`of` is exact modulo 2**64. A row in one cell moves it by a column u_j. So m rows of one
individual move it by at most m times the first column. A row that leaves a cell for another, or for
none, or comes from none, moves it by at most what `_change_norms` of the kernel finds.

Proof
-----
Column j has the entries w_0, w_1, ... from place j on: each norm is at most that of the first
column, and that of a sum of m columns at most m times it, attained by m rows in the first cell.
In the difference of columns i < j = i + d the entry at place i + t is w_t - w_{t-d}, with w_t = 0
for t < 0, for all t below n - i: squares and absolute values are summed over the most t for i =
0. There are n - 1 values of d, and all are looked at. The coefficients fall and are not negative,
so the sum of |w_t - w_{t-d}| is that of w_t for t < d and of w_{t-d} - w_t for the others. No
entry exceeds w_0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.running import BITS, coefficients, prefix_inverse

Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"

MOST_ROOT_CELLS: Final = 1 << 14
"""The work is in the square of it, and sums of squares fit in 64 bits."""
_BLOCK: Final = 128
_AT_ONCE: Final = 1 << 20
"""Numbers that are transformed at the same time, which bounds the memory."""
_LARGEST: Final = float(2**62)


@dataclass(frozen=True, slots=True)
class RootPrefixes:
    """The square root of the sums of the first 1, 2, ... of this many cells, in whole parts."""

    cells: int  # How many there are

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= MOST_ROOT_CELLS:
            raise ValueError(f"there are between 1 and {MOST_ROOT_CELLS} cells")

    @property
    def unit(self) -> int:
        """What the sums are multiplied by, so that they are whole."""
        return 1 << BITS

    def of(self, table: Integers) -> Integers:
        """The sums of each group, modulo 2**64, from its cells; both of shape (groups, cells)."""
        return toeplitz_sums(table, coefficients(self.cells))

    def prefixes(self, noisy: Integers) -> Integers:
        """The sums of the first 1, 2, ... cells of each group, from noisy sums; nearest integers.

        Floats lose digits of large numbers. So what the first estimate leaves unexplained, which is
        an exact small integer, is estimated as well and added.
        """
        first = _whole(self._rebuilt(noisy))
        rest = noisy - self.of(np.diff(first, axis=1, prepend=np.int64(0)))
        return first + _whole(self._rebuilt(rest))

    def factors_of(self, start: int, stop: int) -> Floats:
        """By what the noises in the sum of the cells from `start` to `stop` - 1 are multiplied."""
        inverse = prefix_inverse(self.cells)
        factors = inverse[:stop][::-1].copy()
        if start:
            factors[:start] -= inverse[:start][::-1]
        return factors

    def power_sums(self, power: int) -> Floats:
        """The sum of that power of the factors, for the sums of the first 1, 2, ... cells."""
        return np.cumsum(prefix_inverse(self.cells) ** power)

    def _rebuilt(self, noisy: Integers) -> Floats:
        """The noisy sums times the factors: post-processing, by Fourier transforms."""
        length = 1 << (2 * self.cells - 1).bit_length()
        factors = np.fft.rfft(prefix_inverse(self.cells), length)
        sums = np.empty(noisy.shape)
        step = max(1, _AT_ONCE // length)
        for at in range(0, noisy.shape[0], step):
            lines = np.fft.rfft(noisy[at : at + step].astype(np.float64), length, axis=1)
            sums[at : at + step] = np.fft.irfft(lines * factors, length, axis=1)[:, : self.cells]
        return sums


def _whole(numbers: Floats) -> Integers:
    return np.rint(np.clip(numbers, -_LARGEST, _LARGEST)).astype(np.int64)


def _weights(cells: int) -> Integers:
    return np.array(coefficients(cells), dtype=np.int64)


def toeplitz_sums(table: Integers, column: Sequence[int]) -> Integers:
    """For each cell of a line the cell itself times `column[0]`, the cell before it times
    `column[1]`, and so on, added up modulo 2**64; of the same shape.
    """
    lines, cells = table.shape
    blocks = -(-cells // _BLOCK)
    padded = np.zeros((lines, blocks * _BLOCK), dtype=np.int64)
    padded[:, :cells] = table
    pieces = padded.reshape(-1, blocks, _BLOCK)
    sums = np.zeros_like(pieces)
    for apart, factors in enumerate(_toeplitz(column, blocks)):
        sums[:, apart:] += pieces[:, : blocks - apart] @ factors
    return np.ascontiguousarray(sums.reshape(lines, -1)[:, :cells])


def _toeplitz(column: Sequence[int], blocks: int) -> Iterator[Integers]:
    """Blocks of the transposed matrix, by how many blocks lie between cells and sums."""
    ahead = np.arange(_BLOCK)[:, None] - np.arange(_BLOCK)[None, :]
    padded = np.zeros((blocks + 1) * _BLOCK, dtype=np.int64)
    padded[: len(column)] = column
    for apart in range(blocks):
        place = ahead + apart * _BLOCK
        # a transposed view, since products of integers run along columns quickly
        yield np.where(place >= 0, padded[np.maximum(place, 0)], 0).T
