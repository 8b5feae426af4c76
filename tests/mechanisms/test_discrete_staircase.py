"""Discrete staircase noise: what it costs, how it is distributed, and where it is chosen."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.mechanisms import DiscreteLaplace, DiscreteStaircase, Exposure
from dpframe.mechanisms.discrete_staircase import least_inner
from dpframe.mechanisms.noise import noise as draw_noise
from dpframe.samplers.cells import staircase
from tests.samplers.seeded import Seeded

rates = st.fractions(Fraction(1, 8), 12, max_denominator=40)
widths = st.integers(1, 12)


@st.composite
def laws(draw: st.DrawFn) -> DiscreteStaircase:
    width = draw(widths)
    return DiscreteStaircase(draw(rates), width, draw(st.integers(1, width)))


def masses(law: DiscreteStaircase, reach: int) -> dict[int, float]:
    """The probabilities of numbers, from the law as it is defined: level by level."""
    levels = [
        *itertools.repeat(0, law.inner),
        *(k for k in range(1, reach // law.width + 2) for _ in range(law.width)),
    ]
    weights = {x: math.exp(-float(law.rate) * levels[abs(x)]) for x in range(-reach, reach + 1)}
    rest = math.exp(-float(law.rate))
    total = 2 * law.inner - 1 + 2 * law.width * rest / (1 - rest)
    return {x: weight / total for x, weight in weights.items()}


def far(law: DiscreteStaircase) -> int:
    return law.farthest(40)


@given(laws(), st.lists(st.integers(-30, 30), min_size=1, max_size=4), st.data())
def test_moves_cost_what_is_said(law: DiscreteStaircase, moves: list[int], data: Any) -> None:
    """The log-probabilities of any outcome differ by no more than epsilon, in whole levels."""
    sizes = [abs(move) for move in moves if move]
    moved = ExactSensitivity(
        len(sizes), Fraction(sum(sizes)), Fraction(0), Fraction(max(sizes, default=0))
    )
    outcome = [data.draw(st.integers(-60, 60)) for _ in moves]
    before = law.log_masses(np.array(outcome)) / -float(law.rate)
    after = law.log_masses(np.array(outcome) - np.array(moves)) / -float(law.rate)
    levels = Fraction(round(abs(float((after - before).sum()))))
    assert levels * law.rate <= law.epsilon_cost(Exposure(moved))


@given(laws())
def test_a_whole_level_costs_all_of_epsilon(law: DiscreteStaircase) -> None:
    moved = ExactSensitivity(1, Fraction(law.width), Fraction(0), Fraction(law.width))
    assert law.epsilon_cost(Exposure(moved)) == law.rate
    one, other = law.log_masses(np.array([law.inner - 1, law.inner - 1 + law.width]))
    assert one - other == pytest.approx(float(law.rate))
    assert law.rho_cost(Exposure(moved)) == law.rate**2 / 2
    (event,) = law.events(Exposure(moved))
    assert event.to_dict() == {
        "event": "RandomizedResponseEvent",
        "epsilon": str(law.rate),
        "categories": "2",
    }


@given(laws())
def test_error_is_that_of_the_law(law: DiscreteStaircase) -> None:
    known = masses(law, far(law))
    assert sum(known.values()) == pytest.approx(1)
    assert law.variance() == pytest.approx(sum(x * x * p for x, p in known.items()))
    for at in (-law.width - 3, -law.inner, -1, 0, law.inner - 1, law.inner, 2 * law.width + 1):
        beyond = sum(p for x, p in known.items() if x > at)
        assert law.above(np.array([at, at + 0.5])).tolist() == pytest.approx([beyond, beyond])
    a = law.quantile(0.95)
    within = [sum(p for x, p in known.items() if abs(x) <= most) for most in (a, a - 1)]
    assert within[0] >= 0.95 - 1e-12
    assert within[1] < 0.95 + 1e-12
    assert law.quantile(0.95, 3) >= a


@pytest.mark.parametrize("parameters", [("1/8", 5, 2), ("2", 7, 3), ("6", 9, 1), ("3/2", 1, 1)])
def test_draws_have_the_law(parameters: tuple[str, int, int]) -> None:
    """By a chi-squared statistic: 200 draws of each cell, at most 6 deviations above its mean."""
    rate, width, inner = parameters
    law, number = DiscreteStaircase(Fraction(rate), width, inner), 100_000
    drawn = draw_noise(law.kernel_law, number, Seeded(5))
    known = masses(law, far(law))
    cells = {x: p for x, p in known.items() if p * number > 200}
    counts = {x: int((drawn == x).sum()) for x in cells}
    rest = number - sum(counts.values()), number * (1 - sum(cells.values()))
    pairs = [*((counts[x], number * p) for x, p in cells.items()), rest]
    statistic = sum((seen - mean) ** 2 / max(mean, 1.0) for seen, mean in pairs)
    assert statistic < len(pairs) + 6 * math.sqrt(2 * len(pairs))


def test_far_levels_are_drawn_and_wrap() -> None:
    """The table of levels ends; beyond it a geometric number chooses, in numbers of any size."""

    class High(Seeded):
        """Words that are all ones choose the last index of the table."""

        def u64(self, n: int) -> Any:
            return np.full(n, 2**64 - 1, np.uint64)

        def int64bits(self) -> int:
            return 2**64 - 1

    rate = Fraction(8)
    drawn = staircase(rate, 8, 2, 3, High(1))  # a width of 8 takes any word for a place
    assert (np.abs(drawn) >= 2 + 8 * (int(44 / rate) + 1)).all()
    wide = staircase(Fraction(1, 8), 1 << 56, 1, 200, Seeded(2))
    assert wide.dtype == np.int64


@pytest.mark.parametrize("bad", [(0, 1, 1), (65, 1, 1), (1, 0, 1), (1, 3, 4), (1, 2**57, 1)])
def test_parameters_out_of_range_are_refused(bad: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="out of"):
        DiscreteStaircase(Fraction(bad[0]), bad[1], bad[2])
    with pytest.raises(ValueError, match="out of"):
        staircase(Fraction(bad[0]), bad[1], bad[2], 1)


@given(rates, st.integers(1, 60))
def test_the_first_level_has_the_least_variance(rate: Fraction, width: int) -> None:
    best = min(DiscreteStaircase(rate, width, r).variance() for r in range(1, width + 1))
    chosen = DiscreteStaircase(rate, width, least_inner(rate, width)).variance()
    assert chosen <= best * (1 + 1e-9)


@pytest.mark.parametrize("rate", [Fraction(32), Fraction(64)])
def test_a_narrow_first_level_has_one_place(rate: Fraction) -> None:
    assert [least_inner(rate, width) for width in (1, 1024, 5000)] == [1, 1, 1]


def plan_of(spend: dict[str, Any], frame: pl.DataFrame | None = None, **noise: Any) -> dp.Plan:
    rows = pl.DataFrame({"g": ["a", "b"], "x": [1.0, 2.0]}) if frame is None else frame
    people = dp.Session(**spend).protect(rows, dp.Rows())
    return people.agg(dp.sum("x", (0, 1000), **noise)).plan(**spend)


@given(st.fractions(Fraction(1, 8), 64, max_denominator=40), st.integers(1, 2**56))
def test_the_first_level_is_never_empty(rate: Fraction, width: int) -> None:
    """Also where large rates make its share of a wide level less than one magnitude."""
    assert 1 <= least_inner(rate, width) <= width


def test_the_first_level_of_a_large_rate_has_one_magnitude() -> None:
    assert least_inner(Fraction(45), 858993460) == 1


@pytest.mark.parametrize("epsilon", [2, 3, 4, 6])
def test_a_sum_alone_is_drawn_by_it_where_it_errs_less(epsilon: int) -> None:
    """Within 1.02 of the deviation of the continuous staircase (Geng and Viswanath 2015), which no
    noise for all sums can be below.
    """
    plan = plan_of({"epsilon": epsilon})
    (release,) = plan.releases
    assert release.mechanism == "discrete_staircase"
    assert plan.cost == dp.PureDP(epsilon)
    assert "less expected error here than discrete Laplace" in plan.explain(details=True)
    b = math.exp(-epsilon)
    least = 2 ** (-2 / 3) * b ** (2 / 3) * (1 + b) ** (2 / 3) + b
    deviation = 1000 * math.sqrt(least) / (1 - b)
    (document,) = json.loads(plan.to_json())["plan"]["releases"]
    parameters = document["law"]
    law = DiscreteStaircase(Fraction(parameters["rate"]), parameters["width"], parameters["inner"])
    assert math.sqrt(law.variance()) * float(Fraction(document["step"])) <= 1.02 * deviation
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint


@pytest.mark.parametrize(
    ("spend", "noise"),
    [
        ({"epsilon": 0.5}, {}),
        ({"epsilon": 4, "delta": 1e-6}, {}),
        ({"rho": 4}, {}),
        ({"epsilon": 4}, {"mechanism": "discrete_laplace"}),
    ],
)
def test_elsewhere_it_is_not_chosen(spend: dict[str, Any], noise: dict[str, Any]) -> None:
    (release,) = plan_of(spend, **noise).releases
    assert release.mechanism in ("discrete_laplace", "discrete_gaussian")


def test_it_may_be_asked_for() -> None:
    (release,) = plan_of({"epsilon": 0.5}, mechanism="discrete_staircase").releases
    assert release.mechanism == "discrete_staircase"
    with pytest.raises(dp.UnsupportedOperation, match="pure DP"):
        plan_of({"rho": 1}, mechanism="discrete_staircase")


def test_results_have_its_intervals() -> None:
    rows = pl.DataFrame({"x": [500.0] * 100})
    people = dp.Session(epsilon=10**6).protect(rows, dp.Rows())
    query = people.agg(dp.sum("x", (0, 1000)))
    results = [query.collect(epsilon=4, interval=0.95).row(0) for _ in range(40)]
    held = sum(low <= 50_000 <= high for _, low, high in results)
    assert held >= 33  # 38 are expected


def test_small_counts_are_no_better_by_it() -> None:
    law = DiscreteStaircase(Fraction(2), 1, 1)
    assert law.variance() == pytest.approx(DiscreteLaplace(Fraction(1, 2)).variance())
