"""Limits that are found: what most individuals keep, at the cost of histograms of individuals."""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.limits import build_suggestion_query
from dpframe.core.tree import Column, Named
from dpframe.frames.per_individual import Extremes, PerIndividual
from tests.laws.neighbours import exact_tables, tables_of

# 1000 individuals with 3 rows in 1 city, 20 with 40 rows in 4 cities
ROWS = pl.DataFrame(
    {
        "who": [i for i in range(1000) for _ in range(3)]
        + [1000 + i for i in range(20) for _ in range(40)],
        "city": ["a"] * 3000 + ["a", "b", "c", "d"] * 200,
        "x": [1.0] * 3800,
    }
)


def visits(**budget: Any) -> dp.PrivateFrame:
    return dp.Session(**(budget or {"epsilon": 100})).protect(ROWS, "who")


def test_most_individuals_keep_them() -> None:
    groups = visits().limit_groups(1, by="city").limit_rows(1).group_by("city", keys=["a", "b"])
    found = groups.dp_count().suggest_limits(epsilon=10, details=True)
    covering = found.filter(pl.col("covered").is_not_null())
    assert covering.select("limit", "by", "n").rows() == [
        ("limit_rows", [], 3),
        ("limit_groups", ["city"], 1),
        ("limit_rows", ["city"], 3),
    ]
    assert all(0.95 <= share <= 1 for share in covering["covered"])


@pytest.mark.parametrize(
    ("keys", "n"),
    [
        (["a", "b", "c", "d"], [40, 4, 10]),
        (["a", "b", "d", None], [30, 3, 10]),  # rows in groups that are not listed do not count
        (["a", "b"], [20, 2, 10]),
        (["a"], [10, 1, 10]),
    ],
)
def test_of_listed_groups_limits_keep_nearly_all(keys: list[str | None], n: list[int]) -> None:
    groups = visits().limit_groups(1, by="city").limit_rows(1).group_by("city", keys=keys)
    found = groups.dp_count().suggest_limits(epsilon=60, coverage=0.995, details=True)
    assert found.filter(pl.col("covered").is_not_null())["n"].to_list() == n


def test_without_groups_rows_in_all_are_limited() -> None:
    found = visits().limit_rows(1).dp_count().suggest_limits(epsilon=10, details=True)
    assert found.columns[:6] == ["limit", "by", "n", "covered", "covered_rows", "bounds"]
    most, best = found.to_dicts()
    assert (most["limit"], most["by"], most["n"], most["bounds"]) == ("limit_rows", [], 3, None)
    assert most["covered"] > 0.97
    assert 0.7 < most["covered_rows"] < 0.95  # 20 individuals have 37 rows more: 740 of 3,800
    assert best["best"]
    assert best["n"] in (50, 100)
    assert best["bias"] < 200
    assert best["error"] < 100 + best["bias"]


def test_of_rows_the_limit_that_loses_least_has_the_noise_of_its_plan() -> None:
    query = visits().group_by("city", keys=["a", "b"]).agg(dp.sum("x", (0, 2)))
    found = query.suggest_limits(epsilon=20, for_spend={"epsilon": "0.5"}, details=True)
    (best,) = found.filter(pl.col("best")).to_dicts()
    limited = visits().limit_rows(best["n"]).group_by("city", keys=["a", "b"])
    noise = limited.agg(dp.sum("x", (0, 2))).plan(epsilon="0.5").accuracy("x") / 2
    assert best["noise"] == pytest.approx(noise, rel=0.02)


def test_the_table_is_narrow_and_has_what_decides() -> None:
    grouped = visits().group_by("city", keys=["a", "b"])
    query = grouped.agg(dp.sum("x", (0, 2)), dp.n_unique("who").alias("people"))
    table = query.suggest_limits(epsilon=20, for_spend={"epsilon": 1})
    assert table.columns == ["limit", "n", "people", "rows", "error", "best"]
    assert table["limit"].is_unique().all()
    assert table["best"].sum() >= 1
    assert all("(" in limit for limit in table["limit"])
    assert 'limit_groups(1, by="city")' in table["limit"].to_list()
    assert any(limit.startswith("bounds of x: (") for limit in table["limit"])
    assert not any(table[name].is_null().all() for name in table.columns)
    with pl.Config(tbl_width_chars=80):
        lines = str(table).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) == table.height + 7
    sums = grouped.agg(dp.sum("x", (0, 2))).suggest_limits(epsilon=20, for_spend={"epsilon": 1})
    (best,) = sums.filter("best").to_dicts()
    assert best["limit"] == f"limit_rows({best['n']})"
    assert 0.9 < best["people"] <= 1
    assert 0.7 < best["rows"] <= 1
    assert best["error"] > 0


def test_of_a_frame_it_has_no_columns_that_are_empty() -> None:
    table = visits().suggest_limits(epsilon=20)
    assert table.columns == ["limit", "n", "people", "rows"]
    assert table["limit"].to_list() == ["limit_rows(3)"]
    two = visits().suggest_limits("city", epsilon=20)
    assert two["limit"].to_list() == [
        *("limit_rows(3)", 'limit_groups(1, by="city")', 'limit_rows(3, by="city")')
    ]
    frame = visits()
    for limit in two["limit"]:
        eval(f"frame.{limit}", {"frame": frame})


