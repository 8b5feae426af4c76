"""What plans say of the errors of means, variances and deviations: enough for all data of a size,
and hardly more than the worst of them need.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.error import MeanErrors, VarianceErrors, error_quantile
from dpframe.aggregates.noise import Independent, Slices
from dpframe.mechanisms import DiscreteGaussian, DiscreteLaplace, NoNoise, RoundedLaplace
from tests.aggregates.cases import KINDS, Case, Data, Floats, worst_like

SPENDS: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": 1},
    "much": {"epsilon": 30},
    "little": {"epsilon": "0.02"},
    "gaussian": {"rho": "0.1"},
    "approximate": {"epsilon": "0.5", "delta": "1e-8"},
}
BOUNDS = {
    "laplace": (0, 100),
    "much": (-1e-6, 3e-6),
    "little": (-1e12, 1e12),
    "gaussian": (17, 90),
    "approximate": (0.0, 1.0),
}


def covered_and_ratio(case: Case, count: int, runs: int, **said: Any) -> tuple[float, float]:
    """How often errors stay within what the plan says, at least; and how much that is beside the
    95% error of the worst data tried.
    """
    said_error = case.plan.accuracy("x", count=count, **said)
    largest = case.half if case.kind != "var" else case.half**2
    worst, covered = 0.0, 1.0
    for seed, data in enumerate(worst_like(count, min(1.0, said_error / largest))):
        errors = case.errors(data, runs, seed)
        if errors.size > runs / 50:
            worst = max(worst, float(np.quantile(errors, 0.95, method="higher")))
            slack = 4 * math.sqrt(0.95 * 0.05 / errors.size)
            covered = min(covered, float((errors <= said_error).mean()) + slack)
    return covered, said_error / worst


@pytest.mark.parametrize(("name", "count"), [("laplace", 3), ("gaussian", 40), ("laplace", 10**6)])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_stay_within_what_plans_say(kind: str, name: str, count: int) -> None:
    covered, ratio = covered_and_ratio(Case(kind, BOUNDS[name], SPENDS[name]), count, 3000)
    assert covered >= 0.95
    assert ratio <= 1.2


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 5, 10, 30, 100, 300, 1000, 10**4, 10**6])
@pytest.mark.parametrize("name", SPENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_errors_stay_within_what_plans_say_for_all_sizes(kind: str, name: str, count: int) -> None:
    case = Case(kind, BOUNDS[name], SPENDS[name])
    if count <= case.ddof:
        return
    covered, ratio = covered_and_ratio(case, count, 40_000)
    assert covered >= 0.95
    assert ratio <= 1.2


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize("values", [pl.Boolean, pl.Int32, pl.Float32])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_under_other_units_and_types(kind: str, values: Any, adjacency: Any) -> None:
    bounds = (0, 1) if values == pl.Boolean else (-7, 20)
    unit = dp.Rows(adjacency, contributions=3)
    case = Case(kind, bounds, {"epsilon": 2}, values=values, unit=unit)
    for count in (4, 40, 4000):
        covered, ratio = covered_and_ratio(case, count, 50_000)
        assert covered >= 0.95
        assert ratio <= 1.25 if count == 4 else 1.2


@pytest.mark.slow
@pytest.mark.parametrize("ddof", [0, 1, 3])
def test_errors_of_variances_with_other_divisors(ddof: int) -> None:
    for kind in ("var", "std"):
        covered, ratio = covered_and_ratio(
            Case(kind, (0, 4), {"epsilon": 1}, ddof=ddof), 50, 50_000
        )
        assert covered >= 0.95
        assert ratio <= 1.2


# ---------------------------------------------------------------------------------------- guesses


@pytest.mark.parametrize(
    "data",
    [Data(500, 0.0, 0.3), Data(2000, -0.97, 0.5), Data(60, 0.6, 1.0)],
    ids=str,
)
@pytest.mark.parametrize("name", ["gaussian", pytest.param("laplace", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_guess_says_the_error_of_data_like_it(kind: str, name: str, data: Data) -> None:
    case = Case(kind, BOUNDS[name], SPENDS[name])
    mean = data.mean * case.half + sum(case.bounds) / 2
    plain = data.variance(case.half) * data.count / (data.count - 1)
    guess = {"mean": mean, "std": math.sqrt(plain)}
    said = case.plan.accuracy("x", count=data.count, guess=guess)
    errors = case.errors(data, 20_000, 1)
    assert said <= case.plan.accuracy("x", count=data.count) * 1.01
    assert (errors <= said).mean() >= 0.95 - 0.006
    assert said <= 1.2 * np.quantile(errors, 0.95)


def test_a_guess_is_a_number_a_mapping_or_public_values() -> None:
    mean = Case("mean", (0, 100), {"epsilon": 1}).plan
    exact = mean.accuracy("x", count=200, guess=40)
    assert exact == mean.accuracy("x", guess={"mean": 40, "count": 200})
    assert exact == mean.accuracy("x", count=np.int64(200), guess=np.float32(40))
    values = pl.Series([30.0, 50.0, None, math.nan] * 100)
    assert exact == mean.accuracy("x", guess=values)
    assert exact == mean.accuracy("x", guess=values.append(pl.Series([40.0] * 9)), count=200)
    assert mean.accuracy("x", guess=pl.Series([-900.0, 900.0] * 100)) == mean.accuracy(
        "x", guess=50, count=200
    )
    assert exact < mean.accuracy("x", count=200)
    assert mean.accuracy("x", guess=40) == 60  # what clamping guarantees
    var = Case("var", (0, 100), {"epsilon": 1}).plan
    half = var.accuracy("x", count=200, guess=400)
    assert half == var.accuracy("x", count=200, guess={"var": 400})
    assert half == pytest.approx(var.accuracy("x", count=200, guess={"std": 20}))
    assert var.accuracy("x", count=200, guess={"std": 20, "mean": 50}) < half
    assert half < var.accuracy("x", count=200)
    std = Case("std", (0, 100), {"epsilon": 1}).plan
    known = std.accuracy("x", count=200, guess=20)
    assert known == std.accuracy("x", count=200, guess={"std": 20})
    assert std.accuracy("x", count=200, guess=values) <= std.accuracy("x", count=200)


def test_a_guess_of_moments_is_of_the_type_of_the_column() -> None:
    from datetime import date

    frame = pl.LazyFrame(schema={"d": pl.Date})
    people = dp.Session(epsilon=1).protect(frame, dp.Rows())
    bounds = (date(2020, 1, 1), date(2030, 1, 1))
    plan = people.agg(pl.col("d").dp_mean(bounds)).plan(epsilon=1)
    found = plan.accuracy("d", count=100, guess=date(2025, 1, 1))
    assert found == plan.accuracy("d", count=100, guess=pl.Series([date(2025, 1, 1)] * 3))
    assert found < plan.accuracy("d", count=100, guess=date(2029, 6, 1))


@pytest.mark.parametrize(
    "guess",
    ["much", math.nan, math.inf, True, {"median": 3}, {"std": -1}, [1, 2], pl.Series(["a"])],
    ids=repr,
)
def test_other_guesses_are_refused(guess: Any) -> None:
    with pytest.raises(dp.InvalidBounds, match="guess"):
        Case("mean", (0, 100), {"epsilon": 1}).plan.accuracy("x", count=100, guess=guess)


@pytest.mark.parametrize("count", ["many", math.nan, -1, True])
def test_other_counts_are_refused(count: Any) -> None:
    with pytest.raises(dp.InvalidBounds, match="count"):
        Case("mean", (0, 100), {"epsilon": 1}).plan.accuracy("x", count=count)


# ----------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("kind", KINDS)
def test_errors_fall_with_the_count_and_rise_with_the_confidence(kind: str) -> None:
    plan = Case(kind, (0, 100), {"epsilon": 1}).plan
    largest = {"mean": 100, "var": 5000, "std": math.sqrt(5000)}[kind]
    assert plan.accuracy("x") == pytest.approx(largest)
    assert plan.accuracy("x", count=0) == pytest.approx(largest)
    assert plan.accuracy("x", count=1) == pytest.approx(largest)
    found = [plan.accuracy("x", count=n) for n in (3, 30, 1000, 10**9)]
    assert found == sorted(found, reverse=True)
    levels = [plan.accuracy("x", c, count=1000) for c in (0.5, 0.95, 1 - 1e-9)]
    assert levels == sorted(levels)


def test_errors_of_all_groups_together_are_larger() -> None:
    frame = pl.LazyFrame(schema={"x": pl.Int64, "g": pl.Int64})
    people = dp.Session(epsilon=1).protect(frame, dp.Rows())
    plan = people.group_by("g", keys=range(50)).agg(pl.col("x").dp_mean((0, 9))).plan(epsilon=1)
    every = plan.accuracy("x", count=500, simultaneous=True)
    assert every == plan.accuracy("x", 1 - Fraction(1, 1000), count=500)
    assert every > plan.accuracy("x", count=500)


# ------------------------------------------------------------------------------------ joint noise

LAWS = [
    DiscreteLaplace(Fraction(1, 3)),
    DiscreteLaplace(Fraction(31)),
    DiscreteLaplace(Fraction(2**31)),
    RoundedLaplace(Fraction(29, 2)),
    RoundedLaplace(Fraction(2**31)),
    DiscreteGaussian(Fraction(1, 5)),
    DiscreteGaussian(Fraction(60**2)),
    DiscreteGaussian(Fraction(2**62)),
    NoNoise(),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_slices_are_the_law_but_for_a_little_more_spread(law: Any) -> None:
    first = DiscreteLaplace(Fraction(2**30))
    noise = Independent(((first, Fraction(1)), (law, Fraction(1, 4))))
    slices = noise.slices(0.05, (1e9,))
    (values,) = slices.others
    assert slices.weights.sum() == pytest.approx(1, abs=1e-6)
    assert slices.weights @ values == pytest.approx(0, abs=1e-9 * max(1, law.variance()))
    variance = law.variance() / 16
    assert variance * 0.99 <= slices.weights @ values**2 <= variance * 1.02 + 1e-12
    gap = float(np.diff(values).max()) if values.size > 1 else 0.0
    for confidence in (0.5, 0.95, 0.999):
        a = law.quantile(confidence) / 4
        beyond = float(slices.weights[np.abs(values) > a + gap].sum())
        assert beyond <= (1 - confidence) * 1.001


def test_what_is_outside_a_window_is_the_sum_over_slices() -> None:
    scale, other = DiscreteLaplace(Fraction(7)), DiscreteLaplace(Fraction(3))
    slices = Independent(((scale, Fraction(1)), (other, Fraction(1)))).slices(0.05, (1.0,))
    (y,) = slices.others
    reach = np.arange(-600, 601, dtype=np.float64)

    def mass(law: DiscreteLaplace) -> Floats:
        weights = np.exp(-np.abs(reach) / float(law.scale))
        return np.asarray(weights / weights.sum())

    table = mass(scale)[:, None] * mass(other)[None, :]
    exact = table[np.abs(reach[:, None] - 2 * reach[None, :]) > 20].sum()
    found = slices.outside(2 * y - 20, 2 * y + 20)
    assert found == pytest.approx(exact, rel=1e-4)


class Correlated:
    """Two noises that are one Gaussian number, and a little noise of their own."""

    def __init__(self, share: float) -> None:
        self.share = share

    even = False

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        z = np.linspace(-8, 8, 401)
        weights = np.exp(-z * z / 2)
        own, centre = NormalLaw(math.sqrt(1 - self.share**2)), self.share * z

        def above(x: Floats) -> Floats:
            return own.above(x - centre)

        def below(x: Floats) -> Floats:
            return own.above(centre - x)

        return Slices(weights / weights.sum(), (z,), above, below)


class NormalLaw:
    def __init__(self, sigma: float) -> None:
        self.above: Callable[[Floats], Floats] = np.vectorize(
            lambda x: math.erfc(x / sigma / math.sqrt(2)) / 2
        )


@pytest.mark.parametrize("share", [-0.9, 0.0, 0.9])
def test_noises_that_are_drawn_together_have_the_errors_of_their_joint_law(share: float) -> None:
    """For large n the worst error is that of X - m Y at m = h or -h, whichever spreads more."""
    found = error_quantile(MeanErrors(1.0, 10**6), Correlated(share), Fraction(95, 100))
    sigma = math.sqrt(2 + 2 * abs(share))
    assert found == pytest.approx(1.96 * sigma / 10**6, rel=0.01)


def test_variances_of_a_known_mean_and_variance_have_the_error_of_their_linear_part() -> None:
    law = (DiscreteGaussian(Fraction(2**60)), Fraction(1, 2**30))
    errors = VarianceErrors(1.0, 10**7, 1, False, mean=0.5, variance=0.25)
    found = error_quantile(errors, Independent((law, law, law)), Fraction(95, 100))
    sigma = math.sqrt(1 + 1 + 0.5**2)  # 1, 2 m and h^2/2 + m^2 - V
    assert found == pytest.approx(1.96 * sigma / 10**7, rel=0.01)
