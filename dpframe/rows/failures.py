"""What an engine raises when it fails."""

from __future__ import annotations

import polars as pl

from dpframe.errors import UnsupportedOperation

BUG = "write it in another way, and report it as a bug of dpframe"

FAILURES = (Exception, pl.exceptions.PanicException)
"""A panic is not an `Exception`, and its text may quote private data as any other's may."""


def unexpected(what: str, error: BaseException, why: str | None = None) -> UnsupportedOperation:
    """The refusal of an expression for which dpframe, or Polars, fails before any data is read."""
    return UnsupportedOperation(
        f"the expression cannot be {what} ({type(error).__name__})", why=why, remedy=BUG
    )
