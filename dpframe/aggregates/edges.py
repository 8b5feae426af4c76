"""Upper edges of a distribution function, in the form in which values are compared with them.

A whole number is at or below an edge just where it is at or below the edge rounded down, so edges
of integers, Booleans, temporal values and decimals are integers of the smallest unit. Edges of
floats are the nearest floats, of the column's own precision.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import polars as pl

from dpframe.aggregates.values import Value, bounds_of, numbers_of, show_value, whole_series
from dpframe.core.exact import nearest
from dpframe.core.rationals import Rationals, are_rising, are_whole, floats, wholes
from dpframe.errors import InvalidBounds

__all__ = [
    "Comparable",
    "Edges",
    "comparable",
    "edge_words",
    "edges_at",
    "equal_edges",
    "is_counted",
    "listed_edges",
]

Comparable: TypeAlias = int | float

MOST_EDGES: Final = 10**6
_FEW: Final = 64
"""Up to this many edges are written in plans, of more a digest."""
_LEAST, _MOST = -(2**63), 2**63 - 1
_LARGEST_32: Final = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Rising edges, compared and hashed as a whole once.

    Parameters
    ----------
    numbers
        Integers or floats, as `comparable` makes them.
    exact
        The exact edges. `numbers` has the nearest floats, or integers that are rounded down.
    size
        How many there are.
    listed, digest
        The numbers, or a digest if there are many.
    hashed
        What `numbers` hash to.
    """

    numbers: Sequence[Comparable] = field(repr=False)
    exact: Sequence[Fraction] = field(repr=False)
    size: int
    listed: tuple[Comparable, ...] | None
    digest: str | None
    hashed: int = field(repr=False)

    @classmethod
    def of(cls, numbers: Iterable[Comparable], exact: Sequence[Fraction]) -> Edges:
        """Edges from their numbers."""
        found = tuple(numbers)
        few = len(found) <= _FEW
        digest = None if few else hashlib.sha256(repr(found).encode()).hexdigest()
        return cls(found, exact, len(found), found if few else None, digest, hash(found))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Edges):
            return False
        return self.numbers == other.numbers and self.exact == other.exact

    def __hash__(self) -> int:
        return self.hashed


def is_counted(value: Value) -> bool:
    """Whether values are compared as integers: whole numbers and decimals."""
    return value.is_whole or value.domain.dtype.is_decimal


def comparable(number: Fraction, value: Value) -> Comparable:
    """A number in the form in which values are compared with it."""
    dtype = value.domain.dtype
    if dtype.is_decimal:
        number *= 10 ** (dtype.scale or 0)
    if is_counted(value):
        return math.floor(number)
    found = nearest(number)
    if dtype.name != "Float32":
        return found
    return float(np.float32(min(max(found, -_LARGEST_32), _LARGEST_32)))


def edges_at(exact: Sequence[Fraction], value: Value) -> Edges:
    """Edges at these numbers."""
    if isinstance(exact, Rationals) and value.is_whole:
        return Edges.of((n // exact.denominator for n in exact.numerators), exact)
    finite = not any(math.isinf(nearest(end)) for end in (exact[0], exact[-1]))
    plain = isinstance(exact, Rationals) and value.domain.dtype.name == "Float64" and finite
    return Edges.of(floats(exact) if plain else (comparable(e, value) for e in exact), exact)


def listed_edges(given: Iterable[Any], value: Value, where: str) -> tuple[Edges, pl.Series]:
    """Edges that a user listed, and as they stand in a result.

    Raises
    ------
    InvalidBounds
        When the list is empty or too long, or its items are not strictly rising values of the
        type.
    """
    dtype = value.domain.dtype
    exact = numbers_of(given, dtype, where)
    if not exact or not are_rising(exact):
        raise InvalidBounds(
            "edges must be at least one and strictly increasing",
            where=where,
            remedy="write for example bins=[10, 20, 30]",
        )
    _require_few(len(exact), where)
    edges = edges_at(exact, value)
    _require_room(edges, value, where)
    whole = value.is_whole and are_whole(exact)
    return edges, _shown(wholes(exact) if whole else floats(exact), value)


def equal_edges(
    bins: int, bounds: object, value: Value, where: str
) -> tuple[Edges, pl.Series, tuple[Fraction, Fraction]]:
    """The upper edges of this many equal bins within bounds, as they stand in a result, and the
    bounds. Edges of whole numbers are rounded down.

    Raises
    ------
    UnboundedSensitivity
        When bounds are neither given nor known.
    InvalidBounds
        When the number of bins or the bounds make no sense, or whole numbers have fewer values.
    """
    _require_few(bins, where)
    lo, hi = bounds_of(value, bounds, "cdf", distinct=True)
    if value.is_whole and hi - lo < bins:
        raise InvalidBounds(
            f"there are fewer than {bins} whole numbers above the lower bound",
            where=where,
            remedy="list the edges, for example bins=range(0, 10)",
        )
    width = hi - lo
    under = math.lcm(lo.denominator, width.denominator) * bins
    first, each = int(lo * under), int(width * under) // bins
    exact = Rationals(range(first + each, first + each * (bins + 1), each), under)
    edges = edges_at(exact, value)
    if value.is_whole:
        _require_room(edges, value, where)  # before they are put into a column, which is of Int64
        shown = _shown(list(edges.numbers), value)
    else:
        _require_room(edges, value, where)
        shown = _shown(floats(exact), value)
    return edges, shown, (lo, hi)


def _shown(edges: Sequence[Comparable], value: Value) -> pl.Series:
    if edges and isinstance(edges[0], int):
        return whole_series("", [int(e) for e in edges], value.domain.dtype)
    return pl.Series("", edges, dtype=pl.Float64)


def _require_few(edges: int, where: str) -> None:
    if not 1 <= edges <= MOST_EDGES:
        raise InvalidBounds(
            f"a distribution function has between 1 and {MOST_EDGES} edges, not {edges}",
            where=where,
            remedy="write for example bins=100",
        )


def _require_room(edges: Edges, value: Value, where: str) -> None:
    """Refuse edges that values are not compared with exactly."""
    first, last = edges.numbers[0], edges.numbers[-1]
    if not is_counted(value):
        if math.isinf(first) or math.isinf(last):
            raise InvalidBounds(
                "an edge is too large for Float64", where=where, remedy="write a smaller edge"
            )
        return
    if not value.domain.dtype.is_decimal:
        value.require_int64(Fraction(first), Fraction(last), where)
    elif first < _LEAST or last >= _MOST:  # values are clamped to Int64
        raise InvalidBounds(
            "an edge is too large for Int64",
            where=where,
            remedy=("write smaller edges", "cast the column with .cast(pl.Float64)"),
        )


def edge_words(edge: Comparable, value: Value) -> str:
    """An edge, in the form that values are compared with, as people write it."""
    dtype = value.domain.dtype
    if isinstance(edge, float):
        return f"{edge:.12g}"
    return show_value(Fraction(edge, 10 ** (dtype.scale or 0) if dtype.is_decimal else 1), dtype)
