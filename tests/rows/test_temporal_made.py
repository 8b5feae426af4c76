"""Dates, times and durations of numbers: those that exist, and null for all others."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import product

import polars as pl
import pytest

from dpframe.core.dtypes import INT64
from dpframe.core.tree import Column, Literal, Tree
from dpframe.rows.fold import lower
from tests.calls import call
from tests.laws.checking import tree_of
from tests.laws.frames import wide_columns

FAR = [-(2**63), 2**63 - 1, -(2**31), 2**31, 10**15, -1, 0, 13, 32, 10_000]


def made(tree: Tree, frame: pl.DataFrame, engine: str = "in-memory") -> list[object]:
    lowered = lower(tree, wide_columns(frame)).alias("made")
    return frame.lazy().select(lowered).collect(engine=engine)["made"].to_list()  # type: ignore[arg-type]


def of(*names: str) -> Tree:
    zeros = [Literal(0, INT64)] * (7 - len(names))
    return call("datetime", *map(Column, names), *zeros, unit="us")


@pytest.mark.parametrize("year", [1, 4, 100, 400, 1899, 1900, 2000, 2023, 2024, 9996, 9999])
def test_every_day_of_a_year(year: int) -> None:
    parts = list(product([year], range(14), range(33)))
    frame = pl.DataFrame(parts, schema=["y", "m", "d"], orient="row")
    for engine in ("in-memory", "streaming"):
        found = made(call("dt_date", of("y", "m", "d")), frame, engine)
        for (y, m, d), value in zip(parts, found, strict=True):
            try:
                expected = date(y, m, d)
            except ValueError:
                expected = None
            assert value == expected, (y, m, d)


def test_no_number_makes_it_fail() -> None:
    frame = pl.DataFrame(list(product(FAR, FAR, FAR)), schema=["y", "m", "d"], orient="row")
    assert not any(made(of("y", "m", "d"), frame))
    far = pl.DataFrame({"i64": FAR})
    for unit in ("weeks", "days", "seconds", "nanoseconds"):
        for size in ("ms", "us", "ns"):
            tree = tree_of(f"pl.duration({unit}=pl.col('i64'), time_unit='{size}')")
            lowered = lower(tree, wide_columns(far)).cast(pl.Int64)
            assert far.select(lowered).to_series()[6] == 0
    clocks = made(of("y", "m", "d", "h", "mi", "s", "us"), _clocks())
    assert clocks[0] == datetime(2024, 2, 29, 23, 59, 59, 999_999)
    assert not any(clocks[1:])


def _clocks() -> pl.DataFrame:
    """One time that exists, and such as have one part beyond it."""
    good = {"y": 2024, "m": 2, "d": 29, "h": 23, "mi": 59, "s": 59, "us": 999_999}
    most = {"h": 24, "mi": 60, "s": 60, "us": 1_000_000}
    rows = [good, *({**good, k: v} for k, v in most.items()), *({**good, k: -1} for k in most)]
    return pl.DataFrame([*rows, {**good, "us": None}])


def test_what_is_finer_than_the_unit_is_cut_off() -> None:
    frame = pl.DataFrame({"i64": [1_999, -1_999, 999, -999]})
    tree = tree_of("pl.duration(microseconds=pl.col('i64'), time_unit='ms')")
    assert made(tree, frame) == [timedelta(milliseconds=n) for n in (1, -1, 0, 0)]
