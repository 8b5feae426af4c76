"""Servers, connections and disks that fail: a LedgerError, and never a charge that is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

import dpframe as dp
from dpframe import runner
from dpframe.ledger import postgres
from dpframe.ledger.record import Draft
from tests.api.test_session import Source
from tests.ledger.ledgers import TENTH, UNIT, filled, in_child, opened, sql, verify
from tests.postgres import ADMIN, Server

MANY = dp.PureDP(10**6)
THOUSANDTH = dp.PureDP("0.001")


@pytest.fixture
def url(server: Server) -> str:
    made = server.empty()
    filled(made)
    return made


def eventually(holds: Callable[[], bool]) -> None:
    """A server takes a moment to act on a signal or a setting."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# -- locks, rights and settings ---------------------------------------------------------------


def test_a_locked_ledger_is_refused_after_a_while(url: str) -> None:
    ledger = opened(url, timeout=0.4)
    with psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE dpframe_ledger.head IN EXCLUSIVE MODE")
        with pytest.raises(dp.LedgerError, match="locked by another process"):
            ledger.charge(TENTH, "f")
        assert ledger.spent == dp.PureDP("0.3")  # reading goes on
        holder.execute("LOCK TABLE dpframe_ledger.records")
        with pytest.raises(dp.LedgerError, match="locked by another process"):
            _ = ledger.verify()
        with pytest.raises(dp.LedgerError, match="locked by another process"):
            opened(url, timeout=0.4)
    ledger.charge(TENTH, "f")
    assert opened(url).spent == dp.PureDP("0.4")


def test_who_stops_in_the_middle_does_not_keep_the_lock(url: str) -> None:
    stopped = opened(url, timeout=0.4)  # idle for 1.6 seconds at most

    def elsewhere() -> int:
        opened(url, timeout=5).charge(TENTH, "other")
        return 7

    def stop(_: Any) -> Any:
        assert in_child(elsewhere) == 7
        return Draft("default", "charged", None, "f", UNIT, TENTH)

    with pytest.raises(dp.LedgerError, match="connection was lost"):
        stopped._store.append(stop)
    assert opened(url).spent == dp.PureDP("0.4")
    stopped.charge(TENTH, "f")
    assert opened(url).spent == dp.PureDP("0.5")


def test_a_role_that_may_not_write_is_refused(server: Server, url: str) -> None:
    server.sql("ALTER DATABASE ledger SET default_transaction_read_only = on")
    try:
        ledger = opened(url)
        assert ledger.spent == dp.PureDP("0.3")
        with pytest.raises(dp.LedgerError, match=r"cannot be written: .* read-only"):
            ledger.charge(TENTH, "f")
        with pytest.raises(dp.LedgerError, match=r"cannot be written: .* read-only"):
            opened(url, name="new")
    finally:
        server.sql("ALTER DATABASE ledger RESET ALL")
    assert opened(url).spent == dp.PureDP("0.3")


@contextmanager
def setting(server: Server, name: str, value: str) -> Iterator[None]:
    def changed(statement: str, value: str) -> None:
        server.sql(statement)
        server.sql("SELECT pg_reload_conf()")
        eventually(lambda: server.sql(f"SHOW {name}") == [(value,)])

    ((before,),) = server.sql(f"SHOW {name}")
    changed(f"ALTER SYSTEM SET {name} = {value}", value)
    try:
        yield
    finally:
        changed(f"ALTER SYSTEM RESET {name}", before)


def test_a_server_that_may_forget_is_refused(server: Server, url: str) -> None:
    ledger = opened(url)
    with setting(server, "fsync", "off"):
        fresh = opened(url)
        with pytest.raises(dp.LedgerError, match="fsync switched off"):
            fresh.charge(TENTH, "f")
        assert ledger.spent == dp.PureDP("0.3")
        eventually(lambda: refused(ledger))
        spent = opened(url).spent
    ledger.charge(TENTH, "f")
    assert opened(url).spent == spent + TENTH


def refused(ledger: Any) -> bool:
    try:
        ledger.charge(THOUSANDTH, "f")
    except dp.LedgerError:
        return True
    return False


def test_a_commit_that_a_standby_does_not_confirm_is_a_failure(server: Server, url: str) -> None:
    """The server says it with a warning only. The charge counts."""
    ledger = opened(url, timeout=0.4)
    with setting(server, "synchronous_standby_names", "nobody"):
        eventually(lambda: refused(ledger))
    spent = opened(url).spent
    assert spent.main > dp.PureDP("0.3").main
    ledger.charge(TENTH, "f")
    assert ledger.spent == spent + TENTH
    verify(url)


# -- connections ------------------------------------------------------------------------------


def end_sessions(url: str) -> None:
    sql(
        url,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name = 'dpframe ledger'",
    )


