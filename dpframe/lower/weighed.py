"""Weights of individuals, from the numbers of rows that each has in the groups, by integers alone.

The weight of an individual with m_g rows in group g is k / 2**12, with k the largest whole number
up to 2**12 for which k**2 S <= N**2, where S = sum(m_g**2). As k is whole that is k**2 <= q, with q
the whole part of N**2 / S. An engine's square root only proposes k; whether k**2 <= q is decided by
whole numbers, and where neither the proposal nor one less holds, k is 0. So for any rounding of
floats, no individual has more than the norm.

Nothing overflows. A number of rows above N makes k zero, and counts as N + 1 in S. S is then
below (N + 1) times the number of rows, and N**2 at most 2**56. Where k is above 0, k times an
individual's addition to a group is at most N times a row's.

Weights are computed within a frame of pairs, by windows: so they are of the very rows that are
weighed, also where an engine reads data that are not the same each time. The square root is that of
IEEE 754, and rounded correctly, on every engine, so weights are the same on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpframe.kernel.frame import PARTS
from dpframe.rows.operation import Namespace

__all__ = ["ROWS", "once_weight", "rows_weight"]

ROWS = "rows"
"""The number of rows of an individual in a group, in a frame of pairs."""


def rows_weight(norm: int, whose: Sequence[str], ns: Namespace) -> pl.Expr:
    """The weight of each pair's individual, in parts, for the additions of its rows.

    Parameters
    ----------
    norm
        N, in parts of rows.
    whose
        The columns that identify the individuals in a frame of pairs; never null.
    """
    rows = ns.col(ROWS).clip(0, norm + 1)
    return _weight((rows * rows).sum().over([ns.col(name) for name in whose]), norm, ns)


def once_weight(norm: int, whose: Sequence[str], ns: Namespace) -> pl.Expr:
    """The same for what an individual adds once in each group."""
    return _weight(ns.len().over([ns.col(name) for name in whose]).cast(ns.Int64), norm, ns)


def _weight(squares: pl.Expr, norm: int, ns: Namespace) -> pl.Expr:
    room = (ns.lit(norm * norm, dtype=ns.Int64) // squares).clip(0, PARTS * PARTS)
    near = room.cast(ns.Float64).sqrt().cast(ns.Int64).clip(0, PARTS)
    less = (near - 1).clip(0, PARTS)
    lower = ns.when(less * less <= room).then(less).otherwise(0)
    found: pl.Expr = ns.when(near * near <= room).then(near).otherwise(lower)
    return found
