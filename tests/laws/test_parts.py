"""Laws of parts: each row is in one at most, the one that a group-by would put it into, and
neighbouring frames differ in as many parts at most as the budget says.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.dtypes import INT64, columns, domain_of_dtype
from dpframe.core.tree import Column, Named
from dpframe.core.units import Rows
from dpframe.frames.facts import FrameFacts
from dpframe.frames.partition import Part
from tests.laws.frames import frames
from tests.laws.neighbours import UNITS, Pair, exact_tables, neighbours, query_of, tables_of

COLUMNS = (
    *("i8", "i32", "i64", "u8", "u64", "b", "s", "e", "d", "dt", "dtz", "dtms", "dur", "t", "dec"),
)
COMPUTED = (
    'pl.col("f64").cast(pl.Int64, strict=False)',
    'pl.col("s").str.to_lowercase()',
    'pl.col("s").str.head(-1)',
    'pl.col("i64") % 3',
    'pl.col("dt").dt.date()',
    'pl.col("e").cast(pl.String)',
    'pl.col("f64") > 0',
    'pl.col("dt").cast(pl.Time)',
    'pl.col("s").str.slice(1)',
    "pl.lit(1)",
)
NAMES = (*COLUMNS, "f64")
units = st.sampled_from(UNITS)
dividing = st.lists(st.sampled_from([*COLUMNS, *COMPUTED]), min_size=1, max_size=2, unique=True)


def written(by: str) -> pl.Expr:
    expression = eval(by) if by.startswith("pl.") else pl.col(by)
    return expression.alias(by)


@st.composite
def divided(draw: st.DrawFn, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Public keys, some of which are in the frame."""
    there = draw(frames(min_rows=1, max_rows=4, names=NAMES))
    there = pl.concat([frame, there]).with_columns(*(written(b) for b in by))
    rows = draw(st.lists(st.integers(0, there.height - 1), min_size=1, max_size=6))
    return there[rows].select(by)


def measurements_of(
    by: Sequence[str], keys: pl.DataFrame, schema: Any, unit: Rows
) -> tuple[dict[Any, dp.PrivateFrame], dp.PrivateQuery]:
    """The parts, and the group-by that they are of."""
    session = dp.Session(epsilon=1)
    people = session.protect(pl.DataFrame(schema=schema), unit)
    wanted = [written(b) for b in by]
    try:
        parts = session.partition(people, wanted, keys)
    except dp.UnsupportedOperation as refusal:  # years and nanoseconds that Python does not have
        assume("more precise" not in refusal.what)
        raise
    return parts, people.group_by(wanted, keys=keys).agg(dp.count())


def counted(query: dp.PrivateQuery, frame: pl.DataFrame) -> list[int]:
    asked = query_of(query)
    tables = exact_tables(asked, frame)
    (table,) = tables_of(asked)
    dense: list[int] = tables[table].dense(1).ravel().tolist()
    return dense


@given(data=st.data(), by=dividing, unit=units)
def test_a_part_has_the_rows_of_its_group(data: st.DataObject, by: list[str], unit: Rows) -> None:
    frame = data.draw(frames(max_rows=12, names=NAMES))
    keys = data.draw(divided(frame, by))
    parts, grouped = measurements_of(by, keys, frame.schema, unit)
    sizes = [counted(part.dp_count(), frame)[0] for part in parts.values()]
    assert sizes == counted(grouped, frame)
    assert sum(sizes) <= frame.height


def touches(unit: Rows, parts: int) -> int:
    """A row that changes may leave one part for another."""
    each = 1 if unit.adjacency == "add-remove" else 2
    return min(parts, each * unit.contributions)


@given(data=st.data(), by=dividing, unit=units)
def test_neighbours_differ_in_few_parts(data: st.DataObject, by: list[str], unit: Rows) -> None:
    pair: Pair = data.draw(neighbours(unit, NAMES))
    keys = data.draw(divided(pair.before, by))
    parts, _ = measurements_of(by, keys, pair.before.schema, unit)
    differ = 0
    for part in parts.values():
        asked = query_of(
            part.agg(
                dp.count(),
                dp.histogram("e"),
                dp.count("s").alias("c"),
                dp.sum("i8", (-100, 100)).alias("t"),
            )
        )
        before, after = exact_tables(asked, pair.before), exact_tables(asked, pair.after)
        differ += any(
            before[table].dense(cells).tolist() != after[table].dense(cells).tolist()
            for table in tables_of(asked)
            for cells in [1 if table.cells is None else table.cells.size]
        )
    assert differ <= touches(unit, len(parts))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_neighbours_may_differ_in_that_many_parts(unit: Rows) -> None:
    """So nothing less would do."""
    k = unit.contributions
    rest = [8, 9] * 5
    before = pl.DataFrame({"a": [*range(k), *rest]})
    gone = [*range(k, 2 * k)] if unit.adjacency == "change-one" else []
    after = pl.DataFrame({"a": [*gone, *rest]})
    session = dp.Session(epsilon=1)
    parts = session.partition(session.protect(before, unit), "a", list(range(10)))
    differ = [
        counted(part.dp_count(), before) != counted(part.dp_count(), after)
        for part in parts.values()
    ]
    assert sum(differ) == touches(unit, 10)


@pytest.mark.parametrize(
    "by",
    [
        pl.col("t").cast(pl.Time),
        pl.col("s").str.head(-1),
        pl.col("s").str.slice(1),
        pl.col("s").str.tail(1),
    ],
    ids=str,
)
def test_no_part_is_looked_for_in_the_wrong_half(by: pl.Expr) -> None:
    """The columns are sorted and marked so; what is computed of them is not, and may be marked."""
    hours = [datetime(2024, 1, d, h) for d in range(1, 9) for h in (1, 5, 9, 23)]
    texts = sorted(f"{a}{b}{c}" for a in "ab" for b in "zyab" for c in "qpxa")
    frame = pl.DataFrame({"t": hours, "s": texts}).with_columns(pl.all().set_sorted())
    keys = frame.with_columns(pl.all().shuffle(1)).select(by.alias("k")).to_series().unique()
    session = dp.Session(epsilon=10**9)
    for people in (
        session.protect(frame, dp.Rows()),
        session.protect(frame, dp.Rows()).with_columns(k=by),
        session.protect(frame, dp.Rows()).with_columns(k=by).filter(pl.col("k").is_not_null()),
    ):
        parts = session.partition(people, by if "k" not in people else "k", keys)
        steps = [part._relation.steps[-1][0] for part in parts.values()]
        assert all(isinstance(step, Part) and step.computed for step in steps)
        sizes = [counted(part.dp_count(), frame)[0] for part in parts.values()]
        shuffled = pl.DataFrame({n: pl.Series(frame[n].to_list()) for n in frame.columns})
        wanted = [shuffled.filter(by == key).height for key in parts]
        assert sum(sizes) == frame.height
        assert sizes == wanted


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_what_was_computed_is_never_taken_for_sorted(engine: Any) -> None:
    """Where a step marked a column so that is not."""
    frame = pl.DataFrame({"a": [3, 1, 2] * 50}).with_columns(pl.col("a").set_sorted())
    facts = FrameFacts(columns({"a": domain_of_dtype(INT64)}), Rows())
    for key in (1, 2, 3):
        part = Part((Named("a", Column("a")),), (key,), computed=True)
        assert part.lower(frame.lazy(), facts, pl, salt=0).collect(engine=engine).height == 50
