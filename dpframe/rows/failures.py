"""What an engine raises when it fails."""

from __future__ import annotations

import polars as pl

FAILURES = (Exception, pl.exceptions.PanicException)
"""A panic is not an `Exception`, and its text may quote private data as any other's may."""
