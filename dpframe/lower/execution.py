"""Where a query runs: an engine, and the data that it has there."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from threading import Lock
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.measurement import CellCounts, Table
from dpframe.errors import DPFrameError, EngineError
from dpframe.frames.groups import Groups
from dpframe.frames.per_individual import without
from dpframe.frames.relation import Relation
from dpframe.lower.buckets import columns_read, in_buckets, people_of, read_once
from dpframe.lower.engines.engine import ClusterLost, Engine, require_supported
from dpframe.lower.engines.polars_engine import POLARS, PolarsEngine
from dpframe.lower.from_plan import PlanTables
from dpframe.lower.tables import Lowered, count_cells, group_columns, lower_query
from dpframe.mechanisms.salt import fresh_salt
from dpframe.rows.failures import FAILURES, unexpected
from dpframe.rows.operation import Namespace

# What engines say when they fail, for the owner of the data alone.
#
# It may quote private values. So it is hidden unless the environment names a file for it; handlers
# of the application do not see it then either.

VARIABLE = "DPFRAME_ENGINE_LOG"
_NAME = "dpframe.engine"
_ONE_AT_A_TIME = Lock()


@contextmanager
def log_failure() -> Iterator[None]:
    """Write a failure, in full, to the file that `DPFRAME_ENGINE_LOG` names, if any."""
    try:
        yield
    except FAILURES:
        path = os.environ.get(VARIABLE)
        if path:
            _write(path)
        raise


def _write(path: str) -> None:
    record = logging.LogRecord(
        _NAME, logging.DEBUG, "", 0, "an engine failed", None, sys.exc_info()
    )
    with _ONE_AT_A_TIME:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))  # only the owner may read it
            handler = logging.FileHandler(path, encoding="utf-8")
        except OSError:
            return  # the failure itself is what counts
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
        handler.emit(record)
        handler.close()


Tables: TypeAlias = "tuple[Lowered, ...]"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class TablesWanted:
    """Exact tables of a frame by some groups.

    Parameters
    ----------
    relation, groups, tables
        These.
    chooser
        What chooses the groups, where groups are not listed.
    """

    relation: Relation
    groups: Groups | None
    tables: Sequence[Table]
    chooser: Chooser | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """The exact tables that were wanted.

    Parameters
    ----------
    tables
        By what they are of.
    groups
        The groups, those that appear where they were to be chosen.
    chosen
        The noisy numbers that these were chosen by, if such decided.
    """

    tables: Mapping[Table, CellCounts] = field(repr=False)
    groups: Groups | None
    chosen: Numbers | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class PartWanted:
    """The exact tables of one query, as a plan has them, and what chooses its groups where they are
    not listed.
    """

    tables: Sequence[PlanTables]
    chooser: Chooser | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CountedPart:
    """What was counted of one query.

    Parameters
    ----------
    tables
        The exact tables, by their places in the plan.
    keys, chosen
        The groups that appear where they were to be chosen, and the noisy numbers that decided.
    """

    tables: Mapping[int, CellCounts] = field(repr=False)
    keys: pl.DataFrame | None
    chosen: Numbers | None = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """Protected frames on one engine. Only here, the pipeline reaches data.

    Parameters
    ----------
    engine
        What runs the query.
    data
        The engine's own frames, by the token of each.
    schemas
        Their columns.
    """

    engine: Engine
    data: Mapping[int, Any] = field(repr=False)
    schemas: Mapping[int, pl.Schema]

    @classmethod
    def of_public(cls, frames: Mapping[int, pl.LazyFrame]) -> Execution:
        """Public frames on Polars, by the token of each: queries run there without a rehearsal."""
        return cls(POLARS, frames, {})

    def beside(self, other: Execution) -> Execution:
        """These frames and others of the same engine."""
        if other is self:
            return self
        return Execution(
            self.engine, {**self.data, **other.data}, {**self.schemas, **other.schemas}
        )

    # -- before the charge ----------------------------------------------------------------------

    def require_runs(
        self, relation: Relation, groups: Groups | None, tables: Sequence[Table]
    ) -> None:
        """Refuse what does not run on the engine, which is not asked: expressions are only made.

        Raises
        ------
        UnsupportedOperation
            Naming the engine and the operation.
        """
        if self.engine is POLARS:
            return
        require_supported(self.engine, relation, groups, tables)
        if self.engine.ns is not pl:
            ns = self.engine.ns.blueprint()
            frames: Any = {t: ns.frame(None, dict(found)) for t, found in self.schemas.items()}
            lower_query(relation, groups, tables, frames, ns)

    def rehearse(self, relation: Relation, groups: Groups | None, tables: Sequence[Table]) -> None:
        """Run the exact query on empty frames of the same columns, so that everything that the
        engine would refuse is refused before anything is charged.

        Raises
        ------
        UnsupportedOperation
            When the engine does not accept the query. No private data is involved, but its text
            is not shown either: it names functions that the analyst never wrote.
        """
        engine = self.engine
        try:
            require_supported(engine, relation, groups, tables)
            empty: Any = {t: engine.empty(self.data[t], found) for t, found in self.schemas.items()}
            asked = relation, groups, tables, empty, engine.ns
            lowered = lower_query(*asked, like=self.data, by_batches=engine.gives_batches)
            if any(query.by_batches for query in lowered):  # other queries may need the whole
                lowered += lower_query(*asked, like=self.data)
            for query, result in zip(lowered, _results_of(engine, lowered, True), strict=True):
                count_cells(query, result, groups)
            people = people_of([relation])
            if isinstance(engine, PolarsEngine) and engine.room and people is not None:
                few = PolarsEngine(room=replace(engine.room, buckets=2), pushes=engine.pushes)
                wanted = [TablesWanted(relation, groups, tables)]
                lower = partial(_lower_all, wanted, engine.ns, 0)
                in_buckets(few, lower, empty, people, 0)
        except DPFrameError:
            raise
        except FAILURES as error:
            version = f" {pl.__version__}" if engine.name == "polars" else ""
            why = "it was tried without rows; nothing was charged"
            raise unexpected(f"run on {engine.label}{version}", error, why) from None

    def rehearse_all(self, tables: Iterable[PlanTables]) -> None:
        """The same of all tables of a query, as the plan has them."""
        for one in tables:
            self.rehearse(one.relation, one.groups, list(one.tables.values()))

    def require_same_columns(self) -> None:
        """Refuse data that no longer have the columns that they were protected with.

        Raises
        ------
        EngineError
            When they have others, or cannot be read any more.
        """
        for token, data in self.data.items():
            try:
                now = self.engine.schema_now(data)
            except FAILURES:
                raise _change_error("cannot be read any more") from None
            if now is not None and dict(now) != dict(self.schemas[token]):
                raise _change_error("no longer has the columns that it was protected with")

    # -- after it -------------------------------------------------------------------------------

    def run(
        self, relation: Relation, groups: Groups | None, tables: Sequence[Table]
    ) -> dict[Table, CellCounts]:
        """The exact tables, by group.

        Raises
        ------
        EngineError
            When the engine fails; its text and cause are withheld, because they may quote data.
        """
        (found,) = self.run_all([TablesWanted(relation, groups, tables)])
        return {**found.tables}

    def run_parts(self, parts: Sequence[PartWanted]) -> list[CountedPart]:
        """The exact tables of some queries, and the groups that appear, in one call of the engine.

        Raises
        ------
        EngineError
            When the engine fails.
        """
        wanted = [
            TablesWanted(one.relation, one.groups, list(one.tables.values()), part.chooser)
            for part in parts
            for one in part.tables
        ]
        counted = iter(self.run_all(wanted))
        return [_counted_part(part.tables, counted) for part in parts]

    def run_all(self, wanted: Sequence[TablesWanted]) -> list[Counted]:
        """All tables that are wanted of some frames, and which groups appear where groups are not
        listed. The engine runs all in one call; it decides whether common parts are read once.

        Frames with limits choose among an individual's rows alike, so that what follows from one
        follows from the other. Each salt is as private as any other, and so are all results
        together given one. Where groups are chosen in rounds, the engine runs again for each.

        Raises
        ------
        EngineError
            When the engine fails.
        """
        return [
            self._in_rounds(one, lowered, results)
            if one.chooser is not None and len(one.chooser.rounds) > 1
            else _count_wanted(one, lowered, results)
            for one, (lowered, results) in zip(wanted, self._results(wanted), strict=True)
        ]

    def _in_rounds(
        self, wanted: TablesWanted, lowered: Tables, results: list[pl.DataFrame]
    ) -> Counted:
        """The groups that appear in rounds, each without those that rounds before have found; the
        first round has the results already. Nothing but the groups is released.
        """
        groups, chooser = wanted.groups, wanted.chooser
        assert groups is not None
        assert chooser is not None
        first, *later = chooser.rounds
        found, _ = choose_keys(first, lowered, results, groups)
        for choice in later:
            rest = replace(wanted, relation=without(wanted.relation, found))
            ((lowered, results),) = self._results([rest])
            more, _ = choose_keys(choice, lowered, results, groups)
            found = pl.concat([found, more])
        return Counted({}, groups.with_keys(found[order_of(found)]))

    def _results(self, wanted: Sequence[TablesWanted]) -> list[tuple[Tables, list[pl.DataFrame]]]:
        def work() -> list[tuple[Tables, list[pl.DataFrame]]]:
            frames: Any = {t: self.engine.frame(data) for t, data in self._read(wanted).items()}
            fresh = fresh_salt()
            people = people_of([one.relation for one in wanted])
            if isinstance(self.engine, PolarsEngine) and self.engine.room and people is not None:
                lower = partial(_lower_all, wanted, self.engine.ns, fresh)
                return in_buckets(self.engine, lower, frames, people, fresh)
            lowered, results = self._collect(wanted, frames, fresh)
            ends = list(accumulate(map(len, lowered)))
            return [
                (found, results[end - len(found) : end])
                for found, end in zip(lowered, ends, strict=True)
            ]

        return withhold_failure(work)

    def _read(self, wanted: Sequence[TablesWanted]) -> Mapping[int, Any]:
        """The data, without unneeded columns if the engine reads all that it is given."""
        if not self.engine.reads_all_columns:
            return self.data
        empty = {t: pl.LazyFrame(schema=schema) for t, schema in self.schemas.items()}
        columns = columns_read(partial(_lower_all, wanted, pl, 0), empty, {})
        return {t: self.engine.narrow(data, columns[t]) for t, data in self.data.items()}

    def _collect(
        self, wanted: Sequence[TablesWanted], frames: Any, fresh: int
    ) -> tuple[list[Tables], list[pl.DataFrame]]:
        """The exact queries, and the result of each."""
        batches = self.engine.gives_batches and len(wanted) == 1
        lower = partial(_lower_all, wanted, self.engine.ns, fresh, batches=batches)
        with ExitStack() as stack:
            if isinstance(self.engine, PolarsEngine):
                frames = stack.enter_context(read_once(self.engine, lower, frames))
            lowered = lower(frames)
            queries = [query for found in lowered for query in found]
            return lowered, _results_of(self.engine, queries)


def _results_of(
    engine: Engine, queries: Sequence[Lowered], rehearsed: bool = False
) -> list[pl.DataFrame]:
    """The columns of groups, cells and values of each exact query."""
    at_once = [query for query in queries if not query.by_batches]
    frames = [query.frame for query in at_once]
    results = iter(engine.collect(frames, rehearsed=rehearsed) if frames else [])
    return [
        query.count(engine.batches(query.frame)) if query.by_batches else query.group(next(results))
        for query in queries
    ]


def _lower_all(
    wanted: Sequence[TablesWanted],
    ns: Namespace,
    fresh: int,
    frames: Any,
    like: Any = None,
    *,
    batches: bool = False,
) -> list[Tables]:
    """The exact queries of all tables that are wanted of some frames, in the form of others if they
    are given.
    """
    return [
        lower_query(
            one.relation,
            one.groups,
            one.tables,
            frames,
            ns,
            fresh if one.relation.salt is None else one.relation.salt,
            like,
            by_batches=batches,
        )
        for one in wanted
    ]


def _count_wanted(wanted: TablesWanted, lowered: Tables, results: list[pl.DataFrame]) -> Counted:
    groups, noisy = wanted.groups, None
    if groups is not None and wanted.chooser is not None:
        keys, noisy = choose_keys(wanted.chooser, lowered, results, groups)
        groups = groups.with_keys(keys)
    return Counted(_count_tables(lowered, results, groups), groups, noisy)


def _counted_part(tables: Iterable[PlanTables], counted: Iterator[Counted]) -> CountedPart:
    by_place: dict[int, CellCounts] = {}
    keys, chosen = None, None
    for one in tables:
        result = next(counted)
        by_place |= {p: result.tables[t] for p, t in one.tables.items() if t in result.tables}
        if one.groups is not None and result.groups is not None and one.groups.discovered:
            keys, chosen = result.groups.keys, result.chosen
    return CountedPart(by_place, keys, chosen)


def withhold_failure(work: Callable[[], T]) -> T:
    """What an engine gives, or a failure that quotes nothing that it said.

    Raises
    ------
    EngineError
        When the engine fails.
    """
    lost = None
    with suppress(*FAILURES), log_failure():
        try:
            return work()
        except ClusterLost as error:
            lost = error.seconds
    # outside the handlers, so that not even the context keeps the engine's text
    if lost is not None:
        raise EngineError(
            f"the cluster had no executor for {lost:g} seconds, so dpframe ended the query; its "
            "charge stays",
            remedy=(
                "add executors, and run it again",
                "wait longer: set spark.dpframe.executors.wait to more seconds",
            ),
        )
    raise EngineError(
        "the engine failed while it ran the plan",
        why="its message is withheld because it may quote private data",
        remedy=(
            "set DPFRAME_ENGINE_LOG to the path of a file, which gets the engine's messages",
            "run the query without dpframe on the same data",
        ),
    )


def _change_error(what: str) -> EngineError:
    return EngineError(
        f"the protected frame {what}; nothing was charged",
        remedy="protect it again, with the files that it has now",
    )


def _count_tables(
    lowered: Sequence[Lowered], results: Sequence[pl.DataFrame], groups: Groups | None
) -> dict[Table, CellCounts]:
    return {
        table: cells
        for query, result in zip(lowered, results, strict=True)
        for table, cells in zip(query.tables, count_cells(query, result, groups), strict=True)
    }


# The groups that appear, where groups are not listed: from exact numbers to keys in their
# order.


Numbers: TypeAlias = "NDArray[np.int64]"


class Chooser(Protocol):
    """Chooses among unlisted groups."""

    @property
    def table(self) -> Table:
        """The numbers that it chooses by."""
        ...

    @property
    def rounds(self) -> Sequence[Chooser]:
        """What chooses in each of several rounds, those that were chosen left out; or this one."""
        ...

    def keep(self, counts: Numbers) -> tuple[NDArray[np.bool_], Numbers | None]:
        """Whether groups with such numbers appear, and the noisy numbers where these decide."""
        ...


def choose_keys(
    chooser: Chooser, lowered: Sequence[Lowered], results: Sequence[pl.DataFrame], groups: Groups
) -> tuple[pl.DataFrame, Numbers | None]:
    """The keys that appear, sorted; in the data's order they would reveal rows."""
    for query, result in zip(lowered, results, strict=True):
        if query.cells is None and chooser.table.statistic in query.statistics:
            value = pl.col(f"v{query.statistics.index(chooser.table.statistic)}")
            columns = group_columns(groups)
            merged = result.group_by(columns).agg(value.sum().cast(pl.Int64).alias("number"))
            schema = zip(columns, groups.keys.dtypes, strict=True)
            merged = merged.with_columns(*(pl.col(column).cast(t) for column, t in schema))
            kept, noisy = chooser.keep(merged["number"].to_numpy())
            order = order_of(merged.select(columns))
            places = order[kept[order]]
            names = dict(zip(columns, groups.keys.columns, strict=True))
            chosen = merged.select(columns)[places].rename(names)
            return chosen, None if noisy is None else noisy[places]
    raise AssertionError("the individuals of each group are counted")


def order_of(keys: pl.DataFrame) -> NDArray[np.uint32]:
    """Which place each key has when they are sorted."""
    return keys.select(pl.arg_sort_by(keys.columns)).to_series().to_numpy()
