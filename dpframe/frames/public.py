"""Public frames that analysts hand over, for joins and as keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from dpframe.core.dtypes import DType
from dpframe.errors import UnsupportedOperation
from dpframe.rows.layouts import GROUPED_AS_TEXT
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import from_polars

__all__ = ["bring", "digest", "freeze", "grouped_keys", "to_polars_frame", "within_keys"]


def to_polars_frame(values: object, where: str) -> object:
    """A public table of pandas, without its index, or of pyarrow as a frame of Polars, and an array
    of pyarrow as a Series; other values unchanged.
    """
    package = type(values).__module__.partition(".")[0]
    table: Any = values
    try:
        if package == "pandas" and hasattr(values, "columns"):
            return pl.from_pandas(table)
        if package == "pyarrow":
            return pl.from_arrow(table)
    except Exception as error:
        kind = type(error).__name__
    else:
        return values
    raise UnsupportedOperation(
        f"Polars cannot convert the {type(values).__name__} of {package} ({kind})",
        where=where,
        remedy="give each column one type, or convert it yourself: pl.DataFrame(...)",
    )


def freeze(frame: pl.DataFrame) -> pl.DataFrame:
    """The same values, which no longer change with the frame, and are not taken for sorted.

    Polars counts, filters and groups a column that is marked as sorted by looking for where its
    values change. What the mark says is not checked, and bounds are computed from these frames.
    Fields of a struct cannot be marked.
    """
    return frame.to_struct("row").struct.unnest() if frame.width else frame.clone()


def bring(frame: pl.DataFrame, ns: Namespace) -> pl.LazyFrame:
    """A public frame where the private one is."""
    made: pl.LazyFrame = frame.lazy() if ns is pl else ns.public(frame)
    return made


def grouped_keys(keys: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Public keys in the form in which values are grouped, under other names."""
    text = keys.with_columns(pl.col(*GROUPED_AS_TEXT).cast(pl.String))
    return text.rename(dict(zip(text.columns, names, strict=True)))


def within_keys(
    rows: pl.LazyFrame, keys: pl.DataFrame, names: Sequence[str], ns: Namespace
) -> pl.LazyFrame:
    """The rows whose groups are listed, in grouped form; a null is a key like others."""
    return rows.join(bring(keys, ns), on=list(names), how="semi", nulls_equal=True)


def digest(frame: pl.DataFrame) -> str:
    """A digest of all names, types and values, the same with every version of Polars.

    Values go in as bytes, each piece after its length: versions write numbers as text, and columns
    as JSON, in different ways. NaN is one value, and differs from null; -0.0 differs from 0.0.
    """
    written = hashlib.sha256()
    for column in frame.iter_columns():
        for piece in (column.name.encode(), *_pieces(column)):
            written.update(len(piece).to_bytes(8, "little"))
            written.update(piece)
    return written.hexdigest()


def _pieces(column: pl.Series) -> Iterator[bytes]:
    """The type, which values are null, and the others."""
    column = column.alias("values")  # Polars takes some names for patterns
    dtype = from_polars(column.dtype)
    yield _type(dtype)
    yield column.len().to_bytes(8, "little")
    yield np.packbits(column.is_null().to_numpy()).tobytes()
    yield from _values(column.drop_nulls(), dtype)


def _type(dtype: DType) -> bytes:
    """The parameters of a type that its parts do not say."""
    said = [dtype.name, dtype.unit, dtype.zone, dtype.categories, dtype.precision, dtype.scale]
    fields = [name for name, _ in dtype.fields or ()]
    return json.dumps([*said, dtype.width, fields]).encode()


def _values(column: pl.Series, dtype: DType) -> Iterator[bytes]:
    """The values of a column without null."""
    match dtype.name:
        case "Null":
            return
        case "Struct":
            for field in column.struct.unnest().iter_columns() if dtype.fields else ():
                yield from _pieces(field)
        case "List" | "Array":
            lists = column.cast(pl.List(column.dtype.inner))  # type: ignore[attr-defined]
            yield _integers(lists.list.len())
            yield from _pieces(lists.filter(lists.list.len() > 0).explode())
        case "Binary":
            yield from _texts(column.to_list())
        case "String" | "Categorical" | "Enum":
            yield from _texts([text.encode() for text in column.cast(pl.String).to_list()])
        case _ if dtype.is_float:
            numbers = column.cast(pl.Float64).to_numpy()
            yield np.where(np.isnan(numbers), np.nan, numbers).astype("<f8").tobytes()
        case "Int128" | "Decimal":
            yield from _texts([text.encode() for text in column.cast(pl.String).to_list()])
        case "UInt64":
            yield column.to_numpy().astype("<u8").tobytes()
        case _ if dtype.is_integer or dtype.is_boolean or dtype.is_temporal:
            yield _integers(column.to_physical())
        case _:
            raise TypeError(f"no digest of values of type {dtype}")


def _integers(column: pl.Series) -> bytes:
    return column.cast(pl.Int64).to_numpy().astype("<i8").tobytes()


def _texts(values: list[bytes]) -> Iterator[bytes]:
    yield np.array([len(value) for value in values], dtype="<i8").tobytes()
    yield b"".join(values)
