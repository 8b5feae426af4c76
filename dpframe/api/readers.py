"""Files, Delta tables and pyarrow's data as lazy Polars frames."""

from __future__ import annotations

import io
import mmap
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from glob import escape, glob
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.errors import DPFrameError, EngineError, UnsupportedOperation, location
from dpframe.lower.engines import scans
from dpframe.lower.engines.choice import native_engine
from dpframe.lower.engines.scans import without_filter
from dpframe.lower.text_files import (
    TEXT_KINDS,
    WITHOUT_DATA,
    no_file,
    require_known,
    require_readable,
    value,
)
from dpframe.plan.data import SCANNED
from dpframe.rows.failures import FAILURES

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.dataset import Dataset  # type: ignore[import-untyped]

_SCANS: Mapping[str, Callable[..., pl.LazyFrame]] = {
    ".parquet": pl.scan_parquet,
    ".ipc": pl.scan_ipc,
    ".arrow": pl.scan_ipc,
    ".feather": pl.scan_ipc,
}
_STORES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")
_PATH = "session.protect(path, ...)"
_NOT_FOUND = re.compile(r"\A[^:\n]*\(os error [23]\): ([^\n]+)")
_SHORTENED = " (set POLARS_VERBOSE=1 to see full path)"
_NONE_MATCHES = re.compile(r'expanded paths were empty \(path .*?inner: "((?:[^"\\]|\\.)*)"')


def from_files(
    path: str | Path, storage_options: object = None, schema: pl.Schema | None = None
) -> pl.LazyFrame:
    """A file, all files that a pattern such as ``visits/*.parquet`` matches, the Parquet files in a
    folder, or a Delta table.

    Options of an object store are in the frame that is made, and nowhere else.

    Parameters
    ----------
    schema
        The stated types. Columns whose values are in the names of folders are parsed to them.
    """
    options = _checked(storage_options)
    if os.path.isdir(Path(path) / "_delta_log") or _is_remote_folder(str(path)):
        return _of_store(lambda: from_delta(str(path), options), path)
    folder = Path(os.path.expanduser(str(path)))
    if os.path.isdir(folder):
        require_readable(folder, _PATH)
    pattern = Path(path).suffix == ".parquet" and not os.path.isfile(folder)
    if os.path.isdir(folder) or (schema is not None and pattern):
        return _of_folders(str(path), os.path.isdir(folder), schema, options)
    scan = _SCANS.get(Path(path).suffix)
    if scan is None:
        raise UnsupportedOperation(
            f"files named like {location(path)!r} cannot be protected",
            where=_PATH,
            remedy=(
                f"use a file that ends in {', '.join([*TEXT_KINDS, *_SCANS])}",
                "protect pl.scan_...(path), a frame of Polars",
            ),
        )
    place = os.path.expanduser(str(path))
    if "://" not in place:
        require_files(path, place)
    how: dict[str, Any] = {}
    if scan is pl.scan_parquet:
        how = {"use_statistics": False, "hive_partitioning": False}
    if options is None:
        return scan(path, **how)
    return _of_store(lambda: scan(path, storage_options=options, **how), path)


def _of_folders(
    path: str, is_folder: bool, schema: pl.Schema | None, options: dict[str, str] | None
) -> pl.LazyFrame:
    """Parquet files in folders such as ``year=2026``, whose names have values of columns.

    If a type were guessed from folder names, one row with its own folder could change it. So
    these columns are text unless their type is stated, and a name that does not fit its type is
    null.
    """
    pattern = os.path.join(escape(path), "**", "*.parquet") if is_folder else path
    place = os.path.expanduser(pattern)
    names = _columns_in_names(place, path)

    def scan() -> pl.LazyFrame:
        files = pl.scan_parquet(
            place, use_statistics=False, storage_options=options, hive_partitioning=False
        )
        found = names
        if found is None:  # in a store: what is stated and in no file
            held = files.collect_schema()
            found = [name for name in schema or () if name not in held]
        if not found:
            return files
        frame = pl.scan_parquet(
            place,
            use_statistics=False,
            storage_options=options,
            hive_partitioning=True,
            hive_schema=dict.fromkeys(found, pl.String()),
        )
        stated = {} if schema is None else dict(schema)
        types: dict[str, pl.DataType] = {name: stated.get(name, pl.String()) for name in found}
        for name, dtype in types.items():
            require_known(name, dtype)
        parsed = [
            value(pl.col(name), dtype).alias(name)
            for name, dtype in types.items()
            if dtype != pl.String()
        ]
        return frame.with_columns(parsed) if parsed else frame

    return scan() if options is None and names is not None else _of_store(scan, path)


