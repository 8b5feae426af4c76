"""Several releases of one query as one: unbiased, with the least variance, and a true error."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.api.release import Release
from dpframe.core.budget import PureDP
from dpframe.mechanisms.combined import MOST_TERMS, reach_of_sum
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.discrete_laplace import DiscreteLaplace

FRAME = pl.DataFrame({"k": ["a"] * 40 + ["b"] * 60, "x": list(range(100)), "who": [*range(100)]})
KEYS = ["a", "b"]


def people(epsilon: float = 1000, **more: Any) -> dp.PrivateFrame:
    return dp.Session(epsilon=epsilon, **more).protect(FRAME, unit=dp.Rows(), name="people")


def counts(frame: dp.PrivateFrame) -> dp.PrivateQuery:
    return frame.group_by("k", keys=KEYS).agg(
        dp.count().alias("n"), pl.col("x").dp_sum((0, 100)).alias("s")
    )


def test_a_combination_is_the_weighted_mean() -> None:
    query = counts(people())
    found = [query.release(epsilon=epsilon) for epsilon in (1, 2)]
    both = dp.combine(found)
    assert both.frame.columns == ["k", "n", "s"]
    assert both.frame["k"].to_list() == KEYS
    assert both.cost == PureDP(3)
    for name, weights in both.weights.items():
        variances = [_variance(release, name) for release in found]
        total = sum(1 / v for v in variances)
        assert weights == pytest.approx([1 / v / total for v in variances], rel=1e-12)
        expected = sum(w * r.frame[name] for w, r in zip(weights, found, strict=True))
        assert both.frame[name].to_list() == pytest.approx(list(expected))  # type: ignore[arg-type]
        alone = min(release.plan.accuracy(name) for release in found)
        assert both.accuracy(name) < alone
        assert both.accuracy(name, 0.99) > both.accuracy(name)
    assert f"n ± {both.accuracy('n'):.6g}" in repr(both)
    assert "for epsilon 3 together" in repr(both)


def _variance(release: Release, name: str) -> float:
    (output,) = (o for o in release.plan.outputs if o.name == name)
    used = release.plan.releases[output.releases[0]]
    return used.noise.variance() * float(used.step) ** 2  # type: ignore[attr-defined, no-any-return]


def test_errors_of_a_combination_are_those_that_it_says() -> None:
    """Means of 40 times 200 combinations: no bias, the variance of the formula, the coverage."""
    many = people(10**6).with_columns(g=pl.lit(0)).group_by("g", "x", keys=_cells())
    query = many.agg(dp.count().alias("n"))
    found = [query.release(epsilon=epsilon) for epsilon in (0.5, 0.25, 1)]
    both = dp.combine(found)
    errors = (both.frame["n"] - both.frame["x"].is_between(0, 99).cast(pl.Int64)).to_numpy()
    variance = 1 / sum(1 / _variance(release, "n") for release in found)
    size = errors.size
    assert abs(errors.mean()) < 5 * math.sqrt(variance / size)
    assert errors.var() == pytest.approx(variance, rel=0.1)
    for confidence in (0.5, 0.95, 0.99):
        within = (np.abs(errors) <= both.accuracy("n", confidence)).mean()
        spread = 5 * math.sqrt(confidence * (1 - confidence) / size)
        assert confidence - spread < within < confidence + spread + 0.03


def _cells() -> pl.DataFrame:
    return pl.DataFrame({"g": 0, "x": range(10_000)}, schema={"g": pl.Int32, "x": pl.Int64})


@pytest.mark.parametrize("missed", [0.5, 0.05, 1e-3, 1e-6])
def test_the_reach_of_a_sum_is_never_too_small_and_hardly_too_large(missed: float) -> None:
    """Against the sum of the laws, added up number by number."""
    one, two = DiscreteLaplace(Fraction(3)), DiscreteLaplace(Fraction(5))
    reach = reach_of_sum([(one, 0.75), (two, 0.25)], missed)  # quarters: 3 z + w
    law = {}
    for z, w in itertools.product(range(-150, 151), range(-250, 251)):
        total = abs(3 * z + w)
        law[total] = law.get(total, 0.0) + _mass(3, z) * _mass(5, w)
    above = lambda t: sum(p for total, p in law.items() if total > t)  # noqa: E731
    least = next(t for t in range(2000) if above(t) <= missed)
    assert above(4 * reach) <= missed
    assert 4 * reach <= least + 1 + 0.01 * least


def _mass(scale: int, z: int) -> float:
    ratio = math.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** abs(z)


def test_the_reach_of_many_equal_noises_is_that_of_a_normal_law() -> None:
    laws = [(DiscreteGaussian(Fraction(400)), 1 / MOST_TERMS)] * MOST_TERMS
    reach = reach_of_sum(laws, 0.05)
    exact = 1.959964 * 20 / math.sqrt(MOST_TERMS)
    assert exact <= reach <= 1.03 * exact


def test_kept_releases_are_combined_and_each_counts_once(tmp_path: Path) -> None:
    def asked(epsilon: float) -> Release:
        frame = people(10, ledger=tmp_path / "budget.db", keep_releases=True)
        return counts(frame).release(epsilon=epsilon, reuse="same", interval=0.9)

    found = [asked(1), asked(2)]
    again = [asked(1), asked(2)]
    assert [release.reused for release in again] == [True, True]
    assert dp.combine(again).frame.equals(dp.combine(found).frame)
    assert dp.combine(again).frame.columns == ["k", "n", "s"]
    for twice in ([found[0], again[0]], [found[0], found[0]]):
        with pytest.raises(dp.UnsupportedOperation, match="from the same charge"):
            dp.combine(twice)
    unknown = Release(found[0].frame, found[0].plan, found[0].cost)
    with pytest.raises(dp.UnsupportedOperation, match="charge is unknown"):
        dp.combine([unknown, found[1]])


def test_queries_of_lists_are_combined() -> None:
    session = dp.Session(epsilon=10)
    frame = session.protect(FRAME, unit=dp.Rows(), name="people")
    found = [session.release([counts(frame), frame.dp_count()], epsilon=1) for _ in range(2)]
    assert dp.combine([several[0] for several in found]).weights["n"] == (0.5, 0.5)
    assert dp.combine([several[1] for several in found]).frame.columns == ["len"]
    with pytest.raises(dp.UnsupportedOperation, match="from the same charge"):
        dp.combine(found[0])


QUERIES = {
    "mean": lambda f: f.group_by("k", keys=KEYS).agg(pl.col("x").dp_mean((0, 100)).alias("o")),
    "nonnegative": lambda f: f.group_by("k", keys=KEYS).agg(dp.count(nonnegative=True).alias("o")),
    "median": lambda f: f.group_by("k", keys=KEYS).agg(pl.col("x").dp_median((0, 100)).alias("o")),
    "arithmetic": lambda f: f.group_by("k", keys=KEYS).agg((dp.count() + 1).alias("o")),
    "histogram": lambda f: f.group_by("k", keys=KEYS).agg(
        dp.histogram("x", [0, 50, 100]).alias("o")
    ),
    "cdf": lambda f: f.group_by("k", keys=KEYS).agg(dp.cdf("x", [0, 50, 100]).alias("o")),
    "grouping sets": lambda f: f.group_by(dp.rollup("k"), keys={"k": KEYS}).agg(
        dp.count().alias("o")
    ),
    "found groups": lambda f: f.group_by("k").agg(dp.count().alias("o")),
}


@pytest.mark.parametrize("kind", QUERIES)
def test_what_is_no_plain_number_is_refused(kind: str) -> None:
    frame = dp.Session(epsilon=100, delta=1e-3).protect(FRAME, unit=dp.Rows(), name="people")
    query = QUERIES[kind](frame)
    found = [query.release(epsilon=20, delta=1e-4) for _ in range(2)]
    with pytest.raises(dp.UnsupportedOperation, match="unbiased noise of a known variance"):
        dp.combine(found)


def test_other_queries_are_refused_with_what_differs() -> None:
    frame = people()
    first = counts(frame).release(epsilon=1)
    others = {
        "steps": counts(frame.filter(pl.col("x") > 3)),
        "groups": frame.group_by("k", keys=["b", "a"]).agg(
            dp.count().alias("n"), pl.col("x").dp_sum((0, 100)).alias("s")
        ),
        "outputs": frame.group_by("k", keys=KEYS).agg(
            dp.count().alias("n"), pl.col("x").dp_sum((0, 99)).alias("s")
        ),
        "frames": counts(
            dp.Session(epsilon=9).protect(FRAME, unit=dp.Rows("change-one"), name="people")
        ),
    }
    for what, query in others.items():
        with pytest.raises(dp.UnsupportedOperation, match=f"not of one query: their {what} differ"):
            dp.combine([first, query.release(epsilon=1)])
    rho = dp.Session(rho=9).protect(FRAME, unit=dp.Rows(), name="people")
    with pytest.raises(dp.UnsupportedOperation, match="their measures differ"):
        dp.combine([first, counts(rho).release(rho=1)])


@pytest.mark.parametrize("wrong", [None, 1, ["x"], "ab", pl.DataFrame()])
def test_releases_are_combined_and_nothing_else(wrong: Any) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="takes a list"):
        dp.combine(wrong)


def test_there_are_several_and_not_too_many() -> None:
    release = people().dp_count().release(epsilon=1)
    for many in ([], [release], [release] * (MOST_TERMS + 1)):
        with pytest.raises(dp.UnsupportedOperation, match="from 2 to 64"):
            dp.combine(many)
    both = dp.combine([release, people().dp_count().release(epsilon=1)])
    with pytest.raises(dp.UnknownColumn, match="no output 'lem'"):
        both.accuracy("lem")
