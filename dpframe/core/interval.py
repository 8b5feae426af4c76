"""Exact intervals of values, with interval arithmetic.

An `Interval` bounds the values of an expression that are neither null nor NaN. Ends are inclusive
rationals. With None as an end, that side is unbounded and may hold infinities. Temporal types use
their physical units (days, or units since the epoch).

Intervals are for tightness and convenience: an aggregate clamps again, so a wrong interval could
cost accuracy and never privacy. They are nevertheless exact, and laws check them against data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

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
    def bounded(self) -> bool:
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

    def widened(self, ulps: int = 4) -> Interval:
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
