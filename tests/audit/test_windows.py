"""Audits of plans whose individuals are people in calendar windows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.api.query import parts
from dpframe.audit.neighbours import People, Person, together
from dpframe.core.windows import number_of
from dpframe.frames import sampling
from tests.laws.neighbours import exact_tables

SCHEMA = {"u": pl.Int64, "at": pl.Datetime("us"), "g": pl.String, "x": pl.Int64}


def visits() -> dp.PrivateFrame:
    unit = dp.Identifier("u", window="1mo", time="at")
    return dp.Session(epsilon=9).protect(pl.LazyFrame(schema=SCHEMA), unit)


def grouped() -> Any:
    days = pl.col("at").is_between(datetime(2026, 9, 30), datetime(2026, 11, 2))
    groups = visits().filter(days).limit_groups(2, by="g").limit_rows(3)
    return groups.group_by("g", keys=["a", "b", "c"]).agg(
        n=pl.col("u").dp_n_unique(), total=pl.col("x").dp_sum((-2, 5)), rows=dp.count()
    )


def test_made_up_people_are_in_one_window() -> None:
    asked = parts(grouped())[0]
    people, seen = People(asked), set()
    place = list(SCHEMA).index("at")
    person = people.anybody()
    for _ in range(200):
        (rows,) = person.rows.values()
        windows = {None if r[place] is None else number_of("1mo", r[place]) for r in rows}
        assert len(windows) <= 1
        seen |= windows
        person = people.changed(person) if len(seen) % 3 else people.anybody()
    assert len(seen) > 2


def test_nothing_is_refuted_and_nearly_all_is_proved() -> None:
    days = pl.col("at").is_between(datetime(2026, 9, 30), datetime(2026, 11, 2))
    one = visits().filter(days).limit_rows(2).dp_count()
    found = one.audit(epsilon=1, runs=6000, confidence=0.99999)
    assert 0.6 < found.proved <= found.claimed


@pytest.mark.slow
def test_nothing_is_refuted_of_several_numbers_in_groups() -> None:
    several = grouped().audit(epsilon=1, runs=2000, confidence=0.99999)
    assert several.proved <= several.claimed


def test_rows_in_another_window_are_of_the_same_person_in_both_frames() -> None:
    asked = parts(grouped())[0]
    people, place = People(asked), list(SCHEMA).index("at")

    def windows(person: Person) -> set[int | None]:
        (rows,) = person.rows.values()
        return {None if r[place] is None else number_of("1mo", r[place]) for r in rows}

    for _ in range(10):
        person = people.anybody()
        other = people.elsewhere(person)
        assert other is not None
        both = together(person, other)
        assert windows(both) == windows(person) | windows(other)
        assert len(windows(both)) == 2
        (frame,) = people.frames([both]).values()
        assert frame.collect()["u"].n_unique() == 1
    nobody = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=SCHEMA), "u").limit_rows(1)
    everywhere = People(parts(nobody.dp_count())[0])
    assert everywhere.elsewhere(everywhere.anybody()) is None


def test_an_audit_refutes_a_limit_that_knows_no_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a person with rows in two months one row is kept: which it is rests on both months, so a
    value may be replaced by another, which is twice what is claimed.
    """
    asked = visits().limit_rows(1).dp_sum("x", (-9, 9))
    sound = asked.audit(epsilon=1, runs=1000, confidence=0.99999)
    assert sound.proved <= sound.claimed
    monkeypatch.setattr(sampling, "window_of", lambda *_: None)
    refuted = asked.audit(epsilon=1, runs=4000, confidence=0.99999)
    assert refuted.proved > refuted.claimed
    assert "in another window" in refuted.neighbours


def test_a_limit_that_knew_no_windows_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps one row of a person in all months, so that a row in another month may go."""
    asked = visits().limit_rows(1).dp_sum("x", (0, 9))
    first, second = datetime(2026, 10, 5), datetime(2026, 11, 5)
    rows = pl.DataFrame({"u": [1, 1], "at": [first, second], "g": ["a", "a"], "x": [9, 9]})
    query = parts(asked)[0]

    def moved() -> set[int]:
        found = set()
        for salt in range(8):
            (both,) = exact_tables(query, rows, salt=salt).values()
            (alone,) = exact_tables(query, rows[:1], salt=salt).values()
            found.add(int(both.dense(1).sum() - alone.dense(1).sum()))
        return found

    step = moved()
    assert len(step) == 1
    assert step != {0}
    monkeypatch.setattr(sampling, "window_of", lambda *_: None)
    assert moved() == {0}  # one row of two is kept, whose month it may be
