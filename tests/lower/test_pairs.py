"""Limits on pairs of individual and group give the tables that limits on rows give."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.core.dtypes import INT64
from dpframe.frames.sampling import keep_first
from dpframe.lower import lower_query, tables
from dpframe.lower.pair_limits import limit_on_pairs
from dpframe.rows.failures import OPTIMIZATIONS
from tests.laws.amounts import amounts, examples
from tests.laws.neighbours import tables_of

SCHEMA = {
    "who": pl.String,
    "g": pl.Categorical,
    "e": pl.Enum(["p", "q", "r"]),
    "i": pl.Int64,
    "d": pl.Date,
    "x": pl.Float64,
    "y": pl.Int32,
}


def people(seed: int, rows: int) -> pl.DataFrame:
    """Few individuals with many rows, nulls everywhere, and rows that are there twice."""
    draw = random.Random(seed)

    def some(*values: Any) -> Any:
        return draw.choice([*values, None])

    made = [
        {
            "who": some("ann", "bob", "", "cy", "dee"),
            "g": some("a", "b", "c", "", "e"),
            "e": some("p", "q", "r"),
            "i": some(*range(5)),
            "d": some("2026-01-01", "2026-01-02", "1969-12-31"),
            "x": some(0.5, -3.25, float("nan"), float("inf"), 7.0),
            "y": some(0, 1, 2, -(2**31), 2**31 - 1),
        }
        for _ in range(rows)
    ]
    made += draw.choices(made, k=rows // 3) if made else []
    text = pl.DataFrame(made, schema={**SCHEMA, "d": pl.String})
    return text.with_columns(pl.col("d").str.to_date()).cast(SCHEMA)


LIMITS = [
    ('f.limit_groups(2, by="g")', "'g'", True),
    ('f.limit_groups(1, by=["e"])', "'e'", True),
    ('f.limit_groups(2, by=["g", "e"])', "'e', 'g'", True),
    ('f.limit_groups(3, by=["i", "d"])', "'d', 'i'", True),
    ('f.limit_groups(2, by=["y", "g"])', "'y', 'g'", True),
    ('f.limit_groups(2, by=["who", "g"])', "'g'", False),
    ('f.with_columns(w="who").limit_groups(2, by=["w", "g"])', "'g'", False),
    ('f.limit_rows(3).limit_groups(2, by="g")', "'g'", True),
    ('f.limit_groups(2, by="i").limit_rows(2, by="g").limit_groups(2, by="g")', "'g'", True),
    ('f.limit_groups(3, by="e").limit_groups(2, by="g")', "'g'", True),
    ('f.with_columns(h=pl.col("i") // 2).limit_groups(1, by="h")', "'h'", True),
    ('f.rename({"g": "k"}).limit_groups(2, by="k")', "'k'", True),
    ('f.filter(pl.col("i") > 0).limit_groups(2, by="g")', "renamed=pl.col('g')", True),
    ('f.limit_groups(2, by="g")', "'g', twice=pl.col('g')", True),
    # what the rewriting leaves alone
    ('f.limit_groups(2, by="i")', "half=pl.col('i') // 2", False),
    ('f.limit_groups(2, by=["g", "e"])', "'g'", False),
    ('f.limit_groups(2, by="g").limit_rows(2, by="g")', "'g'", False),
    ('f.limit_groups(2, by="g").filter(pl.col("i") > 0)', "'g'", False),
    ("f.limit_rows(4)", "'g'", False),
]
OUTPUTS = """
    n=dp.n_unique("who"), s=pl.col("x").dp_sum((-2, 9), per="unit"),
    t=pl.col("y").dp_sum((0, 5), per="unit"), m=pl.col("x").dp_mean((0, 8), per="unit"),
    c=dp.count(per="unit", bounds=(0, 2))
"""
OF_ROWS = """
    rows=dp.count(), values=pl.col("x").dp_count(), sum=pl.col("x").dp_sum((0, 5)),
    whole=pl.col("y").dp_mean((-3, 3)), spread=pl.col("x").dp_std((0, 8))
"""


def asked(steps: str, by: str, outputs: str) -> Query:
    frame = dp.Session(epsilon=1, delta=0.1).protect(people(0, 1), unit="who")
    names: dict[str, Any] = {"f": frame, "pl": pl, "dp": dp}
    query: Query = eval(f"{steps}.group_by({by}).agg({outputs})", names)._query
    return query


def exact(query: Query, frame: pl.DataFrame, salt: int) -> dict[Any, dict[Any, Any]]:
    """The integers of each statistic and group, as the engine makes them."""
    found: dict[Any, dict[Any, Any]] = {}
    for lowered in lower_query(
        query.relation, query.groups, tables_of(query), frame.lazy(), salt=salt
    ):
        result = lowered.group(lowered.frame.collect(optimizations=OPTIMIZATIONS))
        assert query.groups is not None
        keys = result.select(f"g{i}" for i in range(len(query.groups.by))).rows()
        assert len(set(keys)) == len(keys)
        for i, statistic in enumerate(lowered.statistics):
            found[statistic] = dict(zip(keys, result[f"v{i}"].to_list(), strict=True))
    return found


def by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower every step on rows, and every statistic of rows from rows."""
    monkeypatch.setattr(tables, "limit_on_pairs", lambda relation, *_: (relation, None))
    adds_up = tables.adds_up
    of_units = tables.UnitStatistic
    monkeypatch.setattr(
        tables, "adds_up", lambda table: adds_up(table) and isinstance(table.statistic, of_units)
    )


