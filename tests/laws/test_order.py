"""No operation hands on the mark of a sorted column when its result is not sorted.

Engines group, compare and count marked columns by their runs, so a wrong mark makes results wrong,
in a way that depends on which other rows there are.
"""

from __future__ import annotations

import math
from itertools import product

import polars as pl
import pytest

from dpframe.core.tree import column_names
from dpframe.rows.fold import lower
from dpframe.rows.operation import Kind
from dpframe.rows.registry import OPERATIONS
from tests.laws.checking import tree_of
from tests.laws.frames import nasty_frame, wide_columns
from tests.laws.layouts import in_order

FRAME = pl.concat([nasty_frame()] * 2)
COLUMNS = wide_columns(nasty_frame(0))


def marked_wrongly(values: pl.Series) -> bool:
    flags = values.flags
    return (flags["SORTED_ASC"] and not in_order(values, False)) or (
        flags["SORTED_DESC"] and not in_order(values, True)
    )


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_what_is_marked_as_sorted_is_sorted(operation: Kind) -> None:
    trees = [tree_of(text) for text in operation.examples]
    for name in {n for tree in trees for n in column_names(tree)}:
        if FRAME[name].dtype.is_nested():
            continue
        made = [
            lower(tree, COLUMNS).alias(str(i))
            for i, tree in enumerate(trees)
            if name in column_names(tree)
        ]
        for descending, nulls_last, dropped in product((False, True), repeat=3):
            frame = FRAME.sort(name, descending=descending, nulls_last=nulls_last)
            frame = frame.drop_nulls(name) if dropped else frame
            for engine in ("in-memory", "streaming"):
                result = frame.lazy().select(made).collect(engine=engine)  # type: ignore[arg-type]
                wrong = [c.name for c in result if not c.dtype.is_nested() and marked_wrongly(c)]
                assert not wrong, [operation.examples[int(i)] for i in wrong]


def test_the_check_finds_wrong_marks() -> None:
    assert not marked_wrongly(pl.Series([1, 2, None]).set_sorted())
    assert marked_wrongly(pl.Series([1, 3, 2]).set_sorted())
    assert marked_wrongly(pl.Series([1, None, 2]).set_sorted())
    assert marked_wrongly(pl.Series([1.0, math.nan, 2.0]).set_sorted())
    assert marked_wrongly(pl.Series([1, 2]).set_sorted(descending=True))
