"""How far one individual moves the numbers of a draw.

A row adds a whole number from a set to each table. Interval arithmetic over the combinations of a
draw gives how far a row moves each number, and the reach of an individual gives how many rows do.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import lcm
from operator import lt

from dpframe.kernel.frame import (
    Facts,
    GroupLimit,
    Reach,
    RowLimit,
    columns_of,
    entries_of,
    is_of_people,
    reach_of,
    require_keys,
)
from dpframe.kernel.plan import (
    Appear,
    Between,
    Call,
    Cells,
    Choice,
    Col,
    Distinct,
    DistinctPersons,
    Edges,
    Grid,
    Levels,
    Listed,
    Nights,
    Numbers,
    OfPeople,
    One,
    Paired,
    People,
    PersonRows,
    PersonTotal,
    Placed,
    Plan,
    Points,
    Progression,
    Rank,
    Ranks,
    Ratios,
    Refused,
    Reports,
    Root,
    Row,
    Running,
    Squared,
    Table,
    Tree,
    UpTo,
    Valued,
    Values,
    Vector,
    Whole,
)


@dataclass(frozen=True)
class Addition:
    """What a row adds to a table: a number from `lo` to `hi` where it has what it needs, else
    nothing. Where `needs` is None each row adds the one number `lo`, which is `hi`. Rows have a
    value of an expression for all tables that need it, or for none.
    """

    lo: int
    hi: int
    needs: object

    @property
    def largest(self) -> int:
        """The most that a row moves a number."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def length(self) -> int:
        """The length of what a row adds, which may be nothing."""
        return max(0, self.hi) - min(0, self.lo)


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
        case Distinct() | DistinctPersons():
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
    if max(-grid.lo, grid.hi) > 1 << 31:
        raise Refused("squares beyond 64 bits")
    return max(1, max(-grid.lo, grid.hi) ** 2 >> shift)


def cells_in(cells: Cells | None) -> int:
    """How many cells a group has."""
    match cells:
        case None:
            return 1
        case OfPeople(of, grid):
            _require_grid(grid)
            return cells_in(of)
        case Whole(of):
            return cells_in(of) + 1
        case UpTo(_, edges, above):
            size = _count_rising(edges) + above
        case Edges(_, edges, other):
            ends = _count_rising(edges)
            size = ends - 1 + other if ends > 1 else 0
        case Values(_, listed, other):
            if len({*listed}) != len(listed):
                raise Refused("a value is listed twice")
            size = len(listed) + other
        case Points(_, _, step, size):
            if step <= 0:
                raise Refused("points")
        case Between(_, candidates):
            size = 2 * _count_rising(candidates) + 1
    if size < 1:
        raise Refused("no cells")
    return size


def _count_rising(numbers: Numbers) -> int:
    """How many numbers there are. Refuse those that do not increase."""
    match numbers:
        case Progression(_, step, size):
            rises = step > 0 and size > 0
        case Ratios(numerators, denominator):
            size = len(numerators)
            rises = denominator > 0 and all(map(lt, numerators, numerators[1:]))
        case _:
            size = len(numbers)
            rises = all(map(lt, numbers, numbers[1:]))
    if not rises:
        raise Refused("edges or candidates that do not increase")
    return size


