"""A ledger in PostgreSQL, shared by threads, processes and machines.

One transaction per record. It locks the table `head`, which every writer must change. Unlike an
advisory lock, this is refused to roles without rights on the ledger, shows in `pg_locks` under
the ledger's name, and keeps out edits by hand. Unlike SERIALIZABLE, a transaction never has to be
repeated, so waiting writers take turns. Readers are not locked out; they read one snapshot. The
tables are created under an advisory lock, because there is nothing else to lock yet.

Durability: ``synchronous_commit = on`` for each transaction, overriding the role's default. So a
commit is on the server's disk before it returns, and on the disks of synchronous standbys where
those are configured. (``remote_apply`` would also wait until they show it, which adds nothing.) A
server with ``fsync = off`` is refused. A commit whose end is not known is a failure: the record
may count, and nothing is released.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar
from urllib.parse import quote
from weakref import WeakSet, finalize

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus

from dpframe.errors import LedgerError
from dpframe.ledger.chain import RESTORE, broken
from dpframe.ledger.contents import IsRight, any_content
from dpframe.ledger.head_file import HeadFile, claim
from dpframe.ledger.locks import Turn, release_after, this_process
from dpframe.ledger.record import COLUMNS, Head, Row, Seal, no_ledger
from dpframe.ledger.store import SqlTables, Store, Tables

# Where a server's database is, with user and password kept out of everything that people see.

SHOWN = "postgresql://..."
"""Shown for an unreadable URL, because the end of its password is unknown."""

DEFAULTS = {
    "application_name": "dpframe ledger",
    "connect_timeout": "10",
    "keepalives_idle": "10",  # so that a server that vanished is noticed in half a minute
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True, slots=True)
class Address:
    """A database of a server."""

    words: str  # For people: host, port and database
    parameters: Mapping[str, str] = field(repr=False)  # For libpq; they may hold a password

    @classmethod
    def of(cls, url: str) -> Address:
        """The address that a URL names, with what libpq takes from the environment left to it.
        Raises `LedgerError` when it cannot be read, or reading it could show part of a password.
        """
        rest = url.partition("://")[2]
        before, at, after = rest.partition("@")
        # libpq would read "u:a/b@h" as host u and database b@h, and "u:a@b@h" as host b@h.
        if "@" in after or (at and any(mark in before for mark in "/?#[]")):
            raise _unreadable()
        try:
            found = conninfo_to_dict(url)
        except psycopg.Error:  # its message quotes the URL
            raise _unreadable() from None
        given = {k: str(v) for k, v in found.items() if v is not None}
        if not given.get("port", "0").replace(",", "").isdigit():
            raise _unreadable()
        return cls(_words(given), {**DEFAULTS, **given})


def _words(given: Mapping[str, str]) -> str:
    """All settings that identify the database, so that different ones never look the same."""
    host = quote(given.get("host", given.get("hostaddr", "")), safe=",:")
    port = f":{given['port']}" if "port" in given else ""
    name = given.get("dbname") or given.get("user", "")  # as libpq does
    named = ("hostaddr", "service") if "host" in given else ("service",)
    more = "&".join(f"{k}={quote(given[k], safe=',:')}" for k in named if k in given)
    return f"postgresql://{host}{port}/{quote(name, safe='')}" + (f"?{more}" if more else "")


def _unreadable() -> LedgerError:
    return LedgerError(
        f"the URL {SHOWN} cannot be read",
        where="ledger",
        remedy='write ledger="postgresql://host:5432/database", with special characters in '
        "any of its parts percent-encoded (@ is %40, / is %2F), and the password in ~/.pgpass",
    )


# The tables of a ledger on a server, and every statement that reads or writes them.
#
# They have a schema of their own, and every statement names it, so that no search path leads
# elsewhere.

Connection = psycopg.Connection[Row]

CREATED = b"""
CREATE TABLE dpframe_ledger.records (
    seq bigint PRIMARY KEY, time text NOT NULL, name text NOT NULL, act text NOT NULL,
    refers bigint, fingerprint text, unit text, measure text, main text, slack text,
    who text, why text, previous text NOT NULL, hash text NOT NULL);
