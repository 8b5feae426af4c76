"""Related tables of several queries: no individual moves a margin by more than is declared, and the
results are those of each query by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.reconstruction import ways_to_measure
from dpframe.core.budget import ZCDP, PureDP
from dpframe.optimise.measurements import measurements_of
from dpframe.optimise.queries import Place, Queries, bring_together, merge, related_blocks
from dpframe.release import assemble
from dpframe.simulate import exact_parts
from tests.laws.amounts import examples
from tests.laws.neighbours import exact_tables, query_of, vector

SCHEMA = {"who": pl.Int64, "a": pl.String, "b": pl.Int64, "e": pl.Enum(["x", "y"]), "n": pl.Int64}
KEYS: dict[str, list[Any]] = {"a": ["p", "q"], "b": [1, 0], "e": ["y", "x"]}
POOLS: dict[str, list[Any]] = {
    "a": ["p", "q", "r", None],
    "b": [0, 1, 7, None],
    "e": ["x", "y", None],
    "n": [-3, 0, 5, None],
}
OUTPUTS = [
    "dp.count()",
    'pl.col("n").dp_sum((-3, 4))',
    'pl.col("n").dp_mean((0, 5))',
    'pl.col("n").dp_count()',
    'pl.col("n").dp_var((-1, 4))',
]
GROUPINGS: list[tuple[str, ...]] = [(), ("a",), ("b",), ("a", "b"), ("e",), ("b", "e"), ("e", "a")]
UNITS: list[Any] = [
    dp.Rows(),
    dp.Rows("change-one"),
    dp.Rows(contributions=3),
    dp.Rows("change-one", contributions=2),
]


def ask(frame: Any, by: Sequence[str], texts: Sequence[str], turned: bool = False) -> Query:
    """A query by some columns; `turned` with their keys in another order."""
    outputs = {f"o{i}": eval(text, {"dp": dp, "pl": pl}) for i, text in enumerate(texts)}
    keys = {name: KEYS[name][:: -1 if turned else 1] for name in by}
    groups = frame.group_by(*by, keys=keys) if by else frame
    return query_of(groups.agg(**outputs))


queries = st.lists(
    st.tuples(
        st.sampled_from(GROUPINGS),
        st.lists(st.sampled_from(OUTPUTS), min_size=1, max_size=2, unique=True),
        st.booleans(),
    ),
    min_size=2,
    max_size=4,
)
row = st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in POOLS.items()})


def frame_of(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([{"who": None, **found} for found in rows], schema=SCHEMA, orient="row")


def related(asked: Sequence[Query]) -> list[Query]:
    """The queries that are run as one, as they are measured for an epsilon and for a rho."""
    blocks, _ = merge(Queries(tuple(asked)))
    together = [one.query for found in related_blocks(blocks) for one in found]
    return [
        way for q in together for spend in (PureDP(1), ZCDP(1)) for way in ways_to_measure(q, spend)
    ]


def check_margins(query: Query, one: pl.DataFrame, other: pl.DataFrame) -> None:
    """Each margin moves within all norms that it declares."""
    before, after = exact_tables(query, one), exact_tables(query, other)
    for use in measurements_of(query):
        part = use.part
        assert isinstance(part, Margin)
        assert use.sensitivity == part.sensitivity(query.scope)
        change = abs(np.subtract(vector(part, after), vector(part, before)))
        assert (change > 0).sum() <= use.sensitivity.l0
        assert change.sum() <= use.sensitivity.l1
        assert (change**2).sum() <= use.sensitivity.l2_squared
        assert change.max(initial=0) <= use.sensitivity.linf


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(queries, st.lists(row, max_size=5), st.lists(row, min_size=3, max_size=3), st.data())
@settings(max_examples=10)
def test_rows_move_margins_by_no_more_than_is_declared(
    unit: dp.Rows, asked: Any, shared: list[Any], mine: list[Any], data: st.DataObject
) -> None:
    frame = dp.Session(epsilon=1).protect(frame_of([]), unit=unit)
    found = related([ask(frame, *one) for one in asked])
    mine = mine[: unit.contributions]
    changes = unit.adjacency == "change-one"
    instead = data.draw(st.lists(row, min_size=len(mine), max_size=len(mine))) if changes else []
    for query in found:
        check_margins(query, frame_of(shared + mine), frame_of(shared + instead))


LIMITS = [
    lambda f: f.limit_rows(2),
    lambda f: f.limit_groups(2, by="a").limit_rows(2, by="a"),
    lambda f: f.limit_groups(1, by=["a", "b"]).limit_rows(3, by=["a", "b"]),
    lambda f: f.limit_groups(2, by=["a", "b", "e"]).limit_rows(2),
]


@pytest.mark.parametrize("limit", range(len(LIMITS)))
@given(queries, st.lists(row, max_size=4), st.lists(row, max_size=5))
@settings(max_examples=10)
def test_individuals_move_margins_by_no_more_than_is_declared(
    limit: int, asked: Any, shared: list[Any], mine: list[Any]
) -> None:
    frame = LIMITS[limit](dp.Session(epsilon=1).protect(frame_of([]), unit="who"))
    try:
        found = related([ask(frame, *one) for one in asked])
    except dp.UnboundedSensitivity:
        return
    others = frame_of(shared).with_columns(who=pl.int_range(pl.len()) + 10)
    own = frame_of(mine).with_columns(who=pl.lit(1, pl.Int64))
    for query in found:
        check_margins(query, pl.concat([others, own]), others)


@given(queries, st.lists(row, max_size=12), st.booleans())
@examples(20, 160)
def test_results_without_noise_are_those_of_each_query(
    asked: Any, rows: list[Any], listed: bool
) -> None:
    """Whatever values are not listed, and in whatever order keys are."""
    frame = dp.Session(epsilon=1).protect(frame_of([]), unit=dp.Rows())
    if listed:
        frame = frame.filter(pl.col("b").is_in([0, 1]), pl.col("e").is_not_null())
    each = [ask(frame, *one) for one in asked]
    blocks, places = merge(Queries(tuple(each)))
    data = frame_of(rows)
    for found in related_blocks(blocks):
        moved, moved_places = bring_together(blocks, places, found)
        for place, query in zip(moved_places, each, strict=True):
            whole = moved[place.block]
            expected = assemble(query, exact(query, data))
            assert assemble(place.of(whole), exact(whole, data)).equals(expected)


def exact(query: Query, data: pl.DataFrame) -> Any:
    counted = exact_tables(query, data)
    keys = [(use.part, use.mechanism) for use in measurements_of(query)]
    return exact_parts(query, keys, counted.of(*(part for part, _ in keys)))


def test_grouping_sets_are_those_of_each_query() -> None:
    frame = dp.Session(epsilon=1).protect(frame_of([]), unit=dp.Rows())
    frame = frame.filter(pl.col("b").is_in([0, 1])).drop_nulls("e")
    count = {"n": dp.count(), "s": eval(OUTPUTS[1])}
    asked = [
        query_of(frame.group_by(dp.rollup("e", "b")).agg(**count)),
        query_of(frame.agg(**count)),
        query_of(frame.group_by("b").agg(**count)),
        query_of(frame.group_by(dp.cube("b", "e")).agg(**count)),
    ]
    ((one,),) = related_blocks(asked)
    assert one.numbers == (0, 3, 2, 1)
    places = [Place.whole(query) for query in asked]
    places = [replace(place, block=number) for number, place in enumerate(places)]
    (whole,), moved = bring_together(asked, places, [one])
    rows = [{"a": None, "b": i % 3, "e": "xxy"[i % 3], "n": i % 5 - 3} for i in range(40)]
    data = frame_of(rows)
    for place, query in zip(moved, asked, strict=True):
        assert assemble(place.of(whole), exact(whole, data)).equals(
            assemble(query, exact(query, data))
        )


def test_margins_are_of_all_rows_that_smaller_tables_count() -> None:
    """What a sum over listed keys alone would miss."""
    frame = dp.Session(epsilon=1).protect(frame_of([]), unit=dp.Rows())
    asked = [ask(frame, ("a", "b"), ["dp.count()"]), ask(frame, (), ["dp.count()"])]
    ((one,),) = related_blocks(asked)
    rows = [{"a": "r", "b": 0, "e": None, "n": 1}, {"a": "p", "b": None, "e": None, "n": 1}]
    counted = exact_tables(one.query, frame_of(rows))
    (table,) = counted
    assert counted[table].dense(1).sum() == 2
    assert np.count_nonzero(counted[table].dense(1)) == 2
