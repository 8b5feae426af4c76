"""Cells that are counted by a sort, against the same by a group-by."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.lower import places
from tests.laws.neighbours import exact_tables, query_of

X = [0.0, -0.0, 0.25, 1.0, 7.0, -3.0, math.nan, math.inf, -math.inf, None]
COLUMNS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "text": (pl.String, ["a", "b", "", "z", None], ["b", "a", None]),
    "categories": (pl.Categorical, ["a", "b", "", "z", None], ["b", "a", ""]),
    "enum": (pl.Enum(["a", "b", "z"]), ["a", "b", "z", None], ["z", "a", None]),
    "integers": (pl.Int32, [-1, 0, 5, 2**31 - 1, None], [5, -1, None]),
    "sparse integers": (pl.Int64, [-(2**63), 0, 2**63 - 1, None], [2**63 - 1, -(2**63)]),
    "flags": (pl.Boolean, [True, False, None], [None, True]),
}


def tables(frame: pl.DataFrame, asked: Any, many: int) -> list[Any]:
    """The exact tables where so many cells are counted by a sort."""
    people = dp.Session(epsilon=1).protect(frame, dp.Rows())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "_MANY", many)
        found = exact_tables(query_of(asked(people)), frame).values()
    return [(t.groups.tolist(), t.cells.tolist(), t.values.tolist(), t.size) for t in found]


@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_the_same_tables(name: str, data: st.DataObject) -> None:
    dtype, values, keys = COLUMNS[name]
    row = st.tuples(st.sampled_from(values), st.sampled_from(X))
    rows = data.draw(st.lists(row, max_size=30))
    frame = pl.DataFrame(rows, schema={"g": dtype, "x": pl.Float64}, orient="row")
    for asked in (
        lambda f: f.group_by("g", keys=keys).agg(dp.median("x", (0, 1))),
        lambda f: f.group_by("g", keys=keys).agg(dp.histogram("x", bins=[-3, 0, 1, 7], other=True)),
        lambda f: f.agg(dp.median("x", (0, 1))),
        lambda f: f.filter(pl.col("x") > 0).agg(dp.quantile("x", 0.1, candidates=[0, 0.5, 1])),
    ):
        sorted_, grouped = (tables(frame, asked, many) for many in (1, 2**61))
        assert sorted_ == grouped