CREATE TABLE dpframe_ledger.head (
    one integer PRIMARY KEY CHECK (one = 1), seq bigint NOT NULL, hash text NOT NULL,
    seal text NOT NULL)"""

BESIDE = {
    "releases": b"""
CREATE TABLE dpframe_ledger.releases (
    number bigint NOT NULL, part integer NOT NULL, content bytea NOT NULL,
    PRIMARY KEY (number, part))""",
    "streams": b"""
CREATE TABLE dpframe_ledger.streams (
    stream bigint NOT NULL, first integer NOT NULL, content bytea NOT NULL,
    PRIMARY KEY (stream, first))""",
}
"""Contents of kept results, and rows of streams; each is made when it is first needed."""

LOCKED = b"LOCK TABLE dpframe_ledger.head IN EXCLUSIVE MODE"
"""A writer must move the head, so this keeps other writers out, and lets readers in."""

VERSION = b"""
SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', c.oid, c.xmin, c.relfilenode,
    (SELECT pg_catalog.string_agg(a.xmin::text, '/' ORDER BY attnum)
        FROM pg_catalog.pg_attribute a WHERE attrelid = c.oid AND attnum > 0),
    CASE c.relname WHEN 'records' THEN pg_catalog.pg_stat_get_tuples_updated(c.oid) END,
    CASE c.relname WHEN 'records' THEN pg_catalog.pg_stat_get_tuples_deleted(c.oid) END),
    ',' ORDER BY c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'dpframe_ledger'"""
"""What changes when tables are altered or emptied, or their rows edited or deleted, and stays when
rows are added. The server counts edits and deletions for its statistics, up to seconds late."""

PLACE = b"""
SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()), oid::bigint
FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()"""
"""Equal for all addresses of one database, which has one ledger, also after that was put back; a
copy in another one of the server has another place."""

DESCRIBED = """
WITH t AS (
    SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'dpframe_ledger')
SELECT concat_ws(' ', relkind, relname, relpersistence, relrowsecurity) FROM t
UNION ALL SELECT concat_ws(' ', relname, attnum, attname, format_type(atttypid, atttypmod),
        attnotnull, atthasdef, attgenerated)
    FROM pg_attribute JOIN t ON attrelid = t.oid AND relkind = 'r' AND attnum > 0
