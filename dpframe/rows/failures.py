"""What an engine raises when it fails, and what Polars may do to a query."""

from __future__ import annotations

import re

import polars as pl

from dpframe.errors import UnsupportedOperation

# What an engine raises when it fails.

BUG = "write it in another way, and report it as a bug of dpframe"

FAILURES = (Exception, pl.exceptions.PanicException)
"""A panic is not an `Exception`, and its text may quote private data as any other's may."""


def unexpected(what: str, error: BaseException, why: str | None = None) -> UnsupportedOperation:
    """The refusal of an expression for which dpframe, or Polars, fails before any data is read."""
    return UnsupportedOperation(
        f"the expression cannot be {what} ({type(error).__name__})", why=why, remedy=BUG
    )


# What Polars may do to a query, whichever version it is.


def _optimizations(**others: bool) -> pl.QueryOptFlags:
    """Before 1.36 Polars takes a constant that several expressions share for an empty column where
    a filter leaves a chunk without rows, and fails: so whether it fails would depend on data.
    """
    major, minor, *_ = (int(number) for number in re.findall(r"\d+", pl.__version__))
    return pl.QueryOptFlags(comm_subexpr_elim=(major, minor) >= (1, 36), **others)


OPTIMIZATIONS = _optimizations()
NOTHING_PUSHED = _optimizations(predicate_pushdown=False)
"""No filter is handed to what reads the rows (docs/decisions/0023-statistics-of-stored-data.md)."""
