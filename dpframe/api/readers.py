"""Files, tables and batches as lazy Polars frames."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Mapping
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
_PATH = "session.protect(path, ...)"


def from_files(path: str | Path) -> pl.LazyFrame:
    """A file, all files that a pattern such as ``visits/*.parquet`` matches, or a Delta table."""
    if (Path(path) / "_delta_log").is_dir():
        return _from_delta(path)
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


def _from_delta(path: str | Path) -> pl.LazyFrame:
    if find_spec("deltalake") is None:
        raise UnsupportedOperation(
            "deltalake is not installed, which Delta tables need",
            where=_PATH,
            remedy="pip install deltalake",
        )
    return pl.scan_delta(str(path))


def from_arrow(data: Any) -> pl.LazyFrame:
    """A pyarrow table, batch, batch reader or dataset; pyarrow is imported only when it is met."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.dataset as pads  # type: ignore[import-untyped]

    if isinstance(data, pads.Dataset):
        return pl.scan_pyarrow_dataset(data)
    if isinstance(data, pa.RecordBatchReader):
        if not any(pa.types.is_dictionary(field.type) for field in data.schema):
            return _spilled(data)
        data = data.read_all()  # dictionaries may differ from batch to batch, which files cannot
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
    raise EngineError(
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
