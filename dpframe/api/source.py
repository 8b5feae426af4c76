"""The trust boundary: what a data owner hands over, and nothing raw that comes out again."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from glob import glob
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import polars as pl

from dpframe.errors import EngineError, UnsupportedOperation
from dpframe.rows.failures import FAILURES

_SCANS: Mapping[str, Callable[[Any], pl.LazyFrame]] = {
    ".parquet": pl.scan_parquet,
    ".csv": pl.scan_csv,
    ".ipc": pl.scan_ipc,
    ".arrow": pl.scan_ipc,
    ".feather": pl.scan_ipc,
    ".ndjson": pl.scan_ndjson,
}
Frames: TypeAlias = "dict[int, pl.LazyFrame]"


class Source:
    """A protected frame. Its data can be reached by the pipeline only."""

    __slots__ = ("_frame", "_given", "schema")

    def __init__(self, frame: pl.LazyFrame, given: object = None) -> None:
        self._frame = frame
        self._given = frame if given is None else given
        try:
            self.schema = frame.collect_schema()
            return
        except FAILURES as error:
            kind = type(error).__name__
        raise EngineError(
            f"the schema of the frame cannot be read ({kind}); the message is withheld because it "
            "may quote private data",
            where="session.protect(frame, ...)",
            remedy="see frame.collect_schema() for the reason",
        )

    def frames(self, token: int) -> Frames:
        """The data, for the pipeline."""
        return {token: self._frame}

    def schemas(self, token: int) -> dict[int, pl.Schema]:
        """Its schema."""
        return {token: self.schema}

    def holds(self, frame: object) -> bool:
        """Whether it is the very object that was protected, or names a file that was."""
        if isinstance(frame, (str, Path)) and isinstance(self._given, (str, Path)):
            return not _files(frame).isdisjoint(_files(self._given))
        return frame is self._given or frame is self._frame

    def __repr__(self) -> str:
        return "<protected data>"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperation(
            "protected data cannot be pickled or copied out of its session",
            remedy="run queries where the data is protected; released results can be pickled",
        )


class Sources:
    """Several protected frames that were brought together."""

    __slots__ = ("_sources",)

    def __init__(self, *parts: tuple[int, Source | Sources]) -> None:
        self._sources: dict[int, Source] = {}
        for token, part in parts:
            if isinstance(part, Sources):
                self._sources |= part._sources
            else:
                self._sources[token] = part

    def frames(self, token: int) -> Frames:
        """The data, for the pipeline."""
        return {t: s._frame for t, s in self._sources.items()}

    def schemas(self, token: int) -> dict[int, pl.Schema]:
        """Their schemas."""
        return {t: s.schema for t, s in self._sources.items()}

    def holds(self, frame: object) -> bool:
        """Whether it is one of the very objects that were protected, or names such a file."""
        return any(source.holds(frame) for source in self._sources.values())

    def __repr__(self) -> str:
        return "<protected data>"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperation(
            "protected data cannot be pickled or copied out of its session",
            remedy="run queries where the data is protected; released results can be pickled",
        )


def protected_source(frame: object) -> Source:
    """A source from any of the accepted kinds of frame; only its schema is read.

    A batch reader can be read once, so its batches are taken now.

    Raises
    ------
    UnsupportedOperation
        For anything else.
    """
    match frame:
        case pl.LazyFrame():
            return Source(frame)
        case pl.DataFrame():
            return Source(frame.lazy(), frame)
        case str() | Path():
            return Source(_from_files(frame), frame)
        case _ if type(frame).__module__.split(".")[0] == "pyarrow":
            return Source(_from_arrow(frame), frame)
        case _:
            raise _not_accepted(frame)


def _from_files(path: str | Path) -> pl.LazyFrame:
    """A file, or all files that a pattern such as ``visits/*.parquet`` matches."""
    scan = _SCANS.get(Path(path).suffix)
    if scan is None:
        raise UnsupportedOperation(
            f"files named like {str(path)!r} cannot be protected",
            where="session.protect(path, ...)",
            remedy=f"use {', '.join(_SCANS)}, or scan it with Polars first",
        )
    place = os.path.expanduser(str(path))
    if "://" not in place and not glob(place, recursive=True):
        raise UnsupportedOperation(
            f"there is no file {str(path)!r}",
            where="session.protect(path, ...)",
            remedy="check the path, and the folder that it starts from",
        )
    return scan(path)


def _files(path: str | Path) -> set[str]:
    """The files that a path or pattern names, whichever way; an URL stands for itself."""
    place = os.path.expanduser(str(path))
    return {place, *(os.path.realpath(found) for found in glob(place, recursive=True))}


def _from_arrow(data: Any) -> pl.LazyFrame:
    """A pyarrow table, batch, batch reader or dataset; pyarrow is imported only when it is met."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.dataset as pads  # type: ignore[import-untyped]

    if isinstance(data, pads.Dataset):
        return pl.scan_pyarrow_dataset(data)
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    elif isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table):
        raise _not_accepted(data)
    frame = pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()


def _not_accepted(frame: object) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"a {type(frame).__name__} cannot be protected",
        where="session.protect(frame, ...)",
        remedy="pass a Polars DataFrame or LazyFrame, a path, or a pyarrow Table, batch reader "
        "or dataset",
    )
