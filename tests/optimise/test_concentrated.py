"""What plans cost in rho, mechanism by mechanism."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.sensitivity import ExactSensitivity, ScoreRange
from dpframe.mechanisms import (
    AdditiveTask,
    Choice,
    DiscreteGaussian,
    DiscreteLaplace,
    KeyMechanism,
    KeyTask,
    MechanismTask,
    NoisyThreshold,
    ResponseTask,
    SelectionTask,
    TruncatedGeometric,
    WeighedThreshold,
)
from dpframe.mechanisms.pure_rho import laplace_rho, response_rho
from dpframe.optimise.mechanisms import ComposedChoice, choose_together, in_rho
from tests.score_ranges import of_one

WIDE = ExactSensitivity(3, Fraction(6), Fraction(14), Fraction(3))


def rho_of(asked: MechanismTask, spend: Any) -> tuple[Any, Fraction]:
    found = in_rho([asked], choose_together([asked], [Fraction(1)], spend))
    assert found.composition == "sum"
    assert isinstance(found.cost, dp.ZCDP)
    return found.choices[0].law, found.cost.main


@pytest.mark.parametrize("mechanism", ["auto", "discrete_laplace"])
def test_laplace_noise_costs_by_how_much_entries_move(mechanism: str) -> None:
    """Two entries that move by 3, which is less than by L1 alone."""
    law, rho = rho_of(AdditiveTask("s", WIDE, mechanism), dp.ApproxDP("0.3", 0))
    assert law.scale == 20
    exact = laplace_rho(Fraction(20), Fraction(6), Fraction(14), Fraction(3))
    assert 0 <= rho - exact < exact / 10**15
    assert rho < Fraction(14, 2 * 20**2) < Fraction(9, 200)


def test_gaussian_noise_costs_by_its_variance_and_no_delta() -> None:
    asked = [AdditiveTask("s", WIDE, "discrete_gaussian")]
    found = in_rho(asked, choose_together(asked, [Fraction(1)], dp.ApproxDP("0.3", "1e-9")))
    law, rho = found.choices[0].law, found.cost.main
    assert isinstance(law, DiscreteGaussian)
    assert found.cost.slack == 0
    assert 0 <= rho - Fraction(14) / (2 * law.sigma_squared) < rho / 10**16


@pytest.mark.parametrize(
    ("mechanism", "squared", "rho"),
    [
        ("auto", 7, Fraction(25, 20000)),  # permute-and-flip: epsilon**2 / 2, by the sum of ranges
        ("permute_and_flip", 7, Fraction(25, 20000)),
        ("report_noisy_max", 7, Fraction(25, 20000)),
        ("exponential", 7, Fraction(7 * 25, 16 * 8 * 10000)),
    ],
)
def test_selections_cost_as_their_range_says(mechanism: str, squared: int, rho: Fraction) -> None:
    asked = SelectionTask(
        "w", WIDE, ScoreRange(Fraction(4), Fraction(squared), Fraction(4)), mechanism
    )
    law, found = rho_of(asked, dp.ApproxDP("0.05", 0))
    assert law.scale == 80
    assert found == rho


def test_each_round_of_a_selection_costs() -> None:
    once = SelectionTask("w", WIDE, of_one(Fraction(4)), "permute_and_flip")
    thrice = SelectionTask("w", WIDE, of_one(Fraction(4)), "permute_and_flip", rounds=3)
    assert rho_of(thrice, dp.ApproxDP("0.3", 0))[1] == 3 * rho_of(once, dp.ApproxDP("0.1", 0))[1]


@pytest.mark.parametrize("mechanism", ["exponential", "permute_and_flip", "report_noisy_max"])
def test_each_round_costs_whatever_chooses(mechanism: str) -> None:
    """Noise of the same scale: seven rounds cost seven times what one does."""
    ranges = of_one(Fraction(4))
    once = rho_of(SelectionTask("w", WIDE, ranges, mechanism), dp.ApproxDP("0.1", 0))
    often = rho_of(SelectionTask("w", WIDE, ranges, mechanism, rounds=7), dp.ApproxDP("0.7", 0))
    assert often[0] == once[0]
    assert 0 <= often[1] - 7 * once[1] < once[1] / 10**14


@pytest.mark.parametrize("rows", [1, 4])
def test_randomised_response_costs_its_rho_for_each_row(rows: int) -> None:
    asked = ResponseTask("h", WIDE, 3, rows)
    law, rho = rho_of(asked, dp.ApproxDP("0.3", 0))
    assert 0 <= rho - rows * response_rho(law.row_epsilon, 3) < rho / 10**16
    assert rho < law.epsilon(rows) ** 2 / (2 * rows)


def test_what_is_public_costs_nothing() -> None:
    zero = ExactSensitivity(0, Fraction(0), Fraction(0), Fraction(0))
    assert rho_of(AdditiveTask("n", zero), dp.ApproxDP(1, 0))[1] == 0


def test_parts_add_up_and_noise_is_as_without() -> None:
    asked = [AdditiveTask(f"c{i}", WIDE) for i in range(40)]
    spend = dp.ApproxDP(1, "1e-8")
    for n in (1, 3, 40):
        before = choose_together(asked[:n], [Fraction(1)] * n, spend)
        after = in_rho(asked[:n], before)
        assert [c.law for c in after.choices] == [c.law for c in before.choices]
        total = sum(c.cost.main for c in after.choices)
        assert total <= after.cost.main < total * (1 + Fraction(1, 10**15))
        assert after.cost.slack == 0


def test_a_spend_of_rho_is_what_it_was() -> None:
    asked = [
        AdditiveTask("s", WIDE),
        SelectionTask("w", WIDE, of_one(Fraction(4)), "auto"),
    ]
    before = choose_together(asked, [Fraction(1), Fraction(2)], dp.ZCDP("0.01"))
    assert in_rho(asked, before) is before


@pytest.mark.parametrize(
    "law",
    [
        TruncatedGeometric(Fraction(1), Fraction(1, 10**8)),
        NoisyThreshold(DiscreteLaplace(Fraction(1)), 20, Fraction(1, 10**8)),
        WeighedThreshold.over(DiscreteGaussian(Fraction(9)), 3, 5, Fraction(1, 10**8), alone=True),
    ],
    ids=lambda law: law.name,
)
def test_a_mechanism_that_fails_with_some_probability_is_refused(
    law: KeyMechanism,
) -> None:
    asked = KeyTask("s", WIDE, 3)
    made = Choice(law, dp.ApproxDP(1, "1e-8"), "")
    with pytest.raises(dp.UnsupportedOperation, match=f"{law.name} in rho is not known"):
        in_rho([asked], ComposedChoice((made,), dp.ApproxDP(1, "1e-8"), "sum"))


def test_noise_of_whole_plans_is_that_of_other_sessions() -> None:
    frame = pl.LazyFrame(schema={"a": pl.Int64, "c": pl.Enum(["x", "y"])})
    both = [dp.Session(epsilon=1, delta="1e-8", composition=c) for c in ("sum", "zcdp")]
    plans = []
    for session in both:
        people = session.protect(frame, dp.Rows(contributions=2))
        query = people.group_by("c").agg(
            dp.count().alias("n"),
            dp.mean("a", (0, 9)).alias("m"),
            dp.median("a", (0, 99)).alias("q"),
            dp.argmax("a", candidates=[1, 2]).alias("w"),
        )
        plans.append(query.plan(epsilon="0.5", delta="1e-9"))
    summed, concentrated = plans
    assert [r.law for r in summed.releases] == [r.law for r in concentrated.releases]
    assert isinstance(summed.cost, dp.ApproxDP)
    assert isinstance(concentrated.cost, dp.ZCDP)
    assert summed.fingerprint != concentrated.fingerprint
