"""What is inferred of dates and times, and what is refused."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from dpframe.core.dtypes import (
    DATE,
    INT64,
    STRING,
    TIME,
    Domain,
    DType,
    datetime_type,
    duration_type,
)
from dpframe.core.interval import EVERYTHING, Interval, interval
from dpframe.core.tree import Call, Column, Literal
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.rows import fold
from tests.calls import call
from tests.rows.running import X, evaluate, refusal, refusal_of

ZONED = datetime_type("us", "Europe/Amsterdam")


def micros(year: int, month: int = 1, day: int = 1) -> int:
    return (date(year, month, day) - date(1970, 1, 1)).days * 86_400 * 10**6


def days(year: int, month: int = 1, day: int = 1) -> int:
    return (date(year, month, day) - date(1970, 1, 1)).days


def known(dtype: DType, lo: int, hi: int) -> dict[str, Domain]:
    return {"x": Domain(dtype, nullable=False, interval=interval(lo, hi))}


YEARS = known(datetime_type(), micros(1990), micros(2020, 12, 31))
DAYS = known(DATE, days(1990), days(2020, 12, 31))


def infer(tree: Call, facts: dict[str, Domain]) -> Domain:
    return fold.domain(tree, facts)


def test_a_time_of_day_counts_nanoseconds() -> None:
    second = 10**9
    found = fold.domain(Literal(time(1, 2, 3, 4), DType("Time")), {})
    nanoseconds = (3600 + 2 * 60 + 3) * second + 4000
    assert found.interval == interval(nanoseconds, nanoseconds)


@pytest.mark.parametrize("facts", [YEARS, DAYS])
def test_years_follow_from_the_interval(facts: dict[str, Domain]) -> None:
    found = infer(call("dt_year", X), facts)
    assert (found.dtype, found.nullable, found.interval) == (INT64, False, interval(1990, 2020))
    assert infer(call("dt_century", X), facts).interval == interval(20, 21)
    assert infer(call("dt_iso_year", X), facts).interval == interval(1990, 2020)
    assert infer(call("dt_month", X), facts).interval == interval(1, 12)
    assert not infer(call("dt_is_leap_year", X), facts).nullable


def test_nothing_known_leaves_the_calendar() -> None:
    facts = {"x": Domain(datetime_type(), nullable=False)}
    found = infer(call("dt_year", X), facts)
    assert found.nullable
    assert found.interval == interval(1, 9999)
    nanoseconds = {"x": Domain(datetime_type("ns"), nullable=False)}
    found = infer(call("dt_year", X), nanoseconds)
    assert not found.nullable
    assert found.interval == interval(1677, 2262)
    assert infer(call("dt_truncate", X, every="1d"), facts).interval == EVERYTHING
    assert infer(call("dt_timestamp", X, unit="ms"), facts).interval == EVERYTHING


def test_zones_may_be_a_day_off() -> None:
    facts = known(ZONED, micros(1990), micros(2020, 12, 31))
    assert infer(call("dt_year", X), facts).interval == interval(1989, 2021)
    assert infer(call("dt_truncate", X, every="1d"), facts).nullable
    dates = infer(call("dt_date", X), facts)
    assert dates.interval == interval(days(1990) - 1, days(2020, 12, 31) + 1)


def test_moves_have_exact_images() -> None:
    found = infer(call("dt_truncate", X, every="1y"), YEARS)
    assert not found.nullable
    assert found.interval == interval(micros(1990), micros(2020))
    found = infer(call("dt_offset_by", X, by="-1mo"), DAYS)
    assert not found.nullable
    assert found.interval == interval(days(1989, 12, 1), days(2020, 11, 30))
    found = infer(call("dt_round", X, every="1y"), DAYS)
    assert found.interval == interval(days(1990), days(2021))
    found = infer(call("dt_month_end", X), DAYS)
    assert found.interval == interval(days(1990, 1, 31), days(2020, 12, 31))


def test_moves_out_of_the_calendar_may_be_null() -> None:
    facts = known(DATE, days(9990), days(9999, 12, 31))
    found = infer(call("dt_offset_by", X, by="1y"), facts)
    assert found.nullable
    assert found.interval == interval(days(9991), days(9999, 12, 31))
    one_side = {"x": Domain(DATE, interval=Interval(None, interval(0, 0).hi))}
    found = infer(call("dt_offset_by", X, by="1d"), one_side)
    assert found.interval == Interval(None, interval(1, 1).hi)
    outside = infer(call("dt_offset_by", X, by="1d"), known(DATE, 2**30, 2**30 + 5))
    assert outside.nullable


def test_a_day_is_taken_from_a_moment_in_the_unit_of_that() -> None:
    at = pl.Series([datetime(1970, 1, 2, 0, 0, 1)], dtype=pl.Datetime("ms"))
    frame = pl.DataFrame({"x": at, "day": [date(1970, 1, 1)]})
    found = evaluate(call("sub", X, Column("day")), frame)
    assert found.to_physical().to_list() == [86_401_000]
    facts = {"x": Domain(DATE, nullable=False, interval=interval(1, 2))}
    moments = infer(call("cast", X, dtype=datetime_type("ms")), facts)
    assert moments.interval == interval(86_400_000, 172_800_000)


def test_counts_of_units() -> None:
    facts = known(duration_type(), -90_000_000, 90_000_000)
    assert infer(call("dt_total_minutes", X), facts).interval == interval(-1, 1)
    found = infer(call("dt_total_nanoseconds", X), facts)
    assert not found.nullable
    assert found.interval == interval(-90 * 10**9, 90 * 10**9)
    unknown = {"x": Domain(duration_type(), nullable=False)}
    assert infer(call("dt_total_nanoseconds", X), unknown).nullable
    assert not infer(call("dt_total_days", X), unknown).nullable
    found = infer(call("dt_cast_time_unit", X, unit="ms"), facts)
    assert found.dtype == duration_type("ms")
    assert found.interval == interval(-90_000, 90_000)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_counts_of_units_have_exact_ends(unit: str) -> None:
    """Those of the shortest and of the longest duration."""
    spans = [timedelta(-400, 5), timedelta(0), timedelta(900, 7)]
    frame = pl.DataFrame({"x": pl.Series(spans, dtype=pl.Duration(unit))})  # type: ignore[arg-type]
    least, most = frame["x"].to_physical()[0], frame["x"].to_physical()[2]
    facts = known(duration_type(unit), least, most)
    for name in ("days", "hours", "minutes", "seconds", *("milli", "micro", "nano")):
        tree = call(f"dt_total_{name}{'seconds' if name.endswith(('i', 'o')) else ''}", X)
        found = evaluate(tree, frame, facts).to_list()
        assert infer(tree, facts).interval == interval(found[0], found[2])


def test_times_of_day_are_those_of_one_day() -> None:
    day = interval(0, 86_400 * 10**9 - 1)
    text, moment = Domain(STRING, nullable=False), Domain(datetime_type(), nullable=False)
    assert infer(call("str_to_time", X, format="%H:%M"), {"x": text}).interval == day
    assert infer(call("cast", X, dtype=TIME), {"x": moment}).interval == day


def test_moments_have_a_text_where_four_digits_write_their_year() -> None:
    cast = call("cast", X, dtype=STRING)
    per_day = 86_400 * 10**6
    for dtype, size in ((DATE, 1), (datetime_type(), per_day)):
        least, most = days(1) * size, (days(9999, 12, 31) + 1) * size - 1
        assert not infer(cast, known(dtype, least, most)).nullable
        assert infer(cast, known(dtype, least - 1, most)).nullable
        assert infer(cast, known(dtype, least, most + 1)).nullable


def test_a_claim_that_is_wrong_does_no_harm() -> None:
    """The lowering does not rely on what was declared."""
    frame = pl.DataFrame({"x": pl.Series([0, 2**63 - 1]).cast(pl.Datetime("us"))})
    facts = {"x": Domain(datetime_type(), nullable=True, interval=interval(0, 10))}
    for tree in (call("dt_year", X), call("dt_truncate", X, every="1y"), call("dt_date", X)):
        lowered = fold.lower(tree, facts)
        assert frame.select(lowered.is_null().alias("r"))["r"].to_list() == [False, True]


@pytest.mark.parametrize(
    ("op", "options", "dtype"),
    [
        ("dt_year", {}, TIME),
        ("dt_year", {}, STRING),
        ("dt_hour", {}, DATE),
        ("dt_time", {}, DATE),
        ("dt_date", {}, duration_type()),
        ("dt_total_days", {}, datetime_type()),
        ("dt_timestamp", {"unit": "us"}, duration_type()),
        ("dt_truncate", {"every": "1h"}, duration_type()),
        ("dt_truncate", {"every": "1h"}, DATE),
        ("dt_offset_by", {"by": "1d1h"}, DATE),
        ("dt_truncate", {"every": "1us"}, datetime_type("ms")),
        ("dt_offset_by", {"by": "1ns"}, datetime_type()),
        ("dt_offset_by", {"by": "300y"}, datetime_type("ns")),
        ("dt_cast_time_unit", {"unit": "ms"}, DATE),
        ("dt_cast_time_unit", {"unit": "ms"}, TIME),
        ("dt_convert_time_zone", {"zone": "UTC"}, DATE),
        ("dt_replace_time_zone", {"zone": "UTC"}, TIME),
    ],
)
def test_types_that_are_refused(op: str, options: dict[str, Any], dtype: DType) -> None:
    error = refusal(call(op, X, **options), x=dtype)
    assert isinstance(error, DPFrameError)
    assert error.remedy


@pytest.mark.parametrize(
    "every", ["", "1", "1x", "-1h", "0d", "0h", "1d12h", "1mo1d", "1i", "1.5h"]
)
def test_windows_that_make_no_sense(every: str) -> None:
    for op in ("dt_truncate", "dt_round"):
        error = refusal_of(op, every=every)
        assert isinstance(error, UnsupportedOperation)


@pytest.mark.parametrize("by", ["", "1bd", "d", "1 d", "20000y", "200000d", "9" * 50 + "ns"])
def test_offsets_that_make_no_sense(by: str) -> None:
    assert isinstance(refusal_of("dt_offset_by", by=by), UnsupportedOperation)


@pytest.mark.parametrize("zone", ["", "Nowhere/X", "europe/amsterdam", "*", "+01:00"])
def test_zones_that_do_not_exist(zone: str) -> None:
    for op in ("dt_convert_time_zone", "dt_replace_time_zone"):
        assert isinstance(refusal_of(op, zone=zone), UnsupportedOperation)


def test_a_new_moment_fits_in_the_unit_of_its_column() -> None:
    old, near, far = datetime(2000, 1, 1), datetime(2262, 4, 11), datetime(2262, 4, 12)
    for unit, new in (("us", far), ("ns", near)):
        tree = call("replace", X, old=(old,), new=(new,))
        assert infer(tree, {"x": Domain(datetime_type(unit))}).dtype == datetime_type(unit)
    error = refusal(call("replace", X, old=(old,), new=(far,)), x=datetime_type("ns"))
    assert "is not a Datetime(ns)" in str(error)


def test_words() -> None:
    assert fold.words(call("dt_truncate", X, every="1mo")) == 'col("x").dt.truncate("1mo")'
    assert fold.words(call("dt_is_leap_year", X)) == 'col("x").dt.is_leap_year()'
    assert fold.words(call("dt_replace_time_zone", X, zone=None)) == (
        'col("x").dt.replace_time_zone(None)'
    )


def test_many_rows_agree_on_both_engines() -> None:
    start = datetime(2021, 1, 1)
    moments = pl.datetime_range(start, datetime(2022, 1, 1), "7m", eager=True, time_zone="UTC")
    frame = pl.DataFrame({"x": moments.dt.convert_time_zone("Europe/Amsterdam")}).with_columns(
        y=pl.col("x").dt.strftime("%Y-%m-%dT%H:%M")
    )
    whole = {n: fold.lower(call("dt_truncate", X, every=n), _facts(frame)) for n in ("2h", "1d")}
    memory = frame.lazy().select(**whole).collect()
    assert memory.equals(frame.lazy().select(**whole).collect(engine="streaming"))
    assert memory["2h"].null_count() == 9


def _facts(frame: pl.DataFrame) -> dict[str, Domain]:
    return {"x": Domain(ZONED), "y": Domain(STRING)}


def test_literals_are_moved_too() -> None:
    tree = call("dt_year", call("dt_offset_by", X, by="1y"))
    frame = pl.DataFrame({"x": [date(2020, 2, 29)]})
    assert evaluate(tree, frame).to_list() == [2021]


SET_BACK = [
    ("America/Juneau", datetime(1867, 10, 18, 23, 30)),
    ("Pacific/Apia", datetime(1892, 7, 5, 11, 30)),
    ("America/Creston", datetime(1944, 1, 1, 6, 1)),
    ("Pacific/Kwajalein", datetime(1969, 9, 30, 13)),
    ("America/St_Johns", datetime(2009, 11, 1, 2, 31)),
]
"""Zones whose clocks were set back beyond midnight, some by a day, and when that was in UTC."""
MOVES: list[tuple[str, dict[str, Any]]] = [
    *(
        ("dt_truncate", {"every": every})
        for every in ("1h", "1d", "49h", "100h", "3d", "1w", "1mo")
    ),
    *(("dt_round", {"every": every}) for every in ("1h", "1d", "49h", "100h", "3d", "1w", "1mo")),
    *(("dt_offset_by", {"by": by}) for by in ("1d", "-1mo", "1mo", "-30h", "1w")),
    *((op, {}) for op in ("dt_month_start", "dt_month_end")),
]


@pytest.mark.parametrize(("zone", "moment"), SET_BACK, ids=lambda v: str(v)[:17])
@pytest.mark.parametrize(("op", "options"), MOVES, ids=str)
def test_moves_of_local_time_stay_inside_where_clocks_are_set_back(
    zone: str, moment: datetime, op: str, options: dict[str, Any]
) -> None:
    """An instant that is later may come to an earlier boundary, on the calendar of the place."""
    dtype = datetime_type("us", zone)
    at = micros(moment.year, moment.month, moment.day) + 10**6 * (
        moment.hour * 3_600 + moment.minute * 60
    )
    near = [at + 30 * 60 * 10**6 * step for step in range(-60, 61)] + [at - 1, at + 1, at - 10**6]
    moved = fold.lower(call(op, X, **options), known(dtype, min(near), max(near)))
    frame = pl.DataFrame({"x": pl.Series(sorted(near)).cast(pl.Datetime("us", zone))})
    results = frame.select("x", y=moved).select(pl.all().to_physical()).drop_nulls()
    for cut in (at - 10**6, at, at + 1_800 * 10**6, at + 86_400 * 10**6):
        for lo, hi in ((min(near), cut), (cut, max(near))):
            found = infer(call(op, X, **options), known(dtype, lo, hi)).interval
            inside = results.filter(pl.col("x").is_between(lo, hi))["y"]
            assert all(found.contains(Fraction(value)) for value in (inside.min(), inside.max()))


@pytest.mark.parametrize(
    ("dtype", "added", "subtracted"),
    [
        (duration_type("ms"), duration_type("ms"), duration_type("ms")),
        (datetime_type("ms"), datetime_type("ms"), datetime_type("ms")),
        (DATE, DATE, DATE),
        (TIME, None, duration_type("ns")),
    ],
    ids=str,
)
def test_a_null_has_the_type_that_makes_a_sum(
    dtype: DType, added: DType | None, subtracted: DType
) -> None:
    null, facts = Literal(None, DType("Null")), {"x": Domain(dtype, nullable=False)}
    assert infer(call("sub", X, null), facts).dtype == subtracted
    if added is None:
        assert isinstance(refusal(call("add", X, null), x=dtype), DPFrameError)
    else:
        assert infer(call("add", X, null), facts).dtype == added
        assert infer(call("add", null, X), facts).dtype == added
    if dtype in (TIME, subtracted) and dtype.name != "Date" and dtype.name != "Datetime":
        assert infer(call("sub", null, X), facts).dtype == subtracted
    else:
        assert isinstance(refusal(call("sub", null, X), x=dtype), DPFrameError)
