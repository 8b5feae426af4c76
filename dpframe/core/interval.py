"""Exact intervals of values, with interval arithmetic.

An `Interval` bounds the values of an expression that are neither null nor NaN. Ends are inclusive
rationals. With None as an end, that side is unbounded and may hold infinities. Temporal types use
their physical units (days, or units since the epoch).

Intervals are for tightness and convenience: an aggregate clamps again, so a wrong interval could
cost accuracy and never privacy. They are nevertheless exact, and laws check them against data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from dpframe.kernel import plan as kernel

_FLOAT_MAX = Fraction(1.7976931348623157e308)
End: TypeAlias = "Fraction | None"


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from `lo` to `hi`, both included; None means no bound on that side."""

    lo: Fraction | None = None
    hi: Fraction | None = None

    def __post_init__(self) -> None:
        if self.lo is not None and self.hi is not None and self.lo > self.hi:
            raise ValueError("an interval's ends are reversed")

    @property
    def is_bounded(self) -> bool:
        return self.lo is not None and self.hi is not None

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Both ends of a bounded interval."""
        if self.lo is None or self.hi is None:
            raise ValueError("the interval is not bounded")
        return self.lo, self.hi

    @property
    def magnitude(self) -> Fraction | None:
        """max(|lo|, |hi|), or None when unbounded."""
        return (
            max(abs(self.lo), abs(self.hi)) if self.lo is not None and self.hi is not None else None
        )

    @property
    def is_point(self) -> bool:
        return self.lo is not None and self.lo == self.hi

    def contains(self, value: Fraction | int) -> bool:
        return (self.lo is None or self.lo <= value) and (self.hi is None or value <= self.hi)

    def hull(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        lo = None if self.lo is None or other.lo is None else min(self.lo, other.lo)
        hi = None if self.hi is None or other.hi is None else max(self.hi, other.hi)
        return Interval(lo, hi)

    def intersect(self, other: Interval) -> Interval | None:
        """What both have in common; None when that is nothing."""
        lo = (
            other.lo if self.lo is None else self.lo if other.lo is None else max(self.lo, other.lo)
        )
        hi = (
            other.hi if self.hi is None else self.hi if other.hi is None else min(self.hi, other.hi)
        )
        if lo is not None and hi is not None and lo > hi:
            return None
        return Interval(lo, hi)

    def __neg__(self) -> Interval:
        return Interval(
            None if self.hi is None else -self.hi, None if self.lo is None else -self.lo
        )

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            None if self.lo is None or other.lo is None else self.lo + other.lo,
            None if self.hi is None or other.hi is None else self.hi + other.hi,
        )

    def __sub__(self, other: Interval) -> Interval:
        return self + (-other)

    def __mul__(self, other: Interval) -> Interval:
        """Products of finite and infinite values (0 times an infinity is NaN, not a value)."""
        products = [
            _product(a, b)
            for a in (
                -math.inf if self.lo is None else self.lo,
                math.inf if self.hi is None else self.hi,
            )
            for b in (
                -math.inf if other.lo is None else other.lo,
                math.inf if other.hi is None else other.hi,
            )
        ]
        return Interval(_end(min(products)), _end(max(products)))

    def abs(self) -> Interval:
        if self.lo is not None and self.lo >= 0:
            return self
        if self.hi is not None and self.hi <= 0:
            return -self
        return Interval(Fraction(0), self.magnitude)

    def increasing(self, f: Callable[[Fraction], Fraction]) -> Interval:
        """The image under a non-decreasing function; unbounded ends stay unbounded. A function of
        floats may turn round ends that are next to each other: then they change places.
        """
        lo = None if self.lo is None else f(self.lo)
        hi = None if self.hi is None else f(self.hi)
        return (
            Interval(hi, lo) if lo is not None and hi is not None and hi < lo else Interval(lo, hi)
        )

    def as_float(self) -> Interval:
        """Ends rounded as conversion to Float64 rounds values (rounding is monotone), unbounded
        where that overflows.
        """
        return Interval(_nearest(self.lo), _nearest(self.hi))

    def widen(self, ulps: int = 4) -> Interval:
        """Ends moved outwards by a few units in the last place, for functions that a maths library
        computes only nearly correctly rounded.
        """
        margin = Fraction(ulps, 2**52)
        tiny = Fraction(1, 2**1060)
        return Interval(
            None if self.lo is None else self.lo - abs(self.lo) * margin - tiny,
            None if self.hi is None else self.hi + abs(self.hi) * margin + tiny,
        )

    def within(self, limits: tuple[int, int]) -> bool:
        """Whether the interval is bounded and inside `limits`."""
        return (
            self.lo is not None
            and self.hi is not None
            and limits[0] <= self.lo
            and self.hi <= limits[1]
        )


def _product(a: Fraction | float, b: Fraction | float) -> Fraction | float:
    """The product of two ends, where 0 times an unbounded end is 0: any finite factor gives 0."""
    if a == 0 or b == 0:
        return Fraction(0)
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    return math.inf if (a > 0) == (b > 0) else -math.inf


def _end(value: Fraction | float) -> Fraction | None:
    return value if isinstance(value, Fraction) else None


def _nearest(end: End) -> End:
    if end is None or abs(end) > _FLOAT_MAX:
        return None
    return Fraction(float(end))


EVERYTHING = Interval()
ZERO = Interval(Fraction(0), Fraction(0))
UNIT = Interval(Fraction(0), Fraction(1))


def interval(lo: int | Fraction | None, hi: int | Fraction | None) -> Interval:
    """An interval from whole or rational ends."""
    return Interval(None if lo is None else Fraction(lo), None if hi is None else Fraction(hi))


# The fixed-point grid: values as integers, so that sums are exact and their order never matters.
#
# A row's value x becomes the integer q(x) = clamp(floor((x - centre) / step + 1/2), lo, hi). It
# depends on that row only and lies in [lo, hi] by construction. So the sensitivity of a sum of q is
# that of integers in [lo, hi], for any rounding of (x - centre) / step on the way: rounding is
# row-wise preprocessing. The exact integer sum plus integer noise, times step, is post-processing.
#
# Accuracy: with values on a grid of `step`, |step * sum(q) - sum(clip(x))| <= n * step / 2. The
# step is a power of two with |q| <= 2**30 after centring, so at most n * C * 2**-30 for bounds C,
# and with fewer than 2**32 rows the sum stays below 2**62: it cannot overflow. Should it ever,
# 64-bit integers wrap, and wrapping commutes with adding noise modulo 2**64, so it would cost
# accuracy only.


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
    """How many binary places squares of places on a grid lose on the grid of squares."""
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
