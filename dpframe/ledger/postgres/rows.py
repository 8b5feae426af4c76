"""Rows of streams in PostgreSQL: a table beside the records, made when it is first needed.

Who writes to it holds the lock that every writer of the ledger takes, so whoever is first under a
name is the only one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from dpframe.errors import LedgerError
from dpframe.ledger.postgres.tables import PostgresTables

Transaction = Callable[[bool], AbstractContextManager[PostgresTables]]
"""Begins one, for writing or not."""


class PostgresRows:
    """The table ``streams``.

    Parameters
    ----------
    where
        The place, for people.
    transaction
        Begins a transaction of the store.
    """

    def __init__(self, where: str, transaction: Transaction) -> None:
        self._where = where
        self._transaction = transaction

    def prepare(self) -> None:
        with self._transaction(False) as tables:
            there = tables.have_streams()
            if there and not tables.may("streams", "SELECT", "INSERT"):
                raise LedgerError(
                    f"the rows of streams cannot be kept in {self._where!r}: this role may not",
                    remedy="grant it SELECT and INSERT on dpframe_ledger.streams; nothing was "
                    "charged",
                )
        if not there:
            with self._transaction(True) as tables:
                tables.make_streams()

    def read(self, stream: int, first: int) -> bytes | None:
        with self._transaction(False) as tables:
            return tables.row_of_stream(stream, first)

    def read_all(self, stream: int, firsts: Sequence[int]) -> list[bytes | None]:
        if not firsts:
            return []
        with self._transaction(False) as tables:
            found = tables.rows_of_stream(stream, firsts)
        return [found.get(first) for first in firsts]

    def keep(self, stream: int, first: int, content: bytes) -> bytes:
        with self._transaction(True) as tables:
            tables.make_streams()
            found = tables.row_of_stream(stream, first)
            if found is None:
                tables.put_row_of_stream(stream, first, content)
            return content if found is None else found
