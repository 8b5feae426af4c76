"""Intervals of results: they hold the exact results, and cost nothing."""

from __future__ import annotations

from collections import Counter
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.noise import Independent
from dpframe.mechanisms import DiscreteLaplace
from dpframe.parse.reader import read
from dpframe.release.intervals import MissingRows, _arithmetic, _series
from tests.laws.amounts import amounts
from tests.plan.documents import plan_of

FRAME = pl.DataFrame(
    {
        "g": ["a", "b", "c"] * 400,
        "x": [float(i % 11) for i in range(1200)],
        "d": [date(2020, 1, 1 + i % 28) for i in range(1200)],
    }
)
X = pl.col("x")
RESULTS: dict[str, Any] = {
    "n": dp.count(),
    "unique": X.dp_n_unique(),
    "total": X.dp_sum((0, 10)),
    "mean": X.dp_mean((0, 10)),
    "var": X.dp_var((0, 10)),
    "std": X.dp_std((0, 10)),
    "ratio": X.dp_sum((0, 10)) / dp.count(),
    "less": 2 * X.dp_count() - X.dp_sum((0, 10)),
    "day": pl.col("d").dp_mean((date(2020, 1, 1), date(2020, 2, 1))),
}
EXACT = (
    FRAME.group_by("g")
    .agg(
        n=pl.len(),
        unique=X.n_unique(),
        total=X.sum(),
        mean=X.mean(),
        var=X.var(),
        std=X.std(),
        day=pl.col("d").mean().dt.date(),
    )
    .sort("g")
    .with_columns(ratio=pl.col("total") / pl.col("n"), less=2 * pl.col("n") - pl.col("total"))
)


def grouped() -> dp.PrivateGroupBy:
    frame = dp.Session(epsilon=10**9).protect(FRAME, dp.Rows())
    return frame.group_by("g", keys=["a", "b", "c"])


@pytest.mark.parametrize(
    "confidence",
    [0.95, *(pytest.param(other, marks=pytest.mark.slow) for other in (0.5, 0.999))],
)
@amounts("runs", 20, 200)
def test_intervals_hold_the_exact_results_as_often_as_they_say(
    confidence: float, runs: int
) -> None:
    query, held = grouped().agg(**RESULTS), Counter[str]()
    for _ in range(runs):
        released = query.collect(epsilon=2, interval=confidence)
        for name in RESULTS:
            inside = EXACT[name].is_between(released[f"{name}_low"], released[f"{name}_high"])
            held[name] += int(inside.sum())
    trials = 3 * runs
    slack = 5 * (trials * confidence * (1 - confidence)) ** 0.5 + 1
    assert all(held[name] >= trials * confidence - slack for name in RESULTS), held


@pytest.mark.parametrize("epsilon", ["0.0001", 1, 1000])
def test_results_lie_within_their_intervals_with_columns_beside_them(epsilon: Any) -> None:
    released = grouped().agg(**RESULTS).collect(epsilon=epsilon, interval=0.9)
    names = ["g", *(f"{name}{end}" for name in RESULTS for end in ("", "_low", "_high"))]
    assert released.columns == names
    for name in RESULTS:
        low, high = released[f"{name}_low"], released[f"{name}_high"]
        inside = released[name].is_between(low, high).drop_nulls()
        assert inside.all(), released.select(name, low, high)
        if name != "less":
            assert low.dtype == released[name].dtype


def test_an_interval_costs_nothing() -> None:
    session = dp.Session(epsilon=1)
    frame = session.protect(FRAME, dp.Rows())
    frame.dp_count().collect(epsilon="0.25", interval=0.95)
    assert session.spent == dp.PureDP("0.25")


def test_intervals_of_means_stay_within_the_bounds_of_the_values() -> None:
    released = grouped().agg(mean=X.dp_mean((0, 10))).collect(epsilon="0.001", interval=0.99)
    known = released.drop_nulls()
    assert known["mean_low"].is_between(0, 10).all()
    assert known["mean_high"].is_between(0, 10).all()


def test_nonnegative_results_have_nonnegative_intervals() -> None:
    empty = dp.Session(epsilon=10).protect(FRAME.clear(), dp.Rows())
    released = empty.agg(n=dp.count(nonnegative=True)).collect(epsilon=1, interval="0.999999999")
    assert released["n_low"].item() == 0 <= released["n_high"].item()


def test_histograms_have_an_interval_per_bin() -> None:
    alone = grouped().dp_histogram("x", [0, 5, 10]).collect(epsilon=1, interval=0.9)
    assert alone.columns == ["g", "x", "lower", "upper", "count", "count_low", "count_high"]
    assert alone["count"].is_between(alone["count_low"], alone["count_high"]).all()
    beside = grouped().agg(dp.count(), X.dp_histogram([0, 5, 10])).collect(epsilon=1, interval=0.9)
    assert beside["x_low"].list.len().to_list() == [2, 2, 2]


def test_what_costs_nothing_is_its_own_interval() -> None:
    frame = dp.Session(epsilon=1).protect(FRAME, dp.Rows(adjacency="change-one"))
    released = frame.dp_count().collect(epsilon=1, interval=0.95)
    assert released.row(0) == (1200, 1200, 1200)


