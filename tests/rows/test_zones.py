"""Constants in time zones are the moments that Polars takes them for, whatever Python's rules."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from dpframe.core.dtypes import datetime_type
from dpframe.core.interval import interval
from dpframe.core.tree import Literal
from dpframe.rows.constants import from_physical, literal_domain, literal_lower
from dpframe.rows.polars_dtypes import in_zone, is_shown, since_epoch

ZONES = ["UTC", "Europe/Amsterdam", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]
AMSTERDAM = ZoneInfo("Europe/Amsterdam")
SECONDS = [
    0,
    1_711_846_800,  # clocks go forward in Amsterdam
    1_729_987_200,  # and 02:00 comes twice, as does half past
    1_729_987_200 + 1_800,
    1_729_987_200 - 1_800,
    1_729_990_800,
    *(-year * 31_556_952 for year in (34, 60, 71, 87, 130, 170, 900, 1_938, 1_968)),
    *(year * 31_556_952 for year in (56, 68, 430, 8_000)),
]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_constant_is_its_moment(zone: str, unit: str) -> None:
    dtype = datetime_type(unit, zone)
    for seconds in SECONDS:
        physical = seconds * dtype.units_per_second
        literal = from_physical(physical, dtype)
        found = pl.select(literal_lower(literal, pl)).to_series().to_physical().to_list()
        assert found == [physical], literal
        assert literal_domain(literal).interval == interval(physical, physical), literal


@pytest.mark.parametrize("zone", ZONES)
def test_a_constant_is_what_clocks_show_by_the_rules_of_polars(zone: str) -> None:
    """Python's own rules are others where clocks went by the sun."""
    moments = pl.Series(SECONDS, dtype=pl.Int64) * 10**6
    shown = moments.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    walls = shown.dt.replace_time_zone(None).to_list()
    for seconds, value, wall in zip(SECONDS, shown.to_list(), walls, strict=True):
        made = from_physical(seconds * 10**6, datetime_type("us", zone)).value
        assert isinstance(made, datetime)
        assert made.replace(tzinfo=None, fold=0) == wall
        assert (made.tzinfo, made.fold) == (ZoneInfo(zone), value.fold)
        assert since_epoch(made) == seconds * 10**6


def test_times_that_clocks_do_not_show() -> None:
    skipped, twice = datetime(2024, 3, 31, 2, 30), datetime(2024, 10, 27, 2, 30)
    for choice in ("earliest", "latest", None):
        assert not is_shown(skipped, AMSTERDAM.key, choice)
        assert is_shown(twice, AMSTERDAM.key, choice) == (choice is not None)
        assert is_shown(datetime(1, 1, 1), AMSTERDAM.key, choice)
    found = Literal(skipped.replace(tzinfo=AMSTERDAM), datetime_type("us", AMSTERDAM.key))
    assert literal_domain(found).interval.is_point  # a fact all the same


def test_a_year_that_python_does_not_have() -> None:
    with pytest.raises(OverflowError):
        in_zone(datetime(1, 1, 1), ZoneInfo("America/New_York"))
