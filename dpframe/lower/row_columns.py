"""What the statistics of a query make of a row: a column each, or one that several share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from dpframe.aggregates.statistics import (
    GridSum,
    SquareSum,
    Statistic,
    UnitStatistic,
    ValueCount,
    is_counted_by,
)
from dpframe.core.dtypes import Columns
from dpframe.lower.pairs import beside_name
from dpframe.rows.operation import Namespace

__all__ = ["row_columns"]


def row_columns(
    statistics: Sequence[Statistic], columns: Columns, ns: Namespace
) -> tuple[dict[str, pl.Expr], list[pl.Expr], list[str]]:
    """Columns that are made of rows, those that are made of these columns, and which column each
    statistic reduces.

    Squares are made of the places of the same values where these are added up as well: of these
    very integers, however an engine would come to compute a value twice.
    """
    squared = _squared_by(statistics)
    counted = _counted_by(statistics, squared)
    known = counted.keys() | squared.keys()
    made = {f"r{i}": s.row(columns, ns) for i, s in enumerate(statistics) if i not in known}
    made |= {
        beside_name(i): s.row_beside(columns, ns)
        for i, s in enumerate(statistics)
        if isinstance(s, UnitStatistic)
    }
    squares = [
        s.of_places(ns.col(f"r{squared[i]}")).alias(f"r{i}")
        for i, s in enumerate(statistics)
        if isinstance(s, SquareSum) and i in squared
    ]
    own = {name: column for name, column in made.items() if column is not None}
    return own, squares, [f"r{counted.get(i, i)}" for i in range(len(statistics))]


def _squared_by(statistics: Sequence[Statistic]) -> dict[int, int]:
    """Sums of squares of the unchanged values of another statistic."""
    sums = {(s.value, s.grid): i for i, s in enumerate(statistics) if isinstance(s, GridSum)}
    return {
        i: sums[s.value, s.inner]
        for i, s in enumerate(statistics)
        if isinstance(s, SquareSum) and (s.value, s.inner) in sums
    }


def _counted_by(statistics: Sequence[Statistic], squared: Mapping[int, int]) -> dict[int, int]:
    """Counts that can be read from the column of another statistic of the same values. Sums with a
    sum of squares come first, so that a row adds one point to count, sum and sum of squares.
    """
    sums = [(i, s) for i, s in enumerate(statistics) if isinstance(s, GridSum)]
    sums.sort(key=lambda pair: pair[0] not in squared.values())
    return {
        i: next(number for number, total in sums if is_counted_by(s, total))
        for i, s in enumerate(statistics)
        if isinstance(s, ValueCount) and any(is_counted_by(s, total) for _, total in sums)
    }
