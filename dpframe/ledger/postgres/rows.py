"""Rows of streams in PostgreSQL: a table next to the records, made when it is first needed.

A writer holds the lock that every writer of the ledger takes, so the first under a name is the
only one.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpframe.errors import LedgerError
from dpframe.ledger.postgres.contents import WithTables
from dpframe.ledger.postgres.tables import PostgresTables


class PostgresRows:
    """The table ``streams``.

    Parameters
    ----------
    where
        The place, for people.
    with_tables
        Does some work in a transaction of the store.
    """

    def __init__(self, where: str, with_tables: WithTables) -> None:
        self._where = where
        self._with_tables = with_tables

    def prepare(self) -> None:
        if not self._with_tables(self._may_keep):
            self._with_tables(lambda tables: tables.make_streams(), writing=True)

    def _may_keep(self, tables: PostgresTables) -> bool:
        """Whether the table is there, which this role must be allowed to use then."""
        there = tables.have_streams()
        if there and not tables.may("streams", "SELECT", "INSERT"):
            raise LedgerError(
                f"this role may not keep the rows of streams in {self._where!r}",
                remedy="grant it SELECT and INSERT on dpframe_ledger.streams; nothing was charged",
            )
        return there

    def place(self, stream: int, first: int) -> str:
        return f"in dpframe_ledger.streams of {self._where!r} (stream {stream}, first {first})"

    def read(self, stream: int, first: int) -> bytes | None:
        return self._with_tables(lambda tables: tables.row_of_stream(stream, first))

    def read_all(self, stream: int, firsts: Sequence[int]) -> list[bytes | None]:
        if not firsts:
            return []
        found = self._with_tables(lambda tables: tables.rows_of_stream(stream, firsts))
        return [found.get(first) for first in firsts]

    def keep(self, stream: int, first: int, content: bytes) -> bytes:
        def keeping(tables: PostgresTables) -> bytes:
            tables.make_streams()
            found = tables.row_of_stream(stream, first)
            if found is None:
                tables.put_row_of_stream(stream, first, content)
            return content if found is None else found

        return self._with_tables(keeping, writing=True)
