"""Functions of the `dt` namespace, and `pl.datetime` and `pl.duration`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from dpframe.core.dtypes import datetime_type, duration_type
from dpframe.core.tree import Literal, Tree
from dpframe.errors import UnsupportedOperation
from dpframe.parse import checks
from dpframe.parse.build import Handler, Operand, integer, make, operand, simple, text
from dpframe.parse.dtypes import TIME_UNITS, read_zone
from dpframe.parse.literals import cast_literal, zone_info
from dpframe.parse.strings import ambiguity
from dpframe.rows.zones import is_shown

_NANOSECONDS = (
    7 * 86_400 * 10**9,
    86_400 * 10**9,
    3_600 * 10**9,
    60 * 10**9,
    10**9,
    10**6,
    10**3,
    1,
)
"""Of weeks, days, hours, minutes, seconds, milliseconds, microseconds and nanoseconds."""


def _window(op: str) -> Handler:
    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        source, every = operands
        what = f"the window of {op.replace('dt_', 'dt.', 1)}"
        return make(op, source, every=checks.window(text(every, what)))

    return handle


def _offset_by(operands: Sequence[Operand], params: Any) -> Tree:
    source, by = operands
    return make("dt_offset_by", source, by=checks.duration(text(by, "the offset of dt.offset_by")))


def _with_unit(op: str) -> Handler:
    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        return make(op, *operands, unit=TIME_UNITS[params])

    return handle


def _convert_time_zone(operands: Sequence[Operand], params: Any) -> Tree:
    return make("dt_convert_time_zone", *operands, zone=read_zone(params))


def _replace_time_zone(operands: Sequence[Operand], params: Any) -> Tree:
    source, ambiguous = operand(operands[0]), operands[1]
    zone = read_zone(params[0])
    if isinstance(source, Literal):
        folded = _zoned_constant(source, zone, operand(ambiguous))
        if folded is not None:
            return folded
    ambiguity(ambiguous, "dt.replace_time_zone")
    return make("dt_replace_time_zone", source, zone=zone)


def _zoned_constant(source: Literal, zone: str | None, ambiguous: Tree) -> Literal | None:
    """A constant in another zone; the oldest Polars writes ``pl.lit(datetime)`` this way."""
    value = source.value
    if not isinstance(value, datetime) or not isinstance(ambiguous, Literal):
        return None
    wall = value.replace(tzinfo=None, fold=0)
    dtype = datetime_type(source.dtype.unit or "us", zone)
    if zone is None:
        return Literal(wall, dtype)
    choice = ambiguous.value
    if not is_shown(wall, zone, str(choice) if choice in ("earliest", "latest") else None):
        return None
    return Literal(wall.replace(tzinfo=zone_info(zone), fold=int(choice == "latest")), dtype)


def _total(op: str) -> Handler:
    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        if params is not None and params.get("fractional"):
            raise UnsupportedOperation(
                f"{op.replace('dt_', 'dt.', 1)}(fractional=True) is not supported",
                remedy="divide a finer total, such as .dt.total_seconds() / 86400",
            )
        return make(op, *operands)

    return handle


def _datetime(operands: Sequence[Operand], params: Any) -> Tree:
    *parts, ambiguous = map(operand, operands)
    if not all(isinstance(part, Literal) for part in parts):
        local = make("datetime", *parts, unit=TIME_UNITS[params["time_unit"]])
        if params["time_zone"] is None:
            return local
        return _replace_time_zone((local, ambiguous), [params["time_zone"], "Raise"])
    year, month, day, hour, minute, second, micro = (
        integer(part, "a part of pl.datetime") for part in parts
    )
    zone = read_zone(params["time_zone"])
    try:
        moment = datetime(year, month, day, hour, minute, second, micro)
    except (ValueError, OverflowError):
        raise UnsupportedOperation(
            "pl.datetime has a part out of range", remedy="write a date that exists"
        ) from None
    made = cast_literal(
        Literal(moment, datetime_type()), datetime_type(TIME_UNITS[params["time_unit"]])
    )
    if made is None:
        raise UnsupportedOperation(
            "pl.datetime is out of range of nanoseconds",
            remedy='write one between the years 1678 and 2261, or time_unit="us"',
        )
    return _replace_time_zone((made, ambiguous), [zone, "Raise"])


def _duration(operands: Sequence[Operand], params: Any) -> Tree:
    parts = [operand(value) for value in operands]
    if not all(isinstance(part, Literal) for part in parts):
        return make("duration", *parts, unit=TIME_UNITS[params])
    counts = [integer(part, "a part of pl.duration") for part in parts]
    nanoseconds = sum(n * size for n, size in zip(counts, _NANOSECONDS, strict=True))
    micros, rest = divmod(nanoseconds, 1_000)
    if rest:
        raise UnsupportedOperation(
            "a duration finer than a microsecond is not supported", remedy="round it"
        )
    try:
        span = timedelta(microseconds=micros)
    except OverflowError:
        raise UnsupportedOperation(
            "pl.duration is too long", remedy="write one of less than a million years"
        ) from None
    return Literal(span, duration_type(TIME_UNITS[params]))


def _to_string(operands: Sequence[Operand], params: Any) -> Tree:
    return make("dt_to_string", *operands, format=str(params))


_SIMPLE = {
    "Year": "dt_year",
    "IsoYear": "dt_iso_year",
    "Quarter": "dt_quarter",
    "Month": "dt_month",
    "Week": "dt_week",
    "WeekDay": "dt_weekday",
    "Day": "dt_day",
    "OrdinalDay": "dt_ordinal_day",
    "Hour": "dt_hour",
    "Minute": "dt_minute",
    "Second": "dt_second",
    "Millisecond": "dt_millisecond",
    "Microsecond": "dt_microsecond",
    "Nanosecond": "dt_nanosecond",
    "Century": "dt_century",
    "Millennium": "dt_millennium",
    "IsLeapYear": "dt_is_leap_year",
    "DaysInMonth": "dt_days_in_month",
    "Date": "dt_date",
    "Time": "dt_time",
    "MonthStart": "dt_month_start",
    "MonthEnd": "dt_month_end",
}
_TOTALS = ("Days", "Hours", "Minutes", "Seconds", "Milliseconds", "Microseconds", "Nanoseconds")

TEMPORAL: Mapping[str, Handler] = MappingProxyType(
    {
        **{f"TemporalExpr.{name}": simple(op) for name, op in _SIMPLE.items()},
        **{f"TemporalExpr.Total{unit}": _total(f"dt_total_{unit.lower()}") for unit in _TOTALS},
        "TemporalExpr.Truncate": _window("dt_truncate"),
        "TemporalExpr.Round": _window("dt_round"),
        "TemporalExpr.OffsetBy": _offset_by,
        "TemporalExpr.TimeStamp": _with_unit("dt_timestamp"),
        "TemporalExpr.CastTimeUnit": _with_unit("dt_cast_time_unit"),
        "TemporalExpr.Combine": _with_unit("dt_combine"),
        "TemporalExpr.ToString": _to_string,
        "TemporalExpr.ConvertTimeZone": _convert_time_zone,
        "TemporalExpr.ReplaceTimeZone": _replace_time_zone,
        "TemporalExpr.DatetimeFunction": _datetime,
        "TemporalExpr.Duration": _duration,
    }
)
"""Polars' functions of dates and times, and what reads them."""
