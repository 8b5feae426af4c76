"""Laws of aggregates of one individual's rows: what a person's row says follows from that person's
rows alone, bit by bit, whatever their order, how they are stored and who else is there.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates.measurement import Additive
from dpframe.frames import group_by_individual as aggregates
from dpframe.frames.group_by_individual import GroupByIndividual
from dpframe.frames.relation import Relation
from dpframe.lower.tables import lower_rows
from dpframe.rows.failures import OPTIMIZATIONS
from tests.laws.amounts import examples
from tests.laws.checking import contradiction
from tests.laws.frames import SCHEMA, frames, values
from tests.laws.layouts import stored
from tests.laws.neighbours import measurements_of, query_of, run, vector

NAMES = ["i8", "i32", "i64", "u8", "u64", "f32", "f64", "b", "s", "e", "d", "dt", "dtz", "dur", "t"]
OUTPUTS = [
    "pl.len()",
    "pl.col('s').len()",
    "pl.col('f64').count()",
    "pl.col('i64').null_count()",
    "pl.col('i8').sum()",
    "pl.col('i32').sum()",
    "pl.col('b').sum()",
    "pl.col('i64').clip(-9, 2**31).sum()",
    "pl.col('f64').clip(-1, 3).sum()",
    "pl.col('f64').clip(0.1, 0.7).sum()",
    "pl.col('f64').clip(-1e260, 1e250).sum()",
    "pl.col('f32').clip(0, 1e-300).mean()",
    "pl.col('f64').clip(-0.5, 1e16).mean()",
    "pl.col('u8').mean()",
    "pl.col('u64').clip(0, 9).mean()",
    *(f"pl.col('{name}').{how}()" for name in NAMES for how in ("min", "max") if name not in "bse"),
    *(f"pl.col('{name}').n_unique()" for name in NAMES),
    *(f"pl.col('{name}').median()" for name in ("i8", "i64", "f32", "f64")),
    "pl.col('f64').clip(-1.7e308, 1.7e308).median()",
    "pl.col('f64').quantile(0.3, interpolation='linear')",
    "pl.col('i64').quantile(0.9)",
    "pl.col('b').any()",
    "pl.col('b').all()",
    "(pl.col('i8') > 3).any()",
    "pl.col('f64').filter(pl.col('b')).min()",
    "pl.col('i8').filter(pl.col('b')).len()",
    "pl.col('s').filter(pl.col('b')).drop_nulls().n_unique()",
    "pl.col('f64').drop_nans().median()",
    "pl.col('dt').max() - pl.col('dt').min()",
    "pl.col('i8').sum() / pl.len()",
    "pl.when(pl.len() > 1).then(pl.col('i8').max()).otherwise(None)",
]
KEYS: list[tuple[str, ...]] = [(), ("e",), ("s",), ("d",), ("u64",), ("b",), ("dtz", "i8")]


def relation_of(frame: pl.DataFrame) -> Relation:
    session = dp.Session(epsilon=1)
    return session.protect(frame.lazy(), unit="who")._relation


def made(relation: Relation, frame: pl.DataFrame) -> pl.DataFrame:
    return lower_rows(relation, frame.lazy(), pl, 0).collect(optimizations=OPTIMIZATIONS)


def bits(value: Any) -> Any:
    """A value such that floats are told apart by their bits, but NaN."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return value


def rows_of(frame: pl.DataFrame) -> list[str]:
    columns = [[bits(v) for v in values(column)] for column in frame.iter_columns()]
    return sorted(map(repr, zip(*columns, strict=True))) if columns else []


def written(relation: Relation, outputs: Sequence[str], keys: Sequence[str]) -> Relation:
    named = {f"r{i}": eval(text, {"pl": pl}) for i, text in enumerate(outputs)}
    by = [pl.col(name) for name in keys]
    own = pipeline.individuals(relation, ["who", *by], {})
    assert own is not None
    return relation.then(pipeline.one_row_each(relation, *own, [], named))


@st.composite
def people(draw: st.DrawFn) -> pl.DataFrame:
    frame = draw(frames(max_rows=9, names=NAMES))
    who = draw(
        st.lists(st.sampled_from([1, 2, 3, None]), min_size=frame.height, max_size=frame.height)
    )
    return frame.with_columns(pl.Series("who", who, pl.Int64))


def check_own(relation: Relation, frame: pl.DataFrame, shuffle: int) -> None:
    """The rows of all are those of each alone, in another order and stored in one piece."""
    whole = made(relation, stored(frame))
    alone = [
        made(relation, part.sample(fraction=1.0, shuffle=True, seed=shuffle).rechunk())
        for (who,), part in frame.group_by("who")
        if who is not None
    ]
    parts = pl.concat(alone) if alone else made(relation, frame.clear())
    assert rows_of(whole) == rows_of(parts)
    assert dict(whole.schema) == pipeline.schema_of(relation)
    for name, facts in relation.facts.columns.items():
        for value in values(whole[name]):
            assert contradiction(value, facts) is None, (name, value, facts)