def test_a_connection_that_was_idle_and_lost_is_replaced(url: str) -> None:
    ledger = opened(url)
    for n in range(3):
        end_sessions(url)
        assert ledger.spent.main * 10 == 3 + n
        end_sessions(url)
        ledger.charge(TENTH, "f")
    assert opened(url).spent == dp.PureDP("0.6")


class Faulty(psycopg.Connection[Any]):
    """A connection whose n-th statement fails, before or after it took effect."""

    countdown = 10**9
    error: BaseException | None = None
    after = False

    def execute(self, *arguments: Any, **options: Any) -> Any:
        Faulty.countdown -= 1
        if Faulty.countdown == 0 and not Faulty.after:
            self.fail()
        done = super().execute(*arguments, **options)
        if Faulty.countdown == 0 and Faulty.after:
            self.fail()
        return done

    def fail(self) -> None:
        if Faulty.error is None:  # the session is ended by the server
            end_sessions(f"postgresql://{ADMIN}@{self.info.host}:{self.info.port}/ledger")
            super().execute("SELECT 1")
        assert Faulty.error is not None
        raise Faulty.error.with_traceback(None)  # which would keep all ledgers alive


FAULTS = [
    None,
    psycopg.OperationalError("x"),
    KeyboardInterrupt(),
    psycopg.errors.DiskFull("x"),
    MemoryError(),
]


@pytest.mark.parametrize(
    ("error", "after"),
    [
        pytest.param(
            error,
            after,
            id=f"{type(error).__name__}-{'after' if after else 'before'}",
            marks=[] if n == after else [pytest.mark.slow],
        )
        for n, error in enumerate(FAULTS)
        for after in (False, True)
    ],
)
def test_whichever_statement_fails_the_ledger_counts_what_was_let_through(
    url: str, monkeypatch: pytest.MonkeyPatch, error: BaseException | None, after: bool
) -> None:
    monkeypatch.setattr(postgres.psycopg, "connect", Faulty.connect)
    sql(url, "DROP SCHEMA dpframe_ledger CASCADE")
    expected = type(error) if error and not isinstance(error, psycopg.Error) else dp.LedgerError
    let_through = faults = n = 0
    Faulty.error, Faulty.after = error, after
    finished = False
    while not finished:
        n += 1
        Faulty.countdown = n
        try:
            ledger = opened(url)
            ledger.settle(ledger.charge(THOUSANDTH, "f", UNIT), "released")
            let_through += 1
        except expected:
            faults += 1
        finished = Faulty.countdown > 0
        Faulty.countdown = 10**9
        spent = opened(url).spent
        assert dp.PureDP(f"{let_through}/1000").main <= spent.main
        assert spent.main <= dp.PureDP(f"{n}/1000").main
        verify(url)
        assert n < 60
    assert faults > 12
    assert let_through >= 1


