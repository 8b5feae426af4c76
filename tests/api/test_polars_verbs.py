"""Polars' verbs that say in one word what `group_by` and `agg` do, and names of other libraries."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.intents import INTENTS
from tests.api.exactly import exactly, protected

MOMENTS = st.datetimes(datetime(2023, 12, 20), datetime(2024, 3, 5))


@settings(max_examples=15)
@given(st.lists(MOMENTS, min_size=1, max_size=20), st.sampled_from(["1w", "1mo", "3d", "6h", "1q"]))
def test_windows_are_those_of_polars(moments: list[datetime], every: str) -> None:
    frame = pl.DataFrame({"at": sorted(moments)}).with_columns(x=pl.int_range(pl.len()) % 5)
    asked = (pl.len(), pl.col("x").clip(0, 4).sum())
    expected = frame.group_by_dynamic("at", every=every).agg(asked)
    keys = expected["at"].to_list()
    found = exactly(protected(frame).group_by_dynamic("at", every=every, keys=keys).agg(*asked))
    assert found.rows() == expected.rows()


def test_windows_within_groups() -> None:
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(60)]
    frame = pl.DataFrame({"at": days, "g": ["a", "b"] * 30})
    expected = frame.group_by_dynamic("at", every="1mo", group_by="g").agg(pl.len())
    keys = {"g": ["a", "b"], "at": [date(2024, 1, 1), date(2024, 2, 1)]}
    grouped = protected(frame).group_by_dynamic("at", every="1mo", group_by="g", keys=keys)
    assert exactly(grouped.agg(pl.len())).rows() == expected.sort("g", "at").rows()


def test_windows_are_found_where_nobody_lists_them() -> None:
    days = [date(2024, 1, 1 + i % 28) for i in range(4000)]
    people = dp.Session(epsilon=9, delta=1e-6).protect(pl.DataFrame({"at": days}), unit=dp.Rows())
    found = people.group_by_dynamic("at", every="1w").agg(pl.len()).collect(epsilon=1, delta=1e-6)
    assert found["at"].to_list() == [date(2024, 1, 1 + 7 * i) for i in range(4)]


@settings(max_examples=15)
@given(
    st.lists(MOMENTS, min_size=2, max_size=2),
    st.sampled_from(["1w", "1mo", "3d", "36h", "1q", timedelta(days=5)]),
    st.sampled_from(["us", "ms", None]),
)
def test_windows_follow_from_known_bounds(ends: list[datetime], every: Any, unit: Any) -> None:
    """Every window between them, each once, also without rows."""
    first, last = sorted(ends)
    dtype = pl.Date if unit is None else pl.Datetime(unit)
    moments = pl.datetime_range(first, last, "1h", eager=True).alias("at")
    if unit is None:
        moments = moments.cast(pl.Date)
        first, last = first.date(), last.date()  # type: ignore[assignment]
        every = "2d" if every == "36h" else every
    wanted = moments.cast(dtype).append(pl.Series([last], dtype=dtype)).dt.truncate(every)
    frame = pl.DataFrame(schema={"at": dtype})
    people = protected(frame).filter(pl.col("at").is_between(first, last))
    found = exactly(people.group_by_dynamic("at", every=every).len())
    assert found["at"].to_list() == wanted.unique().sort().to_list()
    assert set(found["len"].to_list()) == {0}


def test_windows_without_bounds_or_too_many_are_to_be_listed() -> None:
    days = pl.DataFrame({"at": [datetime(2024, 1, 3)]})
    ends = {"at": (datetime(2024, 1, 1), datetime(2024, 3, 1))}
    with pytest.raises(dp.MissingKeys):
        protected(days).group_by_dynamic("at", every="1w")
    with pytest.raises(dp.MissingKeys):
        protected(days, bounds=ends).group_by_dynamic("at", every="1m")
    assert exactly(
        protected(days, bounds=ends).group_by_dynamic("at", every="1mo").len()
    ).rows() == [
        (datetime(2024, 1, 1), 1),
        (datetime(2024, 2, 1), 0),
        (datetime(2024, 3, 1), 0),
    ]


def test_windows_are_truncated_times() -> None:
    people = protected(pl.DataFrame({"at": [date(2024, 1, 3)]}), name="f")
    keys = [date(2024, 1, 1)]
    by_name = people.group_by_dynamic("at", every="1w", keys=keys).len().plan(epsilon=1)
    written = people.group_by(pl.col("at").dt.truncate("1w"), keys=keys).len().plan(epsilon=1)
    assert by_name.fingerprint == written.fingerprint


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"period": "2w"}, "leave period out"),
        ({"offset": "1d"}, "leave offset out"),
        ({"closed": "right"}, "leave closed out"),
        ({"label": "right"}, "leave label out"),
        ({"start_by": "datapoint"}, "leave start_by out"),
        ({"include_boundaries": True}, "leave include_boundaries out"),
        ({"check_sorted": True}, "it has index_column, every"),
        ({"keys": [date(2024, 1, 3)]}, "2024-01-01 for this one"),
        ({"keys": {"at": [date(2024, 1, 3)]}}, "2024-01-01 for this one"),
        ({"keys": pl.Series([date(2024, 1, 3)])}, "2024-01-01 for this one"),
        ({"keys": pl.DataFrame({"at": [date(2024, 1, 3)]})}, "2024-01-01 for this one"),
        ({"keys": ["a"]}, "keys of type Date"),
        ({"every": "1x"}, "1x"),
    ],
)
def test_other_windows_are_refused(options: dict[str, Any], said: str) -> None:
    people = protected(pl.DataFrame({"at": [date(2024, 1, 3)]}))
    with pytest.raises(dp.DPFrameError) as refusal:
        people.group_by_dynamic("at", **{"every": "1w", **options})
    assert said in str(refusal.value)


def test_what_polars_has_by_default_may_be_said() -> None:
    people = protected(pl.DataFrame({"at": [date(2024, 1, 3)]}))
    options = {"period": "1w", "closed": "left", "label": "left", "start_by": "window"}
    keys = [date(2024, 1, 1)]
    grouped = people.group_by_dynamic("at", every="1w", offset=None, keys=keys, **options)
    assert exactly(grouped.len()).rows() == [(date(2024, 1, 1), 1)]


def test_counts_of_values() -> None:
    people = protected(pl.DataFrame({"g": ["a", "b", "a", None]}))
    assert exactly(people.value_counts("g", keys=["a", "b"])).rows() == [("a", 2), ("b", 1)]
    named = exactly(people.value_counts("g", keys=["a", None], name="n"))
    assert named.to_dict(as_series=False) == {"g": ["a", None], "n": [2, 1]}
    assert exactly(people.group_by("g", keys=["a"]).len()).rows() == [("a", 2)]


def test_a_description_is_one_plan() -> None:
    values = [float(i % 101) if i % 10 else None for i in range(4040)]
    frame = pl.DataFrame(
        {"x": values, "b": [i % 4 == 0 for i in range(4040)], "s": ["a", "b"] * 2020}
    )
    query = protected(frame).describe(bounds={"x": (0, 100)})
    found = exactly(query).row(0, named=True)
    assert found["x_count"] == frame["x"].count()
    assert found["x_null_count"] == frame["x"].null_count()
    assert found["x_mean"] == pytest.approx(frame["x"].mean())
    assert found["x_std"] == pytest.approx(frame["x"].std())
    for name, q in (("25%", 0.25), ("50%", 0.5), ("75%", 0.75)):
        assert found[f"x_{name}"] == pytest.approx(frame["x"].quantile(q), abs=1.01)
    assert found["b_mean"] == pytest.approx(0.25)
    assert found["s_n_unique"] == 2
    assert query.plan(epsilon=1).cost == dp.PureDP(1)


def test_a_description_says_which_bounds_are_missing() -> None:
    people = protected(pl.DataFrame({"x": [1.0], "u": [date(2024, 1, 1)], "s": ["a"]}))
    with pytest.raises(dp.UnboundedSensitivity) as refusal:
        people.describe()
    said = "write .describe(['x', 'u', 's'], bounds={\"x\": (0, 100), \"u\": (low, high)})"
    assert said in str(refusal.value)
    assert people.describe("s").plan(epsilon=1).releases
    for wrong in (lambda: people.describe("y"), lambda: people.describe("s", bounds={"y": (0, 1)})):
        with pytest.raises(dp.UnknownColumn):
            wrong()
    with pytest.raises(dp.UnsupportedOperation, match="names of columns"):
        people.describe([pl.col("x")])  # type: ignore[list-item]


def test_a_description_leaves_the_identifier_out() -> None:
    frame = pl.DataFrame({"p": [1, 1, 2], "b": [True, False, None]})
    found = exactly(protected(frame, dp.Identifier("p")).limit_rows(2).describe())
    assert found.columns == ["b_count", "b_null_count", "b_mean", "b_std"]


def test_pipe_is_a_call() -> None:
    people = protected(pl.DataFrame({"x": [1, 2]}))
    assert people.pipe(lambda frame, n, *, m: (frame, n, m), 1, m=2) == (people, 1, 2)


PARTS = [
    (pl.col("at").dt.month(), range(1, 13)),
    (pl.col("at").dt.quarter(), range(1, 5)),
    (pl.col("at").dt.weekday(), range(1, 8)),
    (pl.col("at").dt.day(), range(1, 32)),
    (pl.col("at").dt.week(), range(1, 54)),
    (pl.col("at").dt.hour(), range(24)),
    (pl.col("at").dt.minute(), range(60)),
    (pl.col("at").dt.hour() > 11, [False, True]),
    (pl.col("at").dt.month().is_in([1, 2]), [False, True]),
    (pl.when(pl.col("at").dt.hour() < 6).then(pl.lit("night")).otherwise(pl.lit("day")), None),
    (pl.when(pl.col("at").dt.hour() < 6).then(1).otherwise(2), [1, 2]),
    (pl.col("at").dt.hour().bin_intervals([6, 18], labels=["a", "b", "c"]), ["a", "b", "c"])
    if hasattr(pl.Expr, "bin_intervals")
    else (pl.col("at").dt.hour().cut([6, 18], labels=["a", "b", "c"]), ["a", "b", "c"]),
]


@pytest.mark.parametrize(("by", "keys"), PARTS, ids=str)
@settings(max_examples=10)
@given(st.lists(st.none() | MOMENTS, max_size=20))
def test_keys_that_can_only_be_some_are_known(
    by: pl.Expr, keys: Any, moments: list[datetime | None]
) -> None:
    frame = pl.DataFrame({"at": moments}, schema={"at": pl.Datetime("us")})
    people = protected(frame)
    found = exactly(people.group_by(k=by).len())
    later = (
        people.with_columns(k=by)
        .filter(pl.col("at").is_null().is_not_null())
        .drop("at")
        .group_by("k")
    )
    assert exactly(later.len()).equals(found)
    assert found["k"].cast(pl.String).to_list() == [
        str(k).lower() if isinstance(k, bool) else str(k) for k in keys or ["night", "day"]
    ]
    counted = frame.group_by(k=by.cast(pl.String)).len().drop_nulls("k")
    nonzero = found.filter(pl.col("len") > 0).with_columns(pl.col("k").cast(pl.String))
    assert dict(nonzero.rows()) == dict(counted.rows())


def test_rolling_names_what_to_write() -> None:
    people = protected(pl.DataFrame({"at": [date(2024, 1, 3)]}))
    with pytest.raises(dp.UnsupportedOperation, match=r"group_by\(pl.col\(column\).dt.truncate"):
        people.rolling("at", period="1w")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dp_max", "dp_quantile(column, 0.99, bounds)"),
        ("dp_min", "dp_quantile(column, 0.01, bounds)"),
        ("dp_avg", "dp_mean"),
        ("assign", ".with_columns(...)"),
        ("where", ".filter(...)"),
        ("groupby", ".group_by(...)"),
        ("merge", ".join(...)"),
        ("nlargest", "dp_argmax"),
        ("dp_top_k", "dp_argmax"),
        ("pivot", "pivot the released result"),
        ("dp_countt", "did you mean 'dp_count'"),
    ],
)
def test_names_of_other_libraries_are_understood(name: str, said: str) -> None:
    people = protected(pl.DataFrame({"x": [1.0]}))
    with pytest.raises(dp.UnsupportedOperation) as refusal:
        getattr(people, name)
    assert said in str(refusal.value)


def test_what_is_meant_exists() -> None:
    people = protected(pl.DataFrame({"x": [1.0]}))
    for name, remedy in INTENTS.items():
        assert not hasattr(type(people), name), name
        for word in remedy.replace("(", " ").replace(",", " ").split():
            if word.startswith(".") and word.strip(".").isidentifier() and not word.endswith("."):
                assert hasattr(type(people), word.strip(".")) or hasattr(pl.Expr, word.strip("."))


def test_functions_of_other_names_are_understood() -> None:
    with pytest.raises(AttributeError, match=r"use dp.mean\(column, bounds\)"):
        _ = dp.avg
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        _ = dp.nothing


def test_results_are_sorted_when_they_are_released() -> None:
    query = protected(pl.DataFrame({"x": [1.0]})).dp_count()
    for name in ("sort", "head", "top_k", "pivot", "with_columns"):
        with pytest.raises(dp.UnsupportedOperation, match=r"released result|collect\(epsilon"):
            getattr(query, name)
