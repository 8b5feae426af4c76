"""Running totals of periods: the noisy sums that are drawn night after night, and the totals that
follow from existing draws.

Every night t adds rows to a matrix of public whole numbers, which do not look beyond t. A row
times the sums of the periods is an exact whole number, and noise is added to it alone. So there
is no secret to be kept from one night to the next. Two kinds are known:

*The square root* (Fichtenberger, Henzinger and Upadhyay 2023; Henzinger, Upadhyay and Upadhyay
2023). The matrix that adds up all periods so far is a Toeplitz matrix with the generating function
1 / (1 - x), whose root has the coefficients c_k = binom(2 k, k) / 4**k of (1 - x)**(-1/2). Night t
adds one row, with round(2**16 c_k) for the period k nights ago. Rounding moves no coefficient by
more than 2**-17, and totals follow by the exact inverse of what was rounded: it costs a little
accuracy, and no privacy. An individual in one period moves the vector of all nights by a column,
whose norm grows like the root of the logarithm of the number of periods.

*A tree* of sums of neighbouring periods (Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song
2011), each drawn when its last period ends. A period is in one sum of each level, so norms of a
column are those of as many ones as there are levels: what pure epsilon asks for. One level is
daily sums that are added up.

Guarantee
---------
`column_of` of the kernel bounds the L1, L2 squared and L infinity norms of what an individual moves
all nights by whose contributions, of at most 1 each, are in at most `run` different periods, once
in each.

Proof
-----
Let w be the coefficients, which fall and are not negative, and u_j = (w_{t-j}) the column of
period j. The vector is a sum of u_j over a set of at most `run` periods. Entries only grow where
a contribution is below 1, because they are not negative. Two columns i < j have the product
sum_{t >= j} w_{t-i} w_{t-j}: shifting both to earlier periods adds terms, and bringing i nearer
to j makes none smaller. So every norm is largest for the first `run` periods: for L2 by these
products, for L1 because each column is longer, for L infinity since the sum of w over distinct
ages is largest for the least ages. In a tree, a contribution is in one sum of each level.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"

MOST_PERIODS: Final = 10_000
"""What totals follow from is computed in the square of it."""
BITS: Final = 16
"""Binary places of coefficients."""
_UP: Final = 1.0 + 1e-9
"""Above what floats lose in sums of this many terms."""


class RunningSums(ABC):
    """What is drawn of this many periods, as a value."""

    __slots__ = ()
    name: ClassVar[str]
    """In plans."""

    @property
    @abstractmethod
    def periods(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def unit(self) -> int:
        """What the sums are multiplied by, so that they are whole."""

    @abstractmethod
    def rows_of(self, period: int) -> int:
        """How many sums are drawn when a period ends."""

    @abstractmethod
    def sums(
        self,
        exact: Integers,  # What each period has, of shape (anything, periods so far)
        period: int,  # Which one, from 0
    ) -> Integers:
        """The sums that are drawn when a period ends, exactly, modulo 2**64.

        Returns
        -------
        numpy.ndarray
            Of shape (anything, rows).
        """

    @abstractmethod
    def total(self, drawn: Sequence[Integers], period: int) -> Floats:
        """The total up to a period, from what was drawn for all periods up to it or later."""

    @abstractmethod
    def totals(self, drawn: Sequence[Integers]) -> Floats:
        """The totals up to each period, one after another along the last axis; to the last bit what
        `total` is.
        """

    @abstractmethod
    def own(self, drawn: Sequence[Integers], period: int) -> Floats:
        """What a period has, from the same."""

    @abstractmethod
    def total_factors(self, period: int) -> Floats:
        """By what the noises in the total up to a period are multiplied; zeros are left out."""

    @abstractmethod
    def window_factors(self, first: int, last: int) -> Floats:
        """The same for the total up to `last` less the one before `first`."""

    @abstractmethod
    def own_factors(self, period: int) -> Floats:
        """The same for the estimates of single periods."""

    @property
    def drawn_rows(self) -> int:
        """How many sums are drawn in all."""
        return sum(self.rows_of(period) for period in range(self.periods))

    @property
    @abstractmethod
    def adds_up(self) -> bool:
        """Whether totals are sums of the estimates of single periods."""

    @abstractmethod
    def words(self) -> str:
        """What is drawn, in a plan."""


@dataclass(frozen=True, slots=True)
class SquareRoot(RunningSums):
    """The square root factorisation, with whole coefficients."""

    length: int  # How many periods there are
    name: ClassVar[str] = "square root"

    def __post_init__(self) -> None:
        require_length(self.length)

    @property
    def periods(self) -> int:
        return self.length

    @property
    def unit(self) -> int:
        return 1 << BITS

    @property
    def coefficients(self) -> tuple[int, ...]:
        """round(2**16 binom(2 k, k) / 4**k), which falls with k."""
        return coefficients(self.length)

    def rows_of(self, period: int) -> int:
        return 1

    def sums(self, exact: Integers, period: int) -> Integers:
        return sum_of_night(exact, self.coefficients, period)

    def own(self, drawn: Sequence[Integers], period: int) -> Floats:
        return self._estimate(drawn, _inverse(self.length), period)

    def total(self, drawn: Sequence[Integers], period: int) -> Floats:
        return self._estimate(drawn, prefix_inverse(self.length), period)

    def totals(self, drawn: Sequence[Integers]) -> Floats:
        factors, count = prefix_inverse(self.length), len(drawn)
        found = np.zeros((*drawn[0].shape[:-1], count))
        for s, one in enumerate(drawn):
            found[..., s:] += factors[: count - s] * one.astype(np.float64)
        return found

    def _estimate(self, drawn: Sequence[Integers], factors: Floats, period: int) -> Floats:
        """One after another, so that it is the same on every machine, to the last bit."""
        found = np.zeros(drawn[0].shape[:-1])
        for s in range(period + 1):
            found = found + factors[period - s] * drawn[s][..., 0].astype(np.float64)
        return found

    def total_factors(self, period: int) -> Floats:
        return prefix_inverse(self.length)[: period + 1][::-1]

    def window_factors(self, first: int, last: int) -> Floats:
        found = self.total_factors(last).copy()
        if first:
            found[:first] -= self.total_factors(first - 1)
        return found

    def own_factors(self, period: int) -> Floats:
        return _inverse(self.length)[: period + 1][::-1]

    @property
    def adds_up(self) -> bool:
        return True

    def words(self) -> str:
        return (
            f"each of {self.length} nights one sum of all periods so far, of which the k-th last "
            f"counts binom(2k, k) / 4^k, in whole parts of 2^{BITS} (square root factorisation)"
        )


def sum_of_night(exact: Integers, column: Sequence[int], period: int) -> Integers:
    """A period times `column[0]`, the period before it times `column[1]`, and so on, added up
    modulo 2**64; of shape (anything, 1).
    """
    weights = np.array(column[: period + 1][::-1], dtype=np.int64)
    found = (exact[..., : period + 1] * weights).sum(axis=-1, dtype=np.int64)
    return np.asarray(found, dtype=np.int64)[..., None]


def require_length(length: int) -> None:
    """Refuse impossible numbers of periods. Raises `ValueError` for fewer than 1, or more than
    `MOST_PERIODS`.
    """
    if not 1 <= length <= MOST_PERIODS:
        raise ValueError(f"there are between 1 and {MOST_PERIODS} periods")


@lru_cache(maxsize=64)
def coefficients(length: int) -> tuple[int, ...]:
    """round(2**16 binom(2 k, k) / 4**k) for each k below `length`, which falls with k."""
    found, value = [], 1 << (BITS + 64)  # with this many places more that rounding falls as well
    for k in range(length):
        found.append((value + (1 << 63)) >> 64)
        value = value * (2 * k + 1) // (2 * k + 2)
    return tuple(found)


@lru_cache(maxsize=16)
def _inverse(length: int) -> Floats:
    """The coefficients of the inverse of the series, for whole sums: of 1 over the series.

    Each is minus the sum of those before it times the coefficients of the series. They are kept as
    integers of 2**-60 in two halves, whose sums stay below 2**63 up to a length of 2**14: the same
    on every machine.
    """
    falling = np.array(coefficients(length)[::-1], dtype=np.int64)
    high, low = np.zeros(length, dtype=np.int64), np.zeros(length, dtype=np.int64)
    high[0] = 1 << 30
    for k in range(1, length):
        factors = falling[length - 1 - k : length - 1]
        total = (int(factors @ high[:k]) << 30) + int(factors @ low[:k])
        value = -((total + (1 << (BITS - 1))) >> BITS)
        high[k], low[k] = value >> 30, value & ((1 << 30) - 1)
    found = (high * 2.0**-30 + low * 2.0**-60) / (1 << BITS)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=16)
def prefix_inverse(length: int) -> Floats:
    """The factors of the sums in a total; the factor of the last sum comes first."""
    found = np.cumsum(_inverse(length))
    found.setflags(write=False)
    return found


def sum_of_squares(factors: Floats) -> float:
    """The sum of squares of factors, rounded up."""
    return math.fsum((factors * factors).tolist()) * _UP


# Trees of sums of neighbouring periods, each drawn when its last period ends.


@dataclass(frozen=True, slots=True)
class PeriodTree(RunningSums):
    """Sums of branching**h neighbouring periods for each h below `levels`, and of no more."""

    length: int  # How many periods there are
    branching: int  # How many sums of one level make one of the next
    levels: int  # How many levels there are; one is the periods separately
    name: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        require_length(self.length)
        if self.branching < 2 or not 1 <= self.levels <= 64:
            raise ValueError("a tree of periods of this shape does not exist")

    @property
    def periods(self) -> int:
        return self.length

    @property
    def unit(self) -> int:
        return 1

    def rows_of(self, period: int) -> int:
        return len(self._closing(period))

    def _closing(self, period: int) -> list[int]:
        """The widths of the sums that end with a period, the narrowest first."""
        widths = [self.branching**level for level in range(self.levels)]
        return [width for width in widths if (period + 1) % width == 0]

    def sums(self, exact: Integers, period: int) -> Integers:
        end = period + 1
        found = [
            exact[..., end - width : end].sum(axis=-1, dtype=np.int64)
            for width in self._closing(period)
        ]
        return np.stack(found, axis=-1)

    def own(self, drawn: Sequence[Integers], period: int) -> Floats:
        return drawn[period][..., 0].astype(np.float64)

    def total(self, drawn: Sequence[Integers], period: int) -> Floats:
        found = np.zeros(drawn[0].shape[:-1])
        for last, width in self._pieces(period):
            place = self._closing(last).index(width)
            found = found + drawn[last][..., place].astype(np.float64)
        return found

    def totals(self, drawn: Sequence[Integers]) -> Floats:
        return np.stack([self.total(drawn, period) for period in range(len(drawn))], axis=-1)

    def _pieces(self, period: int) -> set[tuple[int, int]]:
        """The sums that the total up to a period is made of: the last period of each, and how wide
        it is.
        """
        found, end = set[tuple[int, int]](), period + 1
        while end > 0:
            width = self._closing(end - 1)[-1]
            found.add((end - 1, width))
            end -= width
        return found

    def pieces(self, period: int) -> int:
        """The number of sums in the total up to a period."""
        return len(self._pieces(period))

    def total_factors(self, period: int) -> Floats:
        return np.ones(self.pieces(period))

    def window_factors(self, first: int, last: int) -> Floats:
        before = self._pieces(first - 1) if first else set()
        return np.ones(len(self._pieces(last) ^ before))

    def own_factors(self, period: int) -> Floats:
        return np.ones(1)

    @property
    def adds_up(self) -> bool:
        return self.levels == 1

    def words(self) -> str:
        if self.levels == 1:
            return "each period by itself, and totals add these up"
        widths = ", ".join(str(self.branching**level) for level in range(self.levels))
        return f"sums of {widths} neighbouring periods, each when its last one ends"


def best_tree(length: int) -> PeriodTree:
    """The tree with the least mean squared error of totals where noise grows with the number of
    levels, as it does for pure epsilon.
    """
    offered = [PeriodTree(length, 2, 1)]
    for levels in range(2, 13):
        top = max(2, round(length ** (1 / levels)) + 2)
        offered += [
            PeriodTree(length, b, levels) for b in range(2, top + 1) if b ** (levels - 1) <= length
        ]
    return min(offered, key=lambda tree: (tree.levels**2 * _digits(tree), tree.levels))


def _digits(tree: PeriodTree) -> int:
    """How many sums all totals are made of."""
    count = 0
    for end in range(1, tree.length + 1):
        left = end
        for _ in range(tree.levels - 1):
            left, digit = divmod(left, tree.branching)
            count += digit
        count += left
    return count


# Sums of the first 1, 2, ... cells of a table by the square root factorisation, at once.
#
# The matrix that adds up the first cells is Toeplitz, and the square of the lower triangular
# Toeplitz matrix W with the coefficients w_k = binom(2 k, k) / 4**k (Henzinger, Upadhyay and
# Upadhyay 2023). W x is measured, and the sums are W times it,
# or rather what follows exactly from the coefficients as they are rounded to whole parts: so
# rounding costs a little accuracy, and no privacy.
#
# Guarantee
# ---------
# `of` is exact modulo 2**64. A row in one cell moves it by a column u_j. So m
# rows of one individual move it by at most m times the first column. A row that leaves a cell for
# another, or for none, or comes from none, moves it by at most what `_change_norms` of the kernel
# finds.
#
# Proof
# -----
# Column j has the entries w_0, w_1, ... from place j on. Each norm is at most the norm of the first
# column. The norm of a sum of m columns is at most m times as large, and m rows in the first cell
# attain it.
# In the difference of columns i < j = i + d the entry at place i + t is w_t - w_{t-d}, with w_t = 0
# for t < 0, for all t below n - i: squares and absolute values are summed over the most t for i =
# 0. There are n - 1 values of d, and all are looked at. The coefficients fall and are not negative,
# so the sum of |w_t - w_{t-d}| adds up w_t for t < d, and w_{t-d} - w_t for the others. No
# entry exceeds w_0.


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
        first = _whole(self._rebuild(noisy))
        rest = noisy - self.of(np.diff(first, axis=1, prepend=np.int64(0)))
        return first + _whole(self._rebuild(rest))

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

    def _rebuild(self, noisy: Integers) -> Floats:
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
