"""The fixed-point grid: values as integers, so that sums are exact and their order never matters.

A row's value x becomes the integer q(x) = clamp(floor((x - centre) / step + 1/2), lo, hi). It
depends on that row only and lies in [lo, hi] by construction. So the sensitivity of a sum of q is
that of integers in [lo, hi], for any rounding of (x - centre) / step on the way: rounding is
row-wise preprocessing. The exact integer sum plus integer noise, times step, is post-processing.

Accuracy: with values on a grid of `step`, |step * sum(q) - sum(clip(x))| <= n * step / 2. The step
is a power of two with |q| <= 2**30 after centring, so at most n * C * 2**-30 for bounds C, and with
fewer than 2**32 rows the sum stays below 2**62: it cannot overflow. Should it ever, 64-bit integers
wrap, and wrapping commutes with adding noise modulo 2**64, so it would cost accuracy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from dpframe.kernel import plan as kernel

RESOLUTION_BITS = 30


@dataclass(frozen=True, slots=True)
class Grid:
    """An affine map from values to integers in [lo, hi].

    Parameters
    ----------
    step
        The distance of neighbouring grid points, in the value's units; a power of two.
    centre
        The value that maps to 0; exactly representable as a float.
    lo, hi
        The integers to which the bounds map, rounded outwards.
    """

    step: Fraction
    centre: Fraction
    lo: int
    hi: int

    @property
    def node(self) -> kernel.Grid:
        """The same as the kernel has it."""
        return kernel.Grid(self.step, self.centre, self.lo, self.hi)

    @property
    def is_exact(self) -> bool:
        """Whether integers map without rounding."""
        return self.step <= 1 and (self.centre / self.step).denominator == 1

    @property
    def bias_per_row(self) -> Fraction:
        """The largest rounding error of one row, in the value's units."""
        return self.step / 2


def grid_for(
    lo: Fraction, hi: Fraction, *, centred: bool, integers: bool, bits: int = RESOLUTION_BITS
) -> Grid:
    """The grid for values clamped to [lo, hi].

    Parameters
    ----------
    lo, hi
        The bounds, lo <= hi.
    centred
        Whether values are taken relative to the middle of the bounds, which halves the sensitivity
        of sums that need not be sums of the raw values (means and variances). The grid is then as
        long on both sides, one step more on one of them if need be, but where floats have no number
        so near to the middle.
    integers
        Whether all values are integers; then the step is 1 or 1/2 where that fits, and sums
        are exact.
    bits
        How many binary places the larger bound has.
    """
    centre = Fraction(float((lo + hi) / 2)) if centred else Fraction(0)
    reach = max(abs(lo - centre), abs(hi - centre))
    step = _power_of_two_step(reach, bits)
    if integers:
        whole = Fraction(1, centre.denominator if centre.denominator <= 2 else 1)
        step = max(step, whole) if (centre / whole).denominator == 1 else step
    first, last = floor((lo - centre) / step), ceil((hi - centre) / step)
    if centred and abs(first + last) == 1:
        first, last = min(first, -last), max(-first, last)
    return Grid(step, centre, first, last)


def grid_of_squares(inner: Grid, bits: int = RESOLUTION_BITS) -> Grid:
    """The grid for squares of places on a grid around a centre.

    With h the place farthest from it, s any of them, and Q = floor(h**2 / 2**k) where squares are
    shortened by k binary places, they become u(s) = min(Q, floor(s**2 / 2**k) + 1), or just s**2
    where k is 0, and that is 2 u(s) - Q on the grid. So s**2 / h**2 <= u(s) / Q <= 1, exactly: the
    first because Q <= h**2 / 2**k, and u(s) is Q or at least s**2 / 2**k.

    Parameters
    ----------
    inner
        The grid of the values.
    bits
        How many binary places the largest square has at most.
    """
    largest = max(-inner.lo, inner.hi) ** 2
    # a step of squares is a float as well, if only the least that is above 0
    least = -2 * (inner.step.numerator.bit_length() - inner.step.denominator.bit_length()) - 1022
    shift = max(0, (largest - 1).bit_length() - bits, least + 1)
    return squares_on(inner, shift)


def squares_on(inner: Grid, shift: int) -> Grid:
    """The grid for squares of places on a grid, shortened by this many binary places."""
    top = max(1, max(-inner.lo, inner.hi) ** 2 >> shift)
    step = inner.step**2 * _power(shift - 1)
    return Grid(step, top * step, -top, top)


def squares_shortened(inner: Grid, squares: Grid) -> int:
    """By how many binary places squares of places on a grid are shortened on that of squares."""
    times = 2 * squares.step / inner.step**2
    return times.numerator.bit_length() - times.denominator.bit_length()


def _power_of_two_step(reach: Fraction, bits: int) -> Fraction:
    """2**(e - bits) where 2**(e - 1) < reach <= 2**e, or the least whose inverse is a float."""
    if reach == 0:
        return Fraction(1)
    e = reach.numerator.bit_length() - reach.denominator.bit_length()
    while _power(e) < reach:
        e += 1
    while _power(e - 1) >= reach:
        e -= 1
    return _power(max(e - bits, -1022))


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
