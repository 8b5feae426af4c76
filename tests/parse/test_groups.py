"""Keys as the columns that they are compared with: exactly, or not at all."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.parse import groups

FRAME = pl.LazyFrame(
    schema={
        "day": pl.Date,
        "milli": pl.Datetime("ms"),
        "small": pl.Int8,
        "few": pl.Enum(["a", "b"]),
        "text": pl.String,
        "paris": pl.Datetime("us", "Europe/Paris"),
    }
)
NOON = datetime(2024, 1, 2, 12)


def grouped(column: str, keys: pl.Series) -> list[Any]:
    people = dp.Session(epsilon=1).protect(FRAME, dp.Rows())
    query = people.group_by(column, keys=pl.DataFrame({column: keys})).dp_count()._query
    assert query.groups is not None
    return query.groups.keys[column].to_list()


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        ("milli", pl.Series([datetime(2024, 1, 2, 0, 0, 0, 5_000)], dtype=pl.Datetime("us"))),
        ("milli", pl.Series([NOON], dtype=pl.Datetime("ns"))),
        ("small", pl.Series([-128, 127, None], dtype=pl.Int64)),
        ("few", pl.Series(["a", None], dtype=pl.String)),
        ("text", pl.Series(["x", "y"], dtype=pl.Categorical)),
    ],
)
def test_keys_of_other_types_are_taken_where_no_value_changes(column: str, keys: pl.Series) -> None:
    assert grouped(column, keys) == keys.to_list()


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        ("day", pl.Series([datetime(2024, 1, 2)], dtype=pl.Datetime("us"))),
        ("milli", pl.Series([datetime(2024, 1, 2, 0, 0, 0, 5_001)], dtype=pl.Datetime("us"))),
        ("small", pl.Series([128], dtype=pl.Int64)),
        ("few", pl.Series(["c"], dtype=pl.String)),
        ("small", pl.Series([1.0], dtype=pl.Float64)),
        ("text", pl.Series([1], dtype=pl.Int64)),
        ("day", pl.Series([1], dtype=pl.Int64)),
        ("milli", pl.Series([NOON], dtype=pl.Datetime("us", "UTC"))),
        ("paris", pl.Series([NOON], dtype=pl.Datetime("us"))),
    ],
)
def test_keys_that_would_become_others_are_refused(column: str, keys: pl.Series) -> None:
    with pytest.raises(dp.MissingKeys, match=column):
        grouped(column, keys)


@pytest.mark.parametrize(
    ("by", "keys", "what"),
    [
        ("text", "xy", "a list of values, not the text"),
        ("text", b"xy", "a list of values, not the text"),
        ("text", 7, "a list, Series, DataFrame or dict, not int"),
        ("text", {"text": "xy"}, "must be a list"),
        ("text", {"text": b"xy"}, "must be a list"),
        ("small", {"small": 7}, "must be a list"),
        ("text", pl.LazyFrame({"text": ["x"]}), "not a lazy frame"),
        ("text", {"small": [1]}, "do not cover"),
        ("text", {"text": ["x"], "small": [1]}, "not grouped by"),
        (["text", "small"], ["x"], "cover all grouping columns"),
        (["text", "small"], [("x", 1), ("x",)], "cover all grouping columns"),
        (
            ["text", "small"],
            {"text": ["x", "y"], "small": [1, 2]},
            "groups, more than 3",
        ),
        ("small", [1, 2, 3, 4], "groups, more than 3"),
        ("small", {"small": [1, 2, 3, 4]}, "groups, more than 3"),
    ],
)
def test_what_are_no_keys(by: Any, keys: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_GROUPS", 3)
    people = dp.Session(epsilon=1).protect(FRAME, dp.Rows())
    with pytest.raises(dp.MissingKeys) as caught:
        people.group_by(by, keys=keys)
    assert what in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("small", [1, 2, 3]),
        ("small", {"small": (n for n in (1, 2, 3))}),
        (["small", "text"], {"text": pl.Series(["x"]), "small": [1, 2, 3]}),
        (["small", "text"], [(1, "x"), (2, "x"), (3, "x")]),
    ],
)
def test_as_many_keys_as_there_may_be(by: Any, keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_GROUPS", 3)
    people = dp.Session(epsilon=1).protect(FRAME, dp.Rows())
    query = people.group_by(by, keys=keys).dp_count()._query
    assert query.groups is not None
    assert query.groups.keys["small"].to_list() == [1, 2, 3]
    assert query.groups.keys.columns == ([by] if isinstance(by, str) else by)
