"""Pairs that are made and limited by a sort are those that a group-by makes and ranking keeps."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from itertools import groupby
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.dtypes import INT64
from dpframe.frames import sampling
from dpframe.frames.contribution_limits import LimitGroups
from dpframe.frames.sampling import first_ranked, keep_first_together
from dpframe.lower import lower_query, pairs, tables, together
from dpframe.lower.together import RowsOfPairs, pairs_together, sortable
from dpframe.rows.polars_dtypes import from_polars
from tests.laws.amounts import examples
from tests.laws.layouts import stored
from tests.laws.neighbours import tables_of

WHOLE = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
EDGES = [0, 1, 2, 3, 4, -1, -2, 127, -128, 255, 256, 2**15 - 1, 2**31 - 1, -(2**31), 2**32, 2**44]
EDGES += [2**63 - 1, 2**63 - 2, -(2**63), 2**64 - 1, 2**64 - 2]
OTHERS: dict[Any, list[Any]] = {
    pl.String: ["a", "b", "", "ab", "日本", "a\x00", None],
    pl.Date: [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(1, 1, 1), None],
    pl.Boolean: [True, False, None],
}


def whole(dtype: Any, null: bool) -> st.SearchStrategy[list[int | None]]:
    """Values of a column: near each other, so that they fit, or anywhere."""
    least, most = pl.select(a=dtype.min(), b=dtype.max()).row(0)
    edges = [edge for edge in EDGES if least <= edge <= most]
    near = st.tuples(st.sampled_from(edges), st.integers(0, 9)).map(
        lambda at: [min(most, at[0] + i) for i in range(at[1] + 1)]
    )
    found = st.one_of(near, near, near, st.just(edges))
    return found.map(lambda values: [*values, None]) if null else found


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """An identifier, one to three columns that make groups, and two that are gathered."""
    unit = draw(st.sampled_from(WHOLE))
    schema, values = {"unit": unit}, [draw(whole(unit, null=False))]
    for i in range(draw(st.integers(1, 3))):
        dtype = draw(st.sampled_from([*WHOLE, *OTHERS, *OTHERS]))
        schema[f"g{i}"] = dtype
        values.append(OTHERS[dtype] if dtype in OTHERS else draw(whole(dtype, null=True)))
    schema |= {"x": pl.Int64, "y": pl.Boolean}
    values += [[None, 0, 1, -1, 2**62, -(2**62), 2**63 - 1], [None, True, False]]
    row = st.tuples(*map(st.sampled_from, values))
    rows = draw(st.lists(row, max_size=20))
    again = draw(st.lists(st.sampled_from(rows), max_size=20)) if rows else []
    return pl.DataFrame(rows + again, schema=schema, orient="row")


GATHERED: list[Any] = [
    lambda ns: ns.len().cast(ns.Int64).alias("rows"),
    lambda ns: ns.col("x").sum().cast(ns.Int64).alias("sum"),
    lambda ns: ns.col("x").count().cast(ns.Int64).alias("values"),
    lambda ns: ns.when(ns.col("x").count() > 0).then(ns.col("x").sum()).alias("known"),
    lambda ns: ns.col("y").sum().cast(ns.Int64).alias("true"),
]
"""What is made of the rows of a pair, in all ways that statistics have."""


@examples(80, 800)
@given(
    frames(),
    st.sampled_from([GATHERED[:1], GATHERED[2:3], GATHERED, []]),
    st.sampled_from([1, 2, 3, 7, 1 << 16]),
)
def test_pairs_are_those_of_a_group_by(frame: pl.DataFrame, wanted: list[Any], block: int) -> None:
    names = frame.columns[:-2]
    asked = RowsOfPairs(stored(frame))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "_BLOCK", block)
        found = pairs_together(asked, names, [made(asked) for made in wanted])
    expected = frame.group_by(names).agg(*[made(pl) for made in wanted])
    if found is None:
        assert not frame.height or bits_of(frame, bool(asked.needed_columns())) > 63
        return
    assert found.schema == expected.schema
    assert Counter(found.rows()) == Counter(expected.rows())
    owners = [owner for owner, _ in groupby(found["unit"])]
    assert len(owners) == len(set(owners)), "pairs of an individual follow each other"


def bits_of(frame: pl.DataFrame, places: bool) -> int:
    """How many bits the numbers of a row take."""
    bits = (frame.height - 1).bit_length() if places else 0
    for column in frame.iter_columns():
        if column.name in ("x", "y"):
            continue
        values = [value for value in column.unique().to_list() if value is not None]
        if column.dtype == pl.String:
            return 64  # numbers of categories are what they are
        if column.dtype == pl.Date:
            values = [value.toordinal() for value in values]
        span = max(values) - min(values) if values else 0
        null = column.null_count() > 0
        bits += max((span + null).bit_length(), not values)
    return bits


def test_small_numbers_and_texts_are_sorted() -> None:
    frame = pl.DataFrame({"unit": [5, 3, 5], "t": ["b", None, "b"], "x": [1, 2, 3]})
    asked = RowsOfPairs(frame)
    made = [asked.col("x").sum().alias("s")]
    found = pairs_together(asked, ["unit", "t"], made)
    assert found is not None
    assert found.rows() == [(3, None, 2), (5, "b", 4)]


def test_many_texts_are_left_to_a_group_by() -> None:
    frame = pl.DataFrame({"unit": range(30_000), "t": [f"{i}" for i in range(30_000)]})
    assert pairs_together(RowsOfPairs(frame), ["unit", "t"], []) is None
    one = pairs_together(RowsOfPairs(frame.with_columns(t=pl.lit("a"))), ["unit", "t"], [])
    assert one is not None
    assert one["t"].unique().to_list() == ["a"]


def test_types_that_are_sorted() -> None:
    text, day, wide = (from_polars(t) for t in (pl.String, pl.Date, pl.Int128))
    assert sortable([INT64, text, day, INT64])
    assert not sortable([text, INT64])
    assert not sortable([INT64, wide])
    assert not sortable([INT64, from_polars(pl.Float64)])
    assert not sortable([INT64, from_polars(pl.Datetime("us"))])


# --------------------------------------------------------------------------- limits


@examples(60, 600)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3))),
    st.integers(1, 5),
    st.integers(0, 2**64 - 1),
    st.sampled_from([None, 1, 2, 8]),
)
def test_a_sort_keeps_what_ranking_keeps(rows: Any, most: int, salt: int, equal: Any) -> None:
    """Also where many hashes, or all of them, have equal first bits."""
    frame = pl.DataFrame(sorted(set(rows)), schema={"u": pl.Int64, "g": pl.Int64}, orient="row")
    order = dict.fromkeys(frame.columns, INT64)
    with pytest.MonkeyPatch.context() as patch:
        if equal is not None:
            patch.setattr(sampling, "row_hash", lambda ns, values, *_: values["g"].hash(3) % equal)
        ranked = first_ranked(frame.lazy(), most, ["u"], order, salt, pl).collect()
        together_ = keep_first_together(stored(frame), most, "u", order, salt)
    assert together_.schema == frame.schema
    assert Counter(together_.rows()) == Counter(ranked.rows())


def test_one_of_equal_hashes_is_not_kept_beside_another() -> None:
    frame = pl.DataFrame({"u": [1, 1, 1, 2], "g": [7, 8, 9, 7]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "row_hash", lambda ns, values, *_: values["g"].hash(3) * 0)
        kept = keep_first_together(frame, 2, "u", dict.fromkeys("ug", INT64), 1)
    assert sorted(kept.rows()) == [(1, 7), (1, 8), (2, 7)]


# --------------------------------------------------------------------------- whole queries


@examples(40, 300)
@given(frames(), st.integers(0, 2**64 - 1), st.integers(1, 3), st.booleans())
def test_no_table_knows_how_pairs_were_made(
    frame: pl.DataFrame, salt: int, most: int, rows: bool
) -> None:
    names = frame.columns[1:-2]
    private = dp.Session(epsilon=1, delta=0.1).protect(frame, unit="unit")
    limited = private.limit_rows(3, by=names) if rows else private
    x: Any = pl.col("x")
    outputs = [dp.n_unique("unit").alias("n"), x.dp_sum((0, 9), per="unit").alias("s")]
    outputs += [dp.count().alias("c"), x.dp_mean((-5, 5)).alias("m")] if rows else []
    query = limited.limit_groups(most, by=names).group_by(*names).agg(*outputs)._query
    assert isinstance(query.relation.steps[-1][0], LimitGroups)

    def found() -> list[Any]:
        source = stored(frame).lazy()
        (lowered,) = lower_query(query.relation, query.groups, tables_of(query), source, salt=salt)
        return sorted(lowered.group(lowered.frame.collect()).rows(), key=str)

    sorted_ = found()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "pairs_together", lambda *_: None)
        packed = found()
        patch.setattr(tables, "packable", lambda _: False)
        unpacked = found()
        patch.setattr(tables, "sortable", lambda _: False)
        lazy = found()
    assert sorted_ == packed == unpacked == lazy


def test_large_numbers_are_grouped_as_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an individual whose number is far from others, nothing is different for others."""
    monkeypatch.setattr(together, "_BITS", 12)
    frame = pl.DataFrame({"u": [0, 1, 2, 2, 2], "g": [1, 1, 1, 2, 3]})
    far = pl.concat([frame, pl.DataFrame({"u": [2**40], "g": [1]})])
    people = dp.Session(epsilon=1).protect(frame, unit="u").limit_groups(1, by="g")
    query = people.group_by("g", keys=[1, 2, 3]).agg(dp.n_unique("u"))._query

    def found(rows: pl.DataFrame, salt: int) -> dict[int, int]:
        (lowered,) = lower_query(
            query.relation, query.groups, tables_of(query), rows.lazy(), salt=salt
        )
        return dict(lowered.group(lowered.frame.collect()).rows())

    for salt in range(20):
        one, other = found(frame, salt), found(far, salt)
        assert other.pop(1) == one.pop(1, 0) + 1
        assert one == other


