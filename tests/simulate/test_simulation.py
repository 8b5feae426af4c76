"""Simulations: their errors are those of theory; no session and no protected data are touched."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dpframe as dp
from tests.simulate.frames import public, trapped

CITIES = ["a", "b", "c", "d"]
PUBLIC = public()


def errors_of(query: dp.PrivateQuery, frame: Any = PUBLIC, **spend: Any) -> pl.DataFrame:
    return query.simulate(frame, **{"epsilon": 0.5, "runs": 2, **spend}).errors


def test_errors_of_counts_are_those_of_their_noise() -> None:
    """60,000 draws: ten standard errors of a mean of squares, whose law is of Laplace's fourth
    moment, 24 b^4; so a false alarm is far rarer than 1e-9."""
    people, _ = trapped()
    keys = list(range(100))
    query = people.group_by("age", keys=keys).dp_count()
    simulation = query.simulate(PUBLIC, epsilon=0.5, runs=600)
    (release,) = simulation.plan.releases
    variance = 2 * math.exp(-0.5) / (1 - math.exp(-0.5)) ** 2
    assert release.mechanism == "discrete_laplace"
    draws = 100 * 600
    errors = (simulation.results["noisy"] - simulation.results["plain"]).to_numpy()
    assert errors.shape == (draws,)
    within = 10 * math.sqrt(24 * 2.1**4 / draws)
    assert abs(np.mean(errors**2) - variance) < within
    assert within < variance / 4  # so half or double the noise fails
    assert abs(np.mean(errors)) < 10 * math.sqrt(variance / draws)
    rmse = simulation.errors["rmse"].to_numpy()
    assert math.isclose(np.mean(rmse**2), np.mean(errors**2))
    assert (simulation.errors["rmse"] == simulation.errors["noise_rmse"]).all()
    assert simulation.errors["error_95"].median() == pytest.approx(release.accuracy(), abs=1)


def test_each_run_has_noise_of_its_own() -> None:
    people, _ = trapped()
    results = people.dp_count().simulate(PUBLIC, epsilon=0.01, runs=40).results
    assert results["noisy"].n_unique() > 20
    assert results["plain"].unique().to_list() == [len(PUBLIC)]
    assert results["run"].to_list() == list(range(40))


def test_the_summary_is_of_the_results() -> None:
    people, _ = trapped()
    query = people.group_by("city", keys=[*CITIES, "z"]).agg(
        dp.count().alias("n"), dp.mean("x", (0, 60))
    )
    simulation = query.simulate(PUBLIC, epsilon=0.1, runs=50)
    error = pl.col("noisy") - pl.col("plain")
    expected = simulation.results.group_by("city", "output", maintain_order=True).agg(
        pl.col("plain").first(),
        pl.col("exact").first(),
        error.mean().alias("bias"),
        (pl.col("exact") - pl.col("plain")).first().alias("limits_bias"),
        (error**2).mean().sqrt().alias("rmse"),
        ((pl.col("noisy") - pl.col("exact")) ** 2).mean().sqrt().alias("noise_rmse"),
        pl.col("noisy").is_null().mean().alias("missing"),
    )
    found = simulation.errors.select(expected.columns)
    assert_frame_equal(found, expected, check_row_order=False)
    empty = simulation.errors.filter(city="z", output="x")
    assert 0 < empty["missing"].item() < 1  # a mean is missing where its noisy count is below 1
    assert empty["plain"].item() is None


def test_without_limits_in_force_there_is_no_bias() -> None:
    people, _ = trapped("person")
    query = (
        people.limit_rows(10**6)
        .limit_groups(100, by="city")
        .group_by("city", keys=CITIES)
        .agg(dp.count(), dp.sum("age", (0, 100)).alias("years"), dp.n_unique("age"))
    )
    assert errors_of(query)["limits_bias"].to_list() == [0.0] * 12


def test_clamping_biases_as_much_as_it_clamps() -> None:
    people, _ = trapped()
    query = people.agg(dp.sum("age", (0, 60)), dp.sum("x", (20, 10**6)).alias("x"))
    found = errors_of(query)
    age, x = PUBLIC["age"], PUBLIC["x"].drop_nulls()
    assert found["limits_bias"][0] == (age.clip(0, 60) - age).sum() < 0
    assert found["limits_bias"][1] == pytest.approx((x.clip(20, 10**6) - x).sum(), abs=3)
    assert found["limits_bias"][1] > 0
    assert found["exact"][0] == age.clip(0, 60).sum()


def test_limits_bias_counts_by_the_rows_that_they_drop() -> None:
    people, _ = trapped("person")
    found = errors_of(people.limit_rows(2).dp_count())
    kept = PUBLIC.group_by("person").len()["len"].clip(0, 2).sum()
    assert found["plain"].item() == len(PUBLIC)
    assert found["exact"].item() == kept
    assert found["limits_bias"].item() == kept - len(PUBLIC) < 0
    assert found["rmse"].item() == pytest.approx(len(PUBLIC) - kept, rel=0.1)


def test_lists_that_are_cut_short_bias_too() -> None:
    frame = pl.DataFrame({"parts": [[1, 2, 3], [4], []]})
    people = dp.Session(epsilon=1).protect(frame.clear(), dp.Rows())
    found = errors_of(people.explode("parts", max_length=2).agg(dp.sum("parts", (0, 9))), frame)
    assert (found["plain"].item(), found["exact"].item()) == (10, 7)


def test_plain_results_are_those_of_polars() -> None:
    people, _ = trapped()
    x = pl.col("x")
    query = people.group_by("city", keys=CITIES).agg(
        dp.count().alias("n"),
        x.dp_count().alias("values"),
        x.dp_sum((0, 10)).alias("sum"),
        x.dp_mean((40, 41)).alias("mean"),
        x.dp_var((40, 41), ddof=0).alias("var"),
        x.dp_std((40, 41)).alias("std"),
        x.dp_median((0, 10)).alias("median"),
        pl.col("age").dp_n_unique().alias("ages"),
        (x.dp_sum((0, 10)) / x.dp_count()).alias("ratio"),
    )
    expected = PUBLIC.group_by("city").agg(
        pl.len().alias("n"),
        x.count().alias("values"),
        x.sum().alias("sum"),
        x.mean().alias("mean"),
        x.var(ddof=0).alias("var"),
        x.std().alias("std"),
        x.quantile(0.5, "lower").alias("median"),
        pl.col("age").n_unique().alias("ages"),
        (x.sum() / x.count()).alias("ratio"),
    )
    found = errors_of(query).pivot("output", index="city", values="plain")
    assert_frame_equal(found, expected.sort("city"), check_dtypes=False)


def test_plain_totals_of_individuals_are_those_of_polars() -> None:
    people, _ = trapped("person")
    query = (
        people.limit_groups(1, by="city")
        .group_by("city", keys=CITIES)
        .agg(
            dp.mean("x", (0, 1), per="unit").alias("mean"),
            dp.sum("x", (0, 1), per="unit").alias("sum"),
            dp.count(per="unit", bounds=(0, 1)).alias("rows"),
            dp.n_unique("person").alias("persons"),
        )
    )
    totals = PUBLIC.group_by("city", "person").agg(
        pl.when(pl.col("x").count() > 0).then(pl.col("x").sum()), pl.len()
    )
    expected = totals.group_by("city").agg(
        pl.col("x").mean().alias("mean"),
        pl.col("x").sum().alias("sum"),
        pl.col("len").sum().alias("rows"),
        pl.len().alias("persons"),
    )
    found = errors_of(query).pivot("output", index="city", values="plain")
    assert_frame_equal(found, expected.sort("city"), check_dtypes=False)


def test_several_numbers_of_one_group_are_entries() -> None:
    people, _ = trapped()
    found = errors_of(people.dp_histogram("age", [0, 50, 100]))
    assert found["entry"].to_list() == ["[0, 50)", "[50, 100]"]
    assert found["plain"].to_list() == [
        PUBLIC.filter(pl.col("age") < 50).height,
        PUBLIC.filter(pl.col("age") >= 50).height,
    ]
    query = people.group_by("city", keys=["a", "b"]).agg(
        dp.histogram("city", ["a", "b", "c"]).alias("h"), dp.quantile("x", [0.25, 0.75], (0, 100))
    )
    found = errors_of(query)
    a = PUBLIC.filter(city="a").height
    histogram = found.filter(output="h", city="a")
    assert histogram["entry"].to_list() == ["a", "b", "c"]
    assert histogram["plain"].to_list() == [a, 0, 0]
    quantiles = found.filter(output="x", city="a")
    assert quantiles["entry"].to_list() == ["q=0.25", "q=0.75"]
    assert quantiles["plain"].to_list() == [
        scored(PUBLIC.filter(city="a")["x"].drop_nulls().to_list(), q) for q in (0.25, 0.75)
    ]


def scored(values: list[float], q: float) -> float:
    """The least value that has the rank q n among its own."""
    target = Fraction(str(q)) * len(values)
    return min(
        v for v in values if sum(w < v for w in values) <= target <= sum(w <= v for w in values)
    )


@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("values", [[1, 2], [3, 3, 4, 7], [5], [1, 2, 2, 3, 9, 9], [0, 10, 20, 30]])
def test_quantiles_within_their_bounds_have_no_bias(q: float, values: list[int]) -> None:
    """Of whole numbers none; of others no more than the distance of two points."""
    frame = pl.DataFrame({"i": values, "f": [float(v) for v in values]})
    people = dp.Session(epsilon=1).protect(frame.clear(), dp.Rows())
    query = people.agg(dp.quantile("i", q, (0, 100)), dp.quantile("f", q, (0, 100)))
    found = errors_of(query, frame)
    assert found["limits_bias"][0] == 0
    assert abs(found["limits_bias"][1]) < 100 / 2**19
    assert found["plain"][1] == scored(frame["f"].to_list(), q)


def test_nan_is_no_value_of_plain_results() -> None:
    """As it is none of exact ones: neither alone nor in an individual's total."""
    frame = pl.DataFrame({"who": [1, 2, 2, 3], "x": [1.0, float("nan"), 3.0, None]})
    people = dp.Session(epsilon=1).protect(frame.clear(), "who").limit_rows(2)
    x = pl.col("x")
    query = people.agg(
        x.dp_count().alias("n"),
        x.dp_mean((0, 4)).alias("mean"),
        dp.sum("x", (0, 4), per="unit").alias("total"),
    )
    assert errors_of(query, frame)["plain"].to_list() == [2, 2.0, 4.0]


