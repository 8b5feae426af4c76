"""Discrete Laplace: calibration, cost, quantiles against published values."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpframe.errors import InvalidBounds, InvalidBudget
from dpframe.mechanisms import DiscreteLaplace
from dpframe.mechanisms.noise import noise as draw_noise


def test_scale_is_l1_over_epsilon_exactly() -> None:
    # Tumult 0.21.0 _noise_info: GEOMETRIC 150 for MaxGroupsPerID(3)+MaxRowsPerGroupPerID(5), 0.1
    mechanism = DiscreteLaplace.for_pure(Fraction(15), Fraction("0.1"))
    assert mechanism == DiscreteLaplace(Fraction(150))
    assert mechanism.name == "discrete_laplace"
    assert mechanism.epsilon(Fraction(15)) == Fraction(1, 10)
    # Bun-Steinke 2016: epsilon**2 / 2 at most; on a fine grid epsilon - 1 + exp(-epsilon)
    assert Fraction("0.00483") < mechanism.rho(Fraction(15)) < Fraction(1, 200)


@pytest.mark.parametrize("rho", ["0.5", "0.005", "0.1", "1e-9", "3", "7e7"])
def test_zcdp_scale_never_costs_more_and_hardly_less(rho: str) -> None:
    asked = Fraction(rho)
    cost = DiscreteLaplace.for_zcdp(Fraction(3), asked).rho(Fraction(3))
    assert cost <= asked
    assert cost >= asked * (1 - Fraction(1, 2**36)) or asked > 10**6


def test_zcdp_scale_is_less_than_half_the_squared_epsilon_asks_for() -> None:
    found = DiscreteLaplace.for_zcdp(Fraction(9), Fraction(1, 200)).scale
    assert Fraction(88) < found < 89  # 90 by epsilon**2 / 2
    assert DiscreteLaplace(found * Fraction(9999, 10000)).rho(Fraction(9)) > Fraction(1, 200)
    assert DiscreteLaplace(Fraction(10)).rho(Fraction(1)) == Fraction(1, 200)


@pytest.mark.parametrize(
    ("scale", "miss", "expected"),
    # smallest integer a with P(|X|>a)<=alpha, P(|X|>a)=2q^(a+1)/(1+q)
    [(10, "0.01", 46), (1, "0.05", 3), (150, "0.05", 449)],
)
def test_quantile_matches_reference(scale: int, miss: str, expected: int) -> None:
    mechanism = DiscreteLaplace(Fraction(scale))
    assert mechanism.quantile(1 - Fraction(miss)) == expected
    assert mechanism.quantile(float(1 - Fraction(miss))) == expected


def _tail(scale: Fraction, a: int) -> float:
    q = math.exp(-1 / scale)
    return 2 * q ** (a + 1) / (1 + q)


@pytest.mark.parametrize("scale", ["0.3", "1", "2.5", "40", "1000/7"])
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.95, 0.999])
@pytest.mark.parametrize("cells", [1, 7, 1000])
def test_quantile_is_the_smallest(scale: str, confidence: float, cells: int) -> None:
    t = Fraction(scale)
    a = DiscreteLaplace(t).quantile(confidence, cells)
    assert (1 - _tail(t, a)) ** cells >= confidence - 1e-12
    assert a == 0 or (1 - _tail(t, a - 1)) ** cells < confidence + 1e-12


@pytest.mark.parametrize(
    ("cells", "continuous"), [(20, 59.67209580893146), (1000, 98.7797617456187)]
)
def test_simultaneous_quantile_is_close_to_the_continuous_one(
    cells: int, continuous: float
) -> None:
    # P(max_i |X_i|<=a)=(1-e^{-a/b})^g (independent), b = 10
    assert DiscreteLaplace(Fraction(10)).quantile(0.95, cells) == pytest.approx(continuous, abs=1)


def test_quantile_of_a_huge_scale_is_exact() -> None:
    # 2**56 ln(20) - 1/2 + O(2**-56), to 30 digits: ln 20 = 2.99573227355399099343522357614
    digits = Fraction("2.99573227355399099343522357614")
    assert DiscreteLaplace(Fraction(2**56)).quantile(0.95) == math.ceil(
        2**56 * digits - Fraction(1, 2)
    )


@pytest.mark.parametrize(
    ("scale", "expected"),
    # 2q/(1-q)^2, q=exp(-1/b); diffprivlib Geometric(eps=1).variance, eps=.1
    [(1, 1.8413471884155845), (10, 199.83341663360946)],
)
def test_variance_matches_reference(scale: int, expected: float) -> None:
    assert DiscreteLaplace(Fraction(scale)).variance() == pytest.approx(expected, rel=1e-12)


def test_variance_of_extreme_scales() -> None:
    assert DiscreteLaplace(Fraction(1, 1024)).variance() == 0.0
    assert DiscreteLaplace(Fraction(2**56)).variance() == pytest.approx(2.0**113, rel=1e-12)


def test_a_tiny_scale_is_raised_and_charged_as_used() -> None:
    mechanism = DiscreteLaplace.for_pure(Fraction(1), Fraction(10**6))
    assert mechanism.scale == Fraction(1, 1024)
    assert mechanism.epsilon(Fraction(1)) == 1024


def test_a_scale_that_cannot_be_drawn_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidBudget, match=r"instead: spend more\n +or: give narrower bounds"):
        DiscreteLaplace.for_pure(Fraction(2**40), Fraction(1, 2**20))


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), 0.5])
def test_a_spend_must_be_exact_and_positive(epsilon: Fraction) -> None:
    with pytest.raises(InvalidBudget):
        DiscreteLaplace.for_pure(Fraction(1), epsilon)


def test_no_sensitivity_means_no_noise() -> None:
    with pytest.raises(ValueError, match="NoNoise"):
        DiscreteLaplace.for_pure(Fraction(0), Fraction(1))


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(InvalidBounds):
        DiscreteLaplace(Fraction(1)).quantile(confidence)


def test_long_fractions_are_shortened_upwards() -> None:
    epsilon = Fraction(10**400 + 1, 10**400 + 3)
    mechanism = DiscreteLaplace.for_pure(Fraction(9), epsilon)
    assert mechanism.scale.numerator.bit_length() + mechanism.scale.denominator.bit_length() < 1025
    assert epsilon * (1 - Fraction(1, 2**62)) <= mechanism.epsilon(Fraction(9)) <= epsilon


def test_draws_are_int64_and_frozen_mechanisms_hash() -> None:
    mechanism = DiscreteLaplace(Fraction(3))
    drawn = draw_noise(mechanism.kernel_law, 100)
    assert drawn.dtype == "int64"
    assert drawn.shape == (100,)
    assert draw_noise(mechanism.kernel_law, 0).shape == (0,)
    assert len({mechanism, DiscreteLaplace(Fraction(6, 2))}) == 1
