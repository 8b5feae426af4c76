"""Files, tables and batches as lazy Polars frames."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

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
_PATH = "session.protect(path, ...)"


def from_files(path: str | Path) -> pl.LazyFrame:
    """A file, all files that a pattern such as ``visits/*.parquet`` matches, or a Delta table."""
    if (Path(path) / "_delta_log").is_dir():
        return from_delta(str(path))
    scan = _SCANS.get(Path(path).suffix)
    if scan is None:
        raise UnsupportedOperation(
            f"files named like {str(path)!r} cannot be protected",
            where=_PATH,
            remedy=f"use {', '.join(_SCANS)}, or scan it with Polars first",
        )
    place = os.path.expanduser(str(path))
    if "://" not in place and not glob(place, recursive=True):
        raise UnsupportedOperation(
            f"there is no file {str(path)!r}",
            where=_PATH,
            remedy="check the path, and the folder that it starts from",
        )
    return scan(path)


def from_delta(table: Any) -> pl.LazyFrame:
    """A Delta table, or the one in a folder."""
    if find_spec("deltalake") is None:
        raise UnsupportedOperation(
            "deltalake is not installed, which Delta tables need",
            where=_PATH,
            remedy='pip install "dpframe[delta]"',
        )
    return pl.scan_delta(table)


def from_arrow(data: Any) -> pl.LazyFrame:
    """A pyarrow table, batch, batch reader or dataset; pyarrow is imported only when it is met."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.dataset as pads  # type: ignore[import-untyped]

    if isinstance(data, pads.Dataset):
        return _from_dataset(data)
    if isinstance(data, pa.RecordBatchReader):
        if not any(pa.types.is_dictionary(field.type) for field in data.schema):
            return _spilled(data)
        data = _all_of(data)  # dictionaries may differ from batch to batch, which files cannot
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table):
        raise UnsupportedOperation(
            f"a {type(data).__name__} cannot be protected",
            where="session.protect(frame, ...)",
            remedy="pass a pyarrow Table, batch reader or dataset",
        )
    frame = pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()


def _from_dataset(dataset: Any) -> pl.LazyFrame:
    """A pyarrow dataset, batch by batch, with categories as what they stand for: batches may have
    different ones. Filters stay with Polars, whose own scan hands some to pyarrow, where NaN is not
    above all numbers.
    """
    import pyarrow as pa

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        left = rows
        for batch in dataset.to_batches(columns=columns or None):
            part = _plain(pa.Table.from_batches([batch]))
            part = part if left is None else part.head(left)
            left = None if left is None else left - part.height
            yield part if predicate is None else part.filter(predicate)
            if left == 0:
                return

    return register_io_source(read, schema=_plain(dataset.schema.empty_table()).schema)


def _plain(table: Any) -> pl.DataFrame:
    """A pyarrow table as a frame without categories."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table[i].cast(field.type.value_type))
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _spilled(reader: Any) -> pl.LazyFrame:
    """Batches, one after another, in a temporary file that nobody else may read.

    A reader can be read once, and there may be several queries, all of which must see the same
    rows. The file is removed with the last frame that reads it, or with the process.
    """
    import pyarrow as pa

    handle, path = tempfile.mkstemp(prefix="dpframe-", suffix=".arrow")
    failed = ""
    try:
        with os.fdopen(handle, "wb") as file, pa.ipc.new_file(file, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        return _removed_with(pl.scan_ipc(path), path)
    except FAILURES as error:
        failed = type(error).__name__
    except BaseException:
        _remove(path)
        raise
    _remove(path)
    raise _unreadable(failed)


def _all_of(reader: Any) -> Any:
    """All batches as a table."""
    try:
        return reader.read_all()
    except FAILURES as error:
        failed = type(error).__name__
    raise _unreadable(failed)


def _unreadable(failed: str) -> EngineError:
    return EngineError(
        f"the batches cannot be read ({failed}); the message is withheld because it may quote "
        "private data",
        where="session.protect(reader, ...)",
        remedy="see whether the reader can be read without dpframe",
    )


def _removed_with(frame: pl.LazyFrame, path: str) -> pl.LazyFrame:
    weakref.finalize(frame, _remove, path)
    return frame


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)
