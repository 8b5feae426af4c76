"""Streams that wait for rows that come late: no period comes out before its time, and what came out
once comes out again whatever the time is.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.frames.nights import Delay
from tests.clocks import Set
from tests.ledger.ledgers import Place

START = dt.date(2027, 3, 1)
ZONES = [
    *("Europe/Zurich", "America/New_York", "America/Havana", "America/Santiago", "Africa/Cairo"),
    *("Asia/Tokyo", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns"),
]


def visits(dtype: Any = pl.Date) -> pl.DataFrame:
    days = pl.Series("day", [START + dt.timedelta(days=n % 40) for n in range(400)])
    if dtype != pl.Date:
        days = days.cast(pl.Datetime("us")).dt.replace_time_zone(dtype.time_zone)
    return pl.DataFrame([days])


def stream_of(session: dp.Session, frame: pl.DataFrame | None = None, **options: Any) -> dp.Stream:
    protected = session.protect(visits() if frame is None else frame, dp.Rows(), name="visits")
    options = {"by": "day", "start": START, "periods": 31, "delay": "2d", "rho": 1, **options}
    return session.stream("visits", protected.agg(dp.count().alias("n")), **options)


def test_a_period_waits_until_its_delay_has_passed(place: Place, set_clock: Set) -> None:
    session = dp.Session(rho=1, ledger=place)
    stream = stream_of(session)
    spent = session.spent
    set_clock(2027, 3, 12, 23, 59, 59, 999_999)
    assert stream.due(dt.date(2027, 3, 10)) == dt.datetime(2027, 3, 13, tzinfo=dt.UTC)
    for ask in (stream.release, lambda day: stream.window(day, 3)):
        with pytest.raises(dp.TooEarly, match="from 2027-03-13 00:00:00 UTC on") as refused:
            ask(dt.date(2027, 3, 10))
        assert refused.value.due == stream.due(dt.date(2027, 3, 10))
    assert not stream.periods["drawn"].any()
    set_clock(2027, 3, 13)
    found = stream.release(dt.date(2027, 3, 10))
    with pytest.raises(dp.TooEarly):
        stream.release(dt.date(2027, 3, 11))
    assert stream.periods["drawn"].to_list() == [True] * 10 + [False] * 21
    set_clock(2026, 1, 1)  # a clock that was put back takes nothing back
    again = stream_of(dp.Session(rho=1, ledger=place))
    assert again.release(dt.date(2027, 3, 10)).equals(found)
    assert again.release(dt.date(2027, 3, 3))["period"].item() == dt.date(2027, 3, 3)
    with pytest.raises(dp.TooEarly):
        again.release(dt.date(2027, 3, 11))
    assert session.spent == spent


def test_late_rows_count_in_their_period(set_clock: Set, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there when a period is due is what it has; before that nothing is read."""
    asked: list[int] = []
    stream = stream_of(dp.Session(rho=1))
    real = type(stream._asked.source).opened  # type: ignore[union-attr]

    def opened(self: Any, *arguments: Any) -> Any:
        asked.append(1)
        return real(self, *arguments)

    monkeypatch.setattr(type(stream._asked.source), "opened", opened)
    set_clock(2027, 3, 3)
    with pytest.raises(dp.TooEarly):
        stream.release(START)
    assert not asked
    set_clock(2027, 3, 4)
    stream.release(START)
    assert asked


@pytest.mark.parametrize(
    ("zone", "due"),
    [
        (None, (3, 30)),
        ("UTC", (3, 30)),
        ("Europe/Zurich", (3, 29, 22)),  # clocks are put forward on the 28th
        ("America/New_York", (3, 30, 4)),
        ("Asia/Tokyo", (3, 29, 15)),
    ],
)
def test_days_end_where_the_column_is(
    zone: str | None, due: tuple[int, ...], set_clock: Set
) -> None:
    frame = visits(pl.Datetime("us", zone))
    stream = stream_of(dp.Session(rho=1), frame)
    moment = dt.datetime(2027, *due, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]
    assert stream.due(dt.date(2027, 3, 27)) == moment
    before = moment - dt.timedelta(microseconds=1)
    set_clock(*before.timetuple()[:6], before.microsecond)
    with pytest.raises(dp.TooEarly):
        stream.release(dt.date(2027, 3, 27))
    set_clock(*moment.timetuple()[:6])
    assert stream.release(dt.date(2027, 3, 27)).height == 1


