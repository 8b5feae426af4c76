"""Where expressions of an engine are made: a frame's columns, and stages of further columns.

An expression that uses an operand more than once gets it as a column of its own, computed in an
earlier stage, so that nested expressions do not grow without limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import INT64, DType
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.lower.engines.dialect import Dialect
from dpframe.lower.engines.engine_expr import ROWS, EngineExpr


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An expression that is made later, because the types of its columns are known only then. It
    is itself alone: another one that is made the same way is another one.
    """

    make: Callable[[EngineScope], EngineExpr]


@dataclass(slots=True)
class Stage:
    """Columns that are computed together: expressions, and the engine's own operations on columns
    (hashes, positions within others, and SQL).
    """

    columns: dict[str, nw.Expr] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, tuple[list[str], int]] = field(default_factory=dict)
    positions: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)


class EngineScope:
    """What expressions are made in.

    Parameters
    ----------
    dialect, columns
        The engine, and what is known of each column.
    """

    def __init__(self, dialect: Dialect, columns: Mapping[str, EngineExpr]) -> None:
        self.dialect = dialect
        self.columns = columns
        self.stages: list[Stage] = []
        self._made: dict[Node, EngineExpr] = {}
        self._held: dict[EngineExpr, EngineExpr] = {}

    def made(self, node: Node) -> EngineExpr:
        """The expression, made once however often it is used."""
        if node not in self._made:
            self._made[node] = node.make(self)
        return self._made[node]

    def once(self, made: EngineExpr) -> EngineExpr:
        """The same as a column, because what is used more than once; constants stay as they
        are."""
        return made if made.is_plain else self.held(made)

    def held(self, made: EngineExpr) -> EngineExpr:
        """The same as a column."""
        if made.column is not None:
            return made
        if made not in self._held:
            name = self.dialect.fresh()
            self._stage(made.stage).columns[name] = made.expr
            self._held[made] = replace(made, expr=nw.col(name), stage=made.stage + 1, column=name)
        return self._held[made]

    def hashed(self, parts: Sequence[EngineExpr], salt: int) -> EngineExpr:
        """The engine's hash of some values."""
        names, stage = self._all_held(parts)
        name = self.dialect.fresh()
        self._stage(stage).hashes[name] = names, salt
        return EngineExpr(nw.col(name), INT64, self.dialect.hashes, stage + 1, name)

    def position(self, within: Sequence[EngineExpr], order: Sequence[EngineExpr]) -> EngineExpr:
        """A row's place among those of the same values."""
        names, stage = self._all_held([*within, *order])
        name = self.dialect.fresh()
        self._stage(stage).positions[name] = names[: len(within)], names[len(within) :]
        return EngineExpr(nw.col(name), INT64, ROWS, stage + 1, name)

    def written(
        self,
        sql: Callable[..., str],
        parts: Sequence[EngineExpr],
        dtype: DType,
        known: Interval = EVERYTHING,
    ) -> EngineExpr:
        """What SQL gives that all engines understand alike, of the names of columns of values."""
        names, stage = self._all_held(parts)
        name = self.dialect.fresh()
        self._stage(stage).written[name] = sql(*names)
        return EngineExpr(nw.col(name), dtype, known, stage + 1, name)

    def number_within(self, within: Sequence[EngineExpr]) -> EngineExpr:
        """How many rows have the same values."""
        names, stage = self._all_held(within)
        number = nw.len().over(*names).cast(nw.Int64)
        return self.once(EngineExpr(number, INT64, ROWS, stage))

    def total_within(self, number: EngineExpr, within: Sequence[EngineExpr]) -> EngineExpr:
        """The sum of whole numbers, which surely fits in Int64, over rows with the same values."""
        (name, *names), stage = self._all_held([number, *within])
        total = nw.col(name).sum().over(*names).cast(nw.Int64)
        return self.once(EngineExpr(total, INT64, stage=stage))

    def _all_held(self, parts: Sequence[EngineExpr]) -> tuple[list[str], int]:
        """The columns of some values, and the stage from which all are there."""
        held = [self.held(part) for part in parts]
        return [str(h.column) for h in held], max(h.stage for h in held)

    def _stage(self, number: int) -> Stage:
        while len(self.stages) <= number:
            self.stages.append(Stage())
        return self.stages[number]


class GroupScope(EngineScope):
    """What aggregates are made in: rows below, and columns of aggregates above.

    Parameters
    ----------
    rows
        The scope in which aggregates are made.
    keys
        The columns that rows are grouped by.
    """

    def __init__(self, rows: EngineScope, keys: Mapping[str, EngineExpr]) -> None:
        super().__init__(rows.dialect, keys)
        self.rows = rows
        self.aggregates: dict[str, nw.Expr] = {}
        self.found: dict[tuple[Node | None, str], EngineExpr] = {}

    def column(self, expr: nw.Expr, dtype: DType, known: Interval = EVERYTHING) -> EngineExpr:
        """An aggregate as a column."""
        name = self.dialect.fresh()
        self.aggregates[name] = expr
        return EngineExpr(nw.col(name), dtype, known, column=name)
