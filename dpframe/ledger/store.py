"""Where records are kept, and the chain that is verified before each use of them.

A store knows how to begin and end a transaction; its tables know the statements. What is the same
everywhere is here: which records are verified when, and in which order a record is written.

The first use in a process verifies every record since the last checkpoint, in steps between which
others may write. What is decided after that is decided by this verified copy and by new records,
each of which must continue it. So a record that is edited behind the back of a running process
gives nobody more budget; verifying everything again is about noticing it. That happens when the
store says that something else than appending has happened, when the chain has doubled, and, from
the last checkpoint on, every ten minutes where the store cannot be sure. A charge therefore takes
the same time however long the chain is.
"""

from __future__ import annotations

import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, BinaryIO, ClassVar, TypeAlias

from dpframe.errors import DPFrameError, LedgerError
from dpframe.ledger.chain import Chain, broken
from dpframe.ledger.checkpoints import EVERY, is_due, state_of
from dpframe.ledger.record import Draft, Head, Record, Seal, sealed
from dpframe.ledger.standing import promised, require_here, unwitnessed
from dpframe.ledger.tables import STEP, Tables, rows_after
from dpframe.ledger.turns import Turn
from dpframe.ledger.witness import Seen, Witness

SHORT = 256
"""A chain up to this long is verified as a whole whenever somebody else wrote to it."""

PERIOD = 600.0
"""Seconds after which a store that cannot be sure verifies again."""

LISTED = 4 * EVERY
"""A chain up to this long keeps each charge in memory; a longer one does when that is asked for."""


Made: TypeAlias = Draft | Sequence[Draft] | None
"""What is to be recorded together; nothing builds on another part of it."""


