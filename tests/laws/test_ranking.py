"""Ranking by one sort keeps what ranking by whole hashes and values keeps, however many bits of
hashes are equal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.dtypes import INT64
from dpframe.frames import sampling
from dpframe.frames.sampling import (
    comparable,
    first_ranked,
    first_sorted,
    keep_first,
    keep_first_of_many,
)
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.polars_dtypes import from_polars
from tests.laws.amounts import examples
from tests.laws.layouts import stored

BITS = [1, 2, 3, 5, 32]
"""How many bits of each hash a sort goes by: with few, most individuals share theirs."""
VALUES: dict[Any, list[Any]] = {
    pl.Int64: [0, 1, 2, 3, -1, None],
    pl.String: ["a", "", "ä", "a\x00", "日本", None],
    pl.Int128: [2**64 + 1, 1, -(2**100), 2**100, None],
    pl.Decimal(30, 2): [Decimal("1.10"), Decimal("-1.10"), Decimal("184467440737095517.26"), None],
    pl.Categorical: ["z", "a", "", None],
    pl.Date: [date(1970, 1, 1), date(1, 1, 1), None],
    pl.Boolean: [True, False, None],
    pl.Binary: [b"", b"\x00", b"a", None],
}
OTHER = SimpleNamespace(**vars(pl))
"""A namespace that is not Polars itself, so that nothing is done for Polars alone."""


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    """Two columns that say whose, two others, and rows that are there twice."""
    types = {name: draw(st.sampled_from(list(VALUES))) for name in ("u", "v", "g", "x")}
    row = st.fixed_dictionaries({n: st.sampled_from(VALUES[t]) for n, t in types.items()})
    rows = draw(st.lists(row, max_size=25))
    again = draw(st.lists(st.sampled_from(rows), max_size=10)) if rows else []
    return pl.DataFrame(rows + again, schema=types)


def kept(way: Any, frame: pl.DataFrame, most: int, within: Any, salt: int, **how: Any) -> Any:
    """The rows that a way of ranking keeps, as a multiset."""
    order = {name: from_polars(dtype) for name, dtype in frame.schema.items()}
    engine, bits = how.get("engine", "in-memory"), how.get("bits", 32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "COARSE", bits)
        lazy = way(stored(frame).lazy(), most, within, order, salt, how.get("ns", pl))
        result = lazy.collect(engine=engine, optimizations=OPTIMIZATIONS)
    assert result.schema == frame.schema
    return Counter(result.rows())


def expected(frame: pl.DataFrame, most: int, within: Any, salt: int) -> Any:
    """In plain Python: by the whole hash, which tells these few values apart."""
    values = [comparable(pl, n, from_polars(t)) for n, t in frame.schema.items()]
    hashes = frame.select(pl.struct(*values).hash(salt)).to_series().to_list()
    owned = defaultdict(list)
    for rank, row in zip(hashes, frame.rows(named=True), strict=True):
        owned[tuple(row[name] for name in within)].append((rank, tuple(row.values())))
    ranked = (sorted(rows, key=lambda ranked: ranked[0])[:most] for rows in owned.values())
    return Counter(row for rows in ranked for _, row in rows)


CASE = {
    "frame": tables(),
    "most": st.integers(1, 6),
    "within": st.sampled_from([["u"], ["u", "v"]]),
    "salt": st.integers(0, 2**64 - 1),
    "bits": st.sampled_from(BITS),
    "engine": st.sampled_from(["in-memory", "streaming"]),
}


@examples(30, 600)
@given(**CASE)
def test_all_ways_keep_the_same(
    frame: Any, most: int, within: Any, salt: int, bits: int, engine: Any
) -> None:
    reference = expected(frame, most, within, salt)
    for way in (first_ranked, first_sorted, keep_first, keep_first_of_many):
        for ns in (pl, OTHER):
            how = {"bits": bits, "engine": engine, "ns": ns}
            assert kept(way, frame, most, within, salt, **how) == reference


@examples(25, 300)
@given(**CASE)
def test_nobody_moves_the_rows_of_others(
    frame: Any, most: int, within: Any, salt: int, bits: int, engine: Any
) -> None:
    if not frame.height:
        return
    gone = frame["u"][0]
    rest = frame[[i for i, value in enumerate(frame["u"].to_list()) if value != gone]]
    for way in (first_sorted, keep_first, keep_first_of_many):
        whole = kept(way, frame, most, within, salt, bits=bits, engine=engine)
        without = kept(way, rest, most, within, salt, bits=bits, engine=engine)
        assert without == Counter({row: n for row, n in whole.items() if row[0] != gone})


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("bits", [4, 8, 12, 32])
def test_many_individuals_share_bits(bits: int, engine: Any) -> None:
    """Hundreds that share all bits, next to some that share none."""
    size = 20_000
    frame = pl.select(i=pl.int_range(size)).select(
        u=pl.col("i") * 7919 % 3001, v=pl.lit("k"), g=pl.col("i") % 11, x=pl.col("i") // 7
    )
    for most in (1, 3, 6):
        reference = kept(first_ranked, frame, most, ["u"], 5)
        assert kept(first_sorted, frame, most, ["u"], 5, bits=bits, engine=engine) == reference
        assert reference.total() == 3001 * most


@pytest.mark.parametrize("bits", BITS)
def test_equal_rows_need_no_ranking(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are equal stand for each other, so that only owners are ranked who share bits."""
    frame = pl.DataFrame({"u": [1] * 40 + [2] * 40, "v": [0] * 80, "x": [7] * 80})
    ranked = list[int]()

    def rank(rest: pl.LazyFrame, *how: Any, **more: Any) -> pl.LazyFrame:
        ranked.append(rest.collect().height)
        return first_ranked(rest, *how, **more)

    reference = kept(first_ranked, frame, 3, ["u"], 5)
    monkeypatch.setattr(sampling, "first_ranked", rank)
    assert kept(first_sorted, frame, 3, ["u"], 5, bits=bits) == reference
    assert reference.total() == 6
    assert ranked == [0] or bits < 8


