"""Ways to limit individuals, compared by bias and noise: what is stated is what happens."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.limits import Candidate, NoisyGroups, build_suggestion_query, ends_up_to
from dpframe.errors import DPFrameError
from dpframe.frames.contribution_limits import LimitGroups, LimitNorm
from dpframe.frames.per_individual import GROUPS
from tests.laws.neighbours import exact_tables, tables_of

GROUPS_LISTED = 12
PEOPLE = dp.n_unique("who").alias("n")
APPROX: dict[str, Any] = {"epsilon": 1, "delta": "1e-7"}


def table() -> pl.DataFrame:
    """1,000 individuals: most in one or two of 12 groups, every fifth in seven, every tenth in all,
    and each in a group that nobody lists.
    """
    made = pl.select(who=pl.int_range(1000)).with_columns(
        t=pl.when(pl.col("who") % 10 == 0)
        .then(GROUPS_LISTED)
        .when(pl.col("who") % 5 == 0)
        .then(7)
        .otherwise(1 + pl.col("who") % 2)
    )
    listed = made.with_columns(at=pl.int_ranges(0, "t")).explode("at")
    listed = listed.with_columns(g=(pl.col("who") * 5 + pl.col("at")) % GROUPS_LISTED)
    others = made.with_columns(g=pl.lit(99, pl.Int64))
    return pl.concat([listed.select("who", "g"), others.select("who", "g")])


def frame_of(data: pl.DataFrame, **budget: Any) -> dp.PrivateFrame:
    return dp.Session(**(budget or {"epsilon": 10**9, "delta": "1e-2"})).protect(data, "who")


def counted(frame: Any) -> Any:
    return frame.group_by("g", keys=range(GROUPS_LISTED)).agg(PEOPLE)


def ways(found: pl.DataFrame) -> dict[str, dict[str, Any]]:
    rows = found.filter(pl.col("bias").is_not_null()).to_dicts()
    return {row["limit"]: row for row in rows}


def limited(frame: dp.PrivateFrame, way: dict[str, Any]) -> Any:
    if way["limit"] == "limit_norm":
        return counted(frame.limit_norm(way["norm"]))
    return counted(frame.filter(pl.col("g") < 99).limit_groups(way["n"], by="g"))


@pytest.mark.parametrize("spend", [{"epsilon": "0.3"}, {"epsilon": "0.2", "delta": "1e-7"}])
def test_what_is_stated_is_what_happens(spend: dict[str, Any]) -> None:
    frame = frame_of(table())
    found = ways(counted(frame).suggest_limits(epsilon=10**4, for_spend=spend, details=True))
    assert set(found) == {"limit_groups", "limit_norm"}
    whole = counted(frame).collect(epsilon=10**5)["n"].sum()
    for way in found.values():
        query = limited(frame, way)
        left = query.collect(epsilon=10**6)["n"].sum()
        assert way["bias"] == pytest.approx((whole - left) / GROUPS_LISTED, abs=0.6)
        assert way["bias_error"] < 0.1
        plan = query.plan(**spend)
        assert way["noise"] == plan.accuracy("n")
        variance = plan.releases[0].noise.variance() * float(plan.releases[0].step) ** 2
        assert way["error"] == pytest.approx(math.hypot(way["bias"], math.sqrt(variance)))
        exact = query.collect(epsilon=10**6)["n"].to_numpy()
        drawn = [query.collect(**spend)["n"].to_numpy() - exact for _ in range(25)]
        near = np.mean(np.abs(drawn) <= way["noise"] + 1)
        assert near > 0.88  # of 300 errors


def test_no_other_limit_of_a_kind_errs_less() -> None:
    data = table()
    frame, spend = frame_of(data), {"epsilon": "0.3"}
    found = ways(counted(frame).suggest_limits(epsilon=10**5, for_spend=spend, details=True))
    in_groups = data.filter(pl.col("g") < 99).group_by("who").len()["len"].to_list()
    errors = {}
    for n in range(1, GROUPS_LISTED + 1):
        plan = counted(frame.limit_groups(n, by="g")).plan(**spend)
        bias = sum(max(0, t - n) for t in in_groups) / GROUPS_LISTED
        errors[n] = math.sqrt(bias**2 + plan.releases[0].noise.variance())
    del errors[11]  # which is none of the numbers that are suggested
    assert found["limit_groups"]["n"] == min(errors, key=errors.__getitem__)


@pytest.mark.parametrize("step", [LimitGroups(2, ("g",)), LimitNorm(Fraction(3, 2))])
def test_the_error_of_the_bias_is_that_of_its_noise(step: LimitGroups | LimitNorm) -> None:
    query = counted(frame_of(table()))
    sought = build_suggestion_query(query._query)
    ends = sought.ends[GROUPS]
    one = dp.PrivateQuery(sought.query, query._source, query._payer)
    (noise,) = (r.noise for r in one.plan(epsilon=1).releases if GROUPS in r.users)
    drawn = one.simulate(table(), epsilon=1, runs=400).results.filter(pl.col("output") == GROUPS)
    bins = drawn["noisy"].to_numpy().reshape(400, -1)[:, : len(ends)].astype(np.int64)
    way = Candidate(step, 0.0, 0.0)
    lost = {t: people * way.lost(t) for t, people in {1: 400, 2: 400, 7: 100, 12: 100}.items()}
    truth = sum(lost.values()) / GROUPS_LISTED
    stated = NoisyGroups(ends, bins[0], noise.variance()).bias(way, GROUPS_LISTED)[1]
    found = [NoisyGroups(ends, row, noise.variance()).bias(way, GROUPS_LISTED)[0] for row in bins]
    off = np.array(found) - truth
    assert 0.92 < np.mean(np.abs(off) <= stated) < 0.98
    assert np.std(off) * 1.96 / stated == pytest.approx(1, abs=0.15)
    assert abs(np.mean(off)) < 4 * stated / 1.96 / 20


def test_norms_win_under_gaussian_noise_and_lose_in_pure_dp() -> None:
    many = pl.select(who=pl.int_range(6000)).with_columns(
        g=pl.int_ranges(0, pl.when(pl.col("who") % 2 == 0).then(60).otherwise(2))
    )
    frame = frame_of(many.explode("g"))
    query = frame.group_by("g", keys=range(60)).agg(PEOPLE)
    best = {}
    for name, spend in {
        "gauss": {"epsilon": "0.1", "delta": "1e-7"},
        "pure": {"epsilon": 1},
    }.items():
        found = query.suggest_limits(epsilon=100, for_spend=spend, details=True)
        assert found["best"].drop_nulls().sum() == 1
        best[name] = found.filter(pl.col("best"))["limit"].item()
    assert best == {"gauss": "limit_norm", "pure": "limit_groups"}


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["a", "b", "c", "z", None]))),
    st.integers(0, 6),
)
def test_listed_groups_are_counted_and_an_individual_moves_one_bin(
    rows: list[Any], gone: int
) -> None:
    schema = {"who": pl.Int64, "g": pl.String}
    keys = ["c", None, "a"]
    whole = pl.DataFrame(rows, schema, orient="row")
    asked = frame_of(whole).group_by("g", keys=keys).agg(PEOPLE)
    sought = build_suggestion_query(asked._query)
    (place,) = (i for i, number in enumerate(sought.numbers) if number == GROUPS)
    histogram = tables_of(sought.query)[place]
    assert histogram.cells is not None

    def counts(some: pl.DataFrame) -> np.ndarray[Any, Any]:
        return exact_tables(sought.query, some)[histogram].dense(histogram.cells.size)  # type: ignore[union-attr]

    pairs = {(who, g) for who, g in rows if g in keys}
    expected = Counter(Counter(who for who, _ in pairs).values())
    assert counts(whole).ravel().tolist() == [expected[t] for t in (1, 2, 3)] + [0]
    assert (counts(whole.sort("g", "who")) == counts(whole)).all()
    without = whole.filter(pl.col("who") != gone)
    parts = pl.concat([without[:3], without[3:]], rechunk=False)
    assert abs(counts(whole) - counts(parts)).sum() == (gone in {who for who, _ in pairs})


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300))
def test_bins_hold_every_number_and_say_how_far_off_they_are(size: int, limit: int, t: int) -> None:
    ends = ends_up_to(size)
    assert ends[-1] == size
    assert list(ends) == sorted(set(ends))
    t = min(t, size)
    counts = np.zeros(len(ends), np.int64)
    counts[next(i for i, end in enumerate(ends) if t <= end)] = 1000
    for step in (LimitGroups(min(limit, size), ("g",)), LimitNorm(Fraction(limit, 20))):
        way = Candidate(step, 0.0, 0.0)
        bias, error = NoisyGroups(ends, counts, 0.0).bias(way, size)
        assert abs(bias - 1000 * way.lost(t) / size) <= error + 1e-6 * 1000
        assert t > 64 or error == 0


def test_a_spend_is_said_by_names_and_checked_before_anything_is_charged() -> None:
    frame = frame_of(table(), epsilon=1)
    query = counted(frame)
    for wrong in ({}, {"epsilonn": 1}, {"epsilon": 0}, {"rho": 1}, {"epsilon": -1}, 3, "epsilon"):
        with pytest.raises(dp.InvalidBudget):
            query.suggest_limits(epsilon="0.5", for_spend=wrong)
    assert frame.session is not None
    assert frame.session.remaining == dp.PureDP(1)
    same = ways(query.suggest_limits(epsilon="0.5", details=True))
    assert frame.session.remaining == dp.PureDP("0.5")
    later = ways(
        query.suggest_limits(epsilon="0.5", for_spend={"epsilon": 50}, details=True)
    )  # not paid yet
    assert later["limit_groups"]["noise"] < same["limit_groups"]["noise"]


def notes(query: Any) -> list[str]:
    found = query.suggest_limits(epsilon=100, delta="1e-6", details=True)
    assert found["bias"].is_null().all() or "limit_rows" in found["limit"].to_list()
    return found["note"].drop_nulls().to_list()


def test_what_is_not_compared_says_why() -> None:
    frame = frame_of(table())
    (rows,) = notes(frame.limit_rows(3).group_by("g", keys=[1, 2]).agg(dp.count()))
    assert rows.startswith("not compared: only counts of individuals")
    (found,) = notes(frame.group_by("g").agg(PEOPLE))
    assert found == "not compared: the groups are not listed"
    (made,) = notes(frame.group_by(h=pl.col("g") % 2, keys={"h": [0, 1]}).agg(PEOPLE))
    assert "with_columns" in made
    both = frame.limit_groups(1, by="g").limit_rows(2, by="g").group_by("g", keys=[1, 2])
    *_, last = notes(both.agg(PEOPLE, dp.count()))
    assert "limit_groups" in last
    refused, norm, _ = notes(both.agg(PEOPLE, pl.col("g").dp_median((0, 9)).alias("m")))
    assert "any number of rows" in refused
    assert "limit_norm does not work with quantile, because only counts, sums and" in norm


def test_a_query_that_cannot_be_suggested_for_is_refused_as_before() -> None:
    rows = dp.Session(epsilon=1).protect(table(), dp.Rows())
    with pytest.raises(DPFrameError, match="individuals"):
        rows.group_by("g", keys=[1]).agg(dp.count()).suggest_limits(epsilon=1, details=True)