def cell_rows(cells: Cells | None) -> list[Row]:
    """The expressions that say in which cell a row is."""
    if cells is None:
        return []
    return cell_rows(cells.cells) if isinstance(cells, OfPeople | Whole) else [cells.row]


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

    Proof: a row that stays takes away one addition and makes another. Numbers that need no
    expression change by at most the length of their interval. Numbers that need one are changed
    where the row has a value before, or after, or both. With a value before and after, a number
    changes by at most the length of its interval; with one of them, by at most its largest
    addition. Expressions are independent, so what they change adds up; numbers that need several
    are taken together, each with the most that it can change in any case. No number changes by more
    than twice what one addition moves it.
    """
    terms = [[(f, a) for f, a in zip(factors, additions, strict=True) if f] for factors in matrix]
    needs = [frozenset(a.needs for _, a in mine if a.needs is not None) for mine in terms]
    widths = tuple(map(_width, terms))
    stays, l1, squares = [0] * len(widths), 0, 0
    for group, mine in _together(needs):
        both, once = [], []
        for j in mine:
            needing = [(f, a) for f, a in terms[j] if a.needs is not None]
            several = len(needs[j]) > 1
            length = sum(abs(f) * (a.length if several else a.hi - a.lo) for f, a in needing)
            most = sum(abs(f) * a.largest for f, a in needing)
            both.append(min(length, 2 * widths[j]))
            once.append(min(most, 2 * widths[j]))
        if len(group) > 1:
            both = once = list(map(max, both, once))
        for j, pair in zip(mine, zip(both, once, strict=True), strict=True):
            stays[j] = max(pair)
        l1 += max(sum(both), sum(once))
        squares += max(sum(b * b for b in both), sum(o * o for o in once))
    return Moves(widths, tuple(stays), l1, squares)


def _width(terms: Sequence[tuple[int, Addition]]) -> int:
    """The most that a number moves with a row that comes or goes."""
    low = high = 0
    for need in {a.needs for _, a in terms}:
        mine = [(f, a) for f, a in terms if a.needs == need]
        least = sum(min(f * a.lo, f * a.hi) for f, a in mine)
        most = sum(max(f * a.lo, f * a.hi) for f, a in mine)
        low += least if need is None else min(0, least)
        high += most if need is None else max(0, most)
    return max(-low, high)


def _together(needs: Sequence[frozenset[object]]) -> list[tuple[frozenset[object], list[int]]]:
    """The expressions that numbers need, in one set where a number needs several of them, each with
    the numbers that need one of these.
    """
    of: dict[object, frozenset[object]] = {}
    for need in needs:
        if not need <= of.get(next(iter(need), None), frozenset()):
            joined = need.union(*(of[one] for one in need if one in of))
            of |= dict.fromkeys(joined, joined)
    found: dict[frozenset[object], list[int]] = {}
    for j, need in enumerate(needs):
        if need:
            found.setdefault(of[next(iter(need))], []).append(j)
    return list(found.items())


@dataclass(frozen=True)
class Norms:
    """How far one individual moves a vector: at most `l0` numbers, its norms, and `boxes` times the
    box of half-widths `box`. With `twice` a row that stays makes both its moves in one box.
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int
    boxes: int
    box: tuple[int, ...]
    twice: bool


def norms_of(plan: Plan, facts: Sequence[Facts], what: Vector | Running | Nights | Rank) -> Norms:
    """The norms of numbers with noise, or of scores with noise, over all groups."""
    match what:
        case Vector():
            return _of_vector(plan, facts, what)
        case Running():
            return _of_running(plan, facts, what)
        case Nights():
            return _of_nights(plan, facts, what)
        case Rank():
            return _of_scores(plan, facts, what)


