"""The law of storage: how rows are stored, and by whom, decides nothing.

The exact tables of a query are those of the same rows in memory on Polars, whoever wrote the rows,
whatever statistics stand beside them, right, stale, wrong or none, and however they are read; and
neighbouring frames differ by no more than what the query's measurements state. What the law holds
fixed: rows are stored before a query and not changed while it runs, and the writer stores the
values that it was given (statistics, marks and indexes may say anything).

An engine takes part with a list of `Reader`, and one test that calls `check`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import Table
from dpframe.api.frame import rows_of
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.lower import Execution, PlanTables
from dpframe.lower.engines.polars_engine import PolarsEngine
from dpframe.lower.execution import TablesWanted
from tests.laws.neighbours import (
    Counted,
    check_joint_draws,
    measurements_of,
    moved,
    planned_tables,
    same,
    violation,
)
from tests.storage.queries import Asked, queries
from tests.storage.rows import SCHEMA, add_person, add_row, draw_frame
from tests.storage.writers import COSTLY, Stored, Writer, installed

MEMORY = PolarsEngine("in-memory")


@dataclass(frozen=True)
class View:
    """What an owner does to rows before `protect`.

    Parameters
    ----------
    polars
        On a LazyFrame.
    where
        The same for SQL: a condition for WHERE; None where it is no filter, and engines other than
        Polars leave the view out, unless it does nothing.
    """

    polars: Callable[[pl.LazyFrame], pl.LazyFrame] = field(compare=False)
    where: str | None = None


VIEWS: Mapping[str, View] = {
    "as it is": View(lambda f: f, "TRUE"),
    "x > 5": View(lambda f: f.filter(pl.col("x") > 5), "x > 5"),
    "x != 1": View(lambda f: f.filter(pl.col("x") != 1), "x <> 1"),
    "x is NaN": View(lambda f: f.filter(pl.col("x").is_nan()), "isnan(x)"),
    "i = 7": View(lambda f: f.filter(pl.col("i") == 7), "i = 7"),
    "g is not null": View(lambda f: f.filter(pl.col("g").is_not_null()), "g IS NOT NULL"),
    "filters on filters": View(
        lambda f: f.filter(pl.col("x") >= 0).select(pl.all()).filter(pl.col("k") < 2),
        "x >= 0 AND k < 2",
    ),
    "y made of x": View(lambda f: f.with_columns(y=pl.col("x")).filter(pl.col("y") > 0)),
    "cached": View(lambda f: f.cache()),
    "with itself": View(lambda f: pl.concat([f, f.filter(pl.col("x") <= 5)])),
    "distinct": View(lambda f: f.unique()),
    "sorted": View(lambda f: f.sort("x", maintain_order=True)),
}


@dataclass(frozen=True)
class Reader:
    """A way in which stored rows come to `protect`.

    Parameters
    ----------
    forms
        What it reads, see `Stored`.
    read
        What is protected, and the arguments of `protect` besides; it sees what the owner does to
        the rows.
    views
        The names of views that it can do.
    unlike
        Columns of `SCHEMA` that it has not, or not in the same type: what names them is left out.
    may_refuse
        Whether `protect` may refuse it; otherwise a refusal breaks the law.
    """

    name: str
    forms: frozenset[str]
    read: Callable[[Stored, View], tuple[Any, dict[str, Any]]] = field(compare=False)
    views: tuple[str, ...] = ("as it is",)
    unlike: frozenset[str] = frozenset()
    may_refuse: bool = False


@dataclass
class Found:
    """What a run of the law found.

    Parameters
    ----------
    cases
        How many exact results of stored rows were compared.
    broken
        What differed, in words.
    refused
        How often `protect` refused, by reader.
    """

    cases: int = 0
    broken: list[str] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    readers: set[str] = field(default_factory=set)
    writers: set[str] = field(default_factory=set)

    def verdict(self, cases: int) -> None:
        """Fail if the law was broken, or less was tried than stated."""
        listed = "\n".join(self.broken[:20])
        assert not self.broken, f"{len(self.broken)} of {self.cases} cases:\n{listed}"
        assert self.cases >= cases, self.cases


@dataclass(frozen=True)
class Pair:
    """Two neighbouring frames."""

    unit: str
    before: pl.DataFrame
    after: pl.DataFrame


def check(
    readers: Sequence[Reader],
    folder: Path,
    *,
    trials: int,
    queries_each: int = 12,
    seed: int = 0,
    together: bool = False,
) -> Found:
    """So many trials: a writer, a reader, a view, neighbouring frames, and some queries of them.

    Parameters
    ----------
    together
        Whether the engine is always asked for all queries of a trial at once, which is faster where
        each takes long; otherwise that is so in half of the trials.
    """
    found = Found()
    for number, (writer, reader) in zip(range(trials), _pairs(readers, seed, trials), strict=False):
        rng = random.Random(f"{seed} {number}")
        place = folder / f"{seed}-{number}"
        view = rng.choice(reader.views)
        pair = _draw_pair(rng)
        about = f"seed {seed}, trial {number}: {writer.name} / {reader.name} / {view} / {pair.unit}"
        counted = []
        stored = None
        for side, frame in (("before", pair.before), ("after", pair.after)):
            (place / side).mkdir(parents=True)
            stored = writer.write(place / side, frame, random.Random(f"{seed} {number} {side}"))
            some = _some_queries(pair.unit, reader, stored, view, rng, queries_each)
            if counted:
                some = [asked for asked in some if asked.text in counted[0]]
            at_once = together or rng.random() < 0.5
            tables = _of_stored(reader, stored, VIEWS[view], pair.unit, some, at_once, found, about)
            if tables is None:
                break
            expected = in_memory(frame, stored, view, some)
            for asked, one in tables.items():
                if not same(one, expected[asked]):
                    found.broken.append(f"{about}: {asked}: {_words(one, expected[asked])}")
            counted.append(tables)
        if len(counted) == 2:
            _check_sensitivities(pair, view, counted, found, about)
        found.readers.add(reader.name)
        found.writers.add(writer.name)
    return found


def _pairs(readers: Sequence[Reader], seed: int, trials: int) -> Iterator[tuple[Writer, Reader]]:
    """Writers in turn, each with one of the readers of what it writes that had the fewest turns."""
    writers = [w for w in installed() if any(r.forms & _forms(w) for r in readers)]
    rng = random.Random(seed)
    turns = {reader.name: 0 for reader in readers}
    tried: set[str] = set()
    while True:
        for writer in writers:
            if writer.name in COSTLY and writer.name in tried and trials < 1_000:
                continue
            tried.add(writer.name)
            fitting = [r for r in readers if r.forms & _forms(writer)]
            reader = min(fitting, key=lambda one: (turns[one.name], rng.random()))
            turns[reader.name] += 1
            yield writer, reader


@lru_cache(maxsize=64)
def _form_of(name: str) -> str:
    words = {"hive": "hive", "Delta": "delta", "Iceberg": "iceberg", "ORC": "orc", "CSV": "csv"}
    first = name.replace(",", "").split()[0]
    return words.get(first, "ipc" if first in ("IPC", "feather") else "parquet")


def _forms(writer: Writer) -> frozenset[str]:
    return frozenset({_form_of(writer.name)})


def _draw_pair(rng: random.Random) -> Pair:
    unit = rng.choice(["rows", "rows", "u"])
    frame = draw_frame(rng)
    return Pair(unit, frame, add_row(frame, rng) if unit == "rows" else add_person(frame, rng))


def _some_queries(
    unit: str, reader: Reader, stored: Stored, view: str, rng: random.Random, number: int
) -> list[Asked]:
    there = frozenset(stored.columns) - reader.unlike
    possible = [asked for asked in queries(unit) if asked.columns <= there]
    return rng.sample(possible, min(number, len(possible)))


def _of_stored(
    reader: Reader,
    stored: Stored,
    view: View,
    unit: str,
    some: Sequence[Asked],
    at_once: bool,
    found: Found,
    about: str,
) -> dict[str, Counted] | None:
    """The exact tables of stored rows, by the text of the query; None where it was refused."""
    who: Any = dp.Rows() if unit == "rows" else unit
    session = dp.Session(epsilon=1)
    try:
        data, options = reader.read(stored, view)
        source: Any = rows_of(session.protect(data, who, **options)).source
    except DPFrameError as error:
        found.refused[reader.name] = found.refused.get(reader.name, 0) + 1
        if not (reader.may_refuse and isinstance(error, UnsupportedOperation)):
            found.broken.append(f"{about}: refused: {error}")
        return None
    wrong = {
        name: dtype
        for name, dtype in source.schema.items()
        if name in SCHEMA and name not in reader.unlike and dtype != SCHEMA[name]
    }
    if wrong:
        found.broken.append(f"{about}: types {wrong}")
        return None
    tables: dict[str, Counted] = {}
    try:
        runs = [asked for asked in some if _accepted(source, asked)]
        if at_once and runs:
            opened = source.opened(runs[0].token)
            tables = _counted(opened, runs)
        else:
            for asked in runs:
                tables |= _counted(source.opened(asked.token), [asked])
    except DPFrameError as error:
        found.broken.append(f"{about}: {type(error).__name__}: {error}")
        return None
    found.cases += len(tables)
    return tables


@lru_cache(maxsize=64)
def _planned(query: Query) -> tuple[list[PlanTables], Mapping[int, Table]]:
    """The tables of a query whose choices of rows rest on nothing else: of the columns it reads."""
    return planned_tables(replace(query, relation=replace(query.relation, salt=None)))


def _counted(execution: Execution, several: Sequence[Asked]) -> dict[str, Counted]:
    """The exact tables of queries, by their texts. They are read from physical plans."""
    planned = [_planned(asked.query) for asked in several]
    results = iter(
        execution.run_all(
            [
                TablesWanted(
                    replace(one.relation, salt=asked.query.relation.salt),
                    one.groups,
                    [*one.tables.values()],
                )
                for asked, (found, _) in zip(several, planned, strict=True)
                for one in found
            ]
        )
    )
    made: dict[str, Counted] = {}
    for asked, (found, names) in zip(several, planned, strict=True):
        tables = made.setdefault(asked.text, Counted(asked.query, {}))
        for one in found:
            result = next(results).tables
            tables |= {names[place]: result[table] for place, table in one.tables.items()}
    return made


def _accepted(source: Any, asked: Asked) -> bool:
    """Whether an engine that has not all operations has those of a query."""
    if source.engine.name == "polars":
        return True
    opened = source.blueprint(asked.token)
    try:
        for one in _planned(asked.query)[0]:
            opened.require_runs(one.relation, one.groups, [*one.tables.values()])
    except UnsupportedOperation:
        return False
    return True


def in_memory(
    frame: pl.DataFrame, stored: Stored, view: str, some: Sequence[Asked]
) -> dict[str, Counted]:
    """The exact tables of the rows in memory, on Polars, in plain pieces. Columns that were not
    stored are null, so that rows are as distinct as stored ones.
    """
    lost = [
        pl.lit(None, dtype).alias(name)
        for name, dtype in frame.schema.items()
        if name not in stored.columns
    ]
    rows = VIEWS[view].polars(frame.lazy().with_columns(lost)).collect(engine="in-memory")
    plain = pl.DataFrame({name: rows[name].rechunk() for name in rows.columns})
    found = {}
    for asked in some:
        execution = Execution(MEMORY, {asked.token: plain.lazy()}, {asked.token: plain.schema})
        found |= _counted(execution, [asked])
    return found


def _check_sensitivities(
    pair: Pair, view: str, counted: Sequence[Mapping[str, Counted]], found: Found, about: str
) -> None:
    before, after = counted
    if view in ("with itself", "sorted"):  # a row there may be two, or none of one's own
        return
    for asked in queries(pair.unit):
        if asked.text not in before or asked.text not in after:
            continue
        scope = asked.query.scope
        tables = tuple(Counted(asked.query, side[asked.text]) for side in (before, after))
        for use in measurements_of(asked.query):
            problem = violation(use.part, moved(use.part, *tables, scope), scope)
            if problem is not None:
                found.broken.append(f"{about}: {asked.text}: {problem}")
        try:
            check_joint_draws(asked.query, *tables)
        except AssertionError as error:
            found.broken.append(f"{about}: {asked.text}: {error}")


def _words(one: Counted, other: Counted) -> str:
    listed = [
        f"{t}: {one[t].values.tolist()} in place of {other[t].values.tolist()}"
        for t in other
        if t in one and one[t].values.tolist() != other[t].values.tolist()
    ]
    return "; ".join(listed)[:500] or "other groups or cells"
