"""No operation lets a text or a list of one row grow without limit."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.fold import lower
from dpframe.rows.nested import LONGEST_LIST
from dpframe.rows.strings import WIDEST
from tests.laws.checking import tree_of
from tests.laws.frames import wide_columns


@pytest.mark.parametrize("length", [WIDEST + 1, 10**12, -1])
@pytest.mark.parametrize("method", ["zfill", "pad_start", "pad_end"])
def test_texts_are_not_filled_up_to_any_length(method: str, length: int) -> None:
    people = dp.Session(epsilon=1).protect(pl.DataFrame({"s": ["a"]}), dp.Rows())
    with pytest.raises(InvalidBounds, match="fills up to at most") as caught:
        people.with_columns(getattr(pl.col("s").str, method)(length))
    assert caught.value.remedy


def test_lists_that_double_are_cut() -> None:
    frame = pl.DataFrame({"li": [[1, 2, 3], [], None]}, schema={"li": pl.List(pl.Int64)})
    doubled = lower(tree_of("pl.concat_list('li', 'li')"), wide_columns(frame)).alias("li")
    for _ in range(12):
        frame = frame.with_columns(doubled)
    assert frame["li"].list.len().to_list() == [LONGEST_LIST, 0, None]


def test_so_many_lists_are_not_joined() -> None:
    people = dp.Session(epsilon=1).protect(pl.DataFrame({"x": [1]}), dp.Rows())
    with pytest.raises(UnsupportedOperation, match="joins at most 64"):
        people.with_columns(y=pl.concat_list(["x"] + [pl.col("x") + i for i in range(64)]))
