"""Constants in time zones, by the rules that Polars has for a zone.

Python and Polars have time zone databases of their own. They differ about the clocks of long ago
(by two minutes in Amsterdam before 1937), and about years to come where one of them is older.
Polars takes a Python datetime for what the clocks of its zone show, so a constant is the moment at
which they show that by its rules, and not by Python's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.rows.failures import FAILURES

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def since_epoch(value: datetime) -> int:
    """The microseconds from 1970-01-01 in UTC to a moment; one without a zone is in UTC."""
    zone = getattr(value.tzinfo, "key", None)
    if isinstance(zone, str) and zone != "UTC":
        found = _in_zone(value.replace(tzinfo=None), zone, value.fold)
        if found is not None:
            return found
    offset = value.utcoffset() or timedelta(0)
    return (value.replace(tzinfo=None) - _EPOCH - offset) // _MICROSECOND


def in_zone(moment: datetime, zone: ZoneInfo) -> datetime:
    """What clocks in a zone show at a moment, which is given in UTC.

    Raises
    ------
    OverflowError
        When Python does not have the year that they show.
    """
    if zone.key == "UTC":
        return moment.replace(tzinfo=zone)
    here = pl.Series([moment], dtype=pl.Datetime("us")).dt.replace_time_zone("UTC")
    try:
        clocks: datetime = (
            here.dt.convert_time_zone(zone.key).dt.replace_time_zone(None).to_list()[0]
        )
    except FAILURES as error:
        raise OverflowError from error
    is_second = since_epoch(moment) != _in_zone(clocks, zone.key, 0)
    return clocks.replace(tzinfo=zone, fold=int(is_second))


def is_shown(wall: datetime, zone: str, choice: str | None) -> bool:
    """Whether clocks in a zone ever show a time; only once, without a `choice` of two."""
    found = pl.Series([wall], dtype=pl.Datetime("us")).dt.replace_time_zone(
        zone,
        ambiguous=choice or "null",  # type: ignore[arg-type]
        non_existent="null",
    )
    return found.null_count() == 0


def _in_zone(wall: datetime, zone: str, fold: int) -> int | None:
    """The moment at which clocks in a zone show a time, first or again; None if they never do, or
    Polars does not have the zone.
    """
    try:
        found = pl.Series([wall], dtype=pl.Datetime("us")).dt.replace_time_zone(
            zone, ambiguous="latest" if fold else "earliest", non_existent="null"
        )
    except FAILURES:
        return None
    physical = found.to_physical().to_list()[0]
    return None if physical is None else int(physical)


def time_zone(name: str) -> str:
    """The time zone by the name that Polars knows it under.

    Raises
    ------
    UnsupportedOperation
        When Polars does not know it.
    """
    zone = _known(name)
    if zone is None:
        raise _unknown(name)
    return zone


def require_zone(name: str) -> None:
    """Refuse a time zone that Polars does not know by this name."""
    if _known(name) != name:
        raise _unknown(name)


def _unknown(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{name!r} is not a time zone",
        remedy='write a name of the time zone database, such as "UTC" or "Europe/Paris"',
    )


@lru_cache(maxsize=256)
def _known(name: str) -> str | None:
    if name in ("", "*"):  # a wildcard of Polars
        return None
    try:
        cast = pl.Series([0], dtype=pl.Int64).cast(pl.Datetime("us", name))
        cast.dt.year()  # some settings defer the check of the name to its first use
    except FAILURES:
        return None
    zone: str | None = getattr(cast.dtype, "time_zone", None)
    return zone
