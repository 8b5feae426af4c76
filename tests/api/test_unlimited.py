"""Queries that lack limits: refused when they are planned, and asked for limits before."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp

START = datetime(2026, 1, 5)


def trips() -> pl.DataFrame:
    """Forty people with one to four trips each, in two cities and three weeks."""
    rows = [(u, n) for u in range(40) for n in range(1 + u % 4)]
    return pl.DataFrame(
        {
            "user": [f"u{u}" for u, _ in rows],
            "city": ["A" if (u + n) % 2 else "B" for u, n in rows],
            "pickup": [START + timedelta(days=7 * (n % 3), hours=u) for u, n in rows],
        }
    )


def session() -> dp.Session:
    return dp.Session(epsilon=1000, delta=1e-6)


def refusal(query: dp.PrivateQuery) -> str:
    with pytest.raises(dp.UnboundedSensitivity) as caught:
        query.plan(epsilon=1, limits=None)
    return str(caught.value)


def test_the_limit_is_of_the_column_that_groups_are_made_of() -> None:
    people = session().protect(trips(), unit="user")
    week = pl.col("pickup").dt.truncate("1w")
    said = refusal(people.group_by(week=week).agg(dp.count()))
    advised = '.with_columns(week=...).limit_groups(g, by="week").limit_rows(n, by="week")'
    assert advised in said
    assert 'group by "week"' in said
    assert "g is the most groups and n is the most rows in each group that count" in said
    limited = people.with_columns(week=week).limit_groups(5, by="week").limit_rows(3, by="week")
    assert limited.group_by("week").agg(dp.count()).plan(epsilon=1, delta=1e-8).releases


def test_what_needs_no_limit_comes_after_the_limit() -> None:
    people = session().protect(trips(), unit="user")
    said = refusal(people.group_by("city").agg(dp.count()))
    order = [".limit_groups(g", ".limit_rows(n", "keys=[...]", 'per="unit", bounds=(0, n)']
    places = [said.index(words) for words in order]
    assert places == sorted(places)
    clamped = dp.count(per="unit", bounds=(0, 4))
    assert "per=" not in refusal(people.group_by("city").agg(clamped))
    for groups in (people.group_by("city", keys=["A", "B"]), people):
        assert groups.agg(clamped).plan(epsilon=1, limits=None).releases
    listed = refusal(people.group_by("city", keys=["A", "B"]).agg(dp.count()))
    assert "limit_groups" not in listed
    assert "keys=" not in listed
    assert "n is the most rows in each group that count" in listed


def test_what_is_said_is_for_what_is_asked() -> None:
    people = session().protect(trips().with_columns(x=pl.lit(1.0)), unit="user")
    x = pl.col("x")
    for query in (
        people.select(x.dp_mean((0, 9))),
        people.group_by("city").agg(x.dp_median((0, 9))),
        people.group_by("city", keys=["A"]).agg(dp.count(), x.dp_std((0, 9))),
    ):
        said = refusal(query)
        assert 'per="unit"' not in said  # which would mean something else
        assert "dp_n_unique" not in said
        assert "by=..." not in said
        assert "suggest_limits" in said
    said = refusal(people.group_by("city").agg(x.dp_mean((0, 9))))
    assert "keys=[...], and find a limit first, with query.suggest_limits" in said
    once = refusal(people.limit_rows(3, by="city").group_by("city").agg(x.dp_mean((0, 9))))
    assert "keys=[...], which then need no limit" in once
    assert "limit_rows" not in once
    both = refusal(people.group_by("city").agg(pl.col("user").n_unique(), dp.count()))
    assert "limit_groups(g" in both
    assert "limit_rows(n" in both  # the first output alone would need none
    sums = refusal(people.group_by("city", keys=["A"]).agg(x.dp_sum((0, 9))))
    assert '.dp_sum((low, high), per="unit")' in sums


def test_totals_without_bounds_say_so_before_limits_are_asked_for() -> None:
    people = session().protect(trips(), unit="user")
    for specs in ([dp.count(per="unit")], [dp.count(), dp.count(per="unit").alias("n")]):
        with pytest.raises(dp.UnboundedSensitivity, match=r"bounds=\(0, n\)"):
            people.group_by("city").agg(*specs)


def test_nothing_runs_of_a_query_that_lacks_limits() -> None:
    owner = session()
    query = owner.protect(trips(), unit="user").dp_count()
    for use in (
        lambda: query.collect(epsilon=1, limits=None),
        lambda: query.release(epsilon=1, limits=None),
        lambda: query.explain(details=True, epsilon=1, limits=None),
        lambda: query.audit(epsilon=1),
        lambda: query.simulate(trips(), epsilon=1),
        lambda: owner.collect(query, epsilon=1, limits=None),
        lambda: owner.collect([query], epsilon=1, limits=None),
        lambda: owner.stream("s", query, by="pickup", every="1d", start=START, periods=3, rho=1),
    ):
        with pytest.raises(dp.DPFrameError):
            use()
    assert owner.spent.epsilon == 0
    assert "dp.count()" in repr(query)
    assert "dp.count()" in query._repr_html_()


def test_limits_are_suggested_for_a_query_that_lacks_them() -> None:
    people = session().protect(trips(), unit="user")
    found = people.dp_count().suggest_limits(epsilon=100, coverage=0.99, details=True)
    assert found.select("limit", "n").rows() == [("limit_rows", 4), ("limit_rows", found["n"][1])]
    grouped = people.group_by("city", keys=["A", "B"]).dp_count()
    found = grouped.suggest_limits(epsilon=100, coverage=0.99, details=True)
    assert found["n"].to_list()[:3] == [4, 2, 2]


def test_limits_are_suggested_for_a_frame() -> None:
    people = session().protect(trips(), unit="user")
    rows = people.limit_rows(1).suggest_limits(epsilon=100, coverage=0.99, details=True)
    assert rows.select("limit", "by", "n").rows() == [("limit_rows", [], 4)]
    week = people.suggest_limits(
        pl.col("pickup").dt.truncate("1w").alias("week"), epsilon=100, coverage=0.99, details=True
    )
    assert week.select("limit", "by", "n").rows() == [
        ("limit_rows", [], 4),
        ("limit_groups", ["week"], 3),
        ("limit_rows", ["week"], 2),
    ]


def test_suggestions_are_charged() -> None:
    owner = session()
    owner.protect(trips(), unit="user").suggest_limits("city", epsilon=2, details=True)
    assert owner.spent.epsilon == 2


def test_a_frame_of_a_pure_session_needs_no_keys_for_suggestions() -> None:
    people = dp.Session(epsilon=200).protect(trips(), unit="user")
    found = people.suggest_limits("city", epsilon=200, coverage=0.99, details=True)
    assert found["n"].to_list() == [4, 2, 2]


def test_keys_of_the_protected_file_are_refused_as_such(tmp_path: Path) -> None:
    path, public = tmp_path / "trips.parquet", tmp_path / "public.parquet"
    trips().write_parquet(path)
    trips().write_parquet(public)
    owner = session()
    people = owner.protect(pl.scan_parquet(path), unit="user")
    cities = pl.scan_parquet(path).select("city").unique()
    with pytest.raises(dp.MissingKeys, match="come from the protected data"):
        people.group_by("city", keys=cities)
    with pytest.raises(dp.MissingKeys, match="come from the protected data"):
        owner.partition(people, "city", keys=cities)
    with pytest.raises(dp.MissingKeys, match="collect the public frame first"):
        people.group_by("city", keys=pl.scan_parquet(public).select("city").unique())


def test_a_scan_of_the_protected_file_does_not_stand_in_for_it(tmp_path: Path) -> None:
    path, linked = tmp_path / "trips.parquet", tmp_path / "linked.parquet"
    trips().write_parquet(path)
    linked.hardlink_to(path)
    query = session().protect(pl.scan_parquet(path), unit="user").limit_rows(4).dp_count()
    for other in (path, linked, tmp_path / "*.parquet", tmp_path):
        with pytest.raises(dp.UnsupportedOperation, match="is private"):
            query.simulate(pl.scan_parquet(other).filter(pl.col("city") == "A"), epsilon=1)