@examples(40, 400)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4)), max_size=40),
    st.integers(1, 3),
    st.integers(1, 2),
    st.sampled_from([None, 1, 2]),
)
def test_rows_of_pairs_are_limited_as_rows_are(
    rows: Any, most: int, groups: int, equal: int | None
) -> None:
    """Also where hashes are equal, and rows in everything."""
    frame = pl.DataFrame(rows, schema={"u": pl.Int8, "g": pl.Int64, "x": pl.Int64}, orient="row")
    frame = frame.with_columns(
        t=pl.col("x").cast(pl.String).cast(pl.Categorical), f=pl.col("x") / 2
    )
    people = dp.Session(epsilon=1).protect(frame, unit="u")
    limited = people.limit_rows(most, by=["g", "u"]).limit_groups(groups, by="g")
    outputs = dp.count().alias("n"), pl.col("f").dp_sum((0, 2)).alias("s")
    query = limited.group_by("g", keys=[0, 1, 2]).agg(*outputs)._query

    def found() -> tuple[list[Any], bool]:
        source = stored(frame).lazy()
        (lowered,) = lower_query(query.relation, query.groups, tables_of(query), source, salt=9)
        few = lowered.later is not None and lowered.later.few is not None
        return sorted(lowered.group(lowered.frame.collect()).rows()), few

    with pytest.MonkeyPatch.context() as patch:
        if equal is not None:
            patch.setattr(
                sampling, "row_hash", lambda ns, values, *_: [*values.values()][-1].hash(3) % equal
            )
        together_ = found()
        patch.setattr(pairs, "pairs_together", lambda *_: None)
        packed = found()
        patch.setattr(tables, "sortable", lambda _: False)
        lazy = found()
    assert (together_[1], packed[1], lazy[1]) == (True, True, False)
    assert together_[0] == packed[0] == lazy[0]


