"""Contents of kept results in PostgreSQL: a table beside the records, made when it is first needed.

Whoever computes a result holds an advisory lock meanwhile, in a transaction of its own on a
connection of its own. It is gone when the process is, and poolers that share connections leave
transactions alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from weakref import WeakSet

import psycopg

from dpframe.errors import LedgerError
from dpframe.ledger.postgres.failures import explained
from dpframe.ledger.postgres.tables import Connection, PostgresTables

Transaction = Callable[[bool], AbstractContextManager[PostgresTables]]
"""Begins one, for writing or not."""


class PostgresContents:
    """The table ``releases``.

    Parameters
    ----------
    where
        The place, for people.
    transaction
        Begins a transaction of the store.
    connect
        Makes another connection to the database.
    """

    def __init__(
        self, where: str, transaction: Transaction, connect: Callable[[], Connection]
    ) -> None:
        self._where = where
        self._transaction = transaction
        self._connect = connect

    def prepare(self) -> None:
        with self._transaction(False) as tables:
            if tables.have_releases():
                if not tables.may("releases", "SELECT", "INSERT"):
                    raise LedgerError(
                        f"results cannot be kept in {self._where!r}: this role may not",
                        remedy="grant it SELECT and INSERT on dpframe_ledger.releases; nothing was "
                        "charged",
                    )
                return
        with self._transaction(True) as tables:
            tables.make_releases()

    def write(self, number: int, blobs: Sequence[bytes]) -> None:
        with self._transaction(True) as tables:
            tables.make_releases()
            tables.put_release(number, blobs)

    def read(self, number: int, count: int) -> list[bytes] | None:
        with self._transaction(False) as tables:
            found = tables.release(number)
        return found if len(found) == count else None

    def prepare_removal(self) -> None:
        with self._transaction(False) as tables:
            if tables.have_releases() and not tables.may("releases", "SELECT", "DELETE"):
                raise LedgerError(
                    f"results cannot be deleted from {self._where!r}: this role may not",
                    remedy="grant it SELECT and DELETE on dpframe_ledger.releases; nothing was "
                    "given up",
                )

    def remove(self, number: int, count: int) -> bool:
        with self._transaction(True) as tables:
            return tables.drop_release(number)

    @contextmanager
    def present(self, token: str) -> Iterator[None]:
        connection = self._connect()
        _HELD.add(connection)
        process = os.getpid()
        try:
            with explained(self._where):
                connection.execute(_BEGIN)
                connection.execute(_LOCK, (_number(token),))
            yield
        finally:
            if process == os.getpid():  # a fork within is not who computes
                with suppress(psycopg.Error), closing(connection):
                    connection.execute(_END)

    def is_present(self, token: str) -> bool:
        with self._transaction(False) as tables:
            return tables.is_locked(_number(token))


_BEGIN = (
    b"BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; "
    b"SET LOCAL tcp_keepalives_idle = 30; SET LOCAL tcp_keepalives_interval = 10; "
    b"SET LOCAL tcp_keepalives_count = 3"
)
"""A machine that is gone is noticed within a minute."""
_END = b"ROLLBACK"
"""A server gives up the locks of a connection that is closed some time later; of a transaction that
ended at once.
"""
_LOCK = b"SELECT pg_catalog.pg_advisory_xact_lock(%s)"

_HELD: WeakSet[Connection] = WeakSet()


def _number(token: str) -> int:
    """The number of a lock, of those that PostgreSQL has."""
    return int.from_bytes(bytes.fromhex(token)[:8], signed=True)


def _let_go() -> None:
    """A server notices that a process was killed when its connection ends: a child would keep it
    open.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for connection in list(_HELD):
        if not connection.closed:
            os.dup2(nothing, connection.fileno(), inheritable=False)
    os.close(nothing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