class Store(ABC):
    """Records at one place; safe between threads, forks and processes.

    Parameters
    ----------
    seal
        How records are hashed.
    witnesses
        Where the head is written down once more.
    """

    counts_appends: ClassVar[bool]
    """Whether the version of the tables changes with every write of somebody else, so that an equal
    one proves that there was none; or only with writes that no ledger makes."""

    def __init__(self, seal: Seal, witnesses: tuple[Witness, ...]) -> None:
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
    def turn(self) -> Turn:
        """That of its threads."""

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

    @abstractmethod
    def _claim(self, identity: str) -> None:
        """Refuse a second place of one ledger, as far as it can be seen from here."""

    # -- use ------------------------------------------------------------------------------------

    def read(self, *, whole: bool = False) -> Chain:
        """The chain as it is now, verified; with each charge if `whole`. Do not change it.

        Raises
        ------
        LedgerError
            When it cannot be read or does not verify.
        """
        with self._explained():
            self._refresh(whole)
            with (
                self._alone(writing=False),
                self._transaction(writing=False, whole=whole) as (_, chain),
            ):
                return chain

    def append(self, draft: Callable[[Chain], Made]) -> int:
        """Record what `draft` makes of the chain, durably; if it raises, nothing is recorded.

        Returns
        -------
        int
            The last record's number, also when `draft` finds that there is nothing to do.

        Raises
        ------
        LedgerError
            When it cannot be written or does not verify. If it is not known whether the record
            was written, it may count although nothing is released, never the other way round.
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
                    remedy="see docs/ledger.md for a copy that was put back",
                )
            if any(witness.read() is not None for witness in required):
                raise LedgerError(
                    "the ledger has its head file, so there is nothing to accept",
                    remedy="if the file is of another copy, move it away first",
                )
        return self._append(draft, adopting=True)

    def _append(self, draft: Callable[[Chain], Made], *, adopting: bool) -> int:
        with self._explained():
            if not adopting:
                self._refresh(False)  # before others have to wait for it
            with self.writing(adopting=adopting) as (tables, chain, added):
                require_here(chain)
                made = draft(chain)
                if made is not None:
                    drafts = [made] if isinstance(made, Draft) else made
                    added += chain.following([*self._before(chain), *drafts])
                    if not chain.length:
                        tables.create()
            return chain.length

    @contextmanager
    def writing(
        self, *, adopting: bool = False, seal: Seal | None = None
    ) -> Iterator[tuple[Tables, Chain, list[Record]]]:
        """A transaction at whose end the records in the list are durable, under a seal of their own
        if there is one.
        """
        used = seal or self._seal
        with self._explained(), ExitStack() as opened:
            opened.enter_context(self._alone(writing=True))
            added: list[Record] = []
            files: list[BinaryIO] = []
            with self._transaction(writing=True, adopting=adopting) as (tables, chain):
                yield tables, chain, added
                new = not chain.length and self._promise is None
                for record in added:
                    head = used.head(record.seq, record.hash)
                    tables.insert(record, head, new=new and record is added[0])
                if added:
                    files = [opened.enter_context(witness.open()) for witness in self._witnesses]
            if added:
                trusted, self._version = self._version, None  # until it is extended as a whole
                chain.seal = used
                for record in added:
                    chain.extend(record)
                self._version = trusted
                seen = Seen(chain.length, chain.tip, chain.identity)
                for witness, file in zip(self._witnesses, files, strict=True):
                    witness.write(file, seen, seal=seal)

    def _before(self, chain: Chain) -> list[Draft]:
        """What is recorded beside the next record: who the ledger is, or what it adds up to."""
        if chain.identity is None:
            begun = next((s.identity for s in self._seen if s is not None and not s.seq), None)
            identity = begun or uuid.uuid4().hex
            if not chain.length:
                self.begin(identity)
            return [Draft("", "identified", fingerprint=identity)]
        if is_due(chain):
            return [Draft("", "checkpoint", why=state_of(chain, self._seal))]
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
        with self._explained():
            self._version, self._hashes = None, True
            try:
                self._approached = self._approach(whole=False, full=True)
                with self.writing(seal=seal) as (_, chain, added):
                    require_here(chain)
                    if chain.hashed != chain.length:
                        raise LedgerError("the ledger is in use by another thread")
                    for witness in self._witnesses:
                        witness.bridge(Seen(chain.length, chain.tip, chain.identity), seal)
                    time = datetime.now(UTC).isoformat(timespec="microseconds")
                    added.append(sealed(draft(chain), chain.length + 1, time, chain.tip, seal))
            finally:
                self._hashes = False
            self._seal = seal
            for witness in self._witnesses:
                witness.use(seal)

    def promise(self, origin: str) -> str:
        """Keep an empty place for a ledger that is to be moved here.

        Nobody begins another one here from then on, and a move that was interrupted goes on only
        where it finds this. So what was moved once is not moved again.

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
        with (
            self._explained(),
            self._alone(writing=True),
            self._transaction(writing=True) as (tables, chain),
        ):
            if chain.length:
                raise LedgerError(
                    f"{self.where!r} has a ledger already", remedy="give an empty place"
                )
            self.begin(identity)
            tables.create()
            tables.insert_head(promise)
        self._promise = promise
        return identity

    def promised_to(self, origin: str) -> str | None:
        """The identity that a ledger will have here; None where the place is not kept for it."""
        with self._explained(), self._reading() as tables:
            head = tables.head() if tables.exist() else None
        identity = None if head is None else head.hash[:32]
        if head is None or identity is None or head != promised(self._seal, identity, origin):
            return None
        self._promise = head
        return identity

    def forget(self) -> None:
        """Read everything again at the next use, and promise nothing any more."""
        self._chain = self._version = self._promise = None

    def verify(self) -> Head:
        """Read and verify everything, whoever has written, while others may go on writing.

        Raises
        ------
        LedgerError
            When anything was edited, deleted, added or put in another order.
        """
        with self._explained():
            self._version = None  # so that it stays refused
            chain = self._approach(whole=False, full=True)
            with self._alone(writing=False):
                self._version, self._approached = None, chain
                with self._transaction(writing=False) as (tables, chain):
                    tables.require_sound()
                    return chain.head()

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """All records as they are stored, verified or not, for export."""
        seq, more = 0, True
        while more:
            with self._explained(), self._reading() as tables:
                rows = tables.rows(seq, STEP) if tables.exist() else []
            yield from rows
            more = len(rows) == STEP
            seq = rows[-1][0] if rows else 0

    # -- transactions ---------------------------------------------------------------------------

    @contextmanager
    def _transaction(
        self, *, writing: bool, whole: bool = False, adopting: bool = False
    ) -> Iterator[tuple[Tables, Chain]]:
        # Before, lest they be ahead of what is then read.
        self._seen = [None if adopting and w.required else w.read() for w in self._witnesses]
        try:
            tables = self._begun(writing)
            chain = self._caught_up(tables, writing, whole)
            self._require_seen(tables, chain, adopting)
            if chain.identity not in (None, self._claimed) and chain.moved is None:
                self._claim(str(chain.identity))
                self._claimed = chain.identity
            yield tables, chain
            self._commit()
        except BaseException as error:
            if not isinstance(error, DPFrameError) or isinstance(error, LedgerError):
                self._distrust()
            self._rollback()
            raise

    def _distrust(self) -> None:
        self._version = self._approached = None
        for witness in self._witnesses:
            witness.agreed = None

    def _begun(self, writing: bool) -> Tables:
        if self._process != os.getpid():
            self._version, self._process = None, os.getpid()
            self._leave()
        return self._begin(writing)

    @contextmanager
    def _reading(self) -> Iterator[Tables]:
        """A short transaction that verifies nothing."""
        with self._alone(writing=False):
            try:
                yield self._begun(writing=False)
                self._commit()
            except BaseException:
                self._rollback()
                raise

    # -- verification ---------------------------------------------------------------------------

    def _refresh(self, whole: bool) -> None:
        """Verify what is due in steps, so that nobody has to wait for it."""
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
        while True:
            with self._reading() as tables:
                if chain is None:
                    anchors = self._anchors([witness.read() for witness in self._witnesses])
                    chain = self._new_chain(tables, anchors, whole, full)
                rows = tables.rows(chain.length, STEP) if tables.exist() else []
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

        What must still be there is verified only by records that lead from it to the head. So no
        later checkpoint will do: that of a copy, which went on by itself, may vouch for others.
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

    def _caught_up(self, tables: Tables, writing: bool, whole: bool) -> Chain:
        """The chain with what was added since; verified as a whole where that is due, but not
        because of its length or age while others have to wait.
        """
        chain = self._chain
        if chain is None or self._version is None or not chain.length:
            return self._read_all(tables, whole)
        if whole and not chain.whole:
            return self._read_all(tables, whole)
        version, head = tables.version(), tables.head()
        changed, moved = version != self._version, head != chain.head()
        if changed and not (moved and self.counts_appends):
            # Somebody has written, and not as a ledger does.
            return self._read_all(tables, chain.whole, full=True)
        if not moved and self.counts_appends:  # nobody has written
            self._checked = chain.length
            return chain
        length = chain.length if head is None else head.seq
        if moved and length <= SHORT:
            return self._read_all(tables, whole)
        if moved:
            self._version = None  # until the new records are verified
            for rows in rows_after(tables, chain.length):
                chain.read(rows, {})
            chain.require_head(head)
            self._version = version
        return chain

    def _require_seen(self, tables: Tables, chain: Chain, adopting: bool) -> None:
        """Refuse a chain that is not the one of its head files."""
        for seen, witness in zip(self._seen, self._witnesses, strict=True):
            if seen is None:
                if witness.required and chain.length and not adopting:
                    raise unwitnessed(chain, witness.path.name)
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

    def _read_all(self, tables: Tables, whole: bool, *, full: bool = False) -> Chain:
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
        self._version, self._chain = version, chain
        self._checked, self._checked_at = chain.length, time.monotonic()
        return chain
