"""What is so only of budgets on a server: addresses, passwords, rights, head files, forks."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import dpframe as dp
from dpframe.ledger import store
from dpframe.ledger.locks import this_process
from dpframe.ledger.place import store_at
from dpframe.ledger.postgres import CREATED, Address
from tests.ledger.ledgers import TENTH, UNIT, filled, in_child, opened, sql, verify
from tests.postgres import Server, forget_connections

SECRET = "sesame%2Fopen"
"""A password as it is written in a URL; as text it has a slash."""


@pytest.fixture
def url(server: Server) -> str:
    return server.empty()


@pytest.fixture
def analyst(server: Server, url: str) -> Iterator[str]:
    """A role with a password and without any right."""
    server.sql("CREATE ROLE analyst LOGIN PASSWORD 'sesame/open'")
    yield server.network_url("analyst", SECRET)
    server.sql("DROP OWNED BY analyst")
    server.sql("DROP ROLE analyst")
    forget_connections()


def told(error: BaseException) -> str:
    """Everything that a failure shows of itself, its causes included."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(error.__cause__)


# -- addresses and passwords ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://ann@db.example:5433/budgets", "postgresql://db.example:5433/budgets"),
        ("postgres://ann:secret@db/budgets", "postgresql://db/budgets"),
        ("postgresql://ann:s%40%2Fecret@db/budgets", "postgresql://db/budgets"),
        ("postgresql:///b?host=/run/pg&user=ann&password=secret", "postgresql://%2Frun%2Fpg/b"),
        ("postgresql://db/b?sslpassword=secret", "postgresql://db/b"),
        ("postgresql://a,b:1/c%20d", "postgresql://a,b:,1/c%20d"),
        ("postgresql://ann:secret@db", "postgresql://db/ann"),  # her own database
        ("postgresql://db/b?hostaddr=10.0.0.1", "postgresql://db/b?hostaddr=10.0.0.1"),
        ("postgresql:///b?hostaddr=10.0.0.1", "postgresql://10.0.0.1/b"),
        ("postgresql://db/b?service=prod", "postgresql://db/b?service=prod"),
    ],
)
def test_an_address_is_shown_without_user_and_password(given: str, shown: str) -> None:
    found = Address.of(given)
    assert found.words == shown
    assert "secret" not in repr(found)
    assert store_at(given).where == shown


@pytest.mark.parametrize(
    "given",
    [
        "postgresql://ann:sec/ret@db/b",
        "postgresql://ann:12/secret@db/b",
        "postgresql://ann:sec@ret@db/b",
        "postgresql://ann:sec?ret@db/b",
        "postgresql://ann:1?x=secret@db/b",
        "postgresql://ann:sec#ret@db/b",
        "postgresql://ann:secret/b",
        "postgresql://ann:se%zzcret@db/b",
        "postgresql://db/b?unknown=secret",
        "postgresql://db/b?secret",
    ],
)
def test_an_address_that_might_show_a_password_is_refused(given: str) -> None:
    with pytest.raises(dp.LedgerError, match="cannot be read") as caught:
        dp.Session(epsilon=1, ledger=given)
    assert "sec" not in str(caught.value) + str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((SECRET, "sesame-wrong"), "password is missing or wrong"),
        ((f":{SECRET}", ""), "password is missing or wrong"),
        (("/ledger", "/nowhere"), "does not exist"),
        (("analyst", "nobody"), "missing or wrong"),  # the server does not tell more
        (("127.0.0.1:", "127.0.0.1:1"), "cannot be (opened|read)"),
        (("127.0.0.1", "no.such.host.invalid"), "cannot be opened"),
    ],
)
def test_who_cannot_connect_is_told_why(analyst: str, change: tuple[str, str], words: str) -> None:
    with pytest.raises(dp.LedgerError, match=words) as caught:
        opened(analyst.replace(*change))
    assert "sesame" not in told(caught.value).replace("replace(*change)", "")