@pytest.mark.parametrize(("steps", "by", "rewritten"), LIMITS)
@pytest.mark.parametrize("outputs", [OUTPUTS, OF_ROWS, OUTPUTS + "," + OF_ROWS])
@amounts("frames", 2, 4)
def test_the_same_salt_gives_the_same_tables(
    steps: str, by: str, rewritten: bool, outputs: str, frames: int
) -> None:
    if "limit_rows" not in steps and outputs is not OUTPUTS:
        steps = steps.replace("f.", "f.limit_rows(7).", 1)
    query = asked(steps, by, outputs)
    names = [f"g{i}" for i in range(len(query.groups.by))] if query.groups else []
    _, limit = limit_on_pairs(query.relation, query.groups, tables_of(query), names, 0)
    assert (limit is not None) == rewritten
    for seed, rows in ((1, 60), (4, 0), (3, 1), (2, 200))[:frames]:
        frame = people(seed, rows)
        shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
        for salt in (0, 2**64 - 1):
            fast = exact(query, frame, salt)
            assert fast == exact(query, shuffled, salt)
            with pytest.MonkeyPatch.context() as patch:
                by_rows(patch)
                slow = exact(query, frame, salt)
            assert fast == slow


def test_a_limit_on_pairs_makes_them_once() -> None:
    query = asked('f.limit_groups(2, by="g")', "'g'", OUTPUTS)
    (lowered,) = lower_query(query.relation, query.groups, tables_of(query), people(1, 9).lazy())
    assert "JOIN" not in lowered.frame.explain()
    lines = lowered.frame.explain().splitlines()
    # Polars 1.32 writes down what is computed once at every place that uses it
    made = {after.strip() for line, after in pairwise(lines) if "AGGREGATE" in line}
    assert len(made) == 2, "the pairs and the groups"


def test_statistics_that_do_not_add_up_need_rows() -> None:
    outputs = 'dp.n_unique("who").alias("n"), dp.n_unique("i").alias("i")'
    query = asked('f.limit_rows(9).limit_groups(2, by="g")', "'g'", outputs)
    _, limit = limit_on_pairs(query.relation, query.groups, tables_of(query), ["g0"], 0)
    assert limit is None


def test_another_salt_keeps_other_groups() -> None:
    query = asked('f.limit_groups(2, by="g")', "'g'", 'n=dp.n_unique("who")')
    frame = people(2, 200)
    assert len({str(sorted(exact(query, frame, salt).items(), key=str)) for salt in range(9)}) > 1


@examples(25, 200)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3)), st.integers(1, 4), st.integers(0, 2**64 - 1))
def test_those_with_the_least_hashes_are_kept(rows: Any, most: int, salt: int) -> None:
    frame = pl.DataFrame(rows, schema={"u": pl.Int64, "g": pl.Int64, "x": pl.Int64}, orient="row")
    order = dict.fromkeys(frame.columns, INT64)
    kept = keep_first(frame.lazy(), most, ["u", "g"], order, salt, pl).collect()
    assert kept.columns == frame.columns
    ranked = frame.with_columns(h=pl.struct("u", "g", "x").hash(salt)).sort("h", "u", "g", "x")
    expected: dict[Any, list[Any]] = defaultdict(list)
    for u, g, x, _ in ranked.rows():
        expected[u, g].append((u, g, x))
    assert Counter(kept.rows()) == Counter(
        row for found in expected.values() for row in found[:most]
    )


@examples(15, 120)
@given(st.integers(0, 10**6), st.integers(0, 2**64 - 1))
def test_one_individual_changes_nobody_elses_pairs(seed: int, salt: int) -> None:
    query = asked('f.limit_groups(2, by="g")', "'g'", 'n=dp.n_unique("who")')
    frame = people(seed, 60)
    without = frame.filter(pl.col("who").ne_missing("ann"))
    (one,), (other,) = (list(exact(query, f, salt).values()) for f in (frame, without))
    changes = [one.get(key, 0) - other.get(key, 0) for key in {*one, *other}]
    assert set(changes) <= {0, 1}
    assert sum(changes) <= 2
