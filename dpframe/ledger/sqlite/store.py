"""A ledger's file: SQLite, and a head file next to it.

`PRAGMA data_version` shows whether another connection has written. If not, nothing needs to be
verified. If so and the head has moved, the new records are verified, otherwise everything.

Durability: the store uses a rollback journal with ``synchronous=EXTRA``, so a commit is on the disk
before it returns. The file is complete whenever no process is writing; in WAL mode a copy of the
file alone would lack the latest charges.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TypeVar
from weakref import finalize

from dpframe.errors import LedgerError
from dpframe.ledger.absent import no_ledger
from dpframe.ledger.contents import FOLDER, FolderContents
from dpframe.ledger.head_file import HeadFile
from dpframe.ledger.places import claim, require_alone
from dpframe.ledger.record import Seal
from dpframe.ledger.row_contents import ROWS, FolderRows
from dpframe.ledger.sqlite.failures import explained
from dpframe.ledger.sqlite.locks import FileLock, Identity, identity, lock_of
from dpframe.ledger.sqlite.tables import SqliteTables
from dpframe.ledger.store import Store
from dpframe.ledger.turns import Turn
from dpframe.ledger.waiting import STEP

R = TypeVar("R")


class SqliteStore(Store):
    """The file at `path`.

    Parameters
    ----------
    path
        The path of the file; a head file is next to it.
    seal
        How records are hashed.
    pin
        The path of one more head file, if any.
    timeout
        Seconds to wait for a lock.
    create
        Whether a missing file may be created.
    """

    counts_appends = True

    def __init__(
        self,
        path: Path,
        seal: Seal,
        *,
        pin: Path | None = None,
        timeout: float = 15.0,
        create: bool = True,
    ) -> None:
        self.path = Path(os.path.realpath(path))
        beside = HeadFile(
            self.path.with_name(self.path.name + ".head"), seal, alone=True, required=True
        )
        pinned = () if pin is None else (HeadFile(Path(os.path.realpath(pin)), seal, alone=True),)
        super().__init__(seal, (beside, *pinned))
        self._timeout = timeout
        self._create = create
        self._connection: sqlite3.Connection | None = None
        self._lock: FileLock | None = None

    @property
    def where(self) -> str:
        return str(self.path)

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.path)

    @property
    def contents(self) -> FolderContents:
        return FolderContents(self.path.with_name(self.path.name + FOLDER))

    def rows_of_streams(self) -> FolderRows:
        return FolderRows(self.path.with_name(self.path.name + ROWS))

    # -- transactions ---------------------------------------------------------------------------

    def _alone(self, work: Callable[[], R], *, writing: bool) -> R:
        return self._locked().run(work, writing=writing, timeout=self._timeout)

    @property
    def turn(self) -> Turn:
        return self._locked().turn

    def _claim(self, identity: str) -> None:
        file = self._locked().file
        claim(identity, file, self.where, lambda: _is_at(self.path, file))
        require_alone(identity, self.path)

    def _locked(self) -> FileLock:
        if self._lock is None:
            self._require_place()
            self._lock = lock_of(self.path, self._create)
        return self._lock

    def _begin(self, writing: bool) -> SqliteTables:
        connection = self._connected()
        self._wait_for_lock(connection, "IMMEDIATE" if writing else "DEFERRED")
        self._require_same_file()
        return SqliteTables(connection, self.path)

    def _wait_for_lock(self, connection: sqlite3.Connection, kind: str) -> None:
        """Wait in short steps: SQLite's own steps grow longer, and a process that waits long
        would rarely find the lock free among many writers.
        """
        deadline = time.monotonic() + self._timeout
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    connection.execute(f"BEGIN {kind}")
                    return
                except sqlite3.OperationalError as error:
                    busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
                    if not busy or time.monotonic() > deadline:
                        raise
                    self.turn.sleep(STEP)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * self._timeout)}")

    def _commit(self) -> None:
        self._connected().execute("COMMIT")
        self._require_same_file()

    def _rollback(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    # -- the connection -------------------------------------------------------------------------

    def _leave(self) -> None:
        self._connection = None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self._require_same_file()  # SQLite would make a new one
        connection = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        finalize(self, connection.close)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # macOS
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        return connection

    def _require_place(self) -> None:
        if not self._create and not self.path.exists():
            raise no_ledger(self.path)
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise LedgerError(
                f"the ledger {str(self.path)!r} cannot be opened: "
                + ("it is a directory" if self.path.is_dir() else "its directory does not exist"),
                remedy='give the path of a file, such as ledger="budget.db"',
            )

    def _require_same_file(self) -> None:
        """A file that was moved or deleted can still be written to, but the result would be
        lost."""
        try:
            same = self._lock is not None and identity(self.path) == self._lock.file
        except FileNotFoundError:
            same = False
        if not same:
            raise LedgerError(
                f"the ledger {str(self.path)!r} was moved, deleted or replaced while it was in use",
                remedy="put it back; nothing was released",
            )
        if self._lock is not None:
            self._lock.require_kept()


def _is_at(path: Path, file: Identity) -> bool:
    try:
        return identity(path) == file
    except (OSError, LedgerError):
        return False