def test_passwords_are_never_shown(server: Server, url: str, analyst: str) -> None:
    server.sql("GRANT CREATE ON DATABASE ledger TO analyst")
    session = dp.Session(epsilon=1, ledger=analyst, name="census")
    shown = f"postgresql://127.0.0.1:{server.port}/ledger"
    assert repr(session) == f"<Session 'census': epsilon 1 of epsilon 1 remains, kept in {shown}>"
    server.sql("ALTER TABLE dpframe_ledger.records RENAME TO other")
    with pytest.raises(dp.LedgerError) as caught:
        _ = session.remaining
    assert "sesame" not in told(caught.value)
    server.sql("ALTER ROLE analyst PASSWORD 'changed'")
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'analyst'")
    with pytest.raises(dp.LedgerError, match="missing or wrong") as caught:
        _ = session.remaining
    assert "sesame" not in told(caught.value)
    assert "sesame" not in repr(session)
    assert "missing or wrong" in repr(session)


def test_without_its_driver_the_remedy_is_told() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "import dpframe as dp\n"
        "dp.Session(epsilon=1, ledger='postgresql://u:secret@h/d')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'instead: pip install "dpframe[postgres]"' in done.stderr
    assert "secret" not in done.stderr.replace(code.splitlines()[-1], "")


