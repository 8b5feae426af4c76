"""A ledger's file: SQLite, one process-wide lock, and a chain that is verified before each use.

What is verified, and when. The first use of a file in a process reads and verifies every record.
After that SQLite tells whether anybody else has written (`PRAGMA data_version`). If nobody has,
there is nothing to verify. If somebody has and the head has moved, the new records are verified; if
it has not moved, or after the chain has doubled, everything is verified again. A charge
therefore takes the same time however long the chain is.

Durability: rollback journal with ``synchronous=EXTRA``, so that a commit is on the disk before it
returns, and the file is complete whenever nobody is writing (in WAL mode a copy of the file alone
would lack the latest charges).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from weakref import finalize

from dpframe.errors import DPFrameError, LedgerError
from dpframe.ledger.chain import Chain, broken
from dpframe.ledger.failures import explained
from dpframe.ledger.record import Draft, Head, Seal
from dpframe.ledger.tables import create_tables, has_tables, insert, rows_after, stored_head
from dpframe.ledger.witness import Witness

SHORT = 256
"""A chain up to this long is verified as a whole whenever somebody else wrote to it."""

STEP = 0.004
"""Seconds between two attempts to get the lock."""

# SQLite's locks belong to the process. Holding this while forking makes sure that no transaction
# is open then, so that a child starts without inherited locks.
_LOCK = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


class Store:
    """The file at `path`; safe between threads, forks and processes.

    Parameters
    ----------
    path
        Of the file; a head file lies beside it.
    seal
        How records are hashed.
    timeout
        Seconds to wait for a lock.
    create
        Whether a missing file may be created.
    """

    def __init__(
        self, path: Path, seal: Seal, *, timeout: float = 15.0, create: bool = True
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self._seal = seal
        self._timeout = timeout
        self._create = create
        self._witness = Witness(self.path.with_name(self.path.name + ".head"), seal)
        self._chain: Chain | None = None
        self._checked = 0  # length of the chain when all of it was last verified
        self._version: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._file: tuple[int, int] | None = None

    @property
    def is_keyed(self) -> bool:
        return self._seal.is_keyed

    # -- use ------------------------------------------------------------------------------------

    def read(self) -> Chain:
        """The chain as it is now, verified. Do not change it.

        Raises
        ------
        LedgerError
            When the file cannot be read or does not verify.
        """
        with self._transaction("DEFERRED") as (_, chain):
            return chain

    def append(self, draft: Callable[[Chain], Draft | None]) -> int:
        """Record what `draft` makes of the chain, durably; if it raises, nothing is recorded.

        Returns
        -------
        int
            The record's number; the last one's when `draft` finds that there is nothing to do.

        Raises
        ------
        LedgerError
            When the file cannot be written or does not verify.
        """
        with _LOCK, explained(self.path), ExitStack() as opened:
            with self._transaction("IMMEDIATE") as (connection, chain):
                made = draft(chain)
                if made is None:
                    return chain.length
                record = chain.next(made)
                if not chain.length:
                    create_tables(connection)
                head = self._seal.head(record.seq, record.hash)
                insert(connection, record, head)
                witness = opened.enter_context(self._witness.open())
            self._require_same_file()
            chain.extend(record)
            self._witness.write(witness, head)
            return record.seq

    def verify(self) -> Head:
        """Read and verify everything, whoever has written.

        Raises
        ------
        LedgerError
            When anything was edited, deleted, added or put in another order.
        """
        with _LOCK:
            self._version = None  # so that everything is read again
            with self._transaction("DEFERRED") as (connection, chain):
                found = connection.execute("PRAGMA integrity_check").fetchall()
                if found != [("ok",)]:
                    raise broken("the file is damaged")
                return chain.head()

    def rows(self) -> list[tuple[object, ...]]:
        """All records as they are stored, verified or not, for export."""
        with _LOCK, explained(self.path):
            connection = self._connected()
            return rows_after(connection, None) if has_tables(connection, self.path) else []

    # -- transactions ---------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[tuple[sqlite3.Connection, Chain]]:
        with _LOCK, explained(self.path):
            connection = self._connected()
            try:
                self._begin(connection, kind)
                self._require_same_file()
                chain = self._caught_up(connection)
                yield connection, chain
                connection.execute("COMMIT")
            except BaseException as error:
                if not isinstance(error, DPFrameError) or isinstance(error, LedgerError):
                    self._version = None  # trust nothing until it is verified again
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _begin(self, connection: sqlite3.Connection, kind: str) -> None:
        """Wait for the lock in short steps: SQLite's own grow longer, and whoever waits long
        would hardly ever find the lock free among many writers.
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
                    time.sleep(STEP)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * self._timeout)}")

    def _connected(self) -> sqlite3.Connection:
        if self._process != os.getpid():  # forked: the parent's connection must not be touched
            self._connection, self._version, self._process = None, None, os.getpid()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise LedgerError(
                f"the ledger {str(self.path)!r} cannot be opened: "
                + ("it is a directory" if self.path.is_dir() else "its directory does not exist"),
                remedy='give the path of a file, such as ledger="budget.db"',
            )
        if not self.path.exists() and (self._file is not None or not self._create):
            raise LedgerError(
                f"there is no ledger {str(self.path)!r}", remedy="check the path, or restore it"
            )
        made = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        finalize(self, made.close)
        made.execute("PRAGMA trusted_schema = OFF")
        made.execute("PRAGMA synchronous = EXTRA")
        made.execute("PRAGMA fullfsync = ON")  # macOS
        made.execute("PRAGMA journal_mode = TRUNCATE")
        if self._file is None:
            self._file = self._identity()
        return made

    def _identity(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino

    def _require_same_file(self) -> None:
        """A file that was moved or deleted can be written to, and nobody would ever see it."""
        try:
            same = self._identity() == self._file
        except FileNotFoundError:
            same = False
        if not same:
            raise LedgerError(
                f"the ledger {str(self.path)!r} was moved, deleted or replaced while it was in use",
                remedy="put it back; nothing was released",
            )

    # -- verification ---------------------------------------------------------------------------

    def _caught_up(self, connection: sqlite3.Connection) -> Chain:
        chain = self._chain
        if chain is None or self._version is None or not chain.length:
            return self._read_all(connection)
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        head = stored_head(connection)
        moved = head != chain.head()
        if version == self._version and not moved:
            return chain
        length = chain.length if head is None else head.seq
        grown = 2 * (length - self._checked) >= length or length <= SHORT
        if not moved or grown:
            return self._read_all(connection)
        self._version = None  # until the new records are verified
        chain.read(rows_after(connection, chain.length), {})
        chain.require_head(head)
        self._version = version
        return chain

    def _read_all(self, connection: sqlite3.Connection) -> Chain:
        """Everything from the first record on; what was verified before must still be there."""
        anchors = {}
        if self._chain is not None and self._chain.length:
            anchors[self._chain.length] = self._chain.tip
        seen = self._witness.read()
        if seen is not None and anchors.setdefault(seen.seq, seen.hash) != seen.hash:
            raise broken("its head file does not belong to it")
        chain = Chain(self._seal)
        if has_tables(connection, self.path):
            chain.read(rows_after(connection, None), anchors)
            chain.require_head(stored_head(connection))
        longest = max(anchors, default=0)
        if chain.length < longest:
            raise broken(f"it ends at record {chain.length}, and once had {longest}")
        self._version = connection.execute("PRAGMA data_version").fetchone()[0]
        self._chain, self._checked = chain, chain.length
        return chain
