"""Expressions as lowered operations write them, for an engine behind Narwhals.

They have Polars' methods, as many as lowered operations need, with Polars' meaning on every engine;
whatever is not here is refused by name. An expression is made when a frame takes it, for only then
the types of its columns are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from dpframe.core.dtypes import BOOLEAN, INT64, DType
from dpframe.lower.engines import moments, numbers, texts
from dpframe.lower.engines.casts import cast
from dpframe.lower.engines.made import Made, Scope, typed
from dpframe.lower.engines.search import Listed, chosen
from dpframe.rows.polars_dtypes import from_polars

if TYPE_CHECKING:
    from dpframe.lower.engines.namespace import EngineNamespace

Make: TypeAlias = "Callable[[Scope], Made]"
Name: TypeAlias = str
"""`str`, which is a property below."""


class Expression:
    """An expression that a frame has yet to make."""

    __slots__ = ("make", "name", "names", "ns", "reduces")

    def __init__(
        self,
        ns: EngineNamespace,
        make: Make,
        names: Sequence[Name] = (),
        reduces: bool = False,
        name: Name | None = None,
    ) -> None:
        self.ns = ns
        self.make = make
        self.names = tuple(dict.fromkeys(names))
        self.reduces = reduces
        self.name = name

    def __getattr__(self, name: Name) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.ns.refused(f".{name}")

    def _then(self, function: Callable[..., Made], *others: Any) -> Expression:
        """A function of this and of others, which may be Python values."""
        operands = [self, *(self.ns.lifted(o) for o in others)]

        def make(scope: Scope) -> Made:
            return function(scope, *(scope.made(o) for o in operands))

        names = [name for o in operands for name in o.names]
        return Expression(self.ns, make, names, any(o.reduces for o in operands), self.name)

    def alias(self, name: Name) -> Expression:
        return Expression(self.ns, self.make, self.names, self.reduces, name)

    # -- arithmetic -----------------------------------------------------------------------------

    def __add__(self, other: Any) -> Expression:
        def add(scope: Scope, a: Made, b: Made) -> Made:
            if a.dtype.is_text:
                return texts.joined(scope, *numbers.matched(scope, a, b))
            return numbers.add(scope, a, b)

        return self._then(add, other)

    def __radd__(self, other: Any) -> Expression:
        return self.ns.lifted(other)._then(numbers.add, self)

    def __sub__(self, other: Any) -> Expression:
        return self._then(numbers.sub, other)

    def __rsub__(self, other: Any) -> Expression:
        return self.ns.lifted(other)._then(numbers.sub, self)

    def __mul__(self, other: Any) -> Expression:
        return self._then(numbers.mul, other)

    def __rmul__(self, other: Any) -> Expression:
        return self.ns.lifted(other)._then(numbers.mul, self)

    def __truediv__(self, other: Any) -> Expression:
        return self._then(numbers.divided, other)

    def __floordiv__(self, other: Any) -> Expression:
        return self._then(numbers.floor_divided, other)

    def __mod__(self, other: Any) -> Expression:
        return self._then(numbers.remainder, other)

    def __neg__(self) -> Expression:
        return self._then(numbers.negated)

    def clip(self, lower_bound: Any = None, upper_bound: Any = None) -> Expression:
        return self._then(lambda scope, a: numbers.clamped(scope, a, lower_bound, upper_bound))

    def floor(self) -> Expression:
        return self._then(numbers.floored)

    def ceil(self) -> Expression:
        return self._then(
            lambda scope, a: numbers.negated(
                scope, numbers.floored(scope, numbers.negated(scope, a))
            )
        )

    def abs(self) -> Expression:
        return self._then(numbers.absolute)

    def sign(self) -> Expression:
        return self._then(numbers.sign)

    def cast(self, dtype: Any, *, strict: bool = True) -> Expression:
        target = from_polars(dtype)
        return self._then(lambda scope, a: self._cast(scope, a, target))

    def _cast(self, scope: Scope, a: Made, target: DType) -> Made:
        if a.dtype.is_temporal and target.is_integer and not a.constant:
            return cast(scope, scope.made(moments.physical(self)), target)
        return cast(scope, a, target)

    def to_physical(self) -> Expression:
        return moments.physical(self)

    # -- comparisons and conditions -------------------------------------------------------------

    def _compared(self, other: Any, function: Callable[[Any, Any], Any]) -> Expression:
        def compare(scope: Scope, a: Made, b: Made) -> Made:
            a, b = numbers.matched(scope, a, b)
            scope.ns.require_comparable(a.dtype)
            return typed(function(a.expr, b.expr), BOOLEAN, a, b)

        return self._then(compare, other)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compared(other, lambda a, b: a != b)

    def __lt__(self, other: Any) -> Expression:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Expression:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Expression:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Expression:
        return self._compared(other, lambda a, b: a >= b)

    __hash__ = object.__hash__

    def eq_missing(self, other: Any) -> Expression:
        def compare(scope: Scope, a: Made, b: Made) -> Made:
            a, b = (scope.once(m) for m in numbers.matched(scope, a, b))
            scope.ns.require_comparable(a.dtype)
            one, other = a.expr.is_null(), b.expr.is_null()
            made = scope.ns.nw.when(one | other).then(one & other).otherwise(a.expr == b.expr)
            return typed(made, BOOLEAN, a, b)

        return self._then(compare, other)

    def ne_missing(self, other: Any) -> Expression:
        return ~self.eq_missing(other)

    def is_between(self, lower_bound: Any, upper_bound: Any, closed: Name = "both") -> Expression:
        low = self >= lower_bound if closed in ("both", "left") else self > lower_bound
        high = self <= upper_bound if closed in ("both", "right") else self < upper_bound
        made: Expression = low & high
        return made

    def __and__(self, other: Any) -> Expression:
        return self._joined(other, lambda a, b: a & b)

    def __or__(self, other: Any) -> Expression:
        return self._joined(other, lambda a, b: a | b)

    def __xor__(self, other: Any) -> Expression:
        return self._joined(other, lambda a, b: a != b)

    def _joined(self, other: Any, function: Callable[[Any, Any], Any]) -> Expression:
        def join(scope: Scope, a: Made, b: Made) -> Made:
            a, b = numbers.matched(scope, a, b)
            if not a.dtype.is_boolean:
                raise self.ns.refused("a whole number combined bit by bit")
            return typed(function(a.expr, b.expr), BOOLEAN, a, b)

        return self._then(join, other)

    def __invert__(self) -> Expression:
        return self._then(lambda scope, a: a.having(~a.expr, BOOLEAN))

    def is_null(self) -> Expression:
        return self._then(lambda scope, a: a.having(a.expr.is_null(), BOOLEAN))

    def is_not_null(self) -> Expression:
        return self._then(lambda scope, a: a.having(~a.expr.is_null(), BOOLEAN))

    def is_nan(self) -> Expression:
        return self._of_real(lambda x: x.is_nan())

    def is_not_nan(self) -> Expression:
        return self._of_real(lambda x: ~x.is_nan())

    def is_finite(self) -> Expression:
        return self._of_real(lambda x: x.is_finite())

    def is_infinite(self) -> Expression:
        return self._of_real(lambda x: ~x.is_finite() & ~x.is_nan())

    def _of_real(self, function: Callable[[Any], Any]) -> Expression:
        def check(scope: Scope, a: Made) -> Made:
            a = scope.once(a)
            known = scope.ns.nw.when(~a.expr.is_null()).then(function(a.expr))
            return a.having(known, BOOLEAN)

        return self._then(check)

    def is_in(self, listed: Listed) -> Expression:
        return self._then(listed.holds)

    # -- null and NaN ---------------------------------------------------------------------------

    def fill_null(self, value: Any) -> Expression:
        return self.ns.coalesce(self, value)

    def fill_nan(self, value: None) -> Expression:
        def fill(scope: Scope, a: Made) -> Made:
            a = scope.once(a)
            return a.having(scope.ns.nw.when(~a.expr.is_nan()).then(a.expr), a.dtype, a.lo, a.hi)

        if value is not None:
            raise self.ns.refused("fill_nan with a value")
        return self._then(fill)

    # -- look-ups -------------------------------------------------------------------------------

    def replace_strict(
        self, old: pl.Series, new: Sequence[Any], *, default: Any, return_dtype: Any
    ) -> Expression:
        """Constants in place of listed values."""
        dtype = from_polars(return_dtype)
        return self._then(lambda scope, a: chosen(scope, a, old, list(new), default, dtype))

    # -- aggregates -----------------------------------------------------------------------------

    def _aggregate(self, how: Name) -> Expression:
        return Expression(
            self.ns, lambda scope: scope.aggregate(self, how), self.names, True, self.name
        )

    def sum(self) -> Expression:
        return self._aggregate("sum")

    def count(self) -> Expression:
        return self._aggregate("count")

    def max(self) -> Expression:
        return self._aggregate("max")

    def drop_nulls(self) -> Distinct:
        return Distinct(self)

    def cum_count(self) -> Windowed:
        return Windowed(self)

    # -- kinds of values ------------------------------------------------------------------------

    @property
    def str(self) -> texts.Texts:
        return texts.Texts(self)

    @property
    def dt(self) -> moments.Moments:
        return moments.Moments(self)

    @property
    def meta(self) -> Meta:
        return Meta(self)


class Meta:
    """What is known of an expression before it is made."""

    __slots__ = ("_expression",)

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def root_names(self) -> list[str]:
        return list(self._expression.names)


class Distinct:
    """The values of an expression that are not null, to be counted."""

    __slots__ = ("_expression",)

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def n_unique(self) -> Expression:
        return self._expression._aggregate("n_unique")


class Windowed:
    """A number of rows, over other rows of the same value: of all, or of those up to this one, in
    which `counted` is never null.
    """

    __slots__ = ("_counted",)

    def __init__(self, counted: Expression | None) -> None:
        self._counted = counted

    def over(
        self, partition: Sequence[Expression], order_by: Sequence[Expression] = ()
    ) -> Expression:
        counted, first = self._counted, partition[0]
        operands = [*partition, *order_by]

        def make(scope: Scope) -> Made:
            nw = scope.ns.nw
            names, stages = zip(*(scope.name_of(scope.made(o)) for o in operands), strict=True)
            within, order = list(names[: len(partition)]), list(names[len(partition) :])
            if counted is None:
                number = nw.len().over(*within).cast(nw.Int64)
                return scope.once(Made(number, INT64, 0, 2**62, max(stages)))
            name, stage = scope.position(within, order, max(stages))
            return Made(nw.col(name), INT64, 0, 2**62, stage, is_plain=True)

        return Expression(first.ns, make, [n for o in operands for n in o.names])


class Row:
    """Several values of a row side by side."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Sequence[Expression]) -> None:
        self._fields = tuple(fields)

    @property
    def struct(self) -> Row:
        return self

    def field(self, name: str) -> Expression:
        """One of the values again."""
        (found,) = (f for f in self._fields if f.name == name)
        return found

    def hash(self, salt: int) -> Expression:
        """The engine's hash of the values."""
        fields, ns = self._fields, self._fields[0].ns

        def make(scope: Scope) -> Made:
            found = [scope.name_of(scope.made(f)) for f in fields]
            stage = max(s for _, s in found)
            name, stage = scope.hashed([n for n, _ in found], stage, salt)
            return Made(ns.nw.col(name), INT64, *ns.hash_limits, stage, is_plain=True)

        return Expression(ns, make, [n for f in fields for n in f.names])
