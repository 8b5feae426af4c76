"""Which numbers that are drawn jointly are a count of values, their sum and that of their
squares.

What a row adds to these three lies on an arch, see `dpframe.samplers.box`, and noise for the hull
of it is less than for a box.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from dpframe.aggregates.measurement import COUNT, Table
from dpframe.aggregates.statistics import GridSum, SquareSum, ValueCount, is_counted_by
from dpframe.mechanisms import MAX_ARCHES, Arch, second_moments

__all__ = ["arches_of", "moments_in"]

_FEWEST: Final = 16
"""Steps that a sum, and one of squares, needs: laws take them as if they were continuous."""


def arches_of(tables: Sequence[Table | None]) -> tuple[Arch, ...]:
    """The places of counts, sums and sums of squares.

    Parameters
    ----------
    tables
        The number itself, or None for a number that is drawn minus another.

    Notes
    -----
    A row has a place on the grid of a sum only where it is counted: as a row, or as a value by the
    column of places itself (`is_counted_by`).
    """
    return tuple(_found(tables))[:MAX_ARCHES]


def _found(tables: Sequence[Table | None]) -> Iterator[Arch]:
    known = {table: place for place, table in enumerate(tables) if table is not None}
    for place, table in enumerate(tables):
        squares = None if table is None or table.cells is not None else table.statistic
        if not isinstance(squares, SquareSum):
            continue
        inner = squares.inner
        if inner.lo != -inner.hi or min(inner.hi, squares.grid.hi) < _FEWEST:
            continue
        total = GridSum(squares.value, squares.inner)
        counted = (
            number
            for other, number in known.items()
            if isinstance(other.statistic, ValueCount) and is_counted_by(other.statistic, total)
        )
        count = next(counted, known.get(COUNT.table))
        if count is not None and Table(total) in known:
            yield count, known[Table(total)], place


def moments_in(numbers: int, arches: Sequence[Arch]) -> list[Fraction]:
    """The mean square of each of this many numbers that are uniform in a hull, over its width."""
    found = [Fraction(1, 3)] * numbers
    for count, total, square in arches:
        sharing = sum(count == other for other, *_ in arches)
        found[count], found[total], found[square] = second_moments(sharing)
    return found
