"""The tables of a ledger on a server, and every statement that reads or writes them.

They have a schema of their own, and every statement names it, so that no search path leads
elsewhere.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Sequence
from typing import Any

import psycopg

from dpframe.errors import LedgerError
from dpframe.ledger.chain import broken, row_of
from dpframe.ledger.record import COLUMNS, Head, Record
from dpframe.ledger.tables import LARGEST

Connection = psycopg.Connection[tuple[Any, ...]]

CREATED = b"""
CREATE TABLE dpframe_ledger.records (
    seq bigint PRIMARY KEY, time text NOT NULL, name text NOT NULL, act text NOT NULL,
    refers bigint, fingerprint text, unit text, measure text, main text, slack text,
    who text, why text, previous text NOT NULL, hash text NOT NULL);
CREATE TABLE dpframe_ledger.head (
    one integer PRIMARY KEY CHECK (one = 1), seq bigint NOT NULL, hash text NOT NULL,
    seal text NOT NULL)"""

RELEASES = b"""
CREATE TABLE dpframe_ledger.releases (
    number bigint NOT NULL, part integer NOT NULL, content bytea NOT NULL,
    PRIMARY KEY (number, part))"""
"""Contents of kept results; made when the first one is kept."""

STREAMS = b"""
CREATE TABLE dpframe_ledger.streams (
    stream bigint NOT NULL, first integer NOT NULL, content bytea NOT NULL,
    PRIMARY KEY (stream, first))"""
"""Rows of streams; made when the first stream is opened."""

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

DESCRIBED = b"""
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
OF_RELEASES = (
    "r releases p f",
    "i releases_pkey p f",
    "releases 1 number bigint t f ",
    "releases 2 part integer t f ",
    "releases 3 content bytea t f ",
    "releases PRIMARY KEY (number, part)",
)
"""More of the description, if results are kept."""
OF_STREAMS = (
    "r streams p f",
    "i streams_pkey p f",
    "streams 1 stream bigint t f ",
    "streams 2 first integer t f ",
    "streams 3 content bytea t f ",
    "streams PRIMARY KEY (stream, first)",
)
"""More of the description, if there are streams."""


LAST_PART = 2**31 - 1
"""The largest number of a part."""

_ALL = f"SELECT {', '.join(COLUMNS)} FROM ONLY dpframe_ledger.records".encode()
_INSERT = f"INSERT INTO dpframe_ledger.records VALUES ({', '.join(['%s'] * len(COLUMNS))})".encode()


def _is_right(found: list[str]) -> bool:
    """Whether the tables have the description of unchanged ones."""
    beside = [part for part in (OF_RELEASES, OF_STREAMS) if set(part) <= set(found)]
    return found == sorted([*DESCRIPTION, *itertools.chain.from_iterable(beside)])


