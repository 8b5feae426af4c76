"""Running exact queries on Polars."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from dpframe.aggregates.part import CellCounts, Table
from dpframe.errors import DPFrameError, EngineError, UnsupportedOperation
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.lower.tables import Lowered, count_cells, lower_query
from dpframe.rows.failures import FAILURES


def dry_run(
    relation: Relation, groups: Groups | None, tables: Sequence[Table], schema: pl.Schema
) -> None:
    """Run the exact query on an empty frame of the same schema, so that whatever an engine would
    refuse is refused before anything is charged.

    Raises
    ------
    UnsupportedOperation
        When Polars does not accept the query. No private data is involved, but its text is not
        shown either: it speaks of functions that the analyst never wrote.
    """
    empty = pl.LazyFrame(schema=schema)
    try:
        lowered = lower_query(relation, groups, tables, empty)
        for query, result in zip(lowered, _collect(lowered), strict=True):
            count_cells(query, result, groups)
    except DPFrameError:
        raise
    except FAILURES as error:
        raise UnsupportedOperation(
            f"Polars {pl.__version__} does not accept the lowered query "
            f"({type(error).__name__}); nothing was charged",
            remedy="simplify the expression, or report it as a bug of dpframe",
        ) from None


def run(
    relation: Relation, groups: Groups | None, tables: Sequence[Table], source: pl.LazyFrame
) -> dict[Table, CellCounts]:
    """The exact tables.

    Raises
    ------
    EngineError
        When the engine fails; its text and cause are withheld, for they may quote data.
    """
    counted: dict[Table, CellCounts] = {}
    failed = False
    try:
        lowered = lower_query(relation, groups, tables, source)
        for query, result in zip(lowered, _collect(lowered), strict=True):
            for statistic, cells in zip(
                query.statistics, count_cells(query, result, groups), strict=True
            ):
                counted[Table(statistic, query.cells)] = cells
    except FAILURES:
        failed = True
    if failed:  # raised outside the handler, so that not even the context keeps the engine's text
        raise EngineError(
            "the engine failed while it ran the plan; its message is withheld because it may quote "
            "private data",
            remedy="check that the source can be read; the data owner can run it without dpframe",
        )
    return counted


def _optimizations() -> pl.QueryOptFlags:
    """Before 1.36 Polars takes a constant that several expressions share for an empty column where
    a filter leaves a chunk without rows, and fails: so whether it fails would depend on data.
    """
    major, minor, *_ = (int(number) for number in re.findall(r"\d+", pl.__version__))
    return pl.QueryOptFlags(comm_subexpr_elim=(major, minor) >= (1, 36))


_OPTIMIZATIONS = _optimizations()


def _collect(lowered: Sequence[Lowered]) -> list[pl.DataFrame]:
    if len(lowered) == 1:
        return [lowered[0].frame.collect(optimizations=_OPTIMIZATIONS)]
    return pl.collect_all([query.frame for query in lowered], optimizations=_OPTIMIZATIONS)
