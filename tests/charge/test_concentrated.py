"""The rho of sessions with an (epsilon, delta), and how their spends are read."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.accounting import gaussian_noise
from dpframe.accounting.gaussian_noise import epsilon_of_rho, largest_rho, log_delta_zcdp
from dpframe.charge import accuracy_within, resolve_composition, rho_within, spend_within

LEFT = dp.ZCDP("0.01")


@given(
    epsilon=st.fractions(Fraction(1, 1000), 50, max_denominator=1000),
    digits=st.integers(2, 250),
)
def test_rho_implies_the_budget_and_hardly_any_more_does(epsilon: Fraction, digits: int) -> None:
    rho = rho_within(dp.ApproxDP(epsilon, Fraction(1, 10**digits)))
    delta = float(f"1e-{digits}")
    assert rho > 0
    assert epsilon_of_rho(rho, delta) <= float(epsilon) + 1e-10 * (1 + float(epsilon))
    assert epsilon_of_rho(rho * Fraction(10001, 10000), delta) > float(epsilon)
    assert least_epsilon(rho, digits) <= mpmath.mpf(epsilon.numerator) / epsilon.denominator


@pytest.mark.parametrize(("epsilon", "digits"), [("0.01", 8), ("1", 6), ("7/3", 30), ("40", 12)])
def test_rho_is_too_small_by_a_hair_before_it_is_rounded(
    epsilon: str, digits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaussian_noise, "_BITS", 200)
    price, log_delta = Fraction(epsilon), math.nextafter(-digits * math.log(10), -math.inf)
    rho = largest_rho(price, log_delta)
    exact = mpmath.mpf(price.numerator) / price.denominator
    assert least_epsilon(rho, digits) <= exact
    assert least_epsilon(rho * (1 + Fraction(1, 10**9)), digits) > exact


def least_epsilon(rho: Fraction, digits: int) -> mpmath.mpf:
    """Proposition 12 in 50 digits, at the best of many orders: every order gives a valid bound."""
    with mpmath.workdps(50):
        rate, log_delta = mpmath.mpf(rho.numerator) / rho.denominator, -digits * mpmath.log(10)

        def bound(t: Any) -> Any:
            a = 1 + mpmath.exp(t)
            return a * rate + mpmath.log1p(-1 / a) - (log_delta + mpmath.log(a)) / (a - 1)

        low, high = mpmath.mpf(-12), mpmath.mpf(25)
        for _ in range(200):  # it falls, then rises
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            low, high = (low, right) if bound(left) < bound(right) else (left, high)
        return bound(low)


def test_rho_has_few_digits_so_that_it_can_be_read() -> None:
    rho = rho_within(dp.ApproxDP(1, "1e-8"))
    assert rho == Fraction("0.017205318")
    assert log_delta_zcdp(rho, Fraction(1)) <= -18.420680743952


def test_rho_grows_with_epsilon_and_with_delta() -> None:
    grown = [
        rho_within(dp.ApproxDP(e, d))
        for e, d in [(1, "1e-9"), (1, "1e-8"), ("1.0001", "1e-8"), (2, "1e-8"), (10**9, "1e-8")]
    ]
    assert grown == sorted(set(grown))


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**280), Fraction(1, 10**400)])
def test_without_a_delta_there_is_no_rho(delta: Any) -> None:
    with pytest.raises(dp.DPFrameError, match="needs a delta"):
        rho_within(dp.ApproxDP(1, delta))


@pytest.mark.parametrize(
    ("budget", "composition", "match"),
    [
        (dp.PureDP(1), "zcdp", "needs a delta: rho gives no guarantee with epsilon alone"),
        (dp.ZCDP(1), "zcdp", "added up in rho already"),
        (dp.ZCDP(1, "1e-6"), "zcdp", "added up in rho already"),
        (dp.ApproxDP(1, "1e-6"), "renyi", "no composition 'renyi'"),
        (dp.PureDP(1), "", "no composition ''"),
        (dp.PureDP(1), None, "no composition None"),
    ],
)
def test_other_budgets_and_compositions_are_refused(
    budget: Any, composition: Any, match: str
) -> None:
    with pytest.raises(dp.InvalidBudget, match=match):
        resolve_composition(budget, composition)
    with pytest.raises(dp.InvalidBudget, match=match):
        dp.Session(budget, composition=composition)


def test_sums_count_what_was_given() -> None:
    for budget in (dp.PureDP(1), dp.ApproxDP(1, "1e-8"), dp.ZCDP(1)):
        assert resolve_composition(budget, "sum") == (budget, None)


def test_spends_are_in_epsilon_or_in_rho() -> None:
    assert spend_within(0.5, None, None, LEFT) == dp.ApproxDP("0.5", 0)
    assert spend_within(0.5, "1e-9", None, LEFT) == dp.ApproxDP("0.5", "1e-9")
    assert spend_within(None, None, "0.001", LEFT) == dp.ZCDP("0.001")
    assert accuracy_within(None, None, None) == (dp.ZCDP, 0)
    assert accuracy_within(None, "1e-9", None) == (dp.ApproxDP, Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("spend", "match"),
    [
        ((None, None, None), "the spend is empty; rho 0.01 remains"),
        ((None, "1e-9", None), "the spend is empty"),
        ((0.1, None, 0.1), "cannot be combined with epsilon"),
        ((None, 0, 0.1), "cannot be combined with delta"),
        ((0, None, None), "epsilon must be above 0"),
        ((None, None, 0), "rho must be above 0"),
        ((None, None, -1), "rho must not be negative"),
        ((float("inf"), None, None), "epsilon must be a finite number"),
        ((1, 1, None), "delta is a probability below 1"),
    ],
)
def test_other_spends_are_refused(spend: Any, match: str) -> None:
    with pytest.raises(dp.InvalidBudget, match=match):
        spend_within(*spend, LEFT)


@pytest.mark.parametrize("given", [(0.1, None, None), (None, None, 0.1), (0.1, "1e-9", None)])
def test_an_accuracy_stands_alone(given: Any) -> None:
    with pytest.raises(dp.InvalidBudget, match="an amount or an accuracy"):
        accuracy_within(*given)
