"""Lists and Series that are constants of an expression: Arrow IPC streams of one column."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import Any

import polars as pl

_CACHED_BYTES = 4_096


def read_ipc(data: Any) -> pl.Series:
    """The column in an IPC stream, given as bytes or as a list of byte values."""
    stream = bytes(data)
    return _cached(stream) if len(stream) <= _CACHED_BYTES else _column(stream)


def _column(stream: bytes) -> pl.Series:
    return pl.read_ipc_stream(BytesIO(stream)).to_series()


@lru_cache(maxsize=256)
def _cached(stream: bytes) -> pl.Series:
    return _column(stream)
