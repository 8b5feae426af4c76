"""Means of groups that are moved towards their common mean."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.mean import BoundMean, prior_of, shrink_means
from dpframe.errors import UnsupportedOperation
from dpframe.mechanisms import DiscreteLaplace, NoNoise
from dpframe.report import Plan

LO, HI = 17, 90
HALF = (HI - LO) / 2


def world(
    groups: int, spread: float, rng: np.random.Generator, common: float = -10.0
) -> tuple[Any, Any]:
    """Exact centred means and sizes of groups."""
    sizes = np.floor(np.exp(rng.normal(4.0, 1.5, groups))) + 1
    return np.clip(rng.normal(common, spread, groups), -HALF, HALF), sizes


def noisy(means: Any, sizes: Any, scale: float, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Noisy sums and counts, and the variances of their noise."""
    total = means * sizes + rng.laplace(0.0, scale * HALF, means.size)
    count = np.round(sizes + rng.laplace(0.0, scale, means.size))
    return total, count, (2 * (scale * HALF) ** 2, 2 * scale**2)


def plain(total: Any, count: Any) -> Any:
    return np.where(count >= 1, np.clip(total / np.maximum(count, 1), -HALF, HALF), 0.0)


# ------------------------------------------------------------------------------ the formulas


@given(
    st.lists(
        st.tuples(st.floats(-1e9, 1e9), st.integers(-(10**6), 10**6)), min_size=1, max_size=40
    ),
    st.floats(1e-6, 1e12),
    st.floats(1e-6, 1e12),
    st.floats(1e-3, 1e6),
)
def test_they_are_means_within_the_bounds_whatever_the_numbers(
    pairs: list[tuple[float, int]], of_sums: float, of_counts: float, half: float
) -> None:
    total, count = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    found = shrink_means(total, count, (of_sums, of_counts), half)
    assert np.isfinite(found).all()
    assert (np.abs(found) <= half).all()


@pytest.mark.parametrize("seed", range(5))
def test_they_err_less_in_all_than_means_by_themselves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, sizes = world(60, 4.0, rng)
    errors = np.zeros((30, 2))
    for run in range(30):
        total, count, variances = noisy(means, sizes, 2.0, rng)
        for place, found in enumerate(
            (shrink_means(total, count, variances, HALF), plain(total, count))
        ):
            errors[run, place] = np.mean((found - means) ** 2)
    shrunk, alone = errors.mean(axis=0)
    assert shrunk < 0.5 * alone


def test_the_common_mean_and_the_spread_are_found() -> None:
    rng = np.random.default_rng(1)
    means, sizes = world(2_000, 5.0, rng)
    prior = prior_of(*noisy(means, sizes, 1.0, rng), HALF)
    assert prior.mean == pytest.approx(-10.0, abs=0.5)
    assert prior.variance**0.5 == pytest.approx(5.0, rel=0.1)


def test_means_that_are_alike_come_out_as_one() -> None:
    rng = np.random.default_rng(2)
    sizes = np.full(50, 30.0)
    found = shrink_means(*noisy(np.full(50, 7.0), sizes, 3.0, rng), HALF)
    assert np.ptp(found) < 6.0
    assert found.mean() == pytest.approx(7.0, abs=3.0)


def test_without_much_noise_they_are_the_means_by_themselves() -> None:
    rng = np.random.default_rng(3)
    means, sizes = world(40, 5.0, rng)
    found = shrink_means(means * sizes, sizes, (1e-9, 1e-9), HALF)
    assert found == pytest.approx(means, abs=1e-6)


def test_a_group_of_which_nothing_is_known_gets_the_common_mean() -> None:
    rng = np.random.default_rng(4)
    means, sizes = world(40, 5.0, rng)
    total, count, variances = noisy(means, sizes, 0.1, rng)
    total[0], count[0] = 50.0, -3
    found = shrink_means(total, count, variances, HALF)
    assert found[0] == prior_of(total, count, variances, HALF).mean


def test_no_group_is_farther_from_the_common_mean_than_by_itself() -> None:
    rng = np.random.default_rng(5)
    means, sizes = world(80, 5.0, rng)
    total, count, variances = noisy(means, sizes, 2.0, rng)
    centre = prior_of(total, count, variances, HALF).mean
    large = count > 10
    found, alone = shrink_means(total, count, variances, HALF), plain(total, count)
    inside = large & (np.abs(alone) < HALF)
    assert (np.abs(found - centre) <= np.abs(alone - centre) + 1e-9)[inside].all()


def test_the_order_of_groups_makes_no_difference() -> None:
    rng = np.random.default_rng(6)
    means, sizes = world(30, 5.0, rng)
    total, count, variances = noisy(means, sizes, 2.0, rng)
    turned = shrink_means(total[::-1], count[::-1], variances, HALF)[::-1]
    assert turned == pytest.approx(shrink_means(total, count, variances, HALF), abs=1e-9)


# ---------------------------------------------------------------------------------- in queries


KEYS = [f"g{number:02}" for number in range(25)]


def people(seed: int = 7) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    shares = np.array([0.75**number for number in range(len(KEYS))])
    groups = rng.choice(len(KEYS), 2_000, p=shares / shares.sum())
    levels = rng.normal(40, 4, len(KEYS))
    return pl.DataFrame(
        {
            "group": [KEYS[i] for i in groups],
            "age": np.clip(rng.normal(levels[groups], 10), LO, HI).round().astype(int),
        }
    )


def grouped(frame: pl.DataFrame) -> dp.PrivateGroupBy:
    session = dp.Session(epsilon=10**6, delta="0.5")
    return session.protect(frame, dp.Rows()).group_by("group", keys=KEYS)


def bound(query: Query) -> BoundMean:
    (aggregate,) = query.aggregates
    assert isinstance(aggregate, BoundMean)
    return aggregate


