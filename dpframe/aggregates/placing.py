"""Where numbers stand among rising edges: how many edges are below each, or up to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.rows.operation import Namespace

__all__ = ["at_or_below", "below"]

Numbers: TypeAlias = "Sequence[int] | Sequence[float]"

_FEW: Final = 20
"""Up to so many edges are compared one by one in Polars."""
_PARTS: Final = 1 << 17
"""Into how many parts numbers are divided at most, to find their places among fewer edges."""
_FEW_ELSEWHERE: Final = 64
"""The same where searching is dearer."""
_ROOM: Final = 1 - 2.0**-10
"""What is added to a computed place before it is cut off: less than 1, so that rounding errors do
not carry it beyond the next place.
"""


def at_or_below(number: pl.Expr, edges: Numbers, ns: Namespace) -> pl.Expr:
    """How many of rising edges are <= the number, an Int64 or Float64; of null and NaN anything."""
    return _placed(number, edges, ns, or_equal=True)


def below(number: pl.Expr, edges: Numbers, ns: Namespace) -> pl.Expr:
    """How many of rising edges are < the number; of null and NaN anything."""
    return _placed(number, edges, ns, or_equal=False)


def _placed(number: pl.Expr, edges: Numbers, ns: Namespace, or_equal: bool) -> pl.Expr:
    if len(edges) <= (_FEW if ns is pl else _FEW_ELSEWHERE):
        return _compared(number, edges, ns, or_equal)
    place = _computed(number, edges) if ns is pl else None
    if place is None:
        return _searched(number, edges, ns, or_equal)
    edge = _edge(place, edges)
    passed = number >= edge if or_equal else number > edge
    return place.cast(pl.Int64) + passed.cast(pl.Int64)


def _computed(number: pl.Expr, edges: Numbers) -> pl.Expr | None:
    """How many edges are below a number, or one more, found by arithmetic: by the place among so
    many equal parts of the whole that no two edges are in one; null for null and NaN. None where
    that would take too many parts.

    Proof
    -----
    What is computed of a number x is place(x), by the same operations of floats in the same order
    for all, and a table that does not fall. Each of them is monotone (IEEE 754: the nearest float
    of a monotone function), so place is. That place(e_j) = j is checked here of every edge. So
    numbers in [e_j, e_{j+1}], between two edges that follow each other, have a place of j or j + 1,
    those up to the first edge 0, and those from the last one on the last. Let x be in
    [e_j, e_{j+1}): with a place of j it is at least the edge of its place, with j + 1 below it, so
    j + 1 edges are <= x either way. Let x be in (e_j, e_{j+1}]: with a place of j it is above the
    edge of its place, with j + 1 not, so j + 1 edges are < x either way.
    """
    found = np.array(edges)
    if found.dtype not in (np.int64, np.float64):
        return None
    numbers = found.astype(np.float64)
    parts = numbers.size
    while parts <= max(_PARTS, numbers.size):
        by, places = _in_parts(numbers, parts)
        if places is not None and (np.diff(places) > 0).all():
            scaled = (number.cast(pl.Float64) - float(numbers[0])) * by + _ROOM
            part = scaled.clip(0.0, float(parts - 1)).cast(pl.UInt32, strict=False)
            return part if parts == numbers.size else _looked_up(part, places)
        parts = 8 * parts
    return None


def _in_parts(numbers: NDArray[np.float64], parts: int) -> tuple[float, NDArray[np.int64] | None]:
    """What one part is multiplied by to be 1, and in which part each edge is: the first one in the
    first, the last one in the last. None where that is not so.
    """
    with np.errstate(all="ignore"):
        by = float((parts - 1) / (numbers[-1] - numbers[0]))
        if not math.isfinite(by):
            return by, None
        found = np.floor(np.clip((numbers - numbers[0]) * by + _ROOM, 0.0, float(parts - 1)))
    right = found[0] == 0 and found[-1] == parts - 1
    return by, found.astype(np.int64) if right else None


def _looked_up(part: pl.Expr, places: NDArray[np.int64]) -> pl.Expr:
    """The number of the first edge in a part or a later one."""
    table = np.searchsorted(places, np.arange(places[-1] + 1)).astype(np.uint32)
    return pl.lit(pl.Series(table)).gather(part)


def _edge(place: pl.Expr, edges: Numbers) -> pl.Expr:
    """The edge of a place."""
    return pl.lit(pl.Series(edges)).gather(place)


def _searched(number: pl.Expr, edges: Numbers, ns: Namespace, or_equal: bool) -> pl.Expr:
    side = "right" if or_equal else "left"
    found: pl.Expr = ns.lit(pl.Series(edges)).search_sorted(number, side=side).cast(ns.Int64)
    return found


def _compared(number: pl.Expr, edges: Numbers, ns: Namespace, or_equal: bool) -> pl.Expr:
    """How many comparisons hold."""
    compared = [number >= edge if or_equal else number > edge for edge in edges]
    if ns is pl:  # so few fit into a byte
        bytes_ = [pl.lit(0, dtype=pl.UInt8), *(one.cast(pl.UInt8) for one in compared)]
        passed = pl.sum_horizontal(*bytes_, ignore_nulls=False)
        return passed.cast(pl.Int64)
    total: pl.Expr = ns.lit(0, dtype=ns.Int64)
    for one in compared:
        total = total + one.fill_null(False).cast(ns.Int64)
    return total