def test_dates_are_days() -> None:
    people, _ = trapped()
    found = errors_of(people.dp_mean("day", (date(2019, 1, 1), date(2024, 1, 1))))
    days = PUBLIC["day"].to_physical().mean()
    assert found["plain"].item() == round(float(str(days)))
    assert abs(found["limits_bias"].item()) <= 1


def test_choices_are_right_or_wrong() -> None:
    people, _ = trapped("person")
    kept = people.limit_rows(100)
    simulation = kept.dp_argmax("city", candidates=CITIES).simulate(PUBLIC, epsilon=0.9, runs=40)
    top = PUBLIC.group_by("city").len().sort("len")["city"][-1]
    assert simulation.errors["plain_choice"].to_list() == [top]
    right = (simulation.results["choice"] == top).sum()
    assert simulation.errors["wrong"].item() == pytest.approx(1 - right / 40)
    assert set(simulation.results["choice"]) <= set(CITIES)
    best = kept.group_by("city", keys=CITIES).dp_argmax(k=2)
    found = errors_of(best, epsilon=0.9)
    assert found["entry"].to_list() == ["1", "2"]
    assert found["plain_choice"][0] == top
    sure = pl.DataFrame({"city": ["a"] * 500 + ["b"]}).with_columns(pl.lit(None).alias("x"))
    rows = dp.Session(epsilon=9).protect(sure.clear(), dp.Rows())
    query = rows.dp_argmax("city", candidates=["a", "b"])
    assert query.simulate(sure, epsilon=2, runs=50).errors["wrong"].item() == 0