def test_selections_have_no_interval() -> None:
    beside = grouped().agg(dp.count(), X.dp_median((0, 10)))
    with pytest.raises(dp.UnsupportedOperation, match="'x' has no interval"):
        beside.collect(epsilon=1, interval=0.9)
    session = dp.Session(epsilon=1)
    query = session.protect(FRAME, dp.Rows()).dp_median("x", (0, 10))
    with pytest.raises(dp.UnsupportedOperation, match="interval"):
        query.collect(epsilon=1, interval=0.9)
    assert session.spent.is_zero


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, float("nan"), "x", True])
def test_a_confidence_that_is_none_is_refused_before_the_charge(confidence: Any) -> None:
    session = dp.Session(epsilon=1)
    with pytest.raises(dp.InvalidBounds, match="interval"):
        session.protect(FRAME, dp.Rows()).dp_count().collect(epsilon=1, interval=confidence)
    assert session.spent.is_zero


def test_interval_columns_that_exist_already_are_refused_before_the_charge() -> None:
    session = dp.Session(epsilon=1)
    frame = session.protect(FRAME, dp.Rows())
    query = frame.agg(n=dp.count(), n_low=X.dp_count())
    with pytest.raises(dp.UnsupportedOperation):
        query.collect(epsilon=1, interval=0.9)
    assert session.spent.is_zero


@pytest.mark.parametrize(("name", "warned"), [("by_number", True), ("of_individuals", False)])
def test_plans_whose_groups_appear_by_a_released_number_warn_of_intervals(
    name: str, warned: bool
) -> None:
    plan = plan_of(f"found_groups_{name}")
    assert any("intervals hold less often" in warning for warning in plan.warnings) == warned


def test_results_of_formulas_lie_within_their_ends_as_engines_compute_them() -> None:
    """Polars divides by a constant by multiplying with its reciprocal, which is off by a digit."""
    p = pl.col("p")
    lows = [1.0, -1.0, 0.1, -123.4, 0.0, 1e9]
    highs = [2.0, -0.7, 0.2, 88.8, 1e-9, 1e9 + 1]
    for formula in (p / 3, p / -7, p + 0.1, 0.7 - p, p * 0.3, p * p * p, (p + 0.1) * 7 - p / 3):
        (named,) = read(formula, {"p": pl.Float64()}, what="agg")
        found = _arithmetic("r", named.tree, {"p": (pl.Series(lows), pl.Series(highs))})
        assert found is not None
        frame = pl.DataFrame({"low": found[0], "high": found[1], "a": lows, "b": highs})
        reached = [frame.select(p=pl.col(end)).select(r=formula)["r"] for end in ("a", "b")]
        for low, high, *results in zip(*found, *reached, strict=True):
            assert low <= min(results)
            assert max(results) <= high


@pytest.mark.parametrize("post", [lambda a, b: a // b, lambda a, b: a % b, lambda a, b: 1 / b + a])
def test_nothing_is_known_of_a_division_by_zero(post: Any) -> None:
    (tree,) = [
        n.tree
        for n in read(
            post(pl.col("a"), pl.col("b")), {"a": pl.Float64(), "b": pl.Float64()}, what="test"
        )
    ]
    one, zero = pl.Series([1.0]), pl.Series([0.0])
    ends = _arithmetic("z", tree, {"a": (one, one), "b": (zero, zero)})
    assert ends is not None
    assert [end.to_list() for end in ends] == [[None], [None]]


def test_ends_are_moved_outwards_by_what_floats_may_lack_and_no_more() -> None:
    low, high = np.array([-3.0, 1.0, 0.0, np.nan]), np.array([-2.0, 5.0, 0.0, np.nan])
    lower, upper = _series("x", low, high)
    assert lower.to_list()[3] is upper.to_list()[3] is None
    for end, given_end, outwards in ((lower, low, -1), (upper, high, 1)):
        moved = (end.to_numpy()[:3] - given_end[:3]) * outwards
        assert (moved >= np.abs(given_end[:3]) * 2.0**-49).all()
        assert (moved <= np.abs(given_end[:3]) * 2.0**-40).all()


def test_a_ratio_under_a_found_limit_holds_what_noise_and_missing_rows_allow() -> None:
    """By hand: two missing rows add up to 4 each above the line and up to 8 below it."""
    below = {"denominator_bounds": (0, 8)}
    asked = dp.Session(epsilon=1).protect(FRAME.lazy(), dp.Rows())
    query = asked.agg(r=X.dp_ratio(X, (0, 4), **below))._query
    (ratio,) = query.aggregates
    steps = [use.part.step for use in ratio.uses]
    noise = Independent(tuple((DiscreteLaplace(1 / step), step) for step in steps))
    values = [np.array([[int(total / step)]]) for total, step in zip((100, 50), steps, strict=True)]
    unmoved = pl.Series("r", [0.0]), pl.Series("r", [0.0])
    low, high = MissingRows(2, 2, False, query.scope).widen(
        ratio, unmoved, values, noise, Fraction(9, 10)
    )
    a, b = (float(noise.reach(n, Fraction(95, 100)) * step) for n, step in enumerate(steps))
    assert low.item() == pytest.approx((100 - a) / (50 + b + 16))
    assert high.item() == pytest.approx((100 + a + 8) / (50 - b))
