"""Everyday tasks on frames without limits: no number is wrong by more than its interval and what
the release says that the limit may drop, however skewed the data are.
"""

from __future__ import annotations

import re
import warnings
from functools import cache
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.api.query import change_result
from tests.audit.test_audit import seeded
from tests.tasks import data
from tests.tasks.everyday import FIRST, MORE, Task
from tests.tasks.test_everyday import SPEND, plain, run

SKEWS: tuple[data.Skew, ...] = ("even", "lognormal", "heavy")
UNITS = {"trips": "passenger", "visits": "patient", "orders": "customer"}
MOST = {
    "Groups that nobody listed": 200,
    "Sum of some rows": 80,
    "Year over year": 250,
    "Sum without bounds": 100,
}
"""What one row adds to a sum, at most."""
QUICK = {"How many rows", "Share of nulls", "Sum of some rows", "Median"}
WITHOUT_INTERVALS = {"Median", "Quantiles by group", "Maximum", "Describe"}
"""Their results hold quantiles, which have no interval."""
_SAID = re.compile(r"up to ([\d,]+) (?:rows|groups of individuals) may be missing \(([\d.e+-]+)%\)")


@cache
def tables(skew: data.Skew) -> dict[str, pl.DataFrame]:
    return {name: getattr(data, name)(skew) for name in UNITS}


def names(skew: data.Skew) -> tuple[dict[str, Any], dict[str, Any]]:
    """The names in tasks, of plain Polars and of frames without limits."""
    exact = plain() | {name: frame.lazy() for name, frame in tables(skew).items()}
    session = dp.Session(epsilon=1000, delta=1e-2)
    frames = {
        name: session.protect(frame, unit=UNITS[name], name=name)
        for name, frame in tables(skew).items()
    }
    return exact, {**exact, **frames, "dp": dp}


def asked(code: str) -> str:
    """What is collected of a task; what follows is Polars on the result."""
    return code.split(".collect(")[0]


def said(remark: str) -> tuple[float, float]:
    """How many rows the limit may drop, and which share."""
    found = _SAID.search(remark)
    assert found is not None
    return float(found[1].replace(",", "")), float(found[2]) / 100


def off(task: Task, skew: data.Skew) -> list[str]:
    """The numbers that are wrong by more than what is said."""
    exact, private = names(skew)
    code = task.then or task.first
    # a release keeps what was drawn, in the order of its groups
    query = run(asked(code).replace('.sort("len")', ""), private)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.DroppedRows)
        interval = None if task.title in WITHOUT_INTERVALS else 0.999999
        release = query.release(**SPEND, interval=interval)
    truth = run(asked(task.truth or code) + ".collect()", exact)
    rows, share = said(release.remark)
    found, numbers = (
        change_result(query, release.frame),
        [n for n, t in truth.schema.items() if t.is_numeric()],
    )
    keys = [n for n in truth.columns if n not in numbers]
    if not keys and truth.height > 1:  # parts of dates, which are first
        keys, numbers = truth.columns[:1], truth.columns[1:]
    pairs = [(0, 0)] if not keys else _pairs(found.select(keys), truth.select(keys))
    assert pairs, "groups appear"
    wrong = []
    for name in numbers:
        whole = truth[name].dtype.is_integer()
        most = MOST.get(task.title)
        far = rows if whole else share * 2 * float(truth[name].abs().max() or 0)
        far = far if most is None else rows * most
        for mine, theirs in pairs:
            low, high = (found.get_column(f"{name}_{end}", default=None) for end in ("low", "high"))
            value, right = found[name][mine], truth[name][theirs]
            if low is None or high is None:
                ends = value - task.within, value + task.within
            else:
                ends = low[mine], high[mine]
            if right is not None and not ends[0] - far <= right <= ends[1] + far:
                wrong.append(f"{name}: {value}, {ends}, {right}, {release.remark}")
    return wrong


def _pairs(found: pl.DataFrame, truth: pl.DataFrame) -> list[tuple[int, int]]:
    """The places of the same groups in both; those that are too small do not appear."""
    keys = truth.columns
    sides = [t.select(pl.all().cast(pl.String)).with_row_index("place") for t in (found, truth)]
    joined = sides[0].join(sides[1], on=keys, nulls_equal=True)
    return list(joined.select("place", "place_right").iter_rows())


CASES = [
    pytest.param(
        task, skew, marks=() if task.title in QUICK else pytest.mark.slow, id=f"{task.title}-{skew}"
    )
    for task in (*FIRST, *MORE)
    for skew in SKEWS
]


@pytest.mark.parametrize(("task", "skew"), CASES)
def test_no_number_is_wrong_without_a_word(
    task: Task, skew: data.Skew, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeded(monkeypatch, 17)
    assert not off(task, skew)


def test_skewed_data_are_skewed() -> None:
    share = {}
    for skew in SKEWS:
        rows = tables(skew)["trips"].group_by("passenger").len()["len"].sort(descending=True)
        share[skew] = rows.head(30).sum() / rows.sum()
    assert share["even"] < 0.02
    assert share["lognormal"] > 0.1
    assert share["heavy"] > 0.2


def test_what_is_dropped_is_said_at_collect(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded(monkeypatch, 3)
    _, private = names("heavy")
    query = run("trips.select(pl.len())", private)
    with pytest.warns(dp.DroppedRows, match=r"drops about [\d,]+ rows .*may be missing"):
        query.collect(epsilon=2)
    _, even = names("even")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run("trips.select(pl.len())", even).collect(epsilon=200)


def test_where_no_group_appears_the_size_that_one_needs_is_named() -> None:
    _, private = names("even")
    query = run('orders.limit_rows(10).group_by("product").len()', private)
    with pytest.warns(
        dp.NoGroups, match=r"a group of [\d,]+ individuals appears with a chance of 50%"
    ):
        assert query.collect(epsilon=0.01, delta=1e-9).height == 0