def test_found_groups_are_missing_as_often_as_their_size_says() -> None:
    """The rule's own chance, and 7 standard errors of 400 runs: an alarm is rarer than 1e-10."""
    people, _ = trapped("person", epsilon=2.0, delta=1e-3)
    query = people.limit_rows(1, by=["city"]).limit_groups(1, by="city").group_by("city").dp_count()
    spend = {"epsilon": 1.0, "delta": 1e-4}
    keys = query.plan(**spend).releases[0]
    assert keys.aggregate == "keys"
    half = int(keys.accuracy(Fraction(1, 2)))
    percent = max(p for p in range(50, 100) if keys.accuracy(Fraction(p, 100)) <= half)
    within = 7 * math.sqrt(0.25 / 400)
    sizes = {"large": 10 * half, "half": half, "one": 1}
    rows = [(i, city) for city, size in sizes.items() for i in range(size)]
    frame = pl.DataFrame(
        {
            "person": pl.int_range(len(rows), eager=True),
            "city": [city for _, city in rows],
            "age": pl.Series([0] * len(rows), dtype=pl.Int64),
            "x": pl.Series([0.0] * len(rows)),
            "day": pl.Series([None] * len(rows), dtype=pl.Date),
        }
    )
    simulation = query.simulate(frame, **spend, runs=400)
    missing = dict(simulation.errors.select("city", "missing").rows())
    assert list(missing) == ["half", "large", "one"]
    assert missing["large"] == 0
    assert 0.99 - percent / 100 - within < missing["half"] < 1 - percent / 100 + within
    assert within < 0.2
    assert missing["one"] > 0.98
    noisy = simulation.results.filter(city="half")["noisy"].drop_nulls()
    assert (noisy.mean() or 0) == pytest.approx(half, rel=0.5)


