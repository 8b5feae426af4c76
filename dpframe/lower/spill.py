"""Rows that are put aside in temporary files, divided into buckets.

The files have no names from before the first row is written (`O_TMPFILE` on Linux, elsewhere a name
that is taken away at once; Windows removes them with their last handle). So no other process can
open them, and nothing is left of them after any end of the process: by an error, a kill, or a
power cut.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Final

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.lower.sink import BucketFiles, Sink, can_sink

__all__ = ["Spill", "can_spill", "put_aside"]

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
            for part in _gathered(pieces):
                found = part.select(wanted) if left is None else part.select(wanted).head(left)
                left = None if left is None else left - found.height
                yield found if predicate is None else found.filter(predicate)
                if left == 0:
                    return

        return register_io_source(read, schema=schema)


def _gathered(pieces: _Pieces) -> Iterator[pl.DataFrame]:
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
