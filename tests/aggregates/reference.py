"""A plain-Python account of every exact table and ballot, with integers and Fractions.

Row-wise expressions are taken as lowered (their own laws check them); what follows (clamping,
placing on the grid, cells, groups, sums, counts, scores) is done again here, row by row.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import polars as pl

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.argmax import CategoryChoice, ScoredChoice
from dpframe.aggregates.cells import (
    BinCells,
    CategoryCells,
    Cells,
    PointCells,
    PositionCells,
    UpToCells,
)
from dpframe.aggregates.measurement import CellCounts, Selection, Table
from dpframe.aggregates.quantile import QuantileChoice
from dpframe.aggregates.statistics import (
    DistinctCount,
    GridSum,
    PairSum,
    RowCount,
    SquareSum,
    Statistic,
    ValueCount,
)
from dpframe.aggregates.values import Value
from dpframe.core.dtypes import Columns
from dpframe.core.interval import Grid
from dpframe.core.tree import Tree
from dpframe.rows.constants import physical
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.fold import domain, lower
from tests.laws.frames import values
from tests.laws.neighbours import ballots, exact_tables, measurements_of, tables_of

NEAR = Fraction(1, 2**20)
"""So close to a tie a value may go to either grid point: floats round once on the way."""

Number = Fraction | float
"""An exact number, or plus or minus infinity."""


def after_steps(query: Query, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows that are aggregated."""
    lazy = frame.lazy()
    for step, before in query.relation.steps:
        lazy = step.lower(lazy, before, pl, salt=0)
    return lazy.collect(optimizations=OPTIMIZATIONS)


def evaluate(tree: Tree, columns: Columns, frame: pl.DataFrame) -> list[Any]:
    """A row-wise expression on every row, as plain Python values."""
    return values(frame.with_columns(lower(tree, columns).alias("__value"))["__value"])


def missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def number(value: Any) -> Number | None:
    """A value as a number; decimals and large integers as the floats that they are taken as."""
    if missing(value):
        return None
    if isinstance(value, Decimal):
        return Fraction(float(value))
    return value if value in (math.inf, -math.inf) else Fraction(value)


def places(value: Any, grid: Grid) -> list[int | None]:
    """The grid points that a value may go to: one, or two where it is next to a tie."""
    exact = number(value)
    if exact is None:
        return [None]
    if isinstance(exact, float):
        return [grid.hi if exact > 0 else grid.lo]
    placed = (exact - grid.centre) / grid.step + Fraction(1, 2)
    near = {math.floor(placed - NEAR), math.floor(placed), math.floor(placed + NEAR)}
    return sorted({min(max(p, grid.lo), grid.hi) for p in near})


def square_places(value: Any, statistic: SquareSum) -> list[int | None]:
    """Where squares of places may be: least upper bounds of h**2 in whole parts, and no more than
    one above.
    """
    found = list[int | None]()
    for place in places(value, statistic.inner):
        if place is None:
            return [None]
        inner = statistic.inner
        top, largest = statistic.grid.hi, max(-inner.lo, inner.hi) ** 2
        part = 2 * statistic.grid.step / statistic.inner.step**2
        square = place * place if part == 1 else min(top, math.floor(place * place / part) + 1)
        assert top * place * place <= square * largest
        assert top <= max(1, largest / part)
        found.append(2 * square - top)
    return found


def is_pair_place(found: int, value: Any, beside: Any, statistic: PairSum) -> bool:
    """Whether a pair is placed where the largest factor that brings both within their bounds puts
    its first number; by floats, so next to that where it lies between two points.
    """
    mine, other = (_far(_of_64_bits(number(v) or Fraction(0), v)) for v in (value, beside))
    factor = min(_shrunk(mine, statistic.grid), _shrunk(other, statistic.other_grid))
    exact = mine * factor / statistic.grid.step
    return abs(found - exact) <= Fraction(1, 2) + Fraction(1, 2**12)


def _of_64_bits(exact: Number, value: Any) -> Number:
    """Whole numbers that no Int64 has count as its ends."""
    return min(max(exact, -(2**63)), 2**63 - 1) if isinstance(value, int) else exact


def _far(exact: Number) -> Fraction:
    """A finite number: what is infinite counts as 2**400."""
    if isinstance(exact, float):
        return Fraction(2**400 if exact > 0 else -(2**400))
    return min(max(exact, Fraction(-(2**400))), Fraction(2**400))


def _shrunk(exact: Fraction, grid: Grid) -> Fraction:
    """The largest factor that brings a number within bounds around 0."""
    bound = (grid.hi if exact > 0 else grid.lo) * grid.step
    return min(Fraction(1), bound / exact) if exact else Fraction(1)


