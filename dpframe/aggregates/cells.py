"""Cells of values: how values are placed in them and counted, and the edges between them."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.statistics import TotalValue
from dpframe.aggregates.values import Value, bounds_of, read_numbers, show_value, whole_series
from dpframe.core.dtypes import STRING, Columns, DType, Scalar
from dpframe.core.exact import Rationals, are_rising, are_whole, floats, nearest, numbers_of, wholes
from dpframe.core.tree import Change, HasExprs, Tree
from dpframe.core.units import EVERYWHERE
from dpframe.errors import InvalidBounds, require
from dpframe.frames.nodes import has_no_node, row_of, text_of_constant
from dpframe.kernel import plan as kernel
from dpframe.rows.constants import listed
from dpframe.rows.fold import domain, lower, words
from dpframe.rows.layouts import unsigned_zero
from dpframe.rows.operation import Namespace

# -- where numbers stand among rising edges: how many edges are below each, or up to it -----------

EdgeNumbers: TypeAlias = "Sequence[int] | Sequence[float]"

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


def at_or_below(number: pl.Expr, edges: EdgeNumbers, ns: Namespace) -> pl.Expr:
    """How many of rising edges are <= the number, an Int64 or Float64; of null and NaN anything."""
    return _place_number(number, edges, ns, or_equal=True)


def below(number: pl.Expr, edges: EdgeNumbers, ns: Namespace) -> pl.Expr:
    """How many of rising edges are < the number; of null and NaN anything."""
    return _place_number(number, edges, ns, or_equal=False)


def _place_number(number: pl.Expr, edges: EdgeNumbers, ns: Namespace, or_equal: bool) -> pl.Expr:
    if len(edges) <= (FEW if ns is pl else _FEW_ELSEWHERE):
        return _beyond_edge(number, edges, ns, or_equal)
    parts = parts_of(edges) if ns is pl else None
    if parts is None:
        return _search_edges(number, edges, ns, or_equal)
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
    """

    # The first edge, and what one part is multiplied by to be 1.
    first: float
    by: float
    size: int  # How many parts there are
    # The number of the first edge in each part or a later one; None where each part has its own.
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


def parts_of(edges: EdgeNumbers) -> Parts | None:
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


def _edge(place: pl.Expr, edges: EdgeNumbers) -> pl.Expr:
    """The edge of a place."""
    return pl.lit(pl.Series(edges)).gather(place)


def _search_edges(number: pl.Expr, edges: EdgeNumbers, ns: Namespace, or_equal: bool) -> pl.Expr:
    side = "right" if or_equal else "left"
    found: pl.Expr = ns.lit(pl.Series(edges)).search_sorted(number, side=side).cast(ns.Int64)
    return found


def _beyond_edge(number: pl.Expr, edges: EdgeNumbers, ns: Namespace, or_equal: bool) -> pl.Expr:
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


# -- how many numbers are in each cell, counted in NumPy as columns of them come ------------------
# Grouping rows by the number of a cell takes three times as long as finding it, and a column of
# numbers in memory needs no group-by. Blocks that a cache holds are placed and counted one after
# another. The counts equal those that an engine computes by the expressions of the cells, bit by
# bit; the arithmetic is the same (`dpframe.aggregates.placing`). Which way a number is placed
# follows from the edges alone.

Numbers: TypeAlias = "NDArray[Any]"
"""Int64 or Float64."""
Integers: TypeAlias = "NDArray[np.int64]"
_Want: TypeAlias = 'Literal[">=", ">"]'

_BLOCK: Final = 1 << 15
_DENSE: Final = 1 << 17
"""Up to this many cells are added up as a whole after each block."""


