"""Key sets: products, unions, differences, and where they are used."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
import pytest

import dpframe as dp


def rows(found: dp.Keys) -> list[tuple[Any, ...]]:
    return found.frame.rows()


def test_products_have_every_pair_once() -> None:
    found = dp.keys({"a": [1, 2, 2]}) * dp.keys({"b": ["x", None]})
    assert rows(found) == [(1, "x"), (1, None), (2, "x"), (2, None)]
    assert rows(dp.keys({"a": [1, 2], "b": ["x", None]})) == rows(found)
    assert repr(found) == "<4 keys of a, b>"


def test_unions_and_differences() -> None:
    a = dp.keys(["x", "y", None])
    assert rows(a | ["y", "z"]) == [("x",), ("y",), (None,), ("z",)]
    assert rows(a - ["y", None]) == [("x",)]
    assert rows(a - []) == rows(a)
    days = dp.keys(pl.Series("d", [date(2024, 1, 1), date(2024, 1, 2)]))
    assert rows(days - [date(2024, 1, 1)]) == [(date(2024, 1, 2),)]
    both = dp.keys({"a": [1, 2], "b": ["x", "y"]})
    assert len(both - dp.keys(pl.DataFrame({"b": ["x"], "a": [1]}))) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp.keys("xy"),
        lambda: dp.keys(3),  # type: ignore[arg-type]
        lambda: dp.keys([1, "x"]),
        lambda: dp.keys([1, True]),
        lambda: dp.keys({}),
        lambda: dp.keys([1]) * dp.keys([2]),
        lambda: dp.keys({"a": [1]}) * dp.keys({"a": [2]}),
        lambda: dp.keys({"a": [1]}) | dp.keys({"b": [2]}),
        lambda: dp.keys({"a": [1]}) | dp.keys({"a": ["x"]}),
        lambda: dp.keys([1]) - ["1"],
    ],
)
def test_what_are_no_keys(make: Any) -> None:
    with pytest.raises(dp.MissingKeys):
        make()


def test_they_are_accepted_wherever_keys_are() -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    session = dp.Session(epsilon=10)
    people = session.protect(frame, dp.Rows())
    plain = people.group_by("a", keys=[1, 2, 3]).dp_count().plan(epsilon=1)
    made = people.group_by("a", keys=dp.keys([1, 2]) | [3]).dp_count().plan(epsilon=1)
    assert made.fingerprint == plain.fingerprint
    grid = dp.keys({"b": ["x", "y"]}) * dp.keys({"a": [1]})
    found = people.group_by("a", "b", keys=grid).dp_count().collect(epsilon=1)
    assert found.select("a", "b").rows() == [(1, "x"), (1, "y")]
    assert list(session.partition(people, "b", dp.keys(["x"]))) == ["x"]
    with pytest.raises(dp.MissingKeys, match="cover"):
        people.group_by("a", "b", keys=dp.keys([1]))
    with pytest.raises(dp.MissingKeys):
        people.group_by("a", keys=dp.keys(["x"]))