def _of_vector(plan: Plan, facts: Sequence[Facts], vector: Vector) -> Norms:
    tables, frame = _same_rows(plan, facts, vector.tables)
    first = tables[0]
    if not vector.matrix or any(len(factors) != len(tables) for factors in vector.matrix):
        raise Refused("a matrix of another size")
    if not all(map(any, zip(*vector.matrix, strict=True))):
        raise Refused("a table that no number needs")
    _require_one_cell(first)
    cells = cells_in(first.cells)
    if not 0 <= vector.run <= cells:
        raise Refused("runs of cells")
    changes = plan.neighbours == "change-one"
    reach = reach_of(frame, first, vector.kept, vector.run == 1, changes)
    moves = moves_of([addition_of(t, i) for i, t in enumerate(tables)], vector.matrix)
    runs = 1 if vector.run == 0 else -(-cells // vector.run)
    groups = entries_of(first.keys, vector.kept)
    entries = None if groups is None else groups * runs
    if changes:
        norms = _of_changes(frame, first, reach, moves, entries)
    else:
        norms = _of_coming(reach, moves, runs, entries)
    return _with_total(norms, tables, reach, vector) if vector.total else norms


def _same_rows(
    plan: Plan, facts: Sequence[Facts], places: Sequence[int]
) -> tuple[list[Table], Facts]:
    """Tables that have the same rows, keys and cells, and what is known of their frame."""
    tables = [_table(plan, place) for place in places]
    if not tables:
        raise Refused("a draw without tables")
    same = [(t.frame, t.keys, t.cells, is_of_people(t)) for t in tables]
    if any(one != same[0] for one in same):
        raise Refused("tables of other rows in one draw")
    if not 0 <= tables[0].frame < len(facts):
        raise Refused("a frame that is not there")
    frame = facts[tables[0].frame]
    _require_rows(frame, tables)
    if frame.norm is not None and any(
        isinstance(t.adds, Distinct | DistinctPersons) for t in tables
    ):
        raise Refused("numbers of different values cannot be weighed")
    return tables, frame


def _of_running(plan: Plan, facts: Sequence[Facts], running: Running) -> Norms:
    """Sums over cells with factors.

    Proof: a row is in one cell of a group at most, and adds at most its largest addition times a
    column of factors. The column of a later cell is a part of that of the first one. Rows in one
    group add up, groups are disjoint, and rows of one group are all in the first cell at worst. A
    row that changes takes away one column and adds another, perhaps in another group.
    """
    (table,), frame = _same_rows(plan, facts, (running.table,))
    column, cells = running.column, cells_in(table.cells)
    falls = all(a >= b for a, b in pairwise(column))
    if len(column) != cells or not falls or column[-1] < 0 or table.cells is None:
        raise Refused("factors of cells")
    addition = addition_of(table, 0)
    if addition.lo < 0:
        raise Refused("factors of cells where rows add numbers of both signs")
    _require_one_cell(table)
    changes = plan.neighbours == "change-one"
    reach = reach_of(frame, table, all_keys(table), False, changes)
    b, k, own = addition.hi, reach.rows, (sum(column), sum(c * c for c in column))
    if not changes:
        moved = reach.groups * cells, k * b * own[0], reach.squares(1) * b * b * own[1]
        return Norms(*moved, reach.most * b * column[0], 0, (), twice=False)
    if entries_of(table.keys, all_keys(table)) == 1:
        moved = cells, k * b * _change_norms(column)[0], k * k * b * b * _change_norms(column)[1]
    else:
        moved = 2 * k * cells, 2 * k * b * own[0], 2 * k * k * b * b * own[1]
    return Norms(*moved, k * b * column[0], 0, (), twice=False)


def _of_scores(plan: Plan, facts: Sequence[Facts], rank: Rank) -> Norms:
    """The scores of all candidates of a quantile. Each moves as `_of_ranks` says: by max(a, b - a)
    with a row that comes or goes, by b with one that stays in its group.
    """
    (table,), frame = _same_rows(plan, facts, (rank.table,))
    _require_ranks(table)
    if frame.norm is not None or not isinstance(table.cells, Between):
        raise Refused("scores of other candidates than listed ones")
    a, b = _quantile(rank)
    n, comes, kept = _count_rising(table.cells.candidates), max(a, b - a), all_keys(table)
    changes = plan.neighbours == "change-one"
    reach = reach_of(frame, table, kept, True, changes)
    k = reach.rows
    if not changes:
        squares = n * reach.squares(1) * comes**2
        return _scores(n * reach.groups, n * k * comes, squares, reach.most * comes)
    if entries_of(table.keys, kept) == 1:
        return _scores(n, n * k * b, n * k * k * b * b, k * b)
    squares = n * k * k * max(2 * comes**2, b * b)
    return _scores(2 * n * k, 2 * n * k * comes, squares, k * b)


def _scores(l0: int, l1: int, l2_squared: int, linf: int) -> Norms:
    return Norms(l0, l1, l2_squared, linf, 0, (), twice=False)


def _quantile(rank: Rank) -> tuple[int, int]:
    """The quantile as a / b."""
    if not 0 <= rank.quantile <= 1:
        raise Refused("a quantile")
    if rank.quantile.denominator > 1 << 30:
        raise Refused("ranks beyond 64 bits")
    return rank.quantile.numerator, rank.quantile.denominator


@lru_cache(maxsize=64)
def _change_norms(column: tuple[int, ...]) -> tuple[int, int]:
    """The largest L1 norm, and the largest sum of squares, of a column or of the difference of two.

    Proof: two columns that are s cells from each other differ most where the first begins in the
    first cell, because what follows is cut off later. With w the factors, which fall, and S(k) the
    sum of the first k, the difference has the L1 norm 2 S(s) + S(n - s) - S(n). Its sum of squares
    is that of both less twice the sum of w(u) w(u - s). These sums are digits of a product.
    """
    size = len(column)
    width = (2 * column[0].bit_length() + size.bit_length() + 8) // 8  # bytes of a digit
    forward, backward = (
        int.from_bytes(b"".join(c.to_bytes(width, "little") for c in digits), "little")
        for digits in (column, column[::-1])
    )
    product = (forward * backward).to_bytes(2 * size * width, "little")
    first, squares = [0], [0]
    for c in column:
        first.append(first[-1] + c)
        squares.append(squares[-1] + c * c)
    l1, square = first[size], squares[size]
    for s in range(1, size):
        place = width * (size - 1 + s)
        both = int.from_bytes(product[place : place + width], "little")
        l1 = max(l1, 2 * first[s] + first[size - s] - first[size])
        square = max(square, squares[size] + squares[size - s] - 2 * both)
    return l1, square


@dataclass(frozen=True)
class Column:
    """How far all nights together move, where an individual adds 1 to each of a few periods."""

    sums: int
    l1: int
    l2_squared: int
    linf: int


@dataclass(frozen=True)
class Through:
    """What an individual has through all nights: `rows` rows in each of `keys` keys in each of
    `run` periods.
    """

    keys: int
    rows: int
    run: int


def _of_nights(plan: Plan, facts: Sequence[Facts], nights: Nights) -> Norms:
    """Sums of periods, drawn night after night of a frame that grows.

    Proof: fix all that was drawn before a night. The sums of the night then move by a fixed vector,
    and get new noise. Let the squares of these vectors add up to at most a bound on every path.
    Then all nights together cost what one vector with this bound costs. The rows of a night may
    depend on earlier results (Feldman and Zrnic 2021, Theorem 3.1; Denisov, McMahan, Rush, Smith
    and Thakurta 2022, Theorem 2.1). The same holds for absolute values and Laplace noise. A row
    adds to the sums of a night its number times the factor of its period, or 0 while it is not
    there. That is never more than the column of its period has there. Rows of one individual add
    up. `Rows` counts the rows of an individual over all nights. For persons, `through_all_nights`
    bounds them.
    """
    (table,), frame = _same_rows(plan, facts, (nights.table,))
    keys, kept = table.keys, all_keys(table)
    if not isinstance(keys, Listed) or table.cells is not None or frame.norm is not None:
        raise Refused("a stream by something else than listed keys")
    if not frame.alone or frame.every is not None:
        raise Refused("a stream of rows that do not stand alone")
    if not isinstance(table.adds, One | Valued | Placed | People | PersonRows | PersonTotal):
        raise Refused("sums of periods that do not add up")
    require_keys(frame, keys, kept)
    total = entries_of(keys, kept)
    if not 1 <= nights.periods <= 10_000 or total is None or total % nights.periods:
        raise Refused("the periods of a stream")
    _require_periods(frame, nights, keys.by[-1][1])
    groups, one = total // nights.periods, column_of(nights, 1)
    drawn = groups * _sums_of(nights)
    if frame.person is None:
        vector = Vector((nights.table,), ((1,),), kept, 1, total=False)
        base = _of_vector(plan, facts, vector)
        return Norms(
            min(drawn, base.l0 * one.sums),
            base.l1 * one.l1,
            base.l2_squared * one.l2_squared,
            base.linf * one.linf,
            0,
            (),
            twice=False,
        )
    if plan.neighbours != "add-remove":
        raise Refused("persons come and go")
    b = addition_of(table, 0).largest
    ways = [
        (way.keys, way.rows, way.run, column_of(nights, way.run))
        for way in through_all_nights(frame, table, nights, groups)
    ]
    if not ways:
        raise Refused("no limit holds through all nights")
    return Norms(
        min(drawn, *(keys * rows * run * one.sums for keys, rows, run, _ in ways)),
        min(b * keys * rows * most.l1 for keys, rows, _, most in ways),
        min(b * b * keys * rows * rows * most.l2_squared for keys, rows, _, most in ways),
        min(b * rows * most.linf for _, rows, _, most in ways),
        0,
        (),
        twice=False,
    )


DAYS: Mapping[str, int] = {"1d": 1, "1w": 7, "1mo": 31, "1q": 92, "1y": 366}
"""How many days a period has at most."""


def _require_periods(frame: Facts, nights: Nights, row: Row) -> None:
    """Refuse a last key that is not the period of a date."""
    try:
        date.fromisoformat(nights.start)
    except ValueError:
        raise Refused("a stream that begins on no date") from None
    if nights.dtype != dict(frame.types).get(nights.by, nights.dtype):
        raise Refused("the dates of a stream have another type")
    day: Row = Col(nights.by)
    if nights.dtype != "Date":
        day = Call("dt_date", (day,), "[]")
    match row:
        case Call("dt_truncate", (inner,), constants) if nights.every != "1d":
            right = inner == day and constants == f'[["every","{nights.every}"]]'
        case _:
            right = nights.every == "1d" and row == day
    if not right:
        raise Refused("periods by something else than the dates of a stream")


def through_all_nights(frame: Facts, table: Table, nights: Nights, keys: int) -> list[Through]:
    """What a person has through all nights, in as many ways as limits say. Each way holds.

    A limit that chooses rows by a hash may keep other rows every night. Two things stay the same.
    The rows of one date have one factor, whichever of them are kept. The first rows or dates of a
    person only become earlier while no row vanishes or gets another date. The owner of the data
    declares that none does.

    Proof for the first n rows: as rows are only added, the date in place i of a person's rows in
    their order never becomes later. Once it is due it stays due, and its factor on a later night is
    at most that of the date which was due first, because factors fall. So each place moves all
    nights by no more than one column. For the first g dates: on each night the ages of a person's
    dates are at least those of g fixed dates, for the i-th date before a later one is at least i
    days earlier. In sums of a tree a place is in one sum of each width at most, because the next
    sum begins after this one has ended. Rows of one date with m rows in all move at most what they
    move in one key, and m rows in each of K keys K m**2 times the squares of one row.
    """
    whole_day = nights.dtype == "Date"
    once = is_of_people(table)
    firsts = [x for x in frame.limits if x.first == nights.by and _is_utc(nights.dtype)]
    found = [Through(1, x.n, 1) for x in firsts if isinstance(x, RowLimit) and not x.by]
    dates = [x.n for x in firsts if isinstance(x, GroupLimit) and x.by == {nights.by} and whole_day]
    days = DAYS[nights.every]
    run = min([nights.periods, *dates]) if days == 1 else nights.periods
    named = () if table.keys is None else table.keys.by[:-1]
    plain = {row.name for _, row in named if isinstance(row, Col)}
    each = [Through(keys, 1, 1)] if once else []
    for limit in frame.limits:
        if not whole_day or not isinstance(limit, RowLimit) or nights.by not in limit.by:
            continue
        if limit.by == {nights.by}:
            each.append(Through(min(keys, limit.n), 1, 1) if once else Through(1, limit.n, 1))
        elif limit.by <= plain | {nights.by} and not once:
            each.append(Through(keys, limit.n, 1))
    for one in each:  # in each key of each period once, however many dates the period has
        rows = 1 if once and one.keys == keys else one.rows * days
        found.append(Through(one.keys, rows, run))
        if days > 1:
            found += [Through(1, one.keys * one.rows * n, 1) for n in dates]
    return found


def _is_utc(dtype: str) -> bool:
    """Whether times in order have their dates in order. Clocks of other zones go back."""
    return dtype == "Date" or "," not in dtype or dtype.endswith(", UTC)")


def column_of(nights: Nights, run: int) -> Column:
    """The norms of all nights for one row in each of at most `run` periods.

    Proof: the periods' columns have no negative factor, and the products of two columns are largest
    where both are as early and as close to each other as possible. So all norms are largest for the
    first periods.
    """
    run = min(run, nights.periods)
    match nights.sums:
        case Root(column):
            return _root_column(column, nights.periods, run)
        case Tree(branching, levels):
            if branching < 2 or not 1 <= levels <= 64:
                raise Refused("a tree of periods")
            # a period is in one sum of each width at most
            return Column(levels, run * levels, run * run * levels, run)


@lru_cache(maxsize=64)
def _root_column(column: tuple[int, ...], periods: int, run: int) -> Column:
    if len(column) != periods or column[-1] < 0 or any(a < b for a, b in pairwise(column)):
        raise Refused("factors of periods")
    sums, total = list[int](), 0
    for t, factor in enumerate(column):
        total += factor - (column[t - run] if t >= run else 0)
        sums.append(total)
    return Column(periods, sum(sums), sum(s * s for s in sums), max(sums))


def _sums_of(nights: Nights) -> int:
    """How many sums all nights draw for one value of the other keys."""
    match nights.sums:
        case Root():
            return nights.periods
        case Tree(branching, levels):
            return sum(nights.periods // branching**level for level in range(min(levels, 64)))


def _require_one_cell(table: Table) -> None:
    """Refuse individuals who may be in several cells of a group."""
    if is_of_people(table) and table.cells is not None and not isinstance(table.cells, OfPeople):
        raise Refused("one individual may be in several cells")


def all_keys(table: Table) -> tuple[int, ...]:
    """All key columns of a table."""
    return tuple(range(0 if table.keys is None else len(table.keys.by)))


def _of_coming(reach: Reach, moves: Moves, runs: int, entries: int | None) -> Norms:
    """Each row comes or goes and moves one entry by at most the widths w.

    Proof: r rows, at most m of them in one entry, add up. L1 is at most r sum(w), Linf at most
    m max(w). The sum of squares is at most sum(w**2) times `Reach.squares`, which adds up the
    squares of the numbers of rows in entries. There are no more rows than all cells of all groups
    hold.
    """
    widths, most = moves.widths, min(reach.rows, reach.groups * runs)
    rows = min(reach.rows, reach.groups * runs * reach.cell)
    return Norms(
        len(widths) * (most if entries is None else min(most, entries)),
        rows * sum(widths),
        reach.squares(runs) * sum(w * w for w in widths),
        reach.cell * max(widths),
        rows,
        widths,
        twice=False,
    )


def _of_changes(
    frame: Facts, table: Table, reach: Reach, moves: Moves, entries: int | None
) -> Norms:
    """Each row leaves one entry and enters another, or stays in its own and changes.

    Proof: a row that leaves moves two entries by at most the widths w each, so L1 is at most
    2 sum(w) and the sum of squares at most 2 sum(w**2). One that stays moves its own as `moves_of`
    has it. With one entry, a row that is split may leave it or enter it. Where rows are not split
    and all are there, none comes or goes. The changes of k rows add up, and by the triangle
    inequality all norms are at most k times those of one.
    """
    widths, rows = moves.widths, reach.rows
    split = table.keys is not None or table.cells is not None or not frame.complete
    vectors = 0 if not split else 2 if entries is None or entries > 1 else 1
    twice = vectors < 2
    box = tuple(max(s, w * vectors) for s, w in zip(moves.stays, widths, strict=True))
    moved = 2 * rows if entries is None else min(2 * rows, entries)
    return Norms(
        len(widths) * moved,
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
    return Norms(norms.l0 + 1, 2 * k * b, 2 * k * k * b * b, k * b, 0, (), twice=False)


def _table(plan: Plan, place: int) -> Table:
    if not 0 <= place < len(plan.tables):
        raise Refused("a table that is not there")
    return plan.tables[place]


@dataclass(frozen=True)
class Ranges:
    """How far one individual moves scores of candidates against each other. The changes in a group
    have a range. Here are the largest sum of ranges over groups, the largest sum of their squares,
    the largest range, and in how many groups there are changes.
    """

    l1: Fraction
    squares: Fraction
    linf: Fraction
    groups: int

    @property
    def are_known(self) -> bool:
        """Whether each range is at most one of those of `apart`, or all are parts of one."""
        return self.l1 == self.linf or self.l1 == self.groups * self.linf


def ranges_of(plan: Plan, facts: Sequence[Facts], what: Choice | Rank | Ranks | Levels) -> Ranges:
    """The ranges of the scores of a choice, or of one round or level."""
    places = what.tables if isinstance(what, Choice) else (what.table,)
    tables, frame = _same_rows(plan, facts, places)
    if frame.norm is not None:
        raise Refused("scores of rows that are weighed")
    first, changes = tables[0], plan.neighbours == "change-one"
    cells_in(first.cells)  # refuses malformed ones
    _require_room(tables)
    reach = reach_of(frame, first, all_keys(first), True, changes)
    match what:
        case Choice(_, "cells" | "groups") if len(tables) != 1:
            raise Refused("a choice by the numbers of several tables")
        case Choice(_, "cells"):
            return _of_cells(first, reach)
        case Choice(_, "groups"):
            return _of_groups(first, reach)
        case Choice():
            return _of_tables(tables, reach)
        case Rank(_, quantile):
            a, b = _quantile(what)
            ways = 1 if quantile in (0, 1) else 2
            return _of_ranks(first, reach, ways * max(a, b - a), ways * b)
        case Ranks(_, quantiles):
            row = parts_of_row(quantiles)
            ends = (Fraction(0), *quantiles, Fraction(1))
            least = min(b - a for a, b in pairwise(ends))
            return _of_ranks(first, reach, int(4 * row * (1 - least)), 4 * row)
        case Levels(_, quantiles, levels):
            _require_ranks(first)
            choices = level_choices(quantiles, levels, changes, first.keys is None).values()
            each = max(choice.range for choice in choices) * parts_of_row(quantiles)
            if changes:
                return _in_one(reach.rows * each)
            return _over_groups(reach, each)


def _require_room(tables: Sequence[Table]) -> None:
    """Refuse scores that may pass 64 bits with fewer than 2**32 rows. A sum with noise may wrap, as
    the noise does; of two scores that wrap the wrong one would win.
    """
    for place, table in enumerate(tables):
        addition = addition_of(table, place)
        if max(-addition.lo, addition.hi) > 1 << 31:
            raise Refused("scores beyond 64 bits")


def parts_of_row(quantiles: Sequence[Fraction]) -> int:
    """In how many parts a row is counted, so that all ranks are whole; see `_require_room`."""
    ends = (Fraction(0), *quantiles, Fraction(1))
    if not quantiles or any(a > b for a, b in pairwise(ends)):
        raise Refused("quantiles that do not rise")
    parts = lcm(*(q.denominator for q in quantiles))
    if parts > 1 << 30:
        raise Refused("ranks beyond 64 bits")
    return parts


@dataclass(frozen=True)
class LevelChoice:
    """One choice of `Levels`: a quantile of the rows between two others, `lower` and `upper`, which
    are -1 where there is no other. A row moves its scores against each other by `range` rows at
    most.
    """

    lower: int
    upper: int
    quantile: Fraction
    range: Fraction


def level_choices(
    quantiles: Sequence[Fraction], levels: Sequence[Sequence[int]], changes: bool, alone: bool
) -> dict[int, LevelChoice]:
    """The choice of each quantile.

    Proof: the choices of one level are among disjoint sets of rows, so a row that comes or goes
    moves the scores of one of them, as `_of_ranks` says. A row that changes may leave the rows of
    one choice for those of another and count in both, or stay within one: at most twice as much in
    all. Where there is only one choice, of all rows, it stays within it.
    """
    parts_of_row(quantiles)
    if sorted(i for level in levels for i in level) != [*range(len(quantiles))]:
        raise Refused("levels that do not have each quantile once")
    found, known = dict[int, LevelChoice](), list[int]()
    for number, level in enumerate(levels):
        ends = (-1, *known, -1)  # of no quantile
        around = [(ends[at], ends[at + 1]) for at in (bisect(known, i) for i in level)]
        if len({*around}) != len(level):
            raise Refused("choices of one level among the same rows")
        for i, (lower, upper) in zip(level, around, strict=True):
            low = Fraction(0) if lower < 0 else quantiles[lower]
            high = Fraction(1) if upper < 0 else quantiles[upper]
            if low >= high:
                raise Refused("a quantile of no rows")
            q = (quantiles[i] - low) / (high - low)
            comes = Fraction(1) if q in (0, 1) else 2 * max(q, 1 - q)
            only = alone and number == 0
            stays = Fraction(1 if q in (0, 1) else 2) if only else 2 * comes
            found[i] = LevelChoice(lower, upper, q, stays if changes else comes)
        known = sorted((*known, *level))
    return found


def reporters(plan: Plan, facts: Sequence[Facts], reports: Reports) -> tuple[int, int]:
    """How many rows of an individual report, and how many cells they may report. Each row reports,
    in both neighbours, so that who reports says nothing.
    """
    (table,), frame = _same_rows(plan, facts, (reports.table,))
    cells = table.cells
    covers = isinstance(cells, Whole) or (isinstance(cells, Edges | Values) and cells.other)
    if plan.neighbours != "change-one" or not frame.complete or table.keys is not None:
        raise Refused("reports of rows that may come or go")
    if not isinstance(table.adds, One) or not covers:
        raise Refused("reports of rows that are in no cell")
    return frame.rows, cells_in(cells)


def count_groups(plan: Plan, facts: Sequence[Facts], appear: Appear) -> int:
    """In how many groups the number of individuals changes with one of them, by 1 in each: a row
    that changes may leave one group for another.
    """
    (table,), frame = _same_rows(plan, facts, (appear.table,))
    if table.keys is None or table.cells is not None or frame.norm is not None:
        raise Refused("groups that appear by something else than their rows or individuals")
    changes = plan.neighbours == "change-one"
    reach = reach_of(frame, table, all_keys(table), False, changes)
    of_people = isinstance(table.adds, People)
    if not (of_people or isinstance(table.adds, One)):
        raise Refused("groups that appear by something else than their rows or individuals")
    if appear.rows < (1 if of_people else max(1, reach.most)):
        raise Refused("an individual may have more rows in a group")
    return 2 * reach.groups if changes else reach.groups


def weights_of(plan: Plan, facts: Sequence[Facts], appear: Appear) -> Reach:
    """The reach of one individual's weights."""
    (table,), frame = _same_rows(plan, facts, (appear.table,))
    if table.keys is None or table.cells is not None or not isinstance(table.adds, People):
        raise Refused("groups that appear by something else than their individuals")
    if appear.rows != 1:
        raise Refused("an individual counts once in each group")
    return reach_of(frame, table, all_keys(table), False, plan.neighbours == "change-one")


def _of_cells(table: Table, reach: Reach) -> Ranges:
    """Each row moves the score of one cell by at most b. Rows of one group come or go together, so
    m of them move scores against each other by m b, and by no more than c times the length of what
    a row adds, where a cell has c of them. A row that changes takes b from one cell and gives it to
    another. An individual that adds once to each of several cells adds within that length.
    """
    if table.cells is None:
        raise Refused("a choice among no cells")
    addition = addition_of(table, 0)
    b, length = addition.largest, addition.length
    if reach.changes:
        return _in_one(2 * reach.rows * b)
    if is_of_people(table) and not isinstance(table.cells, OfPeople):
        return _spread(reach.groups * length, length, reach.groups)
    largest = min(reach.most * b, reach.cell * length)
    return _spread(min(reach.rows * b, reach.groups * largest), largest, reach.groups)


def _of_groups(table: Table, reach: Reach) -> Ranges:
    """One choice, whose candidates are groups: rows move the scores of several."""
    if table.cells is not None or table.keys is None:
        raise Refused("a choice among no groups")
    addition = addition_of(table, 0)
    if reach.changes:
        return _in_one(2 * reach.rows * addition.largest)
    return _in_one(min(reach.rows * addition.largest, reach.most * addition.length))


def _of_tables(tables: Sequence[Table], reach: Reach) -> Ranges:
    """Each row moves the score of every table, between the ends of what it adds, or 0."""
    if tables[0].cells is not None:
        raise Refused("a choice among tables of cells")
    additions = [addition_of(table, place) for place, table in enumerate(tables)]
    low, high = min(a.lo for a in additions), max(a.hi for a in additions)
    length = max(0, high) - min(0, low)
    if reach.changes:
        return _in_one(2 * reach.rows * length)
    return _over_groups(reach, Fraction(length))


def _of_ranks(table: Table, reach: Reach, comes: int, stays: int) -> Ranges:
    """Ranks in the cells of a group, by whole numbers of rows in them. A row that comes or goes
    moves scores against each other by at most `comes`, and one that stays in its group by at most
    `stays`.

    Proof for one quantile: a row adds -a or b - a, or a - b or a, to either side of the score. So
    the score moves by at most max(a, b - a), and two scores may move in opposite ways. For q = 0
    and 1 all move one way. A row that changes its cell moves a score by at most b. For a tuple: a
    row that comes adds 1 - d to the excess of one part and takes d from each other part, in all
    2 (1 - d), with d what the narrowest part should have. One that changes takes 1 from a part and
    brings it to another.
    """
    _require_ranks(table)
    if not reach.changes:
        return _over_groups(reach, Fraction(comes))
    one, largest = reach.rows * comes, reach.rows * stays
    if table.keys is None:
        return _in_one(largest)
    squares = max(largest * largest, 2 * one * one)
    total, most = Fraction(max(2 * one, largest)), Fraction(max(one, largest))
    return Ranges(total, Fraction(squares), most, 2 * reach.rows)


def _require_ranks(table: Table) -> None:
    """Refuse ranks of anything but rows, or individuals, in cells that have an order."""
    of_people = isinstance(table.cells, OfPeople)
    if not isinstance(table.adds, People if of_people else One):
        raise Refused("ranks of something else than rows or individuals in cells")
    cells = table.cells.cells if isinstance(table.cells, OfPeople) else table.cells
    if not isinstance(cells, Points | Between):
        raise Refused("ranks in cells that have no order")


def _in_one(total: int | Fraction) -> Ranges:
    """All of it in one group."""
    return Ranges(Fraction(total), Fraction(total * total), Fraction(total), 1)


def _over_groups(reach: Reach, each: Fraction) -> Ranges:
    """Each row moves scores against each other by this much in its group."""
    squares = reach.squares(1) * each * each
    return Ranges(reach.rows * each, squares, reach.most * each, reach.groups)


def _spread(total: int, largest: int, groups: int) -> Ranges:
    """At most `largest` in each group: squares are largest in as few groups as possible."""
    full, left = divmod(total, largest) if largest else (0, 0)
    squares = full * largest**2 + left**2
    return Ranges(Fraction(total), Fraction(squares), Fraction(largest), groups)


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
        case One() | People() | DistinctPersons():
            return []
        case Valued(row) | Placed(row) | Squared(row) | Distinct(row):
            return [row]
        case Paired(row, _, other):
            return [row, other]
        case PersonRows(row):
            return [] if row is None else [row]
