"""How far one individual moves the numbers of a draw.

A row adds a whole number from a set to each table. Interval arithmetic over the combinations of a
draw gives how far a row moves each number, and the reach of an individual gives how many rows do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from dpframe.kernel.frame import Facts, Reach, columns_of, is_of_people, reach_of
from dpframe.kernel.plan import (
    Between,
    Cells,
    Distinct,
    Edges,
    Grid,
    OfPeople,
    One,
    Paired,
    People,
    PersonRows,
    PersonTotal,
    Placed,
    Plan,
    Points,
    Refused,
    Row,
    Squared,
    Table,
    Valued,
    Values,
    Vector,
)


@dataclass(frozen=True)
class Addition:
    """What a row adds to a table: a number from `lo` to `hi` where it has what it needs, else
    nothing. It always has what it needs where `needs` is None. Rows have a value of an expression
    for all tables that need it, or for none.
    """

    lo: int
    hi: int
    needs: object


def addition_of(table: Table, place: int) -> Addition:
    """What a row, or an individual in a group, adds to the table with this place in a vector."""
    match table.adds:
        case One() | People():
            return Addition(1, 1, None)
        case Valued(row):
            return Addition(1, 1, row)
        case Placed(row, grid):
            _require_grid(grid)
            return Addition(grid.lo, grid.hi, row)
        case Squared(row, grid, shift):
            top = top_of(grid, shift)
            return Addition(-top, top, row)
        case Paired(_, grid, _, other):
            _require_grid(other)
            return _own(grid, place)
        case Distinct():
            return Addition(0, 1, place)
        case PersonRows(_, most):
            if most < 1:
                raise Refused("a number of rows")
            return Addition(0, most, place)
        case PersonTotal(of):
            if isinstance(of, Squared):
                top = top_of(of.grid, of.shift)
                return Addition(-top, top, place)
            return _own(of.grid, place)


def _own(grid: Grid, place: int) -> Addition:
    """A number on a grid, or nothing, for reasons that no other table shares."""
    _require_grid(grid)
    return Addition(grid.lo, grid.hi, place)


def _require_grid(grid: Grid) -> None:
    if grid.lo > grid.hi or grid.step <= 0:
        raise Refused("a grid")


def top_of(grid: Grid, shift: int) -> int:
    """The largest shortened square on a grid; see `Squared`."""
    _require_grid(grid)
    if not 0 <= shift <= 1 << 12:
        raise Refused("a shift of squares")
    return max(1, max(-grid.lo, grid.hi) ** 2 >> shift)


def cells_in(cells: Cells | OfPeople | None) -> int:
    """How many cells a group has."""
    match cells:
        case None:
            return 1
        case OfPeople(of):
            return cells_in(of)
        case Edges(_, edges, other):
            if any(a >= b for a, b in zip(edges, edges[1:], strict=False)):
                raise Refused("edges that do not increase")
            size = len(edges) - 1 + other
        case Values(_, listed, other):
            if len({*listed}) != len(listed):
                raise Refused("a value is listed twice")
            size = len(listed) + other
        case Points(_, _, step, size):
            if step <= 0:
                raise Refused("points")
        case Between(_, candidates):
            if any(a >= b for a, b in zip(candidates, candidates[1:], strict=False)):
                raise Refused("candidates that do not increase")
            size = 2 * len(candidates) + 1
    if size < 1:
        raise Refused("no cells")
    return size


def cell_rows(cells: Cells | OfPeople | None) -> list[Row]:
    """The expressions that say in which cell a row is."""
    if cells is None:
        return []
    return cell_rows(cells.cells) if isinstance(cells, OfPeople) else [cells.row]


@dataclass(frozen=True)
class Moves:
    """How far one row moves the numbers of one entry of a vector.

    `widths` is for a row that comes or goes, `stays` for one that stays and changes, each the most
    for that number alone. The norms are for all numbers of a row that stays.
    """

    widths: tuple[int, ...]
    stays: tuple[int, ...]
    stays_l1: int
    stays_squares: int


def moves_of(additions: Sequence[Addition], matrix: Sequence[Sequence[int]]) -> Moves:
    """The moves of the numbers with these factors.

    Proof, for a row that stays: it takes away one addition and makes another. Numbers that need no
    expression change by at most the length of their interval. Numbers that need one are changed
    where the row has a value before, or after, or both. With a value before and after, a number
    changes by at most the length of its interval; with one of them, by at most its largest
    addition. Expressions are independent, so what they change adds up; numbers that need several
    are taken together, each with the most that it can change in any case. No number changes by more
    than twice what one addition moves it.
    """
    widths = tuple(_width(factors, additions) for factors in matrix)
    needs = [
        frozenset(
            a.needs for f, a in zip(factors, additions, strict=True) if f and a.needs is not None
        )
        for factors in matrix
    ]
    stays = [0] * len(widths)
    l1 = squares = 0
    for group in _together(needs):
        mine = [j for j, need in enumerate(needs) if need & group]
        both, once = [], []
        for j in mine:
            terms = [
                (f, a)
                for f, a in zip(matrix[j], additions, strict=True)
                if f and a.needs is not None
            ]
            several = len(needs[j]) > 1
            length = sum(
                abs(f) * (max(0, a.hi) - min(0, a.lo) if several else a.hi - a.lo) for f, a in terms
            )
            most = sum(abs(f) * max(abs(a.lo), abs(a.hi)) for f, a in terms)
            both.append(min(length, 2 * widths[j]))
            once.append(min(most, 2 * widths[j]))
        if len(group) > 1:
            both = once = [max(pair) for pair in zip(both, once, strict=True)]
        for j, pair in zip(mine, zip(both, once, strict=True), strict=True):
            stays[j] = max(pair)
        l1 += max(sum(both), sum(once))
        squares += max(sum(b * b for b in both), sum(o * o for o in once))
    return Moves(widths, tuple(stays), l1, squares)


def _width(factors: Sequence[int], additions: Sequence[Addition]) -> int:
    """The most that a number moves with a row that comes or goes."""
    low = high = 0
    for need in dict.fromkeys(a.needs for a in additions):
        terms = [(f, a) for f, a in zip(factors, additions, strict=True) if a.needs == need]
        least = sum(min(f * a.lo, f * a.hi) for f, a in terms)
        most = sum(max(f * a.lo, f * a.hi) for f, a in terms)
        low += least if need is None else min(0, least)
        high += most if need is None else max(0, most)
    return max(-low, high)


def _together(needs: Sequence[frozenset[object]]) -> list[frozenset[object]]:
    """The expressions that numbers need, in one set where a number needs several of them."""
    found: list[frozenset[object]] = []
    for group in filter(None, needs):
        apart = [f for f in found if not f & group]
        found = [*apart, frozenset().union(group, *(f for f in found if f & group))]
    return found


@dataclass(frozen=True)
class Norms:
    """How far one individual moves a vector: its norms, and `boxes` times the box of half-widths
    `box`. With `twice` a row that stays makes both its moves in one box.
    """

    l1: int
    l2_squared: int
    linf: int
    boxes: int
    box: tuple[int, ...]
    twice: bool


def norms_of(plan: Plan, facts: Sequence[Facts], vector: Vector) -> Norms:
    """The norms of a vector over all its entries."""
    tables = [_table(plan, place) for place in vector.tables]
    if not tables or not vector.matrix:
        raise Refused("a vector without numbers")
    first = tables[0]
    same = [(t.frame, t.keys, t.cells, is_of_people(t)) for t in tables]
    if any(one != same[0] for one in same):
        raise Refused("tables of other rows in one vector")
    if any(len(factors) != len(tables) for factors in vector.matrix):
        raise Refused("a matrix of another size")
    frame = _facts(facts, first.frame)
    _require_rows(frame, tables)
    if frame.norm is not None and any(isinstance(t.adds, Distinct) for t in tables):
        raise Refused("numbers of different values cannot be weighed")
    cells = cells_in(first.cells)
    if not 0 <= vector.run <= cells:
        raise Refused("runs of cells")
    changes = plan.neighbours == "change-one"
    by_cell = vector.run == 1
    reach = reach_of(frame, first, vector.kept, by_cell, changes)
    moves = moves_of([addition_of(t, i) for i, t in enumerate(tables)], vector.matrix)
    runs = 1 if vector.run == 0 else -(-cells // vector.run)
    if changes:
        entries = runs * _entries(first, vector.kept)
        norms = _of_changes(frame, first, reach, moves, entries)
    else:
        norms = _of_coming(reach, moves, runs)
    return _with_total(norms, tables, reach, vector) if vector.total else norms


def _of_coming(reach: Reach, moves: Moves, runs: int) -> Norms:
    """Each row comes or goes and moves one entry by at most `widths`."""
    widths = moves.widths
    return Norms(
        reach.rows * sum(widths),
        reach.squares(runs) * sum(w * w for w in widths),
        reach.cell * max(widths),
        reach.rows,
        widths,
        twice=False,
    )


def _of_changes(frame: Facts, table: Table, reach: Reach, moves: Moves, entries: int) -> Norms:
    """Each row leaves one entry and enters another, or stays in its own and changes.

    Where rows are not split and all are there, none comes or goes. With one entry a row that is
    split may leave it or enter it. Over rows norms add up (the triangle inequality).
    """
    widths, rows = moves.widths, reach.rows
    split = table.keys is not None or table.cells is not None or not frame.complete
    vectors = 0 if not split else 2 if entries > 1 else 1
    twice = vectors < 2
    box = tuple(max(s, w * vectors) for s, w in zip(moves.stays, widths, strict=True))
    return Norms(
        rows * max(vectors * sum(widths), moves.stays_l1),
        rows * rows * max(vectors * sum(w * w for w in widths), moves.stays_squares),
        rows * max((*moves.stays, *(widths if vectors else ()))),
        rows if twice else 2 * rows,
        box if twice else widths,
        twice,
    )


def _with_total(norms: Norms, tables: Sequence[Table], reach: Reach, vector: Vector) -> Norms:
    """With the sum of all entries, where rows change and add numbers of one sign, b at most.

    Proof: a row that moves takes at most b from one entry and adds at most b to another, and the
    total changes by the difference. In a row with w before and v after, both between 0 and b, L1 is
    at most w + v + |v - w| = 2 max(w, v), the sum of squares w**2 + v**2 + (v - w)**2 at most
    2 b**2. Where both are in one entry that and the total change by |v - w| each.
    """
    addition = addition_of(tables[0], 0)
    one_sign = addition.lo >= 0 or addition.hi <= 0
    if not reach.changes or vector.matrix != ((1,),) or not one_sign:
        raise Refused("a total that would cost more")
    if not norms.l1:
        return norms
    b, k = max(abs(addition.lo), abs(addition.hi)), reach.rows
    return Norms(2 * k * b, 2 * k * k * b * b, k * b, 0, (), twice=False)


def _table(plan: Plan, place: int) -> Table:
    if not 0 <= place < len(plan.tables):
        raise Refused("a table that is not there")
    return plan.tables[place]


def _facts(facts: Sequence[Facts], place: int) -> Facts:
    if not 0 <= place < len(facts):
        raise Refused("a frame that is not there")
    return facts[place]


def _entries(table: Table, kept: tuple[int, ...]) -> int:
    """How many groups there are by the kept columns."""
    if table.keys is None or not kept:
        return 1
    sizes = table.keys.sizes
    return prod(sizes[i] for i in kept) if len(sizes) == len(table.keys.by) else sizes[0]


def _require_rows(frame: Facts, tables: Sequence[Table]) -> None:
    """Refuse expressions of columns that the frame does not have."""
    for table in tables:
        for row in (*cell_rows(table.cells), *_rows_in(table)):
            if not columns_of(row) <= {*frame.columns}:
                raise Refused("an expression of a column that is not there")


def _rows_in(table: Table) -> list[Row]:
    """The expressions of what rows add."""
    adds = table.adds.of if isinstance(table.adds, PersonTotal) else table.adds
    match adds:
        case One() | People():
            return []
        case Valued(row) | Placed(row) | Squared(row) | Distinct(row):
            return [row]
        case Paired(row, _, other):
            return [row, other]
        case PersonRows(row):
            return [] if row is None else [row]
