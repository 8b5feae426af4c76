"""Fifty tasks as written by somebody who had read the README and the quickstart alone: at least 48
give a right result as first written, and the others after the message that they get.
"""

from __future__ import annotations

import warnings
from datetime import date, datetime
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from tests.first_tries import data
from tests.first_tries.tasks import TASKS, Task

RIGHT_AT_FIRST = 48
CASES = [
    pytest.param(task, marks=[pytest.mark.slow] if task.slow else [], id=task.title)
    for task in TASKS
]


@cache
def tables() -> dict[str, pl.DataFrame]:
    return data.tables()


def names() -> dict[str, Any]:
    """What the code of a task sees: private frames, public ones, and the exact ones for truth."""
    sessions: dict[str, dp.Session] = {}
    made: dict[str, Any] = {"pl": pl, "dp": dp, "np": np, "date": date, "datetime": datetime}
    for name, frame in tables().items():
        made[name] = frame
        if (unit := data.UNITS.get(name)) is not None:
            session = sessions.setdefault(unit, dp.Session(epsilon=1000, delta=1e-6))
            whom = dp.Rows() if unit == "Rows" else unit
            made[f"p_{name}"] = session.protect(frame, unit=whom, name=name)
    return made


def run(code: str) -> tuple[pl.DataFrame | None, str]:
    """The result of a code, and everything that dpframe said."""
    seen, said = names(), ""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            exec(code, seen)
        except dp.DPFrameError as refusal:
            said = str(refusal)
    return seen.get("out"), "\n".join([said, *(str(one.message) for one in raised)])


def is_right(task: Task, out: pl.DataFrame | None) -> bool:
    """Whether a result has the groups and, as far as noise lets it, the numbers of the truth."""
    seen = names()
    exec(task.exact, seen)
    truth, by = seen["truth"], list(task.by)
    if out is None or not {*by, *task.within} <= {*out.columns}:
        return False
    if not by:
        rows = [(truth.row(0, named=True), out.row(0, named=True))]
        is_complete = truth.height == out.height == 1
    else:
        groups = [table.with_columns(pl.col(by).cast(pl.String)) for table in (truth, out)]
        exact, noisy = ({row: n for n, row in enumerate(g.select(by).rows())} for g in groups)
        both = exact.keys() & noisy.keys()
        is_complete = len(both) >= 0.7 * len(exact) and len(noisy.keys() - both) <= 2
        rows = [
            (truth.row(exact[group], named=True), out.row(noisy[group], named=True))
            for group in both
        ]
    return is_complete and all(
        abs(float(mine[column]) - float(right[column])) <= within
        for right, mine in rows
        for column, within in task.within.items()
    )


@pytest.mark.parametrize("task", CASES)
def test_task(task: Task) -> None:
    out, said = run(task.first)
    if not task.then:
        assert is_right(task, out), (said, out)
        return
    assert not is_right(task, out)
    assert task.says in said
    assert is_right(task, run(task.then)[0])


def test_nearly_all_are_right_as_first_written() -> None:
    assert len(TASKS) == 50
    assert sum(not task.then for task in TASKS) >= RIGHT_AT_FIRST
    assert len({task.title for task in TASKS}) == 50
