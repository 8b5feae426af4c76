"""What tables answer: those of a database the same as a plain list of rows does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpframe.ledger.postgres import PostgresTables
from dpframe.ledger.record import COLUMNS, Head
from dpframe.ledger.sqlite import SqliteTables
from dpframe.ledger.store import LARGEST, MemoryTables, Row, Tables, hash_at, rows_at
from tests.postgres import Server

ACTS, NAMES, PLANS = ("begun", "charged", "kept"), ("default", "Ö"), ("ab", "cd", None)
WHYS = (None, "", '{"run": "a_%"}', '{"run": "ab"}')


def row(number: int) -> Row:
    """A row whose values repeat with periods that have no factor in common."""
    values: dict[str, Any] = dict.fromkeys(COLUMNS)
    values |= {"seq": number, "time": "t", "name": NAMES[number % 2], "act": ACTS[number % 3]}
    values |= {"fingerprint": PLANS[number % 5 % 3], "refers": None if number % 7 else number // 2}
    values |= {"why": WHYS[number % 11 % 4], "previous": f"{number - 1}", "hash": f"{number}"}
    return tuple(values.values())


ROWS = [row(number) for number in range(1, 101)]
HEAD = Head(100, "100", "sealed")


def plain(
    limit: int,
    after: int = 0,
    until: int = LARGEST,
    newest: bool = False,
    part: str | None = None,
    **among: Any,
) -> list[Row]:
    """By the words of `Tables.rows`."""
    found = [one for one in ROWS if after < one[0] <= until]
    if part is not None:  # no text has no part, not even an empty one
        texts = ((one, one[COLUMNS.index("why")]) for one in found)
        found = [one for one, text in texts if text is not None and part in text]
    for column, some in among.items():
        found = [one for one in found if one[COLUMNS.index(column)] in some]
    return (found[::-1] if newest else found)[:limit]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def tables(request: pytest.FixtureRequest) -> Iterator[Tables]:
    found: Tables
    with ExitStack() as used:
        if request.param == "memory":
            found = MemoryTables()
        elif request.param == "sqlite":
            found = SqliteTables(used.enter_context(closing(sqlite3.connect(":memory:"))), Path())
        else:
            server: Server = request.getfixturevalue("server")
            found = PostgresTables(used.enter_context(psycopg.connect(server.empty())), None)
        found.create()
        found.append(ROWS, HEAD, new=True)
        yield found


def some(values: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, unique=True)


asked = st.fixed_dictionaries(
    {"limit": st.integers(1, 120)},
    optional={
        "after": st.integers(0, 110),
        "until": st.integers(0, 110) | st.just(10**20),
        "newest": st.booleans(),
        "part": st.sampled_from(["", '"run": "a', "a_%", "AB"]),
        "act": some(ACTS),
        "name": some(NAMES),
        "fingerprint": some(("ab", "ef")),
        "refers": st.lists(st.integers(0, 60), min_size=1),
        "seq": st.lists(st.integers(-2, 110), min_size=1, unique=True),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(wanted={"limit": 120, "part": ""})
@given(wanted=asked)
def test_rows_are_those_that_are_asked_for(tables: Tables, wanted: dict[str, Any]) -> None:
    assert tables.rows(**wanted) == plain(**wanted)


def test_rows_by_number_are_read_in_parts(tables: Tables) -> None:
    assert list(rows_at(tables, range(1, 1200))) == ROWS
    assert list(rows_at(tables, [])) == []
    assert [hash_at(tables, number) for number in (1, 100, 101)] == ["1", "100", None]


def test_the_head_is_moved_only_where_one_is_given(tables: Tables) -> None:
    assert tables.head() == HEAD
    tables.append([row(101)], None)
    assert tables.head() == HEAD
    last = Head(103, "103", "sealed again")
    tables.append([row(102), row(103)], last)
    assert tables.head() == last
    assert [one[0] for one in tables.rows(9, after=99)] == [100, 101, 102, 103]