class Tally(ABC):
    """Counts numbers by cell.

    Null and NaN are rows without a number.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._known = 0
        self._nan = 0

    def add(self, column: pl.Series) -> None:
        """Count a column of Int64 or Float64, however it is stored."""
        with np.errstate(all="ignore"):  # a warning would reveal a row
            for start in range(0, column.len(), _BLOCK):
                block = column.slice(start, _BLOCK)
                self.rows += block.len()
                # a float that is null becomes NaN
                whole = not block.dtype.is_float()
                numbers = (block.drop_nulls() if whole else block).to_numpy()
                known = numbers.size if whole else int(np.count_nonzero(numbers == numbers))
                self._known += known
                self._nan += numbers.size - known
                self._count(numbers)

    @abstractmethod
    def counts(self) -> Integers:
        """How many are in each cell so far."""

    @abstractmethod
    def _count(self, numbers: Numbers) -> None:
        """Count a block."""


class _EdgeTally(Tally):
    """How many numbers are at or above each of rising edges, or above them.

    Parameters
    ----------
    edges
        Integers or floats.
    wants
        Which of both is requested.
    """

    def __init__(self, edges: EdgeNumbers, *wants: _Want) -> None:
        super().__init__()
        kind = np.int64 if edges and isinstance(edges[0], int) else np.float64
        self._edges: Numbers = np.array(edges, dtype=kind)
        self._few = len(edges) <= FEW
        self._parts = None if self._few else parts_of(edges)
        self._found: dict[_Want, Integers] = {
            want: np.zeros(len(edges) + 1, np.int64) for want in wants
        }
        """Of few edges how many are beyond each, else how many have passed this many."""

    def _beyond(self, want: _Want) -> Integers:
        """How many numbers are beyond each edge."""
        found = self._found[want]
        if not self._few:
            found = np.cumsum(found[::-1], dtype=np.int64)[::-1]
        return found[1:]

    def _count(self, numbers: Numbers) -> None:
        if self._edges.dtype == np.float64:
            numbers = numbers.astype(np.float64, copy=False)
        if self._few:
            self._compare(numbers)
        elif self._parts is None:
            self._search(numbers)
        else:
            place = self._parts.places(numbers)
            edge = self._edges.take(place)
            for want, found in self._found.items():
                _count_into(found, place + _compare_with_edges(numbers, edge, want))

    def _compare(self, numbers: Numbers) -> None:
        for want, found in self._found.items():
            for i, edge in enumerate(self._edges, start=1):
                found[i] += np.count_nonzero(_compare_with_edges(numbers, edge, want))

    def _search(self, numbers: Numbers) -> None:
        known = numbers[numbers == numbers]  # NaN would be above all edges
        for want, found in self._found.items():
            side: Literal["left", "right"] = "right" if want == ">=" else "left"
            _count_into(found, np.searchsorted(self._edges, known, side))


class BinTally(_EdgeTally):
    """Bins between edges: left-closed and right-open, the last one closed.

    Parameters
    ----------
    edges
        At least two.
    other
        Whether one last cell has all other rows.
    """

    def __init__(self, edges: EdgeNumbers, other: bool) -> None:
        super().__init__(edges[:-1], ">=")
        self._other, self._last, self._above = other, self._edges.dtype.type(edges[-1]), 0

    def _count(self, numbers: Numbers) -> None:
        self._above += int(np.count_nonzero(numbers > self._last))
        super()._count(numbers)

    def counts(self) -> Integers:
        from_edges = np.append(self._beyond(">="), self._above)
        found = from_edges[:-1] - from_edges[1:]
        return np.append(found, self.rows - found.sum()) if self._other else found


class UpToTally(_EdgeTally):
    """Steps up to each edge, which is included, and one for numbers above all edges.

    Parameters
    ----------
    edges
        None at all make one step.
    """

    def __init__(self, edges: EdgeNumbers) -> None:
        super().__init__(edges, ">")

    def counts(self) -> Integers:
        above: Integers = np.concatenate([[self._known], self._beyond(">"), [0]])
        return above[:-1] - above[1:]


class PositionTally(_EdgeTally):
    """Numbers equal to each edge, and between edges.

    Parameters
    ----------
    edges
        At least one.
    """

    def __init__(self, edges: EdgeNumbers) -> None:
        super().__init__(edges, ">=", ">")

    def counts(self) -> Integers:
        both = np.empty(2 * len(self._edges) + 2, np.int64)
        both[0], both[-1] = self._known, 0
        both[1:-1:2], both[2:-1:2] = self._beyond(">="), self._beyond(">")
        return both[:-1] - both[1:]


class PointTally(Tally):
    """Numbers that are nearest to each of evenly spaced points.

    Parameters
    ----------
    lo, scales, points
        The first point, what numbers above it are multiplied by to be places, and how many points
        there are.
    """

    def __init__(self, lo: float, scales: Sequence[float], points: int) -> None:
        super().__init__()
        self._lo, self._scales = lo, scales
        self._found = np.zeros(points, np.int64)

    def counts(self) -> Integers:
        found = self._found.copy()
        found[0] -= self._nan
        return found

    def _count(self, numbers: Numbers) -> None:
        scaled = numbers.astype(np.float64, copy=False) - self._lo
        for scale in self._scales:
            scaled *= scale
        scaled += 0.5
        np.fmax(scaled, 0.0, out=scaled)  # NaN becomes 0
        np.fmin(scaled, float(self._found.size - 1), out=scaled)
        _count_into(self._found, scaled.astype(np.int64))


class WholeTally(Tally):
    """The cells of another tally, and one last cell for all other rows.

    Parameters
    ----------
    some
        The other one.
    """

    def __init__(self, some: Tally) -> None:
        super().__init__()
        self._some = some

    def add(self, column: pl.Series) -> None:
        self._some.add(column)

    def counts(self) -> Integers:
        found = self._some.counts()
        return np.append(found, self._some.rows - found.sum())

    def _count(self, numbers: Numbers) -> None:
        raise AssertionError("the other one counts")


def _compare_with_edges(numbers: Numbers, edges: Any, want: _Want) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = numbers >= edges if want == ">=" else numbers > edges
    return found


def _count_into(found: Integers, places: Integers) -> None:
    """Count places among those found before."""
    if found.size <= _DENSE:
        found += np.bincount(places, minlength=found.size)
    else:
        np.add.at(found, places, 1)


# -- upper edges of a distribution function, in the form in which values are compared with them ---
# A whole number is at or below an edge just where it is at or below the edge rounded down, so edges
# of integers, Booleans, temporal values and decimals are integers of the smallest unit. Edges of
# floats are the nearest floats, of the column's own precision.

Comparable: TypeAlias = int | float

MOST_EDGES: Final = 10**6
_FEW: Final = 64
"""Up to this many edges are written in plans, of more a digest."""
_LEAST, _MOST = -(2**63), 2**63 - 1
_LARGEST_32: Final = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Rising edges, compared and hashed as a whole once."""

    # Integers or floats, as `comparable` makes them.
    numbers: Sequence[Comparable] = field(repr=False)
    # The exact edges. `numbers` has the nearest floats, or integers that are rounded down.
    exact: Sequence[Fraction] = field(repr=False)
    size: int  # How many there are
    # The numbers, or a digest if there are many.
    listed: tuple[Comparable, ...] | None
    digest: str | None
    hashed: int = field(repr=False)  # What `numbers` hash to

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


