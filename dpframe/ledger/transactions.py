"""Transactions at one place; each sees a chain that is verified.

The first use in a process verifies every record since the last checkpoint, in steps between which
other processes may write. Later decisions use this verified copy, and new records must continue it.
So an edit of a record while a process runs gives no one more budget. To notice such an edit, the
process verifies everything again when the store reports a change other than an append, and when the
chain has doubled. Where the store cannot be sure it also verifies the records since the last
checkpoint every ten minutes. The time of a charge therefore does not depend on the length of the
chain.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, TypeVar

from dpframe.errors import DPFrameError, LedgerError
from dpframe.ledger.chain import Chain, broken
from dpframe.ledger.checkpoints import EVERY
from dpframe.ledger.contents import Contents
from dpframe.ledger.head_file import HeadFile, Seen
from dpframe.ledger.record import Head, Seal
from dpframe.ledger.recorded import RecordedResults
from dpframe.ledger.releasing import release_after
from dpframe.ledger.standing import unwitnessed
from dpframe.ledger.tables import STEP, Tables, rows_after
from dpframe.ledger.turns import Turn

SHORT = 256
"""A chain up to this long is verified as a whole whenever another process wrote to it."""

PERIOD = 600.0
"""Seconds after which a store that cannot be sure verifies again."""

LISTED = 4 * EVERY
"""A chain up to this long keeps each charge in memory; a longer one does on request."""


R = TypeVar("R")


class Transactions(ABC):
    """Transactions at one place; safe between threads, forks and processes.

    Parameters
    ----------
    seal
        How records are hashed.
    witnesses
        Where the head is written down once more.
    """

    counts_appends: ClassVar[bool]
    """Whether the version of the tables changes with every write of another process, so that an
    equal one proves that there was no write; or only with writes that no ledger makes."""

    def __init__(self, seal: Seal, witnesses: tuple[HeadFile, ...]) -> None:
        self._seal = seal
        self._witnesses = witnesses
        self._seen: list[Seen | None] = []
        self._chain: Chain | None = None
        self._approached: Chain | None = None  # verified in steps, up to some time ago
        self._version: Hashable = None  # None: trust nothing until it is verified again
        self._checked = 0  # length of the chain when all of it was last verified
        self._checked_at = 0.0
        self._claimed: str | None = None
        self._promise: Head | None = None
        self._hashes = False
        self._process = os.getpid()

    @property
    def seal(self) -> Seal:
        return self._seal

    @property
    def is_keyed(self) -> bool:
        return self._seal.is_keyed

    # -- what each store does -------------------------------------------------------------------

    @property
    @abstractmethod
    def where(self) -> str:
        """The place, for people; never with a password."""

    @property
    @abstractmethod
    def contents(self) -> Contents:
        """Where what is kept of results lies."""

    @property
    @abstractmethod
    def turn(self) -> Turn:
        """The turn of its threads."""

    @abstractmethod
    def _explained(self) -> AbstractContextManager[None]:
        """Turns failures of the place into a LedgerError."""

    @abstractmethod
    def _alone(self, work: Callable[[], R], *, writing: bool) -> R:
        """Do some work without other threads, and without other processes where a transaction does
        not keep them out.
        """

    @abstractmethod
    def _begin(self, writing: bool) -> Tables:
        """Begin a transaction, which keeps other writers out if it is for writing."""

    @abstractmethod
    def _commit(self) -> None:
        """Make what was written durable; raise if that is not certain."""

    @abstractmethod
    def _rollback(self) -> None:
        """End a transaction in any state, if there is one. It never raises an error of its own,
        and continues after an interrupt.
        """

    @abstractmethod
    def _leave(self) -> None:
        """Forget the connection without touching it: it belongs to the parent process."""

    @abstractmethod
    def _claim(self, identity: str) -> None:
        """Refuse a second place of one ledger, if it is visible from here."""

    # -- transactions ---------------------------------------------------------------------------

    def _transact(
        self,
        work: Callable[[Tables, Chain], R],
        *,
        writing: bool,
        whole: bool = False,
        adopting: bool = False,
    ) -> R:
        """What some work makes of a verified chain, in one transaction."""
        # Before, so that they are not ahead of the data that is read next.
        self._seen = [None if adopting and w.required else w.read() for w in self._witnesses]

        def transaction() -> R:
            tables = self._begun(writing)
            # An interrupt may leave half of a record in the chain in memory.
            trusted, self._version = self._version, None
            version, chain = self._caught_up(tables, trusted, whole)
            chain.results.older.archive = RecordedResults(tables, self._seal, chain.results.older)
            try:
                self._require_seen(tables, chain, adopting)
                if chain.identity not in (None, self._claimed) and chain.moved is None:
                    self._claim(str(chain.identity))
                    self._claimed = chain.identity
                result = work(tables, chain)
                self._commit()
            except DPFrameError as error:
                if not isinstance(error, LedgerError):  # the request is refused
                    self._version = version
                raise
            self._version = version
            return result

        def end() -> None:
            self._rollback()
            if self._chain is not None:
                self._chain.results.older.archive = None

        return release_after(transaction, end)

    def _begun(self, writing: bool) -> Tables:
        if self._process != os.getpid():
            self._version = None
            self._leave()
            self._process = os.getpid()
        if self._version is None:
            for witness in self._witnesses:
                witness.agreed = None
        return self._begin(writing)

    def _read_tables(self, work: Callable[[Tables], R]) -> R:
        """What some work reads of the tables, in a short transaction that verifies nothing."""

        def transaction() -> R:
            result = work(self._begun(writing=False))
            self._commit()
            return result

        return self._alone(lambda: release_after(transaction, self._rollback), writing=False)

    # -- verification ---------------------------------------------------------------------------

    def _refresh(self, whole: bool) -> None:
        """Verify in steps if that is due, so that no process has to wait for it."""
        self._approached = None
        chain = self._chain
        known = chain is not None and self._version is not None and chain.length
        if known and chain is not None:
            doubled = self._has_doubled(chain.length)
            if not doubled and not self._is_old() and (chain.whole or not whole):
                return
            self._version = None
            self._approached = self._approach(whole or chain.whole, full=whole or doubled)
        else:
            self._approached = self._approach(whole, full=whole)

    def _has_doubled(self, length: int) -> bool:
        return length > SHORT and 2 * (length - self._checked) >= length

    def _is_old(self) -> bool:
        return not self.counts_appends and time.monotonic() - self._checked_at > PERIOD

    def _approach(self, whole: bool, full: bool) -> Chain:
        """The chain as it was a moment ago, but for less than a step."""
        chain: Chain | None = None
        anchors: dict[int, str] = {}

        def step(tables: Tables) -> tuple[Chain, list[tuple[Any, ...]]]:
            begun = chain
            if begun is None:
                anchors.update(self._anchors([witness.read() for witness in self._witnesses]))
                begun = self._new_chain(tables, anchors, whole, full)
            return begun, tables.rows(begun.length, STEP) if tables.exist() else []

        while True:
            chain, rows = self._read_tables(step)
            if len(rows) < STEP:
                return chain
            chain.read(rows, anchors)

    def _anchors(self, seen: Sequence[Seen | None]) -> dict[int, str]:
        """Hashes of records that must still be there: those of head files, and of the last one that
        was verified here.
        """
        anchors = {s.seq: s.hash for s in seen if s is not None and s.seq}
        if self._chain is not None and self._chain.length:
            known = self._chain.tip
            if anchors.setdefault(self._chain.length, known) != known:
                raise broken("its head file does not belong to it")
        return anchors

    def _new_chain(
        self, tables: Tables, anchors: Mapping[int, str], whole: bool, full: bool
    ) -> Chain:
        """A chain that begins at the last checkpoint, or at the first record.

        A record that must still exist is verified only by records that lead from it to the head.
        So no later checkpoint will do: the checkpoint of a copy, which continued separately, may
        vouch for other records.
        """
        head = tables.head() if tables.exist() else None
        length = 0 if head is None else head.seq
        if length > EVERY and not (full or whole):
            row = tables.last("checkpoint", "rekeyed", until=min(anchors, default=length))
            if row is not None:
                chain = Chain(self._seal)
                chain.begin(row, tables.rows_at(chain.needed(row)))
                return chain
        listed = whole or length <= (EVERY if full else LISTED)
        rekeyed = tables.last("rekeyed") if length else None
        return Chain(
            self._seal,
            whole=listed,
            rekeyed=rekeyed[0] if rekeyed else 0,
            hashes=self._hashes or rekeyed is not None,
        )

    def _caught_up(self, tables: Tables, trusted: Hashable, whole: bool) -> tuple[Hashable, Chain]:
        """The version of the tables, and the chain with the records added since it was `trusted`.
        It is verified as a whole if that is due, but not because of its length or age while
        others have to wait.
        """
        chain = self._chain
        if chain is None or trusted is None or not chain.length:
            return self._read_all(tables, whole)
        if whole and not chain.whole:
            return self._read_all(tables, whole)
        version, head = tables.version(), tables.head()
        changed, moved = version != trusted, head != chain.head()
        if changed and not (moved and self.counts_appends):
            # Another process has written, and not as a ledger does.
            return self._read_all(tables, chain.whole, full=True)
        if not moved and self.counts_appends:  # no other process has written
            self._checked = chain.length
            return version, chain
        length = chain.length if head is None else head.seq
        if moved and length <= SHORT:
            return self._read_all(tables, whole)
        if moved:
            for rows in rows_after(tables, chain.length):
                chain.read(rows, {})
            chain.require_head(head)
        return version, chain

    def _require_seen(self, tables: Tables, chain: Chain, adopting: bool) -> None:
        """Refuse a chain that is not the one of its head files."""
        for seen, witness in zip(self._seen, self._witnesses, strict=True):
            if seen is None:
                if witness.required and chain.length and not adopting:
                    raise unwitnessed(chain.length, witness.path.name)
                continue
            if seen == witness.agreed:
                continue
            name = witness.path.name
            if seen.seq > chain.length:
                raise broken(f"it ends at record {chain.length}, and once had {seen.seq}")
            if None not in (seen.identity, chain.identity) and seen.identity != chain.identity:
                raise broken(f"its head file {name!r} is of another ledger")
            found = chain.tip if seen.seq == chain.length else tables.hash_of(seen.seq)
            if seen.seq and found != seen.hash:
                raise broken(f"its head file {name!r} does not belong to it")
            witness.agreed = seen

    def _read_all(
        self, tables: Tables, whole: bool, *, full: bool = False
    ) -> tuple[Hashable, Chain]:
        """Everything from the last checkpoint on, or from the first record on; what was verified
        before must still be there.
        """
        anchors = self._anchors(self._seen)
        chain, self._approached = self._approached, None
        if chain is None or full or (whole and not chain.whole):
            chain = self._new_chain(tables, anchors, whole, full)
        version, begun = tables.version(), chain.length
        if tables.exist():
            for rows in rows_after(tables, begun):
                chain.read(rows, anchors)
            head = tables.head()
            if self._promise is None or chain.length or head != self._promise:
                chain.require_head(head)
        longest = max(anchors, default=0)
        if chain.length < longest:
            raise broken(f"it ends at record {chain.length}, and once had {longest}")
        for seq, tip in anchors.items():
            if seq <= begun and tables.hash_of(seq) != tip:
                raise broken(f"record {seq} is not the one that was there before")
        self._chain = chain
        self._checked, self._checked_at = chain.length, time.monotonic()
        return version, chain
