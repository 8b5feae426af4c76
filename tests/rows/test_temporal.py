"""Operations on dates, times and durations against plain Python."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import polars as pl
import pytest

from tests.rows.running import apply, assert_as_reference, physical

MOMENTS = [
    None,
    datetime(1, 1, 1),
    datetime(1, 1, 8, 3, 30),
    datetime(4, 2, 29, 12),
    datetime(1582, 10, 10),
    datetime(1899, 12, 31, 23, 59, 59, 999999),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1),
    datetime(1970, 1, 1, 0, 0, 0, 1),
    datetime(2000, 2, 29, 13, 14, 15, 161718),
    datetime(2001, 1, 1),
    datetime(2019, 12, 30, 6),
    datetime(2020, 1, 31, 11, 30),
    datetime(2020, 2, 15, 12),
    datetime(2020, 12, 31, 12, 30, 30, 500500),
    datetime(2021, 1, 3, 12),
    datetime(2100, 2, 28, 0, 45),
    datetime(9999, 11, 15),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
]
MICROSECONDS = pl.Series("x", MOMENTS, dtype=pl.Datetime("us"))
MILLISECONDS = MICROSECONDS.dt.truncate("1ms").dt.cast_time_unit("ms")
NANOSECONDS = pl.Series(
    "x", [m for m in MOMENTS if m is None or 1700 < m.year < 2200], dtype=pl.Datetime("ns")
)
DATES = pl.Series("x", [m and m.date() for m in MOMENTS], dtype=pl.Date)
TIMES = pl.Series("x", [m and m.time() for m in MOMENTS], dtype=pl.Time)
DATETIMES = [MICROSECONDS, MILLISECONDS, NANOSECONDS]
SPANS = pl.Series(
    "x",
    [
        None,
        *(
            timedelta(microseconds=m)
            for m in (0, 1, -1, 999, -1500, 10**6, -(10**6) - 1, 86_400 * 10**6, -(3600 * 10**6))
        ),
        timedelta(days=100_000),
        timedelta(days=-200_000, microseconds=7),
    ],
    dtype=pl.Duration("us"),
)
DATE_PARTS = (
    "year iso_year quarter month week weekday day ordinal_day century millennium is_leap_year "
    "days_in_month month_start month_end date"
)
CLOCK_PARTS = "hour minute second millisecond microsecond nanosecond time"


@pytest.mark.parametrize("part", DATE_PARTS.split())
@pytest.mark.parametrize("column", [*DATETIMES, DATES], ids=lambda c: str(c.dtype))
def test_parts_of_dates(part: str, column: pl.Series) -> None:
    assert_as_reference(f"dt_{part}", column)


@pytest.mark.parametrize("part", CLOCK_PARTS.split())
@pytest.mark.parametrize("column", [*DATETIMES, TIMES], ids=lambda c: str(c.dtype))
def test_parts_of_times(part: str, column: pl.Series) -> None:
    assert_as_reference(f"dt_{part}", column)


@pytest.mark.parametrize(
    "every",
    ["1h", "90m", "15m", "7s", "500ms", "1d", "5d", "1w", "3w", "1mo", "5mo", "1q", "1y", "100y"],
)
@pytest.mark.parametrize("column", DATETIMES, ids=lambda c: str(c.dtype))
def test_boundaries(every: str, column: pl.Series) -> None:
    if every == "100y" and column.dtype == pl.Datetime("ns"):
        return
    assert_as_reference("dt_truncate", column, every=every)
    assert_as_reference("dt_round", column, every=every)


@pytest.mark.parametrize("every", ["1d", "5d", "1w", "3w", "1mo", "5mo", "1q", "1y", "100y"])
def test_boundaries_of_dates(every: str) -> None:
    assert_as_reference("dt_truncate", DATES, every=every)
    assert_as_reference("dt_round", DATES, every=every)


@pytest.mark.parametrize(
    "by", ["1d", "-1d", "1mo", "-1mo", "13mo", "1y", "-4y", "1w", "1mo2d", "-1mo2d", "1q3w2d", "0d"]
)
def test_offsets_of_dates(by: str) -> None:
    for column in [DATES, *DATETIMES]:
        assert_as_reference("dt_offset_by", column, by=by)


@pytest.mark.parametrize(
    "by", ["1h", "-36h", "1d12h", "-1mo3h30m", "250ms", "-1s", "9999y", "-9998y", "90000d"]
)
def test_offsets_of_datetimes(by: str) -> None:
    columns = DATETIMES if by[-1] in "hms" else DATETIMES[:2]
    for column in columns:
        assert_as_reference("dt_offset_by", column, by=by)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_units(unit: str) -> None:
    for column in [DATES, *DATETIMES]:
        assert_as_reference("dt_timestamp", column, unit=unit)
    for column in [SPANS, *DATETIMES]:
        assert_as_reference("dt_cast_time_unit", column, unit=unit)


@pytest.mark.parametrize(
    "unit", ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]
)
def test_totals(unit: str) -> None:
    assert_as_reference(f"dt_total_{unit}", SPANS)


INT64 = (-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1, None)
EXTREME_OPERATIONS = [
    *((f"dt_{part}", {}) for part in f"{DATE_PARTS} {CLOCK_PARTS}".split()),
    *((op, {"every": e}) for op in ("dt_truncate", "dt_round") for e in ("1h", "1w", "1y")),
    *(("dt_offset_by", {"by": by}) for by in ("1mo", "-1mo", "1h", "-1h", "140y", "-140y")),
    *(("dt_replace_time_zone", {"zone": z}) for z in (None, "UTC", "Asia/Tokyo")),
    ("dt_convert_time_zone", {"zone": "Asia/Tokyo"}),
]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Amsterdam", "Pacific/Apia"])
@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize(("op", "options"), EXTREME_OPERATIONS, ids=str)
def test_moments_outside_the_calendar_are_null(
    op: str, options: dict[str, str | None], unit: str, zone: str | None
) -> None:
    per_day = 86_400 * (1000 if unit == "ms" else 10**6)
    outside = [*INT64, -719_163 * per_day, 2_932_897 * per_day, 95_026_237 * per_day]
    column = pl.Series("x", outside, dtype=pl.Int64).cast(pl.Datetime(unit, zone))  # type: ignore[arg-type]
    results = physical(op, column, **options)
    if op == "dt_offset_by":  # an offset does not bring back what was outside
        assert set(results) == {None}
    else:
        assert results == [None] * len(outside)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Amsterdam", "Pacific/Apia"])
@pytest.mark.parametrize(("op", "options"), EXTREME_OPERATIONS, ids=str)
def test_all_nanoseconds_are_safe(
    op: str, options: dict[str, str | None], zone: str | None
) -> None:
    column = pl.Series("x", INT64, dtype=pl.Int64).cast(pl.Datetime("ns", zone))
    results = physical(op, column, **options)
    assert results[-1] is None


@pytest.mark.parametrize("part", DATE_PARTS.split())
def test_days_outside_the_calendar_are_null(part: str) -> None:
    outside = [-(2**31), 2**31 - 1, -719_163, 2_932_897, 95_026_237, -96_465_293, None]
    column = pl.Series("x", outside, dtype=pl.Int32).cast(pl.Date)
    assert physical(f"dt_{part}", column) == [None] * len(outside)
    for op, options in EXTREME_OPERATIONS[-13:-4]:
        if (op != "dt_truncate" and "h" not in str(options)) or options.get("every") == "1y":
            assert set(physical(op, column, **options)) == {None}


def test_totals_and_units_that_do_not_fit_are_null() -> None:
    column = pl.Series("x", INT64, dtype=pl.Int64)
    spans = column.cast(pl.Duration("us"))
    assert physical("dt_total_nanoseconds", spans) == [None] * 5
    assert physical("dt_total_microseconds", spans) == list(INT64)
    assert physical("dt_total_days", spans)[:1] == [-106_751_991]
    assert physical("dt_cast_time_unit", spans, unit="ns") == [None] * 5
    moments = column.cast(pl.Datetime("ms"))
    assert physical("dt_timestamp", moments, unit="us") == [None] * 5
    assert physical("dt_timestamp", moments, unit="ms") == list(INT64)
    edge = pl.Series("x", [(2**63 - 1) // 1000, (2**63 - 1) // 1000 + 1]).cast(pl.Datetime("us"))
    assert physical("dt_cast_time_unit", edge, unit="ns") == [9_223_372_036_854_775_000, None]


def test_nanoseconds_are_kept() -> None:
    column = pl.Series("x", [1_123_456_789, -1]).cast(pl.Datetime("ns"))
    assert apply("dt_nanosecond", column) == [123_456_789, 999_999_999]
    assert physical("dt_cast_time_unit", column, unit="us") == [1_123_456, -1]
    clock = pl.Series("x", [86_399_999_999_999]).cast(pl.Time)
    assert apply("dt_nanosecond", clock) == [999_999_999]


def test_half_way_is_rounded_up() -> None:
    column = pl.Series("x", [datetime(2020, 1, 1, 0, 30), datetime(2020, 1, 1, 0, 29, 59)])
    assert apply("dt_round", column, every="1h") == [datetime(2020, 1, 1, 1), datetime(2020, 1, 1)]
    days = pl.Series("x", [date(2021, 2, 14), date(2021, 2, 15), date(2020, 2, 15)])
    first, next_month = date(2021, 2, 1), date(2021, 3, 1)
    assert apply("dt_round", days, every="1mo") == [first, next_month, date(2020, 2, 1)]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "America/St_Johns"])
@pytest.mark.parametrize("every", ["1d", "3d", "1w", "5w", "1mo", "2mo", "1q", "7mo", "1y"])
def test_rounding_is_as_in_polars(every: str, zone: str | None) -> None:
    """Half a window counts months as 28 days and days as 24 hours."""
    hours = pl.datetime_range(datetime(2023, 1, 1), datetime(2025, 3, 1), "83h", eager=True)
    times = hours.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else hours
    assert apply("dt_round", times, every=every) == times.dt.round(every).to_list()
    days = hours.dt.date()
    assert apply("dt_round", days, every=every) == days.dt.round(every).to_list()


def test_time_of_day() -> None:
    column = pl.Series("x", [datetime(2020, 1, 1, 7, 8, 9, 10)])
    assert apply("dt_time", column) == [time(7, 8, 9, 10)]
