"""Spends and budgets as users write them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.charge import budget_of, spend_in
from dpframe.optimise.mechanisms import split

MEASURES = [dp.PureDP, dp.ApproxDP, dp.ZCDP]
WRONG = [0, -1, "0", -0.1, math.nan, math.inf, "inf", "much", True, [1], None, 1j, Decimal("NaN")]
fractions = st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**9)


def spend(measure: Any, epsilon: Any = None, delta: Any = None, rho: Any = None) -> Any:
    return spend_in(measure, epsilon, delta, rho, None)


@pytest.mark.parametrize(
    ("spent", "expected"),
    [
        (spend(dp.PureDP, epsilon=0.1), dp.PureDP(Fraction(1, 10))),
        (spend(dp.PureDP, epsilon=0.1, delta=0), dp.PureDP("0.1")),
        (spend(dp.PureDP, epsilon=np.float64(0.1)), dp.PureDP("0.1")),
        (spend(dp.PureDP, epsilon=" 1/3 "), dp.PureDP(Fraction(1, 3))),
        (spend(dp.ApproxDP, epsilon=1), dp.ApproxDP(1, 0)),
        (spend(dp.ApproxDP, epsilon=1, delta=1e-9), dp.ApproxDP(1, Fraction(1, 10**9))),
        (spend(dp.ZCDP, rho=Decimal("0.02")), dp.ZCDP(Fraction(1, 50))),
        (spend(dp.ZCDP, rho=1, delta="1e-9"), dp.ZCDP(1, Fraction(1, 10**9))),
    ],
)
def test_a_spend_is_exactly_what_was_written(spent: Any, expected: Any) -> None:
    assert spent == expected
    assert type(spent) is type(expected)


@given(main=fractions, measure=st.sampled_from(MEASURES))
def test_a_float_means_the_decimal_that_it_prints_as(main: Fraction, measure: Any) -> None:
    number = float(main)
    name = "rho" if measure is dp.ZCDP else "epsilon"
    assert spend(measure, **{name: number}) == spend(measure, **{name: repr(number)})
    assert spend(measure, **{name: main}).main == main


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("amount", WRONG, ids=repr)
def test_a_spend_that_is_none_is_refused(measure: Any, amount: Any) -> None:
    name = "rho" if measure is dp.ZCDP else "epsilon"
    with pytest.raises(dp.InvalidBudget) as caught:
        spend(measure, **{name: amount})
    assert caught.value.remedy
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "given", [{"rho": 1}, {"epsilon": 1, "rho": 1}, {"epsilon": 1, "delta": 1e-9}, {"delta": 1e-9}]
)
def test_a_pure_session_takes_epsilon_alone(given: Any) -> None:
    with pytest.raises(dp.InvalidBudget):
        spend(dp.PureDP, **given)


@pytest.mark.parametrize("given", [{"epsilon": 1}, {"epsilon": 1, "rho": 1}, {"delta": 1e-9}])
def test_a_zcdp_session_takes_rho(given: Any) -> None:
    with pytest.raises(dp.InvalidBudget):
        spend(dp.ZCDP, **given)


@pytest.mark.parametrize("delta", [-1e-9, 1, 2, math.nan, "much"])
def test_a_delta_is_a_probability_below_one(delta: Any) -> None:
    with pytest.raises(dp.InvalidBudget, match="delta"):
        spend(dp.ApproxDP, epsilon=1, delta=delta)


def test_refusals_say_what_remains() -> None:
    remaining = dp.ApproxDP("0.25", "1e-7")
    for epsilon, rho in ((None, None), (None, 1), (0, None)):
        with pytest.raises(dp.InvalidBudget, match=r"epsilon 0\.25 and delta 1e-7 remains"):
            spend_in(dp.ApproxDP, epsilon, None, rho, remaining)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((None, 1, None, None), dp.PureDP(1)),
        ((None, 1, 0, None), dp.PureDP(1)),
        ((None, 1, "1e-9", None), dp.ApproxDP(1, "1e-9")),
        ((None, None, None, 0.5), dp.ZCDP(0.5)),
        ((None, None, "1e-9", 0.5), dp.ZCDP(0.5, "1e-9")),
        ((dp.ApproxDP(1, 0), None, None, None), dp.ApproxDP(1, 0)),
    ],
)
def test_a_session_has_one_budget(given: Any, expected: Any) -> None:
    made = budget_of(*given)
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    "given",
    [
        (None, None, None, None),
        (None, None, "1e-9", None),
        (None, 1, None, 1),
        (dp.PureDP(1), 1, None, None),
        (dp.PureDP(0), None, None, None),
        (1.0, None, None, None),
        (None, 0, None, None),
        (None, -1, None, None),
    ],
)
def test_none_or_two_budgets_are_refused(given: Any) -> None:
    with pytest.raises(dp.InvalidBudget):
        budget_of(*given)


# -- shares -----------------------------------------------------------------------------------


@given(
    main=fractions,
    slack=st.fractions(0, Fraction(1, 2), max_denominator=10**9),
    weights=st.lists(st.fractions(0, 1000, max_denominator=997), min_size=1, max_size=9),
)
def test_shares_add_up_to_the_spend_exactly(
    main: Fraction, slack: Fraction, weights: list[Fraction]
) -> None:
    whole = dp.ApproxDP(main, slack)
    shares = split(whole, weights)
    total = sum(shares, dp.ApproxDP(0, 0))
    assert total == (whole if any(weights) else dp.ApproxDP(0, 0))
    for share, weight in zip(shares, weights, strict=True):
        assert share.main * sum(weights) == main * weight
        assert share.slack * sum(weights) == slack * weight


def test_a_weight_of_zero_pays_nothing() -> None:
    shares = split(dp.PureDP(1), [Fraction(0), Fraction(1), Fraction(0)])
    assert shares == (dp.PureDP(0), dp.PureDP(1), dp.PureDP(0))
    assert split(dp.ZCDP(1), [Fraction(0)]) == (dp.ZCDP(0),)
    assert split(dp.ZCDP(1), []) == ()