def read_edges(given: Iterable[Any], value: Value, where: str) -> tuple[Edges, pl.Series]:
    """Edges that a user listed, and as they stand in a result. Raises `InvalidBounds` when the list
    is empty or too long, or its items are not strictly rising values of the type.
    """
    dtype = value.domain.dtype
    exact = read_numbers(given, dtype, where)
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
    return edges, _show_edges(wholes(exact) if whole else floats(exact), value)


def equal_edges(
    bins: int, bounds: object, value: Value, where: str
) -> tuple[Edges, pl.Series, tuple[Fraction, Fraction]]:
    """The upper edges of this many equal bins within bounds, as they stand in a result, and the
    bounds. Edges of whole numbers are rounded down. Raises `UnboundedSensitivity` when bounds are
    neither given nor known. Raises `InvalidBounds` when the number of bins or the bounds make no
    sense, or whole numbers have fewer values.
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
        shown = _show_edges(list(edges.numbers), value)
    else:
        _require_room(edges, value, where)
        shown = _show_edges(floats(exact), value)
    return edges, shown, (lo, hi)


def _show_edges(edges: Sequence[Comparable], value: Value) -> pl.Series:
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


# -- cells: a second public key of each row, for histograms, quantiles and selections -------------
# Every row falls into at most one cell. Cells are numbered 0, 1, ... in public order; the lowered
# expression gives the number, or null for a row that belongs to none.

_SHORT = 60
"""Up to this many characters of categories or candidates are listed in plans."""


class Cells(HasExprs):
    """A row-wise map from rows to cell numbers."""

    __slots__ = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """How many cells there are."""

    @property
    def of_individuals(self) -> bool:
        """Whether individuals are in cells, by their totals, and not rows."""
        return False

    @property
    @abstractmethod
    def node(self) -> kernel.Cells:
        """The same as the kernel has it."""

    @abstractmethod
    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        """The number of each row's cell as Int64, null for none."""

    def tally(self) -> Tally | None:
        """What counts `numbers` by cell in NumPy, where cells are made of these."""
        return None

    def numbers(self, columns: Columns) -> pl.Expr:
        """What it counts, an Int64 or Float64 of each row in Polars."""
        raise NotImplementedError

    @abstractmethod
    def words(self) -> str:
        """What the cells are, in a plan."""

    @property
    @abstractmethod
    def rest(self) -> str:
        """The words of a plan for rows that are in none of the listed cells."""