@given(
    people(),
    st.lists(st.sampled_from(OUTPUTS), min_size=1, max_size=4),
    st.sampled_from(KEYS),
    st.integers(0, 9),
)
@examples(25, 600)
def test_a_row_follows_from_the_rows_of_its_person(
    frame: pl.DataFrame, outputs: list[str], keys: tuple[str, ...], seed: int
) -> None:
    relation = written(relation_of(frame), outputs, keys)
    check_own(relation, frame, seed)
    found = made(relation, frame)
    assert not found.select("who", *keys).is_duplicated().any()
    assert found.height <= frame.height


@given(people(), st.sampled_from(OUTPUTS), st.sampled_from(KEYS), st.integers(0, 9))
@examples(12, 400)
def test_over_says_the_same_in_each_row(
    frame: pl.DataFrame, output: str, keys: tuple[str, ...], seed: int
) -> None:
    if "/" in output or "when" in output or "- pl" in output:
        output = "pl.len()"
    private = dp.Session(epsilon=1).protect(frame.lazy(), unit="who")
    over = eval(output, {"pl": pl}).over("who", *keys)
    beside = private.with_columns(r0=over)._relation
    check_own(beside, frame, seed)
    grouped = made(written(relation_of(frame), [output], keys), frame)
    rows = made(beside, frame)
    assert rows.height == frame.filter(pl.col("who").is_not_null()).height
    assert rows_of(rows.select("who", *keys, "r0").unique()) == rows_of(grouped)
    kept = private.filter(over.is_not_null())._relation
    assert made(kept, frame).height == rows.filter(pl.col("r0").is_not_null()).height


@pytest.mark.parametrize("end", [1.7e308, 2.0**1022, 1e300])
def test_facts_say_that_a_median_of_far_values_may_be_infinite(end: float) -> None:
    """Polars adds half of the distance of two values, which may be too large for a float."""
    frame = pl.DataFrame({"who": [1, 1, 2, 2], "f64": [-1.79e308, 1.79e308, 1.79e308, 1.79e308]})
    value = f"pl.col('f64').clip(-{end}, {end})"
    outputs = [f"{value}.median()", f"{value}.quantile(0.25, interpolation='linear')"]
    relation = written(relation_of(frame), outputs, ())
    found = made(relation, frame)
    for name in ("r0", "r1"):
        facts = relation.facts.columns[name]
        assert all(contradiction(value, facts) is None for value in found[name].to_list())
        assert facts.interval.is_bounded == (end <= 2.0**1022)


TAME = pl.DataFrame(
    {
        "who": [1, 1, 2, 2, 2, 3, 4],
        "i64": [5, 7, -2, 8, 0, 4, None],
        "f64": [0.5, 0.25, 3.0, 1.5, -0.75, None, 2.0],
        "s": ["a", None, "b", "b", "a", "c", None],
        "b": [True, False, None, True, True, False, None],
    }
)


@pytest.mark.parametrize(
    "text",
    [
        "pl.len()",
        "pl.col('i64').clip(-100, 100).sum()",
        "pl.col('i64').clip(-100, 100).mean()",
        "pl.col('f64').clip(-4, 4).sum()",
        "pl.col('f64').clip(-4, 4).mean()",
        "pl.col('f64').median()",
        "pl.col('f64').quantile(0.4, interpolation='linear')",
        "pl.col('f64').max() - pl.col('f64').min()",
        "pl.col('s').n_unique()",
        "pl.col('s').null_count()",
        "pl.col('s').drop_nulls().n_unique()",
        "pl.col('i64').filter(pl.col('b')).clip(-100, 100).sum()",
        "pl.col('i64').filter(pl.col('b')).len()",
        "pl.col('b').any()",
        "pl.col('b').all()",
        "pl.when(pl.len() > 2).then(pl.col('i64').max()).otherwise(pl.lit(0))",
    ],
)
def test_the_numbers_are_those_of_polars(text: str) -> None:
    relation = written(relation_of(TAME), [text], ())
    found = made(relation, TAME).sort("who")["r0"].to_list()
    plain = TAME.group_by("who").agg(eval(text, {"pl": pl}).alias("r0")).sort("who")
    for one, other in zip(found, plain["r0"].to_list(), strict=True):
        assert one == other if other is None else one == pytest.approx(other, rel=1e-8)


