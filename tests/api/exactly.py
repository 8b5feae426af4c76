"""Sessions with so much budget that no noise is left, to compare results with plain Polars.

At epsilon 10**15 scales are raised to 2**-10 of a step, where noise is 0 but for odds of e**-1024.
"""

from __future__ import annotations

from typing import Any

import polars as pl

import dpframe as dp

ENOUGH = 10**15


def protected(
    frame: object, unit: dp.Rows | dp.Identifier | None = None, **declared: Any
) -> dp.PrivateFrame:
    """A private frame whose results are exact when they are collected by `exactly`."""
    return dp.Session(epsilon=ENOUGH).protect(frame, unit or dp.Rows(), **declared)


def exactly(query: dp.PrivateQuery) -> pl.DataFrame:
    """The result without noise."""
    return query.collect(epsilon=ENOUGH)


def rows_as_in(private: dp.PrivateFrame, expected: pl.DataFrame) -> bool:
    """Whether the private frame has just the rows of `expected`, by counting each distinct one.

    Floats cannot be grouped by; they are compared as text. Numbers are widened first, as arithmetic
    does.
    """
    wide = (
        pl.selectors.float().cast(pl.Float64).cast(pl.String),
        pl.selectors.integer().cast(pl.Int64),
    )
    private, expected = private.with_columns(*wide), expected.with_columns(*wide)
    assert private.schema == expected.schema
    distinct = expected.group_by(pl.all(), maintain_order=True).len("rows")
    keys = distinct.drop("rows")
    counted = exactly(private.group_by(*keys.columns, keys=keys).agg(dp.count().alias("rows")))
    assert counted.drop("rows").equals(keys)
    everything = exactly(private.dp_count()).item()
    return bool(
        everything == expected.height and counted["rows"].equals(distinct["rows"].cast(pl.Int64))
    )
