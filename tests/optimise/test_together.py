"""How the mechanisms of a plan are chosen together under approximate DP."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.mechanisms import AdditiveTask
from dpframe.optimise.mechanisms import choose_together

ONE = ExactSensitivity(1, Fraction(1), Fraction(1), Fraction(1))
SPEND = dp.ApproxDP(1, "1e-8")


def together(parts: int, spend: dp.PureDP | dp.ApproxDP | dp.ZCDP = SPEND, mechanism: str = "auto"):  # type: ignore[no-untyped-def]
    asked = [AdditiveTask(f"c{i}", ONE, mechanism) for i in range(parts)]
    return choose_together(asked, [Fraction(1)] * parts, spend)


def test_few_parts_add_up_and_many_are_composed() -> None:
    found = [together(n).composition for n in (1, 2, 5, 30, 100)]
    assert found == ["sum"] * 3 + ["numerical"] * 2


def test_noise_grows_with_the_root_of_the_number_of_parts() -> None:
    few, many = (together(n).choices[0].law.variance() for n in (50, 200))
    assert many / few == pytest.approx(4, rel=1e-3)  # the variance with the number


@pytest.mark.parametrize("parts", [1, 3, 14, 15, 40])
def test_the_way_with_less_noise_is_taken(parts: int) -> None:
    found = together(parts)
    summed = together(parts, dp.PureDP(1)).choices[0].law.variance()
    assert found.choices[0].law.variance() <= summed
    assert SPEND.covers(found.cost)


def test_without_a_delta_and_in_other_measures_costs_add_up() -> None:
    for spend in (dp.PureDP(1), dp.ApproxDP(1, 0), dp.ZCDP("0.1")):
        found = together(60, spend)
        assert found.composition == "sum"
        assert found.cost == spend


def test_weights_share_rho() -> None:
    asked = [AdditiveTask(f"c{i}", ONE) for i in range(40)]
    weights = [Fraction(4 if i == 0 else 1) for i in range(40)]
    found = choose_together(asked, weights, SPEND)
    first, second = (choice.cost.main for choice in found.choices[:2])
    assert found.composition == "numerical"
    assert first == 4 * second


def test_a_mechanism_that_was_asked_for_is_kept() -> None:
    found = together(100, mechanism="discrete_laplace")
    assert {choice.law.name for choice in found.choices} == {"discrete_laplace"}


def test_what_costs_nothing_stays_free() -> None:
    none = ExactSensitivity(0, Fraction(0), Fraction(0), Fraction(0))
    asked = [AdditiveTask("free", none), *(AdditiveTask(f"c{i}", ONE) for i in range(50))]
    found = choose_together(asked, [Fraction(0)] + [Fraction(1)] * 50, SPEND)
    assert found.composition == "numerical"
    assert found.choices[0].cost.is_zero


def test_plans_say_how_their_costs_go_together() -> None:
    session = dp.Session(epsilon=1, delta="1e-8")
    frame = session.protect(pl.DataFrame({"x": [1, 2, 3]}), dp.Rows())
    noise = "discrete_laplace"
    query = frame.agg(**{f"c{i}": (pl.col("x") > i).dp_sum(mechanism=noise) for i in range(40)})
    plan = query.plan(epsilon=1, delta="1e-8")
    assert plan.composition == "numerical"
    assert "privacy loss distributions together keep this" in plan.explain(details=True)
    assert plan.accuracy("c0") < 100  # 120 when epsilons add up
    assert query.collect(epsilon=1, delta="1e-8").shape == (1, 40)
    assert session.remaining == dp.ApproxDP(0, 0)


@pytest.mark.parametrize("epsilon", ["1e-9", "1", "1e5", "1e399"])
@pytest.mark.parametrize("delta", ["1e-200", "1e-12", "0.999"])
def test_extreme_spends_are_planned(epsilon: str, delta: str) -> None:
    spend = dp.ApproxDP(epsilon, delta)
    found = together(30, spend)
    assert spend.covers(found.cost)
    assert found.cost.main > 0
