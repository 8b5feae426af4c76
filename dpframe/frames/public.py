"""Public frames that analysts hand over, for joins and as keys."""

from __future__ import annotations

import hashlib
from typing import Any

import polars as pl

from dpframe.rows.operation import Namespace

__all__ = ["brought", "digest", "held"]


def held(frame: pl.DataFrame) -> pl.DataFrame:
    """The same values, which no longer change with the frame, and are not taken for sorted.

    Polars counts, filters and groups a column that is marked as sorted by looking for where its
    values change. What the mark says is not checked, and bounds are computed from these frames.
    Fields of a struct have no such mark.
    """
    return frame.to_struct("row").struct.unnest() if frame.width else frame.clone()


def brought(frame: pl.DataFrame, ns: Namespace) -> pl.LazyFrame:
    """A public frame where the private one is."""
    made: pl.LazyFrame = frame.lazy() if ns is pl else ns.public(frame)
    return made


def digest(frame: pl.DataFrame) -> str:
    """A digest of all values and types. As text, for JSON writes NaN and infinity as null."""
    columns = (column.cast(_as_text(column.dtype)) for column in frame.iter_columns())
    written = hashlib.sha256(pl.DataFrame(columns).write_json().encode())
    written.update(repr(dict(frame.schema)).encode())
    return written.hexdigest()


def _as_text(dtype: Any) -> Any:
    """The type with text for floats, at any depth."""
    match dtype:
        case pl.List():
            return pl.List(_as_text(dtype.inner))
        case pl.Array():
            return pl.Array(_as_text(dtype.inner), dtype.size)
        case pl.Struct():
            return pl.Struct({f.name: _as_text(f.dtype) for f in dtype.fields})
        case _:
            return pl.String() if dtype.is_float() else dtype
