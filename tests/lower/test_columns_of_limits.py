"""By which columns a limit tells the rows of a person apart: those that the release reads."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.frames.columns_of_limits import limit_by_columns
from dpframe.frames.limit_rows import LimitRows
from dpframe.kernel.plan import KeepRows
from dpframe.lower import execution

PEOPLE = 60
ROWS = pl.DataFrame(
    {"who": [who for who in range(PEOPLE) for _ in range(3)], "town": ["a", "b", "c"] * PEOPLE}
).with_columns(one=pl.lit(1), x=pl.int_range(pl.len()) % 7, y=pl.int_range(pl.len()) % 5)
MUCH: Any = {"epsilon": 10**6}
"""With so large an epsilon whole numbers have no noise."""


def people(frame: pl.DataFrame = ROWS) -> dp.PrivateFrame:
    return dp.Session(epsilon=10**9).protect(frame, unit="who", name="people")


def total(frame: pl.DataFrame, salt: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(execution, "fresh_salt", lambda: salt)
    limited = people(frame).limit_rows(1)
    return int(limited.agg(dp.sum("x", (0, 9)), dp.n_unique("who")).collect(**MUCH)["x"].item())


def test_a_column_that_nothing_reads_changes_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    others = ROWS.with_columns(rank=pl.int_range(pl.len()), hash=pl.col("town") + "!")
    moved = others.select(reversed(others.columns))
    totals = {salt: total(ROWS, salt, monkeypatch) for salt in range(5)}
    assert len({*totals.values()}) > 1  # salts choose
    for salt, right in totals.items():
        assert total(others, salt, monkeypatch) == total(moved, salt, monkeypatch) == right


def test_a_column_that_is_read_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    def totals(*more: dp.DPExpr) -> list[int]:
        found = []
        for salt in range(5):
            monkeypatch.setattr(execution, "fresh_salt", lambda salt=salt: salt)
            limited = people().limit_rows(1)
            found.append(limited.agg(dp.sum("x", (0, 9)), *more).collect(**MUCH)["x"].item())
        return found

    assert totals() == totals() != totals(dp.sum("y", (0, 9)))


@pytest.mark.parametrize(("n", "by"), [(2, None), (1, "town")])
def test_equal_rows_are_kept_as_often_as_the_limit_says(n: int, by: str | None) -> None:
    """A count reads no column but whose rows they are, so that all rows of a person are equal."""
    limited = people().limit_rows(n) if by is None else people().limit_rows(n, by=by)
    kept = limited.limit_groups(3, by="town").agg(dp.count()).collect(**MUCH).item()
    assert kept == PEOPLE * n * (1 if by is None else 3)


def test_parts_of_a_partition_have_one_choice() -> None:
    """Each person has one row in all parts together, though parts read other columns."""
    session = dp.Session(epsilon=10**9)
    limited = session.protect(ROWS, unit="who", name="people").limit_rows(1)
    parts = session.partition(limited, "town", keys=["a", "b", "c"])
    numbers = [
        parts["a"].agg(dp.count()),
        parts["b"].agg(dp.sum("one", (0, 1))),
        parts["c"].filter(pl.col("x") < 9, pl.col("y") < 9).agg(dp.count()),
    ]
    assert sum(query.collect(**MUCH).item() for query in numbers) == PEOPLE
    for query in numbers:
        physical = query.plan(**MUCH).physical
        assert physical is not None
        (limit,) = (frame for frame in physical.frames if isinstance(frame, KeepRows))
        assert limit.of == ("one", "town", "who", "x", "y")
        relation = limit_by_columns(query._query.relation, frozenset({"who"}))
        assert {step.of for step, _ in relation.steps if isinstance(step, LimitRows)} == {None}


def test_plans_name_columns_only_where_releases_share_a_choice() -> None:
    plan = people().limit_rows(1).agg(dp.sum("x", (0, 9))).plan(**MUCH)
    assert plan.physical is not None
    (limit,) = (frame for frame in plan.physical.frames if isinstance(frame, KeepRows))
    assert limit.of is None


def test_frames_that_are_joined_have_the_choice_of_the_release() -> None:
    session = dp.Session(epsilon=10**9)
    one, other = (session.protect(ROWS, unit="who", name=name) for name in ("one", "other"))
    joined = one.limit_rows(2).join(other.limit_rows(1).select("who", z="x"), on="who")
    query = joined.agg(dp.sum("z", (0, 9)))
    relation = limit_by_columns(query._query.relation, frozenset({"who", "z"}))
    steps = [step for step, _ in relation.steps]
    inner = [step for one in steps if hasattr(one, "other") for step, _ in one.other.steps]
    limits = [step for step in (*steps, *inner) if isinstance(step, LimitRows)]
    assert [limit.of for limit in limits] == [frozenset({"who", "z"})] * 2
    assert query.collect(**MUCH).height == 1
