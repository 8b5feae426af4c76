"""The exact query: one lazy frame per set of cells, each yielding integers per group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import polars as pl

from dpframe.aggregates.cells import Cells, NumberCells
from dpframe.aggregates.measurement import CellCounts, Table
from dpframe.aggregates.statistics import Statistic, UnitStatistic
from dpframe.core.dtypes import Columns, DType
from dpframe.core.tree import Column, Tree
from dpframe.core.windows import Windows
from dpframe.errors import require
from dpframe.frames.facts import FrameFacts
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.relation import Binary, FramePart, Relation
from dpframe.frames.sampling import owner_columns, within_windows
from dpframe.frames.windows_read import windows_read
from dpframe.lower.bind import bind_facts
from dpframe.lower.numbering import numbered
from dpframe.lower.packing import in_batches, in_memory, packable
from dpframe.lower.pair_limits import (
    UNIT,
    PairLimit,
    RowLimit,
    adds_up,
    limit_on_pairs,
    limit_on_rows_of_pairs,
    owner_names,
)
from dpframe.lower.pairs import Pairs, Weighing, by_columns, weighing_of
from dpframe.lower.places import (
    CountedRows,
    TalliedRows,
    count_places,
    counted_rows,
    counts_of_places,
    places_of_rows,
)
from dpframe.lower.row_columns import row_columns
from dpframe.lower.together import sortable
from dpframe.rows.fold import domain, lower
from dpframe.rows.layouts import grouped, grouped_type, unordered
from dpframe.rows.operation import Namespace

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

    def grouped(self, result: pl.DataFrame) -> pl.DataFrame:
        """The columns of groups, cells and values, of what the engine gives."""
        return result if self.later is None else self.later.grouped(result)

    def counted(self, batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """The same of one piece after another."""
        assert isinstance(self.later, CountedRows)
        return self.later.counted(batches)

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
    made = list[Lowered]()
    by_batches = by_batches and len({(table.cells, table.kept) for table in tables}) == 1
    shown = source if like is None else like
    for kept in dict.fromkeys(table.kept for table in tables):
        own = [table for table in tables if table.kept == kept]
        found = _lower(relation, groups_of(groups, kept), own, source, ns, salt, shown, by_batches)
        made += found if kept is None else [replace(one, kept=kept) for one in found]
    return tuple(made)


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
    found: dict[tuple[Cells | None, bool], list[Statistic]] = {}
    for table in tables:
        of_units = isinstance(table.statistic, UnitStatistic)
        in_pairs = of_units or (pairs and adds_up(table))
        statistics = found.setdefault((table.cells, in_pairs), [])
        if table.statistic not in statistics:
            statistics.append(table.statistic)
    made = list[Lowered]()
    for (cells, in_pairs), statistics in found.items():
        counted = None if in_pairs or ns is not pl else counted_rows(cells, statistics, groups)
        way = in_pairs, packing, counted, here
        query, later = _aggregate(frame, relation, groups, cells, statistics, limits, way, ns)
        batches = by_batches and not packing and isinstance(later, CountedRows)
        placed = counted is not None
        made.append(Lowered(query, cells, tuple(statistics), placed, None, later, batches))
    return tuple(made)


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
                frame = _stepped(frame, part, facts, then, ns, salt)
    return frame


def _stepped(
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
            return _selected(frame, {_CELL: cells.numbers(columns)}, ns), counts
        rows[_CELL] = unordered(ns, cells.row(columns, ns))
        keys.append(_CELL)
    types = _types_of_pairs(relation, groups) if packing and in_pairs and cells is None else []
    rows |= _of_pairs(relation, limits[2], ns, sortable(types)) if in_pairs else {}
    own, squares, made = row_columns(statistics, columns, ns)
    rows |= own
    frame = _selected(frame, rows, ns) if rows else frame
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
    pairs = _selected(frame, made, ns).group_by([*keys, *whose])
    totals = pairs.agg(cells.totals.per_unit(ns.col(_TOTAL), ns).alias(_TOTAL))
    cell = cells.place(cells.totals.total(ns.col(_TOTAL), ns), ns)
    placed = totals.with_columns(cell.alias(_CELL))
    # individuals without a cell are dropped later, when cells are counted: an engine would expand a
    # filter here, and repeat the expression of each column that it uses thousands of times
    return by_columns([*keys, _CELL], placed, [ns.len().cast(ns.Int64)])


def _selected(frame: pl.LazyFrame, rows: Mapping[str, pl.Expr], ns: Namespace) -> pl.LazyFrame:
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
        result, group = numbered(groups.keys, result, group_columns(groups))
    whole = (pl.col(f"v{i}").fill_null(0).cast(pl.Int64) for i in range(len(lowered.statistics)))
    values = [column.to_numpy() for column in result.select(whole).iter_columns()]
    if lowered.cells is None:
        return [CellCounts.of_groups(group, found, size) for found in values]
    cell = result[_CELL].cast(pl.Int64).to_numpy()
    return [CellCounts.of_cells(group, cell, found, size) for found in values]
