"""Interval arithmetic against brute force over points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.interval import EVERYTHING, UNIT, ZERO, Interval, interval

ENDS = [None, *(Fraction(n, 2) for n in (-4, -3, -1, 0, 1, 2, 5))]
FAR = Fraction(1000)
"""Stands for values beyond every finite end."""


def intervals() -> Iterator[Interval]:
    for lo, hi in itertools.product(ENDS, ENDS):
        if lo is None or hi is None or lo <= hi:
            yield Interval(lo, hi)


ALL = list(intervals())


def points(i: Interval) -> list[Fraction]:
    """Ends, points in between, and points far out where there is no end."""
    lo = -FAR if i.lo is None else i.lo
    hi = FAR if i.hi is None else i.hi
    inside = [p for p in (Fraction(-1, 3), Fraction(0), Fraction(7, 5)) if lo <= p <= hi]
    return [lo, hi, (lo + hi) / 2, *inside]


BINARY: list[tuple[str, Callable[..., Interval], Callable[..., Fraction]]] = [
    ("+", lambda a, b: a + b, lambda x, y: x + y),
    ("-", lambda a, b: a - b, lambda x, y: x - y),
    ("*", lambda a, b: a * b, lambda x, y: x * y),
]


@pytest.mark.parametrize(("name", "of_intervals", "of_points"), BINARY)
def test_arithmetic_holds_every_result_and_nothing_more(
    name: str, of_intervals: Callable[..., Interval], of_points: Callable[..., Fraction]
) -> None:
    for a, b in itertools.product(ALL, ALL):
        found = of_intervals(a, b)
        results = [of_points(x, y) for x in points(a) for y in points(b)]
        assert all(found.contains(r) for r in results), (a, name, b)
        # an end that is there is reached; one that is not is exceeded by far
        for end, extreme in ((found.lo, min(results)), (found.hi, max(results))):
            assert end == extreme if end is not None else abs(extreme) >= FAR / 2, (a, name, b)


def test_negation_and_absolute_values() -> None:
    for a in ALL:
        negated, absolute = -a, a.abs()
        assert all(negated.contains(-x) and absolute.contains(abs(x)) for x in points(a))
        assert -negated == a
        assert absolute.lo == min(
            [abs(x) for x in points(a)], default=None
        ) or not a.contains(0)  # fmt: skip
        assert absolute.hi == a.magnitude
        assert absolute.lo is not None
        assert absolute.lo >= 0


def test_hulls_and_intersections() -> None:
    for a, b in itertools.product(ALL, ALL):
        hull, common = a.hull(b), a.intersect(b)
        for x in [*points(a), *points(b)]:
            assert hull.contains(x)
            both = a.contains(x) and b.contains(x)
            assert both == (common is not None and common.contains(x))
        assert a.hull(b) == b.hull(a)
        assert a.intersect(b) == b.intersect(a)


def test_ends() -> None:
    assert interval(2, 5).ends == (2, 5)
    assert interval(2, 5).is_bounded
    assert not interval(None, 5).is_bounded
    with pytest.raises(ValueError, match="not bounded"):
        _ = interval(None, 5).ends
    with pytest.raises(ValueError, match="reversed"):
        interval(5, 2)
    assert interval(3, 3).is_point
    assert not EVERYTHING.is_point
    assert (ZERO.ends, UNIT.ends) == ((0, 0), (0, 1))
    assert interval(-7, 3).magnitude == 7
    assert interval(None, 3).magnitude is None


def test_zero_times_everything_is_zero() -> None:
    assert ZERO * EVERYTHING == EVERYTHING * ZERO == ZERO


def test_within() -> None:
    assert interval(-128, 127).within((-128, 127))
    assert not interval(-129, 127).within((-128, 127))
    assert not interval(None, 0).within((-128, 127))


@given(st.fractions(), st.fractions(min_value=0))
def test_conversion_to_floats_keeps_order(lo: Fraction, width: Fraction) -> None:
    found = Interval(lo, lo + width).as_float()
    for x in (lo, lo + width / 3, lo + width):
        assert found.contains(Fraction(float(x)))


def test_conversion_to_floats_may_overflow() -> None:
    huge = Fraction(10**400)
    assert Interval(-huge, huge).as_float() == EVERYTHING
    assert Interval(Fraction(0), huge).as_float() == Interval(Fraction(0), None)


@given(st.floats(-1e300, 1e300), st.integers(1, 8))
def test_widened_ends_hold_the_neighbouring_floats(x: float, ulps: int) -> None:
    found = Interval(Fraction(x), Fraction(x)).widen(ulps)
    up = down = x
    for _ in range(ulps // 2):
        up, down = math.nextafter(up, math.inf), math.nextafter(down, -math.inf)
    if abs(x) > 1e-300:
        assert found.contains(Fraction(up))
        assert found.contains(Fraction(down))
    assert found.contains(Fraction(x))


def test_increasing_maps_ends() -> None:
    assert interval(-2, 3).increasing(lambda x: x**3) == interval(-8, 27)
    assert interval(None, 3).increasing(lambda x: x + 1) == interval(None, 4)
    assert interval(1, 2).increasing(lambda x: 5 - x) == interval(3, 4)  # rounding may do so
