"""Text files with one record per line, read so that no record can disturb another.

Readers of engines let one record change others: a broken quote swallows the lines after it, a value
of another type makes the query fail or a column become text. Here a line is a row, for any
content, and each field of it is parsed on its own (docs/decisions/0010-text-files.md).
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.core.dtypes import DType
from dpframe.errors import UnknownColumn, UnsupportedOperation, location
from dpframe.rows.failures import FAILURES
from dpframe.rows.polars_dtypes import from_polars, to_polars
from dpframe.rows.strings import parse_as

# Lines of files, some at a time. Total: each byte sequence is a sequence of lines.

BLOCK = 1 << 22
"""Bytes that are read at a time."""
LONGEST = 1 << 20
"""Bytes of the longest line that is read, in UTF-8; a longer one is no record."""
_BOM = b"\xef\xbb\xbf"


def lines_of(path: Path, *, block: int = BLOCK) -> Iterator[pl.Series]:
    """The lines of a file in order, without their ends, as text; null where longer than `LONGEST`.

    A line ends with a line feed, before which a carriage return is dropped; the last one may end
    with the file. Invalid UTF-8 becomes U+FFFD. A line's text depends on its own bytes alone:
    UTF-8 has no line feed inside a character, and decoding begins again after one. How much is
    held depends on `block` and `LONGEST`, not on how long a line is.
    """
    rest, start = b"", True
    with path.open("rb") as file:
        while read := file.read(max(block, len(_BOM))):
            if start:
                read, start = read.removeprefix(_BOM), False
            end = read.rfind(b"\n")
            if end < 0:
                rest = (rest + read)[: LONGEST + 1]  # longer than the longest all the same
                continue
            yield _decode(rest + read[:end])
            rest = read[end + 1 :]
    if rest:
        yield _decode(rest)


def _decode(lines: bytes) -> pl.Series:
    """Lines that are joined by line feeds. Bytes that are not UTF-8 do not get fewer by decoding,
    so what is too long stays so.
    """
    text = pl.Series("line", [lines.decode("utf-8", errors="replace")], dtype=pl.String)
    found = pl.DataFrame({"line": text.str.split("\n").explode()})
    line = pl.col("line")
    short = pl.when(line.str.len_bytes() <= LONGEST).then(line.str.strip_suffix("\r"))
    return found.select(short.alias("line")).to_series()


def first_line(path: Path) -> bytes | None:
    """The first line of a file without its end; None where it is longer than `LONGEST`."""
    with path.open("rb") as file:
        line = file.readline(LONGEST + len(_BOM) + 2)
    if len(line) > LONGEST and not line.endswith(b"\n"):
        return None
    return line.removeprefix(_BOM).removesuffix(b"\n").removesuffix(b"\r")


# Files that are not there, or may not be read, and how a query is planned all the same.


WITHOUT_DATA = (
    'to plan without the data, write schema={"age": "Int64", "city": "String"}, or in a job '
    '[source.schema] with a line age = "Int64" for each column'
)
"""What to write where the data are not at hand."""


def no_file(path: object, where: str) -> UnsupportedOperation:
    """The refusal of a path, or a pattern, at which there is nothing."""
    for place in (Path(os.path.expanduser(str(path))), *Path(str(path)).parents):
        try:
            os.stat(place)
        except PermissionError:
            return no_permission(path, where)
        except (OSError, ValueError):
            continue
        if place.is_dir() and not _is_readable(place):
            return no_permission(path, where)
    what, remedy = f"there is no file {location(path)!r}", "write the path of a file that exists"
    return _unreadable(what, where, remedy)


def no_permission(path: object, where: str) -> UnsupportedOperation:
    """The refusal of a path that this process may not read."""
    what = f"this user may not read {location(path)!r}"
    return _unreadable(what, where, "let this user read the file")


def _unreadable(what: str, where: str, remedy: str) -> UnsupportedOperation:
    return UnsupportedOperation(what, where=where, remedy=(remedy, WITHOUT_DATA))


def require_readable(path: str | Path, where: str) -> None:
    """Refuse a file or folder that this process may not read.

    Raises
    ------
    UnsupportedOperation
        Naming the path.
    """
    if not _is_readable(path):
        raise no_permission(path, where)


def _is_readable(path: str | Path) -> bool:
    needed = os.R_OK | (os.X_OK if os.path.isdir(path) else 0)
    return os.access(path, needed, effective_ids=os.access in os.supports_effective_ids)


# Types of columns by name, for jobs: ``"Int64"``, ``"Datetime(ms)"``, ``"List(Int64)"``.


_SIMPLE = (
    *("String", "Boolean", "Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16"),
    *("UInt32", "UInt64", "Float32", "Float64", "Date", "Time", "Binary", "Categorical", "Null"),
)
_OTHERS = (
    'Datetime, "Datetime(ms)", "Datetime(us, Europe/Oslo)", "Duration(us)", "Decimal(10, 2)", '
    '"List(Int64)", "Array(Float64, 3)", "Struct({street: String, number: Int32})", or a list of '
    "categories"
)
_WORD = re.compile(r"[A-Za-z0-9]+")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_DEEPEST = 20
"""Types within types that are read."""


class _NoType(ValueError):
    """A text that names no type."""


def dtype_of(column: str, given: Any) -> Any:
    """A type as Polars or Python has it, or by name; a list of texts is an Enum of these, a table
    of types a Struct.

    Raises
    ------
    UnsupportedOperation
        When the name is unknown.
    """
    if isinstance(given, list) and given and all(isinstance(value, str) for value in given):
        if len(set(given)) == len(given):
            return pl.Enum(given)
        raise _type_refusal(column, "a list that has a category twice")
    if isinstance(given, Mapping) and given and all(isinstance(name, str) for name in given):
        return pl.Struct({name: dtype_of(column, inner) for name, inner in given.items()})
    if not isinstance(given, str):
        return given
    try:
        return to_polars(_Reader(given).dtype_alone())
    except FAILURES:
        pass
    raise _type_refusal(column, repr(given))


def type_words(dtype: DType) -> str:
    """A type in the words that a schema takes. For an Enum without its categories, which may be
    those that occur in private data.
    """
    if dtype.name == "Enum":
        return f"an Enum of {len(dtype.categories or ())} categories"
    if dtype.name == "Object":
        return "a type that no operation takes"
    return str(dtype)


class _Reader:
    """Reads the name of a type from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def dtype_alone(self) -> DType:
        found = self._dtype()
        self._skip()
        if self._at < len(self._text):
            raise _NoType
        return found

    def _dtype(self, depth: int = 0) -> DType:
        name = self._match(_WORD)
        if depth > _DEEPEST:
            raise _NoType
        if name in _SIMPLE:
            return DType(name)
        if not self._has("("):
            if name != "Datetime":
                raise _NoType
            return DType(name, unit="us")
        match name:
            case "Datetime":
                found = DType(name, unit=self._unit(), zone=self._zone())
            case "Duration":
                found = DType(name, unit=self._unit())
            case "Decimal":
                precision = self._number()
                self._require(",")
                scale = self._number()
                if not 1 <= precision <= 38 or scale > precision:
                    raise _NoType
                found = DType(name, precision=precision, scale=scale)
            case "List":
                found = DType(name, inner=self._dtype(depth + 1))
            case "Array":
                inner = self._dtype(depth + 1)
                self._require(",")
                found = DType(name, inner=inner, width=self._number())
            case "Struct":
                found = DType(name, fields=self._fields(depth + 1))
            case _:
                raise _NoType
        self._require(")")
        return found

    def _fields(self, depth: int) -> tuple[tuple[str, DType], ...]:
        self._require("{")
        fields = [self._field(depth)]
        while self._has(","):
            fields.append(self._field(depth))
        self._require("}")
        return tuple(fields)

    def _field(self, depth: int) -> tuple[str, DType]:
        self._skip()
        if self._text[self._at : self._at + 1] == '"':
            name = json.loads(self._match(_TEXT))
        else:
            name = self._match(re.compile(r"[^:,{}()]+")).strip()
        self._require(":")
        return name, self._dtype(depth)

    def _unit(self) -> str:
        unit = self._match(_WORD)
        if unit not in ("ms", "us", "ns"):
            raise _NoType
        return unit

    def _zone(self) -> str | None:
        return self._match(re.compile(r"[A-Za-z0-9_+\-/]+")) if self._has(",") else None

    def _number(self) -> int:
        return int(self._match(re.compile(r"[0-9]{1,9}")))

    def _skip(self) -> None:
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1

    def _has(self, mark: str) -> bool:
        self._skip()
        has = self._text.startswith(mark, self._at)
        self._at += len(mark) if has else 0
        return has

    def _require(self, mark: str) -> None:
        if not self._has(mark):
            raise _NoType

    def _match(self, form: re.Pattern[str]) -> str:
        self._skip()
        found = form.match(self._text, self._at)
        if found is None:
            raise _NoType
        self._at = found.end()
        return found[0]


