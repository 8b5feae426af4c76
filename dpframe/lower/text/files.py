"""Text files with a schema as lazy Polars frames, and as streams for other engines."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.lower.text.fields import csv_field, csv_parts, json_field
from dpframe.lower.text.lines import BLOCK, first_line, lines_of
from dpframe.lower.text.names import dtype_of
from dpframe.lower.text.places import no_file, require_readable
from dpframe.lower.text.values import require_known, value
from dpframe.redaction import location
from dpframe.rows.failures import FAILURES
from dpframe.rows.polars_dtypes import from_polars

TEXT_KINDS: Mapping[str, str] = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson"}
"""What the names of text files end with."""
_WHERE = "session.protect(path, ..., schema={column: dtype})"
_EXAMPLE = 'write a schema such as schema={"age": pl.Int64, "city": pl.String}'


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Files of one kind, and the columns that are read of them.

    Parameters
    ----------
    kind
        ``"csv"`` or ``"ndjson"``.
    files
        Each with the names in its header line; none for NDJSON.
    schema
        The columns, in order.
    """

    kind: str
    files: tuple[tuple[Path, tuple[str, ...]], ...]
    schema: pl.Schema

    def lazy(self) -> pl.LazyFrame:
        """A frame that reads the files each time it is run."""

        def read(
            columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
        ) -> Iterator[pl.DataFrame]:
            left = rows
            for part in self.parts(columns or None):
                part = part if left is None else part.head(left)
                left = None if left is None else left - part.height
                yield part if predicate is None else part.filter(predicate)
                if left == 0:
                    return

        return register_io_source(read, schema=self.schema)

    def parts(
        self, columns: Sequence[str] | None = None, *, block: int = BLOCK
    ) -> Iterator[pl.DataFrame]:
        """The rows in the order of lines, some at a time; only some columns, if asked."""
        wanted = list(self.schema) if columns is None else columns
        for path, names in self.files:
            header = 1 if self.kind == "csv" else 0
            for lines in lines_of(path, block=block):
                yield self._parsed(lines.slice(header).to_frame(), names, wanted)
                header = 0

    def _parsed(
        self, lines: pl.DataFrame, names: Sequence[str], wanted: Sequence[str]
    ) -> pl.DataFrame:
        if self.kind == "ndjson":
            texts = [json_field(pl.col("line"), name) for name in wanted]
        else:
            lines = csv_parts(lines, len(names))
            texts = [csv_field(pl.col("parts"), names.index(name)) for name in wanted]
        # In two steps: nothing is shared among expressions, which older versions do wrongly. By
        # numbers: there are names that Polars takes for patterns.
        found = lines.select(text.alias(str(i)) for i, text in enumerate(texts))
        values = [value(pl.col(str(i)), self.schema[name]) for i, name in enumerate(wanted)]
        return found.select(v.alias(name) for v, name in zip(values, wanted, strict=True))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for engines that read Arrow; again for each scan."""
        import pyarrow as pa  # type: ignore[import-untyped]

        enums = [pl.col(n).cast(pl.String) for n, t in self.schema.items() if t == pl.Enum]
        schema = pl.DataFrame(schema=self.schema).with_columns(*enums).to_arrow().schema
        batches = (
            batch
            for part in self.parts()
            for batch in part.with_columns(*enums).to_arrow().cast(schema).to_batches()
        )
        reader: Any = pa.RecordBatchReader.from_batches(schema, batches)
        return reader.__arrow_c_stream__(requested_schema)


def text_kind(path: object) -> str | None:
    """The kind of text file that a path, pattern or address names; None for anything else."""
    if not isinstance(path, (str, Path)):
        return None
    text = str(path)
    place = urlsplit(text).path if "://" in text else text
    return TEXT_KINDS.get(Path(place).suffix)


def text_files(path: str | Path, schema: object) -> TextFiles:
    """The text files that a path or pattern names. Reads header lines, which are public.

    Raises
    ------
    UnsupportedOperation
        When there are no files, they are elsewhere, their header is not a list of names, or the
        schema is invalid.
    UnknownColumn
        When a column of the schema is not in a header.
    """
    kind = text_kind(path)
    assert kind is not None
    found = [(place, _header(place) if kind == "csv" else ()) for place in _places(path)]
    if schema is None:
        return TextFiles(kind, tuple(found), _all_text(kind, [names for _, names in found]))
    columns = text_types(path, schema)
    for name in columns:
        for _, names in found:
            _require_once(name, names, kind)
    return TextFiles(kind, tuple(found), columns)


def text_types(path: str | Path, schema: object) -> pl.Schema:
    """The columns that a schema declares of text files, which are not looked at.

    Raises
    ------
    UnsupportedOperation
        When the files are elsewhere, or the schema makes no sense.
    """
    _place(path)
    columns = declared_types(schema)
    for name, dtype in columns.items():
        require_known(name, dtype)
        if text_kind(path) == "ndjson" and ("\\" in name or "\0" in name):
            raise UnsupportedOperation(
                f"the key {name!r} cannot be read", where=_WHERE, remedy="rename it in the file"
            )
    return columns


def _place(path: str | Path) -> str:
    """The path on this machine, or pattern."""
    text = str(path)
    if text.startswith("file://"):
        text = unquote(text.removeprefix("file://"))
    if "://" in text:
        raise UnsupportedOperation(
            f"text files are read from this machine, and {location(path)!r} is elsewhere",
            where="session.protect(path, ...)",
            remedy=("download it", "write it as Parquet, which can be read from anywhere"),
        )
    return os.path.expanduser(text)


def _places(path: str | Path) -> list[Path]:
    places = sorted(glob(_place(path), recursive=True))
    if not places:
        raise no_file(path, "session.protect(path, ...)")
    for place in places:
        require_readable(place, "session.protect(path, ...)")
    return [Path(place) for place in places]


def _header(path: Path) -> tuple[str, ...]:
    """The names in the first line of a CSV file. Nothing is quoted of a line that is no header."""
    failed = "cannot be read"
    try:
        line = first_line(path)
        failed = "is too long"
        if line is not None:
            failed = "is not UTF-8"
            (names,) = list(csv.reader([line.decode()], strict=True)) or [[]]
            failed = "has control characters in it, or none but them"
            if names and all(name.isprintable() for name in names):
                return tuple(names)
    except FAILURES as error:
        failed = "is not a list of names" if isinstance(error, csv.Error) else failed
    raise UnsupportedOperation(
        f"the first line of a CSV file names its columns, and that of {path.name!r} {failed}",
        where="session.protect(path, ...)",
        remedy="give it a header line in UTF-8 with commas between names, ended by a line feed",
    )


def _all_text(kind: str, headers: Sequence[tuple[str, ...]]) -> pl.Schema:
    if kind == "ndjson":
        raise UnsupportedOperation(
            "the columns of an NDJSON file must be declared",
            where="session.protect(path, ...)",
            why="the keys in its lines are private",
            remedy=_EXAMPLE,
        )
    first = headers[0]
    if len(set(first)) < len(first) or "" in first or any(set(h) != set(first) for h in headers):
        raise UnsupportedOperation(
            "the columns have duplicate or empty names, or differ between files",
            where="session.protect(path, ...)",
            remedy=f"state the columns to read: {_EXAMPLE}",
        )
    return pl.Schema(dict.fromkeys(first, pl.String()))


def declared_types(schema: object) -> pl.Schema:
    """The columns of a schema, whose types are those of Polars or Python, or names.

    Raises
    ------
    UnsupportedOperation
        For anything else, and for types that no operation takes.
    """
    named = isinstance(schema, Mapping) and all(isinstance(name, str) for name in schema)
    if not named or not schema:
        raise UnsupportedOperation(
            f"schema= is a dict of column names and types, not a {type(schema).__name__}",
            where=_WHERE,
            remedy=_EXAMPLE,
        )
    assert isinstance(schema, Mapping)
    types = {name: dtype_of(name, given) for name, given in schema.items()}
    try:
        found = pl.DataFrame(schema=types).schema
        if all(from_polars(dtype).is_known for dtype in found.values()):
            return found
    except FAILURES:
        pass
    raise UnsupportedOperation(
        "a schema has a value that is not a type, or one that no operation takes",
        where=_WHERE,
        remedy=_EXAMPLE,
    )


def _require_once(name: str, header: Sequence[str], kind: str) -> None:
    times = 1 if kind == "ndjson" else header.count(name)
    if times == 0:
        raise UnknownColumn(
            f"the header line has no column {name!r}",
            where=_WHERE,
            remedy="use the names in the first line of the file",
        )
    if times > 1:
        raise UnsupportedOperation(
            f"the file has {times} columns {name!r}",
            where=_WHERE,
            remedy="rename one of them in the file",
        )