UNION ALL SELECT concat_ws(' ', relname, pg_get_constraintdef(o.oid))
    FROM pg_constraint o JOIN t ON conrelid = t.oid AND contype <> 'n'
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger JOIN t ON tgrelid = t.oid
UNION ALL SELECT 'rule ' || rulename FROM pg_rewrite JOIN t ON ev_class = t.oid
UNION ALL SELECT 'policy ' || polname FROM pg_policy JOIN t ON polrelid = t.oid
UNION ALL SELECT 'inherits ' || relname FROM pg_inherits JOIN t ON t.oid IN (inhparent, inhrelid)"""

_TYPES = {"seq": "bigint t", "refers": "bigint f"} | dict.fromkeys(
    ("time", "name", "act", "previous", "hash"), "text t"
)
DESCRIPTION = sorted(
    [
        "r records p f",
        "r head p f",
        "i records_pkey p f",
        "i head_pkey p f",
        *(f"records {n} {c} {_TYPES.get(c, 'text f')} f " for n, c in enumerate(COLUMNS, 1)),
        *(
            f"head {n} {c} t f "
            for n, c in enumerate(("one integer", "seq bigint", "hash text", "seal text"), 1)
        ),
        "records PRIMARY KEY (seq)",
        "head PRIMARY KEY (one)",
        "head CHECK ((one = 1))",
    ]
)
"""The description of unchanged tables."""
DESCRIPTIONS = {
    table: [
        f"r {table} p f",
        f"i {table}_pkey p f",
        f"{table} 1 {first} bigint t f ",
        f"{table} 2 {second} integer t f ",
        f"{table} 3 content bytea t f ",
        f"{table} PRIMARY KEY ({first}, {second})",
    ]
    for table, first, second in (("releases", "number", "part"), ("streams", "stream", "first"))
}
"""More lines of it for the tables of contents and rows, where these exist."""


LAST_PART = 2**31 - 1
"""The largest number of a part."""

_INSERT = f"INSERT INTO dpframe_ledger.records VALUES ({', '.join(['%s'] * len(COLUMNS))})".encode()


def _is_right(found: list[str]) -> bool:
    """Whether the tables have the description of unchanged ones."""
    beside = [part for part in DESCRIPTIONS.values() if set(part) <= set(found)]
    return found == sorted([*DESCRIPTION, *itertools.chain.from_iterable(beside)])


class PostgresTables(SqlTables):
    """The tables, within a transaction of `connection`; `version` was read before it."""

    RECORDS, HEAD = "ONLY dpframe_ledger.records", "ONLY dpframe_ledger.head"
    MARK, HAS_PART = "%s", "pg_catalog.strpos(why, %s) > 0"

    def __init__(self, connection: Connection, version: str | None) -> None:
        self._connection = connection
        self._version = version

    def fetch(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(statement.encode(), values or None).fetchall()

    def exist(self) -> bool:
        found = sorted(row[0] for row in self.fetch(DESCRIBED))
        if not found:
            return False
        if not _is_right(found):
            raise broken("its tables were changed")
        return True

    def create(self) -> None:
        schema = "SELECT 1 FROM pg_namespace WHERE nspname = 'dpframe_ledger'"
        if not self.fetch(schema):  # it may have been prepared for a role that may not create it
            self._connection.execute(b"CREATE SCHEMA dpframe_ledger")
        self._connection.execute(CREATED)

    def version(self) -> str | None:
        return self._version

    def append(self, rows: Sequence[Row], head: Head | None, *, new: bool = False) -> None:
        with self._connection.cursor() as cursor:
            added = 0
            if head is None:  # those of a ledger that moves here: there may be many
                cursor.executemany(_INSERT, rows)
                added = cursor.rowcount
            else:
                for row in rows:
                    added += cursor.execute(_INSERT, row).rowcount
        if added != len(rows):
            raise broken("its table refuses new records")
        if head is None:
            return
        moved = self.fetch(
            "INSERT INTO dpframe_ledger.head VALUES (1, %s, %s, %s) RETURNING "
            "current_setting('fsync')"
            if new
            else "UPDATE dpframe_ledger.head SET seq = %s, hash = %s, seal = %s RETURNING "
            "current_setting('fsync')",
            (head.seq, head.hash, head.seal),
        )
        if not moved:
            raise broken("its head cannot be updated")
        if moved != [("on",)]:
            raise LedgerError(
                "the server has fsync switched off, so it may forget charges",
                remedy="switch it on: ALTER SYSTEM SET fsync = on, then SELECT pg_reload_conf()",
            )

    def has(self, table: str) -> bool:
        """Whether there is a table of contents or rows."""
        known = "SELECT pg_catalog.to_regclass(%s) IS NOT NULL"
        return self.fetch(known, [f"dpframe_ledger.{table}"]) == [(True,)]

    def may(self, table: str, *rights: str) -> bool:
        """Whether this role has some rights on a table that is there."""
        known = "SELECT pg_catalog.has_table_privilege(%s, %s)"
        name = f"dpframe_ledger.{table}"
        return all(self.fetch(known, (name, right)) == [(True,)] for right in rights)

    def make(self, table: str) -> None:
        """Make a table of contents or rows, if it is not there."""
        if not self.has(table):
            self._connection.execute(BESIDE[table])

    def put(self, table: str, number: int, part: int, content: bytes) -> None:
        """Keep one content, or the rows of one period, where nothing is kept."""
        insert = f"INSERT INTO dpframe_ledger.{table} VALUES (%s, %s, %s)"
        self._connection.execute(insert.encode(), (number, part, content))

    def require_sound(self) -> None:
        """Nothing to ask: pages with wrong checksums are refused when they are read."""


# What went wrong with a ledger on a server, in words.
#
# Only the kind of a failure is reported. Messages of libpq may quote a connection string, and those
# of a server may contain any output of its triggers; neither is repeated, nor kept as a cause.

_Words = tuple[str, str | tuple[str, str]]

_LOST: _Words = (
    "cannot be reached any more: the connection was lost",
    "try again when the server is back; nothing was released, but the last charge may count",
)
_FORBIDDEN = (
    "does not permit this to this role",
    (
        "grant the role what docs/ledger.md lists",
        "to create a ledger, permit it to create a schema",
    ),
)
_READ_ONLY = (
    "cannot be written: the server, the database or the role is read-only",
    "connect to a primary server, as a role that may write; nothing was released",
)
_DAMAGED = ("is damaged", RESTORE)
_VALUE: _Words = ("cannot hold this value", "use text without NUL characters, in Unicode")

_KINDS: dict[str, _Words] = {  # by SQLSTATE, or its class; see appendix A of PostgreSQL's manual
    "08": _LOST,
    "22": _VALUE,
    "23505": ("was written by a process that did not take its lock", "run it again"),
    "25006": _READ_ONLY,
    "25P03": _LOST,
    "3F000": ("does not verify: its tables are missing", RESTORE),
    "42": ("does not verify: its tables were changed", RESTORE),
    "42P01": ("does not verify: its tables are missing", RESTORE),
    "42501": _FORBIDDEN,
    "53": (
        "failed: the server is out of space, memory or connections",
        "make room, and run it again",
    ),
    "55P03": (
        "is locked by another process",
        ("try again later; nothing was charged", "end the process that holds it"),
    ),
    "57014": (
        "took too long to answer",
        ("try again; nothing was released", "check what keeps the server busy"),
    ),
    "57": _LOST,
    "58": ("failed: the server cannot read or write its files", "read the log of the server"),
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}

_SILENT = ("no server listens there", ("start the server", "correct the host or the port"))

_CONNECTING: dict[str, _Words] = {  # by what libpq says, where it says it in English
    "password": ("the password is missing or wrong", "put it into ~/.pgpass"),
    "no pg_hba.conf entry": (
        "the server does not admit this user",
        "ask its administrator for an entry in pg_hba.conf",
    ),
    "does not exist": (
        "the database or the role does not exist",
        "correct the name of the database or the role",
    ),
    "timeout expired": ("it does not answer", "correct the host or the port"),
    "could not translate host name": ("the host is unknown", "correct its name"),
    "Connection refused": _SILENT,
    "No such file": _SILENT,
    "starting up": ("the server is starting", "try again soon"),
    "shutting down": ("the server is shutting down", "try again when it is back"),
    "too many": ("it has too many connections", "try again soon"),
}


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn failures of the server and of the head file into a LedgerError."""
    try:
        yield
    except psycopg.Error as error:
        raise _in_words(where, error) from None
    except OSError as error:
        name = "" if error.filename is None else f" {str(error.filename)!r}"
        raise LedgerError(
            f"the head file{name} of the ledger {where!r} failed: "
            f"{error.strerror or type(error).__name__}",
            remedy="check the file and its disk, and run again; nothing was released",
        ) from None


