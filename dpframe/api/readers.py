"""Files and Delta tables as lazy Polars frames."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.lower.text import TEXT_KINDS
from dpframe.redaction import location

_SCANS: Mapping[str, Callable[[Any], pl.LazyFrame]] = {
    ".parquet": pl.scan_parquet,
    ".ipc": pl.scan_ipc,
    ".arrow": pl.scan_ipc,
    ".feather": pl.scan_ipc,
}
_PATH = "session.protect(path, ...)"
_NOT_FOUND = re.compile(r"\A[^:\n]*\(os error [23]\): ([^\n]+)")
_SHORTENED = " (set POLARS_VERBOSE=1 to see full path)"
_NONE_MATCHES = re.compile(r'expanded paths were empty \(path .*?inner: "((?:[^"\\]|\\.)*)"')


def from_files(path: str | Path) -> pl.LazyFrame:
    """A file, all files that a pattern such as ``visits/*.parquet`` matches, or a Delta table."""
    if (Path(path) / "_delta_log").is_dir():
        return from_delta(str(path))
    scan = _SCANS.get(Path(path).suffix)
    if scan is None:
        raise UnsupportedOperation(
            f"files named like {location(path)!r} cannot be protected",
            where=_PATH,
            remedy=f"use {', '.join([*TEXT_KINDS, *_SCANS])}, or scan it with Polars first",
        )
    place = os.path.expanduser(str(path))
    if "://" not in place and not glob(place, recursive=True):
        raise no_file(path, _PATH)
    return scan(path)


def no_file(path: object, where: str) -> UnsupportedOperation:
    """The refusal of a path, or a pattern, at which there is nothing."""
    return UnsupportedOperation(
        f"there is no file {location(path)!r}",
        where=where,
        remedy="check the path, and the folder that it starts from",
    )


def missing_file(error: BaseException) -> str | None:
    """The path that Polars did not find when it asked for the schema of a scan, which reads no
    rows; None where it failed otherwise.
    """
    form = _NOT_FOUND if type(error) is FileNotFoundError else _NONE_MATCHES
    found = form.search(str(error))
    if found is None:
        return None
    path = re.sub(r"\\(.)", r"\1", found[1]) if form is _NONE_MATCHES else found[1]
    path = path.removesuffix(_SHORTENED)
    return None if "://" in path or os.path.lexists(path) else path


def from_delta(table: Any) -> pl.LazyFrame:
    """A Delta table, or the one in a folder."""
    if find_spec("deltalake") is None:
        raise UnsupportedOperation(
            "deltalake is not installed, which Delta tables need",
            where=_PATH,
            remedy='pip install "dpframe[delta]"',
        )
    return pl.scan_delta(table)
