"""Charts of groups in an order: lines over time, tables of two keys, distribution functions."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest

import dpframe as dp

from .test_plots import (
    ANOTHER,
    CITIES,
    DAYS,
    dated,
    distinct,
    nodes,
    notes_of,
    people_of,
    query_of,
    rows_of,
    spec_of,
)


def test_groups_by_time_are_all_shown_in_order() -> None:
    release = dated().group_by("day", keys=DAYS[::-1]).dp_count().release(epsilon=1)
    spec = spec_of(release.plot(most=5))
    rows = distinct(rows_of(spec, "time", "value"))
    assert [row["time"] for row in rows] == [f"{day}T00:00:00" for day in DAYS]
    told = dict(release.frame.rows())
    error = release.plan.accuracy("len")
    for row, day in zip(rows, DAYS, strict=True):
        assert row["value"] == told[day]
        assert (row["low"], row["high"]) == (told[day] - error, told[day] + error)
    assert not [note for note in notes_of(spec) if "largest" in note]
    assert {node["mark"]["type"] for node in nodes(spec) if "mark" in node} == {
        *("area", "line", "point")
    }


def test_parts_of_times_are_in_their_order() -> None:
    """Hours and months are numbers with an order; other whole numbers are not known to have one."""
    day = pl.col("day")
    computed = dated().with_columns(month=day.dt.month(), code=day.dt.month() * 7)
    for grouped, name in (
        (dated().group_by(day.dt.month()), "day"),
        (dated().group_by(month=day.dt.month()), "month"),
        (computed.group_by("month"), "month"),
    ):
        release = grouped.len().release(epsilon=1)
        spec = spec_of(release.plot(most=5))
        rows = distinct(rows_of(spec, "time", "value"))
        assert [(row["time"], row["value"]) for row in rows] == release.frame.rows()
        assert len(rows) == 12, "and all of them"
        assert {node["title"] for node in nodes(spec) if node.get("field") == "time"} == {name}
    both = dated().group_by("city", month=day.dt.month(), keys={"city": CITIES, "month": [1, 2]})
    spec = spec_of(both.len().release(epsilon=1).plot())
    assert {row["series"] for row in rows_of(spec, "time", "series")} == set(CITIES)
    bars = spec_of(computed.group_by("code", keys=[7, 14]).len().release(epsilon=1).plot())
    assert not rows_of(bars, "time", "value")


def test_a_second_key_makes_lines_and_many_are_cut_with_a_note() -> None:
    cities = [*CITIES, *(f"other {i}" for i in range(20))]
    keys = {"city": cities, "day": DAYS}
    release = dated().group_by("city", "day", keys=keys).dp_count().release(epsilon=1)
    spec = spec_of(release.plot())
    shown = {row["series"] for row in rows_of(spec, "time", "series")}
    assert shown == set(cities[:10])
    assert "the first 10 of 24 lines (city)" in notes_of(spec)


def test_times_are_shown_as_their_zone_has_them() -> None:
    at = [datetime(2026, 1, 1, 12, tzinfo=ZoneInfo("Asia/Tokyo"))]
    frame = pl.DataFrame({"at": at * 50})
    query = people_of(frame).group_by("at", keys=frame["at"].unique()).dp_count()
    (row,) = distinct(rows_of(spec_of(query.release(epsilon=1).plot()), "time", "value"))
    assert row["time"] == "2026-01-01T12:00:00"


def test_two_keys_are_a_table() -> None:
    keys = {"city": CITIES, "size": [1, 2]}
    release = dated().group_by("city", "size", keys=keys).dp_count().release(epsilon=1)
    spec = spec_of(release.plot())
    rows = distinct(rows_of(spec, "first", "second"))
    found = [(row["first"], int(row["second"]), row["value"]) for row in rows]
    assert found == release.frame.rows()
    assert "hover over a cell to see its interval" in notes_of(spec)


def test_distribution_functions_step_up_at_their_edges() -> None:
    release = people_of().dp_cdf("age", [25, 50, 100]).release(epsilon=1)
    rows = distinct(rows_of(spec_of(release.plot()), "edge"))
    assert [(row["edge"], row["value"]) for row in rows] == release.frame.select(
        "age", "count"
    ).rows()
    assert all(row["low"] < row["value"] < row["high"] for row in rows)


def test_before_and_after_shows_plain_results_and_where_released_ones_lie() -> None:
    simulation = query_of(people_of()).simulate(ANOTHER.head(500), epsilon=1)
    rows = rows_of(spec_of(simulation.plot(values=True)), "plain", "p05")
    sizes = simulation.errors.filter(output="n")["plain"].to_list()
    assert [row["plain"] for row in rows[: len(sizes)]] == sizes
    noisy = simulation.results.filter(pl.col("output") == "n", pl.col("city") == "a")["noisy"]
    assert rows[0]["p05"] == pytest.approx(noisy.quantile(0.05, "linear"))
    assert rows[0]["p95"] == pytest.approx(noisy.quantile(0.95, "linear"))


def test_subtotals_stay_bars() -> None:
    query = people_of().group_by(dp.rollup("city"), keys={"city": CITIES}).agg(dp.count())
    marks = {
        n["mark"]["type"] for n in nodes(spec_of(query.release(epsilon=1).plot())) if "mark" in n
    }
    assert marks == {"bar", "rule"}
