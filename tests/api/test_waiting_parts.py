"""Parts that wait for rows that come late: none is charged or read before its time."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.clocks import Set

DAYS = [dt.date(2027, 3, n) for n in range(1, 32)]
FRAME = pl.DataFrame(
    {
        "day": DAYS * 4,
        "site": ["A", "B"] * 62,
        "due": DAYS * 4,
        "at": pl.Series(DAYS * 4).cast(pl.Datetime("us")).dt.replace_time_zone("Europe/Zurich"),
    }
)


def visits(session: dp.Session, name: str = "visits") -> dp.PrivateFrame:
    return session.protect(FRAME, dp.Rows(), name=name)


def part(session: dp.Session, day: dt.date, **options: Any) -> dp.PrivateFrame:
    return session.partition(visits(session), "day", keys=[day], **{"delay": "2d", **options})[day]


def test_a_part_waits_and_nothing_is_charged(tmp_path: Path, set_clock: Set) -> None:
    day = dt.date(2027, 3, 10)
    session = dp.Session(rho=1, ledger=tmp_path / "b.db", keep_releases=True)
    query = part(session, day).dp_count()
    assert query.plan(rho="0.1").cost == dp.ZCDP("0.1")  # a plan may be made at any time
    set_clock(2027, 3, 12, 23, 59, 59)
    words = "from 2027-03-13 00:00:00 UTC on"
    with pytest.raises(dp.TooEarly, match=words) as refused:
        query.collect(rho="0.1", reuse="same")
    assert refused.value.due == dt.datetime(2027, 3, 13, tzinfo=dt.UTC)
    assert "2027-03-10" in str(refused.value.where)
    with pytest.raises(dp.TooEarly, match=words):
        session.collect([query, query], rho="0.1")
    assert (session.spent, session.history.height) == (dp.ZCDP(0), 0)
    set_clock(2027, 3, 13)
    found = query.collect(rho="0.1", reuse="same")
    set_clock(2026, 1, 1)  # what was released is given again, also by a clock that was put back
    assert part(session, day).dp_count().collect(rho="0.1", reuse="same").equals(found)
    with pytest.raises(dp.TooEarly):
        part(session, day).dp_count().collect(rho="0.2", reuse="same")
    assert session.spent == dp.ZCDP("0.1")


def test_waiting_is_no_division_of_its_own(tmp_path: Path, set_clock: Set) -> None:
    """Parts are charged together whether they wait or not, so that no rows are paid for as two."""
    set_clock(2028, 1, 1)
    session = dp.Session(rho=1, ledger=tmp_path / "b.db")
    for options in ({"delay": "2d"}, {"delay": None}, {"delay": "0d"}):
        part(session, DAYS[0], **options).dp_count().collect(rho="0.1")
        part(session, DAYS[1], **options).dp_count().collect(rho="0.1")
    assert session.spent == dp.ZCDP("0.3")


def test_a_part_beside_itself_waits(set_clock: Set) -> None:
    """What is brought together waits for all of it; parts of parts for the last."""
    session = dp.Session(rho=1)
    set_clock(2027, 3, 12)
    waits = part(session, DAYS[9])
    both = waits.filter(pl.col("site") == "A").concat(waits)
    of_a_site = session.partition(part(session, DAYS[9], delay="3d"), "site", keys=["A"])["A"]
    for query, due in ((both.dp_count(), "2027-03-13"), (of_a_site.dp_count(), "2027-03-14")):
        with pytest.raises(dp.TooEarly, match=due):
            query.collect(rho="0.1")
    assert session.spent == dp.ZCDP(0)


@pytest.mark.parametrize(
    ("by", "key", "every", "due"),
    [
        (pl.col("day").dt.truncate("1mo"), dt.date(2027, 3, 1), "1mo", (4, 3)),
        ("day", dt.date(2027, 3, 31), "1q", (4, 3)),
        (pl.col("at").dt.date(), dt.date(2027, 3, 27), "1d", (3, 30)),
        (pl.col("at").dt.truncate("1d"), dt.datetime(2027, 3, 27), "1d", (3, 29, 22)),
        (["site", "day"], ("A", dt.date(2027, 3, 27)), "1d", (3, 30)),
        ("day", dt.date(2027, 3, 27), "1w", (3, 31)),
    ],
)
def test_periods_of_parts(by: Any, key: Any, every: Any, due: Any, set_clock: Set) -> None:
    session = dp.Session(rho=1)
    keys: Any = [key]
    if isinstance(key, tuple):
        keys = {"site": [key[0]], "day": [key[1]]}
    elif isinstance(key, dt.datetime):
        keys = pl.Series([key]).dt.replace_time_zone("Europe/Zurich")
    (found,) = session.partition(visits(session), by, keys, delay="2d", every=every).values()
    moment = dt.datetime(2027, *due, tzinfo=dt.UTC)
    before = moment - dt.timedelta(microseconds=1)
    set_clock(*before.timetuple()[:6], before.microsecond)
    with pytest.raises(dp.TooEarly) as refused:
        found.dp_count().collect(rho="0.1")
    assert refused.value.due == moment
    set_clock(*moment.timetuple()[:6])
    assert found.dp_count().collect(rho="0.1").height == 1


@pytest.mark.parametrize(
    ("by", "keys", "options", "words"),
    [
        ("site", ["A"], {}, "keys have no date"),
        (["day", "due"], {"day": DAYS[:1], "due": DAYS[:1]}, {}, "keys have several"),
        ("day", [None], {}, "never ends"),
        ("day", [dt.date(9999, 12, 31)], {}, "before the year 9999 ends"),
        ("day", DAYS[:1], {"every": "2d"}, "'2d' is not a length of windows"),
        ("day", DAYS[:1], {"delay": "soon"}, "not a duration"),
    ],
)
def test_refused(by: Any, keys: Any, options: Any, words: str) -> None:
    session = dp.Session(rho=1)
    with pytest.raises(dp.UnsupportedOperation, match=words):
        session.partition(visits(session), by, keys, **{"delay": "2d", **options})


def test_plans_name_the_delay() -> None:
    session = dp.Session(rho=1)
    plans = [part(session, DAYS[0], delay=d).dp_count().plan(rho="0.1") for d in ("2d", "3d", None)]
    assert len({plan.fingerprint for plan in plans}) == 3
    assert "not before 2d have passed since the end of its day" in plans[0].steps[-1].words
    assert "passed" not in plans[2].explain(details=True)


def test_periods_of_parts_that_do_not_wait_are_refused() -> None:
    session = dp.Session(epsilon=1)
    with pytest.raises(dp.UnsupportedOperation, match='delay="2d"'):
        session.partition(visits(session), "day", [dt.date(2026, 1, 1)], every="1mo")
