"""Frames of an engine behind Narwhals, with the methods that lowered steps call.

Columns have made-up names underneath: engines differ in which names they distinguish, and in
which characters they take for syntax."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.dtypes import NULL, STRING, Scalar
from dpframe.core.interval import EVERYTHING, interval
from dpframe.lower.engines.engine import OfEngine
from dpframe.lower.engines.engine_expr import (
    Dialect,
    EngineExpr,
    EngineScope,
    GroupScope,
    Node,
    hull,
)
from dpframe.lower.engines.expressions import (
    ConstantList,
    Expression,
    Length,
    Row,
    When,
    coalesced,
    joined,
)
from dpframe.rows.polars_dtypes import from_polars, to_polars


class Blueprint:
    """Stands for a Narwhals frame where expressions are only made, to see whether they can be."""

    def _same(self, *_: object, **__: object) -> Blueprint:
        return self

    select = with_columns = filter = group_by = agg = join = _same


class EngineFrame:
    """A lazy frame of an engine.

    Parameters
    ----------
    dialect
        The engine.
    native
        The Narwhals frame.
    columns
        What is known of each column, by the name that plans use.
    """

    __slots__ = ("_native", "columns", "dialect")

    def __init__(self, dialect: Dialect, native: Any, columns: Mapping[str, EngineExpr]) -> None:
        self.dialect = dialect
        self._native = native
        self.columns = dict(columns)

    @property
    def native(self) -> OfEngine:
        """The engine's own frame, with the columns' names underneath."""
        return self._native.to_native()

    @property
    def names(self) -> dict[str, str]:
        """What each column is called underneath."""
        return {name: str(column.column) for name, column in self.columns.items()}

    def __repr__(self) -> str:
        return f"<a frame of {self.dialect.label}>"

    # -- rows and columns -----------------------------------------------------------------------

    def _scope(self) -> EngineScope:
        return EngineScope(self.dialect, self.columns)

    def _staged(self, scope: EngineScope) -> Any:
        """The Narwhals frame with the columns of all stages next to it."""
        frame = self._native
        for stage in scope.stages:
            if stage.columns:
                frame = frame.with_columns(*(e.alias(n) for n, e in stage.columns.items()))
            if self.dialect.is_blueprint or not (stage.hashes or stage.positions or stage.written):
                continue
            native = frame.to_native()
            if stage.written:
                native = self.dialect.with_written(native, stage.written)
            for name, (parts, salt) in stage.hashes.items():
                native = self.dialect.with_hash(native, name, parts, salt)
            for name, (within, order) in stage.positions.items():
                native = self.dialect.with_position(native, name, within, order)
            frame = nw.from_native(native)
        return frame

    def _built(
        self, frame: Any, computed: Mapping[str, EngineExpr], kept: Collection[str] = ()
    ) -> EngineFrame:
        """A frame of computed columns; those of `kept` are there already."""
        columns, exprs = {}, []
        for name, made in computed.items():
            columns[name] = made if name in kept else column_of(made, self.dialect.fresh())
            physical = str(columns[name].column)
            exprs.append(nw.col(physical) if name in kept else _typed(made).alias(physical))
        return EngineFrame(self.dialect, frame.select(*exprs), columns)

    def with_columns(self, *expressions: Expression) -> EngineFrame:
        scope = self._scope()
        made = {_name(e): scope.made(e.node) for e in expressions}
        kept = self.columns.keys() - made.keys()
        return self._built(self._staged(scope), {**self.columns, **made}, kept)

    def select(self, *expressions: Expression | str) -> EngineFrame:
        if all(isinstance(e, str) for e in expressions):
            return self._only([e for e in expressions if isinstance(e, str)])
        asked = [col(self.dialect, e) if isinstance(e, str) else e for e in expressions]
        if any(e.reduces for e in asked):
            return self._aggregated([], asked)
        scope = self._scope()
        made = {_name(e): scope.made(e.node) for e in asked}
        return self._built(self._staged(scope), made)

    def _only(self, names: Sequence[str]) -> EngineFrame:
        columns = {name: self.columns[name] for name in names}
        frame = self._native.select(*(c.column for c in columns.values()))
        return EngineFrame(self.dialect, frame, columns)

    def drop(self, *names: str) -> EngineFrame:
        return self._only([name for name in self.columns if name not in names])

    def rename(self, mapping: Mapping[str, str]) -> EngineFrame:
        columns = {mapping.get(name, name): made for name, made in self.columns.items()}
        return EngineFrame(self.dialect, self._native, columns)

    def filter(self, *predicates: Expression) -> EngineFrame:
        if not predicates:
            return self
        scope = self._scope()
        made = [scope.made(p.node) for p in predicates]
        frame = self._staged(scope).filter(*(m.expr for m in made))
        return EngineFrame(self.dialect, frame.select(*self.names.values()), self.columns)

    def unique(self) -> EngineFrame:
        return self.group_by(list(self.columns)).agg()

    # -- groups ---------------------------------------------------------------------------------

    def gathered(self, names: Sequence[str]) -> EngineFrame:
        """The same rows, with equal values of some columns on one machine, if the engine has
        several and this is requested.
        """
        if self.dialect.is_blueprint:
            return self
        native = self.dialect.gathered(self.native, [self.names[name] for name in names])
        return EngineFrame(self.dialect, nw.from_native(native), self.columns)

    def group_by(self, keys: Sequence[str] | str) -> Grouped:
        return Grouped(self, [keys] if isinstance(keys, str) else list(keys))

    def _aggregated(self, keys: Sequence[str], expressions: Sequence[Expression]) -> EngineFrame:
        rows = self._scope()
        by = {key: self.columns[key] for key in keys}
        groups = GroupScope(rows, by)
        made = {_name(e): groups.made(e.node) for e in expressions}
        staged = self._staged(rows)
        exprs = [e.alias(n) for n, e in groups.aggregates.items()]
        names = [column.column for column in by.values()]
        reduced = staged.group_by(*names).agg(*exprs) if names else staged.select(*exprs)
        beside = EngineFrame(self.dialect, reduced, {})
        return self._built(beside._staged(groups), {**by, **made}, keys)

    # -- joins ----------------------------------------------------------------------------------

    def join(
        self, other: EngineFrame, on: Sequence[str], how: str, nulls_equal: bool = False
    ) -> EngineFrame:
        """Rows that have the same values of columns of the same names."""
        left, right = (_keyed(frame, on, nulls_equal) for frame in (self, other))
        added = [] if how in ("semi", "anti") else [n for n in other.columns if n not in on]
        theirs = right._built(right._native, right.columns)  # so that a frame can meet itself
        mine_on = [left.names[name] for name in left.columns if name not in self.columns]
        theirs_on = [theirs.names[name] for name in theirs.columns if name not in other.columns]
        plain = theirs._native.select(*theirs_on, *(theirs.names[n] for n in added))
        joined = left._native.join(plain, left_on=mine_on, right_on=theirs_on, how=how)
        columns = {**self.columns, **{name: theirs.columns[name] for name in added}}
        frame = EngineFrame(self.dialect, joined, columns)
        return frame._only(list(columns))


class Grouped:
    """A frame's rows by the values of some columns; null is one of them."""

    __slots__ = ("_frame", "_keys")

    def __init__(self, frame: EngineFrame, keys: Sequence[str]) -> None:
        self._frame = frame
        self._keys = keys

    def agg(self, *expressions: Expression) -> EngineFrame:
        for key in self._keys:
            dtype = self._frame.columns[key].dtype
            if dtype.is_float:
                raise self._frame.dialect.refused(f"grouping by {dtype}")
            self._frame.dialect.require_comparable(dtype)
        return self._frame._aggregated(self._keys, expressions)


