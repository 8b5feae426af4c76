"""Parsing: what is read, what is null, and formats that are refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from dpframe.core.dtypes import DType
from dpframe.errors import UnsupportedOperation
from tests.rows.running import apply, assert_as_reference, refusal_of

TEXTS = [
    None,
    "",
    "x",
    "2020-01-02",
    "2020-1-2",
    " 2020-01-02",
    "2020-01-02 ",
    "2020-02-30",
    "2023-02-29",
    "0001-01-01",
    "0000-12-31",
    "-0001-01-01",
    "9999-12-31",
    "+12345-01-01",
    "99999-01-01",
    "+262143-01-01",
    "+99999999999-01-01",
    "٢٠٢٠-01-02",
    "20é0-01-02",
    "2020-01-02T03:04:05",
    "2020-01-02 03:04:05",
    "2020-01-02T03:04:60",
    "2016-12-31T23:59:60",
    "9999-12-31T23:59:60",
    "2020-01-02T24:00:00",
    "2020-01-02T03:04:05.5",
    "2020-01-02T03:04:05.123456789",
    "2020-01-02T03:04:05.1234567891234",
    "2020-01-02T03:04:05.",
    "2020-01-02T03:04:05Z",
    "2020-01-02T03:04:05+0100",
    "2020-01-02T03:04:05-05:30",
    "2020-01-02T03:04:05+2400",
    "0001-01-01T00:00:00+0100",
    "9999-12-31T23:59:59-0100",
    "1677-01-01T00:00:00",
    "2262-04-12T00:00:00",
    "23:59:59",
    "23:59:60",
    "12:30:60",
    "24:00:00",
    "7:5:3",
    "12:30",
    "00:00:00.999999999",
    "8640000000000",
]
COLUMN = pl.Series("x", TEXTS, dtype=pl.String)


@pytest.mark.parametrize("form", [None, "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])
def test_dates(form: str | None) -> None:
    assert_as_reference("str_to_date", COLUMN, format=form)


@pytest.mark.parametrize("form", [None, "%H:%M:%S", "%H:%M", "%H:%M:%S%.f"])
def test_times(form: str | None) -> None:
    assert_as_reference("str_to_time", COLUMN, format=form)


@pytest.mark.parametrize("unit", ["ms", "us", "ns", None])
@pytest.mark.parametrize(
    "form",
    [None, "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%z"],
)
def test_datetimes(form: str | None, unit: str | None) -> None:
    assert_as_reference("str_to_datetime", COLUMN, format=form, unit=unit, zone=None)


def test_local_times_that_are_skipped_or_shown_twice_are_null() -> None:
    column = pl.Series(["2021-03-28 02:30", "2021-10-31 02:30", "2021-07-01 00:00", None])
    found = apply(
        "str_to_datetime", column, format="%Y-%m-%d %H:%M", unit="us", zone="Europe/Amsterdam"
    )
    summer = datetime(2021, 7, 1, tzinfo=ZoneInfo("Europe/Amsterdam"))
    assert found == [None, None, summer, None]


def test_offsets_give_instants() -> None:
    column = pl.Series(["2020-01-02T03:04:05+0100"])
    form = "%Y-%m-%dT%H:%M:%S%z"
    instant = datetime(2020, 1, 2, 2, 4, 5, tzinfo=UTC)
    for zone in ("UTC", "America/New_York"):
        assert apply("str_to_datetime", column, format=form, unit="us", zone=zone) == [instant]


def test_named_parts() -> None:
    column = pl.Series(["Sat 05 Apr 2003", "Sun 05 Apr 2003", "Sat 05 Foo 2003"])
    assert apply("str_to_date", column, format="%a %d %b %Y") == [date(2003, 4, 5), None, None]
    column = pl.Series(["11:30 PM", "13:30 PM", "00:30 AM"])
    assert apply("str_to_time", column, format="%I:%M %p") == [time(23, 30), None, None]


@pytest.mark.parametrize("kind", ["date", "datetime", "time"])
@pytest.mark.parametrize(
    "form",
    ["", "%", "%Q", "%f", "%3f", "%.3f", "%s", "%+", "%Z", "%c", "%H", "%Y-%m-%d %H", "100%"],
)
def test_formats_that_are_refused(kind: str, form: str) -> None:
    options = {"unit": "us", "zone": None} if kind == "datetime" else {}
    error = refusal_of(f"str_to_{kind}", format=form, **options)
    assert isinstance(error, UnsupportedOperation)
    assert error.remedy


def test_formats_for_another_kind_are_refused() -> None:
    assert ".dt.date()" in str(refusal_of("str_to_date", format="%Y-%m-%d %z"))
    assert refusal_of("str_to_date", format="%H:%M")
    assert refusal_of("str_to_time", format="%Y-%m-%d")
    assert "%.f" in str(refusal_of("str_to_time", format="%T%.6f"))


NUMBERS = [
    None,
    "",
    "0",
    "-0",
    "+5",
    "--5",
    " 1",
    "1 ",
    "1_0",
    "1e3",
    "٣",
    "0x10",
    "0b1",
    "ff",
    "zz",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "+",
    "00012",
]


@pytest.mark.parametrize("base", [2, 8, 10, 16, 36])
@pytest.mark.parametrize("name", ["Int8", "Int16", "UInt8", "UInt32", "Int64", "UInt64", "Int128"])
def test_integers(base: int, name: str) -> None:
    column = pl.Series("x", NUMBERS, dtype=pl.String)
    assert_as_reference("str_to_integer", column, base=base, dtype=DType(name))


def test_bases_that_do_not_exist_are_refused() -> None:
    for base in (0, 1, 37, -1, 2**40):
        assert refusal_of("str_to_integer", base=base, dtype=DType("Int64"))
    assert refusal_of("str_to_integer", base=10, dtype=DType("Float64"))
