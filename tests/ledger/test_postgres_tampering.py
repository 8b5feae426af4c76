"""Whoever can write to the tables on a server is found out, as with a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import dpframe as dp
from dpframe.ledger import store
from dpframe.ledger.record import COLUMNS, Seal
from tests.ledger.ledgers import TENTH, filled, opened, sql, verify
from tests.ledger.test_tampering import KEY, other_values, rewritten
from tests.postgres import Server

RECORDS = 9


@pytest.fixture(params=[None, KEY], ids=["unkeyed", "keyed"])
def key(request: pytest.FixtureRequest) -> str | None:
    found: str | None = request.param
    return found


@pytest.fixture
def url(server: Server, key: str | None) -> str:
    made = server.empty()
    filled(made, key)
    return made


def require_refused(url: str, key: str | None, words: str = "does not verify") -> None:
    """By `verify` and by every use that a new process could make of the tables."""
    for use in (
        lambda: verify(url, key),
        lambda: opened(url, key=key),
        lambda: opened(url, name="fresh", key=key),
    ):
        with pytest.raises(dp.LedgerError, match=words):
            use()


@pytest.mark.parametrize("thorough", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("column", COLUMNS)
def test_an_edit_of_any_value_is_found(
    url: str, key: str | None, column: str, thorough: bool
) -> None:
    found = 0
    for seq in range(1, RECORDS + 1) if thorough else (4,):
        ((value,),) = sql(url, f"SELECT {column} FROM records WHERE seq = ?", seq)
        for other in other_values(value)[: None if thorough else 3]:
            if column in ("seq", "refers") and not isinstance(other, int):
                continue
            try:
                sql(url, f"UPDATE records SET {column} = ? WHERE seq = ?", other, seq)
            except psycopg.Error:  # the table itself does not take it
                continue
            now = other if column == "seq" else seq
            if sql(url, f"SELECT {column} FROM records WHERE seq = ?", now) != [(value,)]:
                with pytest.raises(dp.LedgerError, match="does not verify"):
                    verify(url, key)
                found += 1
            sql(url, f"UPDATE records SET seq = {seq} WHERE seq = ?", now)
            sql(url, f"UPDATE records SET {column} = ? WHERE seq = ?", value, seq)
    assert found >= (6 if thorough else 1)
    verify(url, key)


@pytest.mark.parametrize("column", ["seq", "hash", "seal"])
def test_an_edit_of_the_head_is_found(url: str, key: str | None, column: str) -> None:
    ((value,),) = sql(url, f"SELECT {column} FROM head")
    ledger = opened(url, key=key)
    for other in (value + 1, 8, 0, -1) if column == "seq" else ("", value.upper(), value[:-1]):
        sql(url, f"UPDATE head SET {column} = ?", other)
        require_refused(url, key)
        with pytest.raises(dp.LedgerError, match="does not verify"):
            ledger.charge(TENTH, "f")


@pytest.mark.parametrize("seq", [1, 4, RECORDS])
def test_a_deletion_is_found(url: str, key: str | None, seq: int) -> None:
    sql(url, "DELETE FROM records WHERE seq = ?", seq)
    require_refused(url, key)


def test_a_swap_is_found(url: str, key: str | None) -> None:
    for before, after in ((3, 100), (4, 3), (100, 4)):
        sql(url, "UPDATE records SET seq = ? WHERE seq = ?", after, before)
    require_refused(url, key)


CHANGES = [
    "TRUNCATE records",
    "DELETE FROM head",
    "DROP TABLE head",
    "DROP TABLE records",
    "CREATE TABLE more (x int)",
    "CREATE VIEW more AS SELECT 1 AS x",
    "CREATE INDEX more ON records (name)",
    "CREATE RULE r AS ON INSERT TO records DO INSTEAD NOTHING",
    "CREATE RULE r AS ON DELETE TO head DO ALSO SELECT 1",
    "ALTER TABLE records ADD COLUMN more text",
    "ALTER TABLE records DROP COLUMN why",
    "ALTER TABLE records RENAME COLUMN who TO whom",
    "ALTER TABLE records ALTER COLUMN main TYPE varchar(9)",
    "ALTER TABLE records ALTER COLUMN act DROP NOT NULL",
    "ALTER TABLE records ALTER COLUMN who SET DEFAULT 'me'",
    "ALTER TABLE records DROP CONSTRAINT records_pkey",
    "ALTER TABLE head DROP CONSTRAINT head_one_check",
    "ALTER TABLE records SET UNLOGGED",
    "ALTER TABLE records ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE records FORCE ROW LEVEL SECURITY, ENABLE ROW LEVEL SECURITY",
    "CREATE TABLE public.child () INHERITS (dpframe_ledger.records)",
    "CREATE TRIGGER t BEFORE INSERT ON records FOR EACH ROW "
    "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "ALTER SCHEMA dpframe_ledger RENAME TO elsewhere",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_changes_of_tables_are_found(server: Server, statement: str) -> None:
    """By new processes, and by one that uses them all the time."""
    url = server.empty()
    filled(url)
    ledger = opened(url)
    ledger.charge(TENTH, "f")
    sql(url, statement)
    try:
        for use in (lambda: ledger.charge(TENTH, "f"), lambda: ledger.spent):
            with pytest.raises(dp.LedgerError, match="does not verify"):
                use()
        if "RENAME TO" not in statement:
            require_refused(url, None)
    finally:
        server.sql("DROP TABLE IF EXISTS public.child")
        server.sql("DROP SCHEMA IF EXISTS elsewhere CASCADE")


def test_rows_of_a_child_table_are_not_records(url: str, key: str | None) -> None:
    sql(url, "CREATE TABLE public.child () INHERITS (dpframe_ledger.records)")
    try:
        sql(url, "INSERT INTO public.child SELECT * FROM records WHERE seq = 2")
        require_refused(url, key, "its tables were changed")
    finally:
        sql(url, "DROP TABLE public.child")
    verify(url, key)


# -- while it is in use -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET main = '0' WHERE seq = 2",
        "DELETE FROM records WHERE seq = 9",
        "UPDATE head SET seq = 8",
        "UPDATE records SET fingerprint = '' WHERE seq = 3",
    ],
)
def test_a_change_while_it_is_in_use_is_found(url: str, key: str | None, statement: str) -> None:
    ledger = opened(url, key=key)
    ledger.charge(TENTH, "f")
    sql(url, statement)
    for _ in range(2):  # and it stays so
        with pytest.raises(dp.LedgerError, match="does not verify"):
            ledger.charge(TENTH, "f")
        with pytest.raises(dp.LedgerError, match="does not verify"):
            _ = ledger.spent


def test_a_record_added_by_hand_while_it_is_in_use_is_found(url: str, key: str | None) -> None:
    ledger = opened(url, key=key)
    others = ", ".join(COLUMNS[1:])
    sql(url, f"INSERT INTO records SELECT 10, {others} FROM records WHERE seq = 9")
    with pytest.raises(dp.LedgerError, match="did not take its lock"):
        ledger.charge(TENTH, "f")
    with pytest.raises(dp.LedgerError, match="does not verify"):
        ledger.charge(TENTH, "f")
    require_refused(url, key)


EDIT = "UPDATE records SET main = '0' WHERE seq = 3"


@pytest.fixture
def unseen(url: str, key: str | None, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """A long ledger, a record of which is edited without a trace in the statistics."""
    monkeypatch.setattr(store, "SHORT", 20)
    ledger = opened(url, dp.PureDP(1), key=key)
    for _ in range(22):
        ledger.charge(dp.PureDP("1e-9"), "f")

    def edited() -> Any:
        assert ledger.spent.main > 0
        for statement in ("SET track_counts = off", EDIT, "SET track_counts = on"):
            sql(url, statement)
        return ledger

    return edited


def test_an_unseen_edit_gives_a_running_process_no_more_budget(
    url: str, key: str | None, unseen: Callable[[], Any]
) -> None:
    ledger = unseen()
    before = ledger.spent
    with pytest.raises(dp.BudgetExceeded):
        ledger.charge(dp.PureDP("0.7"), "f")
    ledger.charge(TENTH, "f")
    assert ledger.spent == before + TENTH
    with pytest.raises(dp.LedgerError, match="record 3 was changed"):
        opened(url, key=key)
    with pytest.raises(dp.LedgerError, match="record 3 was changed"):
        ledger.verify()


def test_an_unseen_edit_is_found_in_time(
    unseen: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = unseen()
    assert ledger.spent.main > 0
    monkeypatch.setattr(store, "PERIOD", -1.0)
    with pytest.raises(dp.LedgerError, match="record 3 was changed"):
        ledger.charge(TENTH, "f")


def test_an_unseen_edit_is_found_when_the_chain_has_doubled(
    url: str, unseen: Callable[[], Any]
) -> None:
    ledger = unseen()
    with pytest.raises(dp.LedgerError, match="record 3 was changed"):
        _ = [ledger.charge(dp.PureDP("1e-9"), "f") for _ in range(50)]
    assert sql(url, "SELECT count(*) FROM records")[0][0] < 70


# -- with and without the key -----------------------------------------------------------------


def test_with_a_key_a_rewritten_chain_is_found_too(url: str, key: str | None) -> None:
    running = opened(url, key=key)
    rewritten(url, Seal(None))
    with pytest.raises(dp.LedgerError, match=r"not the one that was there before|another key"):
        running.charge(TENTH, "f")
    if key is None:
        assert opened(url).spent == dp.PureDP("0.003")  # only a key prevents that
        return
    require_refused(url, key, "another key")
    rewritten(url, Seal("guessed"))
    require_refused(url, key, "another key")