def test_only_ledgers_on_servers_load_the_driver(tmp_path: Path) -> None:
    code = (
        "import sys, dpframe as dp\n"
        f"dp.Session(epsilon=1, ledger={str(tmp_path / 'budget.db')!r})\n"
        "assert 'psycopg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- creation ---------------------------------------------------------------------------------


def test_first_users_do_not_get_in_each_others_way(url: str) -> None:
    """All find nothing, and one of them creates the tables."""
    failures: list[BaseException] = []
    together = threading.Barrier(8)

    def first(number: int) -> None:
        try:
            together.wait()
            opened(url, name=f"budget {number % 4}")
        except BaseException as error:
            failures.append(error)

    for _ in range(3):
        sql(url, "DROP SCHEMA IF EXISTS dpframe_ledger CASCADE")
        threads = [threading.Thread(target=first, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert sql(url, "SELECT count(*) FROM records") == [(5,)]
        verify(url)


def test_another_schema_of_that_name_is_left_alone(url: str) -> None:
    sql(url, "CREATE SCHEMA dpframe_ledger")
    sql(url, "CREATE TABLE dpframe_ledger.people (name text)")
    with pytest.raises(dp.LedgerError, match="its tables were changed"):
        opened(url)
    assert sql(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'dpframe_ledger'") == [(1,)]


def test_a_database_in_another_encoding_is_refused(server: Server) -> None:
    create = "CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    server.sql(create, database="postgres")
    with pytest.raises(dp.LedgerError, match="has the encoding LATIN1"):
        opened(server.url("latin1"))
    server.sql("DROP DATABASE latin1", database="postgres")


# -- rights -----------------------------------------------------------------------------------

GRANTS = (
    "GRANT USAGE ON SCHEMA dpframe_ledger TO analyst",
    "GRANT SELECT, INSERT ON dpframe_ledger.records TO analyst",
    "GRANT SELECT, UPDATE ON dpframe_ledger.head TO analyst",
)


def test_a_role_that_may_only_append_can_spend(server: Server, url: str, analyst: str) -> None:
    opened(url)
    for grant in GRANTS:
        server.sql(grant)
    ledger = opened(analyst)
    ledger.settle(ledger.charge(TENTH, "f", UNIT), "released")
    assert opened(analyst, name="its own").budget == dp.PureDP(1)
    assert opened(url).spent == TENTH
    verify(analyst)
    for forbidden in (
        "UPDATE dpframe_ledger.records SET main = '0'",
        "DELETE FROM dpframe_ledger.records",
        "TRUNCATE dpframe_ledger.records",
        "DELETE FROM dpframe_ledger.head",
        "DROP SCHEMA dpframe_ledger CASCADE",
        "ALTER TABLE dpframe_ledger.records ADD COLUMN more text",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql(analyst, forbidden)
    verify(url)


def test_the_grants_are_those_of_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
    for grant in GRANTS:
        assert f"{grant};" in manual


@pytest.mark.parametrize("missing", range(5))
def test_every_grant_is_needed(server: Server, url: str, analyst: str, missing: int) -> None:
    opened(url)
    for grant in GRANTS:
        server.sql(grant)
    on = (
        "USAGE ON SCHEMA dpframe_ledger",
        *(
            f"{right} ON dpframe_ledger.{table}"
            for table, right in (
                ("records", "SELECT"),
                ("records", "INSERT"),
                ("head", "SELECT"),
                ("head", "UPDATE"),
            )
        ),
    )
    server.sql(f"REVOKE {on[missing]} FROM analyst")
    with pytest.raises(dp.LedgerError, match="does not permit this to this role"):
        opened(analyst).charge(TENTH, "f")
    assert opened(url).spent == dp.PureDP(0)


def test_a_role_without_rights_is_refused(url: str, analyst: str) -> None:
    with pytest.raises(dp.LedgerError, match="permit it to create a schema"):
        opened(analyst)
    opened(url)
    with pytest.raises(dp.LedgerError, match="does not permit this to this role"):
        opened(analyst)


def test_a_role_that_may_only_read_can_look(server: Server, url: str, analyst: str) -> None:
    filled(url)
    server.sql("GRANT USAGE ON SCHEMA dpframe_ledger TO analyst")
    server.sql("GRANT SELECT ON ALL TABLES IN SCHEMA dpframe_ledger TO analyst")
    assert opened(analyst).spent == dp.PureDP("0.3")
    verify(analyst)


# -- head files -------------------------------------------------------------------------------


OLDER = r"once had 3|not the one that was there before"


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "census.head"
    monkeypatch.setenv("DPFRAME_LEDGER_HEAD", str(path))
    return path


def test_a_head_file_notices_an_older_copy(url: str, head: Path) -> None:
    session = dp.Session(epsilon=1, ledger=url)
    session._payer.ledger.charge(TENTH, "f")
    assert head.read_text().startswith(f"{3:020d} ")
    for way in ("DROP SCHEMA dpframe_ledger CASCADE", None):
        if way is not None:
            sql(url, way)
        else:  # a ledger that is as long
            head.rename(head.with_suffix(".kept"))
            opened(url).charge(TENTH + TENTH, "other")
            head.with_suffix(".kept").rename(head)
        with pytest.raises(dp.LedgerError, match=OLDER):
            dp.Session(epsilon=1, ledger=url)
    head.unlink()  # a decision to forget
    assert dp.Session(epsilon=1, ledger=url).spent == dp.PureDP("0.2")


def test_a_head_file_that_moves_on_during_a_read_is_no_alarm(url: str, head: Path) -> None:
    session = dp.Session(epsilon=1, ledger=url)
    reader = store_at(url)
    begin, charged = reader._begin, []
    reader._approach = lambda *_, **__: None  # type: ignore[method-assign]

    def then_another_charges(writing: bool) -> object:
        tables = begin(writing)
        if not charged:
            charged.append(session._payer.ledger.charge(TENTH, "f"))
        return tables

    reader._begin = then_another_charges  # type: ignore[method-assign,assignment]
    assert reader.read().length == 2
    assert head.read_text().startswith(f"{3:020d} ")


def test_without_a_head_file_only_running_processes_notice_an_older_copy(url: str) -> None:
    session = dp.Session(epsilon=1, ledger=url)
    session._payer.ledger.charge(TENTH, "f")
    sql(url, "DROP SCHEMA dpframe_ledger CASCADE")
    with pytest.raises(dp.LedgerError, match=r"missing|once had 3"):
        session._payer.ledger.charge(TENTH, "f")
    dp.Session(epsilon=1, ledger=url)  # what docs/ledger.md says is not noticed
    with pytest.raises(dp.LedgerError, match=OLDER):
        _ = session.remaining


@pytest.mark.parametrize("since", [0, 1])
def test_what_is_put_back_goes_on_if_it_has_every_release(url: str, since: int) -> None:
    """Processes that run since before know the last one; others are at another place then."""
    ledger = opened(url)
    ledger.charge(TENTH, "f")
    kept = {
        table: sql(url, f"SELECT * FROM dpframe_ledger.{table} ORDER BY 1")
        for table in ("records", "head")
    }
    for _ in range(since):
        ledger.charge(TENTH, "f")
    sql(url, "DROP SCHEMA dpframe_ledger CASCADE")
    sql(url, f"CREATE SCHEMA dpframe_ledger; {CREATED.decode()}")
    for table, rows in kept.items():
        for row in rows:
            marks = ", ".join("?" * len(row))
            sql(url, f"INSERT INTO dpframe_ledger.{table} VALUES ({marks})", *row)
    if since:
        with pytest.raises(dp.LedgerError, match="ends at record 3, and once had 4"):
            ledger.charge(TENTH, "f")
        return
    ledger.charge(TENTH, "f")
    opened(url).charge(TENTH, "f")
    assert ledger.spent == dp.PureDP("0.3")
    verify(url)


def test_a_head_file_that_cannot_be_written_is_found_before_the_charge(
    url: str, head: Path
) -> None:
    session = dp.Session(epsilon=1, ledger=url)
    head.unlink()
    head.mkdir()
    with pytest.raises(dp.LedgerError, match=r"the head file '.*census\.head'"):
        session._payer.ledger.charge(TENTH, "f")
    head.rmdir()
    assert dp.Session(epsilon=1, ledger=url).spent == dp.PureDP(0)


# -- connections ------------------------------------------------------------------------------


def backend(ledger: object) -> int:
    connection = ledger._store._connection  # type: ignore[attr-defined]
    number: int = connection.info.backend_pid
    return number


def test_a_forked_process_leaves_the_connection_of_its_parent_alone(url: str) -> None:
    ledger = opened(url)
    ledger.charge(TENTH, "parent")
    before = backend(ledger)

    def spend() -> int:
        nonlocal ledger
        ledger.charge(TENTH, "child")
        other = backend(ledger)
        del ledger
        gc.collect()
        return 7 if other != before else 8

    assert in_child(spend) == 7
    ledger.charge(TENTH, "parent")
    assert backend(ledger) == before
    assert [e.fingerprint for e in ledger.entries] == ["parent", "child", "parent"]


@pytest.mark.always
def test_a_ledger_that_is_gone_closes_its_connection(url: str) -> None:
    """Before Python finds it open, and warns."""
    ledger = opened(url)
    process = backend(ledger)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        del ledger
        gc.collect()
    assert [str(one.message) for one in caught] == []
    for _ in range(500):
        if not sql(url, "SELECT 1 FROM pg_stat_activity WHERE pid = ?", process):
            return
    pytest.fail("still there")


def test_settings_of_roles_do_not_weaken_a_commit(server: Server, url: str) -> None:
    """Nor lead elsewhere: the schema is named, and functions are those of the system."""
    ledger = opened(url)
    server.sql("ALTER DATABASE ledger SET synchronous_commit = off")
    server.sql("ALTER DATABASE ledger SET search_path = public, pg_catalog")
    try:
        ledger = opened(url)
        settings = {
            "synchronous_commit": "on",
            "search_path": "pg_catalog, pg_temp",
            "lock_timeout": "15s",
            "statement_timeout": "1min",
            "idle_in_transaction_session_timeout": "1min",
            "transaction_isolation": "read committed",
        }

        def shown(*_: object) -> dict[str, str]:
            connection = ledger._store._connection
            return {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in settings}

        assert ledger._store._transact(shown, writing=True) == settings
        connection = ledger._store._connection
        assert connection.execute("SHOW synchronous_commit").fetchall() == [("off",)]
    finally:
        server.sql("ALTER DATABASE ledger RESET ALL")


def test_a_check_does_not_read_old_records(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the chain is: old rows are not looked at, new ones are."""
    monkeypatch.setattr(store, "SHORT", 20)
    ledger, other = opened(url, dp.PureDP(10**6)), opened(url, dp.PureDP(10**6))
    for _ in range(30):
        other.charge(TENTH, "f")
    for _ in range(2):  # the second time because the chain has doubled
        assert ledger.spent == other.spent
    statements: list[str] = []
    connection = ledger._store._connection
    real = connection.execute

    def noted(statement: bytes, *values: object) -> object:
        statements.append(re.sub(r"\s+", " ", statement.decode()))
        return real(statement, *values)

    connection.execute = noted
    other.charge(TENTH, "f")
    ledger.charge(TENTH, "f")
    connection.execute = real
    reading = [s for s in statements if "FROM ONLY dpframe_ledger.records" in s]
    assert len(reading) == 1
    assert "WHERE seq > %s" in reading[0]
    assert ledger._store._process == this_process()
