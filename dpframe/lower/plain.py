"""What plain Polars has for the same aggregates: without bounds, limits and grids.

Simulations on public data compare with it. Nothing here is ever run on private data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import BoundAggregate
from dpframe.aggregates.values import Value
from dpframe.core.tree import Tree
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.relation import Relation
from dpframe.lower.engines.polars_engine import POLARS
from dpframe.lower.execution import withhold_failure
from dpframe.lower.pair_limits import owner_names
from dpframe.lower.pairs import number_rows
from dpframe.lower.tables import (
    Sources,
    bind_facts,
    group_columns,
    key_expression,
    lower_rows,
    whose_rows,
)
from dpframe.rows.fold import domain, lower


def has_plain(aggregate: BoundAggregate) -> bool:
    """Whether the aggregate has bounds, so that the exact tables are not the plain result."""
    return bool(_expressions(aggregate, None if aggregate.plain_tree is None else "x"))


def find_keys(relation: Relation, groups: Groups, source: Sources) -> pl.DataFrame:
    """All keys that a public frame has, sorted."""
    names = group_columns(groups)
    rows = _rows(relation, groups, (), source).select(names).unique()
    (found,) = _collect([rows])
    typed = found.select(
        pl.col(name).cast(dtype) for name, dtype in zip(names, groups.keys.dtypes, strict=True)
    )
    ordered = typed[found.select(pl.arg_sort_by(names)).to_series()]
    return ordered.rename(dict(zip(names, groups.keys.columns, strict=True)))


def run_plain(
    relation: Relation,
    groups: Groups | None,
    aggregates: Sequence[BoundAggregate],
    source: Sources,
) -> list[tuple[pl.Series, ...]]:
    """The plain result of each aggregate, by number of the public key: one column of physical
    numbers, or several that make a list. By grouping sets, the table of each set after the other,
    from rows whose values are all listed.

    Raises
    ------
    EngineError
        When the engine fails.
    """
    names = [] if groups is None else group_columns(groups)
    trees = [aggregate.plain_tree for aggregate in aggregates]
    whose = any(aggregate.is_of_totals for aggregate in aggregates)
    owners = owner_names(relation.facts)
    below = [aggregate.plain_beside for aggregate in aggregates]
    rows = _rows(relation, groups, trees, source, whose, below)
    if not isinstance(groups, SetGroups):
        return _reduce(rows, aggregates, names, owners, lambda found: _place(found, groups, names))
    (frame,) = _collect([rows])
    listed, finest = number_rows(groups.keys, frame, names)
    by_set = [_of_set(listed, groups, kept, finest, aggregates, owners) for kept in groups.sets]
    return [
        tuple(pl.concat(columns) for columns in zip(*sets, strict=True))
        for sets in zip(*by_set, strict=True)
    ]


def _of_set(
    rows: pl.DataFrame,
    groups: SetGroups,
    kept: tuple[int, ...],
    finest: NDArray[np.int64],
    aggregates: Sequence[BoundAggregate],
    owners: Sequence[str],
) -> list[tuple[pl.Series, ...]]:
    """The plain results by one of several grouping sets, of rows in the given finest groups."""
    places = np.unravel_index(finest, groups.sizes)
    number = np.zeros(len(finest), dtype=np.int64)
    for i in kept:
        number = number * groups.sizes[i] + places[i]
    numbered_rows = rows.with_columns(pl.Series("k", number)).lazy()
    everything = pl.DataFrame({"k": pl.int_range(groups.entries(kept), eager=True)})

    def place(rows: pl.DataFrame) -> pl.DataFrame:
        return everything.join(rows, on="k", how="left", maintain_order="left")

    return _reduce(numbered_rows, aggregates, ["k"], owners, place)


def _reduce(
    rows: pl.LazyFrame,
    aggregates: Sequence[BoundAggregate],
    names: list[str],
    owners: Sequence[str],
    place: Callable[[pl.DataFrame], pl.DataFrame],
) -> list[tuple[pl.Series, ...]]:
    """The plain results of rows by some columns, each in its place."""
    totals = [aggregate.is_of_totals for aggregate in aggregates]
    trees = [aggregate.plain_tree for aggregate in aggregates]
    results: list[tuple[pl.Series, ...]] = [()] * len(aggregates)
    for of_totals in (False, True):
        chosen = [i for i, found in enumerate(totals) if found is of_totals]
        if not chosen:
            continue
        columns = {i: f"r{i}" for i in chosen if trees[i] is not None}
        below = [f"{c}b" for i, c in columns.items() if aggregates[i].plain_beside is not None]
        summed = [*columns.values(), *below]
        values = _totals(rows, [*names, *owners], summed) if of_totals else rows
        plain = [
            (i, j, expression)
            for i in chosen
            for j, expression in enumerate(_expressions(aggregates[i], columns.get(i)))
        ]
        named = [expression.alias(f"v{i}_{j}") for i, j, expression in plain]
        reduced = values.group_by(names).agg(*named) if names else values.select(*named)
        result, empty = _collect([reduced, rows.clear().select(*named)])
        placed = place(result)
        for i, j, _ in plain:
            none = empty[f"v{i}_{j}"].item()
            column = placed[f"v{i}_{j}"]
            results[i] = (*results[i], column if none is None else column.fill_null(none))
    return results


def _collect(frames: Sequence[pl.LazyFrame]) -> list[pl.DataFrame]:
    return withhold_failure(lambda: POLARS.collect(frames))


def _expressions(aggregate: BoundAggregate, column: str | None) -> tuple[pl.Expr, ...]:
    if column is not None and aggregate.plain_beside is not None:
        return aggregate.plain_of_two(pl.col(column), pl.col(f"{column}b"))
    return aggregate.plain(None if column is None else pl.col(column))


def _rows(
    relation: Relation,
    groups: Groups | None,
    values: Sequence[Tree | None],
    source: Sources,
    whose: bool = False,
    beside: Sequence[Tree | None] = (),
) -> pl.LazyFrame:
    """The frame after all steps: keys, whose row it is, and the values of aggregates."""
    by = () if groups is None else groups.by
    names = [] if groups is None else group_columns(groups)
    trees, below = tuple(values), tuple(beside)
    frame = lower_rows(relation, source, pl, 0)
    frame, (by, trees, below), facts = bind_facts(frame, (by, trees, below), relation.facts, pl)
    relation = replace(relation, facts=facts)
    made = {name: key_expression(n.tree, relation, pl) for name, n in zip(names, by, strict=True)}
    made |= {f"r{i}": _number(t, relation) for i, t in enumerate(trees) if t is not None}
    made |= {f"r{i}b": _number(t, relation) for i, t in enumerate(below) if t is not None}
    if whose:
        made |= whose_rows(relation, pl)
    if not made:  # rows alone are counted
        return frame
    marked = frame.with_columns(e.alias(f"__{name}") for name, e in made.items())
    return marked.select(pl.col(f"__{name}").alias(name) for name in made)


def _number(tree: Tree, relation: Relation) -> pl.Expr:
    """The values as numbers, where they are numbers; null and NaN are no values."""
    columns = relation.facts.columns
    found = domain(tree, columns)
    value = lower(tree, columns, pl)
    if not found.dtype.is_ordered:
        return value
    of_rows = Value(tree, found)
    if of_rows.is_wide:
        return value.cast(pl.Float64)
    number = of_rows.number(value, pl)
    return number if of_rows.is_whole else number.fill_nan(None)


def _totals(rows: pl.LazyFrame, keys: list[str], columns: list[str]) -> pl.LazyFrame:
    """One row for each individual in a group."""
    known = (pl.when(pl.col(c).count() > 0).then(pl.col(c).sum()).alias(c) for c in columns)
    return rows.group_by(keys).agg(*known)


def _place(result: pl.DataFrame, groups: Groups | None, names: Sequence[str]) -> pl.DataFrame:
    """A row for each public key; nulls where the frame has no rows of it."""
    if groups is None:
        return result
    rows, numbers = number_rows(groups.keys, result, names)
    numbered = rows.select(pl.col("^v.*$"), pl.Series("k", numbers))
    places = pl.DataFrame({"k": pl.int_range(groups.size, eager=True)})
    return places.join(numbered, on="k", how="left", maintain_order="left")