def cell_numbers(value: Any, cells: Cells) -> list[int | None]:
    """The cells that a value may go to."""
    match cells:
        case CategoryCells():
            raise AssertionError("categories are compared with plain values")
        case BinCells(_, edges, other):
            rest = len(edges) - 1 if other else None
            exact = _compared(number(value), edges, cells.value)
            listed = _listed(edges, cells.value)
            if exact is None or not listed[0] <= exact <= listed[-1]:
                return [rest]
            return [min(sum(e <= exact for e in listed), len(edges) - 1) - 1]
        case UpToCells(_, edges, above):
            if missing(value):
                return [None]
            passed = sum(_is_above(value, edge, cells.value) for edge in edges.numbers)
            return [passed if above else min(passed, edges.size - 1)]
        case PointCells(_, lo, step, points):
            return places(value, Grid(step, lo, 0, points - 1))
        case PositionCells(_, candidates):
            exact = _compared(number(value), candidates, cells.value)
            listed = _listed(candidates, cells.value)
            if exact is None:
                return [None]
            return [sum(c <= exact for c in listed) + sum(c < exact for c in listed)]
        case _:
            raise AssertionError(cells)


def _is_above(value: Any, edge: float, taken: Value) -> bool:
    """Whether a value is above an edge of its own kind."""
    scale = taken.domain.dtype.scale if taken.domain.dtype.is_decimal else 0
    if isinstance(value, float) and math.isinf(value):
        return value > 0
    return Fraction(value) * 10 ** (scale or 0) > Fraction(edge)


def _compared(exact: Any, edges: Sequence[Fraction], value: Value) -> Any:
    """A number as it is compared with edges: a whole one as a float, unless they are whole too."""
    if exact is None or not value.is_whole or _are_whole(edges, value):
        return exact
    return Fraction(float(exact))


def _listed(edges: Sequence[Fraction], value: Value) -> list[Fraction]:
    """Edges as they are compared."""
    return _compared_edges(tuple(edges)) if not _are_whole(edges, value) else [*edges]


@lru_cache(maxsize=64)
def _compared_edges(edges: tuple[Fraction, ...]) -> list[Fraction]:
    return [Fraction(float(e)) for e in edges]


def _are_whole(edges: Sequence[Fraction], value: Value) -> bool:
    return value.is_whole and _fit_in_integers(tuple(edges))


@lru_cache(maxsize=64)
def _fit_in_integers(edges: tuple[Fraction, ...]) -> bool:
    return all(e.denominator == 1 and -(2**63) <= e < 2**63 for e in edges)


def category_number(value: Any, cells: CategoryCells, plain: Sequence[Any]) -> int | None:
    rest = len(cells.categories) if cells.other else None
    for i, category in enumerate(plain):
        if (value is None) == (category is None) and value == category:
            return i
    return rest


class Rows:
    """The rows of one query on one frame, with what the reference needs of each."""

    def __init__(self, query: Query, frame: pl.DataFrame) -> None:
        self.frame = after_steps(query, frame)
        self.columns = query.relation.facts.columns
        self.groups = query.groups
        self.keys = self._keys()
        self.tables: dict[Table, dict[tuple[int, int], int]] = {}

    def _keys(self) -> list[int | None]:
        """The group of each row, None when its key is not listed."""
        if self.groups is None:
            return [0] * self.frame.height
        by = [evaluate(n.tree, self.columns, self.frame) for n in self.groups.by]
        listed = [values(column) for column in self.groups.keys.get_columns()]
        numbers = {key: i for i, key in enumerate(zip(*listed, strict=True))}
        assert len(numbers) == self.groups.size
        return [numbers.get(key) for key in zip(*by, strict=True)]

    def lowered(self, row: pl.Expr | None) -> list[Any]:
        if row is None:
            return [1] * self.frame.height
        return self.frame.with_columns(row.alias("__row"))["__row"].to_list()

    def cells(self, cells: Cells | None) -> list[int | None]:
        """The cell of each row as lowered, checked against the account above."""
        if cells is None:
            return [0] * self.frame.height
        found = self.lowered(cells.row(self.columns, pl))
        if isinstance(cells, CategoryCells):
            dtype = domain(cells.tree, self.columns).dtype
            plain = [
                physical(c, dtype) if dtype.is_temporal and c is not None else c
                for c in cells.categories
            ]
            for value, cell in zip(
                evaluate(cells.tree, self.columns, self.frame), found, strict=True
            ):
                assert cell == category_number(value, cells, plain), (cells.words(), value)
            return found
        value_of = cells.value.tree  # type: ignore[attr-defined]
        for value, cell in zip(evaluate(value_of, self.columns, self.frame), found, strict=True):
            assert cell in cell_numbers(value, cells), (cells.words(), value)
        return found

    def contributions(self, statistic: Statistic) -> list[Any]:
        """What each row adds as lowered, checked against the account above."""
        match statistic:
            case RowCount():
                return [1] * self.frame.height
            case GridSum(value, grid):
                found = self.lowered(statistic.row(self.columns, pl))
                for v, q in zip(evaluate(value.tree, self.columns, self.frame), found, strict=True):
                    assert q in places(v, grid), (statistic.words(), v, q, grid)
                return [q or 0 for q in found]
            case SquareSum(value):
                found = self.lowered(statistic.row(self.columns, pl))
                for v, q in zip(evaluate(value.tree, self.columns, self.frame), found, strict=True):
                    assert q in square_places(v, statistic), (statistic.words(), v, q)
                return [q or 0 for q in found]
            case PairSum(value, _, other, _):
                found = self.lowered(statistic.row(self.columns, pl))
                pairs = (evaluate(v.tree, self.columns, self.frame) for v in (value, other))
                for a, b, q in zip(*pairs, found, strict=True):
                    assert is_pair_place(q, a, b, statistic), (statistic.words(), a, b, q)
                return found
            case ValueCount(tree):
                return [int(not missing(v)) for v in evaluate(tree, self.columns, self.frame)]
            case DistinctCount(tree):
                return evaluate(tree, self.columns, self.frame)
            case _:
                raise AssertionError(statistic)