def concatenated(frames: Sequence[EngineFrame]) -> EngineFrame:
    """The rows of several frames with the same columns."""
    dialect, columns = frames[0].dialect, {}
    for name, first in frames[0].columns.items():
        known = hull(*(frame.columns[name] for frame in frames))
        columns[name] = replace(column_of(first, dialect.fresh()), interval=known)
    parts = [
        frame._native.select(
            *(frame.columns[name].expr.alias(str(c.column)) for name, c in columns.items())
        )
        for frame in frames
    ]
    both = parts[0] if dialect.is_blueprint else nw.concat(parts, how="vertical")
    return EngineFrame(dialect, both, columns)


def _keyed(frame: EngineFrame, on: Sequence[str], nulls_equal: bool) -> EngineFrame:
    """The frame with the columns that a join compares; with `nulls_equal`, a null is a value."""
    made = []
    for i, name in enumerate(on):
        frame.dialect.require_comparable(frame.columns[name].dtype)
        column = col(frame.dialect, name)
        if not nulls_equal:
            made.append(column.alias(f"\0on{i}"))
            continue
        made.append(column.fill_null(_some_value(frame, name)).alias(f"\0on{i}"))
        made.append(column.is_null().alias(f"\0null{i}"))
    return frame.with_columns(*made)


def _some_value(frame: EngineFrame, name: str) -> Scalar:
    dtype = frame.columns[name].dtype
    if dtype.is_text:
        return ""
    if dtype.is_boolean:
        return False
    if dtype.name == "Date":
        return date(1970, 1, 1)
    return datetime(1970, 1, 1) if dtype.name == "Datetime" else 0