class Proxy:
    """Between a client and the server: cuts both off at the COMMIT of a record, before it reaches
    the server or after it was done."""

    def __init__(self, server: Server) -> None:
        self.cut: str | None = None
        self._to = str(server.place / f".s.PGSQL.{server.port}")
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = f"postgresql://{ADMIN}@127.0.0.1:{port}/ledger"
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(self._to)
                for pump in (self._ask, self._answer):
                    threading.Thread(target=pump, args=(client, upstream), daemon=True).start()

    def _ask(self, client: socket.socket, upstream: socket.socket) -> None:
        recorded = False
        with suppress(OSError):
            while data := client.recv(1 << 16):
                recorded = recorded or b"INSERT INTO dpframe_ledger.records" in data
                if data.endswith(b"COMMIT\0") and recorded and self.cut == "before":
                    break
                if data.endswith(b"COMMIT\0"):
                    if recorded and self.cut == "after":
                        self.cut = "now"
                    recorded = False
                upstream.sendall(data)
        self._end(client, upstream)

    def _answer(self, client: socket.socket, upstream: socket.socket) -> None:
        with suppress(OSError):
            while data := upstream.recv(1 << 16):
                if self.cut == "now":
                    break
                client.sendall(data)
        self._end(client, upstream)

    def _end(self, *ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_commit_whose_end_is_not_known_is_a_failure(server: Server, url: str, cut: str) -> None:
    proxy = Proxy(server)
    try:
        source = Source()
        session = dp.Session(epsilon=1, ledger=proxy.url)
        query = session.protect(source.frame, dp.Rows()).dp_count()
        query.collect(epsilon="0.1")
        spent = session.spent
        proxy.cut = cut
        with pytest.raises(dp.LedgerError, match="the connection was lost"):
            query.collect(epsilon="0.1")
        proxy.cut = None
        assert source.reads == 1  # nothing was read for it
        counted = spent + TENTH if cut == "after" else spent
        eventually(lambda: opened(url).spent == counted)
        assert session.spent == counted
        query.collect(epsilon="0.1")
        assert session.spent == opened(url).spent == counted + TENTH
        verify(url)
    finally:
        proxy.close()


# -- the server -------------------------------------------------------------------------------


def test_nothing_is_read_while_the_server_is_stopped(server: Server, url: str) -> None:
    source = Source()
    session = dp.Session(epsilon=1, ledger=url)
    query = session.protect(source.frame, dp.Rows()).dp_count()
    server.stop()
    try:
        for _ in range(2):
            with pytest.raises(dp.LedgerError, match="no server listens there"):
                query.collect(epsilon="0.1")
        assert source.reads == 0
        assert "remains" not in repr(session)
    finally:
        server.start()
    query.collect(epsilon="0.1")
    assert source.reads == 1
    assert session.spent == opened(url).spent == dp.PureDP("0.4")
    verify(url)


def test_nothing_comes_out_when_the_server_stops_during_a_release(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = dp.Session(epsilon=1, ledger=url)
    query = session.protect(Source().frame, dp.Rows()).dp_count()
    real = runner.assemble

    def then_stopped(*arguments: Any) -> Any:
        server.stop(signal.SIGQUIT)
        return real(*arguments)

    monkeypatch.setattr(runner, "assemble", then_stopped)
    try:
        with pytest.raises(dp.LedgerError, match=r"no server listens there|lost"):
            query.collect(epsilon="0.1")
    finally:
        server.start()
    assert session.history["status"].to_list()[-1] == "charged"
    assert opened(url).spent == dp.PureDP("0.4")


@pytest.mark.parametrize("kills", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_a_server_that_crashes_remembers_what_it_confirmed(
    server: Server, url: str, kills: int
) -> None:
    sql(url, "DROP SCHEMA dpframe_ledger CASCADE")
    opened(url, MANY)
    wait = random.Random(3)
    confirmed = 0
    for _ in range(kills):
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            with suppress(BaseException):
                ledger = opened(url, MANY)
                while True:
                    ledger.settle(ledger.charge(TENTH, "f", UNIT), "released")
                    os.write(writing, b".")
            os._exit(0)
        os.close(writing)
        assert os.read(reading, 1)
        time.sleep(wait.uniform(0, 0.05))
        server.stop(signal.SIGQUIT)
        confirmed += 1
        while part := os.read(reading, 1 << 16):
            confirmed += len(part)
        os.close(reading)
        os.waitpid(process, 0)
        server.start()
        verify(url)
        statuses = [e.status for e in opened(url, MANY).entries]
        assert statuses.count("released") >= confirmed
        assert len(statuses) <= confirmed + 2 * kills


# -- disks ------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(server: Server, url: str) -> Iterator[Path]:
    """Where a table may be that is not to grow beyond some pages."""
    place = server.place / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(place)]
    if os.geteuid() or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    shutil.chown(place, **{k: v for k, v in server.owner.items() if k == "user"})
    server.sql(f"CREATE TABLESPACE small LOCATION '{place}'")
    yield place
    server.empty()
    server.sql("DROP TABLESPACE small")
    subprocess.run(["umount", "-l", str(place)], check=True)
    place.rmdir()


def test_a_full_disk_is_refused(server: Server, url: str, small_disk: Path) -> None:
    server.sql("ALTER TABLE records SET TABLESPACE small")
    ledger = opened(url)
    before = len(ledger.entries)
    with pytest.raises(dp.LedgerError, match="out of space"):
        _ = [ledger.charge(dp.PureDP("0.0001"), "f" * 64) for _ in range(1000)]
    charged = len(ledger.entries) - before
    assert charged > 5
    assert ledger.spent == opened(url).spent
    assert opened(url).spent.main == dp.PureDP("0.3").main + charged * dp.PureDP("0.0001").main
    server.sql("ALTER TABLE records SET TABLESPACE pg_default")
    ledger.charge(TENTH, "f")
    verify(url)


def test_a_damaged_page_is_refused(server: Server, url: str) -> None:
    ledger = opened(url)
    ((file,),) = server.sql("SELECT pg_relation_filepath('records')")
    server.sql("CHECKPOINT")
    server.stop()
    page = server.data / file
    content = page.read_bytes()
    try:
        found = content.index(b"1/10")
        page.write_bytes(content[:found] + b"0/10" + content[found + 4 :])
        server.start()
        for use in (
            lambda: ledger.charge(TENTH, "f"),
            lambda: ledger.spent,
            ledger.verify,
            lambda: opened(url),
            lambda: verify(url),
        ):
            with pytest.raises(dp.LedgerError, match="is damaged"):
                use()
    finally:
        server.stop()
        page.write_bytes(content)
        server.start()
    assert ledger.spent == dp.PureDP("0.3")
    verify(url)
