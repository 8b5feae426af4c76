"""Numbers beyond 64 bits in results: right, or refused when the query is built."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.api.exactly import exactly, protected

HASHES = pl.Series("h", range(10_005)).hash().alias("h")
EDGES = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, None]
TOP = 2**63


def column(values: list[int | None], dtype: Any = pl.UInt64) -> dp.PrivateFrame:
    return protected(pl.DataFrame({"x": pl.Series(values, dtype=dtype)}))


def test_every_tenth_hash_is_counted() -> None:
    frame = protected(HASHES.to_frame())
    right = sum(h % 10 == 3 for h in HASHES.to_list())
    assert exactly(frame.filter(pl.col("h") % 10 == 3).dp_count()).item() == right
    asked = frame.filter((pl.col("h") * 31 + 7) % 100 < 5).dp_count()
    assert exactly(asked).item() == sum((h * 31 + 7) % 100 < 5 for h in HASHES.to_list())
    assert exactly(frame.filter(pl.col("h") >= 2**63).dp_count()).item() == (HASHES >= 2**63).sum()


def test_remainders_are_group_keys() -> None:
    frame = protected(HASHES.to_frame())
    found = exactly(frame.group_by(k=pl.col("h") % 3, keys=[0, 1, 2]).dp_count())
    assert found["k"].dtype == pl.Int64
    assert found[:, -1].to_list() == [sum(h % 3 == k for h in HASHES) for k in range(3)]


def test_a_sum_beyond_int64_is_a_decimal_as_are_its_ends() -> None:
    epochs = [1_790_000_000_000_000_000 + i for i in range(5_000)]
    frame = column(epochs, pl.Int64)
    asked = frame.dp_sum("x", (0, 2 * 10**18))
    found = exactly(asked)["x"]
    assert found.dtype == pl.Decimal(38, 0)
    assert abs(float(found.item()) / sum(epochs) - 1) < 1e-8
    noisy = frame.agg(pl.col("x").dp_sum((0, 2 * 10**18))).collect(epsilon=0.1, interval=0.95)  # type: ignore[attr-defined]
    low, high = noisy["x_low"].item(), noisy["x_high"].item()
    assert isinstance(low, Decimal)
    assert low < noisy["x"].item() < high
    assert low > 8 * 10**21


def test_small_sums_stay_int64() -> None:
    assert exactly(column([1, 2, 3], pl.Int64).dp_sum("x", (0, 2**30)))["x"].dtype == pl.Int64
    assert exactly(column([1, 2, 3]).dp_sum("x", (0, 100)))["x"].to_list() == [6]


@pytest.mark.parametrize("dtype", [pl.UInt64, pl.Int128])
def test_sums_and_means_of_what_is_beyond_int64(dtype: Any) -> None:
    values = [2**63 + i for i in range(0, 1_000, 10)]
    frame = column(values, dtype)
    mean = exactly(frame.dp_mean("x", (2**63 - 1_000, 2**63 + 1_000)))["x"].item()
    assert mean == pytest.approx(sum(values) / len(values), abs=2_000)
    total = exactly(frame.dp_sum("x", (0, 2**64 - 1)))["x"].item()
    assert abs(Decimal(total) / sum(values) - 1) < 1e-8
    moved = (pl.col("x").clip(0, 2**65) - 2**63).alias("y")
    near = frame.with_columns(moved)
    assert exactly(near.dp_sum("y", (0, 1_000)))["y"].item() == sum(v - 2**63 for v in values)
    assert 490 <= exactly(near.dp_quantile("y", 0.5, (0, 1_000)))["y"].item() <= 500


@pytest.mark.parametrize("low", [0, 2**53, 2**60, 2**63 - 2_000])
def test_means_and_quantiles_of_near_numbers_far_from_zero(low: int) -> None:
    """Floats do not tell these apart."""
    values = [low + i for i in range(0, 1_001, 10)]
    frame = column(values, pl.Int64)
    bounds = (low, low + 1_000)
    spread = exactly(frame.dp_std("x", bounds))["x"].item()
    assert spread == pytest.approx(pl.Series(range(0, 1_001, 10)).std(), rel=0.05)
    middle = exactly(frame.dp_quantile("x", 0.5, bounds))["x"].item()
    assert abs(middle - (low + 500)) <= 10


def test_bounds_of_what_is_beyond_int64_hold_it() -> None:
    lo, hi = exactly(column([2**63 + 5] * 1_000).dp_bounds("x"))["x"].item()
    assert lo <= 2**63 <= hi


def test_distinct_values_and_keys_beyond_int64() -> None:
    frame = column([2**63, 2**63 + 1, 2**64 - 1, 2**64 - 1, 1])
    assert exactly(frame.dp_n_unique("x"))["x"].item() == 4
    keys = [2**64 - 1, 2**63, 5]
    found = exactly(frame.group_by("x", keys=keys).dp_count())
    assert dict(found.iter_rows()) == {2**64 - 1: 2, 2**63: 1, 5: 0}
    assert exactly(frame.dp_histogram("x", [0, 2, 2**62]))["count"].to_list() == [1, 0]
    assert exactly(frame.filter(pl.col("x").is_in([2**64 - 1])).dp_count()).item() == 2


@pytest.mark.parametrize(
    "asked",
    [
        lambda f: f.dp_histogram("x", [0, 2**63, 2**64]),
        lambda f: f.dp_histogram("x", 4, bounds=(0, 2**64)),
        lambda f: f.dp_histogram("x", 100, bounds=(2**63 - 1, 2**64), other=True),
        lambda f: f.dp_cdf("x", 100, bounds=(0, 2**64)),
        lambda f: f.dp_cdf("x", [0, 2**63]),
        lambda f: f.dp_quantile("x", 0.5, (0, 2**64)),
        lambda f: f.dp_quantile("x", 0.5, candidates=[0, 2**63]),
        lambda f: f.dp_sum("x", (0, 2**99)),
        lambda f: f.filter(pl.col("x") * pl.col("x") > 5).dp_count(),
    ],
)
def test_what_cannot_be_right_is_refused_when_it_is_built(asked: Any) -> None:
    with pytest.raises((dp.InvalidBounds, dp.UnsupportedOperation)) as refused:
        asked(column(EDGES)).plan(epsilon=1)
    assert refused.value.remedy


def test_long_durations_are_summed_in_milliseconds_or_refused() -> None:
    week = timedelta(days=7)
    spans = pl.Series("d", [week] * 100, dtype=pl.Duration("ns"))
    frame = protected(pl.DataFrame({"d": spans}))
    total = exactly(frame.dp_sum("d", (timedelta(0), week)))["d"]
    assert total.dtype == pl.Duration("ms")
    assert abs(total.item() / (100 * week) - 1) < 1e-6
    with pytest.raises(dp.InvalidBounds, match="24 days"):
        frame.dp_sum("d", (timedelta(0), timedelta(days=400))).plan(epsilon=1)


def test_totals_of_individuals_beyond_int64_are_refused() -> None:
    rows = pl.DataFrame({"id": [1, 2], "x": pl.Series([2**63, 1], dtype=pl.UInt64)})
    frame = dp.Session(epsilon=1).protect(rows, dp.Identifier("id"))
    with pytest.raises(dp.UnsupportedOperation, match="beyond 64 bits"):
        frame.agg(pl.col("x").dp_sum((0, 100), per="unit")).plan(epsilon=1, limits=None)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("total * total", 2.304e19),
        ("total**2", 2.304e19),
        ("total * total / rows", 1.92e14),
        ("rows**4", 2.0736e20),
        ("total * 10**10", 4.8e19),
        ("total // 2**70", 0.0),
        ("-(total - total - 2**63)", 2.0**63),
        ("wide / rows", 2.0**62),
        ("wide // rows", 2.0**62),
        ("wide**2", 2.0**124 * 120_000**2),
        ("wide * 2**64", 2.0**126 * 120_000),
        ("total * total * total * total", 4.8e9**4),
    ],
)
def test_arithmetic_beyond_int64_is_float_and_right(text: str, expected: float) -> None:
    """Polars would wrap it, or fail where a Decimal divides by zero or has over 38 digits."""
    frame = pl.DataFrame({"x": [30_000, 50_000] * 60_000, "u": 2**62})
    private = protected(frame, bounds={"x": (0, 10**6), "u": (0, 2**62)})
    names = {"total": pl.col("x").sum(), "wide": pl.col("u").sum(), "rows": pl.len()}
    query = private.agg(y=eval(text, names))
    assert exactly(query)["y"].dtype == pl.Float64
    assert exactly(query).item() == pytest.approx(expected)
    low, value, high = (
        query.collect(epsilon=10**6, interval=0.99).select("y_low", "y", "y_high").row(0)
    )
    assert low <= value <= high


def test_arithmetic_that_fits_stays_int64() -> None:
    private = protected(pl.DataFrame({"x": [3, 4]}), bounds={"x": (0, 100)})
    total, rows = pl.col("x").sum(), pl.len()
    texts = (total * 1000, total + total, total // rows, -total, total - rows, rows**1)
    found = exactly(private.agg(*(e.alias(f"y{i}") for i, e in enumerate(texts))))
    assert found.dtypes == [pl.Int64] * 6
    assert found.row(0) == (7000, 14, 3, -7, 5, 2)
