"""Where records are kept: tables, transactions, and the order in which a record is written."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import BinaryIO, ClassVar, Protocol, TypeAlias, TypeVar

from dpframe.errors import DPFrameError, LedgerError, require
from dpframe.ledger.chain import (
    EVERY,
    Chain,
    broken,
    is_due,
    promised,
    require_here,
    row_of,
    state_of,
    unwitnessed,
    verified,
)
from dpframe.ledger.contents import Contents, MemoryContents
from dpframe.ledger.head_file import HeadFile, Seen
from dpframe.ledger.locks import Turn, close_all, release_after, this_process
from dpframe.ledger.record import COLUMNS, Draft, Head, Record, Row, Seal, sealed

# The operations of a store's tables, for any kind of storage.

STEP = 2048
"""Rows that are read at once."""


LARGEST = 2**63 - 1
"""Number of a record that is kept."""


class Tables(Protocol):
    """The tables of a ledger, as one transaction sees them."""

    def exist(self) -> bool:
        """Whether there is a ledger; False when its place is new and empty. Raises `LedgerError`
        when something else is there, or the tables were changed.
        """
        ...

    def create(self) -> None:
        """Make a new and empty destination a ledger."""
        ...

    def version(self) -> Hashable:
        """A value that changes when another process has written; see `Store.counts_appends`."""
        ...

    def rows(
        self,
        limit: int,  # How many at most
        *,
        after: int = 0,
        until: int = LARGEST,  # Their numbers are larger than the one, and at most the other
        newest: bool = False,  # Whether the last ones come first
        part: str | None = None,  # Text that is part of their `why`
        **among: Sequence[object],  # By column, the values that they may have
    ) -> list[Row]:
        """Rows in the order of their numbers."""
        ...

    def head(self) -> Head | None:
        """The stored head, verified or not."""
        ...

    def append(self, rows: Sequence[Row], head: Head | None, *, new: bool = False) -> None:
        """Add rows, and move the head if one is given; it is made if it is `new`."""
        ...

    def require_sound(self) -> None:
        """Refuse tables whose storage is damaged, if the database can check that."""
        ...


class SqlTables(ABC):
    """Tables of a database, and the statements that all databases understand."""

    RECORDS: ClassVar[str]
    HEAD: ClassVar[str]
    MARK: ClassVar[str]
    """Stands for a value in a statement."""
    HAS_PART: ClassVar[str]
    """The condition that `why` has a part."""

    @abstractmethod
    def fetch(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """All rows of an answer. They are read at once: a query that is left halfway would keep its
        lock.
        """

    def rows(
        self,
        limit: int,
        *,
        after: int = 0,
        until: int = LARGEST,
        newest: bool = False,
        part: str | None = None,
        **among: Sequence[object],
    ) -> list[Row]:
        tests = [f"seq > {self.MARK}", f"seq <= {self.MARK}"]
        values: list[object] = [after, min(until, LARGEST)]
        if part is not None:
            tests.append(self.HAS_PART)
            values.append(part)
        for column, some in among.items():
            tests.append(f"{column} IN ({', '.join([self.MARK] * len(some))})")
            values += some
        statement = (
            f"SELECT {', '.join(COLUMNS)} FROM {self.RECORDS} WHERE {' AND '.join(tests)} "
            f"ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT {self.MARK}"
        )
        return self.fetch(statement, [*values, limit])

    def head(self) -> Head | None:
        found = self.fetch(f"SELECT seq, hash, seal FROM {self.HEAD}")
        if not found:
            return None
        if [type(value) for value in found[0]] != [int, str, str]:
            raise broken("its head was changed")
        return Head(*found[0])


def hash_at(tables: Tables, seq: int) -> object:
    """The stored hash of a record, None if the number does not exist."""
    found = tables.rows(1, seq=[seq])
    return found[0][-1] if found else None


def rows_at(tables: Tables, numbers: Sequence[int]) -> Iterator[Row]:
    """The existing rows with these numbers, which rise."""
    for start in range(0, len(numbers), _AT_ONCE):
        yield from tables.rows(_AT_ONCE, seq=numbers[start : start + _AT_ONCE])


_AT_ONCE = 500
"""Numbers in one statement; old versions of SQLite allow 999."""


def rows_after(tables: Tables, seq: int) -> Iterator[list[Row]]:
    """All rows after a number, some at a time."""
    while rows := tables.rows(STEP, after=seq):
        yield rows
        if len(rows) < STEP:
            return
        seq = rows[-1][0]


# Transactions at one place; each sees a chain that is verified.
#
# The first use in a process verifies every record since the last checkpoint, in steps between which
# other processes may write. Later decisions use this verified copy, and new records must continue
# it. So an edit of a record while a process runs gives no one more budget. To notice such an edit,
# the process verifies everything again when the store reports a change other than an append, and
# when the chain has doubled. Where the store cannot be sure it also verifies the records since the
# last checkpoint every ten minutes. The time of a charge therefore does not depend on the length of
# the chain.

SHORT = 256
"""A chain up to this long is verified as a whole whenever another process wrote to it."""

PERIOD = 600.0
"""Seconds after which a store that cannot be sure verifies again."""

LISTED = 4 * EVERY
"""A chain up to this long keeps each charge in memory; a longer one does on request."""


R = TypeVar("R")


Made: TypeAlias = Draft | Sequence[Draft] | None
"""What is to be recorded together; nothing builds on another part of it."""


class Store(ABC):
    """Records at one place; safe between threads, forks and processes. A store knows how to begin
    and end a transaction; its tables know the statements.
    """

    counts_appends: ClassVar[bool]
    """Whether the version of the tables changes with every write of another process, so that an
    equal one proves that there was no write; or only with writes that no ledger makes."""

    is_shared: ClassVar[bool] = True
    """Whether other processes can use it, and refer to it."""

    def __init__(
        self,
        seal: Seal,  # How records are hashed
        witnesses: tuple[HeadFile, ...],  # Where the head is written down once more
    ) -> None:
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
        self._owner = self._process = this_process()

    @property
    def seal(self) -> Seal:
        return self._seal

    def require_own(self) -> None:
        """Refuse the copy that a forked process has of what is not shared."""
        if not self.is_shared and this_process() != self._owner:
            raise LedgerError(
                "a budget in memory belongs to the process that opened it, and this "
                "process was forked from it",
                why="it would spend the same budget again",
                remedy='keep the budget in a file: dp.Session(..., ledger="budget.db")',
            )

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
        """Where kept results and rows of streams lie."""

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
            chain.results.older.archive = lambda limit, **wanted: [
                verified(row, self._seal) for row in tables.rows(limit, **wanted)
            ]
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
        if self._process != this_process():
            self._version = None
            self._leave()
            self._process = this_process()
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
        # After a thread that has the turn: until it is done, nothing is trusted.
        chain, version = self.turn.run(lambda: (self._chain, self._version))
        known = chain is not None and version is not None and chain.length
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

        def step(tables: Tables) -> tuple[Chain, list[Row]]:
            begun = chain
            if begun is None:
                anchors.update(self._anchors([witness.read() for witness in self._witnesses]))
                begun = self._new_chain(tables, anchors, whole, full)
            return begun, tables.rows(STEP, after=begun.length) if tables.exist() else []

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
            until = min(anchors, default=length)
            last = tables.rows(1, act=["checkpoint", "rekeyed"], until=until, newest=True)
            if last:
                chain = Chain(self._seal)
                chain.begin(last[0], rows_at(tables, chain.needed(last[0])))
                return chain
        listed = whole or length <= (EVERY if full else LISTED)
        rekeyed = tables.rows(1, act=["rekeyed"], newest=True) if length else []
        return Chain(
            self._seal,
            whole=listed,
            rekeyed=rekeyed[0][0] if rekeyed else 0,
            hashes=self._hashes or bool(rekeyed),
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
            found = chain.tip if seen.seq == chain.length else hash_at(tables, seen.seq)
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
            if seq <= begun and hash_at(tables, seq) != tip:
                raise broken(f"record {seq} is not the one that was there before")
        self._chain = chain
        self._checked, self._checked_at = chain.length, time.monotonic()
        return version, chain

    # -- what is read, and in which order a record is written -----------------------------------

    def read(self, *, whole: bool = False) -> Chain:
        """The current chain, verified; with each charge if `whole`. Do not change it. Raises
        `LedgerError` when it cannot be read or does not verify.
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

    def append(self, draft: Callable[[Chain], Made], *, adopting: bool = False) -> int:
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

        def appending(tables: Tables, chain: Chain, added: list[Record]) -> int:
            require_here(chain.moved)
            made = draft(chain)
            if made is not None:
                drafts = [made] if isinstance(made, Draft) else made
                added += chain.following([*self._before(chain), *drafts])
                if not chain.length:
                    tables.create()
            # Asked here: later another thread may have added more.
            return added[-1].seq if added else chain.length

        with self._explained():
            if not adopting:
                self._refresh(False)  # before others have to wait for it
            return self.write(appending, adopting=adopting)

    def adopt(self, draft: Callable[[Chain], Draft]) -> int:
        """Record something in a ledger whose head file is missing, and write that again. Raises
        `LedgerError` when it is not missing, the ledger does not verify, or it is not the one that
        a head file elsewhere names.
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
        return self.append(draft, adopting=True)

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
            if added:
                head = used.head(added[-1].seq, added[-1].hash)
                new = not chain.length and self._promise is None
                tables.append([row_of(record) for record in added], head, new=new)
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

    def promise(
        self,
        origin: str,  # The identity that the ledger has
    ) -> str:
        """Reserve an empty destination for a ledger that is to be moved here.

        No other ledger can begin there from then on, and an interrupted move continues only where
        it finds this. So what was moved once is not moved again. Raises `LedgerError` when there is
        a ledger, or the place is kept for another one.

        Returns
        -------
        str
            The one that it will have here.
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
            tables.append([], promise, new=True)

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
        """Read and verify everything, while other processes may continue to write. Raises
        `LedgerError` when anything was edited, deleted, added or put in another order.
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
            return self._read_tables(lambda tables: str(hash_at(tables, seq)))

    def rows(self) -> Iterator[Row]:
        """All records as they are stored, verified or not, for export."""
        seq, more = 0, True

        def step(tables: Tables) -> list[Row]:
            return tables.rows(STEP, after=seq) if tables.exist() else []

        while more:
            with self._explained():
                rows = self._read_tables(step)
            yield from rows
            more = len(rows) == STEP
            seq = rows[-1][0] if rows else 0


# A ledger in memory, for as long as its process lives.

_WHY = COLUMNS.index("why")


class MemoryStore(Store):
    """Records that are gone when their process ends; safe between threads.

    A forked process has a copy of them, to which it may not write: both would spend the same
    budget.
    """

    counts_appends = True
    is_shared = False

    def __init__(self) -> None:
        super().__init__(Seal(None), ())
        self._turn = Turn()
        self._contents = MemoryContents()
        self._tables = MemoryTables()

    @property
    def where(self) -> str:
        return "memory only"

    @property
    def contents(self) -> MemoryContents:
        return self._contents

    @property
    def turn(self) -> Turn:
        return self._turn

    def _explained(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _alone(self, work: Callable[[], R], *, writing: bool) -> R:
        return self._turn.run(work)

    def _begin(self, writing: bool) -> MemoryTables:
        if writing:
            self.require_own()
        self._tables.roll_back()
        return self._tables

    def _commit(self) -> None:
        self._tables.commit()

    def _rollback(self) -> None:
        self._tables.roll_back()

    def _leave(self) -> None:
        """There is no connection to forget."""

    def _claim(self, identity: str) -> None:
        """A place in memory is the only one."""


class MemoryTables:
    """The records. The head names how many of them count."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._head: Head | None = None
        self._next: Head | None = None

    def commit(self) -> None:
        """Let what was added count, from one assignment on."""
        self._head = self._next

    def roll_back(self) -> None:
        """Forget what was added and does not count."""
        self._next = self._head
        del self._rows[0 if self._head is None else self._head.seq :]

    def exist(self) -> bool:
        return self._next is not None

    def create(self) -> None:
        """The first head makes it a ledger."""

    def version(self) -> int:
        return 0  # no other process can write

    def rows(
        self,
        limit: int,
        *,
        after: int = 0,
        until: int = LARGEST,
        newest: bool = False,
        part: str | None = None,
        **among: Sequence[object],
    ) -> list[Row]:
        found: list[Row] = []
        last = min(until, len(self._rows))
        numbers = range(last - 1, after - 1, -1) if newest else range(after, last)
        places = [(COLUMNS.index(column), some) for column, some in among.items()]
        for row in map(self._rows.__getitem__, numbers):
            has_part = part is None or (row[_WHY] is not None and part in row[_WHY])
            if has_part and all(row[place] in some for place, some in places):
                found.append(row)
                if len(found) == limit:
                    break
        return found

    def head(self) -> Head | None:
        return self._next

    def append(self, rows: Sequence[Row], head: Head | None, *, new: bool = False) -> None:
        self._rows += rows
        self._next = head or self._next

    def require_sound(self) -> None:
        """Memory is not checked."""
