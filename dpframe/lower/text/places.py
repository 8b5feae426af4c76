"""Files that are not there, or may not be read, and how a query is planned all the same."""

from __future__ import annotations

import os
from pathlib import Path

from dpframe.errors import UnsupportedOperation
from dpframe.redaction import location

WITHOUT_DATA = (
    'to plan without the data, write schema={"age": "Int64", "city": "String"}, or in a job '
    '[source.schema] with a line age = "Int64" for each column'
)
"""What to write where the data are not at hand."""


def no_file(path: object, where: str) -> UnsupportedOperation:
    """The refusal of a path, or a pattern, at which there is nothing."""
    for place in (Path(os.path.expanduser(str(path))), *Path(str(path)).parents):
        try:
            os.stat(place)
        except PermissionError:
            return no_permission(path, where)
        except (OSError, ValueError):
            continue
        if place.is_dir() and not _is_readable(place):
            return no_permission(path, where)
    what, remedy = f"there is no file {location(path)!r}", "write the path of a file that exists"
    return _unreadable(what, where, remedy)


def no_permission(path: object, where: str) -> UnsupportedOperation:
    """The refusal of a path that this process may not read."""
    what = f"this user may not read {location(path)!r}"
    return _unreadable(what, where, "let this user read the file")


def _unreadable(what: str, where: str, remedy: str) -> UnsupportedOperation:
    return UnsupportedOperation(what, where=where, remedy=(remedy, WITHOUT_DATA))


def require_readable(path: str | Path, where: str) -> None:
    """Refuse a file or folder that this process may not read.

    Raises
    ------
    UnsupportedOperation
        Naming the path.
    """
    if not _is_readable(path):
        raise no_permission(path, where)


def _is_readable(path: str | Path) -> bool:
    needed = os.R_OK | (os.X_OK if os.path.isdir(path) else 0)
    return os.access(path, needed, effective_ids=os.access in os.supports_effective_ids)