def test_columns_that_do_not_decide_stay() -> None:
    """Whatever they are called, and however rows are ranked."""
    names = ("rank", "hash", "owner", "first", "torn", "window", "position")
    rows = {"u": [1, 1, 1, 2], "x": [1, 1, 2, 3]}
    frame = pl.DataFrame(rows | {name: [9, 8, 7, 6] for name in names})
    order = {"u": INT64, "x": INT64}
    for way in (first_ranked, first_sorted, keep_first):
        limited = way(frame.lazy(), 2, ["u"], order, 3, pl, taken=frame.columns).collect()
        assert limited.schema == frame.schema
        left = Counter(limited.select("u", "x").rows())
        assert left == Counter(kept(first_ranked, frame.select("u", "x"), 2, ["u"], 3))
        assert {*limited.rows()} <= {*frame.rows()}


def test_equal_hashes_are_told_apart_by_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hashes of two values, what is kept is the least of the values among equal hashes."""
    true = pl.Expr.hash
    monkeypatch.setattr(pl.Expr, "hash", lambda self, salt: true(self, salt) // 2**63 * 2**63)
    frame = pl.DataFrame({"u": [1] * 40 + [2] * 40, "v": [0] * 80, "x": list(range(40)) * 2})
    for bits in BITS:
        for most in (1, 5, 30):
            ranked = kept(first_ranked, frame, most, ["u"], 1)
            assert kept(first_sorted, frame, most, ["u"], 1, bits=bits) == ranked
            mixed = kept(first_sorted, frame.reverse(), most, ["u"], 1, bits=bits)
            assert mixed == ranked


@pytest.mark.parametrize("bit", [0, 1, 30, 31, 32, 33, 62, 63])
def test_owners_stay_apart_whose_hashes_differ_in_one_bit(
    bit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashes are columns here, so that they can be any."""
    monkeypatch.setattr(
        sampling, "row_hash", lambda ns, values, *_: ns.col("x" if "x" in values else "v")
    )
    first = 0x123456789ABCDEF0
    frame = pl.DataFrame(
        {
            "u": [1, 2] * 20,
            "v": [first, first ^ 2**bit] * 20,
            "x": [n * 2**57 + n for n in range(1, 41)],
        },
        schema_overrides={"v": pl.UInt64, "x": pl.UInt64},
    )
    for most in (1, 5, 19):
        ranked = kept(first_ranked, frame, most, ["u"], 1)
        assert ranked.total() == 2 * most
        assert kept(first_sorted, frame, most, ["u"], 1) == ranked


@pytest.mark.parametrize("by", ['"u"', '["u", "g", "g"]'])
def test_columns_may_be_named_twice(by: str) -> None:
    rows = pl.DataFrame({"u": [1, 1, 1, 2], "g": ["a", "a", "b", "a"]})
    people = dp.Session(epsilon=9).protect(rows, "u")
    limited = eval(f"people.limit_rows(1, by={by}).limit_rows(3)", {"people": people})
    assert limited.dp_count().collect(epsilon=1).columns == ["len"]


@pytest.mark.parametrize("other", [None, 2])
def test_two_individuals_with_a_row_each_keep_both(other: int | None) -> None:
    """Also where they alone share bits, and one of them has no name."""
    frame = pl.DataFrame({"u": [1, other], "x": [7, 8]})
    for salt in range(16):
        assert kept(first_sorted, frame, 1, ["u"], salt, bits=1).total() == 2
