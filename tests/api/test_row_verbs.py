"""Row-wise verbs give the rows, names and types that Polars gives, from end to end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from tests.api.exactly import exactly, protected, rows_as_in

Verb = Callable[[Any], Any]

SCHEMA: dict[str, Any] = {
    "a": pl.Int64,
    "b": pl.Int8,
    "x": pl.Float64,
    "y": pl.Float32,
    "s": pl.String,
    "t": pl.Boolean,
    "d": pl.Date,
    "e": pl.Enum(["low", "high"]),
    "m": pl.Datetime("us"),
}
VALUES: dict[str, list[Any]] = {
    "a": [0, 1, 2, -3, 70, None],
    "b": [0, 5, -20, 40, None],
    "x": [0.0, -1.5, 2.25, float("nan"), float("inf"), None],
    "y": [0.0, 0.5, float("nan"), None],
    "s": ["", "a", "B", "12", None],
    "t": [True, False, None],
    "d": [date(2024, 2, 29), date(1969, 12, 31), None],
    "e": ["low", "high", None],
    "m": [datetime(2024, 2, 29, 23, 59), datetime(1970, 1, 1), None],
}
VERBS: dict[str, list[Verb]] = {
    "filter": [
        lambda f: f.filter(pl.col("a") > 0),
        lambda f: f.filter(pl.col("a") > 0, pl.col("t")),
        lambda f: f.filter([pl.col("x").is_not_nan(), ~pl.col("t")]),
        lambda f: f.filter(pl.col("t")),
        lambda f: f.filter(t=True, s="a"),
        lambda f: f.filter(pl.col("s").is_null() | (pl.col("e") == "low")),
        lambda f: f.filter(pl.col("d") >= date(2000, 1, 1)),
        lambda f: f.filter(pl.col("a").is_in([1, 2]), pl.col("x") < pl.col("a")),
        lambda f: f.filter(pl.lit(True)),
        lambda f: f.filter(pl.any_horizontal("t", pl.col("b") == 5)),
    ],
    "with_columns": [
        lambda f: f.with_columns(pl.col("a") + 1),
        lambda f: f.with_columns(c=pl.col("a") * 2, k=pl.lit(7, dtype=pl.Int64)),
        lambda f: f.with_columns(pl.col("b").alias("a"), pl.col("a").alias("b")),
        lambda f: f.with_columns([pl.col("s").str.to_uppercase(), pl.col("t").not_()]),
        lambda f: f.with_columns(cs.float().fill_nan(None)),
        lambda f: f.with_columns(pl.col("x", "y").is_nan().name.suffix("_nan")),
        lambda f: f.with_columns(year=pl.col("d").dt.year().cast(pl.Int64)),
        lambda f: f.with_columns(later=pl.col("m") + timedelta(days=1)),
        lambda f: f.with_columns(w=pl.when(pl.col("t")).then(pl.col("s")).otherwise(pl.lit("?"))),
        lambda f: f.with_columns(z="a"),
        lambda f: f.with_columns(pl.coalesce("s", pl.lit("none")).alias("s")),
    ],
    "select": [
        lambda f: f.select("a", "s"),
        lambda f: f.select(["s", "a"]),
        lambda f: f.select(pl.all()),
        lambda f: f.select(pl.exclude("a", "b")),
        lambda f: f.select(cs.numeric()),
        lambda f: f.select(cs.by_dtype(pl.String) | cs.boolean()),
        lambda f: f.select("^[a-d]$"),
        lambda f: f.select("a", n=pl.col("a") - pl.col("a")),
        lambda f: f.select(pl.lit(1, dtype=pl.Int64).alias("one"), "t"),
    ],
    "rename": [
        lambda f: f.rename({"a": "first", "s": "text"}),
        lambda f: f.rename({"a": "b", "b": "a"}),
        lambda f: f.rename({"a": "a"}),
        lambda f: f.rename({}),
    ],
    "drop": [
        lambda f: f.drop("a"),
        lambda f: f.drop("a", "x"),
        lambda f: f.drop(["a", "x"]),
        lambda f: f.drop(cs.numeric()),
        lambda f: f.drop(pl.col("s")),
        lambda f: f.drop(),
    ],
    "cast": [
        lambda f: f.cast({"a": pl.Float64, "b": pl.Int64}),
        lambda f: f.cast({"a": pl.String, "t": pl.Int64}),
        lambda f: f.cast({cs.integer(): pl.Float32}),
        lambda f: f.cast({"e": pl.String, "y": pl.Float64}),
        lambda f: f.cast({"d": pl.Datetime("us"), "m": pl.Date}),
        lambda f: f.select("a", "b").cast(pl.Float64),
        lambda f: f.cast({}),
    ],
    "fill_null": [
        lambda f: f.fill_null(0),
        lambda f: f.fill_null(1.5),
        lambda f: f.fill_null("none"),
        lambda f: f.fill_null(True),
        lambda f: f.fill_null(date(2020, 1, 1)),
        lambda f: f.fill_null(datetime(2020, 1, 1)),
        lambda f: f.fill_null(timedelta(1)),
    ],
    "fill_nan": [
        lambda f: f.fill_nan(0.0),
        lambda f: f.fill_nan(None),
        lambda f: f.fill_nan(1),
    ],
    "drop_nulls": [
        lambda f: f.drop_nulls(),
        lambda f: f.drop_nulls("a"),
        lambda f: f.drop_nulls(["a", "s"]),
        lambda f: f.drop_nulls(cs.numeric()),
        lambda f: f.drop_nulls(subset="t"),
    ],
}
EVERY_VERB = [verb for verbs in VERBS.values() for verb in verbs]
CASES = [pytest.param(v, id=f"{name} {i}") for name, vs in VERBS.items() for i, v in enumerate(vs)]


def every_value() -> pl.DataFrame:
    """A frame in which every value stands in some row."""
    rows = {n: [v[(i + i // 6) % len(v)] for i in range(12)] for n, v in VALUES.items()}
    return pl.DataFrame(rows, schema=SCHEMA)


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    row = st.tuples(*(st.sampled_from(values) for values in VALUES.values()))
    return pl.DataFrame(draw(st.lists(row, max_size=12)), schema=SCHEMA, orient="row")


@pytest.mark.parametrize("verb", CASES)
def test_a_verb_gives_the_rows_that_polars_gives(verb: Verb) -> None:
    frame = every_value()
    private, expected = verb(protected(frame)), verb(frame)
    assert rows_as_in(private, expected)
    narrow = {"y"}  # Float32, which dpframe fills as Float64
    kept = [name for name in private.columns if name not in narrow]
    assert [private.schema[n] for n in kept] == [expected.schema[n] for n in kept]


@given(frame=frames(), data=st.data())
def test_chains_of_verbs_give_the_rows_that_polars_gives(
    frame: pl.DataFrame, data: st.DataObject
) -> None:
    private = protected(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        verb = data.draw(st.sampled_from(EVERY_VERB))
        try:
            private, frame = verb(private), verb(frame)
        except (pl.exceptions.PolarsError, dp.DPFrameError):  # a column that is gone or another now
            continue
    assert rows_as_in(private, frame)


def test_nothing_asked_of_a_verb_changes_nothing() -> None:
    people = protected(every_value())
    for same in (people.filter(), people.with_columns(), people.drop(), people.fill_null(b"")):
        assert same.schema == people.schema
        assert exactly(same.dp_count()).item() == every_value().height


def test_schema_and_columns_are_those_of_polars() -> None:
    people = protected(every_value())
    assert people.schema == pl.Schema(SCHEMA)
    assert people.columns == list(SCHEMA)


def test_strict_forms_do_not_fail_but_give_null() -> None:
    people = protected(every_value()).cast({"a": pl.Int8, "s": pl.Int64}, strict=True)
    known = exactly(people.agg(pl.col("s").dp_count(), pl.col("s").dp_sum((0, 100)).alias("sum")))
    assert known["sum"].item() == 12 * known["s"].item()
    assert known["s"].item() == every_value()["s"].to_list().count("12") > 0


def test_a_fill_that_a_type_cannot_hold_widens_it() -> None:
    people = protected(every_value()).fill_null(300)
    expected = every_value()["b"].fill_null(300).clip(0, 300).sum()
    assert exactly(people.agg(pl.col("b").dp_sum((0, 300)))).item() == expected


def test_division_by_zero_gives_null() -> None:
    frame = pl.DataFrame({"x": [1.0, 0.0, 2.0], "n": [0, 0, 1]})
    divided = protected(frame).with_columns(pl.col("x") / pl.col("n"), q=pl.col("n") // 0)
    assert exactly(divided.agg(dp.count("x"), dp.count("q"))).row(0) == (1, 0)


def test_frames_are_immutable() -> None:
    people = protected(every_value())
    people.filter(pl.col("a") > 0)
    people.drop("a")
    assert people.columns == list(SCHEMA)
    assert exactly(people.dp_count()).item() == every_value().height


def test_lists_without_elements_are_dropped_before_they_are_exploded() -> None:
    """As the refusals of ``empty_as_null=False`` and ``keep_nulls=False`` advise."""
    lists = pl.DataFrame({"x": [[1, None], [], None, [2]]})

    def elements(frame: dp.PrivateFrame) -> list[int]:
        keys = [1, 2, None]
        return exactly(frame.explode("x", max_length=2).group_by("x", keys=keys).len())[
            "len"
        ].to_list()

    private = protected(lists)
    assert elements(private) == [1, 1, 3]
    assert elements(private.filter(pl.col("x").list.len().ne_missing(0))) == [1, 1, 2]
    assert elements(private.drop_nulls(["x"])) == [1, 1, 2]
