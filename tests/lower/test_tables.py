"""Exact tables: how many queries run, and that their integers are those of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import CellCounts, Table
from dpframe.core.tree import Column
from dpframe.lower import Execution, lower_query
from dpframe.lower.engines.polars_engine import POLARS, PolarsEngine
from dpframe.lower.tables import count_cells, key_expression
from tests.laws.neighbours import run, tables_of

ROWS = pl.DataFrame(
    {
        "x": [1, 2, None, 4, 5, None],
        "y": [0.5, None, float("nan"), 1.5, -9.0, 0.25],
        "g": ["a", "b", None, "a", "zz", "b"],
        "e": pl.Series(["p", "q", "p", None, "p", "q"], dtype=pl.Enum(["p", "q", "r"])),
        "b": [True, None, False, True, True, False],
    }
)


def asked(texts: Sequence[str], grouping: str = "f", steps: str = "f") -> Query:
    names: dict[str, Any] = {"pl": pl, "dp": dp}
    frame = dp.Session(epsilon=1).protect(ROWS, dp.Rows())
    names["f"] = eval(steps, {**names, "f": frame})
    outputs = {f"o{i}": eval(text, names) for i, text in enumerate(texts)}
    found: Query = eval(grouping, names).agg(**outputs)._query
    return found


def counted(query: Query, frame: pl.DataFrame = ROWS) -> dict[Table, CellCounts]:
    return run(query, frame.lazy())


def only(query: Query, frame: pl.DataFrame = ROWS, cells: int = 1) -> list[list[int]]:
    """The one table of a query, as rows of groups."""
    (found,) = counted(query, frame).values()
    dense: list[list[int]] = found.dense(cells).tolist()
    return dense


BY_G = 'f.group_by("g", keys=["b", "never", None, "a"])'


# --------------------------------------------------------------------------- how many queries


def test_everything_without_cells_comes_from_one_query() -> None:
    query = asked(["dp.count()", 'pl.col("x").dp_mean((0, 9))', 'pl.col("y").dp_std((0, 1))'], BY_G)
    (lowered,) = lower_query(query.relation, query.groups, tables_of(query), ROWS.lazy())
    assert len(lowered.statistics) == len(tables_of(query)) == 6
    assert lowered.cells is None


def test_each_kind_of_cells_has_a_query() -> None:
    query = asked(
        [
            "dp.count()",
            'pl.col("e").dp_histogram()',
            'pl.col("e").dp_argmax()',
            'pl.col("x").dp_median((0, 9))',
        ]
    )
    made = lower_query(query.relation, query.groups, tables_of(query), ROWS.lazy())
    assert [lowered.cells is None for lowered in made] == [True, False, False]


def test_one_table_serves_a_histogram_and_the_choice_of_its_best() -> None:
    query = asked(['pl.col("e").dp_histogram()', 'pl.col("e").dp_argmax()'])
    assert len(tables_of(query)) == 1
    assert only(query, cells=3) == [[3, 2, 0]]


# ------------------------------------------------------------------------------ the integers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dp.count()", [2, 0, 1, 2]),
        ('pl.col("x").dp_count()', [1, 0, 0, 2]),
        ('pl.col("y").dp_count()', [1, 0, 0, 2]),  # neither null nor NaN
        ('pl.col("x").dp_sum((0, 3))', [2, 0, 0, 4]),  # 4 counts as 3
        ('pl.col("x").dp_sum((2, 9))', [2, 0, 0, 6]),  # 1 counts as 2, and null as 0
        ('pl.col("x").dp_n_unique()', [1, 0, 0, 2]),
        ('pl.col("b").dp_sum()', [0, 0, 0, 2]),
        ('(pl.col("x") * 2 + 1).dp_sum((-9, 9))', [5, 0, 0, 12]),
    ],
)
def test_tables_follow_the_order_of_the_keys(text: str, expected: list[int]) -> None:
    assert only(asked([text], BY_G)) == [[n] for n in expected]
    assert only(asked([text], BY_G), ROWS.reverse()) == [[n] for n in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dp.count()", 6),
        ('pl.col("x").dp_count()', 4),
        ('pl.col("x").dp_sum((0, 3))', 9),
        ('pl.col("x").dp_n_unique()', 4),
        ("pl.lit(7).dp_sum((0, 9))", 42),
        ("pl.lit(None, dtype=pl.Int64).dp_sum((0, 9))", 0),
    ],
)
def test_without_groups_all_rows_are_one_entry(text: str, expected: int) -> None:
    assert only(asked([text])) == [[expected]]
    assert only(asked([text]), ROWS.clear()) == [[0]]


def test_floats_are_summed_as_whole_steps() -> None:
    query = asked(['pl.col("y").dp_sum((0, 1))'])
    (table,) = tables_of(query)
    step = table.statistic.step
    assert only(query) == [[int((0.5 + 1 + 0 + 0.25) / step)]]


def test_cells_and_groups_together() -> None:
    query = asked(['pl.col("e").dp_histogram(other=True)'], 'f.group_by("b", keys=[False, True])')
    assert only(query, cells=4) == [[1, 1, 0, 0], [2, 0, 0, 1]]


def test_keys_of_several_columns() -> None:
    query = asked(
        ["dp.count()"], 'f.group_by("g", "b", keys={"g": ["a", None], "b": [True, False]})'
    )
    assert only(query) == [[2], [0], [0], [1]]


def test_steps_come_first() -> None:
    kept = 'f.filter(pl.col("x") > 1).with_columns(x=pl.col("x") * 10, g=pl.lit("a"))'
    assert only(asked(['pl.col("x").dp_sum((0, 100))'], BY_G, kept)) == [[0], [0], [0], [110]]


def test_sums_of_large_values_do_not_wrap() -> None:
    """Small integer types wrap when Polars sums them; ours are Int64 before."""
    for dtype, top in ((pl.Int32, 2**31 - 1), (pl.UInt32, 2**32 - 1), (pl.UInt8, 255)):
        frame = pl.DataFrame({"x": pl.Series([top] * 1000, dtype=dtype)})
        people = dp.Session(epsilon=1).protect(frame, dp.Rows())
        query: Query = people.dp_sum("x", (0, top))._query
        (table,) = tables_of(query)
        (found,) = run(query, frame.lazy()).values()
        total = int(found.dense(1)[0, 0]) * table.statistic.step
        assert abs(total - 1000 * top) <= 1000 * table.statistic.step / 2


def test_extreme_integers_are_clamped_and_not_wrapped() -> None:
    frame = pl.DataFrame({"x": [2**63 - 1, -(2**63), 2**63 - 1]})
    query: Query = dp.Session(epsilon=1).protect(frame, dp.Rows()).dp_sum("x", (-3, 7))._query
    assert [c.dense(1).tolist() for c in counted(query, frame).values()] == [[[11]]]


# ------------------------------------------------------------------------------------- views


def test_the_cells_of_each_group() -> None:
    found = CellCounts(np.array([0, 0, 2]), np.array([1, 4, 0]), np.array([7, 8, 9]), size=4)
    assert found.offsets(0, 4).tolist() == [0, 2, 2, 3, 3]
    assert found.offsets(1, 3).tolist() == [2, 2, 3]
    assert found.dense(5).tolist() == [[0, 7, 0, 0, 8], [0] * 5, [9, 0, 0, 0, 0], [0] * 5]


# ------------------------------------------------------------------------------ before the charge


def rehearse(query: Query, schema: pl.Schema = ROWS.schema, engine: PolarsEngine = POLARS) -> None:
    token = query.relation.token
    execution = Execution(engine, {token: ROWS.lazy()}, {token: schema})
    execution.rehearse(query.relation, query.groups, tables_of(query))


def test_a_rehearsal_needs_no_rows() -> None:
    query = asked(['pl.col("x").dp_sum((0, 9))', 'pl.col("e").dp_histogram()'], BY_G)
    rehearse(query)


def test_a_rehearsal_finds_what_the_engine_does_not_know() -> None:
    query = asked(['pl.col("x").dp_sum((0, 9))'])
    with pytest.raises(dp.UnsupportedOperation, match="nothing was charged") as caught:
        rehearse(query, pl.Schema({"z": pl.Int64}))
    assert "ColumnNotFoundError" in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_run_says_nothing_of_why_it_failed() -> None:
    query = asked(['pl.col("x").dp_sum((0, 9))'])
    with pytest.raises(dp.EngineError) as caught:
        run(query, pl.LazyFrame({"secret": [1]}))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_entries_of_one_group_and_cell_add_up() -> None:
    """Should an engine split a group, no part of it is lost."""
    found = CellCounts.of_cells(
        np.array([2, 0, 2, 0, 0]), np.array([1, 3, 1, 0, 3]), np.array([5, 7, -1, 9, 1]), size=3
    )
    assert found.dense(4).tolist() == [[9, 0, 0, 8], [0, 0, 0, 0], [0, 4, 0, 0]]
    assert found.values.tolist() == [9, 8, 4]
    alone = CellCounts.of_groups(np.array([1, 0, 1]), np.array([5, 2, 3]), 3)
    assert alone.dense(1).tolist() == [[2], [8], [0]]
    whole = CellCounts.of_groups(np.array([2, 0]), np.array([5, -2]), 3)
    assert whole.dense(1).tolist() == [[-2], [0], [5]]
    assert whole.dense(1, 1, 3).tolist() == [[0], [5]]
    first = CellCounts.of_groups(np.array([0, 0, 2]), np.array([0, 4, 1]), 3)
    assert first.dense(1).tolist() == [[4], [0], [1]]


# ---------------------------------------------------------------------------------- rehearsals


class _Odd(PolarsEngine):
    """Answers, but not with the columns that it is asked for."""

    def collect(self, frames: Any, *, rehearsed: bool = False) -> list[pl.DataFrame]:
        return [found.drop("v0") for found in super().collect(frames, rehearsed=rehearsed)]


def test_a_rehearsal_reads_the_answer_too() -> None:
    query = asked(["dp.count()"], BY_G)
    rehearse(query)
    with pytest.raises(dp.UnsupportedOperation, match="nothing was charged"):
        rehearse(query, engine=_Odd("in-memory"))


@pytest.mark.parametrize(
    ("steps", "plain"),
    [
        ("f", True),
        ('f.filter(pl.col("x") > 1)', True),
        ('f.with_columns(h=pl.col("x"))', True),
        ('f.with_columns(h=pl.col("x") + 1)', False),
        ('f.select("x", "g", h=pl.col("x") + 1)', False),
        ('f.join(pl.DataFrame({"g": ["a"], "h": [1]}), on="g")', False),
        ('f.join(pl.DataFrame({"g": ["a"], "h": [1]}), on="g", how="left")', False),
        ('f.join(pl.DataFrame({"g": ["a"]}), on="g", how="semi")', False),
        ("f.concat(f)", False),
    ],
)
def test_columns_are_grouped_as_they_are_only_where_they_are_the_source_s(
    steps: str, plain: bool
) -> None:
    """Polars groups what it takes for sorted by runs, and is not always right after other steps."""
    query = asked(["dp.count()"], 'f.group_by("g", keys=["a"])', steps)
    found = key_expression(Column("g"), query.relation, pl)
    assert found.meta.eq(pl.col("g")) == plain


def test_sums_of_no_rows_that_an_engine_says_nothing_of_are_nought() -> None:
    """SQL has null for the sum of no rows."""
    query = asked(["dp.count()"])
    (lowered,) = lower_query(query.relation, query.groups, tables_of(query), ROWS.lazy())
    empty = pl.DataFrame({"v0": [None]}, schema={"v0": pl.Int64})
    (found,) = count_cells(lowered, empty, query.groups)
    assert found.values.tolist() in ([], [0])
    assert found.dense(1).tolist() == [[0]]