@pytest.mark.parametrize(
    ("steps", "together_"),
    [
        ('f.limit_rows(2, by="g").limit_groups(1, by="g")', True),
        ('f.limit_rows(2, by=["u", "g"]).limit_groups(1, by="g")', True),
        ('f.limit_rows(2, by="g").limit_groups(1, by=["g", "u"])', False),
        ('f.limit_rows(2).limit_groups(1, by="g")', False),
        ('f.limit_rows(2, by="h").limit_groups(1, by="g")', False),
        ('f.limit_rows(2, by="g", order_by="x").limit_groups(1, by="g")', False),
        ('f.limit_rows(2, by="g").filter(pl.col("x") > 0).limit_groups(1, by="g")', False),
        ('f.limit_groups(1, by="g")', False),
    ],
)
def test_which_limits_on_rows_are_of_pairs(steps: str, together_: bool) -> None:
    frame = pl.DataFrame({"u": [1, 1], "g": [1, 2], "h": [1, 1], "x": [1, 2]})
    people = dp.Session(epsilon=1).protect(frame, unit="u")
    query = eval(steps, {"f": people, "pl": pl}).group_by("g", keys=[1, 2]).agg(dp.n_unique("u"))
    asked = query._query
    (lowered,) = lower_query(asked.relation, asked.groups, tables_of(asked), frame.lazy(), salt=1)
    assert (lowered.later is not None and lowered.later.few is not None) == together_
