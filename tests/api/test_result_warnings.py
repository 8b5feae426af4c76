"""Warnings of results: each comes where it should, once, and not elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp

SIZE = 2000
START = datetime(2024, 1, 1)
FRAME = pl.DataFrame(
    {
        "salary": [40_000.0 + 10 * i for i in range(SIZE)],
        "age": [20 + i % 50 for i in range(SIZE)],
        "text": [f"${i}" for i in range(SIZE)],
        "day": ["2024-05-17"] * SIZE,
        "at": [START + timedelta(hours=i) for i in range(SIZE)],
        "rare": [i % 100 == 0 for i in range(SIZE)],
    }
)
AT, DAY = pl.col("at"), pl.col("day")
MONTH = DAY.str.to_date("%d.%m.%Y").dt.month()
NONE: Any = pl.col("text").cast(pl.Float64)
"""A cast that fits no row."""
Query = Callable[[dp.PrivateFrame], dp.PrivateQuery]


def frame_of(**session: object) -> dp.PrivateFrame:
    return dp.Session(epsilon=10**4, **session).protect(FRAME, unit=dp.Rows(), name="people")  # type: ignore[arg-type]


def raised(query: dp.PrivateQuery, epsilon: float = 4) -> tuple[dp.Release, list[type[Warning]]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = query.release(epsilon=epsilon)
    assert [str(one.message) for one in caught] == list(release.warnings)
    return release, [one.category for one in caught]


WARNED: dict[str, tuple[Query, type[Warning], str]] = {
    "a mean of a cast that fits no row": (
        lambda f: f.agg(pl.col("text").cast(pl.Float64).clip(0, 500_000).mean()),
        dp.NoRows,
        "'text' is null",
    ),
    "a deviation of it": (
        lambda f: f.agg(s=pl.col("text").cast(pl.Float64).dp_std((0, 500))),
        dp.NoRows,
        "'s' is null",
    ),
    "arithmetic with it": (
        lambda f: f.agg(d=pl.col("text").cast(pl.Int64).dp_mean((0, 5)) - dp.mean("age", (0, 99))),
        dp.NoRows,
        "'d' is null",
    ),
    "a quantile beside a count of no rows": (
        lambda f: f.filter(pl.col("age") > 90).agg(dp.count(), q=dp.median("age", (0, 99))),
        dp.NoRows,
        "'q' rests on no rows",
    ),
    "a quantile beside a count of its values": (
        lambda f: f.agg(n=NONE.dp_count(), q=NONE.dp_median((0, 99))),
        dp.NoRows,
        "'q' rests on no rows",
    ),
    "a format that fits no row": (
        lambda f: f.group_by(MONTH, keys=range(1, 13)).agg(dp.count()),
        dp.NoRows,
        "all 12 numbers of 'len'",
    ),
    "a mean at its bound": (
        lambda f: f.agg(m=dp.mean("salary", (0, 100))),
        dp.ValuesAtBounds,
        "'m' is at its upper bound 100",
    ),
    "a mean of what is clipped": (
        lambda f: f.agg(m=pl.col("salary").clip(0, 100).mean()),
        dp.ValuesAtBounds,
        "'m' is at its upper bound 100",
    ),
    "a mean at a bound above 0 of two around it": (
        lambda f: f.agg(m=dp.mean("salary", (-100, 100))),
        dp.ValuesAtBounds,
        "'m' is at its upper bound 100",
    ),
    "a mean at its lower bound": (
        lambda f: f.agg(m=dp.mean("age", (100, 200))),
        dp.ValuesAtBounds,
        "'m' is at its lower bound 100",
    ),
    "a sum beside a count": (
        lambda f: f.agg(dp.count(), s=dp.sum("salary", (0, 100))),
        dp.ValuesAtBounds,
        "if all values were 100",
    ),
    "a median at its bound": (
        lambda f: f.agg(q=dp.median("salary", (0, 100))),
        dp.ValuesAtBounds,
        "'q' is at its upper bound 100",
    ),
    "a median at a bound beside which floats are coarse": (
        lambda f: f.agg(q=dp.median("age", (10**17, 10**17 + 1000))),
        dp.ValuesAtBounds,
        "'q' is at its lower bound 1e17",
    ),
    "weekdays from 0": (
        lambda f: f.group_by(AT.dt.weekday(), keys=range(7)).agg(dp.count()),
        dp.ImpossibleKeys,
        "key 0 of 'at': col(\"at\").dt.weekday() lies in [1, 7], and 7 is not listed",
    ),
    "an hour 24": (
        lambda f: f.group_by(AT.dt.hour(), keys=range(1, 25)).agg(dp.count()),
        dp.ImpossibleKeys,
        "key 24 of 'at': col(\"at\").dt.hour() lies in [0, 23], and 0 is not listed",
    ),
    "weeks from Sunday": (
        lambda f: f.group_by(AT.dt.truncate("1w"), keys=[datetime(2024, 1, 7)]).agg(dp.count()),
        dp.ImpossibleKeys,
        "gives other values",
    ),
    "capitals among small letters": (
        lambda f: f.group_by(DAY.str.to_lowercase(), keys=["A"]).agg(dp.count()),
        dp.ImpossibleKeys,
        "the listed key 'A'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_results_that_are_not_what_they_seem_warn(name: str) -> None:
    query, kind, said = WARNED[name]
    release, kinds = raised(query(frame_of()))
    assert kinds.count(kind) == 1
    assert issubclass(kind, dp.ResultWarning)
    assert any(said in sentence for sentence in release.warnings)


FINE: dict[str, Query] = {
    "a mean": lambda f: f.agg(dp.mean("salary", (0, 100_000))),
    "a rare truth": lambda f: f.agg(pl.col("rare").mean()),
    "a sum and a count": lambda f: f.agg(dp.count(), dp.sum("age", (0, 100))),
    "a mean that is at its bound in one group of five": lambda f: f.group_by(
        pl.col("age") // 10, keys=range(2, 7)
    ).agg(m=dp.mean("age", (0, 60))),
    "a median": lambda f: f.agg(dp.median("age", (0, 100))),
    "a median beside a count of other values": lambda f: f.agg(
        n=NONE.dp_count(), q=dp.median("age", (0, 100))
    ),
    "a least value": lambda f: f.agg(dp.quantile("age", 0, (20, 100))),
    "weekdays": lambda f: f.group_by(AT.dt.weekday(), keys=range(1, 8)).agg(dp.count()),
    "weeks": lambda f: f.group_by(AT.dt.truncate("1w"), keys=[datetime(2024, 1, 8)]).agg(
        dp.mean("age", (0, 100))
    ),
    "a month": lambda f: f.group_by(DAY.str.to_date("%Y-%m-%d").dt.month(), keys=range(1, 13)).agg(
        dp.count()
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_ordinary_results_do_not(name: str) -> None:
    assert raised(FINE[name](frame_of()), epsilon=50)[1] == []


def test_rows_of_events_warn_by_names_and_types() -> None:
    schema = {"user_id": pl.Int64, "at": pl.Datetime}
    for columns, unit, expected in (
        (schema, dp.Rows(), [dp.EventRows]),
        (schema, dp.Rows(contributions=20), []),
        ({"user_id": pl.Int64, "x": pl.Int64}, dp.Rows(), []),
        ({"trip_id": pl.Int64, "at": pl.Datetime}, dp.Rows(), []),
    ):
        frame = dp.Session(epsilon=9).protect(pl.DataFrame(schema=columns), unit=unit)
        assert raised(frame.dp_count())[1] == expected


def test_plans_say_what_becomes_null_and_which_keys_are_impossible() -> None:
    frame = frame_of()
    notes = frame.with_columns(n=pl.col("text").cast(pl.Int64)).agg(dp.mean("n", (0, 9))).plan(
        epsilon=1
    ).notes  # fmt: skip
    assert any("(String to Int64): text that is not a number becomes null" in n for n in notes)
    notes = frame.group_by(MONTH, keys=[0]).agg(dp.count()).plan(epsilon=1).notes
    assert any("text of another form becomes null" in note for note in notes)
    assert any("no row can have the listed key 0" in note for note in notes)
    plain = frame.agg(pl.col("age").cast(pl.Float64).dp_mean((0, 99))).plan(epsilon=1).notes
    assert not any("becomes null" in note for note in plain)


def test_a_result_that_was_kept_warns_again(tmp_path: Path) -> None:
    frame = frame_of(ledger=str(tmp_path / "budget.db"), keep_releases=True)
    query = frame.agg(m=dp.mean("salary", (0, 100)))
    first, _ = raised(query)
    with pytest.warns(dp.ValuesAtBounds):
        again = query.release(epsilon=4, reuse="same")
    assert again.reused
    assert again.warnings == first.warnings