def _in_words(where: str, error: psycopg.Error) -> LedgerError:
    state = error.sqlstate or ""
    if not state and isinstance(error, psycopg.DataError):
        what, remedy = _VALUE
    elif not state and isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        what, remedy = _LOST
    else:
        kind = f"{type(error).__name__}, SQLSTATE {state or 'unknown'}"
        unknown = (
            f"failed: {kind}",
            "read the log of the server, and run again; nothing was released",
        )
        what, remedy = _KINDS.get(state) or _KINDS.get(state[:2]) or unknown
    return LedgerError(f"the ledger {where!r} {what}", remedy=remedy)


def unconnected(where: str, error: psycopg.Error) -> LedgerError:
    """The refusal of a connection."""
    text = str(error)
    found = (words for part, words in _CONNECTING.items() if part in text)
    why, remedy = next(found, ("it cannot be reached", "check that `psql` can connect to it"))
    return LedgerError(f"the ledger {where!r} cannot be opened: {why}", remedy=remedy)


# Contents of kept results, and rows of streams, in PostgreSQL: tables next to the records.
#
# The process that computes a result holds an advisory lock meanwhile, in its own transaction on its
# own connection. It is gone when the process is, and poolers that share connections leave
# transactions alone. Who writes rows of a stream holds the lock that every writer of the ledger
# takes, so the first under a name is the only one.

R = TypeVar("R")