@pytest.mark.parametrize(
    ("budget", "spend", "asked", "mechanism"),
    [
        ({"epsilon": 20}, {"epsilon": 10}, dp.count(), "truncated_geometric"),
        ({"rho": 2}, {"rho": 1}, dp.n_unique("person"), "noisy_threshold"),
    ],
)
def test_a_group_whose_rows_limits_drop_is_never_found(
    budget: dict[str, Any], spend: dict[str, Any], asked: dp.DPExpr, mechanism: str
) -> None:
    frame = pl.DataFrame({"person": [1] * 60, "city": [f"c{i}" for i in range(60)]})
    people = dp.Session(**budget, delta=0.5).protect(frame.clear(), "person")
    query = people.limit_rows(1).group_by("city").agg(asked)
    simulation = query.simulate(frame, **spend, delta=0.4, runs=200)
    found = simulation.errors
    assert simulation.plan.releases[0].mechanism == mechanism
    assert found.height == 60
    assert found["exact"].sum() == 1
    assert (found.filter(pl.col("exact") == 0)["missing"] == 1).all()
    assert found.filter(pl.col("exact") == 1)["missing"].item() < 1


def test_columns_of_keys_keep_clear_of_those_of_results() -> None:
    people, _ = trapped()
    renamed = people.rename({"city": "output"})
    found = errors_of(renamed.group_by("output", keys=CITIES).dp_count())
    assert found["output_"].to_list() == CITIES
    assert found["output"].unique().to_list() == ["len"]


