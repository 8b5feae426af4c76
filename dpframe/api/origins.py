"""The origin of a frame's rows, found without reading them.

A public frame must not be the protected one under another name. Files are identified by path and
by the identity that the file system gives them, frames in memory by the memory that they share,
and memory-mapped files by both. Copies are not recognised.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import polars as pl

from dpframe.lower.engines.scans import kinds_of
from dpframe.redaction import location
from dpframe.rows.failures import FAILURES

_PATHS = re.compile(r"SCAN \[(.*)\]$", re.MULTILINE)
_LISTED = re.compile(r'"Paths":\[([^]]*)\]')
_MAPPED = Path("/proc/self/maps")


@dataclass(frozen=True, slots=True)
class Origins:
    """Where rows come from.

    Parameters
    ----------
    files
        Places of files, links followed, and what the file system calls each file.
    memory
        Addresses of columns' values.
    unknown
        Whether the origin of some part is unknown: a scan in Python, bytes, a newer Polars.
    """

    files: frozenset[object] = frozenset()
    memory: frozenset[int] = frozenset()
    unknown: bool = False

    def __or__(self, other: Origins) -> Origins:
        unknown = self.unknown or other.unknown
        return Origins(self.files | other.files, self.memory | other.memory, unknown)

    def meets(self, other: Origins) -> bool:
        """Whether something is in both."""
        return not (self.files.isdisjoint(other.files) and self.memory.isdisjoint(other.memory))


UNKNOWN = Origins(unknown=True)


def origins_of(frame: object) -> Origins:
    """Where the rows of anything come from that can be protected."""
    package = type(frame).__module__.partition(".")[0]
    try:
        if isinstance(frame, (str, Path)):
            return of_files([str(frame)])
        if isinstance(frame, pl.DataFrame):
            return _of_memory(frame)
        if isinstance(frame, pl.LazyFrame):
            return _of_plan(frame)
        other: Any = frame
        if package == "pyarrow" and hasattr(other, "files"):
            return of_files(list(other.files))
        if package == "pyarrow" and hasattr(other, "to_pandas"):
            return _of_memory(pl.DataFrame(other))  # which shares what it can
        if package == "deltalake" and hasattr(other, "file_uris"):
            return of_files(list(other.file_uris()))
    except FAILURES:
        return UNKNOWN
    return UNKNOWN


def of_files(places: list[str]) -> Origins:
    """What paths, patterns and addresses lead to."""
    return Origins(frozenset(mark for place in places for mark in _marks(place)))


def _marks(place: str) -> Iterator[object]:
    parts = urlsplit(place)
    if parts.scheme == "file":
        place = unquote(parts.path)
    elif "://" in place:
        yield location(place)  # credentials are not part of the source's identity
        return
    place = os.path.expanduser(place)
    for found in (place, *glob(place, recursive=True)):
        yield os.path.realpath(found)
        try:
            status = os.stat(found)
        except (OSError, ValueError):
            continue
        if not os.path.isdir(found):
            yield (status.st_dev, status.st_ino)
            continue
        for folder, _, names in os.walk(found):
            for name in names:
                yield from _marks_of_file(os.path.join(folder, name))


def _marks_of_file(path: str) -> Iterator[object]:
    yield os.path.realpath(path)
    try:
        status = os.stat(path)
    except OSError:
        return
    yield (status.st_dev, status.st_ino)


def _of_plan(frame: pl.LazyFrame) -> Origins:
    """The leaves of a plan. Its nodes can be seen since Polars 1; what cannot be is unknown."""
    if "pythondataset" in kinds_of(frame):  # Polars would wait for Python, and Python for Polars
        return UNKNOWN
    nodes = frame._ldf.visit()
    found, waiting, only_named = Origins(), [nodes.get_node()], False
    while waiting:
        nodes.set_node(waiting.pop())
        inputs = nodes.get_inputs()
        waiting += inputs
        if not inputs and _is_only_named(nodes):
            only_named = True
        elif not inputs:
            found |= _of_leaf(nodes.view_current_node())
    if only_named:
        found |= _of_words(frame, holds_rows=bool(found.memory))
    return found


def _is_only_named(nodes: Any) -> bool:
    """Whether a leaf cannot be seen: the scan of an IPC file, which the plan's words name."""
    try:
        nodes.view_current_node()
    except NotImplementedError as error:
        if "ipc" in str(error):
            return True
        raise
    return False


def _of_leaf(node: Any) -> Origins:
    match type(node).__name__:
        case "Scan":
            return of_files([str(path) for path in node.paths])
        case "DataFrameScan":
            return _of_memory(pl.DataFrame._from_pydf(node.df))
    return UNKNOWN


def _of_words(frame: pl.LazyFrame, *, holds_rows: bool) -> Origins:
    """The files that the words of a plan name, or where these leave some out its document, which
    is not made of a plan that holds rows.
    """
    listed = _PATHS.findall(frame.explain(optimized=False))
    if not any(" other " in names for names in listed):
        return of_files([place for names in listed for place in names.split(", ")])
    if holds_rows:
        return UNKNOWN
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its form may change
        document = frame.serialize(format="json")
    found = [json.loads(f"[{names}]") for names in _LISTED.findall(document)]
    return of_files([place for names in found for entry in names for place in entry.values()])


def _of_memory(frame: pl.DataFrame) -> Origins:
    """Where the values of columns are, and the files that are mapped there. Identified by
    pyarrow, where it is installed: up to here rows are neither copied nor read.
    """
    if find_spec("pyarrow") is None:
        return Origins()
    newest = pl.CompatLevel.newest()
    found: set[int] = set()
    for column in frame.get_columns():
        if column.len() and not column.dtype.is_nested() and column.dtype != pl.Object:
            for chunk in column.get_chunks():
                _, *values = chunk.to_arrow(compat_level=newest).buffers()
                found |= {b.address for b in values if b is not None and b.size}
    return Origins(frozenset(_mapped(found)), frozenset(found))


def _mapped(addresses: set[int]) -> Iterator[object]:
    """The files that are mapped at some addresses."""
    try:
        lines = _MAPPED.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        span, _, _, _, _, *path = line.split(maxsplit=5)
        if path and path[0].startswith("/"):
            low, high = (int(end, 16) for end in span.split("-"))
            if any(low <= address < high for address in addresses):
                yield from _marks_of_file(path[0])
