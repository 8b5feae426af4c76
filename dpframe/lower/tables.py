"""The exact query: one lazy frame per set of cells, each yielding integers per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from dpframe.aggregates.cells import Cells
from dpframe.aggregates.part import CellCounts, Table
from dpframe.aggregates.statistics import GridSum, Statistic, ValueCount
from dpframe.core.dtypes import STRING
from dpframe.core.tree import Column, Tree
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.lower.numbering import numbered
from dpframe.rows.broadcast import unordered
from dpframe.rows.fold import domain, lower
from dpframe.rows.operation import Namespace

_CELL = "cell"


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """One exact query.

    Parameters
    ----------
    frame
        The lazy frame; its result has the group columns ``g0, g1, ...``, the column ``cell`` where
        there are cells, and one Int64 column ``v0, v1, ...`` per statistic.
    cells
        The cells, or None.
    statistics
        What the value columns hold.
    """

    frame: pl.LazyFrame
    cells: Cells | None
    statistics: tuple[Statistic, ...]


def lower_query(
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    source: pl.LazyFrame,
    ns: Namespace = pl,
) -> tuple[Lowered, ...]:
    """The exact query of all tables: those with the same cells come from one group-by."""
    frame = source
    for step, before in relation.steps:
        frame = step.lower(frame, before, ns)
    by_cells: dict[Cells | None, list[Statistic]] = {}
    for table in tables:
        found = by_cells.setdefault(table.cells, [])
        if table.statistic not in found:
            found.append(table.statistic)
    return tuple(
        Lowered(
            _aggregate(frame, relation, groups, cells, statistics, ns),
            cells,
            tuple(statistics),
        )
        for cells, statistics in by_cells.items()
    )


def _aggregate(
    frame: pl.LazyFrame,
    relation: Relation,
    groups: Groups | None,
    cells: Cells | None,
    statistics: Sequence[Statistic],
    ns: Namespace,
) -> pl.LazyFrame:
    columns = relation.facts.columns
    by = () if groups is None else groups.by
    keys = [f"g{i}" for i in range(len(by))]
    rows = {name: _key(n.tree, relation, ns) for name, n in zip(keys, by, strict=True)}
    if cells is not None:
        rows[_CELL] = unordered(ns, cells.row(columns, ns))
        keys.append(_CELL)
    counted = _counted_by(statistics)
    for i, statistic in enumerate(statistics):
        column = None if i in counted else statistic.row(columns, ns)
        if column is not None:
            rows[f"r{i}"] = column
    reduced = [
        s.reduce(ns.col(f"r{counted.get(i, i)}"), ns).alias(f"v{i}")
        for i, s in enumerate(statistics)
    ]
    if rows:
        named = [expression.alias(f"__{name}") for name, expression in rows.items()]
        if not any(expression.meta.root_names() for expression in named):
            frame = frame.with_columns(*named)  # a select of constants alone would yield one row
            named = [ns.col(f"__{name}") for name in rows]
        frame = frame.select(*(e.alias(n) for e, n in zip(named, rows, strict=True)))
    if cells is not None:
        frame = frame.filter(ns.col(_CELL).is_not_null())
    return frame.group_by(keys).agg(*reduced) if keys else frame.select(*reduced)


def _key(tree: Tree, relation: Relation, ns: Namespace) -> pl.Expr:
    """A grouping expression; physical codes of categories depend on the data, so text is used.

    Polars groups a column that it takes for sorted by its runs, and is right about columns of the
    source.
    """
    columns = relation.facts.columns
    expression = lower(tree, columns, ns)
    dtype = domain(tree, columns).dtype
    if dtype.is_text and dtype != STRING:
        return unordered(ns, expression.cast(ns.String))
    computed = not isinstance(tree, Column) or any(step.computes for step, _ in relation.steps)
    return unordered(ns, expression) if computed else expression


def count_cells(lowered: Lowered, result: pl.DataFrame, groups: Groups | None) -> list[CellCounts]:
    """The exact tables, by number of the public key; rows with other keys are dropped."""
    size = 1 if groups is None else groups.size
    if groups is None:
        group = np.zeros(result.height, dtype=np.int64)
    else:
        names = [f"g{i}" for i in range(len(groups.by))]
        result, group = numbered(groups.keys, result, names)
    values = [
        result[f"v{i}"].fill_null(0).cast(pl.Int64).to_numpy()
        for i in range(len(lowered.statistics))
    ]
    if lowered.cells is None:
        return [CellCounts.of_groups(group, found, size) for found in values]
    cell = result[_CELL].cast(pl.Int64).to_numpy()
    return [CellCounts.of_cells(group, cell, found, size) for found in values]


def _counted_by(statistics: Sequence[Statistic]) -> dict[int, int]:
    """Counts of values that another statistic's column gives as well: the sum of the same floats
    or Int64 is null in just the rows that are not counted.
    """
    sums = {
        s.value.tree: i
        for i, s in enumerate(statistics)
        if isinstance(s, GridSum) and s.value.domain.dtype.name in ("Float64", "Float32", "Int64")
    }
    return {
        i: sums[s.tree]
        for i, s in enumerate(statistics)
        if isinstance(s, ValueCount) and s.tree in sums
    }
