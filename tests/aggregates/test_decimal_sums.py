"""Sums of Decimal columns are Decimals of the column's scale, rounded from exact numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.values import decimal_series
from tests.api.exactly import exactly, protected

X, KEPT = pl.col("x"), pl.col("k") > 1


def orders(scale: int = 2) -> pl.DataFrame:
    amounts = [Decimal(7 * i % 101).scaleb(-scale) for i in range(300)]
    schema: Any = {"k": pl.Int64, "x": pl.Decimal(12, scale)}
    return pl.DataFrame({"k": [i % 3 for i in range(300)], "x": amounts}, schema=schema)


@pytest.mark.parametrize("scale", [0, 1, 2, 5])
def test_a_sum_is_that_of_polars_to_the_last_place(scale: int) -> None:
    frame = orders(scale)
    found = exactly(protected(frame).agg(dp.sum("x", (0, 200))))
    assert found.schema["x"] == pl.Decimal(38, scale)
    assert found.item() == frame["x"].sum()
    grouped = exactly(
        protected(frame).group_by("k", keys=[0, 1, 2]).agg(X.clip(0, 200).sum().alias("s"))
    )
    assert grouped.schema["s"] == pl.Decimal(38, scale)
    polars = frame.group_by("k").agg(X.sum().alias("s")).sort("k")
    assert grouped["s"].to_list() == polars["s"].to_list()


@pytest.mark.parametrize(
    ("expression", "is_decimal"),
    [
        (X.clip(0, 9), True),
        (X.filter(KEPT).clip(0, 9), True),
        (X.fill_null(0).clip(0, 9), True),
        (pl.when(KEPT).then(X).otherwise(0).clip(0, 9), True),
        ((-X).clip(-9, 9), True),
        ((X - X).clip(-9, 9), True),
        (X.fill_null(0.5).clip(0, 9), False),
        ((X * 2).clip(0, 9), False),
        (X.cast(pl.Float64).clip(0, 9), False),
        (pl.col("k").clip(0, 9), False),
    ],
    ids=str,
)
def test_operations_that_keep_the_places_keep_the_type(
    expression: pl.Expr, is_decimal: bool
) -> None:
    found = exactly(protected(orders()).agg(expression.sum().alias("s")))
    assert (found.schema["s"] == pl.Decimal(38, 2)) == is_decimal
    assert abs(float(found.item()) - float(orders().select(expression.sum()).item())) < 0.01


def test_means_and_arithmetic_stay_floats() -> None:
    people = protected(orders())
    found = exactly(people.agg(dp.mean("x", (0, 9)), half=X.clip(0, 9).sum() / 2))
    assert found.dtypes == [pl.Float64, pl.Float64]
    assert found["half"].item() == pytest.approx(float(orders()["x"].sum()) / 2)


def test_intervals_are_decimals_that_hold_the_sum() -> None:
    session = dp.Session(epsilon=1000)
    for people in (
        session.protect(orders(), unit=dp.Rows()),
        dp.Session(epsilon=1000).protect(orders().with_row_index("who"), unit="who"),
    ):
        found = people.agg(dp.sum("x", (0, 2))).collect(epsilon=30, interval=0.999999)
        assert found.dtypes == [pl.Decimal(38, 2)] * 3
        low, high = found.select("x_low", "x_high").row(0)
        assert low <= orders()["x"].sum() <= high


def test_a_release_of_decimals_prints_saves_and_is_drawn(tmp_path: Any) -> None:
    pytest.importorskip("altair")
    people = dp.Session(epsilon=1000).protect(orders(), unit=dp.Rows())
    release = people.group_by("k", keys=[0, 1, 2]).agg(dp.sum("x", (0, 2))).release(epsilon=1)
    assert repr(release).count("±") == 4
    release.write(tmp_path / "sums.parquet")
    assert pl.read_parquet(tmp_path / "sums.parquet").equals(release.frame)
    assert len(release.plot().to_dict()) > 0


def test_sums_by_sets_of_groups_are_decimals() -> None:
    cube = protected(orders()).group_by(dp.cube("k"), keys={"k": [0, 1, 2]})
    found = exactly(cube.agg(dp.sum("x", (0, 2))))
    assert found.schema["x"] == pl.Decimal(38, 2)
    assert found.filter(pl.col("k").is_null())["x"].item() == orders()["x"].sum()


def test_sums_that_may_have_too_many_digits_stay_floats() -> None:
    found = exactly(protected(orders()).agg(dp.sum("x", (0, 10**28))))
    assert found.schema["x"] == pl.Float64


def test_a_share_of_a_total_is_computed_on_decimals() -> None:
    query = protected(orders()).group_by("k", keys=[0, 1, 2]).agg(dp.sum("x", (0, 2)))
    share = pl.col("x").cast(pl.Float64) / pl.col("x").cast(pl.Float64).sum()
    assert exactly(query.with_columns(share=share))["share"].sum() == pytest.approx(1)
    exactly(query.with_columns(share=pl.col("x") / pl.col("x").sum()))


@given(
    st.lists(st.none() | st.floats() | st.fractions()),
    st.integers(0, 9),
    st.sampled_from([None, True, False]),
)
def test_numbers_are_rounded_exactly_and_never_fail(
    numbers: list[Fraction | float | None], scale: int, up: bool | None
) -> None:
    made = decimal_series("x", numbers, scale, up=up)
    assert made.dtype == pl.Decimal(38, scale)
    for given_number, found in zip(numbers, made.to_list(), strict=True):
        if given_number is None or given_number != given_number:
            assert found is None
            continue
        most = Fraction(10**38 - 1, 10**scale)
        if math.isinf(given_number) or abs(Fraction(given_number)) > most:
            assert abs(Fraction(found)) == most
            continue
        off = Fraction(found) - Fraction(given_number)
        step = Fraction(1, 10**scale)
        if up is None:
            assert abs(off) <= step / 2
        else:
            assert 0 <= (off if up else -off) < step