@dataclass(frozen=True, slots=True)
class CategoryCells(Cells):
    """One cell per listed value."""

    engines = EVERYWHERE

    tree: Tree  # The expression that is compared with the categories
    categories: tuple[Scalar, ...]  # The values, each once; None stands for null
    other: bool = False  # Whether one last cell takes all rows with another value

    def map_exprs(self, change: Change) -> Self:
        return replace(self, tree=change(self.tree))

    @property
    def size(self) -> int:
        return len(self.categories) + self.other

    @property
    def node(self) -> kernel.Values:
        texts = tuple(map(text_of_constant, self.categories))
        return kernel.Values(row_of(self.tree), texts, self.other)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        value = lower(self.tree, columns, ns)
        dtype = domain(self.tree, columns).dtype
        if dtype.is_text:
            value, dtype = value.cast(ns.String), STRING
        elif dtype.is_float:
            value = unsigned_zero(ns, value, dtype)
        rest = self.size - 1 if self.other else None
        codes = [i for i, c in enumerate(self.categories) if c is not None]
        if not codes:
            number = ns.lit(rest, dtype=ns.Int64)
        elif ns is pl and dtype == STRING and codes == list(range(len(codes))):
            listed_texts = pl.Enum(self._cast_categories(dtype))  # three times as fast
            number = value.cast(listed_texts, strict=False).to_physical().cast(pl.Int64)
            number = number.fill_null(rest) if rest is not None else number
        else:
            known = self._cast_categories(dtype)
            number = value.replace_strict(known, codes, default=rest, return_dtype=ns.Int64)
        null_cell = self.categories.index(None) if None in self.categories else rest
        null_code = ns.lit(null_cell, dtype=ns.Int64)
        cell: pl.Expr = ns.when(value.is_null()).then(null_code).otherwise(number)
        return cell

    def _cast_categories(self, dtype: DType) -> pl.Series:
        """The categories but null in the expression's own type: two that are one there would put
        rows into two cells, or make an engine fail depending on rows.
        """
        values = listed("", [c for c in self.categories if c is not None], dtype)
        are_different = values is not None and values.n_unique() == len(values)
        require(are_different, f"the categories of {words(self.tree)} are different values")
        assert values is not None
        return values

    def words(self) -> str:
        names = ", ".join("null" if c is None else repr(c) for c in self.categories)
        shown = f" ({names})" if len(names) <= _SHORT else ""
        count = len(self.categories)
        noun = "category" if count == 1 else "categories"
        return f"{count} {noun} of {words(self.tree)}{shown}"

    @property
    def rest(self) -> str:
        return "one more for all else" if self.other else "rows with other values are dropped"


class NumberCells(Cells):
    """Cells of numbers: of rows, or of the totals of individuals."""

    __slots__ = ()

    value: Value

    @property
    def of_individuals(self) -> bool:
        return isinstance(self.value, TotalValue)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        return self.place(self.value.number(lower(self.value.tree, columns, ns), ns), ns)

    def numbers(self, columns: Columns) -> pl.Expr:
        return self.value.number(lower(self.value.tree, columns, pl), pl)

    @abstractmethod
    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        """The number of the cell of an Int64 or Float64, null for none."""

    @property
    def node(self) -> kernel.Cells:
        return (
            kernel.OfPeople(self._node, self.totals.grid.node)
            if self.of_individuals
            else self._node
        )

    @property
    @abstractmethod
    def _node(self) -> kernel.Edges | kernel.Points | kernel.Between:
        """The same of rows, or of totals as if they were rows."""

    @property
    def totals(self) -> TotalValue:
        """What is gathered of individuals, where these are in cells."""
        assert isinstance(self.value, TotalValue)
        return self.value


