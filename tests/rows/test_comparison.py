"""Comparisons with null, whatever the type of the other operand."""

from __future__ import annotations

import operator
from datetime import date, datetime, time, timedelta
from itertools import product

import polars as pl
import pytest

from dpframe.core.dtypes import DType
from dpframe.core.tree import Column, Literal
from dpframe.rows import fold
from tests.calls import call
from tests.rows.running import X, evaluate, facts

NULL = Literal(None, DType("Null"))
COLUMNS = [
    pl.Series("x", [date(2024, 1, 1), None]),
    pl.Series("x", [datetime(2024, 1, 1), None]),
    pl.Series("x", [datetime(2024, 1, 1), None], dtype=pl.Datetime("ms", "Europe/Amsterdam")),
    pl.Series("x", [time(12), None]),
    pl.Series("x", [timedelta(1), None]),
    pl.Series("x", [1, None]),
    pl.Series("x", [0.5, None]),
    pl.Series("x", ["a", None]),
    pl.Series("x", [True, None]),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: str(c.dtype))
def test_null_can_be_compared_with_everything(column: pl.Series) -> None:
    frame = pl.DataFrame({"x": column})
    for operation in ("eq", "ne", "lt", "le", "gt", "ge"):
        for operands in ((X, NULL), (NULL, X)):
            assert evaluate(call(operation, *operands), frame).to_list() == [None, None]
    assert evaluate(call("eq_missing", X, NULL), frame).to_list() == [False, True]
    assert evaluate(call("ne_missing", NULL, X), frame).to_list() == [True, False]
    between = call("is_between", X, NULL, NULL, closed="both")
    assert evaluate(between, frame).to_list() == [None, None]


WHOLE = {
    pl.Int8: [-128, -1, 0, 127],
    pl.UInt32: [0, 127, 2**32 - 1],
    pl.Int64: [-(2**63), -1, 127, 2**63 - 1],
    pl.UInt64: [0, 127, 2**63 - 1, 2**64 - 1],
    pl.Int128: [-(2**127), -1, 127, 2**63 - 1, 2**64 - 1, 2**127 - 1],
}


def test_whole_numbers_of_all_types_compare_exactly() -> None:
    for one, other in product(WHOLE, WHOLE):
        pairs = list(product(WHOLE[one], WHOLE[other]))
        frame = pl.DataFrame(pairs, schema={"x": one, "y": other}, orient="row")
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            tree = call(name, X, Column("y"))
            found = frame.select(fold.lower(tree, facts(frame))).to_series().to_list()
            assert found == [getattr(operator, name)(*pair) for pair in pairs], (one, other, name)
