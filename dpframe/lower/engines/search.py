"""Constants that values are looked up in, by bisection: no engine's own list or map is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from dpframe.core.dtypes import BOOLEAN, INT64, DType
from dpframe.lower.engines.made import Made, Scope, typed
from dpframe.lower.engines.numbers import common_whole, real, widened
from dpframe.rows.polars_dtypes import from_polars

if TYPE_CHECKING:
    from dpframe.lower.engines.expressions import Expression
    from dpframe.lower.engines.namespace import EngineNamespace

_MOST = 4096
"""Longer lists are refused: the text of the query would grow out of hand."""


class Listed:
    """A column of constants."""

    __slots__ = ("_ns", "_values")

    def __init__(self, ns: EngineNamespace, values: pl.Series) -> None:
        self._ns = ns
        self._values = values

    def implode(self) -> Listed:
        return self

    def holds(self, scope: Scope, a: Made) -> Made:
        """Whether a value is among them; null for null."""
        found = chosen(scope, a, self._values, [1] * len(self._values), 0, INT64)
        nw = scope.ns.nw
        present = ~scope.once(a).expr.is_null()
        known = nw.when(present).then(found.expr == nw.lit(1, nw.Int64))
        return typed(known, BOOLEAN, found, a)

    def search_sorted(self, number: Expression, side: str) -> Expression:
        """How many of them, sorted, are below a number; ``"right"`` counts equal ones too."""
        edges = self._values.to_list()

        def count(scope: Scope, a: Made) -> Made:
            a = scope.once(real(scope, a) if from_polars(self._values.dtype).is_float else a)
            _require_few(scope, edges)
            found = _counted(scope, a, edges, side == "right", 0)
            return typed(found, INT64, a, lo=0, hi=len(edges))

        return number._then(count)


def _counted(scope: Scope, a: Made, edges: Sequence[Any], or_equal: bool, before: int) -> Any:
    nw = scope.ns.nw
    if not edges:
        return nw.lit(before, nw.Int64)
    middle = len(edges) // 2
    edge = scope.ns.constant(edges[middle], a.dtype).expr
    beyond = a.expr >= edge if or_equal else a.expr > edge
    above = _counted(scope, a, edges[middle + 1 :], or_equal, before + middle + 1)
    below = _counted(scope, a, edges[:middle], or_equal, before)
    return nw.when(beyond).then(above).otherwise(below)


def chosen(
    scope: Scope, a: Made, old: pl.Series, new: Sequence[Any], default: Any, dtype: DType
) -> Made:
    """The constant of a type that goes with a value, or the default."""
    listed = from_polars(old.dtype)
    if listed.is_integer and a.dtype.is_integer and listed != a.dtype:
        a = widened(scope, a, common_whole(a, Made(None, listed)))
    scope.ns.require_comparable(a.dtype)
    a = scope.once(a)
    pairs = [(o, scope.ns.constant(n, dtype).expr) for o, n in zip(old.to_list(), new, strict=True)]
    _require_few(scope, pairs)
    nw = scope.ns.nw
    rest = scope.ns.constant(default, dtype).expr
    numbers = [p for p in pairs if not _is_nan(p[0])]
    ordered = sorted(numbers, key=lambda p: _sort_key(p[0]))
    found = _found(scope, a, ordered, rest)
    for _, made in (p for p in pairs if _is_nan(p[0])):
        found = nw.when(a.expr.is_nan()).then(made).otherwise(found)
    made = nw.when(~a.expr.is_null()).then(found).otherwise(rest)
    ends = [n for n in [*new, default] if n is not None]
    if not dtype.is_integer or not ends:
        return typed(made, dtype, a)
    return typed(made, dtype, a, lo=min(ends), hi=max(ends))


def _found(scope: Scope, a: Made, pairs: Sequence[tuple[Any, Any]], rest: Any) -> Any:
    nw = scope.ns.nw
    if not pairs:
        return rest
    if len(pairs) == 1 or a.dtype.is_boolean:
        value, made = pairs[0]
        equal = a.expr == scope.ns.constant(value, a.dtype).expr
        return nw.when(equal).then(made).otherwise(_found(scope, a, pairs[1:], rest))
    middle = len(pairs) // 2
    below = a.expr < scope.ns.constant(pairs[middle][0], a.dtype).expr
    first, second = _found(scope, a, pairs[:middle], rest), _found(scope, a, pairs[middle:], rest)
    return nw.when(below).then(first).otherwise(second)


def _require_few(scope: Scope, values: Sequence[Any]) -> None:
    if len(values) > _MOST:
        raise scope.ns.refused(f"a list of more than {_MOST} constants")


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _sort_key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
