"""Running exact queries on an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.part import CellCounts, Table
from dpframe.errors import DPFrameError, EngineError, UnsupportedOperation
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.lower.engines.engine import Engine
from dpframe.lower.engines.log import log_failure
from dpframe.lower.engines.polars_engine import OPTIMIZATIONS as _OPTIMIZATIONS
from dpframe.lower.engines.polars_engine import POLARS
from dpframe.lower.engines.supported import require_supported
from dpframe.lower.tables import Lowered, Sources, count_cells, group_columns, lower_query
from dpframe.mechanisms.salt import fresh_salt
from dpframe.rows.failures import FAILURES

__all__ = [
    "_OPTIMIZATIONS",
    "Chooser",
    "collected",
    "dry_run",
    "require_runs",
    "run",
    "run_choosing",
]

Schemas: TypeAlias = "pl.Schema | Mapping[int, pl.Schema]"


def require_runs(
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    schemas: Mapping[int, pl.Schema],
    engine: Engine,
) -> None:
    """Refuse what does not run on the engine, which is not asked: expressions are only made.

    Raises
    ------
    UnsupportedOperation
        Naming the engine and the operation.
    """
    if engine is POLARS:
        return
    require_supported(engine, relation, groups, tables)
    if engine.ns is not pl:
        ns = engine.ns.dry()
        frames: Any = {token: ns.frame(None, dict(found)) for token, found in schemas.items()}
        lower_query(relation, groups, tables, frames, ns)


def dry_run(
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    schema: Schemas,
    source: Sources | None = None,
    engine: Engine = POLARS,
) -> None:
    """Run the exact query on an empty frame of the same schema, so that whatever an engine would
    refuse is refused before anything is charged.

    `source` is what it will run on, whose kind may decide the form of the query.

    Raises
    ------
    UnsupportedOperation
        When the engine does not accept the query. No private data is involved, but its text is not
        shown either: it speaks of functions that the analyst never wrote.
    """
    try:
        require_supported(engine, relation, groups, tables)
        empty = _empty(source, schema, engine)
        lowered = lower_query(relation, groups, tables, empty, engine.ns, like=source)
        results = engine.collect([query.frame for query in lowered], rehearsed=True)
        for query, result in zip(lowered, results, strict=True):
            count_cells(query, result, groups)
    except DPFrameError:
        raise
    except FAILURES as error:
        raise _not_accepted(engine, error) from None


def _not_accepted(engine: Engine, error: BaseException) -> UnsupportedOperation:
    version = f" {pl.__version__}" if engine.name == "polars" else ""
    return UnsupportedOperation(
        f"{engine.label}{version} does not accept the lowered query ({type(error).__name__}); "
        "nothing was charged",
        remedy="simplify the expression, or report it as a bug of dpframe",
    )


def _empty(source: Sources | None, schema: Schemas, engine: Engine) -> Any:
    if not isinstance(schema, Mapping) or isinstance(schema, pl.Schema):
        return engine.empty(source, schema)
    data = source if isinstance(source, Mapping) else dict.fromkeys(schema)
    return {token: engine.empty(data[token], found) for token, found in schema.items()}


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
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    source: Sources,
    engine: Engine = POLARS,
) -> dict[Table, CellCounts]:
    """The exact tables, by group.

    Raises
    ------
    EngineError
        When the engine fails; its text and cause are withheld, for they may quote data.
    """
    lowered, results = _results(relation, groups, tables, source, engine)
    return _counted(lowered, results, groups)


def run_choosing(
    relation: Relation,
    groups: Groups,
    tables: Sequence[Table],
    source: Sources,
    chooser: Chooser,
    engine: Engine = POLARS,
) -> tuple[dict[Table, CellCounts], Groups, Numbers | None]:
    """The exact tables of groups that nobody listed, and which of the groups appear, with their
    noisy numbers where these decided.

    Raises
    ------
    EngineError
        When the engine fails.
    """
    lowered, results = _results(relation, groups, tables, source, engine)
    keys, noisy = _chosen(chooser, lowered, results, groups)
    found = groups.found(keys)
    return _counted(lowered, results, found), found, noisy


def collected(frames: Sequence[pl.LazyFrame]) -> list[pl.DataFrame]:
    """The results of lazy Polars frames.

    Raises
    ------
    EngineError
        When the engine fails.
    """
    with suppress(*FAILURES), log_failure():
        return POLARS.collect(frames)
    raise _failed()


def _results(
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    source: Sources,
    engine: Engine,
) -> tuple[tuple[Lowered, ...], list[pl.DataFrame]]:
    with suppress(*FAILURES), log_failure():
        frames: Any = (
            {token: engine.frame(data) for token, data in source.items()}
            if isinstance(source, Mapping)
            else engine.frame(source)
        )
        lowered = lower_query(relation, groups, tables, frames, engine.ns, _salt(relation))
        return lowered, engine.collect([query.frame for query in lowered])
    raise _failed()


def _failed() -> EngineError:
    """Raised outside the handler, so that not even the context keeps the engine's text."""
    return EngineError(
        "the engine failed while it ran the plan; its message is withheld because it may quote "
        "private data",
        remedy="check that the source can be read; the data owner can run it without dpframe, or "
        "name a file for the engine's messages in DPFRAME_ENGINE_LOG",
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
