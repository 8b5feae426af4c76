"""Rounding goes up, by little, and leaves short numbers alone."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.exact import dyadic_up
from dpframe.errors import InvalidBounds, InvalidBudget
from dpframe.mechanisms.mechanism import (
    in_range,
    miss,
    miss_per_cell,
    nonnegative,
    positive_budget,
    positive_sensitivity,
    short_up,
)

numbers = st.builds(Fraction, st.integers(1, 10**300), st.integers(1, 10**300))


@given(numbers)
def test_dyadic_up(value: Fraction) -> None:
    rounded = dyadic_up(value)
    assert value <= rounded <= value * (1 + Fraction(1, 2**62))
    assert rounded.denominator & (rounded.denominator - 1) == 0
    odd = rounded.numerator >> ((rounded.numerator & -rounded.numerator).bit_length() - 1)
    assert odd.bit_length() <= 65


@given(numbers)
def test_short_up(value: Fraction) -> None:
    assert short_up(value) >= value
    assert short_up(short_up(value)) == short_up(value)
    if value.numerator.bit_length() + value.denominator.bit_length() <= 1024:
        assert short_up(value) == value


def test_floats_are_not_exact_numbers() -> None:
    with pytest.raises(InvalidBudget, match="exact"):
        positive_budget(0.1, "epsilon")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exact"):
        positive_sensitivity(0.1, "l1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exact"):
        in_range(0.5, Fraction(1, 4), Fraction(4), "a scale")  # type: ignore[arg-type]
    assert nonnegative(0, "l1") == 0  # type: ignore[arg-type]


def test_a_float_confidence_means_its_decimal() -> None:
    assert miss(0.95) == Fraction(1, 20)
    assert miss(Fraction(19, 20)) == Fraction(1, 20)
    for confidence in (0, 1, -0.5, 1.5, float("nan"), float("inf")):
        with pytest.raises(InvalidBounds):
            miss(confidence)


@pytest.mark.parametrize("cells", [1, 2, 1000, 10**9])
def test_miss_per_cell(cells: int) -> None:
    from decimal import localcontext

    with localcontext() as context:
        context.prec = 80
        kept = (1 - miss_per_cell(0.95, cells)) ** cells
        assert abs(kept - Decimal("0.95")) < Decimal("1e-45")
