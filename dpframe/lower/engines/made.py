"""Expressions of an engine behind Narwhals, with what is surely known of them.

Narwhals gives engines one language, not one meaning: sums that overflow raise on one and wrap on
another, casts round or cut off. So each expression carries its type and, where numbers are sure to
lie between two ends, these ends. They come from types, constants and clamping alone, never from
what somebody declared, and decide only which of two forms that mean the same is used.

An expression that uses an operand more than once gets it as a column of its own, computed in an
earlier stage, so that nested expressions do not grow without limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from dpframe.core.dtypes import DType

if TYPE_CHECKING:
    from dpframe.lower.engines.expressions import Expression
    from dpframe.lower.engines.namespace import EngineNamespace

End: TypeAlias = "int | float | None"


@dataclass(frozen=True, slots=True)
class Made:
    """An expression of the engine.

    Parameters
    ----------
    expr
        The Narwhals expression.
    dtype
        Its type.
    lo, hi
        Where its numbers surely lie, null and NaN aside; None where nothing is known.
    stage
        After how many stages of columns it can be computed.
    is_plain
        Whether it is a column or constant, which may be used any number of times.
    constant
        The value of a constant, in a tuple.
    untyped
        Whether it is a Python value that takes the type of what it meets.
    is_whole
        Whether it is a float whose numbers are surely whole.
    """

    expr: Any
    dtype: DType
    lo: End = None
    hi: End = None
    stage: int = 0
    is_plain: bool = False
    constant: tuple[Any, ...] = ()
    untyped: bool = False
    is_whole: bool = False

    def within(self, lo: int | float, hi: int | float) -> bool:
        """Whether all numbers surely lie there."""
        return self.lo is not None and self.hi is not None and lo <= self.lo and self.hi <= hi

    def having(self, expr: Any, dtype: DType, lo: End = None, hi: End = None) -> Made:
        """What was computed from this alone."""
        return Made(expr, dtype, lo, hi, self.stage)


def typed(expr: Any, dtype: DType, *operands: Made, lo: End = None, hi: End = None) -> Made:
    """An expression of some operands."""
    return Made(expr, dtype, lo, hi, max((o.stage for o in operands), default=0))


def hull(*parts: Made) -> dict[str, Any]:
    """The ends between which the values of all lie; null has none."""
    some = [p for p in parts if not (p.constant and p.constant[0] is None)]
    lows, highs = [p.lo for p in some], [p.hi for p in some]
    if not some or None in lows or None in highs:
        return {"lo": None, "hi": None}
    return {"lo": min(lows), "hi": max(highs)}  # type: ignore[type-var]


@dataclass(slots=True)
class Stage:
    """Columns that are computed together: expressions, and what an engine makes of columns itself:
    hashes, and positions within others.
    """

    columns: dict[str, Any] = field(default_factory=dict)
    hashes: dict[str, tuple[list[str], int]] = field(default_factory=dict)
    positions: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)


class Scope:
    """What expressions are made in: a frame's columns, and stages of columns beside them.

    Parameters
    ----------
    ns, columns
        The namespace, and what is known of each column.
    names
        What columns are called underneath.
    """

    def __init__(
        self, ns: EngineNamespace, columns: Mapping[str, Made], names: Mapping[str, str]
    ) -> None:
        self.ns = ns
        self.columns = columns
        self.stages: list[Stage] = []
        self._names = {id(columns[c].expr): (columns[c].expr, name) for c, name in names.items()}
        self._memo: dict[int, tuple[object, Made]] = {}

    def made(self, expression: Expression) -> Made:
        """The expression, made once however often it is used."""
        make = expression.make
        found = self._memo.get(id(make))
        if found is None:
            found = make, make(self)
            self._memo[id(make)] = found
        return found[1]

    def once(self, made: Made) -> Made:
        """The same as a column, for what is used more than once."""
        if made.is_plain:
            return made
        name, stage = self.name_of(made)
        return replace(made, expr=self._held(name), stage=stage, is_plain=True)

    def _held(self, name: str) -> Any:
        """A column whose name is remembered."""
        column = self.ns.nw.col(name)
        self._names[id(column)] = column, name
        return column

    def name_of(self, made: Made) -> tuple[str, int]:
        """The name of a column that holds it, and the stage from which that is there."""
        if id(made.expr) in self._names:
            return self._names[id(made.expr)][1], made.stage
        name = self.ns.fresh()
        self._stage(made.stage).columns[name] = made.expr
        return name, made.stage + 1

    def hashed(self, parts: list[str], stage: int, salt: int) -> tuple[str, int]:
        """The name of a column with the engine's hash of others."""
        name = self.ns.fresh()
        self._stage(stage).hashes[name] = parts, salt
        return name, stage + 1

    def position(self, within: list[str], order: list[str], stage: int) -> tuple[str, int]:
        """The name of a column with a row's place among those of the same values."""
        name = self.ns.fresh()
        self._stage(stage).positions[name] = within, order
        return name, stage + 1

    def aggregate(self, operand: Expression | None, how: str) -> Made:
        """An aggregate of a group's rows."""
        raise AssertionError("aggregates are made in a group-by")

    def _stage(self, number: int) -> Stage:
        while len(self.stages) <= number:
            self.stages.append(Stage())
        return self.stages[number]


class GroupScope(Scope):
    """What aggregates are made in: rows below, and columns of aggregates above."""

    def __init__(
        self, ns: EngineNamespace, rows: Scope, keys: Mapping[str, Made], names: Mapping[str, str]
    ) -> None:
        super().__init__(ns, keys, names)
        self.rows = rows
        self.aggregates: dict[str, Any] = {}
        self._found: dict[tuple[int, str], Made] = {}
        self._kept: list[object] = []

    def aggregate(self, operand: Expression | None, how: str) -> Made:
        key = (0 if operand is None else id(operand.make), how)
        if key not in self._found:
            self._kept.append(operand)
            rows = None if operand is None else self.rows.made(operand)
            self._found[key] = self.ns.aggregate(self, rows, how)
        return self._found[key]

    def column(self, expr: Any, dtype: DType, lo: End = None, hi: End = None) -> Made:
        """An aggregate as a column."""
        name = self.ns.fresh()
        self.aggregates[name] = expr
        return Made(self._held(name), dtype, lo, hi, is_plain=True)
