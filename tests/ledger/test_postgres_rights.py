"""Roles with the least rights on a ledger in PostgreSQL, as the manual gives them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest

import dpframe as dp
from dpframe.cli import main
from dpframe.ledger.postgres import BESIDE
from tests.ledger.ledgers import sql, verify
from tests.postgres import Server, forget_connections

MANUAL = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
ROLES = ("analyst", "auditor", "archivist")
STATEMENTS = [
    statement.strip()
    for block in re.findall(r"```sql\n(.*?)```", MANUAL, re.DOTALL)
    for statement in re.sub(r"--.*", "", block).split(";")
    if statement.strip()
]
"""All that the manual has an owner say."""
START = dt.date(2027, 1, 1)
FRAME = pl.DataFrame({"day": [START] * 3})


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """A ledger with all tables, and a role of each kind."""
    place = server.empty()
    create = ["ledger", "create", "--ledger", place, "--name", "visits"]
    assert main([*create, "--epsilon", "9", "--delta", "1e-6", "--by", "ann"]) == 0
    for role in ROLES:
        server.sql(f"CREATE ROLE {role} LOGIN")
    for statement in STATEMENTS:
        server.sql(statement)
    yield place
    forget_connections()
    for role in ROLES:
        server.sql(f"DROP OWNED BY {role}")
        server.sql(f"DROP ROLE {role}")


def asked(url: str) -> dp.PrivateFrame:
    session = dp.Session(
        epsilon=9, delta="1e-6", ledger=url, name="visits", must_exist=True, keep_releases=True
    )
    return session.protect(FRAME, unit=dp.Rows(), name="visits")


def kept(url: str) -> dp.Release:
    return asked(url).dp_count().release(epsilon=1)


def streamed(url: str) -> pl.DataFrame:
    frame = asked(url)
    stream = frame.session.stream(
        "s", frame.dp_count(), by="day", start=START, periods=5, epsilon=1, delta="1e-7"
    )
    return stream.release(START)


def prune(url: str) -> int:
    return main(["ledger", "prune", "--ledger", url, "--before", "9000-01-01", "--by", "bob"])


def test_who_spends_keeps_results_and_streams(server: Server, url: str) -> None:
    analyst = server.url(user="analyst")
    kept(analyst)
    assert streamed(analyst).equals(streamed(analyst))
    for forbidden in (
        "DELETE FROM dpframe_ledger.releases",
        "UPDATE dpframe_ledger.streams SET first = 7",
        "DELETE FROM dpframe_ledger.streams",
        "DELETE FROM dpframe_ledger.records",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql(analyst, forbidden)
    verify(url)


def test_who_may_not_delete_gives_nothing_up(
    server: Server, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(server.url(user="analyst"))
    for role in ("analyst", "auditor"):
        assert prune(server.url(user=role)) == 6
        assert "may not delete results" in capsys.readouterr().err
    assert sql(url, "SELECT count(*) FROM records WHERE act = 'pruned'") == [(0,)]
    assert prune(server.url(user="archivist")) == 0
    assert sql(url, "SELECT count(*) FROM releases") == [(0,)]
    verify(url)


def test_who_gives_up_results_reads_none_of_streams(server: Server, url: str) -> None:
    archivist = server.url(user="archivist")
    streamed(url)
    spent = asked(url).session.spent
    for ask in (kept, streamed):
        with pytest.raises(dp.LedgerError, match=r"does not permit|may not keep"):
            ask(archivist)
    assert asked(url).session.spent == spent


def test_who_looks_spends_nothing(
    server: Server, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(url)
    auditor = server.url(user="auditor")
    for command in ("show", "verify", "metrics", "releases"):
        assert main(["ledger", command, "--ledger", auditor]) == 0, capsys.readouterr().err
    spent = asked(url).session.spent
    for ask in (kept, streamed):
        with pytest.raises(dp.LedgerError):
            ask(auditor)
    assert asked(url).session.spent == spent


@pytest.mark.parametrize("right", ["SELECT", "INSERT"])
def test_rights_on_streams_are_looked_at_before_the_charge(
    server: Server, url: str, right: str
) -> None:
    server.sql(f"REVOKE {right} ON dpframe_ledger.streams FROM analyst")
    with pytest.raises(dp.LedgerError, match="may not keep the rows of streams"):
        streamed(server.url(user="analyst"))
    assert asked(url).session.spent.is_zero


def test_the_manual_makes_the_tables_as_they_are_made() -> None:
    def words(text: Any) -> str:
        return " ".join(str(text).split())

    made = [words(x) for x in STATEMENTS if x.startswith("CREATE")]
    assert made == [words(x.decode()) for x in BESIDE.values()]