@given(people(), st.sampled_from([0, 1, 2]))
@examples(8, 300)
def test_one_person_moves_numbers_by_no_more_than_inferred(frame: pl.DataFrame, left: int) -> None:
    """Under a unit of one person each, counts and sums need no limit, and move as they say."""
    private = dp.Session(epsilon=1, delta="1e-6").protect(frame.lazy(), unit="who")
    each = private.group_by("who").agg(
        n=pl.len(), total=pl.col("f64").clip(-1, 3).sum(), kinds=pl.col("s").n_unique()
    )
    query = each.agg(
        dp.count(), dp.sum("n", (0, 4)), dp.sum("total", (-2, 5)), dp.sum("kinds", (0, 3))
    )
    asked = query_of(query)
    before, after = frame, frame.filter(pl.col("who").ne_missing(left + 1))
    one, other = run(asked, before.lazy()), run(asked, after.lazy())
    plan = query.plan(epsilon=1)
    assert plan.releases[0].sensitivity.l1 == 1
    for use in measurements_of(asked):
        assert isinstance(use.part, Additive)
        a, b = vector(use.part, one), vector(use.part, other)
        moved = sum(abs(x - y) for x, y in zip(a, b, strict=True))
        assert moved <= use.sensitivity.l1


def test_limits_of_the_rows_hold_of_the_rows_that_follow() -> None:
    frame = pl.DataFrame({"who": [1], "a": ["x"], "b": [2], "x": [1]})
    rows = (
        dp.Session(epsilon=1).protect(frame.lazy(), unit="who").limit_rows(5).limit_groups(2, "a")
    )
    one = rows.group_by("who").agg(n=pl.len())
    assert one.agg(dp.count()).plan(epsilon=1).releases[0].sensitivity.l1 == 1
    by = rows.group_by("who", "a").agg(n=pl.len())
    assert (
        by.agg(dp.count())
        .plan(
            epsilon=1,
        )
        .releases[0]
        .sensitivity.l1
        == 2
    )
    other = rows.group_by("who", "b").agg(n=pl.len())
    assert other.agg(dp.count()).plan(epsilon=1).releases[0].sensitivity.l1 == 5


@pytest.mark.parametrize("bug", ["float sum", "no identifier", "order", "zero"])
def test_the_laws_see_planted_mistakes(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain sum of floats, groups of everybody's rows, the first value, a signed zero."""
    frame = pl.DataFrame(
        {
            "who": [1, 1, 1, 2, 2, 2] * 3,
            "f64": [0.1, 0.2, 0.3, 1e16, -1e16, 0.7, -0.0, 0.0, 2.7, -0.0, 0.0, 0.0]
            + [0.1, 0.7] * 3,
        },
        schema_overrides={"f64": pl.Float64},
    )
    text = "pl.col('f64').clip(-1e17, 1e17).sum()"
    if bug == "float sum":

        def rows(self: Any, ns: Any, value: Any, known: Any) -> list[pl.Expr]:
            return [value, value.is_nan().cast(pl.Int64)]

        monkeypatch.setattr(aggregates.Sum, "rows", rows)
        monkeypatch.setattr(aggregates.Sum, "_total", lambda self, ns, columns, known: columns[0])
    elif bug == "order":
        text = "pl.col('f64').max()"
        monkeypatch.setattr(
            aggregates.Largest,
            "reduce",
            lambda self, c, ns: [c[0].first(), *(f.sum() for f in c[1:])],
        )
    elif bug == "zero":
        text = "pl.col('f64').filter(pl.col('f64') < 0.05).max()"
        monkeypatch.setattr(
            aggregates.Largest, "rows", lambda self, ns, v, known: [v, v.is_nan().cast(pl.Int64)]
        )
    else:
        from dpframe.frames import group_by_individual

        plain = group_by_individual.Gather._reduce

        def everybody(self: Any, rows: Any, *rest: Any) -> pl.LazyFrame:
            return plain(self, rows.with_columns(pl.col("value 0 0").max()), *rest)

        monkeypatch.setattr(group_by_individual.Gather, "_reduce", everybody)
        text = "pl.col('f64').max()"
    relation = written(relation_of(frame), [text], ())

    def check() -> None:
        for seed in range(20):
            check_own(relation, frame, seed)

    with pytest.raises(AssertionError):
        check()


def test_rows_of_nobody_are_dropped_and_empty_frames_stay_empty() -> None:
    frame = pl.DataFrame(
        {"who": [None, None, 1], "x": [1, 2, 3]}, schema={"who": pl.Int64, "x": pl.Int8}
    )
    relation = written(relation_of(frame), ["pl.col('x').sum()"], ())
    assert made(relation, frame).rows() == [(1, 3)]
    assert made(relation, frame.clear()).height == 0


def test_every_output_is_read() -> None:
    frame = pl.DataFrame(schema={**{n: SCHEMA[n] for n in NAMES}, "who": pl.Int64})
    step = written(relation_of(frame), OUTPUTS, ()).steps[-1][0]
    assert isinstance(step, GroupByIndividual)
    assert len(step.outputs) == len(OUTPUTS)
    assert "one row for each individual" in step.stability
