"""Laws of frames whose individuals another frame knows: neighbours differ in both frames together,
in the rows of one individual there and in rows here whose key nobody else has.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.lower.tables import lower_rows
from dpframe.rows.failures import OPTIMIZATIONS
from tests.laws.amounts import examples
from tests.laws.layouts import stored
from tests.laws.neighbours import exact_tables, measurements_of, moved, query_of, violation

TYPES: list[Any] = [pl.Int64, pl.String, pl.Categorical, pl.Enum(["0", "1", "2", "3"]), pl.UInt8]
QUERIES = [
    "i.limit_rows(3).dp_count()",
    'i.limit_rows(2).dp_sum("x", (-3, 5))',
    'i.dp_sum("x", (-3, 5), per="unit")',
    'i.group_by("g", keys=["a", "b", None]).agg(dp.n_unique("who"))',
    'i.limit_rows(2, by="k").limit_groups(2, by="k").group_by("g", keys=["a", "b"]).dp_count()',
    'i.limit_rows(2, by="k").join(o.limit_rows(2), on="k").dp_count()',
    'i.limit_rows(3).join(o.limit_rows(1, by="k"), on="k", how="left").agg(dp.count(), '
    'dp.sum("w", (0, 4)))',
    'o.limit_rows(2).join(i.limit_rows(1, by="k"), on=["k", "who"]).dp_count()',
    'i.filter(pl.col("x") > 0).limit_groups(1, by="g").join(o.limit_rows(2), on="who")'
    '.limit_rows(5).group_by("g", keys=["a", "b"]).agg(dp.count(), dp.mean("w", (0, 4)))',
]


def frames(
    key: Any, knows: list[tuple[Any, ...]], known: list[tuple[Any, ...]]
) -> tuple[dp.PrivateFrame, dp.PrivateFrame]:
    """The frame that knows, and the one that is protected through it."""
    session = dp.Session(epsilon=1, delta=1e-3)
    owners = {"k": pl.Int64, "who": pl.Int64, "w": pl.Int64}
    columns = {"g": pl.String, "k": pl.Int64, "x": pl.Int64}
    o, i = (
        stored(_typed(pl.DataFrame(rows, schema, orient="row"), key)).lazy()
        for rows, schema in ((knows, owners), (known, columns))
    )
    protected = session.protect(o, unit="who", name="o")
    return protected, session.protect(i, unit=dp.Through(protected, on="k"), name="i")


def _typed(frame: pl.DataFrame, key: Any) -> pl.DataFrame:
    number = key.is_integer()
    return frame.with_columns(pl.col("k").cast(key) if number else pl.col("k").cast(str).cast(key))


def tables(o: dp.PrivateFrame, i: dp.PrivateFrame) -> list[pl.DataFrame]:
    """What is protected of both, with whose rows these are."""
    made: list[Any] = [frame._source._data.collect() for frame in (o, i)]  # type: ignore[union-attr]
    return made


keys = st.sampled_from([0, 1, 2, 3, None])
number = st.sampled_from([-9, 0, 1, 5, None])
rows_that_know = st.lists(st.tuples(keys, st.sampled_from([1, 1, 2, 3, None]), number), max_size=7)
rows_known = st.lists(st.tuples(st.sampled_from(["a", "b", "z", None]), keys, number), max_size=9)


def check(
    key: Any, text: str, knows: list[Any], known: list[Any], leaves: list[bool], salt: int
) -> None:
    """One individual comes or goes, and with it any rows whose key nobody else has."""
    rest = [row for row in knows if row[1] != 1]
    kept = {k for k, who, _ in rest if who is not None and k is not None}
    chosen = zip(known, (leaves * 9)[: len(known)], strict=True)
    left = [row for row, leave in chosen if row[1] in kept or not leave]
    whole, less = tables(*frames(key, knows, known)), tables(*frames(key, rest, left))
    assert Counter(less[1].rows()) == Counter(whole[1].filter(pl.col("who") != 1).rows())
    assert less[1].schema == whole[1].schema
    o, i = frames(key, [], [])
    asked = query_of(eval(text, {"o": o, "i": i, "pl": pl, "dp": dp}))
    tokens = o._relation.token, i._relation.token
    pair = [dict(zip(tokens, found, strict=True)) for found in (whole, less)]
    rows = [
        lower_rows(asked.relation, {t: f.lazy() for t, f in found.items()}, pl, salt).collect(
            optimizations=OPTIMIZATIONS
        )
        for found in pair
    ]
    assert Counter(rows[1].rows()) == Counter(rows[0].filter(pl.col("who") != 1).rows())
    before, after = (exact_tables(asked, found, salt=salt) for found in pair)
    for use in measurements_of(asked):
        problem = violation(use.part, moved(use.part, before, after, asked.scope), asked.scope)
        assert problem is None, problem


drawn = {
    "key": st.sampled_from(TYPES),
    "text": st.sampled_from(QUERIES),
    "knows": rows_that_know,
    "known": rows_known,
    "leaves": st.lists(st.booleans(), min_size=1, max_size=9),
    "salt": st.integers(0, 2**64 - 1),
}


@examples(25, 600)
@given(**drawn)  # type: ignore[arg-type]
def test_an_individual_moves_no_more_than_declared_in_both_frames(**given_: Any) -> None:
    check(**given_)


@examples(20, 200)
@given(st.sampled_from(TYPES), rows_that_know, rows_known)
def test_rows_are_those_of_a_join_before(key: Any, knows: list[Any], known: list[Any]) -> None:
    """As the data owner would have joined them, each individual once for each row."""
    found = tables(*frames(key, knows, known))[1]
    owners = {(k, who) for k, who, _ in knows if k is not None and who is not None}
    wanted = [(g, k, x, who) for g, k, x in known for there, who in owners if there == k]
    plain = found.with_columns(pl.col("k").cast(pl.String).cast(pl.Int64))
    assert Counter(plain.rows()) == Counter(wanted)


@pytest.mark.parametrize("text", QUERIES)
def test_every_query_of_the_law_is_accepted(text: str) -> None:
    o, i = frames(pl.Int64, [], [])
    assert measurements_of(query_of(eval(text, {"o": o, "i": i, "pl": pl, "dp": dp})))
