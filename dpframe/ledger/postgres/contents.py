"""Contents of kept results in PostgreSQL: a table next to the records, made when it is first
needed.

The process that computes a result holds an advisory lock meanwhile, in its own transaction on its
own connection. It is gone when the process is, and poolers that share connections leave
transactions alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar
from weakref import WeakSet

import psycopg

from dpframe.errors import LedgerError
from dpframe.ledger.contents import IsRight, any_content
from dpframe.ledger.postgres.failures import explained
from dpframe.ledger.postgres.tables import Connection, PostgresTables
from dpframe.ledger.releasing import release_after

R = TypeVar("R")


class WithTables(Protocol):
    """Does some work with the tables in a transaction of a store, for writing or not."""

    def __call__(self, work: Callable[[PostgresTables], R], *, writing: bool = False) -> R:
        """What the work returns."""
        ...


class PostgresContents:
    """The table ``releases``.

    Parameters
    ----------
    where
        The place, for people.
    with_tables
        Does some work in a transaction of the store.
    connect
        Makes another connection to the database.
    """

    def __init__(
        self, where: str, with_tables: WithTables, connect: Callable[[], Connection]
    ) -> None:
        self._where = where
        self._with_tables = with_tables
        self._connect = connect

    def prepare(self) -> None:
        if not self._with_tables(self._may_keep):
            self._with_tables(lambda tables: tables.make_releases(), writing=True)

    def _may_keep(self, tables: PostgresTables) -> bool:
        """Whether the table is there, which this role must be allowed to use then."""
        there = tables.have_releases()
        if there and not tables.may("releases", "SELECT", "INSERT"):
            raise LedgerError(
                f"this role may not keep results in {self._where!r}",
                remedy="grant it SELECT and INSERT on dpframe_ledger.releases; nothing was charged",
            )
        return there

    def write(self, number: int, blobs: Sequence[bytes]) -> None:
        def writing(tables: PostgresTables) -> None:
            tables.make_releases()
            tables.put_release(number, blobs)

        self._with_tables(writing, writing=True)

    def read(self, number: int, count: int, is_right: IsRight = any_content) -> list[bytes] | None:
        parts = self._with_tables(lambda tables: tables.release(number))
        every = ([parts.get(first + n) for n in range(count)] for first in sorted(parts))
        found = [[part for part in one if part is not None] for one in every]
        whole = [one for one in found if len(one) == count]
        return next(filter(is_right, whole), whole[0] if whole else None)

    def prepare_removal(self) -> None:
        def preparing(tables: PostgresTables) -> None:
            if tables.have_releases() and not tables.may("releases", "SELECT", "DELETE"):
                raise LedgerError(
                    f"this role may not delete results from {self._where!r}",
                    remedy="grant it SELECT and DELETE on dpframe_ledger.releases; nothing was "
                    "deleted",
                )

        self._with_tables(preparing)

    def remove(self, number: int, count: int) -> bool:
        return self._with_tables(lambda tables: tables.drop_release(number), writing=True)

    def present(self, token: str, work: Callable[[], R]) -> R:
        connections: list[Connection] = []
        process = os.getpid()

        def locked() -> R:
            connections.append(self._connect())
            _HELD.add(connections[0])
            with explained(self._where):
                connections[0].execute(_BEGIN)
                connections[0].execute(_LOCK, (_number(token),))
            return work()

        def let_go() -> None:
            for connection in connections:
                if process == os.getpid() and not connection.closed:  # a fork is not who computes
                    with suppress(psycopg.Error):
                        connection.execute(_END)
                    connection.close()

        return release_after(locked, let_go)

    def is_present(self, token: str) -> bool:
        return self._with_tables(lambda tables: tables.is_locked(_number(token)))


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