class PostgresTables:
    """The tables, within a transaction of `connection`; `version` was read before it."""

    def __init__(self, connection: Connection, version: str | None) -> None:
        self._connection = connection
        self._version = version

    def _rows(self, statement: bytes, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def exist(self) -> bool:
        found = sorted(row[0] for row in self._rows(DESCRIBED))
        if not found:
            return False
        if not _is_right(found):
            raise broken("its tables were changed")
        return True

    def create(self) -> None:
        schema = b"SELECT 1 FROM pg_namespace WHERE nspname = 'dpframe_ledger'"
        if not self._rows(schema):  # it may have been prepared for a role that may not create it
            self._connection.execute(b"CREATE SCHEMA dpframe_ledger")
        self._connection.execute(CREATED)

    def version(self) -> str | None:
        return self._version

    def rows(self, after: int, limit: int) -> list[tuple[Any, ...]]:
        return self._rows(_ALL + b" WHERE seq > %s ORDER BY seq LIMIT %s", (after, limit))

    def rows_at(self, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        return self._rows(_ALL + b" WHERE seq = ANY(%s) ORDER BY seq", (list(numbers),))

    def last(self, *acts: str, until: int | None = None) -> tuple[Any, ...] | None:
        until = LARGEST if until is None else min(until, LARGEST)
        wanted = _ALL + b" WHERE act = ANY(%s) AND seq <= %s ORDER BY seq DESC LIMIT 1"
        found = self._rows(wanted, (list(acts), until))
        return found[0] if found else None

    def last_begun(
        self, name: str, fingerprint: str | None, text: str | None, until: int
    ) -> tuple[Any, ...] | None:
        part, value = (
            (b"fingerprint = %s", fingerprint)
            if text is None
            else (b"pg_catalog.strpos(why, %s) > 0", text)
        )
        wanted = _ALL + b" WHERE seq <= %s AND act = 'begun' AND name = %s AND " + part
        found = self._rows(wanted + b" ORDER BY seq DESC LIMIT 1", (until, name, value))
        return found[0] if found else None

    def rows_about(self, number: int) -> list[tuple[Any, ...]]:
        acts = b" AND act IN ('begun', 'kept', 'pruned') ORDER BY seq"
        return self._rows(_ALL + b" WHERE seq > %s AND refers = %s" + acts, (number, number))

    def hash_of(self, seq: int) -> object:
        wanted = b"SELECT hash FROM ONLY dpframe_ledger.records WHERE seq = %s"
        found = self._rows(wanted, (seq,))
        return found[0][0] if found else None

    def head(self) -> Head | None:
        found = self._rows(b"SELECT seq, hash, seal FROM ONLY dpframe_ledger.head")
        return Head(*found[0]) if found else None

    def insert(self, record: Record, head: Head, *, new: bool) -> None:
        if self._connection.execute(_INSERT, row_of(record)).rowcount != 1:
            raise broken("its table refuses new records")
        self._move_head(head, new=new)

    def insert_head(self, head: Head) -> None:
        self._move_head(head, new=True)

    def _move_head(self, head: Head, *, new: bool) -> None:
        to = (head.seq, head.hash, head.seal)
        moved = self._rows(
            b"INSERT INTO dpframe_ledger.head VALUES (1, %s, %s, %s) RETURNING "
            b"current_setting('fsync')"
            if new
            else b"UPDATE dpframe_ledger.head SET seq = %s, hash = %s, seal = %s RETURNING "
            b"current_setting('fsync')",
            to,
        )
        if not moved:
            raise broken("its head cannot be updated")
        if moved != [("on",)]:
            raise LedgerError(
                "the server has fsync switched off, so it may forget charges",
                remedy="switch it on: ALTER SYSTEM SET fsync = on, then SELECT pg_reload_conf()",
            )

    def insert_rows(self, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_INSERT, rows)

    def have_releases(self) -> bool:
        """Whether there is a table of contents."""
        known = b"SELECT pg_catalog.to_regclass('dpframe_ledger.releases') IS NOT NULL"
        return self._rows(known) == [(True,)]

    def may(self, table: str, *rights: str) -> bool:
        """Whether this role has some rights on a table that is there."""
        known = b"SELECT pg_catalog.has_table_privilege(%s, %s)"
        name = f"dpframe_ledger.{table}"
        return all(self._rows(known, (name, right)) == [(True,)] for right in rights)

    def make_releases(self) -> None:
        """Make the table of contents, if it is not there."""
        if not self.have_releases():
            self._connection.execute(RELEASES)

    def put_release(self, number: int, blobs: Sequence[bytes]) -> None:
        """Keep the content of a charge, in parts with consecutive numbers from a random start:
        rows that another user inserted for the charge do no harm.
        """
        first = 1 + secrets.randbelow(LAST_PART - len(blobs))
        for part, blob in enumerate(blobs, start=first):
            self._connection.execute(
                b"INSERT INTO dpframe_ledger.releases VALUES (%s, %s, %s)", (number, part, blob)
            )

    def release(self, number: int) -> dict[int, bytes]:
        """All that was inserted for a charge, by part."""
        if not self.have_releases():
            return {}
        wanted = b"SELECT part, content FROM ONLY dpframe_ledger.releases WHERE number = %s"
        return {part: bytes(content) for part, content in self._rows(wanted, (number,))}

    def drop_release(self, number: int) -> bool:
        """Delete the content of a charge; whether there was one."""
        if not self.have_releases():
            return False
        done = self._connection.execute(
            b"DELETE FROM ONLY dpframe_ledger.releases WHERE number = %s", (number,)
        )
        return done.rowcount > 0

    def is_locked(self, number: int) -> bool:
        """Whether another process holds an advisory lock exclusively; a check only shares it."""
        wanted = b"SELECT pg_catalog.pg_try_advisory_xact_lock_shared(%s)"
        return self._rows(wanted, (number,)) != [(True,)]

    def have_streams(self) -> bool:
        """Whether there is a table of rows."""
        known = b"SELECT pg_catalog.to_regclass('dpframe_ledger.streams') IS NOT NULL"
        return self._rows(known) == [(True,)]

    def make_streams(self) -> None:
        """Make the table of rows, if it is not there."""
        if not self.have_streams():
            self._connection.execute(STREAMS)

    def rows_of_stream(self, stream: int, firsts: Sequence[int]) -> dict[int, bytes]:
        """What is kept of a stream from some periods on."""
        if not self.have_streams():
            return {}
        wanted = (
            b"SELECT first, content FROM ONLY dpframe_ledger.streams "
            b"WHERE stream = %s AND first = ANY(%s)"
        )
        return {
            first: bytes(content) for first, content in self._rows(wanted, (stream, list(firsts)))
        }

    def row_of_stream(self, stream: int, first: int) -> bytes | None:
        """What is kept of a stream from a period on."""
        return self.rows_of_stream(stream, [first]).get(first)

    def put_row_of_stream(self, stream: int, first: int, content: bytes) -> None:
        """Keep it, where nothing is kept."""
        self._connection.execute(
            b"INSERT INTO dpframe_ledger.streams VALUES (%s, %s, %s)", (stream, first, content)
        )

    def require_sound(self) -> None:
        """Nothing to ask: pages with wrong checksums are refused when they are read."""
