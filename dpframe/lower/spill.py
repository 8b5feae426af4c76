"""Rows that are put aside in temporary files, divided into buckets.

The files have no names from before the first row is written (`O_TMPFILE` on Linux, elsewhere a
name that is taken away at once; Windows removes them with their last handle). So no other process
can open them, and nothing is left of them after any end of the process: by an error, a kill, or a
power cut.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any, Final, Self

import polars as pl
from polars.io.plugins import register_io_source

__all__ = ["BucketFiles", "Sink", "Spill", "can_sink", "can_spill", "put_aside"]

# Rows that Polars itself puts aside in temporary files, in one streaming scan for all buckets.
#
# It is a sink in parts, each of them a file without a name. Files are
# not compressed: to write rows and to read them again takes a sixth of the time of one private
# query then, and a third where they are. They are read through the handles that this process has.

_HANDLES: Final = "/proc/self/fd"
_BUCKET: Final = "bucket"


def can_sink() -> bool:
    """Whether this Polars writes to files in parts that have no names, and they can be read."""
    major = int(re.findall(r"\d+", pl.__version__)[0])
    return major >= 2 and hasattr(pl, "PartitionBy") and os.path.isdir(_HANDLES)


class BucketFiles(ABC):
    """The rows of one frame in temporary files that have no names, divided into buckets. As a
    context it closes them, and with that they are gone.

    Parameters
    ----------
    schema
        All columns of the frame; files may have only some.
    """

    __slots__ = ("_open", "schema")

    def __init__(self, schema: pl.Schema) -> None:
        self.schema = schema
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def write(
        self,
        frame: pl.LazyFrame,
        bucket: pl.Expr,
        columns: Sequence[str],
        optimizations: pl.QueryOptFlags,
    ) -> None:
        """Divide the rows of a frame: `bucket` is the number of each one's file. Some of its
        columns are kept. One scan, and little memory however many rows there are.
        """
        name = _free_name(columns)
        marked = frame.select(*columns, bucket.cast(pl.UInt16).alias(name))
        self._divide(marked, name, optimizations)

    @abstractmethod
    def _divide(self, marked: pl.LazyFrame, name: str, optimizations: pl.QueryOptFlags) -> None:
        """Write the rows of a frame, each with the number of its bucket under a name."""

    def _open_file(self) -> IO[bytes]:
        file: Any = tempfile.TemporaryFile(prefix="dpframe-")  # noqa: SIM115
        self._open.enter_context(file)
        return file  # type: ignore[no-any-return]


class Sink(BucketFiles):
    """One or more files for each bucket, which Polars writes itself.

    Parameters
    ----------
    schema
        All columns of the frame; files may have only some.
    buckets
        How many there are.
    """

    __slots__ = ("files",)

    def __init__(self, schema: pl.Schema, buckets: int) -> None:
        super().__init__(schema)
        self.files: list[list[IO[bytes]]] = [[] for _ in range(buckets)]

    def _divide(self, marked: pl.LazyFrame, name: str, optimizations: pl.QueryOptFlags) -> None:
        parts: Any = pl.PartitionBy(
            tempfile.gettempdir(),  # where nothing is written, as all files are given
            file_path_provider=self._open_bucket,
            key=name,
            include_key=False,
            approximate_bytes_per_file=None,
        )
        marked.sink_ipc(parts, maintain_order=False, optimizations=optimizations)

    def _open_bucket(self, part: Any) -> IO[bytes]:
        """A new file for a bucket."""
        file = self._open_file()
        self.files[part.partition_keys.item()].append(file)
        return file

    def size(self, number: int) -> int:
        """The bytes of one bucket."""
        return sum(os.fstat(file.fileno()).st_size for file in self.files[number])

    def bucket(self, number: int) -> pl.LazyFrame:
        """The rows of one bucket, read from its files as they are requested. Columns that were
        not kept are null.
        """
        rows = self._scan(number)
        if rows is None:
            return pl.LazyFrame(schema=self.schema)
        return rows.with_columns(*self._missing(rows.collect_schema())).select(*self.schema)

    def hold(self, number: int) -> pl.LazyFrame:
        """The same in memory, or in the part of the files that the system keeps there."""
        rows = self._scan(number)
        found = pl.DataFrame(schema=self.schema) if rows is None else rows.collect()
        return found.with_columns(*self._missing(found.schema)).select(*self.schema).lazy()

    def _scan(self, number: int) -> pl.LazyFrame | None:
        places = [f"{_HANDLES}/{file.fileno()}" for file in self.files[number]]
        return pl.scan_ipc(places, glob=False) if places else None

    def _missing(self, there: pl.Schema) -> list[pl.Expr]:
        """Nulls for columns that were not kept."""
        missing = {name: dtype for name, dtype in self.schema.items() if name not in there}
        return [pl.lit(None, dtype=dtype).alias(name) for name, dtype in missing.items()]


def _free_name(columns: Sequence[str]) -> str:
    """A free name for the column of bucket numbers."""
    name = _BUCKET
    while name in columns:
        name += "_"
    return name


_AT_ONCE: Final = 1 << 18
"""Rows that are held at a time."""


def can_spill() -> bool:
    """Whether this Polars hands out rows piece by piece; 1.32 does not."""
    return can_sink() or hasattr(pl.LazyFrame, "collect_batches")


def put_aside(schema: pl.Schema, buckets: int) -> Sink | Spill:
    """Files for the rows of a frame, which Polars writes itself where it can."""
    return Sink(schema, buckets) if can_sink() else Spill(schema, buckets)


@dataclass(slots=True, eq=False)
class _Pieces:
    """One bucket: where its pieces are in its file."""

    file: IO[bytes]
    places: list[tuple[int, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, rows: pl.DataFrame) -> None:
        """Write a piece."""
        start = self.file.tell()
        rows.write_ipc_stream(self.file, compression="lz4")
        self.places.append((start, self.file.tell() - start))

    def read(self, place: tuple[int, int]) -> pl.DataFrame:
        """Read a piece, from any thread."""
        start, size = place
        with self.lock:
            self.file.seek(start)
            content = self.file.read(size)
        return pl.read_ipc_stream(io.BytesIO(content))


class Spill(BucketFiles):
    """One file for each bucket, written piece by piece.

    Parameters
    ----------
    schema
        All columns of the frame; files may have only some.
    buckets
        How many files there are.
    """

    __slots__ = ("_files",)

    def __init__(self, schema: pl.Schema, buckets: int) -> None:
        super().__init__(schema)
        self._files = [_Pieces(self._open_file()) for _ in range(buckets)]

    def _divide(self, marked: pl.LazyFrame, name: str, optimizations: pl.QueryOptFlags) -> None:
        rows = _AT_ONCE if len(marked.collect_schema()) <= 20 else _AT_ONCE // 4
        pieces = marked.collect_batches(
            chunk_size=rows, maintain_order=False, optimizations=optimizations
        )
        for part in pieces:
            for (number,), piece in part.partition_by(name, as_dict=True).items():
                self._files[number].add(piece.drop(name))
        for bucket_file in self._files:
            bucket_file.file.flush()
            os.fstat(bucket_file.file.fileno())

    def bucket(self, number: int) -> pl.LazyFrame:
        """The rows of one bucket, read from its file as they are requested."""
        pieces, schema = self._files[number], self.schema

        def read(
            columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
        ) -> Iterator[pl.DataFrame]:
            wanted, left = columns or list(schema), rows
            for part in _gather(pieces):
                found = part.select(wanted) if left is None else part.select(wanted).head(left)
                left = None if left is None else left - found.height
                yield found if predicate is None else found.filter(predicate)
                if left == 0:
                    return

        return register_io_source(read, schema=schema)


def _gather(pieces: _Pieces) -> Iterator[pl.DataFrame]:
    """Pieces, put together where they are small."""
    waiting, rows = list[pl.DataFrame](), 0
    for place in pieces.places:
        waiting.append(pieces.read(place))
        rows += waiting[-1].height
        if rows >= _AT_ONCE:
            yield pl.concat(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pl.concat(waiting)