class PostgresContents:
    """The tables ``releases`` and ``streams`` next to the records of a store."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def prepare(self) -> None:
        self._prepare("releases", "results")

    def prepare_rows(self) -> None:
        self._prepare("streams", "the rows of streams")

    def _prepare(self, table: str, what: str) -> None:
        """Make a table, or find out whether this role may use it."""

        def may_keep(tables: PostgresTables) -> bool:
            there = tables.has(table)
            if there and not tables.may(table, "SELECT", "INSERT"):
                raise LedgerError(
                    f"this role may not keep {what} in {self._store.where!r}",
                    remedy=f"grant it SELECT and INSERT on dpframe_ledger.{table}; nothing was "
                    "charged",
                )
            return there

        if not self._store.with_tables(may_keep):
            self._store.with_tables(lambda tables: tables.make(table), writing=True)

    def write(self, number: int, blobs: Sequence[bytes]) -> None:
        # With numbers from a random one on: rows that another user inserted for the charge do no
        # harm.
        first = 1 + secrets.randbelow(LAST_PART - len(blobs))

        def writing(tables: PostgresTables) -> None:
            tables.make("releases")
            for part, blob in enumerate(blobs, start=first):
                tables.put("releases", number, part, blob)

        self._store.with_tables(writing, writing=True)

    def read(self, number: int, count: int, is_right: IsRight = any_content) -> list[bytes] | None:
        wanted = "SELECT part, content FROM ONLY dpframe_ledger.releases WHERE number = %s"
        parts: dict[int, bytes] = dict(self._rows_of("releases", wanted, [number]))
        every = ([parts.get(first + n) for n in range(count)] for first in sorted(parts))
        found = [[bytes(part) for part in one if part is not None] for one in every]
        whole = [one for one in found if len(one) == count]
        return next(filter(is_right, whole), whole[0] if whole else None)

    def _rows_of(
        self, table: str, statement: str, values: Sequence[object], *, writing: bool = False
    ) -> list[Row]:
        """What a statement answers about a table; nothing where that was not made yet."""
        return self._store.with_tables(
            lambda tables: tables.fetch(statement, values) if tables.has(table) else [],
            writing=writing,
        )

    def prepare_removal(self) -> None:
        def preparing(tables: PostgresTables) -> None:
            if tables.has("releases") and not tables.may("releases", "SELECT", "DELETE"):
                raise LedgerError(
                    f"this role may not delete results from {self._store.where!r}",
                    remedy="grant it SELECT and DELETE on dpframe_ledger.releases; nothing was "
                    "deleted",
                )

        self._store.with_tables(preparing)

    def remove(self, number: int, count: int) -> bool:
        dropped = "DELETE FROM ONLY dpframe_ledger.releases WHERE number = %s RETURNING part"
        return bool(self._rows_of("releases", dropped, [number], writing=True))

    def present(self, token: str, work: Callable[[], R]) -> R:
        connections: list[Connection] = []
        process = this_process()

        def locked() -> R:
            connections.append(self._store.connect_beside())
            with explained(self._store.where):
                connections[0].execute(_BEGIN)
                connections[0].execute(_LOCK, (_number(token),))
            return work()

        def let_go() -> None:
            for connection in connections:
                if process == this_process() and not connection.closed:  # not in a fork
                    with suppress(psycopg.Error):
                        connection.execute(_END)
                    connection.close()

        return release_after(locked, let_go)

    def is_present(self, token: str) -> bool:
        # Who looks only shares the lock, so that two of them do not take each other for its owner.
        wanted = "SELECT pg_catalog.pg_try_advisory_xact_lock_shared(%s)"
        found = self._store.with_tables(lambda tables: tables.fetch(wanted, [_number(token)]))
        return found != [(True,)]

    def place_of_rows(self, stream: int, first: int) -> str:
        table = f"dpframe_ledger.streams of {self._store.where!r}"
        return f"in {table} (stream {stream}, first {first})"

    def rows(self, stream: int, firsts: Sequence[int]) -> list[bytes | None]:
        rows = self._rows_of("streams", _ROWS, [stream, list(firsts)]) if firsts else []
        found: dict[int, bytes] = dict(rows)
        return [bytes(found[first]) if first in found else None for first in firsts]

    def keep_rows(self, stream: int, first: int, content: bytes) -> bytes:
        def keeping(tables: PostgresTables) -> bytes:
            tables.make("streams")
            found = tables.fetch(_ROWS, [stream, [first]])
            if found:
                return bytes(found[0][1])
            tables.put("streams", stream, first, content)
            return content

        return self._store.with_tables(keeping, writing=True)


_ROWS = (
    "SELECT first, content FROM ONLY dpframe_ledger.streams WHERE stream = %s AND first = ANY(%s)"
)
_BEGIN = (
    b"BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; "
    b"SET LOCAL tcp_keepalives_idle = 30; SET LOCAL tcp_keepalives_interval = 10; "
    b"SET LOCAL tcp_keepalives_count = 3"
)
"""A machine that is gone is noticed within a minute."""
_END = b"ROLLBACK"
"""A server gives up the locks of a connection that is closed some time later; of a transaction that
ended at once.
"""
_LOCK = b"SELECT pg_catalog.pg_advisory_xact_lock(%s)"


def _number(token: str) -> int:
    """The number of a lock, of those that PostgreSQL has."""
    return int.from_bytes(bytes.fromhex(token)[:8], signed=True)


CREATING = b"SELECT pg_catalog.pg_advisory_xact_lock(28271082979028325)"  # "dpframe", in ASCII


_CONNECTIONS: WeakSet[Connection] = WeakSet()
"""All connections of this process."""

_INHERITED: list[Connection] = []
"""Connections of a parent process, kept so that nothing closes them here."""


class PostgresStore(Store):
    """The schema ``dpframe_ledger`` of a database."""

    counts_appends = False

    def __init__(
        self,
        address: Address,
        seal: Seal,
        *,
        witness: Path | None = None,  # The path of a head file, if any
        timeout: float = 15.0,  # Seconds to wait for a lock; a statement may take four times them
        create: bool = True,  # Whether a missing ledger may be created
    ) -> None:
        super().__init__(seal, () if witness is None else (HeadFile(witness, seal, alone=False),))
        self._turn = Turn()
        self._address = address
        self._timeout = max(1, int(1000 * timeout))  # 0 would be no timeout
        self._create = create
        self._connection: Connection | None = None
        self._writing = False
        self._warnings: list[str] = []
        _STORES.add(self)

    @classmethod
    def at(
        cls, url: str, seal: Seal, *, witness: Path | None = None, create: bool = True
    ) -> PostgresStore:
        """The store at a URL."""
        return cls(Address.of(url), seal, witness=witness, create=create)

    @property
    def where(self) -> str:
        return self._address.words

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.where)

    @property
    def contents(self) -> PostgresContents:
        return PostgresContents(self)

    def with_tables(self, work: Callable[[PostgresTables], R], *, writing: bool = False) -> R:
        """What some work makes of the tables, in a transaction that adds no record."""

        def with_tables(tables: Tables, *_: object) -> R:
            assert isinstance(tables, PostgresTables)
            return work(tables)

        if writing:
            return self.write(with_tables)
        with self._explained():
            return self._read_tables(with_tables)

    # -- transactions ---------------------------------------------------------------------------

    @property
    def turn(self) -> Turn:
        return self._turn

    def _claim(self, identity: str) -> None:
        if self._connection is not None:
            place = self._connection.execute(PLACE).fetchone()
            claim(identity, place, self.where, lambda: True)

    def _alone(self, work: Callable[[], R], *, writing: bool) -> R:
        return self._turn.run(work)

    def _begin(self, writing: bool) -> Tables:
        self._writing = writing
        connection, version = self._started(writing)
        tables = PostgresTables(connection, version)
        if writing and not self._has_records():
            self._turn.pause(lambda: connection.execute(CREATING))
        is_there = self._has_records() or tables.exist()
        if not is_there and not self._create:
            raise no_ledger(self.where)
        if writing and is_there:
            self._turn.pause(lambda: connection.execute(LOCKED))
        return tables

    def _has_records(self) -> bool:
        return self._chain is not None and self._chain.length > 0

    def _started(self, writing: bool) -> tuple[Connection, str | None]:
        """A transaction; on a new connection if the server has closed an idle one meanwhile."""
        if self._connection is not None:
            try:
                return self._connection, self._start(self._connection, writing)
            except psycopg.OperationalError:
                if not self._connection.closed:
                    raise
        self._connection = self._connect()
        return self._connection, self._start(self._connection, writing)

    def _start(self, connection: Connection, writing: bool) -> str | None:
        """Begin, and return the version of the tables.

        This is read in an earlier transaction, because it must not be newer than the records: a
        change between the two is then noticed the next time, instead of never.
        """
        settings = (
            "SET LOCAL search_path = pg_catalog, pg_temp; "
            f"SET LOCAL lock_timeout = {self._timeout}; "
            f"SET LOCAL statement_timeout = {4 * self._timeout}; "
        )
        if writing:
            # Each statement sees what was committed before it, after the lock what the last one
            # who had it wrote. A process that stops in the middle does not keep the lock.
            kind = "READ COMMITTED"
            settings += (
                "SET LOCAL synchronous_commit = on; "
                f"SET LOCAL idle_in_transaction_session_timeout = {4 * self._timeout}; "
            )
        else:
            kind = "REPEATABLE READ READ ONLY"
        answers = connection.execute(
            f"BEGIN; {settings}".encode()
            + VERSION
            + f"; COMMIT; BEGIN ISOLATION LEVEL {kind}; {settings}".encode()
        )
        while answers.description is None:
            if not answers.nextset():
                raise psycopg.InternalError("no answer")
        version: str | None = answers.fetchall()[0][0]
        return version

    def _commit(self) -> None:
        if self._connection is None:
            raise psycopg.InterfaceError("no connection")
        self._warnings.clear()
        # The server's own limit does not hold while a commit waits for a standby.
        late = Timer(4 * self._timeout / 1000, _cancel, [self._connection])
        late.daemon = True
        if self._writing:
            late.start()
        try:
            done = self._connection.execute(b"COMMIT").statusmessage
        finally:
            late.cancel()
        if done != "COMMIT" or self._warnings:  # such as that a standby did not confirm in time
            raise LedgerError(
                f"the ledger {self.where!r} did not confirm that the record is durable",
                why="nothing was released, but the last charge may count",
                remedy="check the server and its standbys, and run again",
            )

    def _rollback(self) -> None:
        connection = self._connection
        if connection is None:
            return
        status = connection.info.transaction_status
        if status == TransactionStatus.IDLE:
            return
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(psycopg.Error):
                connection.execute(b"ROLLBACK")
                return
        with suppress(psycopg.Error):
            connection.close()
        self._connection = None

    # -- the connection -------------------------------------------------------------------------

    def _leave(self) -> None:
        if self._connection is not None:
            _INHERITED.append(self._connection)
        self._connection = None

    def _connect(self) -> Connection:
        self._version = None  # it may be another server
        return self.connect_beside()

    def connect_beside(self) -> Connection:
        """Another connection."""
        parameters: dict[str, Any] = {**self._address.parameters, "client_encoding": "utf8"}
        try:
            connection: Connection = psycopg.connect(
                autocommit=True,
                prepare_threshold=None,  # poolers that share connections would mix them up
                **parameters,
            )
        except psycopg.Error as error:
            raise unconnected(self.where, error) from None
        _CONNECTIONS.add(connection)
        finalize(self, _close, connection, this_process())
        connection.add_notice_handler(partial(_note_warning, self._warnings))
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise LedgerError(
                f"the database {self.where!r} has the encoding {encoding}",
                remedy="create one with ENCODING 'UTF8'",
            )
        return connection


_STORES: WeakSet[PostgresStore] = WeakSet()


def _leave_connections() -> None:
    """A server notices that a process was killed when its connection ends: a child that never uses
    the ledger would keep it open, and with it what its parent has locked.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for connection in list(_CONNECTIONS):
        if not connection.closed:
            os.dup2(nothing, connection.fileno(), inheritable=False)
            _INHERITED.append(connection)
    os.close(nothing)
    _CONNECTIONS.clear()
    for store in list(_STORES):
        store._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_connections)


def _cancel(connection: Connection) -> None:
    with suppress(psycopg.Error):
        connection.cancel()


def _note_warning(warnings: list[str], diagnostic: Diagnostic) -> None:
    if diagnostic.severity_nonlocalized == "WARNING":
        warnings.append(diagnostic.sqlstate or "")


def _close(connection: Connection, process: tuple[int, int]) -> None:
    if process == this_process():  # a child would end the session of its parent
        connection.close()
