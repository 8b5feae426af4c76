"""Running exact queries on Polars."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.part import CellCounts, Table
from dpframe.errors import DPFrameError, EngineError, UnsupportedOperation
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.lower.tables import Lowered, Sources, count_cells, group_columns, lower_query
from dpframe.mechanisms.salt import fresh_salt
from dpframe.rows.failures import FAILURES


def dry_run(
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    schema: pl.Schema | Mapping[int, pl.Schema],
    source: Sources | None = None,
) -> None:
    """Run the exact query on an empty frame of the same schema, so that whatever an engine would
    refuse is refused before anything is charged.

    `source` is what it will run on, whose kind may decide the form of the query.

    Raises
    ------
    UnsupportedOperation
        When Polars does not accept the query. No private data is involved, but its text is not
        shown either: it speaks of functions that the analyst never wrote.
    """
    empty: Sources
    if isinstance(schema, pl.Schema):
        empty = pl.LazyFrame(schema=schema)
    else:
        empty = {token: pl.LazyFrame(schema=found) for token, found in schema.items()}
    try:
        lowered = lower_query(relation, groups, tables, empty, like=source)
        for query, result in zip(
            lowered, _collect([query.frame for query in lowered]), strict=True
        ):
            count_cells(query, result, groups)
    except DPFrameError:
        raise
    except FAILURES as error:
        raise UnsupportedOperation(
            f"Polars {pl.__version__} does not accept the lowered query "
            f"({type(error).__name__}); nothing was charged",
            remedy="simplify the expression, or report it as a bug of dpframe",
        ) from None


Numbers: TypeAlias = "NDArray[np.int64]"


class Chooser(Protocol):
    """Chooses among groups that nobody listed."""

    @property
    def table(self) -> Table:
        """The numbers that it chooses by."""
        ...

    def keep(self, counts: Numbers) -> tuple[NDArray[np.bool_], Numbers | None]:
        """Whether groups with such numbers appear, and the noisy numbers where these decide."""
        ...


def run(
    relation: Relation, groups: Groups | None, tables: Sequence[Table], source: Sources
) -> dict[Table, CellCounts]:
    """The exact tables, by group.

    Raises
    ------
    EngineError
        When the engine fails; its text and cause are withheld, for they may quote data.
    """
    lowered = lower_query(relation, groups, tables, source, salt=_salt(relation))
    return _counted(lowered, collected([query.frame for query in lowered]), groups)


def run_choosing(
    relation: Relation,
    groups: Groups,
    tables: Sequence[Table],
    source: Sources,
    chooser: Chooser,
) -> tuple[dict[Table, CellCounts], Groups, Numbers | None]:
    """The exact tables of groups that nobody listed, and which of the groups appear, with their
    noisy numbers where these decided.

    Raises
    ------
    EngineError
        When the engine fails.
    """
    lowered = lower_query(relation, groups, tables, source, salt=_salt(relation))
    results = collected([query.frame for query in lowered])
    keys, noisy = _chosen(chooser, lowered, results, groups)
    found = groups.found(keys)
    return _counted(lowered, results, found), found, noisy


def collected(frames: Sequence[pl.LazyFrame]) -> list[pl.DataFrame]:
    """The results of lazy frames.

    Raises
    ------
    EngineError
        When the engine fails.
    """
    with suppress(*FAILURES):
        return _collect(frames)
    # outside the handler, so that not even the context keeps the engine's text
    raise EngineError(
        "the engine failed while it ran the plan; its message is withheld because it may quote "
        "private data",
        remedy="check that the source can be read; the data owner can run it without dpframe",
    )


def _counted(
    lowered: Sequence[Lowered], results: Sequence[pl.DataFrame], groups: Groups | None
) -> dict[Table, CellCounts]:
    return {
        Table(statistic, query.cells): cells
        for query, result in zip(lowered, results, strict=True)
        for statistic, cells in zip(
            query.statistics, count_cells(query, result, groups), strict=True
        )
    }


def _salt(relation: Relation) -> int:
    return fresh_salt() if relation.salt is None else relation.salt


def _chosen(
    chooser: Chooser, lowered: Sequence[Lowered], results: Sequence[pl.DataFrame], groups: Groups
) -> tuple[pl.DataFrame, Numbers | None]:
    """The keys that appear, sorted; in the data's order they would tell about rows."""
    for query, result in zip(lowered, results, strict=True):
        if query.cells is None and chooser.table.statistic in query.statistics:
            value = pl.col(f"v{query.statistics.index(chooser.table.statistic)}")
            columns = group_columns(groups)
            merged = result.group_by(columns).agg(value.sum().cast(pl.Int64).alias("number"))
            schema = zip(columns, groups.keys.dtypes, strict=True)
            merged = merged.with_columns(*(pl.col(column).cast(t) for column, t in schema))
            kept, noisy = chooser.keep(merged["number"].to_numpy())
            order = merged.select(pl.arg_sort_by(columns)).to_series().to_numpy()
            places = order[kept[order]]
            names = dict(zip(columns, groups.keys.columns, strict=True))
            found = merged.select(columns)[places].rename(names)
            return found, None if noisy is None else noisy[places]
    raise AssertionError("the individuals of each group are counted")


def _optimizations() -> pl.QueryOptFlags:
    """Before 1.36 Polars takes a constant that several expressions share for an empty column where
    a filter leaves a chunk without rows, and fails: so whether it fails would depend on data.
    """
    major, minor, *_ = (int(number) for number in re.findall(r"\d+", pl.__version__))
    return pl.QueryOptFlags(comm_subexpr_elim=(major, minor) >= (1, 36))


_OPTIMIZATIONS = _optimizations()


def _collect(frames: Sequence[pl.LazyFrame]) -> list[pl.DataFrame]:
    if len(frames) == 1:
        return [frames[0].collect(optimizations=_OPTIMIZATIONS)]
    return pl.collect_all(frames, optimizations=_OPTIMIZATIONS)
