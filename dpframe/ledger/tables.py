"""The operations of a store's tables, for any kind of storage."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Protocol

from dpframe.ledger.record import Head, Record

STEP = 2048
"""Rows that are read at once."""


LARGEST = 2**63 - 1
"""Number of a record that is kept."""


class Tables(Protocol):
    """The tables of a ledger, as one transaction sees them."""

    def exist(self) -> bool:
        """Whether there is a ledger; False when its place is new and empty.

        Raises
        ------
        LedgerError
            When something else is there, or the tables were changed.
        """
        ...

    def create(self) -> None:
        """Make a new and empty destination a ledger."""
        ...

    def version(self) -> Hashable:
        """A value that changes when another process has written; see `Store.counts_appends`."""
        ...

    def rows(self, after: int, limit: int) -> list[tuple[Any, ...]]:
        """Rows after a number, as many as asked for at most, with values as in `COLUMNS`."""
        ...

    def rows_at(self, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        """The existing rows with these numbers, by number."""
        ...

    def last(self, *acts: str, until: int | None = None) -> tuple[Any, ...] | None:
        """The last row of one of these kinds, of those up to a number."""
        ...

    def last_begun(
        self, name: str, fingerprint: str | None, text: str | None, until: int
    ) -> tuple[Any, ...] | None:
        """The last row up to a number by which a result of a budget was begun: of a plan, or whose
        `why` has a part.
        """
        ...

    def rows_about(self, number: int) -> list[tuple[Any, ...]]:
        """The rows after a charge about its result, in order."""
        ...

    def hash_of(self, seq: int) -> object:
        """The stored hash of a record, None if the number does not exist."""
        ...

    def head(self) -> Head | None:
        """The stored head, verified or not."""
        ...

    def insert(self, record: Record, head: Head, *, new: bool) -> None:
        """Add a record, and move the head to it, or make the head if the tables are new."""
        ...

    def insert_head(self, head: Head) -> None:
        """Make the head of new tables, without a record."""
        ...

    def insert_rows(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows, and leave the head where it is."""
        ...

    def require_sound(self) -> None:
        """Refuse tables whose storage is damaged, if the database can check that."""
        ...


def rows_after(tables: Tables, seq: int) -> Iterator[list[tuple[Any, ...]]]:
    """All rows after a number, some at a time."""
    while rows := tables.rows(seq, STEP):
        yield rows
        if len(rows) < STEP:
            return
        seq = rows[-1][0]
