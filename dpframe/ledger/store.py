"""Where records are kept: what is read, and in which order a record is written."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO, TypeAlias, TypeVar

from dpframe.errors import LedgerError, require
from dpframe.ledger.chain import Chain
from dpframe.ledger.checkpoints import is_due, state_of
from dpframe.ledger.head_file import Seen
from dpframe.ledger.record import Draft, Head, Record, Seal, sealed
from dpframe.ledger.releasing import close_all, release_after
from dpframe.ledger.row_contents import RowContents
from dpframe.ledger.standing import promised, require_here
from dpframe.ledger.tables import STEP, Tables
from dpframe.ledger.transactions import Transactions

R = TypeVar("R")

Made: TypeAlias = Draft | Sequence[Draft] | None
"""What is to be recorded together; nothing builds on another part of it."""


class Store(Transactions):
    """Records at one place; safe between threads, forks and processes. A store knows how to begin
    and end a transaction; its tables know the statements.

    Parameters
    ----------
    seal
        How records are hashed.
    witnesses
        Where the head is written down once more.
    """

    @abstractmethod
    def rows_of_streams(self) -> RowContents:
        """Where rows of streams are kept."""

    def read(self, *, whole: bool = False) -> Chain:
        """The current chain, verified; with each charge if `whole`. Do not change it.

        Raises
        ------
        LedgerError
            When it cannot be read or does not verify.
        """
        with self._explained():
            self._refresh(whole)
            return self._alone(
                lambda: self._transact(lambda _, chain: chain, writing=False, whole=whole),
                writing=False,
            )

    def look_up(self, work: Callable[[Chain], R]) -> R:
        """The result of some work on the current chain, old results included."""
        with self._explained():
            self._refresh(False)
            return self._alone(
                lambda: self._transact(lambda _, chain: work(chain), writing=False), writing=False
            )

    def append(self, draft: Callable[[Chain], Made]) -> int:
        """Record what `draft` makes of the chain, durably; if it raises, nothing is recorded.

        Returns
        -------
        int
            Returns the last record's number, also when `draft` finds nothing to do.

        Raises
        ------
        LedgerError
            When it cannot be written or does not verify. If it is unknown whether the record was
            written, it may count although nothing is released, never the reverse.
        """
        return self._append(draft, adopting=False)

    def adopt(self, draft: Callable[[Chain], Draft]) -> int:
        """Record something in a ledger whose head file is missing, and write that again.

        Raises
        ------
        LedgerError
            When it is not missing, the ledger does not verify, or it is not the one that a head
            file elsewhere names.
        """
        with self._explained():
            required = [witness for witness in self._witnesses if witness.required]
            if not required:
                raise LedgerError(
                    "a ledger on a server needs no head file, so there is nothing to accept",
                    remedy="use the ledger; docs/ledger.md describes how to restore a copy",
                )
            if any(witness.read() is not None for witness in required):
                raise LedgerError(
                    "the ledger has its head file, so there is nothing to accept",
                    remedy=(
                        "use the ledger",
                        "move the head file away first, if it belongs to another copy",
                    ),
                )
        return self._append(draft, adopting=True)

    def _append(self, draft: Callable[[Chain], Made], *, adopting: bool) -> int:
        def appending(tables: Tables, chain: Chain, added: list[Record]) -> Chain:
            require_here(chain.moved)
            made = draft(chain)
            if made is not None:
                drafts = [made] if isinstance(made, Draft) else made
                added += chain.following([*self._before(chain), *drafts])
                if not chain.length:
                    tables.create()
            return chain

        with self._explained():
            if not adopting:
                self._refresh(False)  # before others have to wait for it
            return self.write(appending, adopting=adopting).length

    def write(
        self,
        work: Callable[[Tables, Chain, list[Record]], R],
        *,
        adopting: bool = False,
        seal: Seal | None = None,
    ) -> R:
        """What some work returns, in a transaction at whose end the records that it put into the
        list are durable, under a seal of their own if there is one.
        """
        used = seal or self._seal
        added: list[Record] = []
        files: list[BinaryIO] = []

        def transaction(tables: Tables, chain: Chain) -> tuple[R, Chain]:
            made = work(tables, chain, added)
            new = not chain.length and self._promise is None
            for record in added:
                head = used.head(record.seq, record.hash)
                tables.insert(record, head, new=new and record is added[0])
            for witness in self._witnesses if added else ():
                files.append(witness.open())
            return made, chain

        def alone() -> R:
            result, chain = self._transact(transaction, writing=True, adopting=adopting)
            if added:
                trusted, self._version = self._version, None  # until it is extended as a whole
                chain.seal = used
                for record in added:
                    chain.extend(record)
                self._version = trusted
                seen = Seen(chain.length, chain.tip, chain.identity)
                for witness, file in zip(self._witnesses, files, strict=True):
                    witness.write(file, seen, seal=seal)
            return result

        with self._explained():
            return self._alone(lambda: release_after(alone, lambda: close_all(files)), writing=True)

    def _before(self, chain: Chain) -> list[Draft]:
        """The drafts before the next record: the identity of the ledger, or a checkpoint."""
        if chain.identity is None:
            begun = next((s.identity for s in self._seen if s is not None and not s.seq), None)
            identity = begun or uuid.uuid4().hex
            if not chain.length:
                self.begin(identity)
            return [Draft("", "identified", fingerprint=identity)]
        if is_due(chain):
            return [
                Draft("", "checkpoint", why=state_of(chain, self._seal, chain.results.older.since))
            ]
        return []

    def begin(self, identity: str) -> None:
        """Make the head files of a ledger that is about to have its first record."""
        for witness in self._witnesses:
            witness.begin(identity)

    def hand_over(self, seen: Seen) -> None:
        """Let head files that lie elsewhere follow a ledger to where it was moved."""
        with self._explained():
            for witness in self._witnesses:
                if not witness.required:
                    witness.reset(seen)

    def reseal(self, draft: Callable[[Chain], Draft], seal: Seal) -> None:
        """Append a record under another key, with the content of all others hashed."""

        def resealing(_: Tables, chain: Chain, added: list[Record]) -> None:
            require_here(chain.moved)
            require(chain.hashed == chain.length, "a new key vouches for all records before it")
            for witness in self._witnesses:
                witness.bridge(Seen(chain.length, chain.tip, chain.identity), seal)
            time = datetime.now(UTC).isoformat(timespec="microseconds")
            added.append(sealed(draft(chain), chain.length + 1, time, chain.tip, seal))

        with self._explained():
            self._version, self._hashes = None, True
            try:
                self._approached = self._approach(whole=False, full=True)
                self.write(resealing, seal=seal)
            finally:
                self._hashes = False
            self._seal = seal
            for witness in self._witnesses:
                witness.use(seal)

    def promise(self, origin: str) -> str:
        """Reserve an empty destination for a ledger that is to be moved here.

        No other ledger can begin there from then on, and an interrupted move continues only where
        it finds this. So what was moved once is not moved again.

        Parameters
        ----------
        origin
            The identity that the ledger has.

        Returns
        -------
        str
            The one that it will have here.

        Raises
        ------
        LedgerError
            When there is a ledger, or the place is kept for another one.
        """
        identity = uuid.uuid4().hex
        promise = promised(self._seal, identity, origin)

        def promising(tables: Tables, chain: Chain) -> None:
            if chain.length:
                raise LedgerError(
                    f"{self.where!r} has a ledger already", remedy="write a place without a ledger"
                )
            self.begin(identity)
            tables.create()
            tables.insert_head(promise)

        with self._explained():
            self._alone(lambda: self._transact(promising, writing=True), writing=True)
        self._promise = promise
        return identity

    def promised_to(self, origin: str) -> str | None:
        """The identity that a ledger will have here; None where the place is not kept for it."""
        with self._explained():
            head = self._read_tables(lambda tables: tables.head() if tables.exist() else None)
        identity = None if head is None else head.hash[:32]
        if head is None or identity is None or head != promised(self._seal, identity, origin):
            return None
        self._promise = head
        return identity

    def forget(self) -> None:
        """Read everything again at the next use, and promise nothing any more."""
        self._chain = self._version = self._promise = None

    def verify(self) -> Head:
        """Read and verify everything, while other processes may continue to write.

        Raises
        ------
        LedgerError
            When anything was edited, deleted, added or put in another order.
        """
        with self._explained():
            self._version = None  # so that it stays refused
            approached = self._approach(whole=False, full=True)

            def sound(tables: Tables, chain: Chain) -> Head:
                tables.require_sound()
                return chain.head()

            def verifying() -> Head:
                self._version, self._approached = None, approached
                return self._transact(sound, writing=False)

            return self._alone(verifying, writing=False)

    def hash_of(self, seq: int) -> str:
        """The stored hash of a record."""
        with self._explained():
            return self._read_tables(lambda tables: str(tables.hash_of(seq)))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """All records as they are stored, verified or not, for export."""
        seq, more = 0, True

        def step(tables: Tables) -> list[tuple[Any, ...]]:
            return tables.rows(seq, STEP) if tables.exist() else []

        while more:
            with self._explained():
                rows = self._read_tables(step)
            yield from rows
            more = len(rows) == STEP
            seq = rows[-1][0] if rows else 0
