"""Intervals of means, variances, deviations, sums and ratios: they hold the exact results of all
data, however few, and are hardly wider than the errors are.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.mean import _down, _factor, _fieller, _Rule, _up, variance_ends
from dpframe.aggregates.noise import Independent, noise_law
from dpframe.aggregates.ratio import ratio_ends, sum_reach
from dpframe.mechanisms import CombinedNoise, DiscreteGaussian, DiscreteLaplace
from dpframe.mechanisms.noise import noise as draw_noise
from tests.aggregates.cases import KINDS, Case, Data, Floats
from tests.aggregates.test_derived_error import BOUNDS, SPENDS
from tests.samplers.seeded import Seeded

LEVEL = Fraction(95, 100)
SHAPES = [(1.0, 0.0), (-0.9, 0.0), (0.9, 1.0), (0.5, 0.4), (0.0, 0.3), (0.0, 1.0), (0.0, 0.0)]


def ends(case: Case, data: Data, runs: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Results and both ends; NaN for null."""
    noisy = case.noisy(data, runs, seed)
    noise = Independent(tuple(case.laws))
    found = case.aggregate.interval(noisy, noise, LEVEL)
    assert found is not None
    low, high = (end.cast(pl.Float64).to_numpy() for end in found)
    return case.released(noisy), low, high


def check(case: Case, data: Data, runs: int, seed: int, widest: float | None) -> None:
    """Coverage, and the width beside the error of data that are not clamped."""
    released, low, high = ends(case, data, runs, seed)
    null = np.isnan(released)
    assert not np.isnan(low + high).any()
    assert ((low <= released) & (released <= high))[~null].all()
    truth = case.truth(data)
    slack = 1e-9 * case.half
    held = float(((low - slack <= truth) & (truth <= high + slack)).mean())
    assert held >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs), (data, held)
    if widest is not None:
        error = float(np.quantile(np.abs(released - truth)[~null], 0.95))
        assert float(np.median(high - low)) / 2 <= widest * error, data


@pytest.mark.parametrize(("name", "count"), [("laplace", 200), ("gaussian", 10**5)])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_exact_results(kind: str, name: str, count: int) -> None:
    case = Case(kind, BOUNDS[name], SPENDS[name])
    for seed, (mean, spread) in enumerate(SHAPES[1:5:3]):
        check(case, Data(count, mean, spread), 3000, seed, 1.2)


@pytest.mark.parametrize("count", [2, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_few_values_hold_them(kind: str, count: int) -> None:
    case = Case(kind, (0, 100), {"rho": "0.1"})
    for seed, (mean, spread) in enumerate(((1.0, 0.0), (0.0, 1.0))):
        check(case, Data(count, mean, spread), 3000, seed, None)


@pytest.mark.parametrize("kind", ["var", "std"])
def test_intervals_of_few_values_far_apart_hold_them_with_little_noise(kind: str) -> None:
    """With a divisor of N - 1 their variance is twice what it is with N."""
    check(Case(kind, (0, 100), {"rho": 100}), Data(2, 0.0, 1.0), 3000, 1, None)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 5, 10, 20, 50, 100, 200, 500, 2000, 10**6])
@pytest.mark.parametrize("name", SPENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_exact_results_of_all_sizes(kind: str, name: str, count: int) -> None:
    case = Case(kind, BOUNDS[name], SPENDS[name])
    noise = Independent(tuple(case.laws))
    many = count >= 30 * max(1, noise.reach(len(case.laws) - 1, Fraction(1, 2)))
    for seed, (mean, spread) in enumerate(SHAPES):
        inside = many and (mean, spread) not in ((0.0, 0.0), (-0.9, 0.0))
        check(case, Data(count, mean, spread), 40_000, seed, 1.2 if inside else None)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize("values", [pl.Boolean, pl.Int32, pl.Float32])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_under_other_units_and_types(kind: str, values: Any, adjacency: Any) -> None:
    bounds = (0, 1) if values == pl.Boolean else (-7, 20)
    unit = dp.Rows(adjacency, contributions=3)
    case = Case(kind, bounds, {"epsilon": 2}, values=values, unit=unit)
    for count in (2, 9, 40, 4000):
        for mean, spread in ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5)):
            check(case, Data(count, mean, spread), 20_000, count, None)


@pytest.mark.parametrize("ddof", [0, 3])
def test_intervals_of_variances_with_other_divisors(ddof: int) -> None:
    case = Case("var", (0, 4), {"rho": "0.5"}, ddof=ddof)
    for count in (5, 60):
        check(case, Data(count, 0.5, 1.0), 3000, count, None)


