"""Polars' verbs that say in one word what `group_by` and `agg` do, and names of other libraries."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.no_raw_access import INTENTS
from tests.api.exactly import ENOUGH, exactly, protected

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


YEAR = {"at": (datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59))}


def test_known_bounds_come_before_windows_that_are_found() -> None:
    """Also where the session has a delta: windows with few people are there, and empty ones."""
    session = dp.Session(epsilon=9, delta=1e-6)
    rows = pl.DataFrame({"at": [datetime(2024, 3, 4, i % 24) for i in range(90)], "g": ["a"] * 90})
    year = session.protect(rows, unit=dp.Rows(), bounds=YEAR, categories={"g": ["a", "b"]})
    for every, number in (("1d", 366), ("6h", 4 * 366), (timedelta(hours=1), 24 * 366)):
        assert year.group_by_dynamic("at", every=every).len().plan(epsilon=1).groups == number
        both = year.group_by_dynamic(pl.col("at"), every=every, group_by="g").len()
        assert both.plan(epsilon=1).groups == 2 * number
    week = session.protect(rows, unit=dp.Rows()).filter(
        pl.col("at").is_between(datetime(2024, 3, 4), datetime(2024, 3, 10, 23))
    )
    assert week.group_by_dynamic("at", every="1h").len().plan(epsilon=1).groups == 7 * 24
    found = week.group_by(pl.col("at").dt.truncate("1h")).len()
    assert found.plan(epsilon=1, delta=1e-6).groups is None, "the way to have them found"
    beside_found = week.group_by_dynamic("at", every="1h", group_by="g").len()
    assert beside_found.plan(epsilon=1, delta=1e-6).groups is None
    minutes = year.group_by_dynamic("at", every="1m").len()
    assert minutes.plan(epsilon=1, delta=1e-6).groups is None


def test_windows_without_bounds_or_too_many_are_to_be_listed() -> None:
    days = pl.DataFrame({"at": [datetime(2024, 1, 3)]})
    ends = {"at": (datetime(2024, 1, 1), datetime(2024, 3, 1))}
    with pytest.raises(dp.MissingKeys, match=r"bounds=\{'at': \(first, last\)\}"):
        protected(days).group_by_dynamic("at", every="1w")
    with pytest.raises(dp.MissingKeys, match="about 527,039 windows; at most 100,000"):
        protected(days, bounds=YEAR).group_by_dynamic("at", every="1m")
    with pytest.raises(dp.MissingKeys, match="not known without reading private data"):
        protected(days, bounds=YEAR).group_by_dynamic(pl.col("at").dt.date(), every="1d")
    zoned = days.select(pl.col("at").dt.replace_time_zone("UTC"))
    inside = pl.col("at").is_between(*(end.replace(tzinfo=UTC) for end in ends["at"]))
    with pytest.raises(dp.MissingKeys, match="has a time zone, whose clock"):
        protected(zoned).filter(inside).group_by_dynamic("at", every="1w")
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
        ({"period": "2w"}, "leave period= out"),
        ({"offset": "1d"}, "leave offset= out"),
        ({"closed": "right"}, "leave closed= out"),
        ({"label": "right"}, "leave label= out"),
        ({"start_by": "datapoint"}, "leave start_by= out"),
        ({"include_boundaries": True}, "leave include_boundaries= out"),
        ({"check_sorted": True}, "it has index_column, every"),
        ({"keys": [date(2024, 1, 3)]}, "write 2024-01-01 in its place"),
        ({"keys": {"at": [date(2024, 1, 3)]}}, "write 2024-01-01 in its place"),
        ({"keys": pl.Series([date(2024, 1, 3)])}, "write 2024-01-01 in its place"),
        ({"keys": pl.DataFrame({"at": [date(2024, 1, 3)]})}, "write 2024-01-01 in its place"),
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


def test_a_description_is_that_of_polars_without_the_ends_and_one_plan() -> None:
    values = [float(i % 101) if i % 10 else None for i in range(4040)]
    days = [date(2024, 1, 1) + timedelta(i % 101) for i in range(4040)]
    frame = pl.DataFrame(
        {"x": values, "b": [i % 4 == 0 for i in range(4040)], "s": ["a", "b"] * 2020, "day": days}
    )
    bounds: Any = {"x": (0, 100), "day": (date(2024, 1, 1), date(2024, 4, 30))}
    query = protected(frame).describe(bounds=bounds)
    found = exactly(query)
    assert found["statistic"].to_list() == [
        *("count", "null_count", "n_unique", "mean", "std", "25%", "50%", "75%")
    ]
    assert found.filter(statistic="n_unique").drop("statistic").row(0) == (None, None, 2, None)
    polars = frame.describe().filter(~pl.col("statistic").is_in(["min", "max"]))
    found = found.filter(pl.col("statistic") != "n_unique")
    assert found.columns == polars.columns
    assert found["statistic"].equals(polars["statistic"])
    for ours, theirs in zip(found["x"], polars["x"], strict=True):
        assert ours == pytest.approx(theirs, abs=1.01)
    assert found["b"][:3].equals(polars["b"][:3])
    assert found["b"][3] == pytest.approx(frame["b"].cast(pl.Int64).std(), abs=1e-3)
    assert found["s"].to_list() == [4040, 0, None, None, None, None, None]
    assert found["day"].dtype == polars["day"].dtype == pl.String
    assert found["day"][0] == polars["day"][0] == "4040"
    assert found["day"][2] == polars["day"][2][:10]
    assert query.plan(epsilon=1).cost == dp.PureDP(1)


def test_a_description_has_the_intervals_that_there_are() -> None:
    values = [float(i % 101) for i in range(4040)]
    frame = pl.DataFrame({"x": values, "x_low": [True] * 4040})
    query = protected(frame).describe(bounds={"x": (0, 100)})
    found = query.collect(epsilon=10, interval=0.95)
    assert found.columns == [
        *("statistic", "x", "x_low_", "x_high", "x_low", "x_low_low", "x_low_high")
    ]
    ends = found.filter(pl.col("x_low_").is_not_null() & pl.col("x_high").is_not_null())
    assert ends["statistic"].to_list() == ["count", "null_count", "mean", "std"]
    assert ends.select((pl.col("x_low_") <= pl.col("x")).all()).item()
    with pytest.raises(dp.UnsupportedOperation, match="no interval"):
        protected(frame).agg(dp.quantile("x", 0.5, (0, 100))).collect(epsilon=1, interval=0.95)


def test_what_follows_a_description_works_on_its_long_form() -> None:
    frame = pl.DataFrame({"x": [20.0, 30.0] * 50, "b": [True] * 100})
    query = protected(frame).describe(bounds={"x": (0, 100)})
    mean = exactly(query.filter(pl.col("statistic") == "mean").select("x"))
    assert mean.item() == pytest.approx(25)
    wide = query.release(epsilon=1)
    assert wide.frame.columns[:3] == ["x_count", "x_null_count", "x_mean"]
    printed = repr(wide)
    assert re.search(r"x_count +┆ +\d+ ± \d", printed)


def test_a_description_says_which_bounds_are_missing() -> None:
    people = protected(pl.DataFrame({"x": [1.0], "u": [date(2024, 1, 1)], "s": ["a"]}))
    with pytest.raises(dp.UnboundedSensitivity) as refusal:
        people.describe()
    said = "write .describe(['x', 'u', 's'], bounds={\"x\": (low, high), \"u\": (low, high)})"
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
    assert found.columns == ["statistic", "b"]
    assert found["statistic"].to_list() == ["count", "null_count", "mean", "std"]


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
    with pytest.raises(dp.UnsupportedOperation, match=r"group_by_dynamic\(column"):
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
    people = protected(pl.DataFrame({"g": ["a", "b", "b", "c", "c", "c"]}))
    query = people.group_by("g", keys=["a", "b", "c"]).dp_count()
    changes: list[Any] = [
        lambda frame: frame.sort("len", descending=True),
        lambda frame: frame.head(2),
        lambda frame: frame.top_k(1, by="len"),
        lambda frame: frame.with_columns(share=pl.col("len") / pl.col("len").sum()),
        lambda frame: frame.select("len"),
    ]
    for change in changes:
        assert exactly(change(query)).equals(change(exactly(query)))
    for name in ("pivot", "unpivot", "join", "slice", "to_pandas"):
        with pytest.raises(dp.UnsupportedOperation, match=r"released result of .collect\(epsilon"):
            getattr(query, name)


def test_counts_are_sorted_and_shared_when_they_are_collected() -> None:
    rows = pl.DataFrame({"g": ["a"] * 10 + ["b"] * 30 + ["c"] * 20 + ["none"]})
    people = protected(rows)
    counts = people.value_counts("g", keys=["a", "b", "c"])
    by_size = people.value_counts("g", keys=["a", "b", "c"], sort=True)
    assert exactly(by_size).rows() == [("b", 30), ("c", 20), ("a", 10)]
    shares = people.value_counts("g", keys=["a", "b", "c"], normalize=True)
    found = exactly(shares)
    assert found.columns == ["g", "proportion"]
    assert found["proportion"].to_list() == [10 / 60, 30 / 60, 20 / 60]
    named = people.value_counts("g", keys=["a", "b"], sort=True, normalize=True, name="share")
    assert exactly(named).rows() == [("b", 0.75), ("a", 0.25)]
    for query in (by_size, shares):  # post-processing: the plan and what a release is are the same
        assert query.plan(epsilon=1).fingerprint == counts.plan(epsilon=1).fingerprint
        assert query.release(epsilon=ENOUGH).frame.rows() == [("a", 10), ("b", 30), ("c", 20)]
    session = people.session
    assert session is not None
    both = session.collect([by_size, counts], epsilon=ENOUGH)
    assert [frame["g"].to_list() for frame in both] == [["b", "c", "a"], ["a", "b", "c"]]
    assert session.collect(by_size, epsilon=ENOUGH)["g"].to_list() == ["b", "c", "a"]
    empty = exactly(people.value_counts("g", keys=["x"], normalize=True))
    assert empty["proportion"].to_list() == [None]


def test_shares_have_no_interval_and_a_name_of_their_own() -> None:
    people = protected(pl.DataFrame({"g": ["a"], "proportion": ["b"]}))
    shares = people.value_counts("g", keys=["a"], normalize=True)
    assert people.session is not None
    before = people.session.spent
    for ask in (
        lambda: shares.collect(epsilon=1, interval=0.95),
        lambda: people.session.collect(shares, epsilon=1, interval=0.95),  # type: ignore[union-attr]
        lambda: people.session.collect([shares], epsilon=1, interval=0.95),  # type: ignore[union-attr]
    ):
        with pytest.raises(dp.UnsupportedOperation, match="have no interval"):
            ask()
    with pytest.raises(dp.UnsupportedOperation, match="two columns named 'proportion'"):
        people.value_counts("proportion", keys=["b"], normalize=True)
    assert people.session.spent == before


def test_queries_have_pipe() -> None:
    query = protected(pl.DataFrame({"x": [1, 2]})).dp_count()
    assert query.pipe(lambda asked, n: (asked, n), 3) == (query, 3)


@pytest.mark.parametrize("column", [pl.col("ms"), dp.col("ms")])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dp_max", "use .dp_quantile(0.99, bounds)"),
        ("dp_avg", "use .dp_mean(bounds)"),
        ("dp_null_count", "and .dp_count() of it"),
        ("dp_summ", "did you mean 'dp_sum'?"),
        ("dp_nothing", "use one of dp_count, dp_sum, dp_mean"),
    ],
)
def test_methods_that_expressions_lack_are_understood(
    column: pl.Expr, name: str, said: str
) -> None:
    with pytest.raises(dp.UnsupportedOperation) as refusal:
        getattr(column, name)
    assert said in str(refusal.value)
    assert not hasattr(column, name)


def test_other_names_are_refused_as_polars_does() -> None:
    with pytest.raises(AttributeError) as refusal:
        _ = pl.col("x").nothing  # type: ignore[attr-defined]
    assert not isinstance(refusal.value, dp.DPFrameError)
    assert "nothing" in str(refusal.value)
    assert not hasattr(pl.Expr, "dp_max"), "and editors complete what there is"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (pl.corr("x", "y"), "divided by both .dp_std(bounds, ddof=0) it is a correlation"),
        (pl.cov("x", "y"), "make it of means"),
        (pl.col("x").first(), "use .dp_argmax() for the most frequent value"),
        (pl.col("x").mode().first(), "use .dp_argmax() for the most frequent value"),
        (pl.col("x").top_k(3), ".dp_argmax(candidates=[...], k=n) for the most frequent values"),
        ((pl.col("x") > 1).any(), ".dp_sum() of the Boolean"),
        ((pl.col("x") > 1).all(), ".dp_mean() of the Boolean"),
    ],
)
def test_aggregates_without_a_private_form_say_what_to_write(asked: pl.Expr, said: str) -> None:
    with pytest.raises(dp.UnsupportedOperation) as refusal:
        protected(pl.DataFrame({"x": [1], "y": [2]})).agg(asked)
    assert said in str(refusal.value)


def test_numbers_of_each_person_start_with_a_row_for_each() -> None:
    rows = pl.DataFrame({"user": [1, 1, 2], "x": [1, 2, 3]})
    people = protected(rows, dp.Identifier("user"))
    found = dp.Session(epsilon=9, delta=1e-6).protect(rows, unit="user")
    for frame in (people, found):
        for by in ("user", pl.col("user"), pl.col("user").cast(pl.String)):
            with pytest.raises(dp.MissingKeys, match="would be about one individual"):
                frame.group_by(by).agg(dp.count())
            with pytest.raises(dp.MissingKeys, match="would be about one individual"):
                frame.group_by(by).dp_mean("x", (0, 9))
        with pytest.raises(dp.MissingKeys, match="would be about one individual"):
            frame.with_columns(copy=pl.col("user")).group_by("copy", "x")
        with pytest.raises(dp.MissingKeys, match="would be about one individual"):
            frame.select("user", copy=pl.col("user").cast(pl.String)).group_by("copy")
        with pytest.raises(dp.MissingKeys, match="would be about one individual"):
            frame.with_columns(next=pl.col("user").fill_null(0) + 1).group_by(-pl.col("next"))
    shared = found.limit_rows(1).group_by(pl.col("user") % 2).len()
    assert shared.plan(epsilon=1, delta=1e-7).releases
    found = found.limit_rows(1).group_by("x").len()
    amount = {"epsilon": 1, "delta": 1e-7}
    assert found.select("len").plan(**amount).fingerprint == found.plan(**amount).fingerprint
    for name in ("group_by", "agg", "mean", "dp_median"):
        words = "one row for each" if name in ("mean", "dp_median") else "released result"
        with pytest.raises(dp.UnsupportedOperation, match=words):
            getattr(found, name)
    assert exactly(people.dp_mean(pl.lit(1), (0, 9), per="unit")).item() == 1.5
    assert exactly(people.dp_mean("x", (0, 9), per="unit")).item() == 3
