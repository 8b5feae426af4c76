"""Which queries are run as one, and which tables are margins of others: found by numbers, as they
are by looking at all keys of each two.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.dtypes import Columns
from dpframe.frames.groups import ListedKeys, Margins, SetGroups, _are_all, _have_rest
from dpframe.optimise.queries import Kind, Queries, merge
from tests.laws.amounts import examples

ROWS = pl.DataFrame(
    {"a": [1], "b": ["x"], "c": [True], "e": ["p"], "x": [1.0]},
    schema_overrides={"e": pl.Enum(["p", "q"])},
)
KEYS: dict[str, list[list[Any]]] = {
    "a": [[1, 2], [2, 1], [1], [1, None], list(range(5))],
    "b": [["x"], ["x", "y"], [None, "x"]],
    "c": [[True, False], [True], [True, False, None]],
    "e": [["p", "q"], ["p"], ["p", "q", None]],
}
COLUMN = st.sampled_from([(name, i) for name, lists in KEYS.items() for i in range(len(lists))])
TABLES = st.tuples(
    st.lists(COLUMN, max_size=3, unique_by=lambda column: column[0]), st.booleans(), st.booleans()
)


def frame() -> dp.PrivateFrame:
    return dp.Session(epsilon=1).protect(ROWS, dp.Rows())


def query(people: dp.PrivateFrame, table: Any, number: int = 0) -> Any:
    columns, filtered, sets = table
    people = people.filter(pl.col("x") > 0) if filtered else people
    if not columns:
        return people.agg(dp.count().alias(f"n{number}"))._query
    names = [name for name, _ in columns]
    by = [dp.rollup(*names)] if sets else names
    keys = {name: KEYS[name][i] for name, i in columns}
    return people.group_by(*by, keys=keys).agg(dp.count().alias(f"n{number}"))._query


def is_margin(mine: ListedKeys, fine: ListedKeys, columns: Columns) -> bool:
    """By all keys of both."""
    if any(fine.values.get(tree) != keys for tree, keys in mine.values.items()):
        return False
    left_out = [tree for tree in fine.values if tree not in mine.values]
    if isinstance(fine.groups, SetGroups):
        return all(_are_all(tree, fine.values[tree], columns) for tree in left_out)
    if isinstance(mine.groups, SetGroups):
        return all(_are_all(tree, keys, columns) for tree, keys in fine.values.items())
    return all(
        _are_all(tree, fine.values[tree], columns) or _have_rest(tree, fine.values[tree], columns)
        for tree in left_out
    )


@examples(30, 240)
@given(st.lists(TABLES, min_size=2, max_size=6))
def test_margins_are_those_that_keys_say(tables: list[Any]) -> None:
    people = frame()
    columns = people._relation.facts.columns
    listed = [ListedKeys.of(query(people, table).groups) for table in tables]
    known = [one for one in listed if one is not None]
    margins = Margins(columns)
    for one in known:
        margins.add(one)
    for mine, fine in product(known, known):
        assert margins.is_margin(mine, fine) == is_margin(mine, fine, columns)


@examples(30, 240)
@given(st.lists(TABLES, min_size=2, max_size=8))
def test_queries_are_merged_where_all_is_the_same(tables: list[Any]) -> None:
    people = frame()
    asked = tuple(query(people, table, number) for number, table in enumerate(tables))
    blocks, places = merge(Queries(asked))
    kinds = [Kind.of(one) for one in asked]
    for (one, at), (other, there) in product(zip(kinds, places, strict=True), repeat=2):
        same = (one.rows, one.by) == (other.rows, other.by) and one.has_same_keys(other)
        assert (at.block == there.block) == same
    assert list(dict.fromkeys(place.block for place in places)) == list(range(len(blocks)))


def test_no_query_is_compared_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    people, compared = frame(), [0]
    exact = Kind.has_same_keys

    def counted(one: Kind, other: Kind) -> bool:
        compared[0] += 1
        return exact(one, other)

    monkeypatch.setattr(Kind, "has_same_keys", counted)
    asked = tuple(
        people.group_by("a", keys=[n // 2, n // 2 + 1]).agg(dp.count().alias(f"n{n}"))._query
        for n in range(200)
    )
    blocks, places = merge(Queries(asked))
    assert [place.block for place in places] == [n // 2 for n in range(200)]
    assert len(blocks) == 100
    assert compared[0] < 200
