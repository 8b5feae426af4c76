"""Laws of what is known after a chain of verbs, as one writes them on a private frame.

Every value that is left agrees with the inferred facts, inferred bounds clamp nothing, and what is
said to have neither nulls nor NaN is counted with all rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.measurement import COUNT, Additive
from dpframe.errors import DPFrameError
from dpframe.optimise.measurements import measurements_of
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.polars_dtypes import to_polars
from tests.laws.amounts import examples
from tests.laws.checking import contradiction
from tests.laws.frames import frames, nasty_frame, number, values
from tests.laws.layouts import stored
from tests.laws.neighbours import exact_tables, query_of, vector
from tests.laws.queries import NAMES, STEPS

COLUMNS = ["i8", "i64", "i64b", "u8", "u64", "f32", "f64", "f64b", "b", "s", "sb", "e", "d", "dt"]
NASTY = nasty_frame(120).select(COLUMNS)
VERBS = [
    *STEPS,
    "f.drop_nulls()",
    "f.fill_null(7)",
    "f.fill_null(-0.5)",
    "f.fill_null(True)",
    'f.fill_nan(float("inf"))',
    'f.filter(pl.col("i64").is_between(-5, 5, closed="none"))',
    'f.filter(pl.col("f64") < 0.1, pl.col("f64") > -1)',
    'f.filter(pl.col("f32") >= 0.1)',
    'f.filter(pl.col("f64") > 0.1)',
    'f.filter(pl.col("f64") != 0.5)',
    'f.filter(pl.col("u64") < 2**62, pl.col("i8") != 0)',
    'f.filter(pl.col("f64").is_finite() & pl.col("f64b").is_not_nan())',
    'f.filter(pl.col("i64") > pl.col("i64b"))',
    'f.filter(pl.col("d") >= date(1970, 1, 1), pl.col("d") < date(2024, 2, 29))',
    'f.filter(pl.col("i8").is_in([1, 2, 7]))',
    'f.with_columns(pl.col("f64").clip(-1, 1), pl.col("f32").clip(0, 0.1))',
    'f.with_columns(pl.max_horizontal("i64", "i8").clip(None, 100).alias("i64"))',
    'f.with_columns(pl.col("i64").clip(lower_bound=0))',
    'f.with_columns(i64=pl.col("i8") * pl.col("u8"), f64=pl.col("i8") / pl.col("u8"))',
    'f.with_columns(i64=pl.col("i64") + pl.col("i64b"))',
    'f.with_columns(i64=pl.col("i64").abs(), f64=-pl.col("f64"))',
    'f.with_columns(i64=pl.col("i64") % 7, f64=pl.col("f64") % 0.3)',
    'f.with_columns(f64=pl.col("f64").round(1), f32=pl.col("f32") * 3)',
    'f.with_columns(f64=pl.col("f32").cast(pl.Float64), f32=pl.col("f64").cast(pl.Float32))',
    'f.with_columns(i8=pl.col("i64").cast(pl.Int8), i64=pl.col("f64").cast(pl.Int64))',
    'f.with_columns(i64=pl.col("u64").cast(pl.Int64), u64=pl.col("i64").cast(pl.UInt64))',
    'f.with_columns(pl.when(pl.col("f64") > 0).then(pl.col("f64")).otherwise(pl.col("f64b")))',
    'f.with_columns(i64=pl.coalesce("i64", "i8", 3), f64=pl.max_horizontal("f64", "f64b"))',
    'f.with_columns(i64=pl.col("s").str.len_chars(), i8=pl.col("d").dt.month())',
    'f.with_columns(i64=pl.col("d").dt.year(), f64=pl.col("f64").sqrt())',
    'f.with_columns(i64=pl.col("s").cast(pl.Int64), f64=pl.col("sb").cast(pl.Float64))',
]


def after(chain: Sequence[str], frame: pl.DataFrame) -> tuple[Any, pl.DataFrame]:
    """A private frame after the verbs that it accepts, and its rows by the lowering."""
    private: Any = dp.Session(epsilon=1).protect(frame, dp.Rows())
    for verb in chain:
        try:
            private = eval(verb, {**NAMES, "f": private})
        except DPFrameError:
            continue
    lazy = stored(frame).lazy()
    for step, before in private._relation.steps:
        lazy = step.lower(lazy, before, pl, salt=0)
    return private, lazy.collect(optimizations=OPTIMIZATIONS)


def check_facts(chain: Sequence[str], frame: pl.DataFrame) -> None:
    private, rows = after(chain, frame)
    facts = private._relation.facts.columns
    assert list(facts) == rows.columns
    for name, known in facts.items():
        assert rows[name].dtype == to_polars(known.dtype), (chain, name)
        for value in values(rows[name]):
            problem = contradiction(value, known)
            assert problem is None, f"{chain}: {name} = {value!r} {problem} ({known})"


def check_inferred_bounds(chain: Sequence[str], frame: pl.DataFrame) -> None:
    """With the bounds that were inferred, a sum is that of all values, as they are."""
    private, rows = after(chain, frame)
    for name, known in private._relation.facts.columns.items():
        if known.bounds is None or not (known.dtype.is_numeric or known.dtype.is_boolean):
            continue
        if max(map(abs, known.bounds)) > 2**100 or known.dtype.name in ("UInt64", "Int128"):
            continue
        # the range of a type of 32 bits holds, but has to be written
        given = tuple(map(int, known.bounds)) if known.is_range_of_type else None
        asked = query_of(private.agg(pl.col(name).dp_sum(given)))
        (use,) = measurements_of(asked)
        assert isinstance(use.part, Additive)
        (found,) = vector(use.part, exact_tables(asked, frame))
        true = [number(v) for v in values(rows[name]) if v is not None and v == v]
        error = abs(found * use.part.step - sum(v for v in true if v is not None))
        assert error <= len(true) * use.part.step / 2, f"{chain}: sum of {name} is off by {error}"


def check_counts(chain: Sequence[str], frame: pl.DataFrame) -> None:
    """Where values are counted as rows, there are as many of them."""
    private, rows = after(chain, frame)
    for name in rows.columns:
        asked = query_of(private.agg(pl.col(name).dp_count()))
        (use,) = measurements_of(asked)
        (found,) = vector(use.part, exact_tables(asked, frame))  # type: ignore[arg-type]
        missing = sum(
            v is None or (isinstance(v, float) and math.isnan(v)) for v in values(rows[name])
        )
        assert found == rows.height - missing, (chain, name)
        assert use.part != COUNT or not missing


def check(chain: Sequence[str], frame: pl.DataFrame) -> None:
    check_facts(chain, frame)
    check_inferred_bounds(chain, frame)
    check_counts(chain, frame)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_on_extremes(verb: str) -> None:
    check([verb], NASTY)


@examples(15, 120)
@given(st.lists(st.sampled_from(VERBS), min_size=2, max_size=5))
def test_chains_of_verbs_on_extremes(chain: list[str]) -> None:
    check(chain, NASTY)


@settings(max_examples=15)
@given(st.lists(st.sampled_from(VERBS), min_size=1, max_size=4), frames(names=COLUMNS))
def test_chains_of_verbs(chain: list[str], frame: pl.DataFrame) -> None:
    check(chain, frame)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(
    st.lists(st.sampled_from(VERBS), min_size=1, max_size=6),
    st.just(NASTY) | frames(names=COLUMNS, max_rows=20),
)
def test_many_chains_of_verbs(chain: list[str], frame: pl.DataFrame) -> None:
    check(chain, frame)


def test_the_verbs_are_accepted_and_learn_something() -> None:
    """The laws above are not empty: verbs apply, rows are left, and bounds are inferred."""
    bounded = 0
    for verb in VERBS:
        eval(verb, {**NAMES, "f": dp.Session(epsilon=1).protect(NASTY, dp.Rows())})
        private, rows = after([verb], NASTY)
        bounded += sum(d.bounds is not None for d in private._relation.facts.columns.values())
        assert rows.height or "pl.lit(None" in verb, verb
    assert bounded > 3 * len(VERBS)  # three columns have bounds by their type


def test_a_false_fact_would_be_noticed() -> None:
    """The laws can fail: bounds that the owner declares, and that do not hold, clamp values."""
    frame = pl.DataFrame({"x": [1, 50, None]})
    private: Any = dp.Session(epsilon=1).protect(frame, dp.Rows(), bounds={"x": (0, 10)})
    known = private._relation.facts.columns["x"]
    assert contradiction(50, known) == "is outside the interval"
    asked = query_of(private.agg(pl.col("x").dp_sum()))
    (use,) = measurements_of(asked)
    assert isinstance(use.part, Additive)
    assert vector(use.part, exact_tables(asked, frame)) == [11]
    assert use.part.step == Fraction(1)
