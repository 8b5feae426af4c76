"""Dates, times and zones in SQL expressions: what they mean, on frames, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.cli.job import in_sql
from dpframe.core.dtypes import columns, domain_of_dtype
from dpframe.core.parameters import Parameter, read_type
from dpframe.parse.reader import read
from dpframe.parse.sql import sql_expression
from dpframe.rows.fold import lower, words
from dpframe.rows.polars_dtypes import from_polars

ZURICH = "Europe/Zurich"
CAIRO = "Africa/Cairo"  # clocks go from 23:59:59 to 01:00 on 2026-04-24
ZONES = [ZURICH, CAIRO, "America/Havana", "Asia/Kolkata", "UTC"]
NEWEST = int(pl.__version__.split(".")[0]) >= 2
Row = dict[str, Any]


def frame(moments: list[datetime | None], zone: str, unit: Any = "us") -> pl.DataFrame:
    """Moments in UTC: with a zone, without one, their day and their time there."""
    at = pl.Series("at", moments, dtype=pl.Datetime(unit)).dt.replace_time_zone("UTC")
    zoned = at.dt.convert_time_zone(zone)
    bare = zoned.dt.replace_time_zone(None)
    return pl.DataFrame({"at": zoned, "bare": bare, "day": bare.dt.date(), "clock": bare.dt.time()})


def holds(sql: str, data: pl.DataFrame, **parameters: Parameter) -> list[bool | None]:
    """What an expression is in each row."""
    (named,) = read(sql_expression(sql, parameters), data.schema)
    known = columns({n: domain_of_dtype(from_polars(d)) for n, d in data.schema.items()})
    return data.select(x=lower(named.tree, known)).to_series().to_list()


def shown(sql: str, data: pl.DataFrame, **parameters: Parameter) -> str:
    (named,) = read(sql_expression(sql, parameters), data.schema)
    return words(named.tree)


HOURS = [datetime(2026, 11, 21, 12) + timedelta(hours=h) for h in range(48)]
DAY = date(2026, 11, 22)
MIDNIGHT, SIX, NEXT = datetime(2026, 11, 22), datetime(2026, 11, 22, 6), datetime(2026, 11, 23)


def local(row: Row) -> datetime:
    found = row["bare"]
    assert isinstance(found, datetime)
    return found


CASES: list[tuple[str, Callable[[Row], bool]]] = [
    ("COL >= '2026-11-22'", lambda r: local(r) >= MIDNIGHT),
    ("COL < '2026-11-22 06:30'", lambda r: local(r) < datetime(2026, 11, 22, 6, 30)),
    ("'2026-11-22T06:30:00.5' < COL", lambda r: local(r) > datetime(2026, 11, 22, 6, 30)),
    ("COL >= DATE '2026-11-22'", lambda r: local(r) >= MIDNIGHT),
    ("COL <= TIMESTAMP '2026-11-22 06:30:00'", lambda r: local(r) <= datetime(2026, 11, 22, 6, 30)),
    ("CAST(COL AS DATE) = '2026-11-22'", lambda r: local(r).date() == DAY),
    ("COL::DATE <> DATE '2026-11-22'", lambda r: local(r).date() != DAY),
    ("TRY_CAST(COL AS DATE) = day", lambda r: True),
    ("DATE(COL) = '2026-11-22'", lambda r: local(r).date() == DAY),
    ("CAST(COL AS TIMESTAMP) = bare", lambda r: True),
    ("COL = bare", lambda r: True),
    ("COL >= day", lambda r: True),
    ("day > COL", lambda r: False),
    ("COL BETWEEN '2026-11-22' AND '2026-11-23'", lambda r: MIDNIGHT <= local(r) <= NEXT),
    ("COL NOT BETWEEN DATE '2026-11-22' AND :next", lambda r: not MIDNIGHT <= local(r) <= NEXT),
    ("COL IN ('2026-11-22', '2026-11-22 06:00')", lambda r: local(r) in (MIDNIGHT, SIX)),
    ("CAST(COL AS DATE) IN ('2026-11-22', '2027-01-01')", lambda r: local(r).date() == DAY),
    ("DATE_TRUNC('month', COL) = '2026-11-01'", lambda r: True),
    ("DATE_TRUNC('day', COL) = DATE '2026-11-22'", lambda r: local(r).date() == DAY),
    ("date_trunc( 'Hour' , COL) >= '2026-11-22 06:00'", lambda r: local(r) >= SIX),
    ("DATE_TRUNC('week', COL) = '2026-11-16'", lambda r: local(r).date() < date(2026, 11, 23)),
    ("EXTRACT(HOUR FROM COL) = 6", lambda r: local(r).hour == 6),
    ("EXTRACT(DAY FROM COL) = 22", lambda r: local(r).day == 22),
    ("EXTRACT(ISODOW FROM COL) = 7", lambda r: local(r).isoweekday() == 7),
    ("EXTRACT(DOW FROM COL) = 0", lambda r: local(r).isoweekday() == 7),
    ("DATE_PART('month', COL) = 11", lambda r: local(r).month == 11),
    ("COL + INTERVAL '1 day' >= '2026-11-23'", lambda r: local(r) >= MIDNIGHT),
    ("COL >= DATE '2026-11-29' - INTERVAL '7 days'", lambda r: local(r) >= MIDNIGHT),
    ("COL - INTERVAL '1 month' < '2026-10-22'", lambda r: local(r) < MIDNIGHT),
    ("COL IS NOT DISTINCT FROM '2026-11-22'", lambda r: local(r) == MIDNIGHT),
    ("CASE WHEN COL >= '2026-11-22' THEN 1 ELSE 0 END = 1", lambda r: local(r) >= MIDNIGHT),
    ("NOT COL < '2026-11-22'", lambda r: local(r) >= MIDNIGHT),
    ("COL >= :day", lambda r: local(r) >= MIDNIGHT),
    ("CAST(COL AS DATE) = :day", lambda r: local(r).date() == DAY),
    ("COL BETWEEN :day AND :day + INTERVAL '1 day'", lambda r: MIDNIGHT <= local(r) <= NEXT),
    ("DATE_TRUNC('day', COL) = :day", lambda r: local(r).date() == DAY),
    ("CAST(COL AS DATE) IN (:days)", lambda r: local(r).date() == DAY),
    ("COL IN (:days)", lambda r: local(r) == MIDNIGHT),
    ("COL >= :moment", lambda r: local(r) >= SIX),
]  # fmt: skip
GIVEN = {
    "day": Parameter("day", "date", "2026-11-22"),
    "days": Parameter("days", "list[date]", '["2026-11-22", "2027-01-01"]'),
    "next": Parameter("next", "date", "2026-11-23"),
    "moment": Parameter("moment", "datetime", "2026-11-22T06:00:00"),
}


@pytest.mark.parametrize(("sql", "wanted"), CASES, ids=[sql for sql, _ in CASES])
@pytest.mark.parametrize("column", ["at", "bare"])
@pytest.mark.parametrize("zone", [ZURICH, "Asia/Kolkata"])
def test_what_conditions_mean(
    sql: str, wanted: Callable[[Row], bool], column: str, zone: str
) -> None:
    shift = datetime(2026, 11, 22, tzinfo=ZoneInfo(zone)).utcoffset() or timedelta(0)
    data = frame([hour - shift for hour in HOURS], zone)
    rows = data.to_dicts()
    assert holds(sql.replace("COL", column), data, **GIVEN) == [wanted(row) for row in rows]
    empty = data.with_columns(pl.lit(None).cast(data.schema[column]).alias(column))
    if "DISTINCT" not in sql and "CASE" not in sql:
        assert holds(sql.replace("COL", column), empty, **GIVEN) == [None] * len(rows)


def test_dates_and_times() -> None:
    data = frame(list(HOURS), "UTC")
    days, clocks = data["day"].to_list(), data["clock"].to_list()
    assert holds("day = '2026-11-22'", data) == [d == DAY for d in days]
    assert holds("day IN ('2026-11-22')", data) == [d == DAY for d in days]
    assert holds("day >= DATE '2026-11-22' + INTERVAL '1 day'", data) == [d > DAY for d in days]
    assert holds("clock < '06:30'", data) == [c < time(6, 30) for c in clocks]
    assert holds("TIME '06:30:00' > clock", data) == [c < time(6, 30) for c in clocks]
    assert holds("DATE_TRUNC('month', day) = '2026-11-01'", data) == [True] * len(days)


def test_offsets_name_one_moment() -> None:
    data = frame(list(HOURS), ZURICH)
    for text in ("2026-11-22 00:00:00+01:00", "2026-11-21T23:00:00Z", "2026-11-21 23:00+00"):
        assert holds(f"at >= '{text}'", data) == holds("at >= '2026-11-22'", data)
    with pytest.raises(dp.UnsupportedOperation, match="time zone"):
        holds("bare >= '2026-11-22 00:00:00+01:00'", data)
    moment = Parameter("x", f"datetime[{ZURICH}]", "2026-11-22T00:00:00+01:00")
    with pytest.raises(dp.UnsupportedOperation, match="time zone"):
        holds("bare >= :x", data, x=moment)
    assert holds("at >= :x", data, x=moment) == holds("at >= '2026-11-22'", data)


def test_a_parameter_that_is_moved_is_still_one() -> None:
    """Plans name it, and whoever approves them sees what may be put in."""
    data = frame(list(HOURS), ZURICH)
    said = shown("day >= :day + INTERVAL '1 day'", data, day=GIVEN["day"])
    assert said == '(col("day") >= :day.dt.offset_by("1d"))'


def test_plans_are_the_same_on_every_polars() -> None:
    """Polars 1 writes constants as calls that later versions have computed already."""
    data = frame(list(HOURS), ZURICH)
    for sql, said in [
        ("day = DATE '2026-11-22'", 'col("day") == date("2026-11-22")'),
        ("CAST(bare AS DATE) = '2026-11-22'", 'cast(Date) == date("2026-11-22")'),
        ("bare >= TIMESTAMP '2026-11-22 06:00:00'", 'datetime("2026-11-22 06:00:00")'),
        ("day >= DATE '2026-11-22' - INTERVAL '7 days'", 'date("2026-11-15")'),
        ("day = CAST('2026-11-22' AS DATE)", 'date("2026-11-22")'),
        ("clock = TIME '06:00:00'", 'time("06:00:00")'),
        ("at >= '2026-11-22'", 'datetime("2026-11-22 00:00:00+01:00")'),
        ("DATE_TRUNC('month', day) = '2026-11-01'", 'dt.truncate("1mo") == date("2026-11-01")'),
    ]:
        assert said in shown(sql, data), shown(sql, data)


@given(st.data())
def test_what_has_a_zone_is_compared_by_its_clocks(data: st.DataObject) -> None:
    zone = data.draw(st.sampled_from(ZONES))
    moments = data.draw(
        st.lists(st.datetimes(datetime(2026, 3, 1), datetime(2026, 11, 30)), min_size=1, max_size=9)
    )
    moments += [datetime(2026, 4, 23, 22), datetime(2026, 4, 23, 21, 59), datetime(2026, 10, 25, 1)]
    unit = data.draw(st.sampled_from(["ms", "us", "ns"]))
    found = frame([m.replace(microsecond=0) for m in moments], zone, unit)
    wall = data.draw(st.datetimes(datetime(2026, 3, 1), datetime(2026, 11, 30)))
    wall = data.draw(
        st.sampled_from(
            [wall.replace(microsecond=0), datetime(2026, 4, 24), datetime(2026, 10, 25, 2, 30)]
        )
    )
    sign = data.draw(st.sampled_from(["<", "<=", "=", ">=", ">"]))
    compare = {"<": "__lt__", "<=": "__le__", "=": "__eq__", ">=": "__ge__", ">": "__gt__"}[sign]
    wanted = [getattr(bare, compare)(wall) for bare in found["bare"]]
    parameter = Parameter.of("x", read_type("datetime"), wall)
    assert holds(f"at {sign} '{wall.isoformat()}'", found) == wanted
    assert holds(f"at {sign} :x", found, x=parameter) == wanted
    day = Parameter.of("x", read_type("date"), wall.date())
    midnight = datetime.combine(wall.date(), time())
    wanted = [getattr(bare, compare)(midnight) for bare in found["bare"]]
    assert holds(f"at {sign} '{wall.date()}'", found) == wanted
    assert holds(f"at {sign} :x", found, x=day) == wanted
    same = [bare.date() == wall.date() for bare in found["bare"]]
    assert holds("CAST(at AS DATE) = :x", found, x=day) == same
    assert holds("DATE_TRUNC('day', at) = :x", found, x=day) == same


def test_the_first_moment_of_a_day_that_has_no_midnight() -> None:
    data = frame([datetime(2026, 4, 23, 21, 59), datetime(2026, 4, 23, 22)], CAIRO)
    assert data["bare"].to_list() == [datetime(2026, 4, 23, 23, 59), datetime(2026, 4, 24, 1)]
    assert holds("at >= '2026-04-24'", data) == [False, True]
    assert holds("DATE_TRUNC('day', at) = '2026-04-24'", data) == [False, True]


@pytest.mark.parametrize(
    ("sql", "what", "remedy"),
    [
        ("day = '22.11.2026'", "'22.11.2026'", "'2026-11-22'"),
        ("day = '2026-11-22 06:00'", "not a valid one", "'2026-11-22'"),
        ("at >= 'yesterday'", "'yesterday'", "'2026-11-22 18:00:00'"),
        ("clock = '25:00'", "'25:00'", "'18:00:00'"),
        ("day >= NOW()", "another value each time", ":day"),
        ("day = current_date", "another value each time", ":day"),
        ("day = :today", "declares no parameter 'today'", ":day"),
        ("DATE_TRUNC('fortnight', at) = day", "no unit 'fortnight'", "quarter"),
        ("at AT TIME ZONE 'UTC' > '2026-01-01'", "not an SQL expression", "offset"),
        ("DATE_DIFF('day', at, bare) > 1", "not an SQL expression", "INTERVAL"),
        ("day = 5", "cannot be compared", "CAST"),
        ("day", "a filter needs a Boolean", "age >= 40"),
        ("CAST(clock AS DATE) = day", "cannot be cast", ""),
        ("bare >= '2026-11-22 00:00:00+01:00'", "cannot be compared", "offset"),
        ("s = DATE '2026-11-22'", "cannot be compared", "CAST"),
        ("LENGTH(day) = 3", "LENGTH works on text", "EXTRACT"),
        ("ROW_NUMBER() OVER () = 1", "", ""),
        ("x = (SELECT 1)", "", ""),
        ("SUM(x) > 1", "combines many rows", "outputs"),
    ],
)
def test_refusals_speak_sql(sql: str, what: str, remedy: str) -> None:
    session = dp.Session(epsilon=1)
    data = frame(list(HOURS), ZURICH).with_columns(x=1, s=pl.lit("a"))
    visits = session.protect(data, unit=dp.Rows())
    days = {"day": GIVEN["day"]}
    with pytest.raises(dp.DPFrameError) as refused:
        in_sql(sql, lambda: visits.filter(sql_expression(sql, days)))
    error = refused.value
    assert what in f"{error.what}: {error.why}", error
    assert remedy in (error.remedy or ""), error
    assert error.where == sql
    for polars in ("pl.", "dp.", ".dt.", ".str.", ".cast(", ".is_in(", "col("):
        assert polars not in error.what, error
        assert polars not in (error.remedy or ""), error


@pytest.mark.parametrize("sql", ["day IN (DATE '2026-11-22')", "YEAR(at) = 2026"])
def test_what_polars_1_does_not_parse(sql: str) -> None:
    data = frame(list(HOURS), ZURICH)
    if NEWEST:
        assert any(holds(sql, data))
        return
    with pytest.raises(dp.UnsupportedOperation) as refused:
        holds(sql, data)
    assert "pl." not in str(refused.value)


def test_a_moment_of_the_data_owner_is_no_constant_of_sql() -> None:
    """Text in expressions of Polars stays text."""
    data = frame(list(HOURS), ZURICH)
    visits = dp.Session(epsilon=1).protect(data, unit=dp.Rows())
    with pytest.raises(dp.UnsupportedOperation, match="cannot be compared"):
        visits.filter(pl.col("at") >= "2026-11-22")


def test_instants_in_utc_are_those_of_python() -> None:
    data = frame(list(HOURS), ZURICH)
    moments = [m.replace(tzinfo=UTC) for m in HOURS]
    edge = datetime(2026, 11, 22, tzinfo=ZoneInfo(ZURICH))
    assert holds("at >= '2026-11-22'", data) == [m >= edge for m in moments]