def _type_refusal(column: str, what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{what} is not the type of a column",
        where=f"schema, column {column!r}",
        remedy=f"use {', '.join(_SIMPLE)}, {_OTHERS}",
    )


# The texts of a line's fields: each a total function of the line alone, null if none exists.
#
# A line that is no record of its format has no fields at all.


_QUOTE, _COMMA, _MARK = '"', ",", "\n"  # which no line has in it
_FIELD = '(?:"(?:[^"]|"")*"|[^",]*)'
_RECORD = f"^{_FIELD}(?:,{_FIELD})*$"


def csv_parts(lines: pl.DataFrame, number: int) -> pl.DataFrame:
    """For each `line` a list `parts`: its fields between commas as they are written; null if they
    are not as many as `number`.

    After RFC 4180 but for line feeds in quotes: a field in quotes may have commas, and quotes that
    are doubled; another one has no quotes. In steps, so that no work is done twice.
    """
    line, odd, parts = pl.col("line"), pl.col("odd"), pl.col("parts")
    quoted = line.str.contains(_QUOTE, literal=True)
    apart = lines.select(
        pl.when(quoted).then(line).alias("odd"), pl.when(~quoted).then(line).alias("line")
    )
    # Each field is followed by a comma then, so that matches begin where fields do.
    records = apart.with_columns(
        pl.when(odd.str.contains(_RECORD)).then(pl.concat_str(odd, pl.lit(_COMMA)))
    )
    marked = odd.str.replace_all(f"({_FIELD}),", "${1}" + _MARK).str.strip_suffix(_MARK)
    plain = line.str.replace_all(_COMMA, _MARK, literal=True)
    split = records.select(pl.coalesce(plain, marked).str.split(_MARK).alias("parts"))
    return split.select(pl.when(parts.list.len() == number).then(parts))


