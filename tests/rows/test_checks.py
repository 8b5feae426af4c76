"""Patterns, formats, durations and time zones are tried before any data is read."""

from __future__ import annotations

import polars as pl
import pytest

from dpframe.errors import UnsupportedOperation
from dpframe.parse.reader import read
from dpframe.rows.polars_dtypes import require_zone, time_zone
from dpframe.rows.strings import check_format, check_pattern
from dpframe.rows.temporal import span, window
from tests.parse.spellings import SCHEMA, evaluate


@pytest.mark.parametrize("pattern", ["x", "^a.*$", r"\d+(\.\d+)?", "(?i)A", "(?P<n>x)", ""])
def test_regular_expressions(pattern: str) -> None:
    assert check_pattern(pattern) == 1 + pattern.count("(") - pattern.count("(?i)")


@pytest.mark.parametrize("pattern", ["(", "[", "*", r"(x)\1", "(?=x)", "a{100000}{1000}"])
def test_not_regular_expressions(pattern: str) -> None:
    with pytest.raises(UnsupportedOperation, match="regular expression"):
        check_pattern(pattern)


@pytest.mark.parametrize("text", ["%Y-%m-%d", "%d/%m/%y", "%F %T%.f", "%Y-%m-%dT%H:%M:%S%z"])
def test_formats(text: str) -> None:
    check_format(text, "Datetime")


def test_a_time_needs_no_date() -> None:
    check_format("%H:%M", "Time")


@pytest.mark.parametrize("text", ["1d", "-1mo", "1y2mo3d4h5m6s7ms8us9ns", "1q", "2w", "0d"])
def test_durations(text: str) -> None:
    assert span(text).negative == text.startswith("-")


def test_zeros_before_a_number_are_no_part_of_it() -> None:
    assert span("0" * 50 + "3d") == span("3d")


@pytest.mark.parametrize(
    "text", ["", "d", "1x", "1.5d", "1d ", "+1d", "1i", "1D", "20000y", "9" * 50 + "d"]
)
def test_not_durations(text: str) -> None:
    with pytest.raises(UnsupportedOperation, match="duration"):
        span(text)


@pytest.mark.parametrize("text", ["1d", "1h30m", "1y3mo", "2w", "15m"])
def test_windows(text: str) -> None:
    assert window(text) == span(text)


@pytest.mark.parametrize("text", ["0d", "-1d", "1mo1d", "1w1d", "1d12h", "1x"])
def test_not_windows(text: str) -> None:
    with pytest.raises(UnsupportedOperation, match=r"window|duration"):
        window(text)


def test_time_zones() -> None:
    assert time_zone("Europe/Paris") == "Europe/Paris"
    assert time_zone("utc") == "UTC"
    require_zone("UTC")
    with pytest.raises(UnsupportedOperation, match="'utc' is not a time zone"):
        require_zone("utc")


@pytest.mark.parametrize("name", ["Mars/Phobos", "", "*", "Europe/paris!"])
def test_not_time_zones(name: str) -> None:
    with pytest.raises(UnsupportedOperation, match="time zone"):
        time_zone(name)


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
@pytest.mark.parametrize("text", ["%Y-%m-%d", "%d/%m/%y", "%F %T%.f"])
def test_an_accepted_format_fails_on_no_text(values: list[str], text: str) -> None:
    check_format(text, "Datetime")
    series = pl.Series(values, dtype=pl.String)
    for dtype in (pl.Date, pl.Datetime("us"), pl.Time):
        assert len(series.str.strptime(dtype, text, strict=False)) == len(values)
