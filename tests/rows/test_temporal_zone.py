"""Zoned times around clock changes, against Python's own time zones.

Only from 1970 to 2090: before and after, Polars and Python know different rules.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from tests.rows.running import apply, assert_as_reference
from tests.rows.test_temporal import CLOCK_PARTS, DATE_PARTS

ZONES = (
    "UTC",
    "Europe/Amsterdam",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Asia/Beirut",
    "Pacific/Apia",
)
CHANGES = [
    datetime(2021, 3, 28, 1),
    datetime(2021, 10, 31, 1),
    datetime(2020, 3, 28, 22),
    datetime(2020, 10, 3, 15, 30),
    datetime(2021, 4, 3, 15),
    datetime(2018, 11, 4, 3),
    datetime(2018, 2, 18, 2),
    datetime(2011, 12, 30, 10),
]
INSTANTS = [
    None,
    *(change + timedelta(minutes=15 * i) for change in CHANGES for i in range(-10, 11, 2)),
    *(change + timedelta(days=d, minutes=30) for change in CHANGES for d in (-31, -7, -1, 1, 30)),
    datetime(1970, 1, 1),
    datetime(2024, 2, 29, 23, 59, 59, 999999),
]
WALLS = pl.Series("x", INSTANTS, dtype=pl.Datetime("us"))


def zoned(zone: str) -> pl.Series:
    return WALLS.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


@pytest.mark.parametrize("zone", ZONES)
def test_parts_are_local(zone: str) -> None:
    for part in f"{DATE_PARTS} {CLOCK_PARTS}".split():
        assert_as_reference(f"dt_{part}", zoned(zone))


EVERY = ["15m", "1h", "2h", "12h", "1d", "2d", "1w", "1mo", "1q", "1y"]
OFFSETS = ["1h", "-1h", "1d", "-1d", "1w", "1mo", "-1mo", "1y", "1d12h", "-1mo2d3h", "36h"]


def pairs(lengths: list[str]) -> list[Any]:
    """Zones with lengths: two zones for each of these at once, and the others in the slow run."""
    return [
        pytest.param(zone, length, marks=[] if (i + j) % 3 == 0 else pytest.mark.slow)
        for i, zone in enumerate(ZONES)
        for j, length in enumerate(lengths)
    ]


@pytest.mark.parametrize(("zone", "every"), pairs(EVERY))
def test_boundaries_are_local(zone: str, every: str) -> None:
    assert_as_reference("dt_truncate", zoned(zone), every=every)
    assert_as_reference("dt_round", zoned(zone), every=every)


@pytest.mark.parametrize(("zone", "by"), pairs(OFFSETS))
def test_offsets(zone: str, by: str) -> None:
    assert_as_reference("dt_offset_by", zoned(zone), by=by)


@pytest.mark.parametrize("zone", ZONES)
def test_conversions(zone: str) -> None:
    for column in (WALLS, zoned("Europe/Amsterdam"), zoned("Pacific/Apia")):
        assert_as_reference("dt_convert_time_zone", column, zone=zone)
        assert_as_reference("dt_replace_time_zone", column, zone=zone)
    assert_as_reference("dt_replace_time_zone", zoned(zone), zone=None)
    for unit in ("ms", "us", "ns"):
        assert_as_reference("dt_timestamp", zoned(zone), unit=unit)


def test_skipped_and_repeated_times_are_null() -> None:
    walls = pl.Series("x", [datetime(2021, 3, 28, 2, 30), datetime(2021, 10, 31, 2, 30)])
    assert apply("dt_replace_time_zone", walls, zone="Europe/Amsterdam") == [None, None]
    before = pl.Series("x", [datetime(2021, 3, 27, 2, 30)]).dt.replace_time_zone("Europe/Amsterdam")
    assert apply("dt_offset_by", before, by="1d") == [None]


def test_a_repeated_hour_keeps_its_showing() -> None:
    both = pl.Series("x", [datetime(2021, 10, 31, 0, 30), datetime(2021, 10, 31, 1, 30)])
    column = both.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Amsterdam")
    found = apply("dt_truncate", column, every="1h")
    assert [f.astimezone(UTC).hour for f in found] == [0, 1]
