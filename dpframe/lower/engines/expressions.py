"""Expressions as lowered operations write them, for an engine behind Narwhals.

They have those of Polars' methods that lowered operations need; others are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.dtypes import BOOLEAN, INT64
from dpframe.lower.engines import numbers
from dpframe.lower.engines.calendar import between, moved, physical
from dpframe.lower.engines.casts import cast, chosen_by, coalesced
from dpframe.lower.engines.engine_expr import Dialect, EngineExpr, EngineScope, Node, combined
from dpframe.lower.engines.numbers import aggregated, chosen, place, total_within
from dpframe.lower.engines.operators import Operators
from dpframe.lower.engines.strings import StringOps
from dpframe.lower.engines.temporal import TemporalOps
from dpframe.rows.polars_dtypes import from_polars

Name: TypeAlias = str
"""`str`, which is a property below."""


class Expression(Operators):
    """An expression with Polars' methods."""

    __slots__ = ()

    def __getattr__(self, name: Name) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.dialect.refused(f".{name}")

    def like(self, node: Node, names: Sequence[Name], reduces: bool, name: Name | None) -> Self:
        """Another expression, which is neither a number of rows nor waits for another value."""
        return Expression(self.dialect, node, names, reduces, name)  # type: ignore[return-value]

    # -- numbers and moments --------------------------------------------------------------------

    def __add__(self, other: Any) -> Self:
        return self._unless_moments(super().__add__(other), self.lifted(other), 1)

    def __sub__(self, other: Any) -> Self:
        return self._unless_moments(super().__sub__(other), self.lifted(other), -1)

    def _unless_moments(self, numbers: Self, other: Self, sign: int) -> Self:
        """A sum or difference of numbers, or of moments near the calendar and of durations."""

        def choose(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
            made = numbers
            if a.dtype.name in ("Date", "Datetime") and b.dtype.name == "Duration":
                made = moved(self, other, sign)
            elif sign < 0 and a.dtype.is_temporal and a.dtype == b.dtype:
                made = between(self, other)
            return scope.made(made.node)

        return self.then(choose, other)

    def clip(self, lower_bound: Any = None, upper_bound: Any = None) -> Self:
        return self.then(lambda scope, a: numbers.clamped(scope, a, lower_bound, upper_bound))

    def floor(self) -> Self:
        return self.then(numbers.floored)

    def ceil(self) -> Self:
        return -(-self).floor()

    def abs(self) -> Self:
        return self.then(numbers.absolute)

    def sign(self) -> Self:
        return self.then(numbers.sign)

    def sqrt(self) -> Self:
        return self.then(numbers.root)

    def round(self, decimals: int = 0) -> Self:
        return self.then(lambda scope, a: numbers.rounded(scope, a, decimals))

    def pow(self, exponent: Self) -> Self:
        def power(scope: EngineScope, a: EngineExpr, given: EngineExpr) -> EngineExpr:
            value = given.constant[0] if given.constant else None
            if a.dtype.is_integer and isinstance(value, int) and value >= 0:
                return numbers.raised(scope, a, value)
            raise scope.dialect.refused("a power of floats")

        return self.then(power, exponent)

    def cast(self, dtype: Any, *, strict: bool = True) -> Self:
        target = from_polars(dtype)

        def convert(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            if a.dtype.is_temporal and target.is_integer and not a.constant:
                a = scope.made(physical(self).node)
            return cast(scope, a, target)

        return self.then(convert)

    def to_physical(self) -> Self:
        return physical(self)

    # -- conditions -----------------------------------------------------------------------------

    def eq_missing(self, other: Any) -> Self:
        def compare(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
            a, b = (scope.once(m) for m in numbers.matched(scope, a, b))
            scope.dialect.require_comparable(a.dtype)
            one, other = a.expr.is_null(), b.expr.is_null()
            made = nw.when(one | other).then(one & other).otherwise(a.expr == b.expr)
            return combined(made, BOOLEAN, a, b)

        return self.then(compare, other)

    def ne_missing(self, other: Any) -> Self:
        return ~self.eq_missing(other)

    def is_between(self, lower_bound: Any, upper_bound: Any, closed: Name = "both") -> Self:
        low = self >= lower_bound if closed in ("both", "left") else self > lower_bound
        high = self <= upper_bound if closed in ("both", "right") else self < upper_bound
        both: Self = low & high
        return both

    def is_null(self) -> Self:
        return self.then(lambda _, a: a.having(a.expr.is_null(), BOOLEAN))

    def is_not_null(self) -> Self:
        return self.then(lambda _, a: a.having(~a.expr.is_null(), BOOLEAN))

    def is_nan(self) -> Self:
        return self._of_real(lambda x: x.is_nan())

    def is_not_nan(self) -> Self:
        return self._of_real(lambda x: ~x.is_nan())

    def is_finite(self) -> Self:
        return self._of_real(lambda x: x.is_finite())

    def is_infinite(self) -> Self:
        return self._of_real(lambda x: ~x.is_finite() & ~x.is_nan())

    def _of_real(self, function: Callable[[nw.Expr], nw.Expr]) -> Self:
        def check(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            a = scope.once(a)
            return a.having(nw.when(~a.expr.is_null()).then(function(a.expr)), BOOLEAN)

        return self.then(check)

    def is_in(self, listed: ConstantList) -> Self:
        return self.then(listed.holds)

    # -- null and NaN ---------------------------------------------------------------------------

    def fill_null(self, value: Any) -> Self:
        return self.then(coalesced, value)

    def fill_nan(self, value: None) -> Self:
        def fill(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            a = scope.once(a)
            return a.having(nw.when(~a.expr.is_nan()).then(a.expr), a.dtype, a.interval)

        if value is not None:
            raise self.dialect.refused("fill_nan with a value")
        return self.then(fill)

    # -- look-ups -------------------------------------------------------------------------------

    def replace_strict(
        self, old: pl.Series, new: Sequence[Any], *, default: Any, return_dtype: Any
    ) -> Self:
        """Constants in place of listed values."""
        dtype = from_polars(return_dtype)
        return self.then(lambda scope, a: chosen(scope, a, old, list(new), default, dtype))

    # -- aggregates -----------------------------------------------------------------------------

    def _aggregate(self, how: Name) -> Self:
        node = self.node
        made = Node(lambda scope: aggregated(scope, node, how))
        return self.like(made, self.names, True, self.name)

    def sum(self) -> Total:
        return Total(self)

    def count(self) -> Self:
        return self._aggregate("count")

    def max(self) -> Self:
        return self._aggregate("max")

    def min(self) -> Self:
        return self._aggregate("min")

    def drop_nulls(self) -> Distinct:
        return Distinct(self._aggregate("n_unique"))

    def cum_count(self) -> Position:
        return Position()

    # -- kinds of values ------------------------------------------------------------------------

    @property
    def str(self) -> StringOps[Self]:
        return StringOps(self)

    @property
    def dt(self) -> TemporalOps[Self]:
        return TemporalOps(self)

    @property
    def meta(self) -> Meta:
        return Meta(self.names)


class Meta:
    """The facts about an expression before it is made."""

    __slots__ = ("_names",)

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def root_names(self) -> list[str]:
        return list(self._names)


class Distinct:
    """The values of an expression that are not null, to be counted."""

    __slots__ = ("_number",)

    def __init__(self, number: Expression) -> None:
        self._number = number

    def n_unique(self) -> Expression:
        return self._number


class Length(Expression):
    """The number of rows: of a group, or over rows of the same value."""

    __slots__ = ()

    def __init__(self, dialect: Dialect) -> None:
        node = Node(lambda scope: aggregated(scope, None, "len"))
        super().__init__(dialect, node, (), True, "len")

    def over(self, partition: Sequence[Expression]) -> Expression:
        def make(scope: EngineScope) -> EngineExpr:
            return scope.number_within([scope.made(p.node) for p in partition])

        return self.like(Node(make), [n for p in partition for n in p.names], False, None)


class Total(Expression):
    """The sum of numbers: of a group, or over rows of the same value."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Expression) -> None:
        self._rows = rows
        node = Node(lambda scope: aggregated(scope, rows.node, "sum"))
        super().__init__(rows.dialect, node, rows.names, True, rows.name)

    def over(self, partition: Sequence[Expression]) -> Expression:
        rows = self._rows

        def make(scope: EngineScope) -> EngineExpr:
            within = [scope.made(p.node) for p in partition]
            return total_within(scope, scope.made(rows.node), within)

        names = [*rows.names, *(name for p in partition for name in p.names)]
        return self.like(Node(make), names, False, None)


class Position:
    """A row's place among others of the same value; what is counted up to it is never null."""

    __slots__ = ()

    def over(self, partition: Sequence[Expression], order_by: Sequence[Expression]) -> Expression:
        def make(scope: EngineScope) -> EngineExpr:
            within, order = ([scope.made(e.node) for e in given] for given in (partition, order_by))
            return scope.position(within, order)

        names = [name for e in (*partition, *order_by) for name in e.names]
        return partition[0].like(Node(make), names, False, None)


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
        fields = self._fields

        def make(scope: EngineScope) -> EngineExpr:
            return scope.hashed([scope.made(f.node) for f in fields], salt)

        return fields[0].like(Node(make), [n for f in fields for n in f.names], False, None)


class When:
    """A condition, on which it will depend which value is taken."""

    __slots__ = ("_condition",)

    def __init__(self, condition: Expression) -> None:
        self._condition = condition

    def then(self, value: Any) -> Then:
        return Then(self._condition, value)


class Then(Expression):
    """A value where a condition holds, else null, until an alternative is given."""

    __slots__ = ("_condition", "_value")

    def __init__(self, condition: Expression, value: Any) -> None:
        self._condition, self._value = condition, value
        made = condition.then(chosen_by, value, None)
        super().__init__(made.dialect, made.node, made.names, made.reduces)

    def otherwise(self, other: Any) -> Expression:
        return self._condition.then(chosen_by, self._value, other)


class ConstantList:
    """A column of constants."""

    __slots__ = ("_values",)

    def __init__(self, values: pl.Series) -> None:
        self._values = values

    def implode(self) -> ConstantList:
        return self

    def holds(self, scope: EngineScope, a: EngineExpr) -> EngineExpr:
        """Whether a value is among them; null for null."""
        found = chosen(scope, a, self._values, [1] * len(self._values), 0, INT64)
        present = ~scope.once(a).expr.is_null()
        known = nw.when(present).then(found.expr == nw.lit(1, nw.Int64))
        return combined(known, BOOLEAN, found, scope.once(a))

    def search_sorted(self, number: Expression, side: str) -> Expression:
        """How many of them, sorted, are below a number; ``"right"`` counts equal ones too."""
        edges, floats = self._values.to_list(), from_polars(self._values.dtype).is_float

        def count(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            return place(scope, numbers.real(a) if floats else a, edges, side == "right")

        return number.then(count)