def _columns_in_names(place: str, path: str) -> list[str] | None:
    """The columns that folders below the first wildcard of a pattern name; None for an address."""
    if "://" in place:
        return None
    require_files(path, place)
    files = glob(place, recursive=True)
    start = len(re.split(r"[*?[]", place, maxsplit=1)[0].rpartition("/")[0])
    listed = {
        tuple(part.partition("=")[0] for part in file[start:].split("/")[:-1] if "=" in part)
        for file in files
    }
    if len(listed) > 1:
        raise UnsupportedOperation(
            "the folders of the Parquet files name different columns",
            where=_PATH,
            remedy="protect a pattern of files whose folders name the same columns in one order",
        )
    (names,) = listed
    return list(names)


def _checked(options: object) -> dict[str, str] | None:
    """Options of an object store; messages never show them, because they may be credentials."""
    if options is None:
        return None
    if isinstance(options, Mapping):
        found = dict(options)
        if all(isinstance(text, str) for pair in found.items() for text in pair):
            return found
    raise UnsupportedOperation(
        "storage_options= is a dict of texts",
        where="session.protect(path, ..., storage_options=...)",
        remedy='write for example storage_options={"aws_region": "eu-west-1"}, with all '
        "values as text",
    )


def _is_remote_folder(path: str) -> bool:
    """Whether an address in an object store is that of a folder, which is a Delta table then."""
    scheme, separator, rest = path.partition("://")
    name = rest.rstrip("/").rpartition("/")[2]
    is_file = "." in name.removesuffix(".delta") or any(mark in rest for mark in "*?[#")
    return bool(separator) and scheme.lower() in _STORES and not is_file


def _of_store(scan: Callable[[], pl.LazyFrame], path: str | Path) -> pl.LazyFrame:
    """Scan an object store. The reason for a failure is withheld, because it may quote options or
    an address."""
    try:
        return scan()
    except DPFrameError:
        raise
    except FAILURES as error:
        kind = type(error).__name__
    raise EngineError(
        f"{location(path)!r} cannot be read ({kind}); the message is withheld because it may quote "
        "credentials",
        where=_PATH,
        remedy=("check the address and storage_options=", f"{WITHOUT_DATA}"),
    )


def require_files(path: str | Path, place: str) -> None:
    """Refuse a path or pattern without files on this machine, or with one that may not be read."""
    files = glob(place, recursive=True)
    if not files:
        raise no_file(path, _PATH)
    for file in files:
        require_readable(file, _PATH)


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


def from_delta(table: Any, options: dict[str, str] | None = None) -> pl.LazyFrame:
    """A Delta table, or the one in a folder."""
    if find_spec("deltalake") is None:
        raise UnsupportedOperation(
            "deltalake is not installed, which Delta tables need",
            where=_PATH,
            remedy='pip install "dpframe[delta]"',
        )
    return pl.scan_delta(table, storage_options=options)


ALL_TEXT = (
    "all columns of the text file are text, as no schema is declared: "
    "session.protect(path, ..., schema={column: dtype})"
)
_WORDS = {
    "polars": re.compile(r"^\W*(?:csv|ndjson) *scan\b", re.IGNORECASE | re.MULTILINE),
    "duckdb": re.compile(r"\bREAD_(?:CSV|JSON|NDJSON)"),
    "spark": re.compile(
        r"^\W*(?:(?:File|Batch)Scan|Relation) .*\b(?:csv|json|text)\b", re.MULTILINE
    ),
}


def remarks_of(frame: object) -> tuple[str, ...]:
    """Warnings about a frame that its owner scanned, from its plan, which holds no rows. A plan
    that cannot be seen gives none: what it does is the owner's.
    """
    try:
        engine, plan = _plan(frame)
        return (SCANNED,) if engine and _WORDS[engine].search(plan) else ()
    except FAILURES:
        return ()


def _plan(frame: Any) -> tuple[str | None, str]:
    """Whose frame it is, and the words of its plan."""
    if isinstance(frame, pl.LazyFrame):
        return "polars", frame.explain(optimized=False)
    match native_engine(frame):
        case "duckdb":
            return "duckdb", frame.explain()
        case "spark":
            return "spark", _printed(frame)
    return None, ""


def _printed(frame: Any) -> str:
    """A plan that Spark offers in public as print only."""
    with redirect_stdout(io.StringIO()) as printed:
        frame.explain(extended=True)
    return printed.getvalue()


