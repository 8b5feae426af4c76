"""Everyday tasks work as they are written at first, or as the first message says; never with a
number that is wrong without a word.
"""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.tasks import data
from tests.tasks.everyday import FIRST, MORE, Task

SPEND = {"epsilon": 4, "delta": 1e-6}
AT_ONCE = 20
"""So many of the first tasks work as they are written at first."""


@cache
def tables() -> dict[str, pl.DataFrame]:
    return {"trips": data.trips(), "visits": data.visits(), "orders": data.orders()}


def plain() -> dict[str, Any]:
    """The names in tasks, of plain Polars."""
    frames = {name: frame.lazy() for name, frame in tables().items()}
    return {**frames, "products": data.products().lazy(), "spend": {}, "pl": pl, "date": date}


def private() -> dict[str, Any]:
    """The names in tasks: protected frames, limited to as many rows as a person has."""
    session = dp.Session(epsilon=1000, delta=1e-2)
    units = {"trips": "passenger", "visits": "patient", "orders": "customer"}
    frames = {
        name: session.protect(frame, unit=units[name], name=name).limit_rows(16)
        for name, frame in tables().items()
    }
    return {**plain(), **frames, "spend": SPEND, "dp": dp}


def test_a_person_has_many_rows_and_none_is_lost_to_limits() -> None:
    for name, who in (("trips", "passenger"), ("visits", "patient"), ("orders", "customer")):
        most = tables()[name].group_by(who).len()["len"].max()
        assert isinstance(most, int)
        assert 4 <= most <= 16


def run(code: str, names: dict[str, Any]) -> Any:
    return eval(code, names)


def works_at_once(task: Task) -> bool:
    return not task.then


@pytest.mark.parametrize("task", [*FIRST, *MORE], ids=lambda task: task.title)
def test_task(task: Task) -> None:
    code = task.first
    if not works_at_once(task):
        with pytest.raises(dp.DPFrameError) as refusal:
            run(task.first, private())
        assert task.says in str(refusal.value)
        code = task.then
    found = run(code, private())
    expected = run(task.truth or code, plain())
    compare(found, expected, task.within)


def compare(found: pl.DataFrame, expected: pl.DataFrame, within: float) -> None:
    """Every group is there, and every number near the truth."""
    assert sorted(found.columns) == sorted(expected.columns)
    found = found.select(expected.columns)  # a pivot has them in the order of the keys
    numbers = [n for n, t in expected.schema.items() if t.is_numeric()]
    keys = [n for n in expected.columns if n not in numbers]
    if not keys and expected.height > 1:  # parts of dates, which are first
        keys, numbers = expected.columns[:1], expected.columns[1:]
    tables = [
        table.with_columns(pl.col(keys).cast(pl.String)) if keys else table
        for table in (found, expected)
    ]
    found, expected = (table.sort(keys) if keys else table for table in tables)
    assert found.select(keys).equals(expected.select(keys))
    for name in numbers:
        for mine, theirs in zip(found[name], expected[name], strict=True):
            if theirs is None:
                assert mine is None
            else:
                assert abs(mine - theirs) <= within, (name, mine, theirs)


def test_most_work_at_once() -> None:
    assert len(FIRST) == 25
    assert len(MORE) >= 25
    assert sum(map(works_at_once, FIRST)) >= AT_ONCE


BARE = ("How many rows", "Trips and passengers", "Mean by month", "Year over year")
"""Tasks that need a limit."""
COUNTED = ("Distinct customers by quarter", "Distinct customers by product")


def unlimited() -> dict[str, Any]:
    """The names in tasks: protected frames, without a word of how many rows people have."""
    session = dp.Session(epsilon=1000, delta=1e-2)
    units = {"trips": "passenger", "visits": "patient", "orders": "customer"}
    frames = {
        name: session.protect(frame, unit=units[name], name=name)
        for name, frame in tables().items()
    }
    return {**plain(), **frames, "spend": SPEND, "dp": dp}


TASKS = {task.title: task.first for task in (*FIRST, *MORE)}
TASKS["Distinct customers by product"] = (
    'orders.group_by("product").agg(pl.col("customer").n_unique()).collect(**spend)'
)


@pytest.mark.parametrize("title", BARE)
def test_frames_without_limits_may_be_refused(title: str) -> None:
    with pytest.raises(dp.UnboundedSensitivity) as refusal:
        run(TASKS[title], {**unlimited(), "spend": {**SPEND, "limits": None}})
    assert refusal.value.remedy is not None
    assert re.search("n is the most rows (in each group )?that count", refusal.value.remedy)


@pytest.mark.parametrize("title", [*BARE, *COUNTED])
def test_what_they_say_is_near_the_truth(title: str) -> None:
    found = run(TASKS[title], unlimited())
    exact = run(TASKS[title], plain())
    assert found.shape == exact.shape
    keys = [name for name in exact.columns if not exact[name].dtype.is_numeric()]
    keys = keys or [name for name in ("pickup", "at") if name in exact.columns]
    both = found.sort(keys), exact.sort(keys)
    for name in set(exact.columns) - {*keys, "growth"}:
        for one, other in zip(*(frame[name].to_list() for frame in both), strict=True):
            assert one == pytest.approx(other, rel=0.15), (name, one, other)
