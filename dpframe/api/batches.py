"""pyarrow's tables, batches, datasets and readers as lazy Polars frames."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.errors import EngineError, UnsupportedOperation
from dpframe.lower.engines.scans import require_readable, without_filter
from dpframe.rows.failures import FAILURES

_WHERE = "session.protect(reader, ...)"


def from_arrow(data: Any) -> pl.LazyFrame:
    """A pyarrow table, batch, batch reader or dataset; pyarrow is imported only when it is met."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.dataset as pads  # type: ignore[import-untyped]

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
    batches: Callable[[list[str] | None], Iterable[Any]], schema: pl.Schema
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


def _batches_of(dataset: Any) -> Callable[[list[str] | None], Iterator[Any]]:
    import pyarrow as pa

    rows, condition = without_filter(dataset)
    require_readable(rows)

    def batches(columns: list[str] | None) -> Iterator[Any]:
        if condition is None:
            for batch in rows.to_batches(columns=columns):
                yield pa.Table.from_batches([batch])
            return
        for batch in rows.to_batches():
            found = pa.Table.from_batches([batch]).filter(condition)
            yield found if columns is None else found.select(columns)

    return batches


def _without_runs(table: Any) -> Any:
    """A pyarrow table with rows for runs of equal values, which Polars does not read."""
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    for i, field in enumerate(table.schema):
        if pa.types.is_run_end_encoded(field.type):
            pieces = [pc.call_function("run_end_decode", [piece]) for piece in table[i].chunks]
            rows = pa.chunked_array(pieces, type=field.type.value_type)
            table = table.set_column(i, field.name, rows)
    return table


def _plain(table: Any) -> pl.DataFrame:
    """A pyarrow table as a frame without categories."""
    import pyarrow as pa

    table = _without_runs(table)
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table[i].cast(field.type.value_type))
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _spilled(reader: Any) -> pl.LazyFrame:
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


def _mapped(held: mmap.mmap) -> Callable[[list[str] | None], Iterator[Any]]:
    import pyarrow as pa

    def batches(columns: list[str] | None) -> Iterator[Any]:
        found = pa.ipc.open_file(pa.py_buffer(held))
        for i in range(found.num_record_batches):
            table = pa.Table.from_batches([found.get_batch(i)])
            yield table if columns is None else table.select(columns)

    return batches


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
        where=_WHERE,
        remedy="read the batches without dpframe, to see the reason",
    )