def csv_field(parts: pl.Expr, place: int) -> pl.Expr:
    """The text of one field. An empty field is null, an empty one in quotes is empty text."""
    field = parts.list.get(place, null_on_oob=True)
    quoted = pl.when(field.str.starts_with(_QUOTE)).then(field)
    inside = quoted.str.strip_prefix(_QUOTE).str.strip_suffix(_QUOTE)
    bare = pl.when(~field.str.starts_with(_QUOTE) & (field != "")).then(field)
    return pl.coalesce(inside.str.replace_all(_QUOTE * 2, _QUOTE, literal=True), bare)


def json_field(line: pl.Expr, name: str) -> pl.Expr:
    """The value of an object's key as text: text without quotes, anything else as JSON. If a key
    occurs twice, the last counts.
    """
    escaped = name.replace('"', '\\"')
    return line.str.json_path_match(f'$["{escaped}"]')


# Values of text: null where the text does not fit the type, never an error.


_NUMBERS = (
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64", "Decimal"),
)
KNOWN = ("String", "Boolean", *_NUMBERS, "Date", "Datetime", "Time", "Enum")
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
_YEAR = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DAY = _YEAR + "-[0-9]{2}-[0-9]{2}"
_DAY_OF_NANOSECONDS = "(167[89]|16[89][0-9]|1[7-9][0-9]{2}|2[01][0-9]{2}|22[0-5][0-9]|226[01])" + (
    "-[0-9]{2}-[0-9]{2}"
)
"""In the years that 64 bits count the nanoseconds of."""
_CLOCK = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_WHOLE = r"^[+-]?[0-9]{1,20}$"
_FLOAT = (
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?([iI]nf|[iI]nfinity)$|^(nan|NaN)$"
)


