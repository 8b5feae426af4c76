"""Operators of expressions as lowered operations write them: arithmetic, comparisons, conditions.

They have Polars' names, as many as lowered operations need, with Polars' meaning on every engine.
An expression is made when a frame takes it, for only then the types of its columns are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, TypeAlias

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import BOOLEAN, STRING, Scalar
from dpframe.lower.engines import numbers
from dpframe.lower.engines.engine_expr import Dialect, EngineExpr, EngineScope, Node, combined

_Apply: TypeAlias = "Callable[[nw.Expr, nw.Expr], nw.Expr]"


class Operators:
    """An expression that a frame has yet to make.

    Parameters
    ----------
    dialect, node
        The engine, and how it is made.
    names
        The columns that it reads, by the names that plans use.
    reduces
        Whether it is an aggregate, or computed from one.
    name
        What its column will be called.
    """

    __slots__ = ("dialect", "name", "names", "node", "reduces")

    def __init__(
        self,
        dialect: Dialect,
        node: Node,
        names: Sequence[str] = (),
        reduces: bool = False,
        name: str | None = None,
    ) -> None:
        self.dialect = dialect
        self.node = node
        self.names = tuple(dict.fromkeys(names))
        self.reduces = reduces
        self.name = name

    def like(self, node: Node, names: Sequence[str], reduces: bool, name: str | None) -> Self:
        """Another expression of the same kind."""
        return type(self)(self.dialect, node, names, reduces, name)

    def lifted(self, value: Self | Scalar) -> Self:
        """An expression, or a Python value as one."""
        if isinstance(value, Operators):
            return value
        return self.like(Node(lambda scope: scope.dialect.python(value)), (), False, "literal")

    def then(self, function: Callable[..., EngineExpr], *others: Self | Scalar) -> Self:
        """A function of this and of others, which may be Python values."""
        operands = [self, *map(self.lifted, others)]

        def make(scope: EngineScope) -> EngineExpr:
            return function(scope, *(scope.made(o.node) for o in operands))

        names = [name for o in operands for name in o.names]
        return self.like(Node(make), names, any(o.reduces for o in operands), self.name)

    def alias(self, name: str) -> Self:
        return self.like(self.node, self.names, self.reduces, name)

    # -- arithmetic -----------------------------------------------------------------------------

    def __add__(self, other: Self | Scalar) -> Self:
        return self.then(_added, other)

    def __radd__(self, other: Self | Scalar) -> Self:
        return self.lifted(other).then(numbers.add, self)

    def __sub__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.sub, other)

    def __rsub__(self, other: Self | Scalar) -> Self:
        return self.lifted(other).then(numbers.sub, self)

    def __mul__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.mul, other)

    def __rmul__(self, other: Self | Scalar) -> Self:
        return self.lifted(other).then(numbers.mul, self)

    def __truediv__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.divided, other)

    def __floordiv__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.floor_divided, other)

    def __mod__(self, other: Self | Scalar) -> Self:
        return self.then(numbers.remainder, other)

    def __neg__(self) -> Self:
        return self.then(numbers.negated)

    # -- comparisons ----------------------------------------------------------------------------

    def __eq__(self, other: Self | Scalar) -> Self:  # type: ignore[override]
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: Self | Scalar) -> Self:  # type: ignore[override]
        return self._compared(other, lambda a, b: a != b)

    def __lt__(self, other: Self | Scalar) -> Self:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: Self | Scalar) -> Self:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: Self | Scalar) -> Self:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: Self | Scalar) -> Self:
        return self._compared(other, lambda a, b: a >= b)

    __hash__ = object.__hash__

    def _compared(self, other: Self | Scalar, function: _Apply) -> Self:
        def compare(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
            a, b = numbers.matched(scope, a, b)
            scope.dialect.require_comparable(a.dtype)
            return combined(function(a.expr, b.expr), BOOLEAN, a, b)

        return self.then(compare, other)

    # -- conditions -----------------------------------------------------------------------------

    def __and__(self, other: Self | Scalar) -> Self:
        return self._joined(other, lambda a, b: a & b)

    def __or__(self, other: Self | Scalar) -> Self:
        return self._joined(other, lambda a, b: a | b)

    def __xor__(self, other: Self | Scalar) -> Self:
        return self._joined(other, lambda a, b: a != b)

    def __invert__(self) -> Self:
        return self.then(lambda _, a: a.having(~a.expr, BOOLEAN))

    def _joined(self, other: Self | Scalar, function: _Apply) -> Self:
        def join(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
            a, b = numbers.matched(scope, a, b)
            if not a.dtype.is_boolean:
                raise scope.dialect.refused("integers combined bit by bit")
            return combined(function(a.expr, b.expr), BOOLEAN, a, b)

        return self.then(join, other)


def _added(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    """A sum, or two texts as one: null where one is null."""
    if not a.dtype.is_text:
        return numbers.add(scope, a, b)
    a, b = numbers.matched(scope, a, b)
    return combined(nw.concat_str(a.expr, b.expr, separator=""), STRING, a, b)