@dataclass(frozen=True, slots=True)
class BinCells(NumberCells):
    """Bins between edges: left-closed and right-open, the last one closed."""

    engines = EVERYWHERE

    value: Value  # The number that is binned
    edges: Sequence[Fraction]  # Strictly increasing, at least two
    other: bool = False  # Whether one last cell takes nulls, NaN and values outside the edges

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    @property
    def size(self) -> int:
        return len(self.edges) - 1 + self.other

    @property
    def _node(self) -> kernel.Edges:
        return kernel.Edges(row_of(self.value.tree), numbers_of(self.edges), self.other)

    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        edges = comparable_edges(self.edges, self.value)
        code = at_or_below(number, edges[:-1], ns) - 1
        inside = (number >= edges[0]) & (number <= edges[-1])
        rest = ns.lit(self.size - 1 if self.other else None, dtype=ns.Int64)
        cell: pl.Expr = ns.when(inside.fill_null(False)).then(code).otherwise(rest)
        return cell

    def tally(self) -> Tally | None:
        return BinTally(comparable_edges(self.edges, self.value), self.other)

    def words(self) -> str:
        dtype = self.value.domain.dtype
        lo, hi = show_value(self.edges[0], dtype), show_value(self.edges[-1], dtype)
        return f"{len(self.edges) - 1} bins of {self.value.words} from {lo} to {hi}"

    @property
    def rest(self) -> str:
        outside = "null, NaN and values outside"
        return f"one more for {outside}" if self.other else f"{outside} are dropped"


@dataclass(frozen=True, slots=True)
class PointCells(NumberCells):
    """Evenly spaced points; each value is clamped and goes to the nearest one."""

    engines = EVERYWHERE

    value: Value  # The number
    # The first point, the distance between points, and how many there are.
    lo: Fraction
    step: Fraction
    points: int

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    @property
    def size(self) -> int:
        return self.points

    @property
    def _node(self) -> kernel.Points:
        return kernel.Points(row_of(self.value.tree), self.lo, self.step, self.points)

    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        origin = self._origin
        if origin:
            number = number.clip(origin, ceil(self._hi)) - origin
        scaled = number.cast(ns.Float64) - float(self.lo - origin)
        for scale in self._scales:
            scaled = scaled * scale
        inside = (scaled + 0.5).floor().clip(0.0, float(self.points - 1))
        return inside.cast(ns.Int64, strict=False).clip(0, self.points - 1)

    @property
    def _hi(self) -> Fraction:
        return self.lo + (self.points - 1) * self.step

    @property
    def _origin(self) -> int:
        """What is taken from whole numbers that floats do not distinguish, before they are
        floats; 0 where floats do.
        """
        lo, hi = self.lo, self._hi
        near = max(abs(lo), abs(hi)) <= 2**52
        if near or not self.value.is_whole or hi - lo > 2**61:
            return 0
        return floor(lo)

    @property
    def _scales(self) -> tuple[float, ...]:
        """What a distance from the first point is multiplied by, one after another."""
        scale = 1 / self.step
        if scale > 2**1000:  # too large for a float
            return 2.0**512, float(scale / 2**512)
        return (float(scale),)

    def tally(self) -> Tally | None:
        if self._origin:
            return None
        return PointTally(float(self.lo), self._scales, self.points)

    def words(self) -> str:
        dtype = self.value.domain.dtype
        lo = show_value(self.lo, dtype)
        hi = show_value(self.lo + (self.points - 1) * self.step, dtype)
        kind = "whole numbers" if self.step == 1 and dtype.is_integer else "points"
        return f"{self.value.words} among {self.points} {kind} in [{lo}, {hi}]"

    @property
    def rest(self) -> str:
        return f"values outside count as the nearest end, {missing_words(self.value)}"


