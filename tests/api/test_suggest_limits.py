"""Limits that are found: what most individuals keep, at the cost of histograms of individuals."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.api.suggest import counting
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
    found = groups.dp_count().suggest_limits(epsilon=10)
    assert found.select("limit", "by", "n").rows() == [
        ("limit_rows", [], 3),
        ("limit_groups", ["city"], 1),
        ("limit_rows", ["city"], 3),
    ]
    assert all(0.95 <= share <= 1 for share in found["covered"])
    nearly_all = groups.dp_count().suggest_limits(epsilon=10, coverage=0.995)
    assert nearly_all["n"].to_list() == [63, 7, 15]


def test_without_groups_rows_in_all_are_limited() -> None:
    found = visits().limit_rows(1).dp_count().suggest_limits(epsilon=10)
    assert found.rows() == [("limit_rows", [], 3, found["covered"].item())]


def test_other_steps_stay() -> None:
    few = visits().filter(pl.col("who") >= 1000).limit_rows(1)
    assert few.dp_count().suggest_limits(epsilon=10)["n"].to_list() == [63]


def test_it_is_a_release_like_others() -> None:
    frame = visits(epsilon=1)
    query = frame.limit_rows(1).dp_count()
    query.suggest_limits(epsilon="0.4")
    assert frame.session is not None
    assert frame.session.remaining == dp.PureDP("0.6")
    with pytest.raises(dp.BudgetExceeded):
        query.suggest_limits(epsilon="0.7")
    with pytest.raises(dp.InvalidBounds, match="coverage"):
        query.suggest_limits(epsilon="0.1", coverage=1)
    people = dp.Session(epsilon=1).protect(ROWS, dp.Rows())
    with pytest.raises(dp.UnsupportedOperation, match="individuals"):
        people.dp_count().suggest_limits(epsilon=1)
    assert frame.session.remaining == dp.PureDP("0.6")


@pytest.mark.parametrize("gone", [0, 500, 1003])
def test_an_individual_moves_one_bin_of_each(gone: int) -> None:
    groups = visits().limit_rows(1).group_by("city", keys=["a", "b", "c", "d"])
    query, _ = counting(groups.dp_count()._query)
    before = exact_tables(query, ROWS)
    after = exact_tables(query, ROWS.filter(pl.col("who") != gone))
    for table in tables_of(query):
        assert table.cells is not None
        moved = before[table].dense(table.cells.size) - after[table].dense(table.cells.size)
        assert abs(moved).sum() == 1
