"""Rows that Polars itself puts aside in temporary files, in one streaming scan for all buckets.

It is a sink in parts, each of them a file without a name (see `dpframe.lower.spill`). Files are not
compressed: to write rows and to read them again takes a sixth of the time of one private query
then, and a third where they are. They are read through the handles that this process has.
"""

from __future__ import annotations

import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import IO, Any, Final, Self

import polars as pl

__all__ = ["BucketFiles", "Sink", "can_sink"]

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
            file_path_provider=self._opened,
            key=name,
            include_key=False,
            approximate_bytes_per_file=None,
        )
        marked.sink_ipc(parts, maintain_order=False, optimizations=optimizations)

    def _opened(self, part: Any) -> IO[bytes]:
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

    def held(self, number: int) -> pl.LazyFrame:
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