def test_frames_without_rows_can_be_simulated() -> None:
    people, _ = trapped()
    query = people.group_by("city", keys=CITIES).agg(
        dp.count(), dp.sum("x", (0, 9)), dp.mean("x", (0, 9)).alias("m")
    )
    found = errors_of(query, PUBLIC.clear())
    assert found["plain"].to_list() == [0.0] * 8 + [None] * 4
    discovered = people.group_by("city").dp_count()
    assert errors_of(discovered, PUBLIC.clear(), delta=1e-7).height == 0


def test_nothing_is_charged_and_nothing_protected_is_read() -> None:
    people, trap = trapped()
    session = people._session
    query = people.group_by("city").agg(
        dp.count(), dp.mean("x", (0, 100)), dp.median("age", (0, 99))
    )
    query.simulate(PUBLIC, epsilon=100, delta=1e-3, runs=3)  # more than the session has
    assert not trap.sprung
    assert session is not None
    assert session.spent == dp.ApproxDP(0, 0)
    assert session.history.height == 0
    with pytest.raises(dp.BudgetExceeded):
        query.collect(epsilon=100, delta=1e-3)
    assert not trap.sprung
    query.collect(epsilon=0.5, delta=1e-7)
    assert trap.sprung  # the trap works


def test_a_ledger_stays_as_it_was(tmp_path: Any) -> None:
    where = tmp_path / "budget.db"
    session = dp.Session(epsilon=1, ledger=where)
    people = session.protect(public().lazy(), dp.Rows())
    people.dp_count().collect(epsilon=0.1)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if not p.name.endswith("-shm")}
    people.dp_sum("age", (0, 9)).simulate(PUBLIC, epsilon=0.5)
    after = {p.name: p.read_bytes() for p in tmp_path.iterdir() if not p.name.endswith("-shm")}
    assert after == before


def test_spends_are_those_of_plans() -> None:
    people, _ = trapped()
    query = people.dp_count()
    assert query.simulate(PUBLIC, accuracy={"len": 10}, runs=2).plan.accuracy("len") <= 10
    with pytest.raises(dp.InvalidBudget):
        query.simulate(PUBLIC)
    with pytest.raises(dp.InvalidBudget):
        query.simulate(PUBLIC, rho=0.1)
    unbound = public().lazy().dp_count(unit=dp.Rows())
    assert unbound.simulate(PUBLIC, rho=0.1, runs=2).plan.cost == dp.ZCDP(0.1)
    assert unbound.simulate(PUBLIC, epsilon=0.1, runs=2).plan.cost == dp.PureDP(0.1)
    found = unbound.simulate(PUBLIC, accuracy={"len": 10}, delta=1e-9, runs=2).plan
    assert found.accuracy("len") <= 10
    assert isinstance(found.requested, dp.ApproxDP)
    with pytest.raises(dp.InvalidBudget, match="empty"):
        unbound.simulate(PUBLIC)
    with pytest.raises(dp.InvalidBudget, match="split"):
        unbound.simulate(PUBLIC, epsilon=1, split="half")  # type: ignore[arg-type]


@pytest.mark.parametrize("runs", [0, 1, -1, True, 2.0, "9", 10**9])
def test_numbers_of_runs_that_make_no_sense(runs: Any) -> None:
    people, _ = trapped()
    with pytest.raises(dp.UnsupportedOperation, match="runs"):
        people.dp_count().simulate(PUBLIC, epsilon=0.1, runs=runs)


def test_more_results_than_fit_in_memory_are_refused() -> None:
    people, _ = trapped()
    query = people.group_by("age", keys=list(range(100_000))).dp_count()
    with pytest.raises(dp.UnsupportedOperation, match="more than fit in memory"):
        query.simulate(PUBLIC, epsilon=0.1, runs=1000)


def test_what_is_shown_of_a_simulation() -> None:
    people, _ = trapped()
    simulation = people.dp_count().simulate(PUBLIC, epsilon=0.5, runs=3)
    assert isinstance(simulation, dp.Simulation)
    assert repr(simulation).startswith("<Simulation of 3 runs on public data>")
    assert "rmse" in repr(simulation)
    assert "<table" in simulation._repr_html_()
