"""A ledger in PostgreSQL, shared by threads, processes and machines.

One transaction per record. It locks the table `head`, which every writer must change. Unlike an
advisory lock, this is refused to roles without rights on the ledger, shows in `pg_locks` under
the ledger's name, and keeps out edits by hand. Unlike SERIALIZABLE, a transaction never has to be
repeated, so waiting writers take turns. Readers are not locked out; they read one snapshot. The
tables are created under an advisory lock, because there is nothing else to lock yet.

Durability: ``synchronous_commit = on`` for each transaction, overriding the role's default. So a
commit is on the server's disk before it returns, and on the disks of synchronous standbys where
those are configured. (``remote_apply`` would also wait until they show it, which adds nothing.) A
server with ``fsync = off`` is refused. A commit whose end is not known is a failure: the record
may count, and nothing is released.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar
from weakref import WeakSet, finalize

import psycopg
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus

from dpframe.errors import LedgerError
from dpframe.ledger.absent import no_ledger
from dpframe.ledger.head_file import HeadFile
from dpframe.ledger.places import claim
from dpframe.ledger.postgres.address import Address
from dpframe.ledger.postgres.contents import PostgresContents
from dpframe.ledger.postgres.failures import explained, unconnected
from dpframe.ledger.postgres.rows import PostgresRows
from dpframe.ledger.postgres.tables import (
    LOCKED,
    PLACE,
    VERSION,
    Connection,
    PostgresTables,
)
from dpframe.ledger.record import Seal
from dpframe.ledger.store import Store
from dpframe.ledger.tables import Tables
from dpframe.ledger.turns import Turn

CREATING = b"SELECT pg_catalog.pg_advisory_xact_lock(28271082979028325)"  # "dpframe", in ASCII

R = TypeVar("R")

_INHERITED: list[Connection] = []
"""Connections of a parent process, kept so that nothing closes them here."""


class PostgresStore(Store):
    """The schema ``dpframe_ledger`` of a database.

    Parameters
    ----------
    address
        The address of the database.
    seal
        How records are hashed.
    witness
        The path of a head file, if any.
    timeout
        Seconds to wait for a lock; a statement may take four times as long.
    create
        Whether a missing ledger may be created.
    """

    counts_appends = False

    def __init__(
        self,
        address: Address,
        seal: Seal,
        *,
        witness: Path | None = None,
        timeout: float = 15.0,
        create: bool = True,
    ) -> None:
        super().__init__(seal, () if witness is None else (HeadFile(witness, seal, alone=False),))
        self._turn = Turn()
        self._address = address
        self._timeout = max(1, int(1000 * timeout))  # 0 would be no timeout
        self._create = create
        self._connection: Connection | None = None
        self._writing = False
        self._warnings: list[str] = []
        _ALL.add(self)

    @classmethod
    def at(
        cls, url: str, seal: Seal, *, witness: Path | None = None, create: bool = True
    ) -> PostgresStore:
        """The store at a URL."""
        return cls(Address.of(url), seal, witness=witness, create=create)

    @property
    def where(self) -> str:
        return self._address.words

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.where)

    @property
    def contents(self) -> PostgresContents:
        return PostgresContents(self.where, self._with_tables, self._connect_beside)

    def rows_of_streams(self) -> PostgresRows:
        return PostgresRows(self.where, self._with_tables)

    def _with_tables(self, work: Callable[[PostgresTables], R], *, writing: bool = False) -> R:
        """What some work makes of the tables, in a transaction that adds no record."""

        def with_tables(tables: Tables, *_: object) -> R:
            assert isinstance(tables, PostgresTables)
            return work(tables)

        if writing:
            return self.write(with_tables)
        with self._explained():
            return self._read_tables(with_tables)

    # -- transactions ---------------------------------------------------------------------------

    @property
    def turn(self) -> Turn:
        return self._turn

    def _claim(self, identity: str) -> None:
        if self._connection is not None:
            place = self._connection.execute(PLACE).fetchone()
            claim(identity, place, self.where, lambda: True)

    def _alone(self, work: Callable[[], R], *, writing: bool) -> R:
        return self._turn.run(work)

    def _begin(self, writing: bool) -> Tables:
        self._writing = writing
        connection, version = self._started(writing)
        tables = PostgresTables(connection, version)
        if writing and not self._has_records():
            self._turn.pause(lambda: connection.execute(CREATING))
        is_there = self._has_records() or tables.exist()
        if not is_there and not self._create:
            raise no_ledger(self.where)
        if writing and is_there:
            self._turn.pause(lambda: connection.execute(LOCKED))
        return tables

    def _has_records(self) -> bool:
        return self._chain is not None and self._chain.length > 0

    def _started(self, writing: bool) -> tuple[Connection, str | None]:
        """A transaction; on a new connection if the server has closed an idle one meanwhile."""
        if self._connection is not None:
            try:
                return self._connection, self._start(self._connection, writing)
            except psycopg.OperationalError:
                if not self._connection.closed:
                    raise
        self._connection = self._connect()
        return self._connection, self._start(self._connection, writing)

    def _start(self, connection: Connection, writing: bool) -> str | None:
        """Begin, and return the version of the tables.

        This is read in an earlier transaction, because it must not be newer than the records: a
        change between the two is then noticed the next time, instead of never.
        """
        settings = (
            "SET LOCAL search_path = pg_catalog, pg_temp; "
            f"SET LOCAL lock_timeout = {self._timeout}; "
            f"SET LOCAL statement_timeout = {4 * self._timeout}; "
        )
        if writing:
            # Each statement sees what was committed before it, after the lock what the last one
            # who had it wrote. A process that stops in the middle does not keep the lock.
            kind = "READ COMMITTED"
            settings += (
                "SET LOCAL synchronous_commit = on; "
                f"SET LOCAL idle_in_transaction_session_timeout = {4 * self._timeout}; "
            )
        else:
            kind = "REPEATABLE READ READ ONLY"
        answers = connection.execute(
            f"BEGIN; {settings}".encode()
            + VERSION
            + f"; COMMIT; BEGIN ISOLATION LEVEL {kind}; {settings}".encode()
        )
        while answers.description is None:
            if not answers.nextset():
                raise psycopg.InternalError("no answer")
        version: str | None = answers.fetchall()[0][0]
        return version

    def _commit(self) -> None:
        if self._connection is None:
            raise psycopg.InterfaceError("no connection")
        self._warnings.clear()
        # The server's own limit does not hold while a commit waits for a standby.
        late = Timer(4 * self._timeout / 1000, _cancel, [self._connection])
        late.daemon = True
        if self._writing:
            late.start()
        try:
            done = self._connection.execute(b"COMMIT").statusmessage
        finally:
            late.cancel()
        if done != "COMMIT" or self._warnings:  # such as that a standby did not confirm in time
            raise LedgerError(
                f"the ledger {self.where!r} did not confirm that the record is durable",
                why="nothing was released, but the last charge may count",
                remedy="check the server and its standbys, and run again",
            )

    def _rollback(self) -> None:
        connection = self._connection
        if connection is None:
            return
        status = connection.info.transaction_status
        if status == TransactionStatus.IDLE:
            return
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(psycopg.Error):
                connection.execute(b"ROLLBACK")
                return
        with suppress(psycopg.Error):
            connection.close()
        self._connection = None

    # -- the connection -------------------------------------------------------------------------

    def _leave(self) -> None:
        if self._connection is not None:
            _INHERITED.append(self._connection)
        self._connection = None

    def _connect(self) -> Connection:
        self._version = None  # it may be another server
        return self._connect_beside()

    def _connect_beside(self) -> Connection:
        """Another connection."""
        parameters: dict[str, Any] = {**self._address.parameters, "client_encoding": "utf8"}
        try:
            connection: Connection = psycopg.connect(
                autocommit=True,
                prepare_threshold=None,  # poolers that share connections would mix them up
                **parameters,
            )
        except psycopg.Error as error:
            raise unconnected(self.where, error) from None
        finalize(self, _close, connection, os.getpid())
        connection.add_notice_handler(partial(_note_warning, self._warnings))
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise LedgerError(
                f"the database {self.where!r} has the encoding {encoding}",
                remedy="create one with ENCODING 'UTF8'",
            )
        return connection


_ALL: WeakSet[PostgresStore] = WeakSet()


def _let_go() -> None:
    """A server notices that a process was killed when its connection ends: a child that never uses
    the ledger would keep it, and with it the lock of its parent.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for store in _ALL:
        if store._connection is not None and not store._connection.closed:
            os.dup2(nothing, store._connection.fileno(), inheritable=False)
            store._leave()
    os.close(nothing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _cancel(connection: Connection) -> None:
    with suppress(psycopg.Error):
        connection.cancel()


def _note_warning(warnings: list[str], diagnostic: Diagnostic) -> None:
    if diagnostic.severity_nonlocalized == "WARNING":
        warnings.append(diagnostic.sqlstate or "")


def _close(connection: Connection, process: int) -> None:
    if process == os.getpid():  # a child would end the session of its parent
        connection.close()
