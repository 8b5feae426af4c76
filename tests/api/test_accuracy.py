"""What plans say of accuracy, against formulas written out here."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from tests.api.exactly import ENOUGH

ROWS = pl.LazyFrame(
    schema={"x": pl.Int64, "y": pl.Float64, "g": pl.Enum(list("abcde")), "t": pl.Boolean}
)


def laplace(scale: float, confidence: float, cells: int = 1) -> int:
    """The smallest a with P(|Z| <= a)**cells >= confidence for P(Z = z) ~ exp(-|z| / scale)."""
    missed = 1 - confidence ** (1 / cells)
    decay = math.exp(-1 / scale)  # P(|Z| > a) = 2 decay**(a + 1) / (1 + decay)
    a = math.ceil(math.log(missed * (1 + decay) / 2) / math.log(decay) - 1)
    return max(0, a)


def gaussian(sigma: float, confidence: float, cells: int = 1) -> int:
    """The same for P(Z = z) ~ exp(-z**2 / (2 sigma**2)), by summation."""
    reach = int(20 * sigma) + 2
    density = np.exp(-(np.arange(reach, dtype=float) ** 2) / (2 * sigma**2))
    mass = np.concatenate(([density[0]], 2 * density[1:]))
    inside = np.cumsum(mass) / mass.sum()
    return int(np.argmax(inside >= confidence ** (1 / cells)))


def query(
    *outputs: pl.Expr, by: str | None = None, unit: dp.Rows | None = None, **budget: Any
) -> Any:
    people = dp.Session(**(budget or {"epsilon": ENOUGH})).protect(ROWS, unit or dp.Rows())
    return (people if by is None else people.group_by(by)).agg(*outputs)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999999])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.7, 1, 3])
@pytest.mark.parametrize(("by", "cells"), [(None, 1), ("t", 2), ("g", 5)])
def test_counts_under_pure_dp(
    epsilon: float, confidence: float, by: str | None, cells: int
) -> None:
    plan = query(dp.count().alias("n"), by=by).plan(epsilon=epsilon)
    assert plan.accuracy("n", confidence) == laplace(1 / epsilon, confidence)
    every = plan.accuracy("n", confidence, simultaneous=True)
    assert every == laplace(1 / epsilon, confidence, cells)
    (release,) = plan.releases
    assert release.accuracy(confidence) == plan.accuracy("n", confidence)
    assert release.accuracy(confidence, simultaneous=True) == every


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("rho", [0.001, 0.05, 1])
@pytest.mark.parametrize(("by", "cells"), [(None, 1), ("g", 5)])
def test_counts_under_zcdp(rho: float, confidence: float, by: str | None, cells: int) -> None:
    plan = query(dp.count(mechanism="discrete_gaussian").alias("n"), by=by, rho=9).plan(rho=rho)
    sigma = math.sqrt(1 / (2 * rho))
    assert plan.accuracy("n", confidence) == gaussian(sigma, confidence)
    assert plan.accuracy("n", confidence, simultaneous=True) == gaussian(sigma, confidence, cells)


def test_sums_are_in_the_units_of_their_values() -> None:
    plan = query(dp.sum("x", (-30, 10)).alias("s"), by="g").plan(epsilon=0.5)
    assert plan.accuracy("s") == laplace(30 / 0.5, 0.95)
    assert plan.accuracy("s", simultaneous=True) == laplace(30 / 0.5, 0.95, 5)
    floats = query(dp.sum("y", (0, 0.5))).plan(epsilon=0.5)
    assert floats.accuracy("y") == pytest.approx(-math.log(0.05), rel=1e-6)


def test_the_unit_widens_the_noise() -> None:
    three = query(dp.count(), by="g", unit=dp.Rows(contributions=3)).plan(epsilon=1)
    assert three.accuracy("len") == laplace(3, 0.95)
    changed = query(dp.count(), by="g", unit=dp.Rows("change-one")).plan(epsilon=1)
    assert changed.accuracy("len") == laplace(2, 0.95)
    public = query(dp.count(), unit=dp.Rows("change-one")).plan(epsilon=1)
    assert public.accuracy("len") == 0


def test_histograms_count_every_bin_of_every_group() -> None:
    histogram = dp.histogram("t", other=True)
    plan = query(histogram.alias("h"), by="g").plan(epsilon=1)
    assert plan.accuracy("h", simultaneous=True) == laplace(1, 0.95, 5 * 3)


def test_a_mean_of_known_size_errs_by_the_noise_of_its_sum_and_count_together() -> None:
    """X - h Y over n, for continuous noises X and h Y of one scale: a law of a closed form."""
    apart = dp.mean("x", (0, 100), mechanism="discrete_laplace")
    plan = query(apart.alias("m")).plan(epsilon="0.01")
    scale, n = 50 / 0.005, 10**9
    found = plan.accuracy("m", count=n) * n / scale  # P(|X - hY| > a) = (1 + a / 2) exp(-a)
    assert (1 + found / 2) * math.exp(-found) == pytest.approx(0.05, rel=0.05)
    assert plan.accuracy("m") == 100
    assert plan.accuracy("m", count=1) == 100


def test_a_mean_drawn_at_once_errs_by_the_law_of_its_box() -> None:
    """Sum X and count Y are w R times independent uniforms in [-1, 1], R a Gamma variable of shape
    3. At the middle of the bounds only X counts, and P(|X| > a) = (1 + a / 2) exp(-a); at either
    end X - Y, and P(|X - Y| > a) = exp(-a / 2), both by integration over R.
    """
    people = dp.Session(epsilon=1).protect(ROWS, dp.Rows()).drop_nulls("x")
    plan = people.agg(m=dp.mean("x", (0, 100))).plan(epsilon="0.01")
    assert {release.mechanism for release in plan.releases} == {"discrete_box"}
    width, n = 50 / 0.01, 10**9
    worst = plan.accuracy("m", count=n) * n / width
    assert math.exp(-worst / 2) == pytest.approx(0.05, rel=0.05)
    middle = plan.accuracy("m", count=n, guess=50) * n / width
    assert (1 + middle / 2) * math.exp(-middle) == pytest.approx(0.05, rel=0.05)
    assert plan.accuracy("m") == plan.accuracy("m", count=1) == 100


@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_numbers_drawn_together_err_by_the_law_of_their_box(epsilon: float) -> None:
    """With (n, 2 s - 5 n) in the box of widths (1, 5): n = R U and s = 5 (R U + R V) / 2, with U
    and V uniform and R a Gamma variable of shape 3. P(|R U| > a) = (1 + a / 2) exp(-a), and
    P(|R U + R V| > a) = exp(-a / 2), by integration over R; rounding adds less than one step.
    """
    people = dp.Session(epsilon=1).protect(ROWS, dp.Rows()).drop_nulls("x")
    plan = people.agg(n=dp.count(), s=dp.sum("x", (0, 5))).plan(epsilon=epsilon)
    n, s = (r.noise for r in plan.releases)
    assert (n.name, s.name) == ("discrete_box", "discrete_box")
    for confidence in (0.5, 0.95, 0.999):
        one = plan.accuracy("n", confidence)
        assert _within(one, epsilon, lambda a: (1 + a / 2) * math.exp(-a), 1 - confidence)
        other = plan.accuracy("s", confidence)
        assert _within(other, 2 * epsilon / 5, lambda a: math.exp(-a / 2), 1 - confidence)


def _within(stated: float, scale: float, missed: Callable[[float], float], allowed: float) -> bool:
    """Whether so many whole steps are what a continuous law says, but for one step and 1%."""
    return (
        missed((stated * 1.01 + 1) * scale) <= allowed
        and missed(max(0.0, stated * 0.99 - 1) * scale) >= allowed
    )


def test_choices_err_by_their_score() -> None:
    plan = query(dp.argmax("g").alias("best")).plan(epsilon=0.5)
    (release,) = plan.releases
    expected = math.log((5 - 1) / 2 / 0.05) / 0.5  # permute-and-flip: half the odds, four times
    assert plan.accuracy("best") == release.accuracy() == pytest.approx(expected)
    exponential = query(dp.argmax("g", mechanism="exponential").alias("best")).plan(epsilon=0.5)
    assert exponential.accuracy("best") == pytest.approx(math.log(5 / 0.05) / 0.5)
    median = query(dp.median("x", (0, 99)).alias("m")).plan(epsilon=0.5)
    assert median.accuracy("m") == pytest.approx(2 * 0.5 * math.log(100 / 0.05) / 0.5)
    grouped = query(dp.argmax("t").alias("best"), by="g").plan(epsilon=0.5)
    assert grouped.accuracy("best", simultaneous=True) == pytest.approx(
        math.log(1 / 2 / (0.05 / 5)) / 0.5
    )


def test_shares_and_weights_decide_the_noise() -> None:
    s = dp.sum("x", (0, 5), mechanism="discrete_laplace", weight=3)
    outputs = (dp.count(mechanism="discrete_laplace").alias("n"), s.alias("s"))
    plan = query(*outputs).plan(epsilon=1)
    assert plan.accuracy("n") == laplace(4, 0.95)
    assert plan.accuracy("s") == laplace(5 / 0.75, 0.95)


def test_weights_decide_the_noise_of_one_gaussian_draw() -> None:
    """The more weight, the less noise, for the other numbers of the draw the more."""
    noise = []
    for weight in (1, 4, 16):
        outputs = (dp.count().alias("n"), dp.sum("x", (0, 9), weight=weight).alias("s"))
        plan = query(*outputs, dp.sum("y", (0, 9)).alias("t"), rho=1).plan(rho="0.1")
        assert len(plan.draws) == 1
        noise.append([release.scale for release in plan.releases])
    (n, s, t), *others = noise
    assert s == pytest.approx(t, rel=0.01)
    for heavier in others:
        assert heavier[0] > n
        assert heavier[1] < s
        assert heavier[2] > t
        n, s, t = heavier


@pytest.mark.parametrize("confidence", ["0.95", Fraction(19, 20), 0.95])
def test_a_confidence_may_be_any_kind_of_number(confidence: Any) -> None:
    assert query(dp.count()).plan(epsilon=1).accuracy("len", confidence) == laplace(1, 0.95)


def test_what_has_no_accuracy_is_refused() -> None:
    plan = query((dp.sum("x", (0, 9)) / dp.count()).alias("r"), dp.count().alias("n")).plan(
        epsilon=1
    )
    with pytest.raises(dp.UnsupportedOperation, match="depends on the data"):
        plan.accuracy("r")
    with pytest.raises(dp.UnknownColumn):
        plan.accuracy("m")
    for confidence in (0, 1, 95, -0.5, math.nan, "much"):
        with pytest.raises(dp.InvalidBounds):
            plan.accuracy("n", confidence)


def test_errors_stay_within_the_accuracy_as_often_as_it_says() -> None:
    keys = [str(i) for i in range(4000)]
    session = dp.Session(epsilon=ENOUGH)
    frame = pl.DataFrame({"g": keys, "x": [7] * len(keys)})
    grouped = session.protect(frame, dp.Rows()).group_by("g", keys=keys)
    asked = grouped.agg(n=dp.count(), s=dp.sum("x", (0, 9)))
    plan, result = asked.plan(epsilon=1), asked.collect(epsilon=1)
    for name, true in (("n", 1), ("s", 7)):
        errors = (result[name] - true).abs()
        inside = (errors <= plan.accuracy(name, 0.9)).mean()
        assert isinstance(inside, float)
        assert 0.88 < inside < 0.99  # the chance to fail is below 1e-4
        assert (errors <= plan.accuracy(name, 1 - 1e-9, simultaneous=True)).all()
