"""Values that are looked up in lists of old and new ones."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp


@pytest.mark.parametrize("value", [2**53 + 3, 2**63 - 1])
def test_a_new_whole_number_is_rounded_as_a_column_of_floats_rounds_it(value: int) -> None:
    """What the engine rounds up may be too large for the type of a cast after it, hence null."""
    rows = pl.DataFrame({"x": [1.0, 1.0, 2.0]})
    replaced = pl.col("x").clip(0, 5).replace(1, value)
    people = dp.Session(epsilon=10**7).protect(rows, unit=dp.Rows())
    frame = people.with_columns(y=replaced, z=replaced.cast(pl.Int64))
    domain = frame._relation.facts.columns["y"]
    assert domain.interval.hi == Fraction(float(value))
    exact = rows.select(replaced.cast(pl.Int64, strict=False)).to_series().count()
    assert frame.agg(dp.count("z").alias("n")).collect(epsilon=10**6).item() == exact


EXPRESSIONS: dict[str, Callable[[pl.Expr, int], pl.Expr]] = {
    "replace": lambda x, value: x.replace(1, value),
    "replace_strict": lambda x, value: x.replace_strict([1, 2], [value, 0], default=3.5),
    "fill_null": lambda x, value: x.fill_null(value),
    "when": lambda x, value: pl.when(x > 1).then(x).otherwise(value),
}
NEAR_POWERS = st.builds(lambda k, d: 2**k + d, st.integers(52, 62), st.integers(-9, 9))
WHOLE = st.one_of(st.integers(-(2**63), 2**63 - 1), NEAR_POWERS, NEAR_POWERS.map(lambda n: -n))


@pytest.mark.parametrize("name", EXPRESSIONS)
@given(value=WHOLE)
def test_whole_numbers_in_columns_of_floats_lie_within_what_is_inferred(
    name: str, value: int
) -> None:
    rows = pl.DataFrame({"x": [1.0, 2.0, None, 0.5]})
    made = EXPRESSIONS[name](pl.col("x").clip(0, 5), value)
    frame = dp.Session(epsilon=1).protect(rows, unit=dp.Rows()).with_columns(y=made)
    known = frame._relation.facts.columns["y"].interval
    for found in rows.select(made).to_series().drop_nulls():
        assert known.lo is None or known.lo <= Fraction(found)
        assert known.hi is None or Fraction(found) <= known.hi


def test_frames_with_columns_in_another_order_are_put_together() -> None:
    people = dp.Session(epsilon=10**7).protect(
        pl.DataFrame({"b": [1, 2], "a": [3, 4]}), unit=dp.Rows()
    )
    first = people.with_columns(c=pl.col("a"))
    second = first.rename({"a": "c", "c": "a"}).select("b", "a", "c")
    total = first.concat(second).agg(dp.sum("a", (0, 9)).alias("a"), dp.sum("b", (0, 9)).alias("b"))
    assert total.collect(epsilon=10**6).row(0) == (14, 6)