# -- pyarrow --------------------------------------------------------------------------------------


_WHERE = "session.protect(reader, ...)"


def from_arrow(data: pa.Table | pa.RecordBatch | pa.RecordBatchReader | Dataset) -> pl.LazyFrame:
    """A pyarrow table, batch, batch reader or dataset; pyarrow is imported only when it is met."""
    import pyarrow as pa
    import pyarrow.dataset as pads

    if isinstance(data, pads.Dataset):
        return _lazily(_batches_of(data), _plain(data.schema.empty_table()).schema)
    if isinstance(data, pa.RecordBatchReader):
        encoded = (pa.types.is_dictionary, pa.types.is_run_end_encoded)
        if not any(is_it(field.type) for field in data.schema for is_it in encoded):
            return _spilled(data)
        data = _all_of(data)  # dictionaries may differ from batch to batch, which files cannot
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table):
        raise UnsupportedOperation(
            f"a value of type {type(data).__name__} cannot be protected",
            where="session.protect(frame, ...)",
            remedy="pass a pyarrow Table, batch reader or dataset",
        )
    frame = pl.from_arrow(_without_runs(data))
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()


def _lazily(
    batches: Callable[[list[str] | None], Iterable[pa.Table]], schema: pl.Schema
) -> pl.LazyFrame:
    """Batches as they come, with categories as what they stand for: batches may have different
    ones. Filters stay with Polars, whose own scan of datasets hands some to pyarrow, where NaN is
    not above all numbers.
    """

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        left = rows
        for batch in batches(columns or None):
            part = _plain(batch)
            part = part if left is None else part.head(left)
            left = None if left is None else left - part.height
            yield part if predicate is None else part.filter(predicate)
            if left == 0:
                return

    return register_io_source(read, schema=schema)


def _batches_of(dataset: Dataset) -> Callable[[list[str] | None], Iterator[pa.Table]]:
    import pyarrow as pa

    rows, condition = without_filter(dataset)
    scans.require_readable(rows)

    def batches(columns: list[str] | None) -> Iterator[pa.Table]:
        if condition is None:
            for batch in rows.to_batches(columns=columns):
                yield pa.Table.from_batches([batch])
            return
        for batch in rows.to_batches():
            found = pa.Table.from_batches([batch]).filter(condition)
            yield found if columns is None else found.select(columns)

    return batches


def _without_runs(table: pa.Table) -> pa.Table:
    """A pyarrow table with rows for runs of equal values, which Polars does not read."""
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    for i, field in enumerate(table.schema):
        if pa.types.is_run_end_encoded(field.type):
            pieces = [pc.call_function("run_end_decode", [piece]) for piece in table[i].chunks]
            rows = pa.chunked_array(pieces, type=field.type.value_type)
            table = table.set_column(i, field.name, rows)
    return table


def _plain(table: pa.Table) -> pl.DataFrame:
    """A pyarrow table as a frame without categories."""
    import pyarrow as pa

    table = _without_runs(table)
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table[i].cast(field.type.value_type))
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _spilled(reader: pa.RecordBatchReader) -> pl.LazyFrame:
    """Batches, one after another, in a temporary file that has no name.

    A reader can be read once, but several queries must see the same rows. The file has no name
    from the start, so no other process can open it, and nothing remains when the process ends for
    any reason. (Windows cannot delete open files; there the system removes it with its last
    handle.) It is mapped into memory, the frame holds the mapping, and a forked process has a
    mapping of its own, which closes with that process.
    """
    import pyarrow as pa

    failed = ""
    try:
        with tempfile.TemporaryFile(prefix="dpframe-") as file:
            with pa.ipc.new_file(file, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
            file.flush()
            held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return _lazily(_mapped(held), _plain(reader.schema.empty_table()).schema)
    except FAILURES as error:
        failed = type(error).__name__
    raise _unreadable(failed)


def _mapped(held: mmap.mmap) -> Callable[[list[str] | None], Iterator[pa.Table]]:
    import pyarrow as pa

    def batches(columns: list[str] | None) -> Iterator[pa.Table]:
        found = pa.ipc.open_file(pa.py_buffer(held))
        for i in range(found.num_record_batches):
            table = pa.Table.from_batches([found.get_batch(i)])
            yield table if columns is None else table.select(columns)

    return batches


def _all_of(reader: pa.RecordBatchReader) -> pa.Table:
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
        where=_WHERE,
        remedy="read the batches without dpframe, to see the reason",
    )
