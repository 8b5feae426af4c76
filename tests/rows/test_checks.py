"""Patterns, formats, durations and time zones are tried before any data is read."""

from __future__ import annotations

import polars as pl
import pytest

from dpframe.errors import UnsupportedOperation
from dpframe.parse.reader import read
from dpframe.rows import checks
from tests.parse.spellings import SCHEMA, evaluate


@pytest.mark.parametrize("pattern", ["x", "^a.*$", r"\d+(\.\d+)?", "(?i)A", "(?P<n>x)", ""])
def test_regular_expressions(pattern: str) -> None:
    assert checks.regex(pattern) == pattern


@pytest.mark.parametrize("pattern", ["(", "[", "*", r"(x)\1", "(?=x)", "a{100000}{1000}"])
def test_not_regular_expressions(pattern: str) -> None:
    with pytest.raises(UnsupportedOperation, match="regular expression"):
        checks.regex(pattern)


@pytest.mark.parametrize(
    "text", ["%Y-%m-%d", "%d/%m/%y", "%F %T%.f", "%Y-%m-%dT%H:%M:%S%z", "%+", "%#z", "%b %-d %Y"]
)
def test_formats(text: str) -> None:
    assert checks.format_string(text, "Datetime") == text


@pytest.mark.parametrize("text", ["%Q", "%", "%Y %", "%Y-%m-%d %H", "%Y-%m-%d %I:%M"])
def test_not_formats(text: str) -> None:
    with pytest.raises(UnsupportedOperation, match="format"):
        checks.format_string(text, "Datetime")


def test_a_time_needs_no_date() -> None:
    assert checks.format_string("%H", "Time") == "%H"


@pytest.mark.parametrize("text", ["1d", "-1mo", "1y2mo3d4h5m6s7ms8us9ns", "1q", "2w", "0d"])
def test_durations(text: str) -> None:
    assert checks.duration(text) == text


@pytest.mark.parametrize(
    "text", ["", "d", "1x", "1.5d", "1d ", "+1d", "1i", "1D", "20000y", "9" * 50 + "d"]
)
def test_not_durations(text: str) -> None:
    with pytest.raises(UnsupportedOperation, match="duration"):
        checks.duration(text)


_DAY = 86_400 * 10**9
_LENGTHS = {"us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3_600 * 10**9}
_LENGTHS |= {"ns": 1, "d": _DAY, "w": 7 * _DAY, "mo": 30 * _DAY, "q": 91 * _DAY, "y": 365 * _DAY}


@pytest.mark.parametrize("unit", _LENGTHS)
def test_durations_are_as_long_in_every_unit(unit: str) -> None:
    """About 10,000 years, give or take leap days."""
    most = 10_000 * 365 * _DAY // _LENGTHS[unit]
    assert checks.duration(f"{most * 49 // 50}{unit}")
    with pytest.raises(UnsupportedOperation, match="longer than 10000 years"):
        checks.duration(f"{most * 51 // 50}{unit}")


@pytest.mark.parametrize("text", ["1d", "1h30m", "1y3mo", "2w", "15m"])
def test_windows(text: str) -> None:
    assert checks.window(text) == text


@pytest.mark.parametrize("text", ["0d", "-1d", "1mo1d", "1w1d", "1d12h", "1x"])
def test_not_windows(text: str) -> None:
    with pytest.raises(UnsupportedOperation, match=r"window|duration"):
        checks.window(text)


def test_time_zones() -> None:
    assert checks.time_zone("Europe/Paris") == "Europe/Paris"
    assert checks.time_zone("utc") == "UTC"


@pytest.mark.parametrize("name", ["Mars/Phobos", "", "*", "Europe/paris!"])
def test_not_time_zones(name: str) -> None:
    with pytest.raises(UnsupportedOperation, match="time zone"):
        checks.time_zone(name)


@pytest.mark.parametrize(
    "spelling",
    [
        "s.str.contains('(')",
        "s.str.replace('(', '')",
        "s.str.replace_all('(', '')",
        "s.str.extract('(')",
        "s.str.to_date('%Q')",
        "s.str.to_datetime('%Y-%m-%d %H')",
        "d.dt.truncate('1x')",
        "d.dt.round('-1d')",
        "d.dt.offset_by('one day')",
    ],
)
def test_the_reader_refuses_them(spelling: str) -> None:
    with pytest.raises(UnsupportedOperation) as caught:
        read(evaluate(spelling), SCHEMA)
    assert caught.value.remedy


@pytest.mark.parametrize("values", [["2020-01-02"], ["x"], [""], [None], ["2020-01-02", "x"], []])
@pytest.mark.parametrize("text", ["%Y-%m-%d", "%d/%m/%y", "%F %T%.f", "%Y", "%H:%M", "%%", ""])
def test_an_accepted_format_fails_on_no_text(values: list[str], text: str) -> None:
    checks.format_string(text, "Datetime")
    series = pl.Series(values, dtype=pl.String)
    for dtype in (pl.Date, pl.Datetime("us"), pl.Time):
        assert len(series.str.strptime(dtype, text, strict=False)) == len(values)
