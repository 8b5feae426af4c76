"""Where numbers stand among rising edges: how many edges are below each, or up to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.rows.operation import Namespace

__all__ = ["FEW", "Parts", "at_or_below", "below", "parts_of"]

Numbers: TypeAlias = "Sequence[int] | Sequence[float]"

FEW: Final = 20
"""Up to this many edges are compared one by one in Polars and NumPy."""
_PARTS: Final = 1 << 17
"""Into how many parts numbers are divided at most, to find their places among fewer edges."""
_FEW_ELSEWHERE: Final = 64
"""The same where searching is more expensive."""
_ROOM: Final = 1 - 2.0**-10
"""The amount added to a computed place before it is cut off: less than 1, so that rounding errors
do not carry it beyond the next place.
"""


def at_or_below(number: pl.Expr, edges: Numbers, ns: Namespace) -> pl.Expr:
    """How many of rising edges are <= the number, an Int64 or Float64; of null and NaN anything."""
    return _placed(number, edges, ns, or_equal=True)


def below(number: pl.Expr, edges: Numbers, ns: Namespace) -> pl.Expr:
    """How many of rising edges are < the number; of null and NaN anything."""
    return _placed(number, edges, ns, or_equal=False)


def _placed(number: pl.Expr, edges: Numbers, ns: Namespace, or_equal: bool) -> pl.Expr:
    if len(edges) <= (FEW if ns is pl else _FEW_ELSEWHERE):
        return _compared(number, edges, ns, or_equal)
    parts = parts_of(edges) if ns is pl else None
    if parts is None:
        return _searched(number, edges, ns, or_equal)
    place = parts.place(number)
    edge = _edge(place, edges)
    passed = number >= edge if or_equal else number > edge
    return place.cast(pl.Int64) + passed.cast(pl.Int64)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """How many edges are below a number, or one more, found by arithmetic: by the place among
    this many equal parts of the whole that no two edges are in one.

    Proof
    -----
    The number computed from x is place(x), by the same operations of floats in the same order for
    all, and a table that does not fall. Each of them is monotone (IEEE 754: the nearest float of
    a monotone function), so place is. That place(e_j) = j is checked by `parts_of` of every edge.
    So numbers in [e_j, e_{j+1}], between two edges that follow each other, have a place of j or
    j + 1, those up to the first edge 0, and those from the last one on the last. Let x be in [e_j,
    e_{j+1}): with a place of j it is at least the edge of its place, with j + 1 below it, so j +
    1 edges are <= x either way. Let x be in (e_j, e_{j+1}]: with a place of j it is above the
    edge of its place, with j + 1 not, so j + 1 edges are < x either way. Polars and NumPy do the
    same: subtract, multiply, add and cut off, each rounded to the nearest float.

    Parameters
    ----------
    first, by
        The first edge, and what one part is multiplied by to be 1.
    size
        How many parts there are.
    table
        The number of the first edge in each part or a later one; None where each part has its own.
    """

    first: float
    by: float
    size: int
    table: NDArray[np.uint32] | None

    def place(self, number: pl.Expr) -> pl.Expr:
        """The place of a number; null for null and NaN."""
        scaled = (number.cast(pl.Float64) - self.first) * self.by + _ROOM
        part = scaled.clip(0.0, float(self.size - 1)).cast(pl.UInt32, strict=False)
        return part if self.table is None else pl.lit(pl.Series(self.table)).gather(part)

    def places(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """The places of many numbers; 0 for NaN."""
        part = _part(numbers.astype(np.float64, copy=False), self.first, self.by, self.size)
        return part if self.table is None else self.table[part].astype(np.int64)


def parts_of(edges: Numbers) -> Parts | None:
    """Parts in which the places of some edges are 0, 1, ...; None where that would take too many.
    There are two edges at least.
    """
    found = np.array(edges)
    if found.dtype not in (np.int64, np.float64):
        return None
    numbers = found.astype(np.float64)
    size = numbers.size
    while size <= max(_PARTS, numbers.size):
        with np.errstate(all="ignore"):
            by = float((size - 1) / (numbers[-1] - numbers[0]))
            first = float(numbers[0])
            right = math.isfinite(by)
            places = _part(numbers, first, by, size) if right else np.zeros(1, np.int64)
        right = right and places[0] == 0 and places[-1] == size - 1
        if right and (np.diff(places) > 0).all():
            if size == numbers.size:
                return Parts(first, by, size, None)
            table = np.searchsorted(places, np.arange(size)).astype(np.uint32)
            return Parts(first, by, size, table)
        size = 8 * size
    return None


def _part(numbers: NDArray[np.float64], first: float, by: float, size: int) -> NDArray[np.int64]:
    """In which part each number is, those outside in the nearest; NaN in the first."""
    scaled = numbers - first
    scaled *= by
    scaled += _ROOM
    np.fmax(scaled, 0.0, out=scaled)
    np.fmin(scaled, float(size - 1), out=scaled)
    return scaled.astype(np.int64)


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
    if ns is pl:  # this few fit into a byte
        bytes_ = [pl.lit(0, dtype=pl.UInt8), *(one.cast(pl.UInt8) for one in compared)]
        passed = pl.sum_horizontal(*bytes_, ignore_nulls=False)
        return passed.cast(pl.Int64)
    total: pl.Expr = ns.lit(0, dtype=ns.Int64)
    for one in compared:
        total = total + one.fill_null(False).cast(ns.Int64)
    return total
