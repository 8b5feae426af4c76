"""Laws of cells: a row is in one at most, and with one for all else in exactly one.

Randomised response rests on the second: the number of its reports must be that of the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.cells import BinCells, CategoryCells
from dpframe.api.query import parts
from dpframe.optimise.measurements import measurements_of
from tests.laws.frames import nasty_frame, wide_columns

FRAME = nasty_frame(60)
COLUMNS = wide_columns(FRAME)
HISTOGRAMS: dict[str, Any] = {
    "Enum": pl.col("e").dp_histogram(),  # type: ignore[attr-defined]
    "Boolean": pl.col("b").dp_histogram(),  # type: ignore[attr-defined]
    "null listed": pl.col("s").dp_histogram(["a", None, ""]),  # type: ignore[attr-defined]
    "whole": pl.col("i64").dp_histogram([-(2**63), 0, 7, 2**62]),  # type: ignore[attr-defined]
    "bins of floats": pl.col("f64").dp_histogram([-1.0, 0.0, 0.1]),  # type: ignore[attr-defined]
    "Float32": pl.col("f32").dp_histogram([-1.0, 0.5, 1e10]),  # type: ignore[attr-defined]
    "many bins": pl.col("f64").dp_histogram(100, bounds=(-3, 3)),  # type: ignore[attr-defined]
    "unsigned": pl.col("u64").dp_histogram(5, bounds=(0, 2**62)),  # type: ignore[attr-defined]
    "dates": pl.col("d").cast(pl.Int32).dp_histogram([0, 1]),  # type: ignore[attr-defined]
}


def cells_of(asked: Any) -> CategoryCells | BinCells:
    frame = dp.Session(epsilon=1).protect(FRAME, dp.Rows())
    query, _, _ = parts(frame.agg(asked.alias("h")))
    (table,) = measurements_of(query)[0].part.tables
    assert isinstance(table.cells, (CategoryCells, BinCells))
    return table.cells


@pytest.mark.parametrize("name", HISTOGRAMS)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_each_row_is_in_one_cell(name: str, engine: Any) -> None:
    cells = cells_of(HISTOGRAMS[name])
    every = replace(cells, other=True)
    made = [cells.row(COLUMNS, pl).alias("some"), every.row(COLUMNS, pl).alias("all")]
    found = FRAME.lazy().select(made).collect(engine=engine)
    assert found["all"].null_count() == 0
    assert found["all"].is_between(0, every.size - 1).all()
    listed = found.filter(pl.col("some").is_not_null())
    assert listed["some"].is_between(0, cells.size - 1).all()
    assert listed["some"].equals(listed["all"])
    assert (found.filter(pl.col("some").is_null())["all"] == every.size - 1).all()


@pytest.mark.parametrize("rows", range(1, 6))
def test_zeros_of_either_sign_are_one_distinct_value(rows: int) -> None:
    values = [(-0.0 if i % 2 else 0.0) for i in range(rows)] + [float("nan"), None]
    frame = dp.Session(epsilon=10**9).protect(pl.DataFrame({"x": values}), dp.Rows())
    assert frame.dp_n_unique("x").collect(epsilon=10**6)["x"].item() == 1
