"""Records of results that no checkpoint names, looked up in the tables of a ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dpframe.ledger.chain import verified
from dpframe.ledger.kept import Older
from dpframe.ledger.record import Record, Seal
from dpframe.ledger.tables import Tables


class RecordedResults:
    """Those between two numbers, in a transaction that is under way.

    Parameters
    ----------
    tables
        The ledger's tables, in that transaction.
    seal
        With the key that the ledger has.
    older
        The numbers.
    """

    def __init__(self, tables: Tables, seal: Seal, older: Older) -> None:
        self._tables = tables
        self._seal = seal
        self._older = older

    def begun(self, name: str, fingerprint: str | None, text: str | None) -> Iterator[Record]:
        last = self._older.until
        while row := self._tables.last_begun(name, fingerprint, text, last):
            if row[0] <= self._older.since:
                return
            yield self._read(row)
            last = row[0] - 1

    def begun_by(self, number: int) -> Record | None:
        rows = self._tables.rows_at([number - 1])
        return self._read(rows[0]) if rows and rows[0][3] == "begun" else None

    def after(self, number: int) -> list[Record]:
        return [self._read(row) for row in self._tables.rows_about(number)]

    def _read(self, row: tuple[Any, ...]) -> Record:
        return verified(row, self._seal)
