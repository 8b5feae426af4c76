"""Discrete Laplace, discrete Gaussian and staircase noise.

Discrete Laplace and discrete Gaussian noise: cells and lazily revealed bits.

Both laws are P(x) ~ exp(-phi(|x|)) on the integers with phi(y) = linear y + quadratic y**2, convex
and increasing. A magnitude is m = 2**k h + l:

1. the cell h comes from a `LazyTable` whose weights are the values at the cells' left edges; its
   last index stands for the tail m >= B under the tangent of phi at B;
2. the offset l is k uniform bits, accepted with probability exp(-gamma),
   gamma = phi(2**k h + l) - phi(2**k h);
3. a sign; (-, 0) is rejected. With k = 0 the table counts 0 once and the rest twice, so nothing is.

Exact, given ideal bits: cell weight times 2**-k times exp(-gamma) is proportional to exp(-phi(m)).
A tail draw B + g has e**(-phi(B)) / (1 - e**-s) times (1 - e**-s) e**(-s g) times its acceptance
exp(-(phi(B + g) - phi(B) - s g)): the same. The boundaries are irrational (Lindemann-Weierstrass),
so ties end. Floats only decide acceptances that are clear by far more than their proven error.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.exponential import (
    FILTER_MARGIN,
    bernoulli_exp,
    bracket_exp,
    geometric_exp,
    taylor_exp,
)
from dpframe.samplers.source import OS, BitSource, LazyTable, uniforms_below

MIN_SCALE: Final = Fraction(1, 1 << 10)
MAX_SCALE: Final = Fraction(1 << 56)
MAX_BITS: Final = 4096
"""Longest numerator or denominator that is accepted: longer ones would only cost time."""

_BLOCK: Final = 1 << 16
_WIDE: Final = 1 << 62
_CELLS: Final = 512
_LAPLACE_STEPS: Final = 16
_GAUSSIAN_STEPS: Final = 32
_FAR: Final = 44
"""Cells reach to exp(-44) unless `_CELLS` of them end sooner."""


def discrete_laplace(
    scale: Fraction,  # Between 2**-10 and 2**56
    n: int,  # Number of draws
    source: BitSource = OS,  # For tests only
) -> NDArray[np.int64]:
    """`n` independent draws with P(x) proportional to exp(-|x| / scale), modulo 2**64. Raises
    `ValueError` when the scale is out of range or its numerator or denominator is too long.
    """
    _check(scale, MIN_SCALE, MAX_SCALE)
    return _laplace(Fraction(scale)).draw(n, source)


def discrete_laplace_wide(
    scale: Fraction, n: int, source: BitSource = OS
) -> tuple[NDArray[np.int64], dict[int, int]]:
    """As `discrete_laplace`, with draws of 2**62 or more in size next to it, as they are."""
    _check(scale, MIN_SCALE, MAX_SCALE)
    return _laplace(Fraction(scale)).draw_wide(n, source)


def discrete_gaussian(
    variance: Fraction,  # The parameter sigma**2, between 2**-20 and 2**112
    n: int,  # Number of draws
    source: BitSource = OS,  # For tests only
) -> NDArray[np.int64]:
    """`n` independent draws with P(x) proportional to exp(-x**2 / (2 variance)), modulo 2**64.
    Raises `ValueError` when the variance is out of range or its numerator or denominator is too
    long.
    """
    _check(variance, MIN_SCALE**2, MAX_SCALE**2)
    return _gaussian(Fraction(variance)).draw(n, source)


def _check(value: Fraction, low: Fraction, high: Fraction) -> None:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ValueError(f"more than {MAX_BITS} bits in a noise parameter")
    if not low <= value <= high:
        raise ValueError("a noise parameter is out of the range of the sampler")


@lru_cache(maxsize=64)
def _laplace(scale: Fraction) -> Cells:
    shift = _halvings(scale / _LAPLACE_STEPS)
    return Cells(1 / scale, Fraction(0), shift, min(_CELLS, int(_FAR * scale) + 2))


@lru_cache(maxsize=64)
def _gaussian(variance: Fraction) -> Cells:
    shift = _halvings(variance / _GAUSSIAN_STEPS**2) // 2
    reach = int((2 * _FAR * float(variance / 4**shift)) ** 0.5) + 2
    return Cells(Fraction(0), 1 / (2 * variance), shift, min(_CELLS, reach))


def _halvings(ratio: Fraction) -> int:
    """floor(log2(ratio)), but not below 0."""
    return max(0, (ratio.numerator // ratio.denominator).bit_length() - 1)


class Cells:
    """One law, ready to draw from; see the module's description.

    Parameters
    ----------
    linear, quadratic
        phi(y) = linear y + quadratic y**2; not both 0.
    shift
        k: cells are 2**k integers wide. gamma must stay below 0.36.
    cells
        Number of cells before the tail.
    """

    __slots__ = (
        "_float_linear",
        "_float_quadratic",
        "_squeeze",
        "cells",
        "linear",
        "quadratic",
        "shift",
        "table",
    )

    def __init__(self, linear: Fraction, quadratic: Fraction, shift: int, cells: int) -> None:
        self.linear, self.quadratic, self.shift, self.cells = linear, quadratic, shift, cells
        self._float_linear = float(linear * 2**shift)
        self._float_quadratic = float(quadratic * 4**shift)
        self.table = LazyTable(self._boundaries)
        self._squeeze = self._squeezes() if shift else np.empty(0, np.uint16)

    def draw(self, n: int, source: BitSource) -> NDArray[np.int64]:
        """`n` independent draws modulo 2**64; accepted lanes that are left over are dropped
        unseen.
        """
        return self.draw_wide(n, source)[0]

    def draw_wide(self, n: int, source: BitSource) -> tuple[NDArray[np.int64], dict[int, int]]:
        """`n` independent draws modulo 2**64, and by place the exact value of each draw of 2**62 or
        more in size. Most callers only need the value modulo 2**64.
        """
        out = np.empty(n, np.int64)
        wide: dict[int, int] = {}
        filled = 0
        while filled < n:
            want = n - filled
            lanes = want + want // 16 + 4 if self.shift else want
            found: dict[int, int] = {}
            got = self._block(min(_BLOCK, lanes), source, found)[:want]
            wide.update({filled + i: x for i, x in found.items() if i < want})
            out[filled : filled + got.size] = got
            filled += got.size
        return out, wide

    def gamma(self, cell: int, offset: int) -> Fraction:
        """phi(2**k cell + offset) - phi(2**k cell), and 0 for the tail's index."""
        if cell == self.cells:
            return Fraction(0)
        return offset * (self.linear + self.quadratic * (2 * (cell << self.shift) + offset))

    @property
    def edge(self) -> int:
        """B: where the tail begins."""
        return self.cells << self.shift

    @property
    def tail_rate(self) -> Fraction:
        """The slope of phi at the edge."""
        return self.linear + 2 * self.quadratic * self.edge

    def _boundaries(self, precision: int) -> list[tuple[int, int]]:
        """Brackets of 2**precision times the cumulative probabilities of the cells.

        Weights follow w[h+1] = w[h] q[h], q[h+1] = q[h] d, all rounded outwards.
        """
        width = precision + 2 * self.shift + 64
        one = 1 << width
        first = self.linear * 2**self.shift + self.quadratic * 4**self.shift
        q_lo, q_hi = bracket_exp(first, width)
        d_lo, d_hi = bracket_exp(2 * self.quadratic * 4**self.shift, width)
        w_lo = w_hi = one
        total_lo = total_hi = 0
        sums: list[tuple[int, int]] = []
        for cell in range(self.cells):
            times = self._multiplicity(cell)
            total_lo += times * w_lo
            total_hi += times * w_hi
            sums.append((total_lo, total_hi))
            w_lo, w_hi = w_lo * q_lo >> width, (w_hi * q_hi >> width) + 1
            q_lo, q_hi = q_lo * d_lo >> width, (q_hi * d_hi >> width) + 1
        s_lo, s_hi = bracket_exp(self.tail_rate, width)
        times = self._multiplicity(self.cells)
        total_lo += times * (w_lo << width) // (one - s_lo << self.shift)
        total_hi += times * (w_hi << width) // (one - s_hi << self.shift) + 1
        return [
            ((lo << precision) // total_hi, (hi << precision) // total_lo + 1) for lo, hi in sums
        ]

    def _multiplicity(self, cell: int) -> int:
        """With k = 0 a positive magnitude stands for two integers, 0 for one."""
        return 2 if self.shift == 0 and cell else 1

    def _squeezes(self) -> NDArray[np.uint16]:
        """Per cell, a whole number of 2**-16 below its smallest acceptance (1 is ample slack)."""
        cell = np.arange(self.cells + 1, dtype=np.int64)
        last = np.full_like(cell, (1 << self.shift) - 1)
        smallest = taylor_exp(self._gamma_float(cell, last), 16)
        return (np.floor(smallest * 65536.0) - 1.0).astype(np.uint16)

    def _block(self, n: int, source: BitSource, wide: dict[int, int]) -> NDArray[np.int64]:
        """Up to `n` draws; `wide` is given those that are far out."""
        cell = self.table.draw(n, source)
        keep = np.ones(n, np.bool_)
        if self.shift:
            offset, negative = self._offsets(n, source)
            self._accept(cell, offset, keep, source)
            magnitude = (cell << self.shift) | offset
        else:
            negative = source.bits(n).astype(np.int64)
            magnitude = cell.copy()
        far: dict[int, int] = {}
        for lane in np.flatnonzero(cell == self.cells).tolist():
            drawn = self._tail(source)
            keep[lane] = drawn is not None
            magnitude[lane] = 0 if drawn is None else wrap(drawn)
            if drawn is not None and drawn >= _WIDE:
                far[lane] = -drawn if negative[lane] else drawn
        if self.shift:
            zero = np.flatnonzero(magnitude == 0)
            keep[zero[negative[zero] != 0]] = False
        for lane, drawn in far.items():
            wide[int(np.count_nonzero(keep[:lane]))] = drawn
        np.negative(negative, out=negative)  # 0 or -1: two's complement by xor and subtraction
        magnitude ^= negative
        magnitude -= negative
        return magnitude if keep.all() else magnitude[keep]

    def _offsets(self, n: int, source: BitSource) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """k uniform bits and a sign bit, from one word each."""
        if self.shift <= 15:
            narrow = source.u16(n)
            return self._split(narrow.astype(np.int64), 15)
        if self.shift <= 31:
            middle = source.u32(n)
            return self._split(middle.astype(np.int64), 31)
        wide = source.u64(n)
        return self._split((wide >> np.uint64(1)).astype(np.int64), 62)

    def _split(
        self, word: NDArray[np.int64], sign: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return word & ((1 << self.shift) - 1), (word >> sign) & 1

    def _accept(
        self,
        cell: NDArray[np.int64],
        offset: NDArray[np.int64],
        keep: NDArray[np.bool_],
        source: BitSource,
    ) -> None:
        """Clear `keep` where U >= exp(-gamma); the first 16 bits of U settle most lanes."""
        first = source.u16(cell.size)
        lanes = np.flatnonzero(first >= self._squeeze.take(cell))
        if not lanes.size:
            return
        cell, offset = cell[lanes], offset[lanes]
        known = first[lanes].astype(np.uint64) << np.uint64(48)
        words = known | source.u64(lanes.size) >> np.uint64(16)
        uniform = words * 2.0**-64
        accept = taylor_exp(self._gamma_float(cell, offset), 16)
        rejected = uniform > accept
        for i in np.flatnonzero(np.abs(uniform - accept) <= FILTER_MARGIN):
            gamma = self.gamma(int(cell[i]), int(offset[i]))
            rejected[i] = not bernoulli_exp(gamma, source, int(words[i]), 64)
        keep[lanes[rejected]] = False

    def _gamma_float(
        self, cell: NDArray[np.int64], offset: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """gamma up to seven roundings of nonnegative terms: within 2**-51 of the exact value."""
        step = offset * 2.0**-self.shift
        gamma = step * (self._float_linear + self._float_quadratic * (2.0 * cell + step))
        gamma[cell == self.cells] = 0.0
        return gamma

    def _tail(self, source: BitSource) -> int | None:
        """One magnitude from the edge on, or None when it is rejected."""
        beyond = geometric_exp(self.tail_rate, source)
        excess = self.quadratic * beyond**2
        if excess and not bernoulli_exp(excess, source):
            return None
        return self.edge + beyond


def wrap(value: int) -> int:
    """Two's complement modulo 2**64: post-processing, where clamping noise alone would not be."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


# Staircase noise: levels by lazy inversion, places within them uniformly.
#
# The law is P(x) ~ exp(-rate level(|x|)) on the integers. Level 0 has the `inner` magnitudes 0,
# ..., inner - 1, and each level after it the next `width` magnitudes. So level 0 weighs 2 inner - 1
# and level k weighs 2 width exp(-rate k). The last index of the table stands for all levels from
# there on, among which a geometric number chooses.
#
# Exact, given ideal bits: the boundaries of the table are irrational (Lindemann-Weierstrass), so
# they are decided after finitely many bits, and uniform integers are exact.


def staircase(
    rate: Fraction,  # Between 1/8 and 64
    width: int,  # The width of each level but the first, from 1 to 2**56
    inner: int,  # How many magnitudes the first level has, from 1 to `width`
    n: int,  # Number of draws
    source: BitSource = OS,  # For tests only
) -> NDArray[np.int64]:
    """`n` independent draws with P(x) proportional to exp(-rate level(|x|)), modulo 2**64. Raises
    `ValueError` when a parameter is out of range.
    """
    if not (Fraction(1, 8) <= rate <= 64 and 1 <= inner <= width <= 1 << 56):
        raise ValueError("a noise parameter is out of the range of the sampler")
    table, tail = _levels(rate, width, inner)
    level = table.draw(n, source)
    center = level == 0
    place = uniforms_below(np.where(center, 2 * inner - 1, width), source)
    # products and sums of large levels and widths wrap modulo 2**64, as the noise does
    magnitude = np.where(center, place - (inner - 1), inner + (level - 1) * width + place)
    for i in np.flatnonzero(level == tail).tolist():
        above = tail + geometric_exp(rate, source)
        magnitude[i] = wrap(inner + (above - 1) * width + int(place[i]))
    negative = -source.bits(n).astype(np.int64)
    negative[center] = 0
    return (magnitude ^ negative) - negative


@lru_cache(maxsize=64)
def _levels(rate: Fraction, width: int, inner: int) -> tuple[LazyTable, int]:
    """The table of levels, and its last index."""
    tail = int(_FAR / rate) + 2

    def boundaries(precision: int) -> list[tuple[int, int]]:
        """Brackets of 2**precision times the cumulative probabilities of levels below the last."""
        digits = precision + 128
        one = 1 << digits
        lo, hi = bracket_exp(rate, digits)
        power_lo = power_hi = one
        sum_lo = sum_hi = (2 * inner - 1) << digits
        sums = [(sum_lo, sum_hi)]
        for _ in range(1, tail):
            power_lo, power_hi = power_lo * lo >> digits, (power_hi * hi >> digits) + 1
            sum_lo, sum_hi = sum_lo + 2 * width * power_lo, sum_hi + 2 * width * power_hi
            sums.append((sum_lo, sum_hi))
        # exp(-rate tail) / (1 - exp(-rate)) is what all levels from the last index on weigh
        power_lo, power_hi = power_lo * lo >> digits, (power_hi * hi >> digits) + 1
        total_lo = sum_lo + 2 * width * ((power_lo << digits) // (one - lo))
        total_hi = sum_hi + 2 * width * ((power_hi << digits) // (one - hi) + 1)
        return [
            ((lo << precision) // total_hi, (hi << precision) // total_lo + 1) for lo, hi in sums
        ]

    return LazyTable(boundaries), tail
