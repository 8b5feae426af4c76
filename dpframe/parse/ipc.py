"""Lists and Series that are constants of an expression: Arrow IPC streams of one column."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import polars as pl

from dpframe.errors import UnsupportedOperation


def read_ipc(data: Any) -> pl.Series:
    """The column in an IPC stream, given as bytes or as a list of byte values."""
    try:
        return pl.read_ipc_stream(BytesIO(bytes(data))).to_series()
    except (pl.exceptions.PolarsError, ValueError, TypeError, OSError):
        raise UnsupportedOperation(
            "a list or Series in the expression could not be read",
            remedy="use a plain list of numbers, texts or dates",
        ) from None
