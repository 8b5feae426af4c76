"""Constants that values are looked up in, by bisection: no engine's own list or map is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.dtypes import INT64, DType
from dpframe.core.interval import interval
from dpframe.lower.engines.engine_expr import EngineExpr, combined, hull
from dpframe.lower.engines.engine_scope import EngineScope
from dpframe.lower.engines.numbers import common_whole, widened
from dpframe.rows.polars_dtypes import from_polars

_MOST = 4096
"""Longer lists are refused: the text of the query would grow out of hand."""


def place(scope: EngineScope, a: EngineExpr, edges: Sequence[Any], or_equal: bool) -> EngineExpr:
    """How many of some sorted constants are below a number, or equal to it as well."""
    a = scope.once(a)
    _require_few(scope, edges)
    found = _place(scope, a, edges, or_equal, 0)
    return combined(found, INT64, a, known=interval(0, len(edges)))


def _place(
    scope: EngineScope, a: EngineExpr, edges: Sequence[Any], or_equal: bool, before: int
) -> nw.Expr:
    if not edges:
        return nw.lit(before, nw.Int64)
    middle = len(edges) // 2
    edge = scope.dialect.constant(edges[middle], a.dtype).expr
    beyond = a.expr >= edge if or_equal else a.expr > edge
    above = _place(scope, a, edges[middle + 1 :], or_equal, before + middle + 1)
    below = _place(scope, a, edges[:middle], or_equal, before)
    return nw.when(beyond).then(above).otherwise(below)


def chosen(
    scope: EngineScope,
    a: EngineExpr,
    old: pl.Series,
    new: Sequence[Any],
    default: Any,
    dtype: DType,
) -> EngineExpr:
    """The constant of a type that goes with a value, or the default."""
    listed = from_polars(old.dtype)
    if listed.is_integer and a.dtype.is_integer and listed != a.dtype:
        a = widened(scope, a, common_whole(a.dtype, listed))
    scope.dialect.require_comparable(a.dtype)
    a = scope.once(a)
    constants = [scope.dialect.constant(n, dtype) for n in new]
    pairs = [(o, made.expr) for o, made in zip(old.to_list(), constants, strict=True)]
    _require_few(scope, pairs)
    other = scope.dialect.constant(default, dtype)
    numbers = sorted((p for p in pairs if not _is_nan(p[0])), key=lambda p: _sort_key(p[0]))
    found = _found(scope, a, numbers, other.expr)
    for _, made in (p for p in pairs if _is_nan(p[0])):
        found = nw.when(a.expr.is_nan()).then(made).otherwise(found)
    result = nw.when(~a.expr.is_null()).then(found).otherwise(other.expr)
    return combined(result, dtype, a, known=hull(*constants, other))


def _found(
    scope: EngineScope, a: EngineExpr, pairs: Sequence[tuple[Any, nw.Expr]], rest: nw.Expr
) -> nw.Expr:
    if not pairs:
        return rest
    if len(pairs) == 1 or a.dtype.is_boolean:
        value, made = pairs[0]
        equal = a.expr == scope.dialect.constant(value, a.dtype).expr
        return nw.when(equal).then(made).otherwise(_found(scope, a, pairs[1:], rest))
    middle = len(pairs) // 2
    below = a.expr < scope.dialect.constant(pairs[middle][0], a.dtype).expr
    first, second = _found(scope, a, pairs[:middle], rest), _found(scope, a, pairs[middle:], rest)
    return nw.when(below).then(first).otherwise(second)


def _require_few(scope: EngineScope, values: Sequence[Any]) -> None:
    if len(values) > _MOST:
        raise scope.dialect.refused(f"a list of more than {_MOST} constants")


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _sort_key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
