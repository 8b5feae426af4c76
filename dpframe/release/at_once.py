"""Quantiles that are chosen jointly: how rows with equal values are put in order.

Each row takes one of 2**32 places within its value at random, in two steps of 16 coins. Places are
drawn only where they matter: in values with ranks near some quantile, and in other values once a
candidate tuple contains them. Rows keep the places that they took.

Privacy does not need this many places. They ensure a place for about each rank. With fewer places
all good tuples could be missing, and the draw would take too long where billions of rows have the
same value. The time depends on the rows, as it does where an engine counts them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.measurement import CellCounts
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import parts_of_row
from dpframe.mechanisms.noise import TIES, Runs, choose_tuple, place_rows
from dpframe.release.numbers import candidates_of, first_choice

__all__ = ["PlacedRows", "choose_at_once"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class PlacedRows:
    """The rows of one group among the places of all points.

    Parameters
    ----------
    cells, rows
        The points with rows, in rising order, and how many each has.
    points
        How many points there are.
    """

    __slots__ = ("_rows", "_sizes", "_starts", "candidates", "rows")

    def __init__(self, cells: Integers, rows: Integers, points: int) -> None:
        whole = math.prod(TIES)
        self.candidates, self.rows = points * whole, int(rows.sum())
        self._starts, self._rows = cells * whole, rows
        self._sizes = np.full(cells.size, whole)

    def runs(self, windows: Sequence[tuple[int, int]]) -> Runs:
        """The candidates between places with rows, where their ranks are in a window. What is on
        either side of these has taken its places.
        """
        self._place(windows)
        upto = np.append(0, np.cumsum(self._rows))
        keys = self._starts + self._sizes  # the first candidate that a row is before
        starts, ends = np.append(0, keys), np.append(keys - self._sizes + 1, self.candidates)
        kept = _within(upto, upto, windows) & (ends > starts)
        return Runs(starts[kept], (ends - starts)[kept], upto[kept])

    def ranks(self, chosen: Sequence[int]) -> list[int]:
        """The number of rows before each of some places; all rows have taken their places by
        then."""
        self._place([(0, self.rows)])
        upto = np.append(0, np.cumsum(self._rows))
        result: list[int] = upto[np.searchsorted(self._starts, chosen, "left")].tolist()
        return result

    def _place(self, windows: Sequence[tuple[int, int]]) -> None:
        """Let rows take their places where their ranks touch a window."""
        size = math.prod(TIES)
        for ties in TIES:
            upto = np.cumsum(self._rows)
            wide = (self._sizes == size) & (size > 1)
            size //= ties
            wanted = np.flatnonzero(wide & _within(upto - self._rows, upto, windows))
            if not wanted.size:
                continue
            point, place, rows = place_rows(self._rows[wanted], ties)
            others = np.ones(self._rows.size, np.bool_)
            others[wanted] = False
            starts = np.append(self._starts[others], self._starts[wanted][point] + place * size)
            order = np.argsort(starts, kind="stable")
            self._rows = np.append(self._rows[others], rows)[order]
            self._sizes = np.append(self._sizes[others], np.full(rows.size, size))[order]
            self._starts = starts[order]


def _within(low: Integers, high: Integers, windows: Sequence[tuple[int, int]]) -> Flags:
    """Which of some ranges of ranks have one in a window."""
    result = np.zeros(low.size, np.bool_)
    for first, last in windows:
        result |= (low <= last) & (high >= first)
    return result


def choose_at_once(
    plan: kernel.Plan,
    what: kernel.Ranks,
    law: kernel.Exponential,
    counted: CellCounts,
    groups: int,
) -> Integers:
    """The codes of all quantiles in each group: a row each, nondecreasing."""
    assert counted.cells is not None
    candidates = candidates_of(plan, first_choice(what), groups)
    parts = parts_of_row(what.quantiles)
    shares = [int(q * parts) for q in what.quantiles]
    offsets = counted.offsets(0, groups)
    places, result = math.prod(TIES), np.empty((groups, len(shares)), np.int64)
    for group, (lo, hi) in enumerate(pairwise(offsets.tolist())):
        line = PlacedRows(counted.cells[lo:hi], counted.values[lo:hi], candidates)
        chosen = choose_tuple(law.scale, line, shares, parts)
        result[group] = [place // places for place in chosen]
    return result
