"""What went wrong with a ledger on a server, in words.

Only the kind of a failure is reported. Messages of libpq may quote a connection string, and those
of a server may contain any output of its triggers; neither is repeated, nor kept as a cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from dpframe.errors import LedgerError
from dpframe.ledger.chain import RESTORE

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