def test_null_results_have_intervals_that_hold_what_is_exact() -> None:
    case = Case("mean", (0, 100), {"epsilon": "0.05"})
    released, low, high = ends(case, Data(5, 0.9, 0.0), 2000, 1)
    null = np.isnan(released)
    assert 0.2 < null.mean() < 0.8
    assert (low[null] >= 0).all()
    assert (high[null] <= 100).all()
    assert ((low <= 95) & (high >= 95)).mean() > 0.94


def test_empty_groups_have_intervals() -> None:
    frame = pl.DataFrame({"g": ["a"] * 900, "x": [float(i % 7) for i in range(900)]})
    people = dp.Session(epsilon=10**6).protect(frame, dp.Rows())
    grouped = people.group_by("g", keys=["a", "b"])
    outputs = {kind: getattr(pl.col("x"), f"dp_{kind}")((0, 6)) for kind in KINDS}
    found = grouped.agg(**outputs, r=pl.col("x").dp_sum((0, 6)) / dp.count()).collect(
        epsilon=20, interval=0.95
    )
    for kind in KINDS:
        low, high = found[f"{kind}_low"], found[f"{kind}_high"]
        assert low.null_count() == high.null_count() == 0
        assert (low <= high).all()
        assert high[0] - low[0] < high[1] - low[1]
    assert found["r_low"][0] is not None
    assert found["r_low"][1] is None or found["r_low"][1] <= found["r_high"][1]


def test_means_are_those_that_noise_of_their_cell_explains() -> None:
    """All m with |total - m count| <= q of their cell, among many; counts of 0 and below too."""
    knots, reach = np.linspace(-2.0, 2.0, 5), np.array([3.0, 1.0, 1.0, 3.0])
    tried = np.linspace(-2.0, 2.0, 4001)
    q = np.maximum(
        reach[np.clip(np.searchsorted(knots, tried, "left") - 1, 0, 3)],
        reach[np.clip(np.searchsorted(knots, tried, "right") - 1, 0, 3)],
    )
    pairs = [(t, n) for t in np.arange(-5.0, 5.5, 0.5) for n in (-3.0, -1.0, 0.0, 1.0, 2.0, 40.0)]
    total, count = np.array(pairs).T
    low, high = _fieller(total, count, knots, reach)
    for t, n, least, most in zip(total, count, low, high, strict=True):
        held = tried[np.abs(t - tried * n) <= q]
        assert np.isnan(least) == np.isnan(most)
        if held.size:
            assert least == pytest.approx(held.min(), abs=1.1e-3)
            assert most == pytest.approx(held.max(), abs=1.1e-3)
        else:
            assert np.isnan(least) or most - least < 1.1e-3


@pytest.mark.parametrize("half", [1.0, 2.0**-536], ids=["plain", "next to nothing"])
@pytest.mark.parametrize("count", [3, 6])
def test_intervals_of_variances_of_few_values_hold_them_beside_a_wide_sum(
    count: int, half: float
) -> None:
    """Noise of the sum is many values wide, and its square decides; or floats lose all digits."""
    runs, unit = 4000, Fraction(half)
    laws = [(2, unit**2 / 32), (2, unit / 2), (Fraction(1, 4), Fraction(1))]
    noise = Independent(tuple((DiscreteLaplace(Fraction(t)), step) for t, step in laws))
    x, y, z = (
        draw_noise(law.kernel_law, runs, Seeded(n)) for n, (law, _) in enumerate(noise.parts)
    )
    for mean, spread in SHAPES[1:]:
        variance = spread * (1 - mean**2)  # in squared units
        squares = count * (mean**2 + variance) + x / 32 + z / 2
        noisy = squares * half**2, (count * mean + y / 2) * half, (count + z).astype(float)
        low, high = variance_ends(noisy, noise, half, 1, 1 - LEVEL)
        exact = variance * half**2 * count / (count - 1)
        slack = 1e-9 * half**2
        held = float(((low - slack <= exact) & (exact <= high + slack)).mean())
        assert held >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs)


def test_factors_of_intervals_do_for_the_count_of_each_group() -> None:
    laws = [(2, Fraction(1, 32)), (2, Fraction(1, 2)), (Fraction(1, 4), Fraction(1))]
    noise = Independent(tuple((DiscreteLaplace(Fraction(t)), step) for t, step in laws))
    rule, counts = _Rule(noise, 1.0, 1, 1 - LEVEL), np.array([4.0, 9.0])
    found = rule._factors(counts)
    assert found[0] > found[1] > 1
    assert (found >= [_factor(rule, float(count)) for count in counts]).all()


