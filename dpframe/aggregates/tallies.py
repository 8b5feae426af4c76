"""How many numbers are in each cell, counted in NumPy as columns of them come.

Grouping rows by the number of a cell takes three times as long as finding it, and a column of
numbers in memory needs no group-by. Blocks that a cache holds are placed and counted one after
another. The counts equal those that an engine computes by the expressions of the cells, bit by
bit; the arithmetic is the same (`dpframe.aggregates.placing`). Which way a number is placed
follows from the edges alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.placing import FEW, parts_of

__all__ = ["BinTally", "PointTally", "PositionTally", "Tally", "UpToTally", "WholeTally"]

Numbers: TypeAlias = "NDArray[Any]"
"""Int64 or Float64."""
Integers: TypeAlias = "NDArray[np.int64]"
Edges: TypeAlias = "Sequence[int] | Sequence[float]"
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

    def __init__(self, edges: Edges, *wants: _Want) -> None:
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
                _count_into(found, place + _compared(numbers, edge, want))

    def _compare(self, numbers: Numbers) -> None:
        for want, found in self._found.items():
            for i, edge in enumerate(self._edges, start=1):
                found[i] += np.count_nonzero(_compared(numbers, edge, want))

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

    def __init__(self, edges: Edges, other: bool) -> None:
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

    def __init__(self, edges: Edges) -> None:
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

    def __init__(self, edges: Edges) -> None:
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


def _compared(numbers: Numbers, edges: Any, want: _Want) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = numbers >= edges if want == ">=" else numbers > edges
    return found


def _count_into(found: Integers, places: Integers) -> None:
    """Count places among those found before."""
    if found.size <= _DENSE:
        found += np.bincount(places, minlength=found.size)
    else:
        np.add.at(found, places, 1)
