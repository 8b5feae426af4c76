"""What Polars may do to a query, whichever version it is."""

from __future__ import annotations

import re

import polars as pl


def _optimizations(**others: bool) -> pl.QueryOptFlags:
    """Before 1.36 Polars takes a constant that several expressions share for an empty column where
    a filter leaves a chunk without rows, and fails: so whether it fails would depend on data.
    """
    major, minor, *_ = (int(number) for number in re.findall(r"\d+", pl.__version__))
    return pl.QueryOptFlags(comm_subexpr_elim=(major, minor) >= (1, 36), **others)


OPTIMIZATIONS = _optimizations()
NOTHING_PUSHED = _optimizations(predicate_pushdown=False)
"""No filter is handed to what reads the rows (docs/decisions/0023-statistics-of-stored-data.md)."""
