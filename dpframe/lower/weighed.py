"""Weights of individuals, from the numbers of rows that each has in the groups, by integers alone.

The weight of an individual with m_g rows in group g is k / 2**12, with k the largest whole number
up to 2**12 for which k**2 S <= N**2, where S = sum(m_g**2). As k is whole that is k**2 <= q, with q
the whole part of N**2 / S. An engine's square root only proposes k; whether k**2 <= q is decided by
whole numbers, and where neither the proposal nor one less holds, k is 0. So whatever floats do, no
individual has more than the norm.

Nothing overflows: a number of rows above N makes k zero, and counts as N + 1 in S; S is then below
(N + 1) times the number of rows, N**2 at most 2**56, and where k is above 0, k times what an
individual adds to a group is at most N times what a row adds.

Polars computes weights within a frame of pairs. Other engines group it by individuals, and find k
bit by bit, from the highest: no root and no float is needed then, and k is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpframe.core.weights import PARTS, WEIGHT_BITS
from dpframe.rows.operation import Namespace

__all__ = ["ROWS", "beside_weights", "once_weight", "rows_weight", "within_keys"]

ROWS = "rows"
"""The number of rows of an individual in a group, in a frame of pairs."""


def rows_weight(norm: int, unit: str, ns: Namespace) -> pl.Expr:
    """Of each pair's individual, in parts: for what its rows add.

    Parameters
    ----------
    norm
        N, in parts of rows.
    unit
        The column of a frame of pairs that says whose they are.
    """
    rows = ns.col(ROWS).clip(0, norm + 1)
    return _weight((rows * rows).sum().over(unit), norm, ns)


def once_weight(norm: int, unit: str, ns: Namespace) -> pl.Expr:
    """The same for what an individual adds once in each group."""
    return _weight(ns.len().over(unit).cast(ns.Int64), norm, ns)


def _weight(squares: pl.Expr, norm: int, ns: Namespace) -> pl.Expr:
    room = (ns.lit(norm * norm, dtype=ns.Int64) // squares).clip(0, PARTS * PARTS)
    near = room.cast(ns.Float64).sqrt().cast(ns.Int64).clip(0, PARTS)
    less = (near - 1).clip(0, PARTS)
    found: pl.Expr = (
        ns.when(near * near <= room).then(near).when(less * less <= room).then(less).otherwise(0)
    )
    return found


def beside_weights(
    pairs: pl.LazyFrame, norm: int, unit: str, weights: Sequence[str], ns: Namespace
) -> pl.LazyFrame:
    """The pairs with the same two weights in columns of these names, on an engine without windows
    of sums.
    """
    rows = ns.col(ROWS).clip(0, norm + 1)
    found = pairs.with_columns((rows * rows).alias(_SQUARE)).group_by([unit])
    squares, number = ns.col(_SQUARE).sum().cast(ns.Int64), ns.len().cast(ns.Int64)
    owners = found.agg(
        *(of.alias(name) for of, name in zip((squares, number), weights, strict=True))
    )
    whole = ns.lit(norm * norm, dtype=ns.Int64)
    rooms = [(whole // ns.col(name)).clip(0, PARTS * PARTS).alias(name) for name in weights]
    bits = [_found(name) for name in weights]
    owners = owners.with_columns(*rooms, *(ns.lit(0, dtype=ns.Int64).alias(bit) for bit in bits))
    for place in range(WEIGHT_BITS, -1, -1):
        owners = owners.with_columns(*(_with_bit(name, 1 << place, ns) for name in weights))
    named = [ns.col(bit).alias(name) for bit, name in zip(bits, weights, strict=True)]
    return pairs.join(owners.select(ns.col(unit), *named), on=[unit], how="inner")


_SQUARE = "square"


def _found(name: str) -> str:
    return f"{name} so far"


def _with_bit(name: str, bit: int, ns: Namespace) -> pl.Expr:
    """What is found so far of a root, with one bit more where its square has room."""
    before = ns.col(_found(name))
    more = (before + bit).clip(0, 2 * PARTS)
    fits = more * more <= ns.col(name)
    made: pl.Expr = ns.when(fits).then(more).otherwise(before)
    return made.clip(0, 2 * PARTS).alias(_found(name))


def within_keys(
    pairs: pl.LazyFrame, keys: pl.DataFrame, names: Sequence[str], ns: Namespace
) -> pl.LazyFrame:
    """The pairs whose groups are listed: nothing else of an individual is asked for."""
    public = keys.lazy() if ns is pl else ns.public(keys)
    return pairs.join(public, on=list(names), how="semi", nulls_equal=True)