def expected_table(table: Table, rows: Rows) -> dict[tuple[int, int], int]:
    """The exact table by group and cell; entries of 0 may be missing."""
    if table not in rows.tables:
        rows.tables[table] = _expected_table(table, rows)
    return rows.tables[table]


def _expected_table(table: Table, rows: Rows) -> dict[tuple[int, int], int]:
    added = rows.contributions(table.statistic)
    distinct = isinstance(table.statistic, DistinctCount)
    totals: Counter[tuple[int, int]] = Counter()
    seen: defaultdict[tuple[int, int], set[Any]] = defaultdict(set)
    for group, cell, value in zip(rows.keys, rows.cells(table.cells), added, strict=True):
        if group is None or cell is None:
            continue
        if not distinct:
            totals[group, cell] += value
        elif not missing(value):
            seen[group, cell].add(value)
    return {at: len(found) for at, found in seen.items()} if distinct else dict(totals)


def as_dict(counted: CellCounts) -> dict[tuple[int, int], int]:
    values = counted.values.tolist()
    if counted.groups is None or counted.cells is None:
        return {(g, 0): v for g, v in enumerate(values)}
    groups, cells = counted.groups.tolist(), counted.cells.tolist()
    return {(g, c): v for g, c, v in zip(groups, cells, values, strict=True)}


def check_reference(query: Query, frame: pl.DataFrame) -> None:
    """Every exact table and every ballot is what plain Python finds."""
    counted, rows = exact_tables(query, frame), Rows(query, frame)
    assert set(counted) == {*tables_of(query)}
    for table, found in counted.items():
        expected = expected_table(table, rows)
        shown = as_dict(found)
        assert len(shown) == len(found.values)
        for at in expected.keys() | shown.keys():
            assert shown.get(at, 0) == expected.get(at, 0), (table.words(), at)
        size = 1 if query.groups is None else query.groups.size
        assert found.size == size
    for use in measurements_of(query):
        if isinstance(use.part, Selection):
            check_ballots(query, use.part, rows, counted)


def check_ballots(query: Query, part: Selection, rows: Rows, counted: Any) -> None:
    """The scores of all candidates, from the definition of a score."""
    tables = [expected_table(table, rows) for table in part.tables]
    for group, ballot in enumerate(ballots(part, counted, query.scope)):
        scores = ballot.scores.tolist()
        match part:
            case CategoryChoice(_, cells):
                at = [(i, 0) if cells is None else (group, i) for i in range(part.count)]
                assert scores == [tables[0].get(key, 0) for key in at]
            case ScoredChoice():
                assert scores == [table.get((group, 0), 0) for table in tables]
            case QuantileChoice(cells, q):
                counts = {c: n for (g, c), n in tables[0].items() if g == group}
                _check_quantile(ballot, cells, q, counts)
            case _:
                raise AssertionError(part)


def _check_quantile(
    ballot: Any, cells: PointCells | PositionCells, q: Fraction, counts: dict[int, int]
) -> None:
    """Minus the distance of q n from the nearest rank that the candidate has, in units of
    1 / denominator.
    """
    target = q * sum(counts.values())

    def score(position: int) -> Fraction:
        below = sum(n for c, n in counts.items() if c < position)
        upto = below + counts.get(position, 0)
        nearest = min(max(target, Fraction(below)), Fraction(upto))
        return -abs(target - nearest) * q.denominator

    if isinstance(cells, PositionCells):
        assert ballot.weights is None
        listed = [score(2 * i + 1) for i in range(len(cells.candidates))]
        assert ballot.scores.tolist() == listed
        assert ballot.starts.tolist() == list(range(len(listed)))
        return
    starts, weights = ballot.starts.tolist(), ballot.weights.tolist()
    assert starts[0] == 0
    assert all(w > 0 for w in weights)
    assert [s + w for s, w in zip(starts, weights, strict=True)] == [*starts[1:], cells.points]
    for start, weight, found in zip(starts, weights, ballot.scores.tolist(), strict=True):
        for point in {start, start + weight // 2, start + weight - 1}:
            assert score(point) == found, (point, found)
