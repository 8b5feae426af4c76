"""The exact query: one lazy frame per set of cells, each yielding integers per group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.cells import Cells, NumberCells
from dpframe.aggregates.measurement import CellCounts, Table
from dpframe.aggregates.statistics import (
    GridSum,
    RowCount,
    SquareSum,
    Statistic,
    UnitStatistic,
    ValueCount,
    is_counted_by,
)
from dpframe.core.dtypes import Columns, Domain, DType, columns
from dpframe.core.tree import Call, Change, Column, HasExprs, Literal, Named, Tree
from dpframe.core.windows import Windows
from dpframe.errors import require
from dpframe.frames.facts import FrameFacts
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.partition import windows_read
from dpframe.frames.relation import Binary, FramePart, Relation
from dpframe.frames.sampling import new_name, owner_columns, within_windows
from dpframe.lower.pair_limits import (
    UNIT,
    PairLimit,
    RowLimit,
    adds_up,
    limit_on_pairs,
    limit_on_rows_of_pairs,
    owner_names,
)
from dpframe.lower.pairs import (
    Pairs,
    Weighing,
    beside_name,
    by_columns,
    in_batches,
    in_memory,
    listed_keys,
    number_rows,
    packable,
    weighing_of,
)
from dpframe.lower.together import sortable
from dpframe.rows.fold import domain, lower
from dpframe.rows.layouts import grouped, grouped_type, in_order, unordered
from dpframe.rows.operation import Namespace

# Operands that a lowered operation needs several times, computed once, as columns before it.
#
# An operation may have its operand several times in its lowered form: a quotient looks whether the
# divisor is zero before it divides. Nested a few times, such forms double at each level, and
# engines take time and memory exponential in the depth, in which they write, optimise and compute
# them. So an operand that would be repeated much becomes a separate column in an earlier step. The
# lowered expressions of a query grow in proportion to the analyst's text, for any nesting. Values
# are the same: what is read is a column of the results of the same row operations
# (docs/decisions/0015-operands-that-are-bound.md).

_FEW = 8
"""How many more operands than it was given a lowered operation may have, before these are bound."""
_FLAT = 3
"""Trees of fewer levels are lowered as they are."""
T = TypeVar("T")


def bind(
    frame: pl.LazyFrame, value: T, before: Columns, ns: Namespace, *, whole: bool = False
) -> tuple[pl.LazyFrame, T, Columns]:
    """The frame with a column for each operand that `value` would repeat, `value` with these
    columns in their place, and what is known of the columns then.

    Parameters
    ----------
    value
        A step, statistics, cells, or named expressions: everything that holds trees.
    whole
        Whether whole trees may become columns too, because `value` repeats them itself.
    """
    steps, value, known = bind_layers(value, before, ns, whole=whole)
    for step in steps:
        frame = frame.with_columns(*step)
    return frame, value, known


def bind_layers(
    value: T, before: Columns, ns: Namespace, *, whole: bool = False
) -> tuple[list[list[pl.Expr]], T, Columns]:
    """The same with the columns of each step that comes before, for any frame."""
    trees = [tree for tree in _exprs(value) if _is_deep(tree)]
    if not trees:
        return [], value, before
    binder = _Binder(before)
    made = {tree: binder.bind(tree, whole) for tree in trees}
    known = before
    steps = []
    for layer in binder.layers:
        steps.append([lower(n.tree, known, ns).alias(n.name) for n in layer])
        known = columns({**known, **{n.name: domain(n.tree, known) for n in layer}})
    return (
        steps,
        (_map(value, lambda tree: made.get(tree, tree)) if binder.layers else value),
        known,
    )


def bind_facts(
    frame: pl.LazyFrame, value: T, facts: FrameFacts, ns: Namespace, *, whole: bool = False
) -> tuple[pl.LazyFrame, T, FrameFacts]:
    """The same where more is known of the frame than its columns."""
    frame, value, known = bind(frame, value, facts.columns, ns, whole=whole)
    return frame, value, facts if known is facts.columns else replace(facts, columns=known)


@dataclass(slots=True)
class _Part:
    """A tree whose repeated operands are columns, and how it would be lowered.

    Parameters
    ----------
    tree
        The tree.
    lowered
        Its lowered form, with a column in place of every constant.
    size
        How often that reads a column.
    level
        How many steps have to come before it.
    """

    tree: Tree
    known: Domain
    lowered: pl.Expr
    size: int = 1
    level: int = 0


@dataclass(slots=True)
class _Binder:
    """Makes columns of operands, each once."""

    known: Columns
    layers: list[list[Named]] = field(default_factory=list)
    _names: dict[Tree, _Part] = field(default_factory=dict)

    def bind(self, tree: Tree, whole: bool) -> Tree:
        part = self._part(tree)
        return (self._column(part) if whole and part.size > _FEW else part).tree

    def _part(self, tree: Tree) -> _Part:
        if not isinstance(tree, Call):
            name = tree.name if isinstance(tree, Column) else ""
            return _Part(tree, domain(tree, self.known), pl.col(name))
        given = [self._part(arg) for arg in tree.args]
        part = self._apply(tree, given)
        if part.size > _FEW + sum(g.size for g in given):
            return self._apply(tree, [self._column(g) for g in given])
        return part

    def _apply(self, tree: Call, given: Sequence[_Part]) -> _Part:
        """The operation on these operands."""
        domains = [g.known for g in given]
        lowered = tree.operation.lower(pl, [g.lowered for g in given], domains)
        return _Part(
            Call(tree.operation, tuple(g.tree for g in given)),
            tree.operation.domain(domains),
            lowered,
            len(lowered.meta.root_names()),
            max((g.level for g in given), default=0),
        )

    def _column(self, part: _Part) -> _Part:
        """A column with the values of an expression."""
        if not isinstance(part.tree, Call):
            return part
        found = self._names.get(part.tree)
        if found is None:
            name = new_name(self.known, f"operand {len(self._names)}")
            found = _Part(Column(name), part.known, pl.col(name), 1, part.level + 1)
            self._names[part.tree] = found
            self.known = {**self.known, name: part.known}
            while len(self.layers) <= part.level:
                self.layers.append([])
            self.layers[part.level].append(Named(name, part.tree))
        return found


def _is_deep(tree: Tree, levels: int = _FLAT) -> bool:
    """Whether operations are nested this many levels deep."""
    if not isinstance(tree, Call):
        return False
    return levels == 1 or any(_is_deep(arg, levels - 1) for arg in tree.args)


def _exprs(value: object) -> tuple[Tree, ...]:
    """The expressions of a value that `bind` takes."""
    match value:
        case HasExprs():
            return value.exprs
        case Named(_, tree):
            return (tree,)
        case Column() | Literal() | Call():
            return (value,)
        case tuple():
            return tuple(tree for item in value for tree in _exprs(item))
    require(value is None, "an expression is found in each part of a query")
    return ()


def _map(value: Any, change: Change) -> Any:
    """The value with other expressions."""
    match value:
        case HasExprs():
            return value.map_exprs(change)
        case Named(name, tree):
            return Named(name, change(tree))
        case Column() | Literal() | Call():
            return change(value)
        case tuple():
            return tuple(_map(item, change) for item in value)
    return value


Frames: TypeAlias = "Mapping[int, pl.LazyFrame]"
"""Protected frames, or public ones in their place, by the token of each."""
Sources: TypeAlias = "pl.LazyFrame | Frames"
"""The same, or the only frame that a query has."""

_CELL, _TOTAL = "cell", "total"


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """One exact query.

    Parameters
    ----------
    frame
        The lazy frame; its result has the group columns ``g0, g1, ...``, the column ``cell`` where
        there are cells, and one Int64 column ``v0, v1, ...`` per statistic. Where `placed`, one
        column ``place`` stands for groups and cells.
    cells
        The cells, or None.
    statistics
        What the value columns hold.
    placed
        Whether ``place`` numbers the cells of all groups. It follows from the plan alone, so the
        results of a query over different sources can be added up.
    kept
        The columns of its groups, where it is of one of several grouping sets alone.
    later
        What groups its result, where that has a row for each row to be grouped in memory.
    by_batches
        Whether that may be done of one piece of the result after another.
    """

    frame: pl.LazyFrame
    cells: Cells | None
    statistics: tuple[Statistic, ...]
    placed: bool = False
    kept: tuple[int, ...] | None = None
    later: Pairs | CountedRows | None = None
    by_batches: bool = False

    def group(self, result: pl.DataFrame) -> pl.DataFrame:
        """The columns of groups, cells and values, of what the engine gives."""
        return result if self.later is None else self.later.group(result)

    def count(self, batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """The same of one piece after another."""
        assert isinstance(self.later, CountedRows)
        return self.later.count(batches)

    @property
    def tables(self) -> tuple[Table, ...]:
        """What the value columns are."""
        return tuple(Table(statistic, self.cells, self.kept) for statistic in self.statistics)


def lower_query(
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    source: Sources,
    ns: Namespace = pl,
    salt: int = 0,
    like: Sources | None = None,
    by_batches: bool = False,
) -> tuple[Lowered, ...]:
    """The exact query of all tables: those with the same cells come from one group-by. Tables of
    one grouping set alone are computed by its columns, as in a query of their own.

    `salt` is that of contribution limits, fresh for each release. With `like` the query has the
    form for those frames, which are not read. With `by_batches` the rows of a source may be read
    piece by piece, if only one table is made from it.
    """
    queries = list[Lowered]()
    by_batches = by_batches and len({(table.cells, table.kept) for table in tables}) == 1
    shown = source if like is None else like
    for kept in dict.fromkeys(table.kept for table in tables):
        own = [table for table in tables if table.kept == kept]
        found = _lower(relation, groups_of(groups, kept), own, source, ns, salt, shown, by_batches)
        queries += found if kept is None else [replace(one, kept=kept) for one in found]
    return tuple(queries)


def groups_of(groups: Groups | None, kept: tuple[int, ...] | None) -> Groups | None:
    """The groups of a table, which may be of one of several grouping sets alone."""
    if kept is None:
        return groups
    assert isinstance(groups, SetGroups)
    return groups.margin(kept)


def _lower(
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    source: Sources,
    ns: Namespace,
    salt: int,
    shown: Sources,
    by_batches: bool,
) -> tuple[Lowered, ...]:
    """The exact query of tables by the same groups."""
    names = [] if groups is None else group_columns(groups)
    windows = windows_read(relation, groups)
    relation, limit = limit_on_pairs(relation, groups, tables, names, salt)
    packing = ns is pl and in_memory(shown, relation)
    here = packing or (ns is pl and by_batches and in_batches(shown, relation))
    few = None
    if packing and limit is not None and sortable(_types_of_pairs(relation, groups)):
        relation, few = limit_on_rows_of_pairs(relation, limit)
    frame = lower_rows(relation, source, ns, salt, windows)
    limits = limit, weighing_of(relation, groups, names), few
    pairs = any(isinstance(table.statistic, UnitStatistic) for table in tables) or limit is not None
    if relation.facts.norm is not None:
        pairs = True
        require(all(map(adds_up, tables)), "weights count in tables that add up")
    by_cells: dict[tuple[Cells | None, bool], list[Statistic]] = {}
    for table in tables:
        of_units = isinstance(table.statistic, UnitStatistic)
        in_pairs = of_units or (pairs and adds_up(table))
        statistics = by_cells.setdefault((table.cells, in_pairs), [])
        if table.statistic not in statistics:
            statistics.append(table.statistic)
    queries = list[Lowered]()
    for (cells, in_pairs), statistics in by_cells.items():
        counted = None if in_pairs or ns is not pl else counted_rows(cells, statistics, groups)
        way = in_pairs, packing, counted, here
        query, later = _aggregate(frame, relation, groups, cells, statistics, limits, way, ns)
        batches = by_batches and not packing and isinstance(later, CountedRows)
        placed = counted is not None
        queries.append(Lowered(query, cells, tuple(statistics), placed, None, later, batches))
    return tuple(queries)


def lower_rows(
    relation: Relation,
    source: Sources,
    ns: Namespace,
    salt: int,
    windows: Windows | None = None,
) -> pl.LazyFrame:
    """The frame after all steps, without rows that belong to no individual, and without rows of
    windows that the plan does not read.
    """
    frame = source[relation.token] if isinstance(source, Mapping) else source
    if relation.source.columns:  # others could have the names that steps give to theirs
        frame = frame.select(*map(ns.col, relation.source.columns))
    identifier = relation.source.identifier
    if identifier is not None:
        frame = frame.filter(ns.col(identifier).is_not_null())
        frame = within_windows(frame, relation.source, windows, ns)
    later = [*(before for _, before in relation.steps[1:]), relation.facts]
    for (step, before), after in zip(relation.steps, later, strict=False):
        if isinstance(step, Binary):
            other = lower_rows(step.other, source, ns, salt, windows)
            frame = step.combine(frame, other, before, ns)
        else:
            parts = step.parts(before)
            known = [*(facts for _, facts in parts[1:]), after]
            for (part, facts), then in zip(parts, known, strict=True):
                frame = _apply_step(frame, part, facts, then, ns, salt)
    return frame


def _apply_step(
    frame: pl.LazyFrame,
    step: FramePart,
    before: FrameFacts,
    after: FrameFacts,
    ns: Namespace,
    salt: int,
) -> pl.LazyFrame:
    """The frame after a step, or a part of one."""
    beside, bound, known = bind_facts(frame, step, before, ns)
    if known is before:
        return step.lower(frame, before, ns, salt)
    return bound.lower(beside, known, ns, salt).select(*after.columns)


def _aggregate(
    frame: pl.LazyFrame,
    relation: Relation,
    groups: Groups | None,
    cells: Cells | None,
    statistics: Sequence[Statistic],
    limits: tuple[PairLimit | None, Weighing | None, RowLimit | None],
    way: tuple[bool, bool, CountedRows | None, bool],
    ns: Namespace,
) -> tuple[pl.LazyFrame, Pairs | CountedRows | None]:
    in_pairs, packing, counts, here = way
    by = () if groups is None else groups.by
    frame, by, facts = bind_facts(frame, by, relation.facts, ns)
    measured = cells, tuple(statistics)
    frame, (cells, statistics), facts = bind_facts(frame, measured, facts, ns, whole=True)
    relation, columns = replace(relation, facts=facts), facts.columns
    keys = [] if groups is None else group_columns(groups)
    rows = {key: key_expression(n.tree, relation, ns) for key, n in zip(keys, by, strict=True)}
    if isinstance(cells, NumberCells) and cells.of_individuals:
        return _of_totals(frame, (rows, whose_rows(relation, ns)), cells, columns, ns), None
    if cells is not None:
        if here and isinstance(counts, TalliedRows):
            return _select(frame, {_CELL: cells.numbers(columns)}, ns), counts
        rows[_CELL] = unordered(ns, cells.row(columns, ns))
        keys.append(_CELL)
    types = _types_of_pairs(relation, groups) if packing and in_pairs and cells is None else []
    rows |= _of_pairs(relation, limits[2], ns, sortable(types)) if in_pairs else {}
    own, squares, made = row_columns(statistics, columns, ns)
    rows |= own
    frame = _select(frame, rows, ns) if rows else frame
    frame = frame.with_columns(*squares) if squares else frame
    if cells is not None:
        frame = frame.filter(ns.col(_CELL).is_not_null())
        if counts is not None:
            places = places_of_rows(frame, groups, keys[:-1], cells.size)
            return (places, counts) if here else (count_places(places), None)
    if in_pairs:
        pairs = Pairs(keys, owner_names(facts), statistics, made, *limits, packable(types))
        return (frame, pairs) if sortable(types) else (by_columns(keys, *pairs.of(frame, ns)), None)
    reduced = [s.reduce(ns.col(c), ns) for s, c in zip(statistics, made, strict=True)]
    return by_columns(keys, frame, reduced), None


def _of_totals(
    frame: pl.LazyFrame,
    by: tuple[Mapping[str, pl.Expr], Mapping[str, pl.Expr]],
    cells: NumberCells,
    columns: Columns,
    ns: Namespace,
) -> pl.LazyFrame:
    """How many individuals have a total in each cell, by group.

    Parameters
    ----------
    by
        The columns for groups and for individuals.
    """
    keys, whose = by
    made = {**keys, **whose, _TOTAL: cells.totals.row(columns, ns)}
    pairs = _select(frame, made, ns).group_by([*keys, *whose])
    totals = pairs.agg(cells.totals.per_unit(ns.col(_TOTAL), ns).alias(_TOTAL))
    cell = cells.place(cells.totals.total(ns.col(_TOTAL), ns), ns)
    placed = totals.with_columns(cell.alias(_CELL))
    # individuals without a cell are dropped later, when cells are counted: an engine would expand a
    # filter here, and repeat the expression of each column that it uses thousands of times
    return by_columns([*keys, _CELL], placed, [ns.len().cast(ns.Int64)])


def _select(frame: pl.LazyFrame, rows: Mapping[str, pl.Expr], ns: Namespace) -> pl.LazyFrame:
    """A row of these columns for each row."""
    named = [expression.alias(f"__{name}") for name, expression in rows.items()]
    if not any(expression.meta.root_names() for expression in named):
        frame = frame.with_columns(*named)  # a select of constants alone would yield one row
        named = [ns.col(f"__{name}") for name in rows]
    return frame.select(*(e.alias(n) for e, n in zip(named, rows, strict=True)))


def _of_pairs(
    relation: Relation, few: RowLimit | None, ns: Namespace, later: bool
) -> dict[str, pl.Expr]:
    """The columns that identify individuals, and those that decide which rows of pairs in memory
    are kept."""
    require(later or few is None, "rows are limited where they are in memory")
    whose = whose_rows(relation, ns, later)
    return whose if few is None else whose | few.columns()


def whose_rows(relation: Relation, ns: Namespace, plain: bool = False) -> dict[str, pl.Expr]:
    """Whose row each is, in the columns that a frame of pairs has for that."""
    if plain:  # where nothing hides the column, Polars filters before it computes
        return {UNIT: ns.col(relation.facts.identifier)}
    made = (column for column, _ in owner_columns(relation.facts, ns))
    return dict(zip(owner_names(relation.facts), made, strict=True))


def _types_of_pairs(relation: Relation, groups: Groups | None) -> list[DType]:
    """The types of what makes pairs, the individual first; none where windows do as well."""
    columns = relation.facts.columns
    if relation.facts.time is not None:
        return []
    by = () if groups is None else groups.by
    types = [grouped_type(domain(named.tree, columns).dtype) for named in by]
    return [columns[str(relation.facts.identifier)].dtype, *types]


def group_columns(groups: Groups) -> list[str]:
    """The columns of an exact result that hold the keys."""
    return [f"g{i}" for i in range(len(groups.by))]


def key_expression(tree: Tree, relation: Relation, ns: Namespace) -> pl.Expr:
    """A grouping expression. Polars groups a column that it takes for sorted by its runs, and is
    right about columns of the source.
    """
    columns = relation.facts.columns
    expression = lower(tree, columns, ns)
    dtype = domain(tree, columns).dtype
    computed = not isinstance(tree, Column) or any(step.computes for step, _ in relation.steps)
    if computed or grouped_type(dtype) != dtype:
        return grouped(ns, expression, dtype)
    return expression


def count_cells(lowered: Lowered, result: pl.DataFrame, groups: Groups | None) -> list[CellCounts]:
    """The exact tables, by number of the public key; what has other keys, or is in no cell, is
    dropped.
    """
    groups = groups_of(groups, lowered.kept)
    size = 1 if groups is None else groups.size
    if lowered.placed:
        assert lowered.cells is not None
        return [counts_of_places(result, lowered.cells.size, size)]
    if lowered.cells is not None:
        result = result.filter(pl.col(_CELL).is_not_null())
    if groups is None:
        group = np.zeros(result.height, dtype=np.int64)
    else:
        result, group = number_rows(groups.keys, result, group_columns(groups))
    integers = (pl.col(f"v{i}").fill_null(0).cast(pl.Int64) for i in range(len(lowered.statistics)))
    values = [column.to_numpy() for column in result.select(integers).iter_columns()]
    if lowered.cells is None:
        return [CellCounts.of_groups(group, numbers, size) for numbers in values]
    cell = result[_CELL].cast(pl.Int64).to_numpy()
    return [CellCounts.of_cells(group, cell, numbers, size) for numbers in values]


# What the statistics of a query make of a row: a column each, or one that several share.


def row_columns(
    statistics: Sequence[Statistic], columns: Columns, ns: Namespace
) -> tuple[dict[str, pl.Expr], list[pl.Expr], list[str]]:
    """Columns that are made of rows, those that are made of these columns, and which column each
    statistic reduces.

    Squares are made of the places of the same values where these are added up as well: of these
    very integers, however an engine would come to compute a value twice.
    """
    squared = _sums_of_squares(statistics)
    counted = _counts_in_sums(statistics, squared)
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


def _sums_of_squares(statistics: Sequence[Statistic]) -> dict[int, int]:
    """Sums of squares of the unchanged values of another statistic."""
    sums = {(s.value, s.grid): i for i, s in enumerate(statistics) if isinstance(s, GridSum)}
    return {
        i: sums[s.value, s.inner]
        for i, s in enumerate(statistics)
        if isinstance(s, SquareSum) and (s.value, s.inner) in sums
    }


def _counts_in_sums(statistics: Sequence[Statistic], squared: Mapping[int, int]) -> dict[int, int]:
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


# Counts of cells from rows, without a group-by.
#
# Rows that come here, a column of a frame in memory or one piece of a file after another, are
# counted in one of two ways. Numbers that are placed in cells are placed and counted in NumPy where
# there are no groups (`dpframe.aggregates.cells`). If a table has hundreds of thousands of cells,
# most rows have their own cell, and sorting one column of integers takes a fraction of the time of
# a group-by. Then each row comes as the number of its cell among those of all groups.
#
# Where rows stay in the engine, it groups them by the same numbers, so the table has one form.
# Which way is taken follows from the plan, and from what kind of source there is: never from rows.
# How often places are put in order and added to those before follows from how many rows there are.


Integers: TypeAlias = "NDArray[np.int64]"

_MANY: Final = 1 << 17
"""From this many cells on, of all groups together, rows of groups are counted in this way."""
_DENSE: Final = 1 << 22
"""Up to this many cells each has a number in memory."""
_ROWS: Final = 1 << 24
"""This many places are put in order at a time."""
_PLACE: Final = "place"


class CountedRows(ABC):
    """How rows are counted that come here."""

    def group(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The places of cells that have rows, rising, and how many, of a column of all rows."""
        return self.count([rows])

    def count(self, batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """The same of rows that come piece by piece."""
        places, values = self._count(batches)
        return pl.DataFrame({_PLACE: places, "v0": values})

    @abstractmethod
    def _count(self, batches: Iterable[pl.DataFrame]) -> tuple[Integers, Integers]: ...


@dataclass(frozen=True, slots=True, eq=False)
class TalliedRows(CountedRows):
    """Rows that come as numbers, which are placed in cells.

    Parameters
    ----------
    cells
        These; they have a tally.
    """

    cells: Cells

    def _count(self, batches: Iterable[pl.DataFrame]) -> tuple[Integers, Integers]:
        tally = self.cells.tally()
        assert tally is not None
        for rows in batches:
            tally.add(rows.to_series())
        return _of_dense(tally.counts())


@dataclass(frozen=True, slots=True, eq=False)
class PlacedRows(CountedRows):
    """Rows that come as places of cells.

    Parameters
    ----------
    size
        How many cells all groups have together.
    """

    size: int

    def _count(self, batches: Iterable[pl.DataFrame]) -> tuple[Integers, Integers]:
        if self.size <= _DENSE:
            dense = np.zeros(self.size, np.int64)
            for rows in batches:
                np.add.at(dense, rows.to_series().to_numpy(), 1)
            return _of_dense(dense)
        sorted_ = _Sorted()
        for rows in batches:
            sorted_.add(rows.to_series())
        return sorted_.runs()


@dataclass(slots=True, eq=False)
class _Sorted:
    """Counts of places, by putting them in order."""

    _before: list[tuple[Integers, Integers]] = field(default_factory=list)
    _more: list[pl.Series] = field(default_factory=list)
    _size: int = 0

    def add(self, places: pl.Series) -> None:
        self._more.append(places)
        self._size += places.len()
        if self._size >= _ROWS:
            self._settle()

    def runs(self) -> tuple[Integers, Integers]:
        self._settle()
        return self._before[0]

    def _settle(self) -> None:
        """Put those that came in order, and add them to those before."""
        places = pl.concat(self._more) if self._more else pl.Series(dtype=pl.Int64)
        self._more, self._size = [], 0
        self._before.append(_runs(in_order(places)))
        if len(self._before) < 2:
            return
        both, values = (np.concatenate(parts) for parts in zip(*self._before, strict=True))
        order = np.argsort(both, kind="stable")  # which merges two that are in order
        both, values = both[order], values[order]
        first = np.flatnonzero(np.diff(both, prepend=-1))
        self._before = [(both[first], np.add.reduceat(values, first) if first.size else values)]


def _runs(places: pl.Series) -> tuple[Integers, Integers]:
    """The different ones of sorted places, and how often each is there."""
    found = places.rle().struct.unnest()
    return found["value"].cast(pl.Int64).to_numpy(), found["len"].cast(pl.Int64).to_numpy()


def _of_dense(counts: Integers) -> tuple[Integers, Integers]:
    places = np.flatnonzero(counts)
    return places, counts[places]


def counted_rows(
    cells: Cells | None, statistics: Sequence[Statistic], groups: Groups | None
) -> CountedRows | None:
    """How rows that come here are counted, where rows are counted and no more; None where a
    group-by does it as well. It follows from the plan alone.
    """
    if cells is None or list(statistics) != [RowCount()]:
        return None
    if groups is None and cells.tally() is not None:
        return TalliedRows(cells)
    if groups is not None and groups.discovered:
        return None
    size = cells.size * (1 if groups is None else groups.size)
    return PlacedRows(size) if _MANY <= size < 2**62 else None


def places_of_rows(
    frame: pl.LazyFrame, groups: Groups | None, names: Sequence[str], cells: int
) -> pl.LazyFrame:
    """One column, the number of each row's cell among those of all groups, which follow each other;
    rows of other groups have none.

    Parameters
    ----------
    frame
        Rows with the columns `names` and ``cell``, which is not null.
    names
        The columns that hold the keys of `groups`, in order.
    cells
        How many cells each group has.
    """
    place, size = pl.col("cell"), cells
    if groups is not None:
        listed = listed_keys(groups.keys, names).lazy()
        frame = frame.join(listed, on=list(names), how="inner", nulls_equal=True)
        place, size = pl.col("k").cast(pl.Int64) * cells + place, cells * groups.size
    small = pl.UInt32 if size <= 2**32 else pl.Int64
    return frame.select(place.cast(small).alias(_PLACE))


def count_places(places: pl.LazyFrame) -> pl.LazyFrame:
    """The table that `CountedRows` makes, counted by the engine, in any order."""
    counted = places.group_by(_PLACE).agg(pl.len().cast(pl.Int64).alias("v0"))
    return counted.select(pl.col(_PLACE).cast(pl.Int64), "v0")


def counts_of_places(found: pl.DataFrame, cells: int, groups: int) -> CellCounts:
    """The table of what `CountedRows` or `count_places` count."""
    places, values = (column.to_numpy() for column in found.iter_columns())
    if not (places[1:] > places[:-1]).all():  # of several buckets, or counted by the engine
        group, cell = np.divmod(places, cells)
        return CellCounts.of_cells(group, cell, values, groups)
    ends = np.searchsorted(places, np.arange(1, groups + 1) * cells)
    group = np.repeat(np.arange(groups), np.diff(ends, prepend=0))
    return CellCounts(group, places - group * cells if groups > 1 else places, values, groups)
