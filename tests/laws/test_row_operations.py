"""Laws that every row-wise operation keeps, on the examples that it states itself."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.core.tree import Call, Column, walk
from dpframe.rows.operation import Kind
from dpframe.rows.registry import BY_NAME, OPERATIONS
from tests.laws.checking import (
    check_engines,
    check_row_wise,
    expression,
    tree_of,
)
from tests.laws.frames import SCHEMA, frames, nasty_frame, tight_columns, wide_columns
from tests.laws.reference_adapter import ALL, check_reference

EVERY = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
GROUPS = [OPERATIONS[start::16] for start in range(16)]
"""Operations that share their generated frames: to make and store these costs most of the time."""
EMPTY = nasty_frame(0)
NASTY = nasty_frame()


def check(operations: Sequence[Kind], frame: pl.DataFrame, tight: bool, singles: int) -> None:
    frame = frame.select(used(operations))
    columns = tight_columns(frame) if tight else wide_columns(frame)
    texts = [text for operation in operations for text in operation.examples]
    expressions = [expression(text, tree_of(text), columns) for text in texts]
    whole = check_engines(frame, expressions)
    check_row_wise(frame, expressions, whole, singles=singles)
    check_reference(frame, columns, expressions, whole)


def used(operations: Sequence[Kind]) -> list[str]:
    """The columns that examples use, or one where they use none: to make and store the others
    would take most of the time.
    """
    trees = [tree_of(text) for operation in operations for text in operation.examples]
    found = {node.name for tree in trees for node in walk(tree) if isinstance(node, Column)}
    return [name for name in SCHEMA if name in found] or ["i8"]


@EVERY
def test_examples_exist_and_use_the_operation(operation: Kind) -> None:
    assert operation.examples
    assert operation.summary.endswith(".")
    for text in operation.examples:
        used = {n.operation.name for n in walk(tree_of(text)) if isinstance(n, Call)}
        assert operation.name in used


def test_every_operation_has_a_reference() -> None:
    assert set(BY_NAME) == set(ALL)
    assert len(BY_NAME) == len(OPERATIONS)


@EVERY
@pytest.mark.parametrize("tight", [False, True], ids=["wide", "tight"])
def test_extremes(operation: Kind, tight: bool) -> None:
    check([operation], NASTY, tight, singles=16)
    empty = EMPTY.select(used([operation]))
    columns = wide_columns(empty)
    check_engines(empty, [expression(t, tree_of(t), columns) for t in operation.examples])


@EVERY
@settings(max_examples=5)
@given(data=st.data(), tight=st.booleans())
def test_random_frames(operation: Kind, data: st.DataObject, tight: bool) -> None:
    frame = data.draw(frames(min_rows=1, names=used([operation])))
    check([operation], frame, tight, singles=1)


@pytest.mark.slow
@pytest.mark.parametrize("operations", GROUPS, ids=lambda group: f"{group[0].name} and others")
@settings(max_examples=500)
@given(frame=frames(), tight=st.booleans())
def test_many_random_frames(operations: Sequence[Kind], frame: pl.DataFrame, tight: bool) -> None:
    check(operations, frame, tight, singles=2)
