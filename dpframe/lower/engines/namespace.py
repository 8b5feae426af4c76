"""The namespace that lowering builds expressions with, on an engine behind Narwhals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.domain import Scalar
from dpframe.core.interval import EVERYTHING, interval
from dpframe.lower.engines.conditions import coalesced
from dpframe.lower.engines.dialect import Dialect
from dpframe.lower.engines.engine_expr import EngineExpr
from dpframe.lower.engines.engine_scope import EngineScope, Node
from dpframe.lower.engines.expressions import ConstantList, Expression, Length, Row, When
from dpframe.lower.engines.frames import Blueprint, EngineFrame, col, concatenated
from dpframe.lower.engines.strings import joined
from dpframe.rows.polars_dtypes import from_polars


class EngineNamespace:
    """What `polars` is to lowering, for frames of another engine."""

    Boolean = pl.Boolean
    Int64 = pl.Int64
    UInt32 = pl.Int64  # of constants, which it holds; not every engine has unsigned numbers
    Float64 = pl.Float64
    String = pl.String

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def __getattr__(self, name: str) -> Any:
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

    def coalesce(self, *values: Any) -> Expression:
        first, *others = (v if isinstance(v, Expression) else self.lit(v) for v in values)
        found: Expression = first.then(coalesced, *others)
        return found

    def concat_str(
        self, texts: Sequence[Expression], *, separator: str, ignore_nulls: bool
    ) -> Expression:
        def make(scope: EngineScope, *made: EngineExpr) -> EngineExpr:
            return joined(scope, separator, ignore_nulls, *made)

        first, *others = texts
        found: Expression = first.then(make, *others)
        return found

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

    def frame(self, native: Any, schema: Mapping[str, Any]) -> EngineFrame:
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
