"""Values as numbers, at the limits of their types, and back again."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.aggregate import shift_by
from dpframe.aggregates.cells import BinCells, PointCells, PositionCells
from dpframe.aggregates.histogram import _bins_frame
from dpframe.aggregates.quantile import _decode
from dpframe.aggregates.values import Value, as_series, number_of, show_value, whole_series
from dpframe.core.dtypes import FLOAT64, INT64, DType, datetime_type, domain_of_dtype, duration_type
from dpframe.core.tree import Column
from dpframe.errors import DPFrameError, InvalidBounds
from dpframe.rows.constants import physical
from tests.api.exactly import exactly, protected

WHOLE = Value(Column("x"), domain_of_dtype(INT64))
REAL = Value(Column("x"), domain_of_dtype(FLOAT64))
MOST, LEAST = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (pl.Int128, [-(2**100), LEAST - 1, LEAST, -1, None, MOST, MOST + 1, 2**90],
         [LEAST, LEAST, LEAST, -1, None, MOST, MOST, MOST]),
        (pl.UInt64, [0, MOST, MOST + 1, 2**64 - 1, None], [0, MOST, MOST, MOST, None]),
    ],
)  # fmt: skip
def test_numbers_that_int64_does_not_hold_are_moved_to_its_ends(
    dtype: Any, values: list[int | None], expected: list[int | None]
) -> None:
    """Not to null, which would leave them out."""
    value = Value(Column("x"), domain_of_dtype(DType(str(dtype))))
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    assert frame.select(value.number(pl.col("x"), pl))["x"].to_list() == expected


@pytest.mark.parametrize("base", [LEAST, -(2**60), 2**60, MOST - 2])
def test_neighbouring_whole_candidates_are_told_apart_where_floats_are_not(base: int) -> None:
    cells = PositionCells(WHOLE, (Fraction(base), Fraction(base + 1), Fraction(base + 2)))
    frame = pl.DataFrame({"x": pl.Series([base, base + 1, base + 2], dtype=pl.Int64)})
    found = frame.select(r=cells.row({"x": WHOLE.domain}, pl))["r"].to_list()
    assert found == [1, 3, 5]


def test_chosen_points_are_cut_to_whole_numbers_towards_zero() -> None:
    cells = PointCells(WHOLE, Fraction(-5, 2), Fraction(3, 4), 8)
    found = _decode("x", list(range(8)), cells, INT64)
    assert found.to_list() == [int(Fraction(-5, 2) + Fraction(3, 4) * i) for i in range(8)]


@pytest.mark.parametrize("power", [1, 999, 1010, 1074])
def test_distances_are_scaled_to_steps_however_small_these_are(power: int) -> None:
    """Floats reach 2**1024, and steps that are smaller than one over that."""
    cells = PointCells(REAL, Fraction(0), Fraction(1, 2**power), 4)
    assert math.prod(map(Fraction, cells._scales)) == 2**power
    frame = pl.DataFrame({"x": [float(Fraction(i, 2**power)) for i in range(4)]})
    assert frame.select(cells.row({"x": REAL.domain}, pl)).to_series().to_list() == [0, 1, 2, 3]


@pytest.mark.parametrize("value", [WHOLE, REAL])
def test_edges_of_bins_are_shown_as_they_are(value: Value) -> None:
    halves = BinCells(value, (Fraction(0), Fraction(5, 2), Fraction(5)), True)
    shown = _bins_frame("x", halves)
    assert shown["lower"].to_list() == [0.0, 2.5, None]
    assert shown["upper"].to_list() == [2.5, 5.0, None]
    whole = _bins_frame("x", BinCells(value, (Fraction(0), Fraction(3), Fraction(5)), False))
    assert whole["lower"].dtype == (pl.Int64 if value.is_whole else pl.Float64)


@pytest.mark.parametrize("q", [1.000001, 1.5, 2, -0.1, [0.5, 1.25]])
def test_quantiles_beyond_the_largest_are_refused(q: Any) -> None:
    frame = dp.Session(epsilon=1).protect(pl.DataFrame({"x": [1.0]}), dp.Rows())
    with pytest.raises(DPFrameError, match="between 0 and 1"):
        frame.agg(pl.col("x").dp_quantile(q, (0, 1)))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([1 + 0.45 * 2.0**-29] * 500, (0, 3)),
        ([1 - 0.45 * 2.0**-29] * 500, (0, 3)),
        ([512 * 99 + 200] * 500, (0, 2**40)),
        ([-512 * 99 - 200] * 500, (-(2**40), 0)),
    ],
)
def test_intervals_of_means_hold_them_however_values_were_rounded(
    values: list[Any], bounds: Any
) -> None:
    """Each row may lie half a step from where it is counted, all of them on the same side."""
    frame = dp.Session(epsilon=10**18).protect(pl.DataFrame({"x": values}), dp.Rows())
    mean = pl.col("x").dp_mean(bounds)  # type: ignore[attr-defined]
    released = frame.agg(mean).collect(epsilon=10**16, interval=0.95)
    assert released["x_low"].item() <= values[0] <= released["x_high"].item()
    assert released["x_high"].item() - released["x_low"].item() <= 1e-3 * bounds[1] + 2**12


TEMPORAL = [
    DType("Date"),
    DType("Time"),
    *(DType(name, unit) for name in ("Datetime", "Duration") for unit in ("ms", "us", "ns")),
]


@pytest.mark.parametrize("dtype", TEMPORAL, ids=str)
def test_numbers_that_a_temporal_type_does_not_hold_are_null_and_no_failure(
    dtype: DType,
) -> None:
    beyond = [1e300, -1e300, float("nan"), float("inf"), 1e19, -1e19]
    assert as_series("x", [*beyond, 1.0], dtype).is_null().to_list() == [True] * 6 + [False]
    if dtype.name == "Time":
        assert as_series("x", [-1.0, 86_400e9], dtype).null_count() == 2
    if dtype.name == "Date":  # of 32 bits
        assert as_series("x", [-1e12, 2.0**31], dtype).null_count() == 2
    found = whole_series("x", [2**62, -(2**62), 7], dtype)
    assert found.null_count() == (2 if dtype.name in ("Date", "Time") else 0)


@pytest.mark.parametrize("dtype", TEMPORAL, ids=str)
@pytest.mark.parametrize("power", [*range(0, 40, 3), 62, 63, 64])
def test_numbers_are_shown_as_what_python_holds_or_in_units(dtype: DType, power: int) -> None:
    for number in (10**power, -(10**power), 2**power, -(2**power)):
        shown = show_value(Fraction(number), dtype)
        assert shown != "None"
        if abs(number) <= 1000:
            assert not shown.endswith("seconds")
        if abs(number) >= 10**24 and dtype.name != "Time":
            assert shown.endswith("days" if dtype.name == "Date" else "seconds")


@pytest.mark.parametrize(
    ("second", "shown"),
    [
        (-62_135_596_801, "-62135596801000 milliseconds"),
        (-62_135_596_800, "0001-01-01 00:00:00"),
        (253_402_300_799, "9999-12-31 23:59:59"),
        (253_402_300_800, "253402300800000 milliseconds"),
    ],
)
def test_moments_are_shown_in_words_within_the_calendar(second: int, shown: str) -> None:
    assert show_value(Fraction(1000 * second), datetime_type("ms")) == shown


def test_times_are_shown_within_the_day() -> None:
    assert show_value(Fraction(-5), DType("Time")) == "00:00:00"
    assert show_value(Fraction(10**20), DType("Time")) == "23:59:59.999999"
    assert show_value(Fraction(10**7), DType("Date")) == "10000000 days"
    assert show_value(Fraction(10**7), DType("Duration", "ms")) == "2:46:40"
    assert show_value(Fraction(86_400_000 * 10**7), DType("Duration", "ms")).startswith(
        "10000000 d"
    )


@pytest.mark.parametrize("by", [0, 1, -1, 2**40, -(2**40), MOST, -MOST, 2**70, -(2**70)])
def test_moved_integers_stay_at_the_limits(by: int) -> None:
    values = [0, 5, -5, 2**62, -(2**62), MOST - 1, MOST, 1 - MOST, -MOST]
    moved = shift_by(np.array(values, np.int64), by).tolist()
    step = max(-MOST, min(MOST, by))
    for value, found in zip(values, moved, strict=True):
        exact = value + step
        assert found == exact if abs(exact) <= MOST else abs(found) >= MOST
        assert (found > 0) == (exact > 0)


BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2024, 1, 1, 12)
KINDS = {
    "Date": (DType("Date"), date(2024, 1, 1)),
    "Datetime": (datetime_type(), NOON),
    "zoned": (datetime_type("us", "Europe/Berlin"), NOON.replace(tzinfo=BERLIN)),
    "Duration": (duration_type("us"), timedelta(hours=1)),
    "Time": (DType("Time"), time(12)),
}


@pytest.mark.parametrize("column", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_constants_of_another_kind_of_time_are_refused(column: str, given: str) -> None:
    """A time of day means no moment, and a clock without a zone no instant."""
    dtype, scalar = KINDS[column][0], KINDS[given][1]
    if column == given or {column, given} == {"Date", "Datetime"}:
        assert number_of(scalar, dtype, "here") == physical(scalar, dtype)
        return
    with pytest.raises(InvalidBounds):
        number_of(scalar, dtype, "here")


@pytest.mark.parametrize(
    "ask",
    [
        lambda at, f: f.dp_histogram("at", at),
        lambda at, f: f.dp_cdf("at", at),
        lambda at, f: f.dp_mean("at", at),
        lambda at, f: f.agg(dp.quantile("at", 0.5, candidates=at)),
    ],
)
def test_clocks_without_a_zone_are_no_edges_of_instants(ask: Any) -> None:
    days = [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    local = [day.replace(tzinfo=BERLIN) for day in days]
    private = protected(pl.DataFrame({"at": pl.Series(days).dt.replace_time_zone("Europe/Berlin")}))
    with pytest.raises(InvalidBounds, match="has no time zone"):
        ask(days, private)
    exactly(ask(local, private))
    assert exactly(private.dp_histogram("at", local))["count"].to_list() == [2]
