"""Queries over the laws' schema: dp expressions, groupings and frame steps, written as text.

Text shows in a failing example just as one would type it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.core.units import Rows
from dpframe.errors import DPFrameError
from tests.laws.frames import SCHEMA, ZONE
from tests.laws.neighbours import query_of

NAMES: dict[str, Any] = {
    "pl": pl,
    "dp": dp,
    "date": date,
    "datetime": datetime,
    "time": time,
    "timedelta": timedelta,
    "tz": ZoneInfo(ZONE),
}

GROUPINGS = [
    "f",
    'f.group_by("e")',
    'f.group_by("s", keys=["b", None, "a", ""])',
    'f.group_by("b", keys=[None, True])',
    'f.group_by("b", "e")',
    'f.group_by("i8", "b", keys={"i8": [0, -128, None], "b": [True, None]})',
    'f.group_by(pl.col("i64").is_null(), keys=[True])',
    'f.group_by("d", keys=[date(1970, 1, 1), None])',
    'f.group_by(big=pl.col("u8") > 5, keys=[True, False, None])',
    'f.group_by("dtz", keys=[None, datetime(1970, 1, 1, 1, tzinfo=tz)])',
    'f.group_by(pl.lit("x"), keys=["x", "y"])',
]
"""A frame, or a group-by with public keys: with null, incomplete, of several columns, constant."""

STEPS = [
    'f.filter(pl.col("i64") >= 0)',
    'f.filter(pl.col("b"))',
    'f.filter(pl.col("f64").is_between(-1, 1))',
    'f.filter(~pl.col("e").is_in(["a"]))',
    'f.filter(pl.col("s").is_in(["a", "b", ""]))',
    'f.filter((pl.col("u8") > 3) | pl.col("b").is_null())',
    "f.filter(pl.lit(True))",
    "f.filter(pl.lit(None, dtype=pl.Boolean))",
    'f.with_columns(i64=pl.col("i64b") // 7, f64=pl.col("f64b") / 0.0)',
    'f.with_columns(pl.col("f64").fill_nan(None).fill_null(0.5))',
    'f.with_columns(pl.when(pl.col("b")).then(pl.col("i64")).otherwise(3))',
    'f.with_columns(f64=pl.col("i64").cast(pl.Float64) * 0.1)',
    'f.with_columns(pl.col("i64").clip(-5, 5), pl.lit("a").alias("s"))',
    'f.with_columns(i64=pl.lit(4), u8=pl.lit(7, dtype=pl.UInt8), f64=pl.lit(float("nan")))',
    'f.drop_nulls("s")',
    'f.drop_nulls(["i64", "f64"])',
    "f.fill_null(0)",
    'f.fill_null("a")',
    "f.fill_nan(2.5)",
    'f.cast({"i64": pl.Int32, "f64": pl.Float32})',
    'f.cast({"u8": pl.Int64, "b": pl.Boolean})',
    'f.rename({"i64": "i64b", "i64b": "i64", "f64": "f64b", "f64b": "f64"})',
    'f.drop("sb")',
    'f.session.partition(f, "e", ["a", "b"])["b"]',
    'f.session.partition(f, ["i8", pl.col("i64") > 0], [(0, True), (None, False)])[None, False]',
]
"""Frame steps after which every column that expressions use is still there."""

_NUMBERS = ["i8", "i32", "i64", "u8", "u32", "u64", "f32", "f64", "b", "dec"]
_MOMENTS = {
    "d": "date(1970, 1, 1), date(2030, 1, 1)",
    "dt": "datetime(1969, 12, 31, 23), datetime(2024, 3, 1)",
    "dtz": "datetime(1970, 1, 1, tzinfo=tz), datetime(2024, 3, 31, 3, tzinfo=tz)",
    "dtms": "datetime(1900, 1, 1), datetime(2200, 1, 1)",
    "dur": "timedelta(days=-1), timedelta(days=2)",
    "t": "time(1), time(13, 30)",
}
_ENDS = [
    *(0, 1, -1, 2, 5, -7, 10, 100, 0.1, 0.5, -0.3, 1.5, 255.5, 1e-3, -1e6, 2**31, 2**40, 2**62),
    *(-(2**62), 1e-300, -1e-300, 1e18, 1e30, 0.30000000000000004, 2**53 + 1),
]


@st.composite
def bounds(draw: st.DrawFn, distinct: bool = False) -> str:
    """A pair of numbers in order, as text."""
    some = st.one_of(st.sampled_from(_ENDS), st.integers(-300, 300), st.floats(-1e9, 1e9))
    ends = [draw(some), draw(some)]
    if distinct and ends[0] == ends[1]:
        ends[1] += 1
    return f"({min(ends)!r}, {max(ends)!r})"


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """A dp expression with random parameters, as text."""
    column = draw(st.sampled_from(_NUMBERS))
    moment = draw(st.sampled_from(sorted(_MOMENTS)))
    value, within = draw(
        st.sampled_from([(column, draw(bounds(distinct=True))), (moment, f"({_MOMENTS[moment]})")])
    )
    around = f"({draw(st.sampled_from([0, -1, -2.5]))}, {draw(st.sampled_from([0.1, 7, 2**62]))})"
    wide, any_column = draw(bounds()), draw(st.sampled_from(sorted(set(SCHEMA) - _NESTED)))
    q = draw(st.sampled_from(["0.5", "0", "1", "0.25", "0.9", "[0.1, 0.999]"]))
    listed = draw(st.lists(st.sampled_from(_ENDS), min_size=1, max_size=6))
    floats = [float(v) for v in listed]
    edges = sorted({*listed, draw(st.sampled_from([-12345, 7777.5])), 3})
    score = draw(
        st.sampled_from(
            [
                f'pl.col("{column}").dp_sum({wide})',
                'pl.col("s").dp_n_unique()',
                "dp.count()",
                'pl.col("f64").dp_count()',
                'pl.col("i64").clip(-2, 3)',
                "None",
            ]
        )
    )
    numeric, k = column if column != "b" else "i8", draw(st.integers(1, 2))
    return draw(
        st.sampled_from(
            [
                f'pl.col("{any_column}").dp_count()',
                f'pl.col("{any_column}").dp_n_unique()',
                f'pl.col("{column}").dp_sum({wide})',
                f'pl.col("{column}").dp_mean({draw(bounds(distinct=True))})',
                f'pl.col("{value}").dp_mean({within})',
                f'pl.col("{column}").dp_var({within if value == column else "(-1, 1)"})',
                f'pl.col("{column}").dp_ratio("f64", {around}, denominator_bounds=(-1, 1e30))',
                f'pl.col("i64").dp_ratio("{column}", (0, 5), denominator_bounds={around})',
                f'pl.col("{column}").dp_std({within if value == column else "(0, 9.5)"})',
                f'pl.col("{value}").dp_quantile({q}, {within})',
                f'pl.col("{value}").dp_median({within})',
                f'pl.col("{numeric}").dp_quantile({q}, candidates={listed})',
                f'pl.col("{numeric}").dp_histogram({edges})',
                f'pl.col("{value}").dp_histogram(3, bounds={within}, other=True)',
                'pl.col("s").dp_histogram(["a", "", "\\x00", None], other=True)',
                'pl.col("s").cast(pl.Enum(["a", "12"])).dp_histogram(other=True)',
                f'pl.col("e").dp_argmax(score={score}, k={k})',
                f'pl.col("i64").dp_argmax(candidates=[0, 7, {2**63 - 1}, None], score={score})',
                f'dp.argmax(candidates=pl.DataFrame({{"at": {floats}}}), k=1, bounds={wide}, '
                f'score=(pl.col("{_plain(column)}") - pl.col("at")).abs())',
            ]
        )
    )


_NESTED = {"li", "ls", "arr", "st"}


def _plain(column: str) -> str:
    return column if column not in ("b", "dec") else "f64"


def columns_in(*texts: str) -> list[str]:
    """The columns of `SCHEMA` that texts name."""
    named = {name for text in texts for name in re.findall(r'"(\w+)"', text)}
    named |= {name for text in texts for name in re.findall(r"[({, ](\w+)=", text)}
    return [name for name in SCHEMA if name in named] or ["i64"]


def schema_for(texts: Sequence[str]) -> dict[str, Any]:
    return {name: SCHEMA[name] for name in columns_in(*texts)}


def query(
    dp_texts: Sequence[str],
    unit: Rows,
    grouping: str = "f",
    steps: Sequence[str] = (),
    **declared: Any,
) -> Query:
    """The query of some dp expressions; the frame has just the columns that are named.

    Raises
    ------
    DPFrameError
        When it is refused.
    """
    schema = schema_for(
        [*dp_texts, grouping, *steps, *(f'"{n}"' for d in declared.values() for n in d)]
    )
    frame: Any = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=schema), unit=unit, **declared)
    for text in steps:
        frame = eval(text, {**NAMES, "f": frame})
    grouped = eval(grouping, {**NAMES, "f": frame})
    asked = {f"o{i}": eval(text, dict(NAMES)) for i, text in enumerate(dp_texts)}
    return query_of(grouped.agg(**asked))


def names_of(asked: Query) -> list[str]:
    """The columns of the source of a query."""
    return list(asked.relation.source.columns)


def accepted(dp_text: str, unit: Rows, grouping: str, steps: Sequence[str]) -> Query | None:
    """The query, or None when it is refused; any other error gets through."""
    try:
        return query([dp_text], unit, grouping, steps)
    except DPFrameError:
        return None
