"""What an engine is: where a plan runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import polars as pl

from dpframe.aggregates.cells import Cells
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.statistics import Statistic
from dpframe.core.dtypes import Columns, DType
from dpframe.core.tree import Call, Column, Literal, Tree, walk
from dpframe.errors import UnsupportedOperation
from dpframe.frames.contribution_limits import LimitRows
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Concat, Relation, Step, frames_of
from dpframe.rows.fold import domain, words
from dpframe.rows.operation import Namespace

OfEngine: TypeAlias = Any
"""A frame of an engine, of a type that nothing else knows: its own, or one to lower steps on."""


class ClusterLost(Exception):
    """The machines that an engine runs on are gone; the error holds nothing of queries or data.

    Parameters
    ----------
    seconds
        For how long no machine was there.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def unsupported(what: str, label: str, where: str | None = None) -> UnsupportedOperation:
    """The refusal of something that does not run on an engine."""
    return UnsupportedOperation(
        f"{what} is not supported on {label}",
        where=where,
        remedy=(
            "compute it in SQL before the frame is protected, for example SELECT x::DOUBLE AS x",
            "protect a Polars frame",
        ),
    )


class Engine(ABC):
    """Runs lowered queries. A plan does not depend on it, and neither do the exact tables.

    The data that it runs on are its own: a Polars LazyFrame, a relation, a Spark DataFrame.
    """

    name: ClassVar[str]
    """What `engine=` calls it."""
    label: ClassVar[str]
    """What messages call it."""

    @property
    @abstractmethod
    def ns(self) -> Namespace:
        """What expressions are built with."""

    @abstractmethod
    def frame(self, data: OfEngine) -> OfEngine:
        """The data as a frame that steps are lowered on."""

    @property
    def reads_all_columns(self) -> bool:
        """Whether it reads columns that no query asks for, unless `narrow` leaves them out."""
        return False

    def narrow(self, data: OfEngine, columns: Collection[str]) -> OfEngine:
        """The data with nulls in place of the values of other columns."""
        raise NotImplementedError

    @abstractmethod
    def empty(self, data: OfEngine, schema: pl.Schema) -> OfEngine:
        """The same without rows."""

    @abstractmethod
    def collect(self, frames: Sequence[OfEngine], *, rehearsed: bool = False) -> list[pl.DataFrame]:
        """The results of lowered queries; `rehearsed` when their frames have no rows."""

    @property
    def gives_batches(self) -> bool:
        """Whether it gives the result of a query piece by piece."""
        return False

    def batches(self, frame: OfEngine) -> Iterator[pl.DataFrame]:
        """The result of one lowered query, piece by piece in any order, each row once."""
        raise NotImplementedError

    def schema_now(self, data: OfEngine) -> pl.Schema | None:
        """The columns that the data have now, where that is known without reading a row and no row
        decides it; else None.
        """
        return None

    @property
    def is_accepted(self) -> bool:
        """Whether the session was found to compute what Polars does."""
        return True

    def accept(self) -> None:
        """Remember that it was."""
        return

    def has_border(self) -> bool:
        """Whether no statistic of stored values decides what a query sees, tried on constants."""
        return True

    def shares(self, other: Engine) -> bool:
        """Whether frames of both can be joined."""
        return type(self) is type(other)


# What runs on which engine. What does not say that it does is refused by name.
#
# Operations, steps, statistics and cells say it themselves; types are on lists that are closed.
# Everything that runs is covered by `tests/engines`, which compare exact tables bit by bit with
# those of Polars. To say so is not enough: types are checked as well, and expressions that an
# engine cannot give the same meaning are refused while they are built, before anything is charged.


_NUMBER_TYPES = frozenset(("Boolean", "Int8", "Int16", "Int32", "Int64", "Float32", "Float64"))
_TYPES = _NUMBER_TYPES | frozenset(
    ("String", "Enum", "Date", "Datetime(us)", "Duration(us)", "Null")
)
_UNSIGNED = frozenset(("UInt8", "UInt16", "UInt32", "UInt64"))


TYPES: Mapping[str, frozenset[str]] = MappingProxyType(
    {"duckdb": _TYPES | _UNSIGNED, "spark": _TYPES}
)
"""Of columns and expressions, by `Engine.name`; others may be in a frame, unused. Polars is not
among them: it runs everything.
"""


def has_type(engine: str, dtype: DType) -> bool:
    """Whether values of a type are on the engine's list."""
    name = str(dtype) if dtype.name in ("Datetime", "Duration") else dtype.name
    return name in TYPES[engine]


def require_supported(
    engine: Engine, relation: Relation, groups: Groups | None, tables: Sequence[Table]
) -> None:
    """Refuse what is not on the engine's lists.

    Raises
    ------
    UnsupportedOperation
        Naming the engine and what it was.
    """
    if engine.name not in TYPES:
        return
    check = _Check(engine)
    for frame in frames_of(relation):
        for name in (frame.source.identifier, frame.source.time):
            if name is not None:
                check.tree(Column(name), frame.source.columns)
        for step, before in frame.steps:
            check.step(step, before.columns)
    columns = relation.facts.columns
    for named in () if groups is None else groups.by:
        check.tree(named.tree, columns)
    for table in tables:
        check.table(table, columns)


@dataclass(frozen=True, slots=True)
class _Check:
    engine: Engine

    def step(self, step: Step, before: Columns) -> None:
        self._holder("the step", step, before)
        if isinstance(step, (LimitRows, Concat)):  # which use every column
            for name in before:
                self.tree(Column(name), before)

    def table(self, table: Table, columns: Columns) -> None:
        self._holder("the statistic", table.statistic, columns)
        if table.cells is not None:
            self._holder("the cells", table.cells, columns)

    def _holder(self, kind: str, holder: Step | Statistic | Cells, columns: Columns) -> None:
        if self.engine.name not in holder.engines:
            raise unsupported(kind, self.engine.label, holder.words())
        for tree in holder.exprs:
            self.tree(tree, columns)

    def tree(self, tree: Tree, columns: Columns) -> None:
        for node in walk(tree):
            if isinstance(node, Call) and self.engine.name not in node.operation.engines:
                what = f"the operation {node.operation.name!r}"
                raise unsupported(what, self.engine.label, words(node))
            dtype = node.dtype if isinstance(node, Literal) else domain(node, columns).dtype
            if not has_type(self.engine.name, dtype):
                raise unsupported(f"the type {dtype}", self.engine.label, words(node))