def test_other_steps_stay() -> None:
    few = visits().filter(pl.col("who") >= 1000).limit_rows(1)
    assert few.dp_count().suggest_limits(epsilon=10, details=True)["n"][0] == 40


def test_it_is_a_release_like_others() -> None:
    frame = visits(epsilon=1)
    query = frame.limit_rows(1).dp_count()
    query.suggest_limits(epsilon="0.4", details=True)
    assert frame.session is not None
    assert frame.session.remaining == dp.PureDP("0.6")
    with pytest.raises(dp.BudgetExceeded):
        query.suggest_limits(epsilon="0.7", details=True)
    with pytest.raises(dp.InvalidBounds, match="coverage"):
        query.suggest_limits(epsilon="0.1", coverage=1, details=True)
    people = dp.Session(epsilon=1).protect(ROWS, dp.Rows())
    with pytest.raises(dp.UnsupportedOperation, match="individuals"):
        people.dp_count().suggest_limits(epsilon=1, details=True)
    assert frame.session.remaining == dp.PureDP("0.6")


@pytest.mark.parametrize("gone", [0, 500, 1003])
def test_an_individual_moves_one_bin_of_each(gone: int) -> None:
    groups = visits().limit_rows(1).group_by("city", keys=["a", "b", "c", "d"])
    query = build_suggestion_query(
        groups.agg(dp.sum("x", (0, 9)), dp.mean("x", (0, 9), per="unit").alias("m"))._query
    ).query
    before = exact_tables(query, ROWS)
    after = exact_tables(query, ROWS.filter(pl.col("who") != gone))
    for table in tables_of(query):
        assert table.cells is not None
        moved = before[table].dense(table.cells.size) - after[table].dense(table.cells.size)
        assert abs(moved).sum() == 1


def test_bounds_of_what_is_clamped_are_found() -> None:
    values = pl.DataFrame(
        {
            "who": [i % 2000 for i in range(6000)],
            "city": ["a", "b"] * 3000,
            "x": [float(i % 90) for i in range(6000)],
            "k": [-3 - i % 40 for i in range(6000)],
        }
    )
    frame = dp.Session(epsilon=100).protect(values, "who")
    limited = frame.limit_rows(3).group_by("city", keys=["a", "b"])
    query = limited.agg(
        dp.sum("x", (0, 1e6), per="unit"),
        dp.mean("k", (-1e6, 1e6)),
        dp.var("k", (-9, 9)).alias("same"),
        dp.count().alias("n"),
    )
    found = query.suggest_limits(epsilon=20, details=True).filter(pl.col("limit") == "bounds")
    assert found.select("by", "bounds").rows() == [
        (["x"], [32.0, 256.0]),  # totals of three rows in one city
        (["k"], [-64.0, -2.0]),
    ]


def test_bounds_lost_in_noise_are_null() -> None:
    few = dp.Session(epsilon=1).protect(ROWS.head(3), "who").limit_rows(1)
    found = [few.dp_sum("x", (0, 9)).suggest_limits(epsilon="0.01", details=True) for _ in range(4)]
    bounds = [one.filter(pl.col("limit") == "bounds")["bounds"].to_list() for one in found]
    assert [None] in bounds or [[0.0, 2.0]] in bounds  # now and then noise looks like values


RANDOM = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), st.floats(), st.sampled_from([0.1, 0.2, -0.0, 1e300])),
    ),
    max_size=30,
)


LISTED = st.one_of(
    st.none(), st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, unique=True)
)


@given(RANDOM, LISTED, st.randoms(use_true_random=False))
@example([(0, "a", 0.0), (0, "a", -0.0)], None, Random(1))
@example([(0, "a", 0.0), (0, "a", -0.0)], ["a"], Random(3))
def test_what_is_found_of_an_individual_depends_on_nobody_else(
    rows: Any, listed: Any, random: Any
) -> None:
    schema = {"who": pl.Int64, "city": pl.String, "x": pl.Float64}
    by = (Named("city", Column("city")),)
    ends = (Extremes(Column("x"), False), Extremes(Column("x"), True))
    if listed is None:
        step = PerIndividual(by, ends)
    else:
        step = PerIndividual.within(by, ends, pl.DataFrame({"city": listed}, {"city": pl.String}))
    private = dp.Session(epsilon=1).protect(pl.DataFrame(schema=schema), "who")
    facts = private._relation.facts

    def found(some: Any) -> dict[int, str]:
        frame = pl.DataFrame(some, schema=schema, orient="row").lazy()
        made = step.lower(frame, facts, pl, 0).collect()
        return {row[0]: repr(row) for row in made.rows()}

    every = found(rows)
    random.shuffle(rows)
    assert found(rows) == every
    for gone in range(5):
        left = found([row for row in rows if row[0] != gone])
        assert left == {who: row for who, row in every.items() if who != gone}
