"""Spans of time, as they are written and as long as they last."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest

from dpframe.rows.temporal import span

STARTS = pl.datetime_range(datetime(2023, 1, 1), datetime(2025, 1, 1), "1d", eager=True)


@pytest.mark.parametrize(
    "text",
    ["1ns", "999us", "1s", "59m1s", "36h", "1d", "3d", "1w", "2w5d", "1mo", "7mo", "1q", "1y2w"],
)
def test_a_span_lasts_as_many_seconds_at_most(text: str) -> None:
    longest = (STARTS.dt.offset_by(text) - STARTS).max()
    assert isinstance(longest, timedelta)
    assert longest <= timedelta(seconds=span(text).seconds)
    assert timedelta(seconds=span(text).seconds) <= longest * 1.1 + timedelta(seconds=1)
