"""One row for each individual, from the analyst's side: what is refused, and plans of it."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.api.exactly import ENOUGH

FRAME = pl.DataFrame(
    {
        "who": [1, 1, 2, 3, None],
        "x": [1.5, 2.5, None, 4.0, 9.0],
        "n": [1, 2, 3, 2**62, 5],
        "s": ["a", "b", "a", None, "a"],
        "day": [date(2026, 1, 1), date(2026, 1, 2), date(2026, 2, 1), None, date(2026, 1, 1)],
        "nothing": [None] * 5,
    }
)


def protected(unit: Any = "who", **more: Any) -> dp.PrivateFrame:
    return dp.Session(epsilon=ENOUGH * 9, delta="1e-6", **more).protect(FRAME, unit)


@pytest.mark.parametrize(
    ("output", "error", "said"),
    [
        (pl.col("s").first(), dp.UnsupportedOperation, "use .min() or .max()"),
        (pl.col("s").mode(), dp.UnsupportedOperation, "no order"),
        (pl.col("x").std(), dp.UnsupportedOperation, "variance of means"),
        (pl.col("x").sum(), dp.UnboundedSensitivity, ".clip(low, high).sum()"),
        (pl.col("n").mean(), dp.UnboundedSensitivity, ".clip(low, high).mean()"),
        (pl.col("s").sum(), dp.UnsupportedOperation, "use a column of numbers"),
        (pl.col("nothing").mean(), dp.UnsupportedOperation, "values of type Null"),
        (pl.col("n").clip(0, 2**40).sum(), dp.UnboundedSensitivity, "cast(pl.Float64)"),
        (pl.col("s").max(), dp.UnsupportedOperation, "String"),
        (pl.col("s"), dp.UnsupportedOperation, "one row for each individual"),
        (pl.col("s").filter(pl.col("n") > 1).n_unique(), dp.UnsupportedOperation, "drop_nulls()"),
        (pl.col("y").max(), dp.UnknownColumn, "no column 'y'"),
        (pl.lit(1).sum(), dp.UnsupportedOperation, "constant"),
        (dp.count(), dp.MissingKeys, '.group_by("who").agg(n=pl.len())'),
    ],
)
def test_what_has_no_number_for_each(output: pl.Expr, error: type, said: str) -> None:
    with pytest.raises(error) as refusal:
        protected().group_by("who").agg(r=output)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("expression", "unit", "said"),
    [
        (pl.len().over("who"), dp.Rows(), "depends on other rows"),
        (pl.len().over("s"), "who", "rows of different individuals would meet"),
        (pl.col("n").rank().over("who"), "who", "takes one aggregate"),
        (pl.col("n").max().over("who", order_by="day"), "who", "nothing else"),
        (pl.col("n").max().over("who", pl.col("x")), "who", "values of type Float64"),
        (pl.col("n").max(), "who", "combines many rows"),
    ],
)
def test_what_over_does_not_do(expression: pl.Expr, unit: Any, said: str) -> None:
    with pytest.raises(dp.UnsupportedOperation) as refusal:
        protected(unit).with_columns(r=expression)
    assert said in str(refusal.value)


def test_a_budget_for_each_window_needs_the_time_among_the_keys() -> None:
    unit = dp.Identifier("who", window="1mo", time="day")
    frame = protected(unit, per="1mo")
    with pytest.raises(dp.UnsupportedOperation, match="would be in several windows"):
        frame.group_by("who").agg(pl.len())
    with pytest.raises(dp.UnsupportedOperation, match="would be in several windows"):
        frame.filter(pl.len().over("who") > 1)
    each = frame.group_by("who", "day").agg(n=pl.len())
    assert each.columns == ["who", "day", "n"]
    query = each.limit_rows(2).agg(dp.sum("n", (0, 2)))
    assert query.collect(epsilon=ENOUGH).item() == 4


def test_a_stream_is_refused_for_its_rows_would_change() -> None:
    session = dp.Session(epsilon=9)
    one = session.protect(FRAME, "who").group_by("who", "day").agg(n=pl.len())
    each = one.limit_rows(2, order_by="day")
    with pytest.raises(
        dp.UnsupportedOperation, match=r"(?s)treat each row alone.*more rows each night"
    ):
        session.stream(
            "s",
            each.agg(dp.count()),
            by="day",
            every="1d",
            start=date(2026, 1, 1),
            periods=9,
            epsilon=1,
        )


def test_weights_come_after() -> None:
    with pytest.raises(dp.UnsupportedOperation, match="limit_norm after"):
        protected().limit_norm(2).group_by("who").agg(pl.len())


def test_a_query_and_its_plan() -> None:
    each = (
        protected()
        .group_by(pl.col("who").alias("person"))
        .agg(rows=pl.len(), most=pl.col("x").max(), total=pl.col("x").clip(0, 8).sum())
    )
    assert each.schema == {
        "person": pl.Int64,
        "rows": pl.Int64,
        "most": pl.Float64,
        "total": pl.Float64,
    }
    query = each.agg(dp.count().alias("people"), dp.sum("rows", (0, 9)), dp.sum("total", (0, 8)))
    plan = query.plan(epsilon=1)
    assert plan.releases[0].sensitivity == dp.Sensitivity(1, 1.0, 1.0, 1.0)
    assert plan.steps[0].words.startswith('group_by("person").agg(rows=len(), most=')
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    assert query.collect(epsilon=ENOUGH).row(0) == (3, 4, 8.0)
    other = (
        protected()
        .group_by(pl.col("who").alias("person"))
        .agg(rows=pl.len(), most=pl.col("x").max(), total=pl.col("x").clip(0, 9).sum())
    )
    changed = other.agg(dp.count().alias("people"), dp.sum("rows", (0, 9)), dp.sum("total", (0, 8)))
    assert changed.plan(epsilon=1).fingerprint != plan.fingerprint


@pytest.mark.parametrize(
    ("step", "total"),
    [
        (lambda f: f.with_columns(r=pl.len().over("who"), n=pl.col("n").clip(0, 3)), 15),
        (lambda f: f.select("who", pl.col("n").clip(0, 3), r=pl.len().over("who")), 15),
        (lambda f: f.filter(pl.len().over("who") > 1, pl.col("n") < 2).with_columns(r=2), 3),
    ],
    ids=["with_columns", "select", "filter"],
)
def test_aggregates_stand_beside_other_expressions(step: Any, total: int) -> None:
    rows = step(protected()).limit_rows(4)
    query = rows.agg(s=dp.col("n").dp_sum((0, 3)), r=dp.col("r").dp_sum((0, 4)))
    assert sum(query.collect(epsilon=ENOUGH).row(0)) == total


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (pl.Decimal(9, 2), pl.col("key") > 1),
        (pl.Int128, pl.col("key") > 1),
        (pl.Enum(["1", "2"]), pl.col("key") == "2"),
    ],
    ids=["Decimal", "Int128", "Enum"],
)
def test_keys_keep_their_type(dtype: Any, kept: pl.Expr) -> None:
    """Some are grouped as text, and are what they were afterwards."""
    data = pl.DataFrame({"who": [1, 1, 2], "key": pl.Series(["1", "1", "2"]).cast(dtype)})
    frame = dp.Session(epsilon=ENOUGH).protect(data, "who").group_by("who", "key").agg(n=pl.len())
    assert frame.schema["key"] == dtype
    query = frame.filter(kept).limit_rows(2).agg(dp.count())
    assert query.collect(epsilon=ENOUGH).item() == 1


def test_group_by_len_of_people_and_repr() -> None:
    grouped = protected().group_by("who", "s")
    assert repr(grouped) == '<PrivateGroupBy group_by("who", "s"): one group for each individual>'
    assert protected().group_by("who").len().columns == ["who", "len"]
    with pytest.raises(dp.MissingKeys):
        protected().group_by("who").dp_groups()


def test_parts_have_a_row_of_each_of_their_people() -> None:
    session = dp.Session(epsilon=ENOUGH * 9)
    frame = session.protect(FRAME, "who").limit_groups(1, by="s")
    parts = session.partition(frame, "s", ["a", "b"])
    counted = [
        part.group_by("who").agg(n=pl.len()).agg(dp.count()).collect(epsilon=ENOUGH).item()
        for part in parts.values()
    ]
    assert sum(counted) == 2
