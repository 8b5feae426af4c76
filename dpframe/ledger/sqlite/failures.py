"""What went wrong with a ledger's file, in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpframe.errors import LedgerError
from dpframe.ledger.chain import RESTORE

_CHECK = "check the file and its disk, and run again; nothing was released"
_KINDS: dict[str, tuple[str, str | tuple[str, str]]] = {
    "SQLITE_BUSY": (
        "is locked by another process",
        ("try again later; nothing was charged", "end the process that holds it"),
    ),
    "SQLITE_FULL": (
        "cannot grow: the disk is full",
        "make room, and run again; nothing was released",
    ),
    "SQLITE_READONLY": (
        "cannot be written",
        "allow this user to write the file and its directory; nothing was released",
    ),
    "SQLITE_CANTOPEN": (
        "cannot be opened",
        ("correct the path", "allow this user to write the file and its folder"),
    ),
    "SQLITE_CORRUPT": ("is damaged", RESTORE),
    "SQLITE_NOTADB": ("is not a ledger, or is damaged", ("write the path of a ledger", RESTORE[0])),
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn failures of SQLite and the file system into a LedgerError."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", None) or type(error).__name__
        kind = "_".join(name.split("_")[:2])  # SQLITE_READONLY_DBMOVED is a kind of READONLY
        what, remedy = _KINDS.get(kind, (f"failed: {error}", _CHECK))
        raise LedgerError(f"the ledger {str(path)!r} {what}", remedy=remedy) from None
    except OSError as error:
        raise LedgerError(
            f"the ledger {str(path)!r} failed: {error.strerror or type(error).__name__}",
            remedy=_CHECK,
        ) from None
