"""The laws of row-wise operations, on random nestings of them."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpframe.core.tree import Tree
from dpframe.rows.fold import words
from tests.laws.amounts import examples
from tests.laws.checking import check_engines, check_row_wise, expression
from tests.laws.frames import frames, nasty_frame, tight_columns, wide_columns
from tests.laws.trees import fits, trees

NASTY = nasty_frame(37)
SEVERAL = st.lists(trees(), min_size=1, max_size=8)


def check(frame: pl.DataFrame, nested: list[Tree], tight: bool) -> None:
    columns = tight_columns(frame) if tight else wide_columns(frame)
    accepted = [tree for tree in nested if fits(tree, columns)]
    assume(accepted)
    expressions = [expression(words(tree), tree, columns) for tree in accepted]
    whole = check_engines(frame, expressions)
    check_row_wise(frame, expressions, whole, singles=2)


@examples(25, 200)
@given(nested=SEVERAL, tight=st.booleans())
def test_on_extremes(nested: list[Tree], tight: bool) -> None:
    check(NASTY, nested, tight)


@examples(15, 120)
@given(frame=frames(), nested=SEVERAL, tight=st.booleans())
def test_on_random_frames(frame: pl.DataFrame, nested: list[Tree], tight: bool) -> None:
    check(frame, nested, tight)


@pytest.mark.slow
@settings(max_examples=2_000)
@given(frame=st.just(NASTY) | frames(), nested=SEVERAL, tight=st.booleans())
def test_many(frame: pl.DataFrame, nested: list[Tree], tight: bool) -> None:
    check(frame, nested, tight)
