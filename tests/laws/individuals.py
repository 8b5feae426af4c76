"""Frames of individuals with any number of rows, and queries over them under limits.

Steps, groupings and dp expressions are text, as one would type them. Some steps redefine, swap,
rename or drop the columns that limits speak of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.errors import DPFrameError
from tests.laws.neighbours import (
    Pair,
    check_joint_draws,
    exact_tables,
    measurements_of,
    moved,
    query_of,
    violation,
)
from tests.laws.queries import NAMES

SCHEMA: dict[str, Any] = {
    "id": pl.Int64(),
    "g": pl.String(),
    "h": pl.Int64(),
    "c": pl.Categorical(),
    "e": pl.Enum(["p", "q", "r"]),
    "b": pl.Boolean(),
    "d": pl.Date(),
    "x": pl.Int64(),
    "y": pl.Float64(),
}
POOLS: dict[str, list[Any]] = {
    "g": ["a", "b", "c", None],
    "h": [0, 1, 2, None],
    "c": ["z", "a", "m", None],
    "e": ["p", "q", "r", None],
    "b": [True, False, None],
    "d": [date(1970, 1, 1), date(2000, 2, 29), None],
    "x": [0, 1, -1, 5, 9, -9, 100, 2**63 - 1, -(2**63), 2**62, None],
    "y": [0.0, -0.0, 0.1, 1.5, -2.5, 1e300, -1e300, math.inf, -math.inf, math.nan, None],
}  # fmt: skip
KEYS = {
    "g": '["a", None, "b", "c"]',
    "h": "[2, 0, None, 1]",
    "c": '["a", "z", None, "m"]',
    "e": '["p", "q", "r", None]',
    "b": "[True, False, None]",
    "d": "[date(1970, 1, 1), date(2000, 2, 29), None]",
}
"""Public keys that cover every value of the pools, so that no group hides."""

GROUPINGS = [
    "f",
    *(f'f.group_by("{name}", keys={keys})' for name, keys in KEYS.items()),
    'f.group_by("e")',
    'f.group_by("g", keys=["b", "never"])',
    f'f.group_by("g", "h", keys={{"g": {KEYS["g"]}, "h": {KEYS["h"]}}})',
    f'f.group_by("h", "b", keys={{"h": {KEYS["h"]}, "b": {KEYS["b"]}}})',
    f'f.group_by("c", "e", "b", keys={{"c": {KEYS["c"]}, "e": {KEYS["e"]}, "b": {KEYS["b"]}}})',
    'f.group_by(pl.col("g").str.to_uppercase(), keys=["A", "B", "C", None])',
    'f.group_by(g=pl.col("h") % 2, keys=[0, 1, None])',
    f'f.group_by(g=pl.col("h"), keys={KEYS["h"]})',
    'f.group_by(g=pl.col("x") > 0, keys=[True, False, None])',
    'f.group_by(pl.col("h") + pl.col("h"), keys=[0, 2, 4, None])',
    'f.group_by(z=pl.concat_str("g", "c"), keys=["az", "bz", "aa", "cm", None])',
    'f.group_by(pl.lit("k"), keys=["k", "l"])',
    'f.group_by("id", keys=[1, 2, 3])',
    'f.group_by("g", z=pl.col("id") > 1, keys={"g": ["a", None, "b"], "z": [True, False]})',
]

LIMITS = [
    *(f"f.limit_rows({n})" for n in (1, 2, 3, 5, 1000)),
    *(f"f.limit_rows({n}, by={by})" for n in (1, 2, 4) for by in ('"g"', '"h"', '["g", "h"]')),
    *(f"f.limit_groups({n}, by={by})" for n in (1, 2, 50) for by in ('"g"', '"h"', '["h", "g"]')),
    'f.limit_rows(2, by="c")',
    'f.limit_rows(1, by=["b", "d", "e"])',
    'f.limit_rows(3, by="id")',
    'f.limit_groups(2, by="c")',
    'f.limit_groups(2, by=["e", "b"])',
    'f.limit_groups(3, by=["b", "d", "e", "h", "c"])',
    'f.limit_groups(1, by="id")',
]
STEPS = [
    'f.filter(pl.col("x") >= 0)',
    'f.filter(pl.col("id") > 1)',
    'f.filter(pl.col("g").is_in(["a", "c"]) | pl.col("b"))',
    'f.drop_nulls("g")',
    "f.drop_nulls()",
    "f.fill_null(0)",
    'f.fill_null("a")',
    "f.fill_nan(1.5)",
    'f.with_columns(g=pl.col("c").cast(pl.String))',
    'f.with_columns(g=pl.col("h"), h=pl.col("g"))',
    'f.with_columns(pl.col("g").str.to_uppercase().str.to_lowercase())',
    'f.with_columns(h=pl.col("h") // 2, x=pl.col("x") // 3)',
    'f.with_columns(pl.lit("a").alias("g"))',
    'f.with_columns(g=pl.when(pl.col("x") > 0).then("g").otherwise(pl.lit("b")))',
    'f.with_columns(y=pl.col("y") + 0.0, x=pl.col("x") + 1)',
    'f.with_columns(who=pl.col("id") * 2)',
    'f.rename({"g": "was", "c": "g", "was": "c"} if "was" in f.columns else {"g": "was"})',
    'f.rename({"g": "c", "c": "g"})',
    'f.rename({"h": "x", "x": "h"})',
    'f.rename({"id": "h", "h": "id"})',
    'f.rename({"id": "unit"})',
    'f.drop("g").with_columns(g=pl.col("c").cast(pl.String))',
    'f.drop("h").rename({"x": "h"}).with_columns(x=pl.col("h"))',
    'f.select("id", "g", "x", "y", "b", h=pl.col("h"))',
    'f.select("id", "x", "y", "e", again=pl.col("id"), g=pl.col("c"), h=pl.col("h") + 0, c="g")',
    'f.select("y", "x", "g", "h", "c", "e", "b", "d", first=pl.col("id"), id=pl.col("id"))',
    'f.cast({"x": pl.Int32, "g": pl.Enum(["b", "a"])})',
    'f.cast({"h": pl.Int8, "b": pl.Int64})',
]
UNIT_TEXTS = [
    'dp.count(per="unit", bounds=(0, 2))',
    'pl.col("y").dp_count(per="unit", bounds=(0, 3))',
    'pl.col("x").dp_sum((-3, 7), per="unit")',
    'pl.col("x").dp_sum((0, 2**62), per="unit")',
    'pl.col("x").dp_sum((-0.5, 2.25), per="unit")',
    'pl.col("y").dp_sum((-2, 1.5), per="unit")',
    'pl.col("y").dp_sum((0, 1e-300), per="unit")',
    'pl.col("y").dp_sum((0, 1e30), per="unit")',
    'pl.col("b").dp_sum((0, 3), per="unit")',
    'pl.col("x").dp_mean((-3, 7), per="unit")',
    'pl.col("y").dp_mean((0, 10), per="unit")',
    'pl.col("x").dp_var((-3, 7), per="unit")',
    'pl.col("y").dp_std((-2, 2), per="unit")',
    'pl.col("x").dp_histogram([-5, 0, 5, 100], per="unit")',
    'pl.col("y").dp_histogram(3, bounds=(-1, 2), other=True, per="unit")',
    'pl.col("x").dp_quantile([0.1, 0.5, 0.9], (-10, 10), per="unit")',
    'pl.col("b").dp_median((0, 4), per="unit")',
    'pl.col("y").dp_quantile(0.9, candidates=[-1, 0, 1.5, 9], per="unit")',
    'pl.col("x").dp_ratio("y", (-3, 7), denominator_bounds=(0, 2.5), per="unit")',
    'pl.col("b").dp_ratio("x", (0, 3), denominator_bounds=(-5, 2**62), per="unit")',
]
"""Aggregates over individuals; with them `dp_n_unique` of the identifier."""
TEXTS = [
    *UNIT_TEXTS,
    "dp.count()",
    'pl.col("y").dp_count()',
    'pl.col("id").dp_n_unique()',
    'pl.col("x").dp_n_unique()',
    'pl.col("c").dp_n_unique()',
    'pl.col("x").dp_sum((-3, 7))',
    'pl.col("x").dp_sum((2, 9))',
    'pl.col("y").dp_sum((-1, 0.5))',
    'pl.col("x").dp_mean((-3, 7))',
    'pl.col("y").dp_var((-2, 3))',
    'pl.col("y").dp_ratio("x", (-1, 0), denominator_bounds=(-3, 7))',
    'pl.col("e").dp_histogram()',
    'pl.col("g").dp_histogram(["a", "b", None], other=True)',
    'pl.col("g").dp_histogram(["a", "b", None])',
    'pl.col("x").dp_histogram([-5, 0, 5, 100])',
    'pl.col("x").dp_quantile(0.5, (-10, 10))',
    'pl.col("x").dp_quantile(0.9, candidates=[-1, 0, 5, 9])',
    'pl.col("y").dp_median((-3, 3))',
    'pl.col("e").dp_argmax()',
    'pl.col("e").dp_argmax(score=pl.col("x").dp_sum((-3, 7)), k=2)',
    'pl.col("g").dp_argmax(candidates=["a", "b", None])',
    'pl.col("g").dp_argmax(candidates=["a", "c"], score=pl.col("x").dp_sum((-3, 7)))',
    'pl.col("e").dp_argmax(score=pl.col("x").dp_n_unique())',
    'pl.col("e").dp_argmax(score=pl.col("id").dp_n_unique())',
    'pl.col("g").dp_argmax(candidates=["a", "c", None], score=pl.col("id").dp_n_unique(), k=2)',
    'dp.argmax(candidates=pl.DataFrame({"at": [0, 5]}), bounds=(-4, 6), '
    'score=pl.col("x") - pl.col("at"))',
]
BEST = [
    "dp_argmax()",
    'dp_argmax(score=pl.col("x").dp_sum((-3, 7)))',
    'dp_argmax(score=pl.col("x").dp_n_unique())',
    'dp_argmax(score=pl.col("id").dp_n_unique())',
]
"""Choices of the best group."""


def frame_of(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] = SCHEMA) -> pl.DataFrame:
    """Rows as a frame; what a row does not say is null."""
    columns = {name: [row.get(name) for row in rows] for name in schema}
    return pl.DataFrame(columns, schema=dict(schema), strict=True)


@st.composite
def neighbours(draw: st.DrawFn, most: int = 12) -> Pair:
    """Frames with and without all rows of individual 1, in any order of rows.

    Rows come from a small pool, so that equal rows and heavy individuals are common.
    """
    cells = st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in POOLS.items()})
    pool = draw(st.lists(cells, min_size=1, max_size=6))
    row = st.sampled_from(pool)
    person = [{**r, "id": 1} for r in draw(st.lists(row, min_size=1, max_size=most))]
    if draw(st.booleans()):  # in every group
        person += [{**person[0], "id": 1, "g": g, "h": h} for g in POOLS["g"] for h in POOLS["h"]]
    who = st.sampled_from([2, 2, 3, 4, None])
    others = [
        {**r, "id": i} for r, i in draw(st.lists(st.tuples(row, who), min_size=0, max_size=most))
    ]
    before, after = draw(st.permutations(others)), draw(st.permutations(others + person))
    frames = [frame_of(before), frame_of(after)]
    return Pair(*(frames if draw(st.booleans()) else frames[::-1]))


def protected(schema: Mapping[str, Any] = SCHEMA, **declared: Any) -> Any:
    return dp.Session(epsilon=1).protect(pl.LazyFrame(schema=dict(schema)), "id", **declared)


def stepped(steps: Sequence[str], frame: Any = None, strict: bool = True) -> Any:
    """The frame after steps; without `strict`, steps that make no sense are left out."""
    frame = protected() if frame is None else frame
    for text in steps:
        try:
            frame = eval(text, {**NAMES, "f": frame})
        except DPFrameError:
            if strict:
                raise
    return frame


def query(
    texts: Sequence[str], grouping: str = "f", steps: Sequence[str] = (), frame: Any = None
) -> Query:
    """The query of dp expressions, or of one choice of the best group."""
    made = eval(grouping, {**NAMES, "f": stepped(steps, frame)})
    if texts[0].startswith("dp_"):
        return query_of(eval(f"f.{texts[0]}", {**NAMES, "f": made}))
    return query_of(made.agg(**{f"o{i}": eval(t, dict(NAMES)) for i, t in enumerate(texts)}))


def accepted(text: str, grouping: str, steps: Sequence[str]) -> Query | None:
    """The query without the steps that make no sense; None when it is refused."""
    frame = stepped(steps, strict=False)
    try:
        return query([text], grouping, frame=frame)
    except DPFrameError:
        return None


def check_limits(asked: Query, pair: Pair, salt: int = 0) -> None:
    """Every part moves no further than it declares."""
    before, after = (exact_tables(asked, f, salt=salt) for f in (pair.before, pair.after))
    for use in measurements_of(asked):
        problem = violation(use.part, moved(use.part, before, after, asked.scope), asked.scope)
        assert problem is None, f"{use.name}: {problem}"
    check_joint_draws(asked, before, after)


@dataclass(frozen=True)
class Reach:
    """The furthest that something moved, each norm on its own."""

    l0: int = 0
    l1: int = 0
    l2_squared: int = 0
    linf: int = 0


def reached(asked: Query, pairs: Sequence[Pair], salt: int = 0) -> list[Reach]:
    """How far each part of a query moves at most between the given neighbours."""
    found = [Reach() for _ in measurements_of(asked)]
    for pair in pairs:
        before, after = (exact_tables(asked, f, salt=salt) for f in (pair.before, pair.after))
        for i, use in enumerate(measurements_of(asked)):
            m = moved(use.part, before, after, asked.scope)
            best = found[i]
            found[i] = Reach(
                max(m.l0, best.l0),
                max(m.l1, best.l1),
                max(m.l2_squared, best.l2_squared),
                max(m.linf, best.linf),
            )
    return found
