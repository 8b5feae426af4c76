"""Outputs: how many a dp expression makes, and how they are shown."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp

SCHEMA = {"a": pl.Int64, "b": pl.Int64, "c": pl.Int64}


def outputs(*asked: Any) -> list[tuple[str, str]]:
    people = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=SCHEMA), dp.Rows())
    return [(output.name, output.words) for output in people.agg(*asked)._query.outputs]


def total(*names: str) -> Any:
    return pl.col(*names).dp_sum((0, 1))


@pytest.mark.parametrize(
    ("wide", "narrow"), [("abc", "a"), ("ab", "c"), ("a", "b"), ("abc", "abc")]
)
def test_one_aggregate_stands_beside_several(wide: str, narrow: str) -> None:
    made = outputs(total(*wide) / total(*narrow))
    assert [name for name, _ in made] == list(wide)
    for i, (_, words) in enumerate(made):
        beside = narrow[i] if len(narrow) > 1 else narrow
        assert words.count("dp_sum") == 2
        assert words.index(f'"{wide[i]}"') <= words.rindex(f'"{beside}"')


@pytest.mark.parametrize(("one", "other"), [("abc", "ab"), ("ab", "abc")])
def test_several_do_not_stand_beside_others_of_another_number(one: str, other: str) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="different numbers of columns"):
        outputs(total(*one) / total(*other))


def test_long_lists_are_cut_short() -> None:
    [(_, few)] = outputs(pl.col("a").dp_histogram([0, 10, 20]))
    [(_, many)] = outputs(pl.col("a").dp_histogram(list(range(500))))
    assert "[0, 10, 20]" in few
    assert "[0, 1, 2, " in many
    assert many.endswith("... 500 in all])")
    assert len(many) < 120
