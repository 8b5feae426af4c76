"""Checks of constants that an engine would otherwise reject while it reads data.

What an engine does with a bad pattern, format or time zone may depend on the rows that it meets, so
each is tried out on a fixed public value first, and refused here if that fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

import polars as pl

from dpframe.errors import UnsupportedOperation

_DURATION = re.compile(r"-?(?:[0-9]+(?:ns|us|ms|mo|[smhdwqy]))+")
_PART = re.compile(r"([0-9]+)(ns|us|ms|mo|[smhdwqy])")
_YEARS = {
    "ns": 1 / (365 * 86_400 * 10**9),
    "us": 1 / (365 * 86_400 * 10**6),
    "ms": 1 / (365 * 86_400 * 10**3),
    "s": 1 / (365 * 86_400),
    "m": 1 / (365 * 1_440),
    "h": 1 / (365 * 24),
    "d": 1 / 365,
    "w": 1 / 52,
    "mo": 1 / 12,
    "q": 1 / 4,
    "y": 1.0,
}
_MAX_YEARS = 10_000
_CALENDAR = {"mo": "month", "q": "month", "y": "month", "w": "week", "d": "day"}


def _works(attempt: Callable[[], Any]) -> bool:
    """Whether an attempt on public values succeeds; a panic counts as a failure."""
    try:
        attempt()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a Polars panic is not an Exception
        return False
    return True


@lru_cache(maxsize=1024)
def _is_regex(pattern: str) -> bool:
    text = pl.Series(["a"])
    return _works(lambda: text.str.contains(pattern)) and _works(
        lambda: text.str.replace_all(pattern, "")
    )


def regex(pattern: str) -> str:
    """The pattern, if the engine can compile it."""
    if not _is_regex(pattern):
        raise UnsupportedOperation(
            f"{pattern!r} is not a regular expression of Polars' regex engine",
            remedy=(
                "correct the pattern, without look-around and back-references",
                "write literal=True",
            ),
        )
    return pattern


@lru_cache(maxsize=256)
def _is_format(text: str, dtype: str) -> bool:
    zoned = pl.Series([datetime(2020, 1, 2, 3, 4, 5)], dtype=pl.Datetime("us", "UTC"))
    kind: Any = {"Date": pl.Date, "Time": pl.Time}.get(dtype, pl.Datetime("us"))
    shown = text.replace("%#z", "%z")
    return _works(lambda: zoned.dt.to_string(shown)) and _works(
        lambda: pl.Series(["2020-01-02"]).str.strptime(kind, text, strict=False)
    )


def format_string(text: str, dtype: str) -> str:
    """The chrono format, if every directive exists and Polars accepts them together."""
    if not _is_format(text, dtype):
        raise UnsupportedOperation(
            f"{text!r} is not a format that Polars can parse a {dtype} with",
            remedy='write it with chrono directives, for example "%Y-%m-%d" or "%Y-%m-%d %H:%M:%S"',
        )
    return text


@lru_cache(maxsize=256)
def _canonical_zone(name: str) -> str | None:
    try:
        cast = pl.Series([0], dtype=pl.Int64).cast(pl.Datetime("us", name))
        cast.dt.year()  # some settings defer the check of the name to its first use
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        return None
    zone: str | None = getattr(cast.dtype, "time_zone", None)
    return zone


def time_zone(name: str) -> str:
    """The time zone by the name that Polars knows it under."""
    zone = _canonical_zone(name) if name and name != "*" else None
    if zone is None:
        raise UnsupportedOperation(
            f"{name!r} is not a time zone",
            remedy='use a name of the time zone database, such as "UTC" or "Europe/Paris"',
        )
    return zone


def duration(text: str) -> str:
    """A duration such as ``"-1mo3d"``, within 10,000 years."""
    if not _DURATION.fullmatch(text):
        raise UnsupportedOperation(
            f"{text!r} is not a duration",
            remedy='write a number and a unit, such as "1d", "2h30m" or "1mo" '
            "(ns, us, ms, s, m, h, d, w, mo, q, y)",
        )
    years = sum(int(count[:30]) * _YEARS[unit] for count, unit in _PART.findall(text))
    if years > _MAX_YEARS:
        raise UnsupportedOperation(
            f"the duration {text!r} is longer than {_MAX_YEARS} years", remedy="use a shorter one"
        )
    return text


def window(text: str) -> str:
    """A duration to truncate or round to: positive, and of one kind of unit."""
    parts = _PART.findall(duration(text))
    if text.startswith("-") or not any(int(count) for count, _ in parts):
        raise UnsupportedOperation(
            f"a window of {text!r} is not positive", remedy='use a positive one, such as "1d"'
        )
    if len({_CALENDAR.get(unit, "time") for _, unit in parts}) > 1:
        raise UnsupportedOperation(
            f"a window of {text!r} mixes months, weeks, days or parts of a day",
            remedy='use one kind of unit, such as "36h" or "14d"',
        )
    return text