@pytest.mark.parametrize("spend", [{"epsilon": 1}, {"epsilon": "0.5", "delta": "1e-6"}])
def test_a_query_errs_less_with_it(spend: dict[str, Any]) -> None:
    frame = people()
    exact = frame.group_by("group").agg(pl.col("age").mean().alias("exact"))
    squares = {}
    for shrink in (False, True):
        query = grouped(frame).dp_mean("age", (LO, HI), shrink=shrink)
        found = pl.concat([query.collect(**spend) for _ in range(40)]).join(exact, on="group")
        off = found["age"].fill_null((LO + HI) / 2) - found["exact"]
        squares[shrink] = float((off**2).mean())  # type: ignore[arg-type]
    assert squares[True] < 0.6 * squares[False]


def test_it_changes_what_is_computed_and_nothing_of_what_is_drawn() -> None:
    groups = grouped(people())
    alone, shrunk = (
        groups.dp_mean("age", (LO, HI), shrink=shrink).plan(epsilon=1) for shrink in (False, True)
    )
    assert shrunk.releases == alone.releases
    assert shrunk.cost == alone.cost
    assert shrunk.fingerprint != alone.fingerprint
    assert groups.dp_mean("age", (LO, HI)).plan(epsilon=1).fingerprint == alone.fingerprint
    assert "shrink=True" in shrunk.explain(details=True)


def test_plans_say_its_bias_and_survive_json() -> None:
    plan = grouped(people()).dp_mean("age", (LO, HI), shrink=True).plan(epsilon=1)
    assert "moved towards the mean of all groups" in plan.explain(details=True)
    assert "biased" in plan.explain(details=True)
    again = Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    with pytest.raises(UnsupportedOperation, match="biased towards the mean of all groups"):
        again.accuracy("age", count=100)


def test_intervals_hold_the_exact_mean_and_the_result() -> None:
    frame = people()
    exact = frame.group_by("group").agg(pl.col("age").mean().alias("exact"))
    query = grouped(frame).dp_mean("age", (LO, HI), shrink=True)
    runs = [query.collect(epsilon=1, interval="0.95") for _ in range(40)]
    found = pl.concat(runs).join(exact, on="group")
    assert (found["age_low"] <= found["age"]).all()
    assert (found["age"] <= found["age_high"]).all()
    held = (found["age_low"] <= found["exact"]) & (found["exact"] <= found["age_high"])
    assert held.mean() > 0.93


def test_results_without_noise_are_the_exact_means() -> None:
    groups = grouped(people())
    query: Query = groups.dp_mean("age", (LO, HI), shrink=True)._query
    count = np.array([[10], [1], [3]], dtype=np.int64)
    total = np.array([[100], [-30], [0]], dtype=np.int64)
    unknown = bound(query)
    known = bound(query.knowing({key: NoNoise() for key in unknown.keys}))
    plain_query: Query = groups.dp_mean("age", (LO, HI))._query
    for aggregate in (unknown, known):
        assert aggregate.combine([total, count]).equals(bound(plain_query).combine([total, count]))


def test_the_noise_that_is_known_is_that_of_the_parts() -> None:
    query: Query = grouped(people()).dp_mean("age", (LO, HI), shrink=True)._query
    laws = [DiscreteLaplace(Fraction(30)), DiscreteLaplace(Fraction(2))]
    known = query.knowing(dict(zip(bound(query).keys, laws, strict=True)))
    assert bound(known).noise == (laws[0].variance(), laws[1].variance())
    assert bound(known.knowing(None)).noise == (0.0, 0.0)


def test_simulations_count_the_bias_as_error() -> None:
    public = people()
    groups = grouped(public.clear())
    query = groups.dp_mean("age", (LO, HI), shrink=True)
    results = query.simulate(public, runs=20, epsilon=1).results
    exact = public.group_by("group").agg(pl.col("age").mean().alias("mean"))
    there = results.join(exact, on="group")
    assert there["exact"].to_list() == pytest.approx(there["mean"].to_list())


def test_groups_that_are_found_are_shrunk_too() -> None:
    session = dp.Session(epsilon=10, delta="1e-6")
    groups = session.protect(people(), dp.Rows()).group_by("group")
    found = groups.dp_mean("age", (LO, HI), shrink=True).collect(epsilon=2, delta="1e-6")
    assert found.height > 3
    assert found["age"].is_between(LO, HI).all()


@pytest.mark.parametrize("most", [1e-300, 1.0, 1e30])
@pytest.mark.parametrize("epsilon", ["1e-7", "1e6"])
@pytest.mark.filterwarnings("error")
def test_bounds_and_noise_of_any_size_give_means_within_the_bounds(
    most: float, epsilon: str
) -> None:
    frame = people().with_columns(pl.col("age") * (most / 100))
    found = grouped(frame).dp_mean("age", (0, most), shrink=True).collect(epsilon=epsilon)
    assert found["age"].is_between(0, most).all()


@pytest.mark.parametrize("given", [1, "yes", None])
def test_it_is_true_or_false(given: Any) -> None:
    with pytest.raises(UnsupportedOperation, match="is not True or False"):
        dp.mean("age", (LO, HI), shrink=given)


def test_it_needs_groups_of_one_kind() -> None:
    session = dp.Session(epsilon=1)
    frame = session.protect(people(), dp.Rows())
    with pytest.raises(UnsupportedOperation, match="here there is one mean"):
        frame.dp_mean("age", (LO, HI), shrink=True)
    sets = frame.group_by(dp.rollup("group"), keys={"group": KEYS})
    with pytest.raises(UnsupportedOperation, match="those of several sets differ"):
        sets.dp_mean("age", (LO, HI), shrink=True)
