"""What a process does that is started anew: it protects data of its own and counts them."""

from __future__ import annotations

import polars as pl

import dpframe as dp


def count() -> int:
    """A noisy number of rows."""
    people = dp.Session(epsilon=1).protect(pl.DataFrame({"age": [31, 64]}), dp.Rows())
    return int(people.dp_count().collect(epsilon=0.5).item())
