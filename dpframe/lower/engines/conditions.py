"""Values that depend on a condition, as lowered operations write them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpframe.core.dtypes import BOOLEAN, STRING, DType
from dpframe.lower.engines import numbers
from dpframe.lower.engines.casts import cast
from dpframe.lower.engines.expressions import Expression
from dpframe.lower.engines.made import Made, Scope, hull, typed


class When:
    """A condition, on which it will depend which value is taken."""

    __slots__ = ("_condition",)

    def __init__(self, condition: Expression) -> None:
        self._condition = condition

    def then(self, value: Any) -> Then:
        return Then(self._condition, value)


class Then(Expression):
    """A value where a condition holds, else null; until it is said what else."""

    __slots__ = ("_condition", "_value")

    def __init__(self, condition: Expression, value: Any) -> None:
        ns = condition.ns
        self._condition, self._value = condition, ns.lifted(value)
        made = self._with(ns.lifted(None))
        super().__init__(ns, made.make, made.names, made.reduces)

    def otherwise(self, other: Any) -> Expression:
        return self._with(self._condition.ns.lifted(other))

    def _with(self, other: Expression) -> Expression:
        def choose(scope: Scope, condition: Made, yes: Made, no: Made) -> Made:
            yes, no = numbers.matched(scope, yes, no)
            if condition.dtype != BOOLEAN:
                condition = cast(scope, condition, BOOLEAN)
            made = scope.ns.nw.when(condition.expr).then(yes.expr).otherwise(no.expr)
            result = typed(made, _text(yes, no), condition, yes, no)
            return replace(result, **hull(yes, no))

        return self._condition._then(choose, self._value, other)


def _text(a: Made, b: Made) -> DType:
    return STRING if a.dtype.is_text and a.dtype != b.dtype else a.dtype
