"""Quantiles of discrete Gaussian noise are the least whole numbers, against 80-digit tails."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.mechanisms import DiscreteGaussian, DiscreteLaplace, RoundedLaplace
from dpframe.mechanisms.discrete_gaussian import least_covering
from dpframe.mechanisms.mechanism import miss_per_cell

CONFIDENCES = ["0.5", "0.01", "0.3", "0.68", "0.7", "0.9", "0.95", "0.99", "0.999999"]


@cache
def tail(variance: Fraction, a: int) -> mpmath.mpf:
    """P(|X| > a), by adding up terms."""
    with mpmath.workdps(80):
        v = mpmath.mpf(variance.numerator) / variance.denominator
        reach = math.ceil(20 * math.sqrt(variance)) + 5
        beyond = mpmath.fsum(_term(k, v) for k in range(a + 1, a + reach))
        if variance > 32:  # the rest is below 1e-270 (Poisson summation)
            return 2 * beyond / mpmath.sqrt(2 * mpmath.pi * v)
        within = mpmath.fsum(_term(k, v) for k in range(1, a + 1))
        return 2 * beyond / (1 + 2 * (within + beyond))


def _term(k: int, variance: mpmath.mpf) -> mpmath.mpf:
    return mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * variance))


def as_mpf(value: Decimal) -> mpmath.mpf:
    return mpmath.mpf(str(value))


def assert_least(variance: Fraction, miss: Decimal, a: int) -> None:
    with mpmath.workdps(80):
        assert tail(variance, a) <= as_mpf(miss)
        assert a == 0 or tail(variance, a - 1) > as_mpf(miss)


def test_the_case_that_was_one_too_large() -> None:
    assert DiscreteGaussian(Fraction(513**2)).quantile(Fraction(1, 2)) == 346


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("sigma", ["0.01", "0.3", "1", "2.5", "15.9", "16", "40.3"])
def test_quantiles_are_the_least(sigma: str, confidence: str) -> None:
    variance = Fraction(sigma) ** 2
    a = DiscreteGaussian(variance).quantile(Fraction(confidence))
    assert_least(variance, miss_per_cell(Fraction(confidence), 1), a)


@pytest.mark.slow
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("sigma", [100, *range(500, 560, 3), 600, 1024, 2000])
def test_quantiles_are_the_least_for_many_sigmas(sigma: int, confidence: str) -> None:
    variance = Fraction(sigma**2)
    for cells in (1, 7, 10**6):
        a = DiscreteGaussian(variance).quantile(Fraction(confidence), cells)
        assert_least(variance, miss_per_cell(Fraction(confidence), cells), a)


@pytest.mark.parametrize(
    ("sigma", "a"), [*product(["0.8", "5", "17.5", "90"], [0, 1, 40, 1000]), ("600", 1000)]
)
def test_next_to_a_jump_digits_decide(sigma: str, a: int) -> None:
    """A hair beside P(|X| > a) itself, on either side of it."""
    variance = Fraction(sigma) ** 2
    with mpmath.workdps(80):
        exact = tail(variance, a)
        if not 1e-250 < exact < 1:
            return
        hair = mpmath.mpf("1e-30")
        above, below = (Decimal(mpmath.nstr(exact * (1 + s * hair), 60)) for s in (1, -1))
    assert least_covering(variance, above) == a
    assert least_covering(variance, below) == a + 1


@settings(max_examples=25, deadline=None)
@given(st.fractions("1/5", 60, max_denominator=100), st.integers(1, 200).map(lambda d: 10.0**-d))
def test_quantiles_of_rare_events(sigma: Fraction, miss: float) -> None:
    a = least_covering(sigma**2, Decimal(miss))
    assert_least(sigma**2, Decimal(miss), a)


@pytest.mark.parametrize("bits", [12, 20, 31, 45, 55])
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.9999"])
def test_wide_noise_by_the_corrected_normal_law(bits: int, confidence: str) -> None:
    """By the formula of Euler and Maclaurin in mpmath, two terms of which are enough here."""
    variance = Fraction(4**bits) + Fraction(1, 3)
    a = DiscreteGaussian(variance).quantile(Fraction(confidence))
    with mpmath.workdps(80):
        sigma = mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)

        def beyond(a: int) -> mpmath.mpf:
            u = (a + mpmath.mpf(1) / 2) / sigma
            main = mpmath.erfc(u / mpmath.sqrt(2))
            density = 2 * mpmath.npdf(u)
            third = u**3 - 3 * u
            return main - density * (u / 24 / sigma**2 - 7 * third / 5760 / sigma**4)

        miss = as_mpf(miss_per_cell(Fraction(confidence), 1))
        assert beyond(a) <= miss < beyond(a - 1)


@settings(max_examples=100, deadline=None)
@given(
    st.fractions("1/50", 10**6, max_denominator=1000),
    st.sampled_from(CONFIDENCES),
    st.sampled_from([1, 3, 10**5]),
)
def test_quantiles_of_laplace_noise_are_the_least(
    scale: Fraction, confidence: str, cells: int
) -> None:
    with mpmath.workdps(80):
        rate = mpmath.mpf(scale.denominator) / scale.numerator
        miss = as_mpf(miss_per_cell(Fraction(confidence), cells))

        def beyond(a: int, fine: int) -> mpmath.mpf:
            first = fine * a + (fine - 1) // 2 + 1
            return 2 * mpmath.exp(-rate / fine * first) / (1 + mpmath.exp(-rate / fine))

        for law in (DiscreteLaplace(scale), RoundedLaplace(scale)):
            fine = 1025 if isinstance(law, RoundedLaplace) else 1
            a = law.quantile(Fraction(confidence), cells)
            assert beyond(a, fine) <= miss
            assert a == 0 or beyond(a - 1, fine) > miss
