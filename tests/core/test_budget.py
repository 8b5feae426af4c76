"""Budgets: exact amounts in three measures that never mix."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.budget import Budget

amounts = st.fractions(min_value=0, max_value=1000)
deltas = st.fractions(min_value=0, max_value=Fraction(1, 3))
budgets: dict[type[Budget], st.SearchStrategy[Budget]] = {
    dp.PureDP: st.builds(dp.PureDP, amounts),
    dp.ApproxDP: st.builds(dp.ApproxDP, amounts, deltas),
    dp.ZCDP: st.builds(dp.ZCDP, amounts, deltas),
}
KINDS = pytest.mark.parametrize("kind", budgets)


def test_sums_are_exact() -> None:
    assert dp.PureDP(0.1) + dp.PureDP(0.2) == dp.PureDP(0.3)
    assert sum([dp.PureDP("0.1")] * 9, dp.PureDP(0.1)) == dp.PureDP(1)
    assert dp.ApproxDP(0.1, 1e-8) + dp.ApproxDP(0.2, 2e-8) == dp.ApproxDP(0.3, 3e-8)
    assert dp.ZCDP("1/3") + dp.ZCDP("1/3", "1e-9") == dp.ZCDP("2/3", "1e-9")


@KINDS
@given(data=st.data())
def test_addition_and_what_is_left(kind: type[Budget], data: st.DataObject) -> None:
    a, b = data.draw(budgets[kind]), data.draw(budgets[kind])
    total = a + b
    assert type(total) is kind
    assert total == b + a
    assert total - b == a
    assert total.covers(a)
    assert total.covers(b)
    assert a.covers(total) == b.is_zero
    left = a - b
    assert left.main == max(0, a.main - b.main)
    assert left.slack == max(0, a.slack - b.slack)


@KINDS
@given(data=st.data())
def test_a_budget_covers_what_is_no_more_in_either_amount(
    kind: type[Budget], data: st.DataObject
) -> None:
    a, b = data.draw(budgets[kind]), data.draw(budgets[kind])
    assert a.covers(b) == (b.main <= a.main and b.slack <= a.slack)
    assert a.covers(a)


def test_a_hair_more_is_not_covered() -> None:
    hair = Fraction(1, 10**40)
    assert not dp.PureDP(1).covers(dp.PureDP(1 + hair))
    assert not dp.ApproxDP(1, "1e-8").covers(dp.ApproxDP(1, Fraction(1, 10**8) + hair))


@pytest.mark.parametrize("a", [dp.PureDP(1), dp.ApproxDP(1, 0), dp.ZCDP(1)], ids=str)
@pytest.mark.parametrize("b", [dp.PureDP(1), dp.ApproxDP(1, 0), dp.ZCDP(1), 1, 0.5], ids=str)
def test_measures_do_not_mix(a: Budget, b: Any) -> None:
    if type(a) is type(b):
        return
    assert a != b
    for combine in (lambda: a + b, lambda: a - b):
        with pytest.raises(TypeError):
            combine()
    if isinstance(b, Budget):
        assert not a.covers(b)


@pytest.mark.parametrize(
    "wrong", [-1, "-0.1", math.nan, math.inf, "abc", None, True, [1], Decimal("Infinity")], ids=repr
)
@pytest.mark.parametrize("kind", [dp.PureDP, dp.ZCDP, lambda v: dp.ApproxDP(v, 0)])
def test_wrong_amounts_are_named(kind: Any, wrong: Any) -> None:
    with pytest.raises(dp.InvalidBudget, match=r"epsilon|rho") as caught:
        kind(wrong)
    assert caught.value.remedy


@pytest.mark.parametrize("wrong", [1, 1.5, -1e-9, math.nan, "x"])
@pytest.mark.parametrize("kind", [dp.ApproxDP, dp.ZCDP])
def test_a_delta_is_a_probability(kind: Any, wrong: Any) -> None:
    with pytest.raises(dp.InvalidBudget, match="delta"):
        kind(1, wrong)


def test_amounts_are_the_nearest_floats() -> None:
    budget = dp.ApproxDP("1/3", "1e-8")
    assert (budget.epsilon, budget.delta) == (1 / 3, 1e-8)
    assert (dp.ZCDP("0.1", 0).rho, dp.ZCDP("0.1", "1e-9").delta) == (0.1, 1e-9)
    assert (dp.PureDP(2).epsilon, dp.PureDP(2).delta) == (2.0, 0.0)
    assert (budget.main, budget.slack) == (Fraction(1, 3), Fraction(1, 10**8))


def test_budgets_are_values() -> None:
    assert len({dp.PureDP(0.5), dp.PureDP("1/2"), dp.PureDP(Decimal("0.50"))}) == 1
    with pytest.raises(AttributeError):
        dp.PureDP(1).exact_epsilon = Fraction(9)  # type: ignore[misc]
    assert repr(dp.PureDP(0.3)) == "PureDP(epsilon=0.3)"
    assert repr(dp.ApproxDP(1, "1e-8")) == "ApproxDP(epsilon=1, delta=1e-8)"
    assert repr(dp.ZCDP("0.1")) == "ZCDP(rho=0.1)"
    assert dp.ZCDP("0.1", "1e-9").words() == "rho 0.1, delta 1e-9"
    assert dp.PureDP(0).is_zero
    assert not dp.ApproxDP(0, "1e-9").is_zero


@pytest.mark.parametrize("delta", [1e-6, "1e-6", Fraction(1, 10**6)])
def test_a_delta_reads_the_same_wherever_it_is_shown(delta: Any) -> None:
    session = dp.Session(epsilon=1, delta=delta)
    people = session.protect(pl.LazyFrame(schema={"x": pl.Float64}), unit=dp.Rows())
    query = people.agg(dp.sum("x", (0, 1), mechanism="discrete_gaussian"))
    texts = [repr(session), repr(session.budget), session.budget.words()]
    texts += [
        query.explain(details=True, epsilon=1, delta=delta),
        query.plan(epsilon=1, delta=delta).cost.words(),
    ]
    with pytest.raises(dp.BudgetExceeded) as over:
        query.collect(epsilon=2, delta=delta)
    with pytest.raises(dp.InvalidBudget) as pure:
        dp.Session(epsilon=1).collect(query, epsilon=1, delta=delta)
    texts.append(str(over.value))
    assert all("1e-6" in text for text in texts)
    assert not any("e-0" in text for text in [*texts, str(pure.value)])
