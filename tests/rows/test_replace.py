"""Values that are looked up in lists of old and new ones."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

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


def test_frames_with_columns_in_another_order_are_put_together() -> None:
    people = dp.Session(epsilon=10**7).protect(
        pl.DataFrame({"b": [1, 2], "a": [3, 4]}), unit=dp.Rows()
    )
    first = people.with_columns(c=pl.col("a"))
    second = first.rename({"a": "c", "c": "a"}).select("b", "a", "c")
    total = first.concat(second).agg(dp.sum("a", (0, 9)).alias("a"), dp.sum("b", (0, 9)).alias("b"))
    assert total.collect(epsilon=10**6).row(0) == (14, 6)
