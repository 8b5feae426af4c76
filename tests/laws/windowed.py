"""Frames of people with rows in many calendar windows, and neighbours that differ in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import polars as pl
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.windows import NAMES as EVERY
from dpframe.core.windows import Every, number_of
from dpframe.rows.temporal import NO_TIME
from tests.laws.individuals import POOLS, SCHEMA, frame_of
from tests.laws.neighbours import Pair

TIMES: tuple[Any, ...] = (
    pl.Date(),
    pl.Datetime("us"),
    pl.Datetime("ms"),
    pl.Datetime("ns"),
    pl.Datetime("us", "UTC"),
    pl.Datetime("us", "Europe/Berlin"),
    pl.Datetime("ns", "America/Sao_Paulo"),
    pl.Datetime("ms", "Pacific/Apia"),
    pl.Datetime("us", "America/Havana"),
)
EVERIES: tuple[Every, ...] = tuple(EVERY)

WALLS = [
    datetime(1969, 12, 31, 23, 59, 59, 999_000),
    datetime(1970, 1, 1),
    datetime(2016, 2, 20, 23, 30),
    datetime(2018, 11, 4, 0, 30),
    datetime(2020, 11, 1, 0, 30),
    datetime(2024, 2, 29, 12),
    datetime(2024, 12, 29, 23, 59, 59),
    datetime(2024, 12, 30),
    datetime(2024, 12, 31, 23, 59, 59, 999_000),
    datetime(2025, 1, 1),
    datetime(2026, 3, 29, 2, 30),
    datetime(2026, 10, 1),
    datetime(2026, 10, 25, 2, 30),
    datetime(2026, 10, 31, 23, 30),
    datetime(2026, 11, 1),
    datetime(2026, 11, 1, 0, 30),
    None,
]
"""What clocks show: around borders of windows, where clocks are set, and nothing."""


def times_of(walls: Sequence[datetime | None], dtype: Any, name: str = "at") -> pl.Series:
    """A column of times by what clocks show; null where they never do."""
    if dtype == pl.Date():
        return pl.Series(name, walls, dtype=pl.Datetime("us")).cast(pl.Date)
    found = pl.Series(name, walls, dtype=pl.Datetime("us")).cast(pl.Datetime(dtype.time_unit))
    if dtype.time_zone is None:
        return found
    return found.dt.replace_time_zone(dtype.time_zone, ambiguous="earliest", non_existent="null")


def windows_of(times: pl.Series, every: Every) -> list[int]:
    """The window of each time, by Python's calendar."""
    found = []
    for value in times.to_list():
        day = value.date() if isinstance(value, datetime) else value
        found.append(NO_TIME if day is None else number_of(every, day))
    return found


@dataclass(frozen=True)
class WindowedPair:
    """Frames that differ in the rows of individual 1 in one window."""

    pair: Pair
    every: Every
    dtype: Any
    window: int


def timed(rows: Sequence[dict[str, Any]], walls: Sequence[Any], dtype: Any) -> pl.DataFrame:
    """Rows with the column of times beside."""
    return frame_of(rows).with_columns(times_of(walls, dtype))


@st.composite
def windowed_neighbours(draw: st.DrawFn, most: int = 10) -> WindowedPair:
    """Individual 1 has rows in other windows as well, which both frames share."""
    every, dtype = draw(st.sampled_from(EVERIES)), draw(st.sampled_from(TIMES))
    numbers = windows_of(times_of(WALLS, dtype), every)
    window = draw(st.sampled_from(numbers))
    inside = [wall for wall, number in zip(WALLS, numbers, strict=True) if number == window]
    outside = [wall for wall, number in zip(WALLS, numbers, strict=True) if number != window]
    cells = st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in POOLS.items()})
    pool = st.sampled_from(draw(st.lists(cells, min_size=1, max_size=6)))
    sizes: dict[str, Any] = {"max_size": most}

    def rows(who: Any, walls: Sequence[Any], least: int = 0) -> list[tuple[dict[str, Any], Any]]:
        drawn = st.lists(st.tuples(pool, who, st.sampled_from(walls)), min_size=least, **sizes)
        return [({**row, "id": owner}, wall) for row, owner, wall in draw(drawn)]

    person = rows(st.just(1), inside, least=1)
    if draw(st.booleans()):  # in every group
        (first, wall) = person[0]
        person += [({**first, "g": g, "h": h}, wall) for g in POOLS["g"] for h in POOLS["h"]]
    others = rows(st.just(1), outside) + rows(st.sampled_from([2, 2, 3, None]), WALLS)
    frames = []
    for found in (others, others + person):
        mixed = draw(st.permutations(found))
        frames.append(timed([row for row, _ in mixed], [wall for _, wall in mixed], dtype))
    pair = Pair(*(frames if draw(st.booleans()) else frames[::-1]))
    return WindowedPair(pair, every, dtype, window)


def protected(dtype: Any, every: Every, **more: Any) -> dp.PrivateFrame:
    """A frame of that schema, of which nothing is read."""
    schema = {**SCHEMA, "at": dtype}
    return dp.Session(epsilon=1).protect(
        pl.LazyFrame(schema=schema), dp.Identifier("id", window=every, time="at"), **more
    )


def a_day(every: Every) -> date:
    """A day on which each kind of window begins."""
    return date(2024, 1, 1) if every != "1y" else date(2025, 1, 1)