def test_intervals_of_variances_are_the_same_in_another_unit() -> None:
    def found(unit: float) -> tuple[Floats, Floats]:
        laws = [(2, unit**2 / 32), (2, unit / 2), (Fraction(1, 4), 1.0)]
        noise = Independent(tuple((DiscreteLaplace(Fraction(t)), Fraction(s)) for t, s in laws))
        parts = np.array([1.8 * unit**2]), np.array([0.6 * unit]), np.array([6.0])
        low, high = variance_ends(parts, noise, unit, 1, 1 - LEVEL)
        return low / unit**2, high / unit**2

    assert np.array(found(2.0**-8)) == pytest.approx(np.array(found(1.0)))


def test_noise_of_a_sum_less_a_mean_times_noise_of_the_count_spreads_as_both_together() -> None:
    """Of one draw: with the count's noise Y the sum's is X = 3 Z + Y, with Z as wide as Y. So
    X - m Y has (9 + (1 - m)**2) times their variance.
    """
    law = DiscreteGaussian(Fraction(10**6))
    rows = ((1, 0, 0), (0, 3, 1), (0, 0, 1))
    noise = noise_law([(CombinedNoise(law, row, 1), Fraction(1), 0) for row in rows])
    means = np.array([-2.0, 0.0, 0.5, 2.0])
    found = _Rule(noise, 2.0, 1, Fraction(1, 20))._spread(means)
    assert found == pytest.approx(10**6 * (9 + (1 - means) ** 2), rel=0.02)


@pytest.mark.parametrize("bounds", [(0, 1e-300), (0, 1e-160), (-(2.0**99), 2.0**99)])
def test_bounds_next_to_nothing_have_intervals_and_errors(bounds: tuple[float, float]) -> None:
    """Squares of their width are next to 0, or 0, as floats."""
    lo, hi = bounds
    data = pl.DataFrame({"x": [float(lo), hi / 3, hi] * 30})
    frame = dp.Session(epsilon=100).protect(data, unit=dp.Rows())
    query = frame.agg(m=dp.mean("x", bounds), v=dp.var("x", bounds), d=dp.std("x", bounds))
    plan, found = query.plan(epsilon=1), query.collect(epsilon=1, interval=0.95)
    for name, widest in (("m", hi - lo), ("v", (hi - lo) ** 2), ("d", hi - lo)):
        low, value, high = (found[f"{name}{end}"].item() for end in ("_low", "", "_high"))
        assert low <= value <= high
        assert 0 <= plan.accuracy(name, count=90) <= 2 * widest


def test_ends_are_rounded_outwards() -> None:
    values = np.array([-3e9, -0.1, 1 / 3, 7.0, 1e300])
    assert (_down(values) < values).all()
    assert (values < _up(values)).all()
    assert np.allclose(_down(values), values, rtol=1e-14, atol=0)
    assert np.allclose(_up(values), values, rtol=1e-14, atol=0)


# ------------------------------------------------------------------------------- sums and ratios


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian], ids=lambda law: law.name)
@pytest.mark.parametrize("exact", [(50.0, 400.0), (-3.0, 25.0), (300.0, 40.0)], ids=repr)
def test_ratios_are_held_by_sets_that_are_no_wider_than_their_error(
    law: Any, exact: tuple[float, float]
) -> None:
    noise = Independent(
        ((law(Fraction(9)), Fraction(1)), (law(Fraction(2**30)), Fraction(1, 2**28)))
    )
    runs, source = 20_000, Seeded(3)
    a, b = (
        total + draw_noise(part.kernel_law, runs, source) * float(step)
        for total, (part, step) in zip(exact, noise.parts, strict=True)
    )
    low, high = ratio_ends(a + 2 * b, b, noise, ((1.0, 2.0), (0.0, 1.0)), 0.05)
    truth = exact[0] / exact[1] + 2
    open_ended = np.isnan(low)
    assert (np.isnan(high) == open_ended).all()
    assert open_ended.mean() < (0.01 if exact[1] > 30 else 0.3)
    held = open_ended | ((low <= truth) & (truth <= high))
    assert held.mean() >= 0.95 - 0.006
    released = a / b + 2
    assert ((low <= released) & (released <= high))[~open_ended].all()
    if exact[1] > 30:
        error = float(np.quantile(np.abs(released - truth), 0.95))
        assert float(np.nanmedian(high - low)) / 2 <= 1.1 * error


