"""What runs on which engine. What does not say that it does is refused by name.

Operations, steps, statistics and cells say it themselves; types are on lists that are closed.
Everything that runs is covered by `tests/engines`, which compare exact tables bit by bit with those
of Polars. To say so is not enough: types are checked as well, and expressions that an engine
cannot give the same meaning are refused while they are built, before anything is charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dpframe.aggregates.cells import Cells
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.statistics import Statistic
from dpframe.core.domain import Columns
from dpframe.core.dtypes import DType
from dpframe.core.tree import Call, Column, Literal, Tree, walk
from dpframe.frames.contribution_limits import LimitRows
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Concat, Relation, Step, frames_of
from dpframe.lower.engines.engine import Engine, unsupported
from dpframe.rows.fold import domain, words

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
