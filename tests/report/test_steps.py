"""Which step decides what one individual contributes, and which values are clamped."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp

ROWS = pl.LazyFrame(
    schema={"who": pl.String, "site": pl.String, "day": pl.Int64, "x": pl.Float64, "u": pl.UInt8}
)
IDLE = "decides nothing here: what holds without it is as tight"


def visits(**declared: Any) -> dp.PrivateFrame:
    return dp.Session(epsilon=9, delta="1e-6").protect(ROWS, "who", **declared)


def decided(query: dp.PrivateQuery, step: int) -> str:
    learned = query.plan(epsilon=1, delta="1e-7").steps[step].learned
    (found,) = (line for line in learned if line.startswith("decides"))
    return found.removeprefix("decides that in the end one individual has ")


def test_each_limit_says_what_would_not_hold_without_it() -> None:
    limited = visits().limit_rows(10).limit_groups(3, "site").limit_rows(2, "site")
    query = limited.group_by("site").dp_count()
    assert decided(query, 0) == IDLE
    assert decided(query, 1) == "at most 6 rows, at most 3 groups"
    assert decided(query, 2) == "at most 6 rows, at most 2 rows in each group"
    assert query.plan(epsilon=1, delta="1e-7").releases[1].sensitivity.l1 == 6


def test_public_keys_limit_groups_too() -> None:
    limited = visits().limit_groups(5, "site").limit_rows(1, "site")
    few, many = (limited.group_by("site", keys=[*"abcdefg"[:n]]).dp_count() for n in (3, 7))
    assert decided(few, 0) == IDLE
    assert decided(many, 0) == "at most 5 rows, at most 5 groups"
    assert decided(few, 1) == "at most 3 rows, at most 1 row in each group"


def test_without_groups_only_rows_count() -> None:
    query = visits().limit_rows(4).limit_rows(9).dp_count()
    assert decided(query, 0) == "at most 4 rows"
    assert decided(query, 1) == IDLE


def test_a_limit_is_followed_through_renaming_and_copies() -> None:
    twice = pl.DataFrame({"place": ["a", "a"], "region": ["n", "s"]})
    query = visits().limit_rows(3).rename({"site": "place"}).join(twice, on="place").dp_count()
    assert decided(query, 0) == "at most 6 rows"


def test_before_frames_are_brought_together_nothing_is_said() -> None:
    session = dp.Session(epsilon=9)
    frames = [session.protect(ROWS, "who", name=name).limit_rows(2) for name in "ab"]
    steps = frames[0].concat(frames[1]).dp_count().plan(epsilon=1).steps
    assert not any(line.startswith("decides") for step in steps for line in step.learned)


def clamped(query: dp.PrivateQuery) -> list[str]:
    found = query.plan(epsilon=1).warnings
    return [w.partition(" clamped")[0] for w in found if " clamped to bounds" in w]


ONE = dp.Session(epsilon=9).protect(ROWS, dp.Rows(), bounds={"day": (1, 31)})


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (ONE.dp_sum("x", (0, 1)), ['col("x") is']),
        (ONE.agg(dp.mean("x", (0, 1)), dp.std("x", (0, 1)).alias("s")), ['col("x") is']),
        (ONE.agg(dp.var("x", (0, 1)), dp.sum("day", (1, 9))), ['col("x") and col("day") are']),
        (ONE.dp_sum("day"), []),
        (ONE.dp_sum("day", (0, 40)), []),
        (ONE.dp_sum("day", (1, 30)), ['col("day") is']),
        (ONE.dp_sum("u", (0, 255)), []),
        (ONE.agg(pl.col("x").clip(0, 5).dp_sum((0, 5))), []),
        (ONE.filter(pl.col("x").is_between(0, 5)).dp_mean("x", (0, 5)), []),
        (ONE.dp_median("x", (0, 5)), []),
        (ONE.group_by("u", keys=[1]).dp_argmax(score=pl.col("x").dp_sum((0, 1))), ['col("x") is']),
        (ONE.dp_count(), []),
    ],
    ids=str,
)
def test_values_that_may_be_clamped_are_named(query: dp.PrivateQuery, words: list[str]) -> None:
    assert clamped(query) == words


def test_totals_are_clamped() -> None:
    query = visits().limit_groups(2, "site").group_by("site", keys=["a"])
    total = query.agg(dp.sum("u", (0, 255), per="unit"))
    assert clamped(total) == ['each individual\'s total of col("u") is']


def test_groups_that_are_found_leave_out_small_ones() -> None:
    limited = visits().limit_rows(1)
    found = limited.group_by("site").dp_count().plan(epsilon=1, delta="1e-7")
    listed = limited.group_by("site", keys=["a"]).dp_count().plan(epsilon=1)
    assert any(w.startswith("groups of few individuals are left out") for w in found.warnings)
    assert not any("left out" in w for w in listed.warnings)


def test_the_first_page_says_what_counts_for_a_limit() -> None:
    """The same steps in another order keep other rows."""
    few = pl.col("x") > 3
    first, last = visits().limit_rows(3).filter(few), visits().filter(few).limit_rows(3)
    pages = [query.dp_count().explain(epsilon=1) for query in (first, last)]
    assert "more than 3 rows, counted before filter(x > 3)" in pages[0]
    assert "counted before" not in pages[1]
    joined = visits().limit_rows(3).drop_nulls("day").dp_count().explain(epsilon=1)
    assert "counted before drop_nulls('day')" in joined


def test_the_first_page_says_that_rows_of_nobody_are_dropped() -> None:
    assert "rows where who is null" in visits().limit_rows(3).dp_count().explain(epsilon=1)
    session = dp.Session(epsilon=9)
    assert "is null" not in session.protect(ROWS, dp.Rows()).dp_count().explain(epsilon=1)