@pytest.mark.parametrize("unit", [1.0, 2.0**40, 2.0**-40])
def test_a_noisy_sum_over_a_known_number_and_the_reverse_have_the_ends_of_the_sum(
    unit: float,
) -> None:
    """Its noise reaches 1.96 * 5, in any unit."""
    noise = Independent(((DiscreteGaussian(Fraction(25 * 2**40)), Fraction(unit) / 2**20),))
    sums, known, rows = np.array([60.0, -20.0, 5.0]) * unit, np.full(3, 40.0), ((1.0,), (0.0,))
    low, high = ratio_ends(sums, known, noise, rows, 0.05)
    assert low / unit == pytest.approx([50.2 / 40, -29.8 / 40, -4.8 / 40], abs=0.01)
    assert high / unit == pytest.approx([69.8 / 40, -10.2 / 40, 14.8 / 40], abs=0.01)
    low, high = ratio_ends(known, sums, noise, rows[::-1], 0.05)
    assert low * unit == pytest.approx([40 / 69.8, -40 / 10.2, math.nan], rel=0.005, nan_ok=True)
    assert high * unit == pytest.approx([40 / 50.2, -40 / 29.8, math.nan], rel=0.005, nan_ok=True)
    assert sum_reach(noise, (0.0,), 0.05) == 0


def test_a_ratio_of_numbers_whose_noise_is_hardly_ever_there_is_known() -> None:
    law = (DiscreteLaplace(Fraction(1, 8)), Fraction(1))
    low, high = ratio_ends(
        np.array([60.0]), np.array([40.0]), Independent((law, law)), ((1.0, 0.0), (0.0, 1.0)), 0.05
    )
    assert low.item() == pytest.approx(1.5)
    assert high.item() == pytest.approx(1.5)


def test_a_sum_of_noisy_numbers_errs_by_the_sum_of_their_noises() -> None:
    law = (DiscreteGaussian(Fraction(2**60)), Fraction(1, 2**30))
    noise = Independent((law, law, law))
    found = sum_reach(noise, (3.0, -4.0, 12.0), 0.05)
    assert found == pytest.approx(1.96 * 13, rel=0.01)
    alone = sum_reach(noise, (0.0, 0.0, -1.0), 0.05)
    assert alone == pytest.approx(1.96, rel=0.01)


FORMULAS: dict[str, tuple[Any, float]] = {
    "sum over count": (pl.col("x").dp_sum((0, 10)) / dp.count(), 1.1),
    "twice a count less a sum": (2 * dp.count() - pl.col("x").dp_sum((0, 10)), 1.1),
    "of a known size": (pl.col("x").dp_sum((0, 10)) / 3000, 1.1),
    "negated": (1 - pl.col("x").dp_sum((0, 10)) / pl.col("x").dp_count(), 1.15),
    "of two sums": (pl.col("x").dp_sum((0, 10)) / pl.col("y").dp_sum((5, 9)), 1.15),
    "a known number over a sum": (7 / pl.col("x").dp_sum((0, 10)), 1.1),
    "a mean in other units": (pl.col("x").dp_mean((0, 10)) * 1000 + 1, 1.15),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_of_noisy_numbers_have_intervals_of_their_error(name: str) -> None:
    """Many groups with the same rows: released once, there are many results."""
    groups, rows, formula = 4000, 60, FORMULAS[name][0]
    frame = pl.DataFrame(
        {
            "g": np.repeat(np.arange(groups), rows),
            "x": np.tile(np.linspace(2.0, 9.0, rows), groups),
            "y": np.tile(np.linspace(6.0, 9.0, rows), groups),
        }
    )
    people = dp.Session(epsilon=10**6).protect(frame, dp.Rows())
    query = people.group_by("g", keys=range(groups)).agg(r=formula)
    released = query.collect(epsilon=5, interval=0.95)
    exact = people.group_by("g", keys=range(groups)).agg(r=formula).collect(epsilon=10**5)["r"][0]
    errors = (released["r"] - exact).abs()
    held = released.select(((pl.col("r_low") <= exact) & (pl.col("r_high") >= exact)).mean()).item()
    assert held >= 0.95 - 0.015
    half = (released["r_high"] - released["r_low"]).median()
    assert isinstance(half, float)
    error = errors.quantile(0.95)
    assert error is not None
    assert half / 2 <= FORMULAS[name][1] * 1.2 * error
