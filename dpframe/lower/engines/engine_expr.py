"""Expressions of an engine behind Narwhals, with what is surely known of them.

Narwhals gives engines one language, not one meaning: sums that overflow raise on one and wrap on
another, casts round or cut off. So each expression carries its type and the interval in which its
numbers surely lie. Intervals come from types, constants and clamping alone, never from
declarations, and only decide which of two forms with the same meaning is used."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar, Self

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.dtypes import FLOAT32, INT64, INT128, NULL, DType, Scalar, duration_type
from dpframe.core.interval import EVERYTHING, Interval, interval
from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.engine import OfEngine, unsupported
from dpframe.rows.constants import constant_type
from dpframe.rows.operands import INT64_LIMITS

INT64_RANGE = interval(*INT64_LIMITS)
ROWS = interval(0, 2**62)
"""Numbers of rows."""


@dataclass(frozen=True, slots=True, eq=False)
class EngineExpr:
    """An expression of the engine.

    Parameters
    ----------
    expr
        The Narwhals expression.
    dtype
        Its type.
    interval
        Where its numbers surely lie, null and NaN aside.
    stage
        After how many stages of columns it can be computed.
    column
        The name underneath of the column that it is, if it is one.
    constant
        The value of a constant, in a tuple.
    untyped
        Whether it is a Python value that takes the type of what it meets.
    is_whole
        Whether it is a float whose numbers are surely whole.
    """

    expr: nw.Expr
    dtype: DType
    interval: Interval = EVERYTHING
    stage: int = 0
    column: str | None = None
    constant: tuple[Scalar, ...] = ()
    untyped: bool = False
    is_whole: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is a column or constant, which may be used any number of times."""
        return self.column is not None or bool(self.constant)

    @property
    def is_null(self) -> bool:
        """Whether it is the constant null."""
        return bool(self.constant) and self.constant[0] is None

    def having(self, expr: nw.Expr, dtype: DType, known: Interval = EVERYTHING) -> EngineExpr:
        """What was computed from this alone."""
        return EngineExpr(expr, dtype, known, self.stage)


def combined(
    expr: nw.Expr, dtype: DType, *operands: EngineExpr, known: Interval = EVERYTHING
) -> EngineExpr:
    """What was computed from some operands."""
    return EngineExpr(expr, dtype, known, max((o.stage for o in operands), default=0))


def hull(*parts: EngineExpr) -> Interval:
    """The interval in which the values of all lie; null has none."""
    found = [part.interval for part in parts if not part.is_null]
    return reduce(Interval.hull, found) if found else EVERYTHING


# What engines behind Narwhals do each in their own way: types, constants, hashes, positions.


DURATION = duration_type("us")
"""A number of microseconds on every engine."""
_NUMBERS = itertools.count()
COMMON_TYPES = frozenset(
    ("Boolean", "Int8", "Int16", "Int32", "Int64", "Float32", "Float64", "String", "Date")
)
"""The names of types that all engines have."""
_NATIVE = {
    **{name: name for name in COMMON_TYPES | {"UInt8", "UInt16", "UInt32", "UInt64"}},
    **dict.fromkeys(("Enum", "Categorical"), "String"),
}