def col(dialect: Dialect, name: str) -> Expression:
    """A column of any frame that will take the expression."""
    return Expression(dialect, Node(lambda scope: scope.columns[name]), (name,), name=name)


def column_of(made: EngineExpr, name: str) -> EngineExpr:
    """The facts about a column once it is computed; one that holds nothing takes any type."""
    if made.dtype.name == "Null":
        return EngineExpr(nw.lit(None), NULL, column=name, constant=(None,), untyped=True)
    return EngineExpr(nw.col(name), made.dtype, made.interval, column=name)


def _typed(made: EngineExpr) -> nw.Expr:
    """An expression as a column, which has a type also where it holds nothing."""
    return nw.lit(None, nw.Boolean) if made.dtype.name == "Null" else made.expr


def _name(expression: Expression) -> str:
    assert expression.name is not None, "columns are named"
    return expression.name


# The namespace that lowering builds expressions with, on an engine behind Narwhals.


class EngineNamespace:
    """What `polars` is to lowering, for frames of another engine."""

    Boolean = pl.Boolean
    Int64 = pl.Int64
    UInt32 = pl.Int64  # of constants, which it holds; not every engine has unsigned numbers
    Float64 = pl.Float64
    String = pl.String

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self.dialect.refused(f"the function {name}")

    # -- expressions ----------------------------------------------------------------------------

    def col(self, name: str) -> Expression:
        return col(self.dialect, name)

    def lit(self, value: Scalar | pl.Series, dtype: Any = None) -> Any:
        if isinstance(value, pl.Series):
            return ConstantList(value)
        found = None if dtype is None else from_polars(dtype)

        def make(_: EngineScope) -> EngineExpr:
            return (
                self.dialect.python(value) if found is None else self.dialect.constant(value, found)
            )

        return Expression(self.dialect, Node(make), name="literal")

    def when(self, condition: Expression) -> When:
        return When(condition)

    def len(self) -> Length:
        return Length(self.dialect)

    def struct(self, *fields: Expression) -> Row:
        return Row(fields)

    def coalesce(self, *values: Expression | Scalar) -> Expression:
        first, *others = (v if isinstance(v, Expression) else self.lit(v) for v in values)
        return first.then(coalesced, *others)

    def concat_str(
        self, texts: Sequence[Expression], *, separator: str, ignore_nulls: bool
    ) -> Expression:
        def make(scope: EngineScope, *made: EngineExpr) -> EngineExpr:
            return joined(scope, separator, ignore_nulls, *made)

        first, *others = texts
        return first.then(make, *others)

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

    # -- frames ---------------------------------------------------------------------------------

    def concat(self, frames: Sequence[EngineFrame], how: str = "vertical") -> EngineFrame:
        return concatenated(frames)

    def gathered(self, frame: EngineFrame, names: Sequence[str]) -> EngineFrame:
        """The same rows, those with equal values of some columns on one machine."""
        return frame.gathered(names)

    def public(self, frame: pl.DataFrame) -> EngineFrame:
        """A public frame on this engine."""
        for dtype in map(from_polars, frame.dtypes):
            self.dialect.require_comparable(dtype)
        plain = frame.with_columns(pl.col(pl.Duration("us")).cast(pl.Int64))  # as they are here
        native = None if self.dialect.is_blueprint else self.dialect.native_frame(plain)
        return self.frame(native, dict(frame.schema))

    def frame(self, native: OfEngine, schema: Mapping[str, pl.DataType]) -> EngineFrame:
        """A frame of the engine, whose columns have these names and Polars types."""
        columns = {}
        for name, given in schema.items():
            dtype, physical = from_polars(given), self.dialect.fresh()
            known = interval(*dtype.limits) if dtype.is_integer and dtype.limits else EVERYTHING
            columns[name] = EngineExpr(nw.col(physical), dtype, known, column=physical)
        if self.dialect.is_blueprint:
            return EngineFrame(self.dialect, Blueprint(), columns)
        names = [str(column.column) for column in columns.values()]
        plain = nw.from_native(self.dialect.positional(native, names))
        return EngineFrame(self.dialect, plain, columns)

    def blueprint(self) -> EngineNamespace:
        """The same, for frames without an engine."""
        return EngineNamespace(self.dialect.blueprint())


# Small results of an engine as Polars frames.


def as_declared(frame: EngineFrame, table: Any) -> pl.DataFrame:
    """A result with the names and types that lowering gave its columns."""
    made = pl.from_arrow(table)
    assert isinstance(made, pl.DataFrame)
    return made.select(
        pl.col(physical)
        .cast(to_polars(STRING if frame.columns[name].dtype.is_text else frame.columns[name].dtype))
        .alias(name)
        for name, physical in frame.names.items()
    )
