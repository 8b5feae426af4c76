"""The namespace that lowering builds expressions with, on an engine behind Narwhals."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Self

import narwhals.stable.v2 as nw_stable
import polars as pl

from dpframe.core.dtypes import INT64, DType
from dpframe.core.dtypes import NULL as NULL_TYPE
from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.conditions import When
from dpframe.lower.engines.expressions import Expression, Row, Windowed
from dpframe.lower.engines.frames import Blueprint, EngineFrame, concatenated
from dpframe.lower.engines.made import GroupScope, Made, Scope, hull, typed
from dpframe.lower.engines.numbers import matched
from dpframe.lower.engines.search import Listed
from dpframe.rows.constants import constant_type
from dpframe.rows.operands import INT64_LIMITS, INT128
from dpframe.rows.polars_dtypes import from_polars

_NUMBERS = itertools.count()
_SAFE = 2**31
"""Sums of fewer than 2**32 numbers up to this size fit in Int64."""
COMMON_TYPES = frozenset(
    ("Boolean", "Int8", "Int16", "Int32", "Int64", "Float32", "Float64", "String", "Date")
)
"""The names of types that all engines have."""
_NATIVE = {
    "Boolean": "Boolean",
    **{name: name for name in ("Int8", "Int16", "Int32", "Int64")},
    **{name: name for name in ("UInt8", "UInt16", "UInt32", "UInt64")},
    **{name: name for name in ("Float32", "Float64", "String", "Date")},
    **dict.fromkeys(("Enum", "Categorical"), "String"),
}


class EngineNamespace(ABC):
    """What `polars` is to lowering, for frames of another engine.

    Narwhals translates; what engines do differently is composed here of what they do alike, or
    refused by name.
    """

    engine: ClassVar[str]
    """The engine's name, for messages."""
    types: ClassVar[frozenset[str]]
    """The names of types whose values can be used."""
    hash_limits: ClassVar[tuple[int, int]]
    """Where the engine's hashes lie."""
    has_microseconds: ClassVar[bool]
    """Whether fractions of seconds can be read whatever the session's time zone."""
    is_dry: bool = False
    """Whether expressions are only made, on frames without an engine."""

    Boolean = pl.Boolean
    Int64 = pl.Int64
    Float64 = pl.Float64
    String = pl.String

    def __init__(self) -> None:
        self.nw: Any = nw_stable

    # -- what engines do differently ------------------------------------------------------------

    @abstractmethod
    def wide_type(self) -> Any:
        """The Narwhals type of whole numbers of 126 bits and more."""

    @abstractmethod
    def exact_quotient(self, scope: Scope, multiple: Made, divisor: Made) -> Made:
        """A wide number divided by one that divides it."""

    def moment(self, value: Any, dtype: DType) -> Any:
        """A constant date or time."""
        return self.nw.lit(value, self.native_type(dtype))

    @abstractmethod
    def wrapped_sum(self, scope: GroupScope, rows: Made) -> Made:
        """The sum of a group's whole numbers modulo 2**64, as Int64."""

    @abstractmethod
    def native_frame(self, frame: pl.DataFrame) -> Any:
        """A public frame as one of the engine's."""

    @abstractmethod
    def positional(self, native: Any, names: Sequence[str]) -> Any:
        """A frame with its columns renamed by position, and plain: text without a collation."""

    @abstractmethod
    def with_hash(self, native: Any, name: str, parts: Sequence[str], salt: int) -> Any:
        """A frame with one more column: the engine's hash of others, and of the salt."""

    @abstractmethod
    def with_position(
        self, native: Any, name: str, within: Sequence[str], order: Sequence[str]
    ) -> Any:
        """A frame with one more column: the place of each row, from 1, among those with the same
        values of `within`, sorted by `order` with nulls first. Engines do this faster than they
        count up to a row, which is all that Narwhals asks of them.
        """

    # -- names and types ------------------------------------------------------------------------

    def fresh(self) -> str:
        """A name that no column has."""
        return f"c{next(_NUMBERS)}"

    def refused(self, what: str) -> UnsupportedOperation:
        """The error for something that does not run on this engine."""
        return UnsupportedOperation(
            f"{what} is not supported on {self.engine}",
            remedy="compute it before the frame is protected, or protect a Polars frame",
        )

    def native_type(self, dtype: DType) -> Any:
        """The Narwhals type."""
        if dtype == INT128:
            return self.wide_type()
        if dtype.name == "Datetime" and dtype.zone is None and dtype.unit == "us":
            return self.nw.Datetime("us")
        if dtype.name not in _NATIVE or not self.has_type(dtype):
            raise self.refused(f"the type {dtype}")
        return getattr(self.nw, _NATIVE[dtype.name])

    def has_type(self, dtype: DType) -> bool:
        """Whether values of the type can be used."""
        if dtype.name == "Datetime":
            return dtype.zone is None and dtype.unit == "us"
        return dtype.name in self.types or dtype.name in ("Enum", "Categorical")

    def require_comparable(self, dtype: DType) -> None:
        """Refuse values of types that cannot be used."""
        if dtype != INT128 and dtype.name != "Null" and not self.has_type(dtype):
            raise self.refused(f"a value of type {dtype}")

    # -- constants ------------------------------------------------------------------------------

    def constant(self, value: Any, dtype: DType) -> Made:
        """A constant of a type."""
        if dtype.name == "Null":
            return self.python(None)
        lo = hi = value if isinstance(value, (int, float)) and value == value else None
        if dtype.is_boolean or isinstance(value, bool):
            lo = hi = None
        if dtype == INT128 and value is not None:
            return Made(self.wide(int(value)), dtype, lo, hi, is_plain=True, constant=(value,))
        if dtype.is_temporal and value is not None:
            expr = self.moment(value, dtype)
        elif isinstance(value, float) and value != value:  # older clients take it for null
            expr = self.nw.lit("NaN").cast(self.native_type(dtype))
        else:
            expr = self.nw.lit(value, self.native_type(dtype))
        return Made(expr, dtype, lo, hi, is_plain=True, constant=(value,))

    def python(self, value: Any) -> Made:
        """A Python value, whose type is that of what it meets."""
        dtype = NULL_TYPE if value is None else constant_type(value)
        made = self.constant(value, dtype) if value is not None else None
        lo, hi = (None, None) if made is None else (made.lo, made.hi)
        expr = self.nw.lit(None) if made is None else made.expr
        return Made(expr, dtype, lo, hi, is_plain=True, constant=(value,), untyped=True)

    def wide(self, value: int) -> Any:
        """A whole constant in the wide type."""
        if INT64_LIMITS[0] <= value <= INT64_LIMITS[1]:
            return self.nw.lit(value, self.nw.Int64).cast(self.wide_type())
        high, low = divmod(value, 2**32)
        return self.wide(high) * self.wide(2**32) + self.wide(low)

    def lifted(self, value: Any) -> Expression:
        """An expression, or a Python value as one."""
        return value if isinstance(value, Expression) else self.lit(value)

    # -- what lowered operations call -----------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self.refused(f"the function {name}")

    def col(self, name: str) -> Expression:
        return Expression(self, lambda scope: scope.columns[name], (name,), name=name)

    def lit(self, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, pl.Series):
            return Listed(self, value)
        if dtype is None:
            return Expression(self, lambda scope: self.python(value), name="literal")
        found = from_polars(dtype)
        return Expression(self, lambda scope: self.constant(value, found), name="literal")

    def when(self, condition: Expression) -> When:
        return When(condition)

    def len(self) -> Any:
        return Length(self)

    def struct(self, *fields: Expression) -> Row:
        return Row(fields)

    def coalesce(self, *values: Any) -> Expression:
        def first(scope: Scope, *found: Made) -> Made:
            dtypes = [m for m in found if m.dtype.name != "Null" and not m.untyped]
            like = dtypes[0] if dtypes else found[0]
            parts = [matched(scope, like, m)[1] for m in found]
            expr = self.nw.coalesce(*(m.expr for m in parts))
            ends = hull(*parts)
            return typed(expr, like.dtype, *parts, lo=ends["lo"], hi=ends["hi"])

        operands = [self.lifted(v) for v in values]
        return operands[0]._then(first, *operands[1:])

    def min_horizontal(self, *values: Expression) -> Expression:
        return self._extreme(values, lambda a, b: a <= b)

    def max_horizontal(self, *values: Expression) -> Expression:
        return self._extreme(values, lambda a, b: a >= b)

    def _extreme(self, values: Sequence[Expression], better: Any) -> Expression:
        """The best of several, one after another; null is skipped."""
        best = values[0]
        for value in values[1:]:
            keep = value.is_null() | (best.is_not_null() & better(best, value))
            best = self.when(keep).then(best).otherwise(value)
        return best

    def concat(self, frames: Sequence[EngineFrame], how: str = "vertical") -> EngineFrame:
        return concatenated(self, frames)

    def public(self, frame: pl.DataFrame) -> EngineFrame:
        """A public frame on this engine."""
        for dtype in map(from_polars, frame.dtypes):
            self.require_comparable(dtype)
        native = None if self.is_dry else self.native_frame(frame)
        return self.frame(native, dict(frame.schema))

    def dry(self) -> Self:
        """The same, for frames without an engine."""
        made = copy(self)
        made.is_dry = True
        return made

    def frame(self, native: Any, schema: dict[str, Any]) -> EngineFrame:
        """A frame of the engine, whose columns have these names and Polars types."""
        names = {name: self.fresh() for name in schema}
        columns = {}
        for name, physical in names.items():
            dtype = from_polars(schema[name])
            lo, hi = dtype.limits if dtype.is_integer and dtype.limits else (None, None)
            columns[name] = Made(self.nw.col(physical), dtype, lo, hi, is_plain=True)
        if self.is_dry:
            return EngineFrame(self, Blueprint(), columns, names)
        plain = self.nw.from_native(self.positional(native, list(names.values())))
        return EngineFrame(self, plain, columns, names)

    # -- aggregates -----------------------------------------------------------------------------

    def aggregate(self, scope: GroupScope, rows: Made | None, how: str) -> Made:
        """An aggregate of a group's rows as Int64; `rows` is made below the group-by."""
        nw = self.nw
        if rows is None:
            return scope.column(nw.len().cast(nw.Int64), INT64, 0, 2**62)
        name, _ = scope.rows.name_of(rows)
        column = nw.col(name)
        match how:
            case "count":
                return scope.column(column.count().cast(nw.Int64), INT64, 0, 2**62)
            case "max" if rows.dtype.is_integer:
                return scope.column(column.max(), rows.dtype, rows.lo, rows.hi)
            case "n_unique":
                return self._distinct(scope, column)
            case "sum" if rows.dtype.is_integer and rows.within(-_SAFE, _SAFE):
                return scope.column(column.sum().cast(nw.Int64), INT64, *INT64_LIMITS)
            case "sum" if rows.dtype.is_integer and rows.dtype != INT128:
                return self.wrapped_sum(scope, rows)
            case _:
                raise self.refused(f"{how} of {rows.dtype}")

    def _distinct(self, scope: GroupScope, column: Any) -> Made:
        """Distinct values but null, which Narwhals counts as one."""
        nw = self.nw
        every = scope.column(column.n_unique().cast(nw.Int64), INT64)
        known = scope.column(column.count().cast(nw.Int64), INT64)
        rows = scope.column(nw.len().cast(nw.Int64), INT64)
        null = nw.when(rows.expr > known.expr).then(nw.lit(1, nw.Int64))
        null = null.otherwise(nw.lit(0, nw.Int64))
        return typed(every.expr - null, INT64, lo=0, hi=2**62)


class Length(Expression):
    """The number of rows: of a group, or over rows of the same value."""

    __slots__ = ()

    def __init__(self, ns: EngineNamespace) -> None:
        super().__init__(ns, lambda scope: scope.aggregate(None, "len"), (), True, "len")

    def over(self, partition: Sequence[Expression]) -> Expression:
        return Windowed(None).over(partition)