@dataclass(frozen=True, slots=True)
class PositionCells(NumberCells):
    """Where a value stands among sorted candidates.

    Cell 2i + 1 means equal to candidate i, cell 2i between candidates i - 1 and i.
    """

    engines = EVERYWHERE

    value: Value
    candidates: Sequence[Fraction]

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    @property
    def size(self) -> int:
        return 2 * len(self.candidates) + 1

    @property
    def _node(self) -> kernel.Between:
        return kernel.Between(row_of(self.value.tree), numbers_of(self.candidates))

    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        edges = comparable_edges(self.candidates, self.value)
        code = at_or_below(number, edges, ns) + below(number, edges, ns)
        if self.value.is_whole:
            known = number.is_not_null()
        else:
            known = number.is_not_nan().fill_null(False)
        cell: pl.Expr = ns.when(known).then(code).otherwise(ns.lit(None, dtype=ns.Int64))
        return cell

    def tally(self) -> Tally | None:
        return PositionTally(comparable_edges(self.candidates, self.value))

    def words(self) -> str:
        dtype = self.value.domain.dtype
        listed = ", ".join(show_value(c, dtype) for c in self.candidates[: _SHORT // 2])
        shown = f" ({listed})" if len(listed) <= _SHORT else ""
        return f"{self.value.words} among {len(self.candidates)} candidates{shown}"

    @property
    def rest(self) -> str:
        return missing_words(self.value)


def missing_words(value: Value) -> str:
    """What becomes of rows without a number, in a plan."""
    return "null and NaN are skipped" if value.domain.dtype.is_float else "null is skipped"


def comparable_edges(numbers: Sequence[Fraction], value: Value) -> list[int] | list[float]:
    """Constants in the number's own type, so that comparisons are exact. If some do not fit
    Int64, whole numbers are compared as floats, whose distances exceed 1 beyond 2**53.
    """
    if value.is_whole and are_whole(numbers):
        whole = wholes(numbers)
        if min(whole) >= -(2**63) and max(whole) < 2**63:
            return whole
    return floats(numbers)


# -- cells between upper edges, the parts of a distribution function ------------------------------


@dataclass(frozen=True, slots=True)
class UpToCells(Cells):
    """One cell for the values above each edge and up to the next one, which is included; the first
    one has all values up to the first edge.

    Null and NaN are in no cell. Infinities are values, and -0.0 is 0.0.
    """

    engines = EVERYWHERE

    value: Value  # The number
    edges: Edges  # Rising upper edges
    # Whether one last cell takes values above the last edge, which else count as the last edge.
    above: bool

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    @property
    def size(self) -> int:
        return self.edges.size + self.above

    @property
    def node(self) -> kernel.UpTo:
        return kernel.UpTo(row_of(self.value.tree), numbers_of(self.edges.exact), self.above)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        number = self._number(lower(self.value.tree, columns, ns), ns)
        known = number.is_not_null()
        if not is_counted(self.value):
            known = number.is_not_nan().fill_null(False)
        passed = below(number, self._between, ns)
        cell: pl.Expr = ns.when(known).then(passed).otherwise(ns.lit(None, dtype=ns.Int64))
        return cell

    def tally(self) -> Tally | None:
        return UpToTally(self._between)

    def numbers(self, columns: Columns) -> pl.Expr:
        return self._number(lower(self.value.tree, columns, pl), pl)

    @property
    def _between(self) -> list[int] | list[float]:
        """The edges that have a cell after them."""
        numbers = self.edges.numbers if self.above else self.edges.numbers[:-1]
        return list(numbers)

    def _number(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """The value as edges are: of a decimal the integer of its smallest unit."""
        if not self.value.domain.dtype.is_decimal:
            return self.value.number(column, ns)
        units: pl.Expr = column.to_physical().clip(-(2**63), 2**63 - 1).cast(ns.Int64, strict=False)
        return units

    def words(self) -> str:
        first, last = (edge_words(self.edges.numbers[i], self.value) for i in (0, -1))
        listed = f"{self.edges.size} upper edges from {first} to {last}, which are included"
        return f"steps of {words(self.value.tree)} between {listed}"

    @property
    def rest(self) -> str:
        outside = (
            "values above the last edge count in the total only"
            if self.above
            else "values outside count as the nearest end"
        )
        return f"{outside}, {missing_words(self.value)}"


# -- cells, and one more for all other rows -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeCells(Cells):
    """Cells, and a last one for the rows that are in none of them, so that each row is in one."""

    engines = EVERYWHERE

    some: Cells  # The cells

    def map_exprs(self, change: Change) -> Self:
        return replace(self, some=self.some.map_exprs(change))

    @property
    def size(self) -> int:
        return self.some.size + 1

    @property
    def node(self) -> kernel.Whole:
        inner = self.some.node
        if isinstance(inner, kernel.OfPeople | kernel.Whole):
            raise has_no_node("cells of individuals with one more for all others")
        return kernel.Whole(inner)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        cell = self.some.row(columns, ns)
        last = ns.lit(self.some.size, dtype=ns.Int64)
        made: pl.Expr = ns.when(cell.is_null()).then(last).otherwise(cell)
        return made

    def tally(self) -> Tally | None:
        some = self.some.tally()
        return None if some is None else WholeTally(some)

    def numbers(self, columns: Columns) -> pl.Expr:
        return self.some.numbers(columns)

    def words(self) -> str:
        return self.some.words()

    @property
    def rest(self) -> str:
        return f"{self.some.rest}; one more for all other rows"
