"""Where records are kept, and the chain that is verified before each use of them.

A store knows how to begin and end a transaction; its tables know the statements. What is the same
everywhere is here: which records are verified when, and in which order a record is written.

The first use in a process verifies every record. What is decided after that is decided by this
verified copy and by new records, each of which must continue it. So a record that is edited behind
the back of a running process gives nobody more budget; verifying everything again is about noticing
it. That happens when the store says that something else than appending has happened, when the chain
has doubled, and every ten minutes where the store cannot be sure. A charge therefore takes the same
time however long the chain is.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, ClassVar, Protocol

from dpframe.errors import DPFrameError, LedgerError
from dpframe.ledger.chain import Chain, broken
from dpframe.ledger.record import Draft, Head, Record, Seal
from dpframe.ledger.witness import Witness

SHORT = 256
"""A chain up to this long is verified as a whole whenever somebody else wrote to it."""

PERIOD = 600.0
"""Seconds after which everything is verified again where the store cannot be sure."""


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
        """Make a new and empty place a ledger."""
        ...

    def version(self) -> Hashable:
        """Another value once somebody else has written; see `Store.counts_appends`."""
        ...

    def rows_after(self, seq: int | None) -> list[tuple[Any, ...]]:
        """Rows after a number, or all rows, by number, with values in the order of `COLUMNS`."""
        ...

    def hash_of(self, seq: int) -> object:
        """The hash of a record as it is stored, None where there is none of that number."""
        ...

    def head(self) -> Head | None:
        """The head as it is stored, verified or not."""
        ...

    def insert(self, record: Record, head: Head) -> None:
        """Add a record, and move the head to it."""
        ...

    def require_sound(self) -> None:
        """Refuse tables whose storage is damaged, as far as that can be asked."""
        ...


class Store(ABC):
    """Records at one place; safe between threads, forks and processes.

    Parameters
    ----------
    seal
        How records are hashed.
    witness
        Where the head is written down once more.
    """

    counts_appends: ClassVar[bool]
    """Whether the version of the tables changes with every write of somebody else, so that an equal
    one proves that there was none; or only with writes that no ledger makes."""

    def __init__(self, seal: Seal, witness: Witness) -> None:
        self._seal = seal
        self._witness = witness
        self._seen: Head | None = None
        self._agreed: Head | None = None  # what was seen and belongs to the chain
        self._chain: Chain | None = None
        self._version: Hashable = None  # None: trust nothing until it is verified again
        self._checked = 0  # length of the chain when all of it was last verified
        self._checked_at = 0.0
        self._process = os.getpid()

    @property
    def is_keyed(self) -> bool:
        return self._seal.is_keyed

    # -- what each store does -------------------------------------------------------------------

    @property
    @abstractmethod
    def where(self) -> str:
        """The place, for people; never with a password."""

    @abstractmethod
    def _explained(self) -> AbstractContextManager[None]:
        """Turns failures of the place into a LedgerError."""

    @abstractmethod
    def _alone(self, writing: bool) -> AbstractContextManager[None]:
        """Keeps other threads out, and other processes where a transaction does not."""

    @abstractmethod
    def _begin(self, writing: bool) -> Tables:
        """Begin a transaction, which keeps other writers out if it is for writing."""

    @abstractmethod
    def _commit(self) -> None:
        """Make what was written durable; raise if that is not certain."""

    @abstractmethod
    def _rollback(self) -> None:
        """End a transaction, if there is one, whatever state it is in; never raises."""

    @abstractmethod
    def _leave(self) -> None:
        """Forget the connection without touching it: it belongs to the parent process."""

    # -- use ------------------------------------------------------------------------------------

    def read(self) -> Chain:
        """The chain as it is now, verified. Do not change it.

        Raises
        ------
        LedgerError
            When it cannot be read or does not verify.
        """
        with (
            self._explained(),
            self._alone(writing=False),
            self._transaction(writing=False) as (_, chain),
        ):
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
            When it cannot be written or does not verify. If it is not known whether the record
            was written, it may count although nothing is released, never the other way round.
        """
        with self._explained(), ExitStack() as opened:
            if self._is_due():  # before others have to wait for it
                self.read()
            opened.enter_context(self._alone(writing=True))
            with self._transaction(writing=True) as (tables, chain):
                made = draft(chain)
                if made is None:
                    return chain.length
                record = chain.next(made)
                if not chain.length:
                    tables.create()
                head = self._seal.head(record.seq, record.hash)
                tables.insert(record, head)
                witness = opened.enter_context(self._witness.open())
            trusted, self._version = self._version, None  # until it is extended as a whole
            chain.extend(record)
            self._version = trusted
            self._witness.write(witness, head)
            return record.seq

    def verify(self) -> Head:
        """Read and verify everything, whoever has written.

        Raises
        ------
        LedgerError
            When anything was edited, deleted, added or put in another order.
        """
        with self._explained(), self._alone(writing=False):
            self._version = None  # so that everything is read again
            with self._transaction(writing=False) as (tables, chain):
                tables.require_sound()
                return chain.head()

    def rows(self) -> list[tuple[Any, ...]]:
        """All records as they are stored, verified or not, for export."""
        with self._explained(), self._alone(writing=False):
            try:
                tables = self._begun(writing=False)
                return tables.rows_after(None) if tables.exist() else []
            finally:
                self._rollback()

    # -- transactions ---------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[tuple[Tables, Chain]]:
        self._seen = self._witness.read()  # before, lest it be ahead of what is then read
        try:
            tables = self._begun(writing)
            chain = self._caught_up(tables, writing)
            self._require_seen(tables, chain)
            yield tables, chain
            self._commit()
        except BaseException as error:
            if not isinstance(error, DPFrameError) or isinstance(error, LedgerError):
                self._version = self._agreed = None
            self._rollback()
            raise

    def _begun(self, writing: bool) -> Tables:
        if self._process != os.getpid():
            self._version, self._process = None, os.getpid()
            self._leave()
        return self._begin(writing)

    # -- verification ---------------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Whether everything is to be verified again."""
        if self._chain is None or self._version is None:
            return True
        return self._has_doubled(self._chain.length) or self._is_old()

    def _has_doubled(self, length: int) -> bool:
        return length > SHORT and 2 * (length - self._checked) >= length

    def _is_old(self) -> bool:
        return not self.counts_appends and time.monotonic() - self._checked_at > PERIOD

    def _caught_up(self, tables: Tables, writing: bool) -> Chain:
        """The chain with what was added since; verified as a whole where that is due, but not
        because of its length or age while others have to wait.
        """
        chain = self._chain
        if chain is None or self._version is None or not chain.length:
            return self._read_all(tables)
        version, head = tables.version(), tables.head()
        changed, moved = version != self._version, head != chain.head()
        if changed and not (moved and self.counts_appends):
            return self._read_all(tables)  # somebody has written, and not as a ledger does
        if not moved and self.counts_appends:  # nobody has written
            self._checked = chain.length
            return chain
        length = chain.length if head is None else head.seq
        if (moved and length <= SHORT) or (
            not writing and (self._has_doubled(length) or self._is_old())
        ):
            return self._read_all(tables)
        if moved:
            self._version = None  # until the new records are verified
            chain.read(tables.rows_after(chain.length), {})
            chain.require_head(head)
            self._version = version
        return chain

    def _require_seen(self, tables: Tables, chain: Chain) -> None:
        """Refuse a chain that does not have the record which the head file names."""
        seen = self._seen
        if seen is None or seen == self._agreed:
            return
        if seen.seq > chain.length:
            raise broken(f"it ends at record {chain.length}, and once had {seen.seq}")
        found = chain.tip if seen.seq == chain.length else tables.hash_of(seen.seq)
        if found != seen.hash:
            raise broken("its head file does not belong to it")
        self._agreed = seen

    def _read_all(self, tables: Tables) -> Chain:
        """Everything from the first record on; what was verified before must still be there."""
        anchors = {}
        if self._chain is not None and self._chain.length:
            anchors[self._chain.length] = self._chain.tip
        seen = self._seen
        if seen is not None and anchors.setdefault(seen.seq, seen.hash) != seen.hash:
            raise broken("its head file does not belong to it")
        chain = Chain(self._seal)
        version = tables.version()
        if tables.exist():
            chain.read(tables.rows_after(None), anchors)
            chain.require_head(tables.head())
        longest = max(anchors, default=0)
        if chain.length < longest:
            raise broken(f"it ends at record {chain.length}, and once had {longest}")
        self._version, self._chain = version, chain
        self._checked, self._checked_at = chain.length, time.monotonic()
        return chain
