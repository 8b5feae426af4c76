"""Exact numbers, and roundings that go one way."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpframe.core.exact import (
    decimal_up,
    digits_down,
    digits_up,
    dyadic_down,
    dyadic_up,
    exact,
    float_down,
    float_up,
    nearest,
    show,
    sqrt_down,
    sqrt_up,
)

fractions = st.fractions()
positive = st.fractions(min_value=Fraction(1, 10**40), max_value=10**40)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1, Fraction(1)),
        (-7, Fraction(-7)),
        (0.1, Fraction(1, 10)),
        (1e-8, Fraction(1, 10**8)),
        (0.1 + 0.2, Fraction("0.30000000000000004")),
        (5e-324, Fraction(5, 10**324)),
        (1e22, Fraction(10**22)),
        (-0.0, Fraction(0)),
        ("0.1", Fraction(1, 10)),
        (" 1/3 ", Fraction(1, 3)),
        ("1e-9", Fraction(1, 10**9)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("1E+3"), Fraction(1000)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (np.float32(0.5), Fraction(1, 2)),
    ],
)
def test_a_number_means_what_was_written(written: Any, meant: Fraction) -> None:
    found = exact(written)
    assert found == meant
    assert type(found) is Fraction


@pytest.mark.parametrize(
    "written",
    [
        *(math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("-Infinity"), np.float64("nan")),
        *("", "abc", "1,5", "0x10", "nan", "inf"),
        *(True, False, np.bool_(True), None, [1], (1, 2), b"1", 1j, np.array([1])),
    ],
    ids=repr,
)
def test_what_is_not_a_finite_number_is_refused(written: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        exact(written)


def test_a_denominator_of_zero_is_refused() -> None:
    with pytest.raises((ValueError, ZeroDivisionError)):
        exact("1/0")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_means_the_decimal_that_it_prints_as(x: float) -> None:
    assert exact(x) == Fraction(repr(x))
    assert float(exact(x)) == x


def test_ten_tenths_are_one() -> None:
    assert sum([exact(0.1)] * 10) == 1 != sum([0.1] * 10)


@given(fractions)
def test_float_up_is_the_least_float_that_is_not_below(x: Fraction) -> None:
    up = float_up(x)
    assert Fraction(up) >= x
    assert Fraction(math.nextafter(up, -math.inf)) < x


@given(fractions)
def test_float_down_is_the_largest_float_that_is_not_above(x: Fraction) -> None:
    down = float_down(x)
    assert Fraction(down) <= x
    assert Fraction(math.nextafter(down, math.inf)) > x


def test_floats_at_the_ends() -> None:
    tiny, huge = Fraction(1, 10**400), Fraction(10**400)
    assert (float_up(tiny), float_down(tiny)) == (5e-324, 0.0)
    assert (float_up(-tiny), float_down(-tiny)) == (0.0, -5e-324)
    assert (float_up(huge), float_down(huge)) == (math.inf, 1.7976931348623157e308)
    assert (float_up(-huge), float_down(-huge)) == (-1.7976931348623157e308, -math.inf)
    assert [nearest(x) for x in (huge, -huge, tiny, -tiny)] == [math.inf, -math.inf, 0.0, 0.0]


@example(Fraction(85, 120043))  # the next float above it is written as less
@example(exact(-sys.float_info.max))  # below it is none
@given(st.one_of(fractions, st.floats(allow_nan=False, allow_infinity=False).map(exact)))
def test_decimal_up_is_the_least_float_that_is_written_as_no_less(x: Fraction) -> None:
    up = decimal_up(x)
    assert exact(up) >= x
    below = math.nextafter(up, -math.inf)
    assert math.isinf(below) or exact(below) < x


@given(fractions, st.integers(1, 30))
def test_decimals_are_rounded_one_way_in_so_many_digits(x: Fraction, digits: int) -> None:
    up, down = digits_up(x, digits), digits_down(x, digits)
    assert down <= x <= up
    assert up - down <= abs(x) / Fraction(10) ** (digits - 1)
    for rounded in (up, down):
        assert digits_up(rounded, digits) == digits_down(rounded, digits) == rounded


@given(positive, st.integers(2, 100))
def test_dyadic_numbers_are_rounded_one_way_and_little(x: Fraction, bits: int) -> None:
    up, down = dyadic_up(x, bits), dyadic_down(x, bits)
    assert down <= x <= up
    assert up - down <= x / 2 ** (bits - 1)
    for rounded in (up, down):
        assert rounded.denominator & (rounded.denominator - 1) == 0


@given(positive, st.integers(8, 200))
def test_square_roots_are_rounded_one_way_and_little(x: Fraction, bits: int) -> None:
    up, down = sqrt_up(x, bits), sqrt_down(x, bits)
    assert down * down <= x <= up * up
    assert up - down <= up * Fraction(1, 2 ** (bits - 1))


@given(positive)
def test_roots_of_squares_are_exact(x: Fraction) -> None:
    assert sqrt_up(x * x) == sqrt_down(x * x) == x


def test_the_root_of_zero_and_of_less() -> None:
    assert sqrt_up(Fraction(0)) == sqrt_down(Fraction(0)) == 0
    with pytest.raises(ValueError, match="negative"):
        sqrt_up(Fraction(-1))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(3), "3"),
        (Fraction(1, 3), "0.333333"),
        (Fraction(1, 10**8), "1e-8"),
        (Fraction(15, 10**13), "1.5e-12"),
        (0.5, "0.5"),
        (2.0, "2"),
        (10**20, "1e20"),
        (Fraction(10**400), "inf"),
        (Fraction(10**400, 3), "inf"),
        (-Fraction(10**400, 3), "-inf"),
    ],
)
def test_numbers_for_people(value: Any, text: str) -> None:
    assert show(value) == text