class Dialect(ABC):
    """An engine as expressions see it.

    Narwhals translates; what engines do differently is composed of what they do alike, or refused
    by name.
    """

    label: ClassVar[str]
    """The engine's name, for messages."""
    types: ClassVar[frozenset[str]]
    """The names of types whose values can be used."""
    hashes: ClassVar[Interval]
    """Where the engine's hashes lie."""
    quotient: ClassVar[str]
    """The operator of SQL for quotients of whole numbers, towards zero."""
    octets: ClassVar[str]
    """The function of SQL for the number of bytes of a text."""
    divides_wide: bool
    """Whether a wide number is divided exactly by one that divides it."""
    sums_wide: bool
    """Whether sums of whole numbers are wide and cannot overflow, at little cost."""
    is_blueprint: bool = False
    """Whether expressions are only made, on frames without an engine."""

    @property
    @abstractmethod
    def wide_type(self) -> Any:
        """The Narwhals type of whole numbers of 126 bits and more."""

    def moment(self, value: Scalar, dtype: DType) -> nw.Expr:
        """A constant date or time."""
        return nw.lit(value, self.native_type(dtype))

    @abstractmethod
    def from_micros(self, number: str) -> str:
        """The naive time of a number of microseconds since 1970, in SQL."""

    @property
    def microsecond(self) -> Callable[[str], str] | None:
        """Microseconds since the last whole second, in SQL, where Narwhals reads them by way of
        the session's time zone.
        """
        return None

    @abstractmethod
    def native_frame(self, frame: pl.DataFrame) -> OfEngine:
        """A public frame as one of the engine's."""

    @abstractmethod
    def positional(self, native: OfEngine, names: Sequence[str]) -> OfEngine:
        """A frame with its columns renamed by position, and plain: text without a collation."""

    @abstractmethod
    def with_hash(self, native: OfEngine, name: str, parts: Sequence[str], salt: int) -> OfEngine:
        """A frame with one more column: the engine's hash of others, and of the salt."""

    @abstractmethod
    def with_written(self, native: OfEngine, columns: Mapping[str, str]) -> OfEngine:
        """A frame with more columns, each written in SQL."""

    @abstractmethod
    def with_position(
        self, native: OfEngine, name: str, within: Sequence[str], order: Sequence[str]
    ) -> OfEngine:
        """A frame with one more column: the place of each row, from 1, among those with the same
        values of `within`, sorted by `order` with nulls first. Engines do this faster than
        counting up to a row, the only method of Narwhals.
        """

    def gathered(self, native: OfEngine, names: Sequence[str]) -> OfEngine:
        """The same rows, those with equal values of some columns on one machine, where an engine
        has several and does not see on its own that it saves work later.
        """
        return native

    def blueprint(self) -> Self:
        """The same, for frames without an engine."""
        made = copy(self)
        made.is_blueprint = True
        return made

    # -- names and types ------------------------------------------------------------------------

    def fresh(self) -> str:
        """A name that no column has."""
        return f"c{next(_NUMBERS)}"

    def refused(self, what: str) -> UnsupportedOperation:
        """The error for something that does not run on this engine."""
        return unsupported(what, self.label)

    def native_type(self, dtype: DType) -> Any:
        """The Narwhals type."""
        if dtype == INT128:
            return self.wide_type
        if dtype.name == "Datetime" and self.has_type(dtype):
            return nw.Datetime("us")
        if dtype == DURATION:
            return nw.Int64
        if dtype.name not in _NATIVE or not self.has_type(dtype):
            raise self.refused(f"the type {dtype}")
        return getattr(nw, _NATIVE[dtype.name])

    def has_type(self, dtype: DType) -> bool:
        """Whether values of the type can be used."""
        if dtype.name in ("Datetime", "Duration"):
            return dtype.zone is None and dtype.unit == "us"
        return dtype.name in self.types or dtype.name in ("Enum", "Categorical")

    def require_comparable(self, dtype: DType) -> None:
        """Refuse values of types that cannot be used."""
        if dtype != INT128 and dtype.name != "Null" and not self.has_type(dtype):
            raise self.refused(f"a value of type {dtype}")

    # -- constants ------------------------------------------------------------------------------

    def constant(self, value: Scalar, dtype: DType) -> EngineExpr:
        """A constant of a type."""
        if dtype.name == "Null":
            return self.python(None)
        if isinstance(value, timedelta):
            value = value // timedelta(microseconds=1)
        return EngineExpr(
            self._literal(value, dtype), dtype, _point(value, dtype), constant=(value,)
        )

    def _literal(self, value: Any, dtype: DType) -> nw.Expr:
        if dtype == INT128 and value is not None:
            return self.wide(int(value))
        if dtype == DURATION:
            return nw.lit(value, nw.Int64)
        if dtype.is_temporal and value is not None:
            return self.moment(value, dtype)
        if isinstance(value, float) and math.isnan(value):  # older clients take it for null
            return nw.lit("NaN").cast(self.native_type(dtype))
        return nw.lit(value, self.native_type(dtype))

    def python(self, value: Scalar) -> EngineExpr:
        """A Python value, which takes the type of what it meets."""
        if value is None:
            return EngineExpr(nw.lit(None), NULL, constant=(None,), untyped=True)
        made = self.constant(value, constant_type(value))
        return EngineExpr(
            made.expr, made.dtype, made.interval, constant=made.constant, untyped=True
        )

    def wide(self, value: int) -> nw.Expr:
        """A whole constant in the wide type."""
        if INT64_LIMITS[0] <= value <= INT64_LIMITS[1]:
            return nw.lit(value, nw.Int64).cast(self.wide_type)
        high, low = divmod(value, 2**32)
        return self.wide(high) * self.wide(2**32) + self.wide(low)


def _point(value: Scalar, dtype: DType) -> Interval:
    """The place of a constant, if it is a finite number that the type holds exactly."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or dtype.is_boolean or dtype == FLOAT32 or not math.isfinite(value):  # type: ignore[arg-type]
        return EVERYTHING
    exact = Fraction(value)  # type: ignore[arg-type]
    return Interval(exact, exact)


# Where expressions of an engine are made: a frame's columns, and stages of further columns.
#
# An expression that uses an operand more than once gets it as a column of its own, computed in an
# earlier stage, so that nested expressions do not grow without limit.


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
