"""Limits of rows where rows differ in lists, arrays and structs: what is kept depends on an
individual's own rows alone, and on all that they hold.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.errors import UnsupportedOperation
from dpframe.frames.sampling import comparable
from dpframe.rows.polars_dtypes import from_polars
from tests.api.exactly import exactly, protected
from tests.laws.amounts import examples
from tests.laws.neighbours import Engine
from tests.laws.test_limits import limited

ENGINES: tuple[Engine, ...] = ("in-memory", "streaming")
INNER = pl.Struct({"x": pl.Int64, "y": pl.String, "z": pl.List(pl.Float64)})
SCHEMA: dict[str, Any] = {
    "id": pl.Int64(),
    "g": pl.String(),
    "li": pl.List(pl.Int64),
    "ls": pl.List(pl.String),
    "lf": pl.List(pl.Float64),
    "arr": pl.Array(pl.Int64, 2),
    "st": INNER,
    "deep": pl.List(INNER),
    "e": pl.List(pl.Enum(["p", "q"])),
    "d": pl.List(pl.Datetime("us")),
    "bin": pl.List(pl.Binary),
}
STRUCTS: list[Any] = [
    None,
    {"x": None, "y": None, "z": None},
    {"x": 1, "y": "", "z": []},
    {"x": 1, "y": None, "z": [None]},
    {"x": 11, "y": "n", "z": [0.5]},
    {"x": 1, "y": "1n", "z": [math.nan]},
]
POOLS: dict[str, list[Any]] = {
    "g": ["a", "b", None],
    "li": [None, [], [None], [1, 2], [12], [2, 1]],
    "ls": [None, [], [""], [None], ["a", "b"], ["ab"], ["a:b"], ["1:a"]],
    "lf": [None, [], [0.0], [-0.0], [math.nan], [math.inf, 0.1], [None]],
    "arr": [None, [1, 2], [2, 1], [None, None], [12, None]],
    "st": STRUCTS,
    "deep": [None, [], [None], *([s] for s in STRUCTS[1:]), [None, STRUCTS[2]]],
    "e": [None, [], ["p"], ["q", "p"], [None]],
    "d": [None, [], [0], [1], [None]],
    "bin": [None, [], [b""], [b"\xff"], [b"a;"], [b"a", b""]],
}  # fmt: skip
ROWS = st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in POOLS.items()})
LIMITS = ("f.limit_rows(1)", "f.limit_rows(2)", 'f.limit_rows(1, by="g")', "f.limit_rows(50)")


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([pl.Series(n, [r[n] for r in rows], dtype=t) for n, t in SCHEMA.items()])


def told(frame: pl.DataFrame) -> Counter[str]:
    """Rows, each as a text; zeros have no sign."""
    return Counter(repr(row).replace("-0.0", "0.0") for row in frame.rows())


@examples(20, 160)
@given(
    st.lists(st.tuples(st.integers(1, 3), ROWS), min_size=1, max_size=12),
    st.sampled_from(LIMITS),
    st.integers(0, 2**64 - 1),
    st.sampled_from(ENGINES),
    st.data(),
)
def test_what_is_kept_of_an_individual_depends_on_its_rows_alone(
    drawn: list[tuple[int, dict[str, Any]]],
    limit: str,
    salt: int,
    engine: Engine,
    data: st.DataObject,
) -> None:
    rows = [{**row, "id": who} for who, row in drawn]
    frame = frame_of(rows)
    kept = limited([limit], frame, salt, engine)
    order = data.draw(st.permutations(range(frame.height)))
    pieces = pl.concat([frame[i] for i in order], rechunk=False)
    assert told(limited([limit], pieces, salt, engine)) == told(kept)
    for who in {row["id"] for row in rows}:
        alone = limited([limit], frame.filter(pl.col("id") == who), salt, engine)
        assert told(alone) == told(kept.filter(pl.col("id") == who))
        had = told(frame.filter(pl.col("id") == who))
        assert not told(alone) - had
        if "by" not in limit:
            most = int(limit.split("(")[1].rstrip(")"))
            assert alone.height == min(most, had.total())


@pytest.mark.parametrize("name", list(POOLS))
def test_no_two_values_are_taken_for_one(name: str) -> None:
    held = [{**dict.fromkeys(SCHEMA), "id": 1, name: value} for value in POOLS[name]]
    frame = frame_of(held)
    made = comparable(pl, name, from_polars(SCHEMA[name]))
    for given_frame in (frame, pl.concat([frame[i] for i in range(frame.height)], rechunk=False)):
        texts = given_frame.select(made).to_series().to_list()
        expected = len(told(frame))
        assert len(set(texts)) == expected
        alone = [frame[i].select(made).item() for i in range(frame.height)]
        assert alone == texts


def test_rows_that_differ_in_a_list_alone_are_all_chosen_at_times() -> None:
    frame = frame_of([{**dict.fromkeys(SCHEMA), "id": 1, "li": [i]} for i in range(4)])
    chosen = {limited(["f.limit_rows(1)"], frame, salt)["li"].item()[0] for salt in range(60)}
    assert chosen == {0, 1, 2, 3}


def test_a_list_that_nothing_uses_does_not_matter() -> None:
    rows = pl.DataFrame({"u": [1, 1, 1, 2], "x": [1, 2, 3, 4], "tags": [["a"], [], None, ["b"]]})
    people = protected(rows, dp.Identifier("u")).limit_rows(2)
    assert exactly(people.dp_count()).item() == 3


def test_the_identifier_among_the_columns_of_a_limit_says_nothing() -> None:
    rows = pl.DataFrame({"u": [1, 1, 1, 2], "g": ["a", "a", "b", "a"]})
    people = protected(rows, dp.Identifier("u"))
    plan = people.limit_rows(2, by="u").dp_count().plan(epsilon=1)
    assert plan.fingerprint == people.limit_rows(2).dp_count().plan(epsilon=1).fingerprint
    by = people.limit_rows(1, by=["u", "g"]).limit_groups(2, by="g")
    assert by.group_by("g", keys=["a", "b"]).agg(dp.count()).plan(epsilon=1).releases[
        0
    ].sensitivity == dp.Sensitivity(2, 2.0, math.sqrt(2), 1.0)


def test_values_of_unknown_types_are_not_chosen() -> None:
    rows = pl.DataFrame({"u": [1], "o": [object()]}, schema={"u": pl.Int64, "o": pl.Object})
    with pytest.raises(UnsupportedOperation, match="distinguished"):
        protected(rows, dp.Identifier("u")).limit_rows(1)
