"""Limits that keep the largest values first, and lists of quantiles, as Polars writes them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.api.exactly import exactly, protected

DAYS = pl.DataFrame(
    {
        "who": [i * 7 % 10 for i in range(100)],
        "day": [date(2024, 1, 1) + timedelta(i) for i in range(100)],
        "n": [i - 50 for i in range(100)],
        "missing": [None if i % 3 else i for i in range(100)],
    }
).with_columns(
    at=pl.col("day").cast(pl.Datetime("us")),
    zoned=pl.col("day").cast(pl.Datetime("ns")).dt.replace_time_zone("UTC"),
    small=pl.col("n").cast(pl.Int8),
    least=pl.when(pl.col("n") == -50).then(-(2**63)).otherwise(pl.col("n")),
    u64=pl.col("n").cast(pl.UInt64, strict=False).fill_null(0) + 2**62,
)


@pytest.mark.parametrize("order_by", ["day", "n", "at", "zoned", "small", "least", "u64"])
def test_the_last_rows_of_each_person_are_kept(order_by: str) -> None:
    people = protected(DAYS, dp.Identifier("who")).limit_rows(2, order_by=order_by, descending=True)
    assert people.columns == DAYS.columns
    last = DAYS.sort(order_by, descending=True).group_by("who").head(2)
    found = exactly(people.select("n", "who").agg(dp.sum("n", (-50, 50)), dp.count()))
    assert found.rows() == [(last["n"].sum(), 20)]


def test_nulls_come_last_and_groups_have_limits_of_their_own() -> None:
    frame = protected(DAYS, dp.Identifier("who"))
    people = frame.limit_rows(1, order_by="missing", descending=True)
    kept = exactly(people.agg(dp.sum("missing", (0, 100))))
    expected = DAYS.group_by("who").agg(pl.col("missing").max())["missing"].sum()
    assert kept.item() == expected
    month = frame.with_columns(month=pl.col("day").dt.month())
    by_month = month.limit_rows(1, by="month", order_by="day", descending=True)
    grouped = exactly(by_month.group_by("month", keys=[1, 2, 3]).agg(dp.count().alias("n")))
    assert grouped["n"].to_list() == [10, 10, 10]


def test_the_limit_is_known_to_plans_which_are_read_again() -> None:
    people = protected(DAYS, dp.Identifier("who")).limit_rows(3, order_by="day", descending=True)
    plan = people.dp_count().plan(epsilon=1, limits=None)
    assert plan.releases[0].sensitivity.l1 == 3
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    assert "limit_rows(3" in plan.explain(details=True)


def test_what_has_no_order_is_refused() -> None:
    people = protected(DAYS.with_columns(text=pl.lit("a")), dp.Identifier("who"))
    wrong: list[dict[str, Any]] = [
        {"descending": True},
        {"order_by": "day", "descending": 1},
        {"order_by": "text", "descending": True},
        {"order_by": "absent", "descending": True},
    ]
    for options in wrong:
        with pytest.raises(dp.DPFrameError):
            people.limit_rows(1, **options)


def test_a_list_of_quantiles_is_a_list_of_numbers() -> None:
    frame = pl.DataFrame({"v": [float(i % 101) for i in range(1010)], "g": ["a", "b"] * 505})
    value = pl.col("v").clip(0, 100)
    people = protected(frame)
    found = exactly(people.agg(value.quantile([0.25, 0.5, 0.75]))).item()
    assert found.to_list() == pytest.approx([25, 50, 75], abs=1.01)
    query = people.agg(value.quantile([0.25, 0.75]).alias("q"))
    same = people.agg(value.dp_quantile([0.25, 0.75]).alias("q"))  # type: ignore[attr-defined]
    assert query.plan(epsilon=1).fingerprint == same.plan(epsilon=1).fingerprint
    grouped = exactly(people.group_by("g", keys=["a", "b"]).agg(value.quantile([0, 1]).alias("q")))
    assert grouped["q"].list.len().to_list() == [2, 2]
    for wrong in (value.quantile(pl.col("v")), value.quantile([2.0, 0.5]), value.quantile([])):
        with pytest.raises(dp.DPFrameError):
            people.agg(wrong)
