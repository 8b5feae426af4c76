"""The discrete box law and the discrete hull law: vectors of integers.

The discrete box law: vectors of integers that are likely by the smallest box that holds them.

With widths w_j and a fineness m, a power of two, box(R) is the set of all z with |z_j| <= f_j(R) =
floor(R w_j / m), and N(z) the least integer R >= 0 whose box holds z. The law is P(z) ~ exp(-rate
N(z)). A draw is

1. a radius R with P(R) ~ v(R) = exp(-rate R) V(R), where V(R) = prod(2 f_j(R) + 1) counts box(R);
2. each coordinate uniform on the integers from -f_j(R) to f_j(R).

Exact, given ideal bits: z comes from every R >= N(z) with 1 / V(R), and the sum of exp(-rate R)
over these is proportional to exp(-rate N(z)).

Radii are drawn in cells of 2**k: R = 2**k h + l. With E_h = 2**k (h + 1) - 1, the end of the cell,

1. the cell h comes from a `LazyTable` whose weights are exp(-rate 2**k h) V(E_h); its last index
   stands for all cells from there on, and is drawn from the next table;
2. the offset l is k uniform bits, accepted with probability exp(-rate l) V(R) / V(E_h).

The product is proportional to v(R). The boundaries are irrational: as functions of q = exp(-rate)
they are rational ones that are not constant (V is a polynomial in R for each residue of R modulo
m), and q is transcendental (Lindemann-Weierstrass), so ties end. Floats only decide acceptances
that are clear by far more than their proven error.

Three things vary in time: how often radii are rejected, which goes by cells and is about one in
twenty; beyond exp(-44), a further table. Coordinates of 2**56 or more are sometimes drawn again.
Smaller ones take as long as any: a word of 64 bits each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.cells import MAX_BITS, wrap
from dpframe.samplers.exponential import bracket_exp, taylor_exp
from dpframe.samplers.source import OS, BitSource, LazyTable, scaled_uniforms, uniform_integer

MAX_BOX_DIMENSIONS: Final = 64
MAX_BOX_WIDTH: Final = 1 << 32
MAX_BOX_EPSILON: Final = Fraction(1 << 14)
MAX_BOX_REACH: Final = Fraction(1 << 54)
"""The bound of a width over epsilon, and of the fineness over epsilon: radii and coordinates up
to 200 times that fit in 62 bits."""
MAX_FINENESS: Final = 1 << 30

_BLOCK: Final = 1 << 16
_STEPS: Final = 16
"""Cells into which exp(-rate R) falls by a factor of e, at least, where radii are that many."""
_FAR: Final = 44
"""A table reaches to exp(-44)."""
_GUARD: Final = 64
_MARGIN: Final = 2.0**-40
"""Float comparisons closer than this are repeated in exact integers; see `Radii._acceptance`."""

Codes = NDArray[np.int64]


def discrete_box(
    epsilon: Fraction,  # Above 0 and at most 2**14
    widths: tuple[int, ...],  # Up to 64 of them, from 1 to 2**32 and at most 2**54 epsilon
    fineness: int,  # A power of two up to 2**30, and at most 2**54 epsilon
    n: int,  # Number of vectors
    source: BitSource = OS,  # For tests only
) -> Codes:
    """`n` independent vectors with P(z) ~ exp(-epsilon N(z) / fineness), modulo 2**64. Raises
    `ValueError` when a parameter is out of range or epsilon has too many digits.

    Returns
    -------
    numpy.ndarray
        A vector per row.
    """
    require_box(epsilon, widths, fineness)
    out = np.empty((n, len(widths)), np.int64)
    for start in range(0, n, _BLOCK):
        block = out[start : start + _BLOCK]
        far = draw_boxes(epsilon, widths, fineness, block, source)[1]
        for lane, (_, numbers) in far.items():
            block[lane] = list(map(wrap, numbers))
    return out


def draw_boxes(
    epsilon: Fraction, widths: tuple[int, ...], fineness: int, out: Codes, source: BitSource
) -> tuple[Codes, dict[int, tuple[int, list[int]]]]:
    """Vectors, into the rows of `out`, and radii; by place those that 64 bits may not hold."""
    drawn, beyond = radii_of(epsilon, tuple(sorted(widths)), fineness).draw(len(out), source)
    for j, width in enumerate(widths):
        out[:, j] = _coordinates(drawn, width, fineness, source)
    far = {}
    for lane, radius in beyond.items():
        halves = (radius * width // fineness for width in widths)
        far[lane] = radius, [uniform_integer(2 * half + 1, source) - half for half in halves]
    return drawn, far


def require_box(epsilon: Fraction, widths: tuple[int, ...], fineness: int) -> None:
    """Raise ValueError unless the sampler can draw from a box."""
    if max(epsilon.numerator.bit_length(), epsilon.denominator.bit_length()) > MAX_BITS:
        raise ValueError(f"more than {MAX_BITS} bits in a noise parameter")
    if not 0 < epsilon <= MAX_BOX_EPSILON or not 1 <= len(widths) <= MAX_BOX_DIMENSIONS:
        raise ValueError("a noise parameter is out of the range of the sampler")
    if not 1 <= fineness <= MAX_FINENESS or fineness & (fineness - 1):
        raise ValueError("the fineness is no power of two that the sampler has")
    if not 1 <= min(widths) <= max(widths) <= MAX_BOX_WIDTH:
        raise ValueError("a width is out of the range of the sampler")
    if max(*widths, fineness) > MAX_BOX_REACH * epsilon:
        raise ValueError("a width is out of the range of the sampler at so small an epsilon")


def _coordinates(radii: Codes, width: int, fineness: int, source: BitSource) -> Codes:
    half = _half_widths(radii, width, fineness)
    drawn = scaled_uniforms(2 * half + 1, source)
    drawn -= half
    return drawn


def _half_widths(radii: Codes, width: int, fineness: int) -> Codes:
    """floor(R width / fineness), without leaving 64 bits."""
    bits = fineness.bit_length() - 1
    return (radii >> bits) * width + ((radii & (fineness - 1)) * width >> bits)


@lru_cache(maxsize=64)
def radii_of(epsilon: Fraction, widths: tuple[int, ...], fineness: int) -> Radii:
    """The law of the radius, made once."""
    return Radii(epsilon / fineness, widths, fineness)


class Radii:
    """The law of the radius, ready to draw from; see the module's description.

    Parameters
    ----------
    rate
        Of exp(-rate R).
    widths, fineness
        The law of the boxes.
    shift
        k: cells are 2**k radii wide; rate 2**k must stay below 0.36.
    cells
        Number of cells in a table.
    """

    __slots__ = (
        "_float_rate",
        "_squeeze",
        "_tables",
        "cells",
        "fineness",
        "rate",
        "shift",
        "widths",
    )

    def __init__(
        self,
        rate: Fraction,
        widths: tuple[int, ...],
        fineness: int,
        shift: int | None = None,
        cells: int | None = None,
    ) -> None:
        self.rate, self.widths, self.fineness = rate, widths, fineness
        self.shift = max(0, int(1 / (_STEPS * rate)).bit_length() - 1) if shift is None else shift
        reach = math.ceil(self._gamma_quantile(_FAR) / (rate * 2**self.shift)) + 2
        self.cells = reach if cells is None else cells
        self._float_rate = float(rate * 2**self.shift)
        self._tables: dict[int, LazyTable] = {}
        self._squeeze = self._squeezes() if self.shift else np.empty(0, np.uint16)

    def draw(self, n: int, source: BitSource) -> tuple[Codes, dict[int, int]]:
        """`n` independent radii, and those from beyond the first table by their place, for which
        there is a 0 among the others; accepted lanes that are left over are dropped unseen.
        """
        out = np.empty(n, np.int64)
        far: dict[int, int] = {}
        filled = 0
        while filled < n:
            want = n - filled
            found: dict[int, int] = {}
            got = self._block(want + want // 8 + 4 if self.shift else want, source, found)[:want]
            far.update({filled + i: radius for i, radius in found.items() if i < want})
            out[filled : filled + got.size] = got
            filled += got.size
        return out, far

    def volume(self, radius: int) -> int:
        """V: how many vectors are in a box."""
        return math.prod(2 * (radius * width // self.fineness) + 1 for width in self.widths)

    def end(self, cell: int) -> int:
        """The last radius of a cell."""
        return (cell + 1 << self.shift) - 1

    def table(self, start: int) -> LazyTable:
        """The table of the cells from a first one on."""
        found = self._tables.get(start)
        if found is None:
            found = LazyTable(lambda precision: self._boundaries(start, precision))
            self._tables[start] = found
        return found

    def _gamma_quantile(self, nats: float) -> float:
        """Beyond it, in multiples of 1 / rate, lies barely more than exp(-nats): radii are about
        as sums of d + 1 exponential times are (Boucheron, Lugosi and Massart 2013, section 2.4).
        """
        shape = len(self.widths) + 1
        return shape + math.sqrt(2 * shape * nats) + nats

    def _boundaries(self, start: int, precision: int) -> list[tuple[int, int]]:
        """Brackets of 2**precision times the cumulative probabilities of the cells from `start`."""
        decay = math.ceil(1.45 * self._gamma_quantile(0.7 * precision + 12))
        width = precision + decay + _GUARD
        total_lo = total_hi = 0
        sums: list[tuple[int, int]] = []
        for lo, hi, rest in self._weights(start, width):
            total_lo, total_hi = total_lo + lo, total_hi + hi
            if len(sums) < self.cells:
                sums.append((total_lo, total_hi))
            elif rest is not None and rest << precision + 8 <= total_lo:
                total_hi += rest
                break
        return [
            ((lo << precision) // total_hi, (hi << precision) // total_lo + 1) for lo, hi in sums
        ]

    def _weights(self, start: int, width: int) -> Iterator[tuple[int, int, int | None]]:
        """Brackets of 2**width times the weights of cells, over exp(-rate 2**k start), and now and
        then a bound on all that follow a cell.

        V(E_h) is at most U_h = prod(2**(k + 1) (h + 1) w_j / m + 1), and U_(h + 1) / U_h at most
        ((h + 2) / (h + 1))**d, which falls: what follows h adds up to a geometric series at most.
        """
        one = 1 << width
        q_lo, q_hi = bracket_exp(self.rate * (1 << self.shift), width)
        p_lo = p_hi = one
        d, bits = len(self.widths), self.fineness.bit_length() - 1
        for cell in count(start):
            volume = self.volume(self.end(cell))
            rest = None
            if cell % 16 == 15 or q_hi < one >> 8:
                ratio = -(-q_hi * (cell + 3) ** d // (cell + 2) ** d)
                if ratio < one:
                    sides = ((cell + 2 << self.shift + 1) * w + self.fineness for w in self.widths)
                    bound = math.prod(sides) * (p_hi * q_hi // one + 1)
                    rest = ((bound << width) // (one - ratio) >> bits * d) + 2
            yield p_lo * volume, p_hi * volume, rest
            p_lo, p_hi = p_lo * q_lo >> width, (p_hi * q_hi >> width) + 1

    def _squeezes(self) -> NDArray[np.uint16]:
        """Per cell, a whole number of 2**-16 below its smallest acceptance (1 is ample slack), and
        0 for what is beyond the table.
        """
        cell = np.arange(self.cells, dtype=np.int64)
        start = cell << self.shift
        last = (1 << self.shift) - 1
        falls = math.exp(-self._float_rate * (last / (last + 1)))
        smallest = falls * self._share(start, start + last)
        return np.append(np.maximum(np.floor(smallest * 65536.0) - 1.0, 0.0), 0.0).astype(np.uint16)

    def _block(self, n: int, source: BitSource, far: dict[int, int]) -> Codes:
        """Up to `n` radii; `far` is given those beyond the table."""
        cell = self.table(0).draw(n, source)
        beyond = np.flatnonzero(cell == self.cells).tolist()
        if not self.shift:
            for lane in beyond:
                far[lane], cell[lane] = self._cell_beyond(source), 0
            return cell
        offset = self._offsets(n, source)
        keep = np.ones(n, np.bool_)
        self._accept(cell, offset, keep, source)
        radius = (cell << self.shift) | offset
        found: dict[int, int] = {}
        for lane in beyond:
            wanted = self._cell_beyond(source), int(offset[lane])
            keep[lane] = self._is_accepted(*wanted, source)
            found[lane] = (wanted[0] << self.shift) | wanted[1]
            radius[lane] = 0
        for lane, wide in found.items():
            if keep[lane]:
                far[int(np.count_nonzero(keep[:lane]))] = wide
        return radius if keep.all() else radius[keep]

    def _cell_beyond(self, source: BitSource) -> int:
        """A cell after those of the first table."""
        for start in count(self.cells, self.cells):
            found = int(self.table(start).draw(1, source)[0])
            if found < self.cells:
                return start + found
        raise AssertionError

    def _offsets(self, n: int, source: BitSource) -> Codes:
        """k uniform bits each."""
        mask = (1 << self.shift) - 1
        if self.shift <= 16:
            return source.u16(n).astype(np.int64) & mask
        if self.shift <= 32:
            return source.u32(n).astype(np.int64) & mask
        return (source.u64(n) & np.uint64(mask)).astype(np.int64)

    def _accept(
        self, cell: Codes, offset: Codes, keep: NDArray[np.bool_], source: BitSource
    ) -> None:
        """Clear `keep` where U >= the acceptance; the first 16 bits of U settle most lanes.
        Values beyond the table are unchanged.
        """
        first = source.u16(cell.size)
        lanes = np.flatnonzero((first >= self._squeeze.take(cell)) & (cell < self.cells))
        if not lanes.size:
            return
        cell, offset = cell[lanes], offset[lanes]
        known = first[lanes].astype(np.uint64) << np.uint64(48)
        words = known | source.u64(lanes.size) >> np.uint64(16)
        uniform = words * 2.0**-64
        accept = self._acceptance(cell, offset)
        rejected = uniform > accept
        for i in np.flatnonzero(np.abs(uniform - accept) <= _MARGIN):
            wanted = int(cell[i]), int(offset[i])
            rejected[i] = not self._is_accepted(*wanted, source, int(words[i]), 64)
        keep[lanes[rejected]] = False

    def _acceptance(self, cell: Codes, offset: Codes) -> NDArray[np.float64]:
        """exp(-rate l) V(R) / V(E): within 2**-44. Up to 64 quotients of two integers cost three
        roundings and one for their product each, 2**-45; the exponential is within 2**-50 for an
        argument below 1 / 16, and that is within 2**-55.
        """
        start = cell << self.shift
        shares = self._share(start | offset, start | (1 << self.shift) - 1)
        fall = np.asarray(offset * 2.0**-self.shift * self._float_rate, np.float64)
        return np.asarray(shares * taylor_exp(fall, 16), np.float64)

    def _share(self, inner: Codes, outer: Codes) -> NDArray[np.float64]:
        """V of some radii over V of others."""
        result = np.ones(inner.size)
        for width, times in self._multiplicities():
            half, whole = (_half_widths(r, width, self.fineness) for r in (inner, outer))
            quotient = (2 * half + 1) / (2 * whole + 1)
            for _ in range(times):
                result *= quotient
        return result

    def _multiplicities(self) -> list[tuple[int, int]]:
        return [(width, self.widths.count(width)) for width in dict.fromkeys(self.widths)]

    def _is_accepted(
        self, cell: int, offset: int, source: BitSource, prefix: int = 0, bits: int = 0
    ) -> bool:
        """True with probability exp(-rate l) V(R) / V(E), for a U that begins with `bits` bits.

        The exponential is irrational unless it is 1, and then it is known exactly, so that both
        comparisons fail only as long as U and the probability have the same binary digits.
        """
        inner = self.volume((cell << self.shift) | offset)
        outer = self.volume(self.end(cell))
        x = self.rate * offset
        if bits == 0:
            prefix, bits = source.int64bits(), 64
        while True:
            lo, hi = bracket_exp(x, bits + _GUARD)
            if (prefix + 1) * outer << _GUARD <= inner * lo:
                return True
            if prefix * outer << _GUARD >= inner * hi:
                return False
            prefix, bits = prefix << 64 | source.int64bits(), bits + 64


# The discrete hull law: a box law of vectors, where sums of squares depend on their sums.
#
# A row that adds x in [-1, 1] to a sum and 1 to a count adds 2 x**2 - 1 to a sum of squares: a
# point of an arch, which is a small part of the box [-1, 1]**3. All that rows add or take away lies
# in the convex hull of the arch and its mirror image. That is the set of all (a, x, y) with
#
#     |a| <= 1, |x| <= 1, |y| <= 1,
#     (1 - y) (1 - a) >= max(0, 2 |x| - 1 - a)**2  and  (1 + y) (1 + a) >= max(0, 2 |x| - 1 + a)**2:
#
# a mixture of (1 + a) / 2 of the hull A of the arch, {2 x**2 - 1 <= y <= 1}, and (1 - a) / 2 of the
# mirrored -A. Write (x, y) as p u - q v with u and v in A, p = (1 + a) / 2 and q = (1 - a) / 2. The
# largest possible y is p - q (2 v_x**2 - 1) with the least possible |v_x|, max(0, |x| - p) / q.
# This gives the first inequality, and its mirror image the second.
#
# With widths w_j and a fineness m, hull(R) is the set of all whole z in box(R) (`box`) in which
# each arch (c, s, q) has (z_c / w_c, z_s / w_s, z_q / w_q) in the hull times R / m. N(z) is the
# least integer R >= 0 whose hull holds z. The law is P(z) ~ exp(-epsilon N(z) / m). It is drawn by
# rejection: a radius and a vector from the box law, until the vector lies in the hull. Then z comes
# from every R >= N(z) with weight exp(-epsilon R / m). The sum of these is proportional to
# exp(-epsilon N(z) / m).
#
# Floats decide whether a vector is in the hull only where their error cannot matter; otherwise
# integers decide.
#
# The running time varies as that of boxes does, and with the number of rejections: two in nine for
# each arch, independent of the vectors that noise is added to.

Arch: TypeAlias = tuple[int, int, int]
"""The places of a count, a sum and a sum of squares."""

MAX_ARCHES: Final = 8
"""Of eight arches one vector in eight is kept."""


def discrete_hull(
    # `epsilon`, `widths`, `fineness`, `n`, `source`: as for `discrete_box`.
    epsilon: Fraction,
    widths: tuple[int, ...],
    fineness: int,
    # Up to 8, each the places of a count, of a sum and of a sum of squares, all different but for
    # counts.
    arches: tuple[Arch, ...],
    n: int,
    source: BitSource = OS,
) -> Codes:
    """`n` independent vectors with P(z) ~ exp(-epsilon N(z) / fineness), modulo 2**64. Raises
    `ValueError` when a parameter is out of range or epsilon has too many digits.

    Returns
    -------
    numpy.ndarray
        One vector per row.
    """
    require_box(epsilon, widths, fineness)
    require_arches(arches, len(widths))
    out = np.empty((n, len(widths)), np.int64)
    filled = 0
    while filled < n:
        left = n - filled
        want = min(_BLOCK, left + left * len(arches) // 2 + 4)
        drawn = np.empty((want, len(widths)), np.int64)
        radii, far = draw_boxes(epsilon, widths, fineness, drawn, source)
        keep = _are_within(radii, drawn, widths, fineness, arches)
        for lane, (radius, numbers) in far.items():
            keep[lane] = is_within(radius, numbers, widths, fineness, arches)
            drawn[lane] = [wrap(number) for number in numbers]
        kept = drawn[keep][:left]  # further draws are dropped unseen
        out[filled : filled + len(kept)] = kept
        filled += len(kept)
    return out


def require_arches(arches: Sequence[Arch], numbers: int) -> None:
    """That arches are made of numbers of the vector, sums and squares each of one. Raises
    `ValueError` when they are not.
    """
    own = [place for _, *both in arches for place in both]
    counts = {count for count, *_ in arches}
    places = {*own, *counts}
    if not 1 <= len(arches) <= MAX_ARCHES or len({*own}) != len(own) or counts & {*own}:
        raise ValueError(f"a hull has 1 to {MAX_ARCHES} arches, with sums and squares of their own")
    if not all(type(place) is int and 0 <= place < numbers for place in places):
        raise ValueError("arches are made of numbers of the vector")


def is_within(
    radius: int,
    numbers: Sequence[int],
    widths: Sequence[int],
    fineness: int,
    arches: Sequence[Arch],
) -> bool:
    """Whether a vector of a box lies in the hull of the same radius, exactly."""
    return all(
        _is_in_arch(radius, fineness, *((numbers[place], widths[place]) for place in arch))
        for arch in arches
    )


def _is_in_arch(
    radius: int,
    fineness: int,
    count: tuple[int, int],
    total: tuple[int, int],
    square: tuple[int, int],
) -> bool:
    """The two inequalities of the module, times (R / m)**2 and all that they are divided by; each
    of a number and its width.
    """
    (a, w), (x, v), (y, u) = count, total, square
    for sign in (1, -1):  # the mirror image
        far = 2 * fineness * abs(x) * w - (radius * w + sign * fineness * a) * v
        room = (radius * u - sign * fineness * y) * (radius * w - sign * fineness * a)
        if far > 0 and room * v * v * w < far * far * u:
            return False
    return True


def _are_within(
    radii: Codes, drawn: Codes, widths: Sequence[int], fineness: int, arches: Sequence[Arch]
) -> NDArray[np.bool_]:
    """The same of many, first by floats."""
    keep = np.ones(radii.size, np.bool_)
    unclear = np.zeros(radii.size, np.bool_)
    scale = fineness / np.maximum(radii, 1).astype(np.float64)
    for arch in arches:
        a, x, y = (drawn[:, place] / float(widths[place]) * scale for place in arch)
        for sign in (1.0, -1.0):
            far = 2.0 * np.abs(x) - 1.0 - sign * a
            spare = (1.0 - sign * y) * (1.0 - sign * a) - np.maximum(far, 0.0) ** 2
            close = np.abs(spare) <= _MARGIN
            keep &= (spare > 0) | close
            unclear |= close & (far > -_MARGIN)
    for lane in np.flatnonzero(keep & unclear).tolist():
        keep[lane] = is_within(int(radii[lane]), drawn[lane].tolist(), widths, fineness, arches)
    return keep