@pytest.mark.parametrize(
    ("every", "delay", "due"),
    [
        ("1mo", "1mo", (2027, 5, 1)),
        ("1mo", "1mo2d12h", (2027, 5, 3, 12)),
        ("1mo", "0d", (2027, 4, 1)),
        ("1mo", dt.timedelta(days=1, hours=36), (2027, 4, 3, 12)),
        ("1d", "1y", (2028, 3, 2)),
        ("1d", "1w", (2027, 3, 9)),
        ("1d", "90m", (2027, 3, 2, 1, 30)),
    ],
)
def test_delays_by_the_calendar_and_by_time(every: str, delay: Any, due: tuple[int, ...]) -> None:
    stream = stream_of(dp.Session(rho=1), every=every, delay=delay, periods=3)
    assert stream.due(START) == dt.datetime(*due, tzinfo=dt.UTC)  # type: ignore[arg-type, misc]


def test_without_a_delay_a_period_is_released_at_any_time(set_clock: Set) -> None:
    set_clock(2001, 1, 1)
    stream = stream_of(dp.Session(rho=1), delay=None)
    assert stream.due(START) is None
    assert stream.release(dt.date(2027, 3, 31)).height == 1


@given(
    zone=st.sampled_from(ZONES), end=st.dates(dt.date(2000, 1, 1), dt.date(2030, 12, 31)),
    hours=st.integers(0, 30),
)  # fmt: skip
def test_a_day_is_over_when_no_clock_shows_it_again(zone: str, end: dt.date, hours: int) -> None:
    due, place = Delay.of("0d").due(end, zone), ZoneInfo(zone)
    later = [due + dt.timedelta(minutes=30 * n) for n in range(8)]
    assert all(moment.astimezone(place).date() >= end for moment in later)
    earlier = due - dt.timedelta(hours=1, microseconds=1)  # one hour is shown twice at most
    assert earlier.astimezone(place).date() < end
    assert Delay.of(f"{hours}h").due(end, zone) == due + dt.timedelta(hours=hours)


def test_one_delay_however_it_is_written(tmp_path: Path) -> None:
    ledger = tmp_path / "b.db"
    stream_of(dp.Session(rho=1, ledger=ledger), delay="2d")
    for same in (dt.timedelta(days=2), "1d1d"):
        again = stream_of(dp.Session(rho=1, ledger=ledger), delay=same)
        assert again.cost == dp.ZCDP(1)
    for other in ("48h", "3d", None):
        with pytest.raises(dp.LedgerError, match="another query, schedule or spend"):
            stream_of(dp.Session(rho=1, ledger=ledger), delay=other)


def test_plans_name_the_delay(tmp_path: Path) -> None:
    session = dp.Session(rho=1)
    query = session.protect(visits(), dp.Rows(), name="visits").dp_count()
    options: dict[str, Any] = {"by": "day", "start": START, "periods": 9, "rho": 1}
    plain = session.plan_stream(query, **options)
    waits = session.plan_stream(query, **options, delay="48h")
    assert "none released before 48h have passed since its end" in waits.explain(details=True)
    assert "released before" not in plain.explain(details=True)
    assert waits.fingerprint != plain.fingerprint
    assert (waits.cost, waits.accuracy("len")) == (plain.cost, plain.accuracy("len"))
    assert dp.Plan.from_json(waits.to_json()).fingerprint == waits.fingerprint


@pytest.mark.parametrize(
    ("delay", "words"),
    [
        ("-2d", "is negative"),
        (dt.timedelta(seconds=-1), "is negative"),
        ("2 days", "not a duration"),
        (2, "is a duration, not 2"),
        ("9000y", "after the year 9999"),
        ("99999999999999y", "too long"),
        ("10000y", "after the year 9999"),
    ],
)
def test_refused_delays(delay: Any, words: str) -> None:
    session = dp.Session(rho=1)
    with pytest.raises(dp.UnsupportedOperation, match=words) as refused:
        stream_of(session, delay=delay)
    assert refused.value.where == "delay=..."
    assert session.spent == dp.ZCDP(0)