def require_known(column: str, dtype: pl.DataType) -> None:
    """Refuse types that texts are not parsed to.

    Raises
    ------
    UnsupportedOperation
        Naming those that they are.
    """
    found = from_polars(dtype)
    zone = found.name == "Datetime" and found.zone is not None
    if found.name not in KNOWN or zone:
        raise UnsupportedOperation(
            f"text cannot be parsed to {dtype}",
            where=f"schema={{{column!r}: {dtype}}}",
            remedy=f"use one of {', '.join(KNOWN)}"
            + (" without a zone, or String and .str.to_datetime(...)" if zone else ""),
        )


def value(text: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """What a field's text stands for; for types that `require_known` lets pass."""
    found = from_polars(dtype)
    if found.is_boolean:
        return pl.when(text.is_in(_TRUE)).then(True).when(text.is_in(_FALSE)).then(False)
    if found.is_integer:
        return _matching(text, _WHOLE).cast(dtype, strict=False)
    if found.is_float:
        return _matching(text, _FLOAT).str.to_lowercase().cast(dtype, strict=False)
    if found.is_decimal:
        return _decimal(text, found).str.strip_prefix("+").cast(dtype, strict=False)
    if found.name == "Enum":
        return text.cast(dtype, strict=False)
    if found.name in ("Date", "Datetime", "Time"):
        return _moment(text, found).cast(dtype, strict=False)
    return text


def _matching(text: pl.Expr, pattern: str) -> pl.Expr:
    return pl.when(text.str.contains(pattern)).then(text)


def _decimal(text: pl.Expr, dtype: DType) -> pl.Expr:
    """What the type holds without rounding, which versions of Polars do differently."""
    places = dtype.scale or 0
    digits = (dtype.precision or 38) - places
    whole = rf"0*[0-9]{{1,{digits}}}" if digits else "0*"
    part = rf"(\.[0-9]{{0,{places}}})?" if places else r"\.?"
    return _matching(text, rf"^[+-]?{whole}{part}$")


def _moment(text: pl.Expr, dtype: DType) -> pl.Expr:
    """ISO 8601: a day, a time, or both with a T or a space between them."""
    if dtype.name == "Date":
        return _parse(_matching(text, f"^{_DAY}$"), "%Y-%m-%d", dtype)
    if dtype.name == "Time":
        given = _matching(text, f"^{_CLOCK}$")
        return _parse(_with_seconds(given, 5), "%H:%M:%S%.f", dtype)
    day = _DAY_OF_NANOSECONDS if dtype.unit == "ns" else _DAY
    given = _matching(text, f"^{day}([T ]{_CLOCK})?$").str.replace("T", " ", literal=True)
    given = pl.when(given.str.len_bytes() == 10).then(given + " 00:00").otherwise(given)
    return _parse(_with_seconds(given, 16), "%Y-%m-%d %H:%M:%S%.f", dtype)


def _parse(text: pl.Expr, form: str, dtype: DType) -> pl.Expr:
    found: pl.Expr = parse_as(text, form, dtype.name, dtype.unit or "us")
    return found


def _with_seconds(text: pl.Expr, short: int) -> pl.Expr:
    return pl.when(text.str.len_bytes() == short).then(text + ":00").otherwise(text)


# Text files with a schema as lazy Polars frames, and as streams for other engines.


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
                yield self._parse(lines.slice(header).to_frame(), names, wanted)
                header = 0

    def _parse(
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
    columns = read_types(schema)
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


def read_types(schema: object) -> pl.Schema:
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
