"""Laws that every row-wise operation keeps, on the examples that it states itself."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.core.tree import Call, walk
from dpframe.parse.build import OPERATIONS as READABLE
from dpframe.rows.operation import RowOperation
from dpframe.rows.registry import BY_NAME, OPERATIONS
from tests.laws.checking import (
    Expression,
    check_engines,
    check_row_wise,
    expression,
    reference_values,
    same,
    tree_of,
)
from tests.laws.frames import frames, nasty_frame, tight_columns, wide_columns
from tests.laws.reference import APPROXIMATE, UNKNOWN, evaluate, is_close
from tests.laws.reference_adapter import ALL

EVERY = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
EMPTY = nasty_frame(0)
NASTY = nasty_frame()


def examples_of(operation: RowOperation, frame: pl.DataFrame, tight: bool) -> list[Expression]:
    """The operation's examples, lowered for what is known of the frame."""
    columns = tight_columns(frame) if tight else wide_columns(frame)
    return [expression(text, tree_of(text), columns) for text in operation.examples]


def check_reference(
    frame: pl.DataFrame, tight: bool, expressions: list[Expression], whole: list[list[Any]]
) -> None:
    """The values are those of plain Python."""
    columns = tight_columns(frame) if tight else wide_columns(frame)
    for checked, found in zip(expressions, whole, strict=True):
        rows = reference_values(checked.tree, frame, lambda t, row: evaluate(t, row, columns, ALL))
        close = any(isinstance(n, Call) and n.op in APPROXIMATE for n in walk(checked.tree))
        for value, expected in zip(found, rows, strict=True):
            agrees = expected is UNKNOWN or same(value, expected)
            agrees = agrees or (close and is_close(value, expected))
            assert agrees, f"{checked.text}: {value!r}, and plain Python says {expected!r}"


def check(operation: RowOperation, frame: pl.DataFrame, tight: bool, singles: int) -> None:
    expressions = examples_of(operation, frame, tight)
    whole = check_engines(frame, expressions)
    check_row_wise(frame, expressions, whole, singles=singles)
    check_reference(frame, tight, expressions, whole)


@EVERY
def test_examples_exist_and_use_the_operation(operation: RowOperation) -> None:
    assert operation.examples
    assert operation.summary.endswith(".")
    for text in operation.examples:
        tree_of(text)


def test_every_readable_operation_is_registered() -> None:
    assert set(BY_NAME) == set(READABLE) == set(ALL)
    assert len(BY_NAME) == len(OPERATIONS)


@EVERY
@pytest.mark.parametrize("tight", [False, True], ids=["wide", "tight"])
def test_extremes(operation: RowOperation, tight: bool) -> None:
    check(operation, NASTY, tight, singles=16)
    check_engines(EMPTY, examples_of(operation, EMPTY, tight=False))


@EVERY
@settings(max_examples=15)
@given(frame=frames(min_rows=1), tight=st.booleans())
def test_random_frames(operation: RowOperation, frame: pl.DataFrame, tight: bool) -> None:
    check(operation, frame, tight, singles=1)


@pytest.mark.slow
@EVERY
@settings(max_examples=500)
@given(frame=frames(), tight=st.booleans())
def test_many_random_frames(operation: RowOperation, frame: pl.DataFrame, tight: bool) -> None:
    check(operation, frame, tight, singles=8)
