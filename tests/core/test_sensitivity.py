"""Sensitivities in units and as floats."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.sensitivity import ExactSensitivity, Sensitivity

fractions = st.fractions(min_value=0, max_value=10**6)


@given(st.integers(0, 9), fractions, fractions, fractions, st.fractions(-10, 10))
def test_units_of_the_value(
    l0: int, l1: Fraction, l2: Fraction, linf: Fraction, by: Fraction
) -> None:
    found = ExactSensitivity(l0, l1, l2 * l2, linf).scale(by)
    assert found == ExactSensitivity(l0, l1 * abs(by), (l2 * by) ** 2, linf * abs(by))


@given(fractions, fractions, fractions)
def test_public_numbers_are_never_below_the_exact_ones(
    l1: Fraction, l2_squared: Fraction, linf: Fraction
) -> None:
    """But for L2, which is the float nearest to an irrational root."""
    found = ExactSensitivity(1, l1, l2_squared, linf).public()
    assert Fraction(found.l1) >= l1
    assert Fraction(found.linf) >= linf
    assert found.l1 == pytest.approx(float(l1), rel=1e-15)
    assert found.l2 == pytest.approx(math.sqrt(l2_squared), rel=1e-15)


def test_public_numbers_are_those_people_expect() -> None:
    found = ExactSensitivity(2, Fraction(2), Fraction(2), Fraction(1)).public()
    assert found == Sensitivity(2, 2.0, 1.4142135623730951, 1.0)


def test_one_row_in_all_vectors_at_once() -> None:
    one = ExactSensitivity(2, Fraction(3), Fraction(5), Fraction(2))
    assert one.repeat(3) == ExactSensitivity(6, Fraction(9), Fraction(15), Fraction(2))
