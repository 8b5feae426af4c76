"""Polars' aggregates of the rows of one individual, such as their sum, their mean, or the latest.

Each is an operation in trees, like a row-wise operation for plans, inference and the check of
engines. It is never lowered as one: `dpframe.frames.group_by_individual` takes the aggregates out
of a tree, computes each for every individual, and leaves a column in its place.

Guarantee
---------
The value is a function of the rows of one individual (and of one value of further keys). Each bit
is independent of the order of these rows, of how they are stored, and of other individuals' rows.
The result is always a value or null: no row can make it fail.

Proof
-----
Sums are sums of whole numbers: counts, integers, and floats that were clamped and rounded to whole
steps of a grid. Each term is at most 2**31 in size, and an engine groups fewer than 2**32 rows, so
no sum leaves 64 bits, and sums of whole numbers are the same in any order. A minimum, maximum,
median or number of different values is a function of the set of values, with equal values in one
form (0.0 for -0.0). Row-wise operations compute the results that need several of these."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeAlias

import polars as pl

from dpframe.core.dtypes import BOOLEAN, FLOAT64, INT64, Domain, columns
from dpframe.core.interval import EVERYTHING, UNIT, Interval, interval
from dpframe.core.tree import (
    Call,
    Change,
    Column,
    Constant,
    Literal,
    Named,
    Operation,
    Tree,
    map_named,
    walk,
)
from dpframe.core.units import EVERYWHERE, POLARS
from dpframe.errors import UnboundedSensitivity, UnsupportedOperation, require
from dpframe.frames.facts import FrameFacts
from dpframe.frames.relation import FramePart, Step
from dpframe.frames.row_steps import Drop, Filter, Select, WithColumns, unique_names
from dpframe.frames.sampling import new_name, once
from dpframe.kernel.frame import RowLimit, rename_limits
from dpframe.rows.fold import domain, lower, outer_words
from dpframe.rows.layouts import grouped, grouped_type, unordered, unsigned_zero
from dpframe.rows.operands import is_number, is_wide, may_be_infinite, widen, widen_to_float
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars

_PLACES = 31
"""A value is at most 2**31 steps of its grid, or is at most so large as a whole number."""
_MOST = 2**_PLACES
_FAR = Fraction(2) ** 900
"""Beyond this a step of the grid might not be a normal float."""
_OVERFLOWS = Fraction(2) ** 1022
"""Beyond this the sum or the distance of two floats may be infinite, and the value between them
infinite or NaN.
"""


class IndividualAggregate(Operation):
    """One aggregate of an individual's rows; its fields are its constants."""

    __slots__ = ()
    arity: ClassVar[int] = 1

    @property
    def constants(self) -> tuple[tuple[str, Constant], ...]:
        return tuple((f.name, getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]

    @abstractmethod
    def rows(self, ns: Namespace, value: pl.Expr | None, known: Domain | None) -> list[pl.Expr]:
        """What each row gives: total expressions of the row."""

    @abstractmethod
    def reduce(self, columns: Sequence[pl.Expr], ns: Namespace) -> list[pl.Expr]:
        """What is aggregated of these, by individual."""

    @abstractmethod
    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        """The value, from the columns of what was aggregated."""

    def lower(self, ns: Any, args: Sequence[Any], domains: Sequence[Domain]) -> Any:
        raise AssertionError("aggregates of individuals are columns before a tree is lowered")

    def domain(self, args: Sequence[Domain]) -> Domain:
        (known,) = args
        if not known.dtype.is_known:
            raise self._refusal(known)
        return self.of(known)

    @abstractmethod
    def of(self, known: Domain) -> Domain:
        """What is known of the value, from what is known of its rows' values."""

    def bounds(self, known: Domain) -> tuple[Fraction, Fraction] | None:
        """The bounds to which values are clamped, where they are added up."""
        return None

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self._method}()"

    @property
    def _method(self) -> str:
        return self.name.removeprefix("individual_")

    def _refusal(self, known: Domain, remedy: str | None = None) -> UnsupportedOperation:
        return UnsupportedOperation(
            f"{self._method} of values of type {known.dtype} is not computed of one individual's "
            "rows",
            remedy=remedy or "use a column of numbers, or .count() or .n_unique()",
        )


def _flag(condition: pl.Expr, ns: Namespace) -> pl.Expr:
    """A condition as 0 or 1."""
    number: pl.Expr = condition.cast(ns.Int64)
    return number


def _some(total: pl.Expr) -> pl.Expr:
    """Whether a sum of flags, which is null of nothing on some engines, is positive."""
    return total.fill_null(0) > 0


def _at_least(number: int) -> Domain:
    return Domain(INT64, nullable=False, interval=interval(number, None))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Length(IndividualAggregate):
    """The number of rows."""

    name = "individual_len"
    engines = EVERYWHERE
    arity: ClassVar[int] = 0

    def domain(self, args: Sequence[Domain]) -> Domain:
        return _at_least(1)

    def of(self, known: Domain) -> Domain:
        return _at_least(1)

    def rows(self, ns: Namespace, value: pl.Expr | None, known: Domain | None) -> list[pl.Expr]:
        return []

    def reduce(self, columns: Sequence[pl.Expr], ns: Namespace) -> list[pl.Expr]:
        return [ns.len().cast(ns.Int64)]

    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        return columns[0]

    def words(self, args: Sequence[str]) -> str:
        return "len()"


class _Flags(IndividualAggregate):
    """What follows from how many rows fulfil a condition."""

    __slots__ = ()

    @abstractmethod
    def condition(self, value: pl.Expr) -> pl.Expr:
        """The condition, which may be null where it is not fulfilled."""

    def rows(self, ns: Namespace, value: pl.Expr | None, known: Domain | None) -> list[pl.Expr]:
        assert value is not None
        return [_flag(self.condition(value), ns)]

    def reduce(self, columns: Sequence[pl.Expr], ns: Namespace) -> list[pl.Expr]:
        return [columns[0].sum()]

    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        return columns[0].fill_null(0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Count(_Flags):
    """The number of values that are not null."""

    name = "individual_count"
    engines = EVERYWHERE

    def of(self, known: Domain) -> Domain:
        return _at_least(0 if known.nullable else 1)

    def condition(self, value: pl.Expr) -> pl.Expr:
        return value.is_not_null()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NullCount(_Flags):
    """The number of nulls."""

    name = "individual_null_count"
    engines = EVERYWHERE

    def of(self, known: Domain) -> Domain:
        return _at_least(0)

    def condition(self, value: pl.Expr) -> pl.Expr:
        return value.is_null()


class _Conditions(_Flags):
    """A condition of all rows, in which nulls do not count."""

    __slots__ = ()

    def of(self, known: Domain) -> Domain:
        if not known.dtype.is_boolean:
            raise self._refusal(known, "compare the values with something first")
        return Domain(BOOLEAN, nullable=False, interval=UNIT, categories=(False, True))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Any_(_Conditions):
    """Whether a value is true."""

    name = "individual_any"
    engines = EVERYWHERE

    def condition(self, value: pl.Expr) -> pl.Expr:
        return value

    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        return _some(columns[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class All(_Conditions):
    """Whether no value is false."""

    name = "individual_all"
    engines = EVERYWHERE

    def condition(self, value: pl.Expr) -> pl.Expr:
        return ~value

    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        return ~_some(columns[0])


class _Numbers(IndividualAggregate):
    """Aggregates that need the sum of numbers. Floats are added up in whole steps of a grid; the
    larger bound is between 2**30 and 2**31 steps.
    """

    __slots__ = ()

    def bounds(self, known: Domain) -> tuple[Fraction, Fraction]:
        """The bounds to which values are clamped before they are added up.

        Raises
        ------
        UnsupportedOperation
            For values that are not numbers.
        UnboundedSensitivity
            When no bounds are known, or when a sum of whole numbers may be too large.
        """
        if not is_number(known.dtype) or known.dtype.name == "Null":
            raise self._refusal(known)
        bounds = known.bounds
        whole = not (known.dtype.is_float or known.dtype.is_decimal)
        if bounds is None:
            raise UnboundedSensitivity(
                f"the {self._method} of one individual's rows needs bounds of the values: without "
                "them it could be too large for 64 bits"
                if whole
                else f"the {self._method} of one individual's rows needs bounds of the values: "
                "floats without bounds have no sum that is the same in any order",
                remedy=f"write pl.col(name).clip(low, high).{self._method}(), or declare "
                "session.protect(..., bounds={name: (low, high)})",
            )
        magnitude = max(abs(bounds[0]), abs(bounds[1]))
        if magnitude > (_MOST if whole else _FAR):
            raise UnboundedSensitivity(
                f"the {self._method} of one individual's rows could be too large for 64 bits: a "
                f"value may be as large as {float(magnitude):g}",
                remedy=f"write pl.col(name).cast(pl.Float64).clip(low, high).{self._method}()"
                if whole
                else f"write pl.col(name).clip(low, high).{self._method}() with closer bounds",
            )
        return bounds

    def _step(self, known: Domain) -> Fraction:
        """The step of the grid: a power of two; 1 for whole numbers."""
        low, high = self.bounds(known)
        magnitude = max(abs(low), abs(high))
        if not (known.dtype.is_float or known.dtype.is_decimal) or not magnitude:
            return Fraction(1)
        exponent = math.frexp(float(magnitude))[1]  # magnitude <= 2**exponent, rounded or not
        return Fraction(2) ** (max(exponent, -900) - _PLACES)

    def rows(self, ns: Namespace, value: pl.Expr | None, known: Domain | None) -> list[pl.Expr]:
        assert value is not None
        assert known is not None
        low, high = self.bounds(known)
        if not (known.dtype.is_float or known.dtype.is_decimal):
            return [widen(value, known).clip(math.ceil(low), math.floor(high))]
        number = widen_to_float(value, known)
        finite = number.fill_nan(None) if known.nan else number
        places = finite.clip(float(low), float(high)) * float(1 / self._step(known))
        found = [(places + 0.5).floor().cast(ns.Int64, strict=False)]
        return [*found, _flag(number.is_nan(), ns)] if known.nan else found

    def reduce(self, columns: Sequence[pl.Expr], ns: Namespace) -> list[pl.Expr]:
        return [*(column.sum() for column in columns), _flag(columns[0].is_not_null(), ns).sum()]

    def _unless_nan(
        self, ns: Namespace, columns: Sequence[pl.Expr], found: pl.Expr, known: Domain
    ) -> pl.Expr:
        """The value, but NaN where a row has that."""
        if not known.nan:
            return found
        made: pl.Expr = (
            ns.when(_some(columns[1])).then(ns.lit(math.nan, dtype=pl.Float64)).otherwise(found)
        )
        return made

    def _total(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain) -> pl.Expr:
        number = columns[0].fill_null(0)
        step = self._step(known)
        return number if step == 1 else number.cast(ns.Float64) * float(step)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sum(_Numbers):
    """The sum of the values, 0 of none; NaN where a value is."""

    name = "individual_sum"
    engines = EVERYWHERE

    def of(self, known: Domain) -> Domain:
        low, high = self.bounds(known)
        reach = interval(0 if low >= 0 else None, 0 if high <= 0 else None)
        is_whole = not (known.dtype.is_float or known.dtype.is_decimal)
        return Domain(INT64 if is_whole else FLOAT64, nullable=False, nan=known.nan, interval=reach)

    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        assert known is not None
        total = self._total(ns, columns, known)
        if known.dtype.is_float or known.dtype.is_decimal:
            total = total.cast(ns.Float64)
        return self._unless_nan(ns, columns, total, known)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mean(_Numbers):
    """The mean of the values, null of none; NaN where a value is."""

    name = "individual_mean"
    engines = EVERYWHERE

    def of(self, known: Domain) -> Domain:
        low, high = self.bounds(known)
        reach = Interval(low, high).as_float()
        return Domain(FLOAT64, nullable=known.nullable, nan=known.nan, interval=reach)

    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        assert known is not None
        low, high = self.bounds(known)
        number = columns[-1]
        some = ns.when(_some(number)).then(number).cast(ns.Float64)
        mean = self._total(ns, columns, known).cast(ns.Float64) / some
        return self._unless_nan(ns, columns, mean.clip(float(low), float(high)), known)


class _Extreme(IndividualAggregate):
    """The least or largest value; NaN is skipped unless there is nothing else."""

    __slots__ = ()

    def of(self, known: Domain) -> Domain:
        dtype = known.dtype
        if dtype.is_decimal:
            raise self._refusal(known, f".cast(pl.Float64).{self._method}()")
        if dtype.is_boolean:
            raise self._refusal(known, "use .any() or .all()")
        if not dtype.is_ordered or dtype.name == "Int128":
            raise self._refusal(known)
        return replace(known, categories=None)

    def rows(self, ns: Namespace, value: pl.Expr | None, known: Domain | None) -> list[pl.Expr]:
        assert value is not None
        assert known is not None
        if not known.dtype.is_float:
            return [unordered(ns, value)]
        number = value.fill_nan(None) if known.nan else value
        found = [unordered(ns, unsigned_zero(ns, number, known.dtype))]
        return [*found, _flag(value.is_nan(), ns)] if known.nan else found

    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        assert known is not None
        if not known.nan:
            return columns[0]
        nan = ns.lit(math.nan, dtype=to_polars(known.dtype))
        alone = columns[0].is_null() & _some(columns[1])
        made: pl.Expr = ns.when(alone).then(nan).otherwise(columns[0])
        return made


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Least(_Extreme):
    """The least value."""

    name = "individual_min"
    engines = EVERYWHERE

    def reduce(self, columns: Sequence[pl.Expr], ns: Namespace) -> list[pl.Expr]:
        return [columns[0].min(), *(flags.sum() for flags in columns[1:])]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Largest(_Extreme):
    """The largest value."""

    name = "individual_max"
    engines = EVERYWHERE

    def reduce(self, columns: Sequence[pl.Expr], ns: Namespace) -> list[pl.Expr]:
        return [columns[0].max(), *(flags.sum() for flags in columns[1:])]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DistinctCount(IndividualAggregate):
    """The number of different values. NaN counts as one value, and null too if `nulls`."""

    name = "individual_n_unique"
    engines = EVERYWHERE

    nulls: bool

    def of(self, known: Domain) -> Domain:
        if known.dtype.is_nested or known.dtype.name in ("Null", "Binary"):
            raise self._refusal(known, "count the values of one field or element")
        return _at_least(1 if self.nulls or not known.nullable else 0)

    def rows(self, ns: Namespace, value: pl.Expr | None, known: Domain | None) -> list[pl.Expr]:
        assert value is not None
        assert known is not None
        present = value
        if known.dtype.is_float:
            present = unsigned_zero(ns, value.fill_nan(None), known.dtype)
        found = [grouped(ns, present, known.dtype)]
        found += [_flag(value.is_null(), ns)] if known.nullable and self.nulls else []
        return [*found, _flag(value.is_nan(), ns)] if known.nan else found

    def reduce(self, columns: Sequence[pl.Expr], ns: Namespace) -> list[pl.Expr]:
        distinct = columns[0].drop_nulls().n_unique().cast(ns.Int64)
        return [distinct, *(flags.sum() for flags in columns[1:])]

    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        found = columns[0]
        for flags in columns[1:]:
            found = found + _flag(_some(flags), ns)
        return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Quantile(IndividualAggregate):
    """A quantile of the values, null of none; NaN is larger than numbers, as in Polars."""

    name = "individual_quantile"
    engines = frozenset((POLARS,))

    q: float
    interpolation: str
    is_median: bool = False

    def of(self, known: Domain) -> Domain:
        if not is_number(known.dtype) or known.dtype.name in ("Null", "Boolean"):
            raise self._refusal(known)
        if is_wide(known):
            raise self._refusal(known, "clip the values first, or cast them to pl.Float64")
        nan = known.nan or may_be_infinite(known)
        reach = known.interval.as_float().widen()
        ends = (end for end in (known.interval.lo, known.interval.hi) if end is not None)
        if any(abs(end) > _OVERFLOWS for end in ends):
            nan, reach = True, EVERYTHING
        return Domain(FLOAT64, nullable=known.nullable, nan=nan, interval=reach)

    def rows(self, ns: Namespace, value: pl.Expr | None, known: Domain | None) -> list[pl.Expr]:
        assert value is not None
        assert known is not None
        number = unsigned_zero(ns, widen_to_float(value, known), FLOAT64)
        return [unordered(ns, number)]

    def reduce(self, columns: Sequence[pl.Expr], ns: Namespace) -> list[pl.Expr]:
        return [columns[0].quantile(self.q, self.interpolation)]  # type: ignore[arg-type]

    def result(self, ns: Namespace, columns: Sequence[pl.Expr], known: Domain | None) -> pl.Expr:
        return unsigned_zero(ns, columns[0], FLOAT64)

    def words(self, args: Sequence[str]) -> str:
        if self.is_median:
            return f"{args[0]}.median()"
        return f"{args[0]}.quantile({self.q}, {self.interpolation!r})"


AGGREGATES: Mapping[str, type[IndividualAggregate]] = {
    aggregate.name: aggregate
    for aggregate in (
        *(Length, Count, NullCount, Any_, All, Sum, Mean),
        *(Least, Largest, DistinctCount, Quantile),
    )
}
"""All aggregates, by name."""
ADDING = frozenset(aggregate.name for aggregate in (Sum, Mean))
"""The names of aggregates that add values up."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Over(Operation):
    """An aggregate of an individual's rows, in each of these rows.

    Its operands are those of the aggregate, then the identifier, then further keys.
    """

    name = "over_individual"
    aggregate: IndividualAggregate

    @property
    def engines(self) -> frozenset[str]:  # type: ignore[override]
        return self.aggregate.engines

    @property
    def constants(self) -> tuple[tuple[str, Constant], ...]:
        return (("aggregate", self.aggregate.name), *self.aggregate.constants)

    def domain(self, args: Sequence[Domain]) -> Domain:
        return self.aggregate.domain(args[: self.aggregate.arity])

    def lower(self, ns: Any, args: Sequence[Any], domains: Sequence[Domain]) -> Any:
        raise AssertionError("aggregates of individuals are columns before a tree is lowered")

    def words(self, args: Sequence[str]) -> str:
        arity = self.aggregate.arity
        return f"{self.aggregate.words(args[:arity])}.over({', '.join(args[arity:])})"


def aggregate_calls(tree: Tree) -> list[Call]:
    """The aggregates of individuals in a tree, each with its operands."""
    return [
        node
        for node in walk(tree)
        if isinstance(node, Call) and isinstance(node.operation, (IndividualAggregate, Over))
    ]


# -- The steps ------------------------------------------------------------------------------------


_Aggregate: TypeAlias = "tuple[str, IndividualAggregate, tuple[Tree, ...]]"
"""The name of a column, the aggregate that it holds, and what that is of."""


@dataclass(frozen=True, slots=True)
class Gather(Step):
    """Aggregates of each individual's rows as columns: in one row for each individual and value of
    `by`, or repeated in each of the rows.

    Guarantee
    ---------
    Each value is computed from the rows of one individual alone, and their order does not matter.
    An individual has no more rows or groups than before.

    Proof
    -----
    Rows are grouped by the identifier and by keys that are computed from each row alone, and each
    aggregate is a function of the rows of one group (see `dpframe.frames.group_by_individual`).
    """

    engines = EVERYWHERE

    by: tuple[Named, ...]  # Further keys that divide an individual's rows
    aggregates: tuple[_Aggregate, ...]  # Each aggregate, with the name of its column
    beside: bool  # Whether the rows stay

    def map_exprs(self, change: Change) -> Self:
        by = map_named(self.by, change)
        made = tuple((name, how, tuple(map(change, of))) for name, how, of in self.aggregates)
        return replace(self, by=by, aggregates=made)

    def facts(self, before: FrameFacts) -> FrameFacts:
        computed = {
            name: how.domain([domain(tree, before.columns) for tree in of])
            for name, how, of in self.aggregates
        }
        if self.beside:
            return replace(before, columns=columns({**before.columns, **computed}))
        who = _identifier(before)
        keys = {n.name: domain(n.tree, before.columns) for n in self.by}
        kept = {who: who} | {n.tree.name: n.name for n in self.by if isinstance(n.tree, Column)}
        return replace(
            before,
            columns=columns({who: before.columns[who], **keys, **computed}),
            complete=False,
            time=None if before.time is None else kept[before.time],
            limits=(
                *rename_limits(before.limits, kept),
                RowLimit(1, frozenset(n.name for n in self.by)),
            ),
        )

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        who = _identifier(before)
        keys = [Named(who, Column(who)), *self.by]
        if not self.beside:
            names = [f"key {i}" for i in range(len(keys))]
            rows = frame.select(*self._keys(keys, names, before, ns), *self._values(before, ns))
            reduced = self._reduce(rows, names, keys, before, ns)
            return reduced.select(
                *(
                    ns.col(_value_name(name, n.tree, before, ns)).alias(n.name)
                    for name, n in zip(names, keys, strict=True)
                ),
                *self._results(before, ns),
            )
        names = [new_name(before.columns, f"key {i} ") for i in range(len(keys))]
        marked = once(frame.with_columns(*self._keys(keys, names, before, ns)))
        rows = marked.select(*map(ns.col, names), *self._values(before, ns))
        reduced = self._reduce(rows, names, (), before, ns)
        results = reduced.select(*map(ns.col, names), *self._results(before, ns))
        joined = marked.join(results, on=names, how="left", nulls_equal=True)
        return joined.drop(*names)

    def _keys(
        self, keys: Sequence[Named], names: Sequence[str], before: FrameFacts, ns: Namespace
    ) -> list[pl.Expr]:
        """The grouping expressions, each followed by its value where that has another form."""
        made = []
        for name, n in zip(names, keys, strict=True):
            value, dtype = lower(n.tree, before.columns, ns), domain(n.tree, before.columns).dtype
            form = grouped(ns, value, dtype) if ns is pl else unordered(ns, value)
            made.append(form.alias(name))
            held = _value_name(name, n.tree, before, ns)
            if held != name and not self.beside:
                made.append(value.alias(held))
        return made

    def _values(self, before: FrameFacts, ns: Namespace) -> list[pl.Expr]:
        made = []
        for i, (_, how, of) in enumerate(self.aggregates):
            value = lower(of[0], before.columns, ns) if of else None
            known = domain(of[0], before.columns) if of else None
            rows = how.rows(ns, value, known)
            made += [unordered(ns, e).alias(f"value {i} {j}") for j, e in enumerate(rows)]
        return made

    def _reduce(
        self,
        rows: pl.LazyFrame,
        names: Sequence[str],
        keys: Sequence[Named],
        before: FrameFacts,
        ns: Namespace,
    ) -> pl.LazyFrame:
        """One row for each combination of keys."""
        held = [_value_name(name, n.tree, before, ns) for name, n in zip(names, keys, strict=False)]
        made = [ns.col(h).first().alias(h) for h in held if h not in names]
        for i, (_, how, of) in enumerate(self.aggregates):
            given = [ns.col(f"value {i} {j}") for j in range(self._width(how, of, before, ns))]
            made += [e.alias(f"found {i} {j}") for j, e in enumerate(how.reduce(given, ns))]
        return rows.group_by(list(names)).agg(*made)

    def _width(
        self, how: IndividualAggregate, of: Sequence[Tree], before: FrameFacts, ns: Namespace
    ) -> int:
        known = domain(of[0], before.columns) if of else None
        return len(how.rows(ns, ns.col("value") if of else None, known))

    def _results(self, before: FrameFacts, ns: Namespace) -> list[pl.Expr]:
        results = []
        for i, (name, how, of) in enumerate(self.aggregates):
            known = domain(of[0], before.columns) if of else None
            given = [ns.col(f"value {i} {j}") for j in range(self._width(how, of, before, ns))]
            reduced = [ns.col(f"found {i} {j}") for j in range(len(how.reduce(given, ns)))]
            results.append(how.result(ns, reduced, known).alias(name))
        return results

    def words(self) -> str:
        by = ", ".join(f"{n.name}={outer_words(n.tree)}" for n in self.by)
        made = ", ".join(
            f"{name}={how.words([outer_words(tree) for tree in of])}"
            for name, how, of in self.aggregates
        )
        return f"gather(by=[{by}], {made})"

    @property
    def computes(self) -> bool:
        return True

    @property
    def is_one_stable(self) -> bool:
        return False

    @property
    def stability(self) -> str:
        return "what is computed depends on rows of the same individual only"


def _value_name(name: str, tree: Tree, before: FrameFacts, ns: Namespace) -> str:
    """The column that has the value of a key: that by which rows are grouped, where it is in the
    same form.
    """
    dtype = domain(tree, before.columns).dtype
    return name if ns is not pl or grouped_type(dtype) == dtype else f"{name} value"


def _identifier(facts: FrameFacts) -> str:
    """The identifier, by which rows are of one individual."""
    who = facts.identifier
    require(who is not None, "aggregates of one individual's rows need an identifier")
    assert who is not None
    return who


def _require_keys(by: Sequence[Named], before: FrameFacts, where: str) -> None:
    """Refuse keys whose equality is unsure, and rows of one person in several windows."""
    for n in by:
        dtype = domain(n.tree, before.columns).dtype
        if dtype.is_float or dtype.is_nested or not dtype.is_known or dtype.name == "Null":
            raise UnsupportedOperation(
                f"rows cannot be grouped by values of type {dtype}",
                where=where,
                remedy="group by text, integers, dates or categories",
            )
    if before.time is not None and not any(n.tree == Column(before.time) for n in by):
        raise UnsupportedOperation(
            f"budgets are for each calendar window of {before.time!r}, and one number of all rows "
            "of a person would be in several windows",
            where=where,
            remedy=f"group by {before.time!r} too; or protect a column that has one value in each "
            "window, such as the first day of the month, as time=, and group by that",
        )


_Bounds: TypeAlias = "tuple[Fraction, Fraction] | None"


def gather_parts(
    part: FramePart, before: FrameFacts
) -> tuple[tuple[Named, ...], tuple[Named, ...], tuple[_Bounds, ...], bool] | None:
    """The keys of aggregates of individuals' rows, the columns that they make and how, the bounds
    of what is added up, and whether the rows stay; None for other parts.
    """
    if not isinstance(part, Gather):
        return None
    made = tuple(Named(name, Call(how, of)) for name, how, of in part.aggregates)
    bounds = tuple(
        how.bounds(domain(of[0], before.columns)) if of else None for _, how, of in part.aggregates
    )
    return part.by, made, bounds, part.beside


class _Composite(Step):
    """A step that is done in several parts, one after another."""

    __slots__ = ()

    def facts(self, before: FrameFacts) -> FrameFacts:
        part, known = self.parts(before)[-1]
        return part.facts(known)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        for part, known in self.parts(before):
            frame = part.lower(frame, known, ns, salt)
        return frame

    @property
    def computes(self) -> bool:
        return True

    @property
    def is_one_stable(self) -> bool:
        return False


def _with_facts(
    parts: Sequence[FramePart], before: FrameFacts
) -> tuple[tuple[FramePart, FrameFacts], ...]:
    """Each part with what is known before it."""
    made = []
    for part in parts:
        made.append((part, before))
        before = part.facts(before)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class GroupByIndividual(_Composite):
    """One row for each individual, or for each individual and value of some keys, with aggregates
    of its rows.

    Guarantee
    ---------
    A row of the result is computed from the rows of one individual alone, and their order does not
    matter. Frames that differ in one individual's rows become frames that differ only in that
    individual's rows: in one row, if there are no further keys. An individual has at most one row
    for each value of the keys, and no more rows or groups than before.

    Proof
    -----
    Rows are grouped by the identifier, and by the keys, which are computed from each row alone. So
    two individuals are never in one group, and each value is a function of one group (see
    `dpframe.frames.group_by_individual`). Take any row of a group to stand for it: that maps the
    rows of the result to different rows before, with the same values of the identifier and of keys
    that are columns. So what was true of an individual's rows before (at most n of them, at most n
    for each value, at most n values) is true of those that stand for groups, and of the result.
    Where individuals are persons in calendar windows, the time is one of the keys, so all rows of a
    group have one time, and the result has it.
    """

    engines = EVERYWHERE

    who: str  # What the identifier is called afterwards
    by: tuple[Named, ...]  # Further keys
    outputs: tuple[Named, ...]  # What is computed: aggregates, and what follows from them

    def map_exprs(self, change: Change) -> Self:
        return replace(self, by=map_named(self.by, change), outputs=map_named(self.outputs, change))

    def parts(self, before: FrameFacts) -> tuple[tuple[FramePart, FrameFacts], ...]:
        identifier = _identifier(before)
        _require_keys(self.by, before, self.words())
        if before.norm is not None:
            raise UnsupportedOperation(
                "limit_norm weighs the rows of an individual, and these become other rows",
                where=self.words(),
                remedy="write limit_norm after group_by(...).agg(...)",
            )
        keys = (Named(self.who, Column(identifier)), *self.by)
        unique_names((*keys, *self.outputs))
        taken = {identifier, *(n.name for n in self.by)}
        found, outputs = _take_out(self.outputs, taken)
        if identifier in {n.name for n in self.by}:
            raise UnsupportedOperation(
                f"{identifier!r} identifies individuals, and another grouping column has its name",
                where=self.words(),
                remedy="give that column another name with .alias(...)",
            )
        selected = (keys[0], *(Named(n.name, Column(n.name)) for n in self.by), *outputs)
        parts = (Gather(self.by, found, beside=False), Select(selected))
        return _with_facts(parts, before)

    def words(self) -> str:
        outputs = ", ".join(f"{n.name}={outer_words(n.tree)}" for n in self.outputs)
        keys = [
            f'"{self.who}"',
            *(
                f'"{n.name}"' if n.tree == Column(n.name) else f"{n.name}={outer_words(n.tree)}"
                for n in self.by
            ),
        ]
        return f"group_by({', '.join(keys)}).agg({outputs})"

    @property
    def stability(self) -> str:
        each = "each individual" if not self.by else "each individual and value of the other keys"
        return f"one row for {each}, computed from that individual's rows alone"


@dataclass(frozen=True, slots=True)
class OverIndividual(_Composite):
    """A step whose expressions have aggregates of the individual's rows in them.

    Guarantee
    ---------
    The result of a row depends only on the rows of the same individual, and not on their order. No
    row is added.

    Proof
    -----
    Each aggregate is added as a column first. Its value belongs to the row's group by the
    identifier and by further keys, which are computed from each row alone. A group has rows of one
    individual only, and the value is a function of them (see
    `dpframe.frames.group_by_individual`). The rest is a row-wise step on these columns. Where
    individuals are persons in calendar windows, the time is one of the keys, so a group is in one
    window.
    """

    engines = EVERYWHERE

    inner: WithColumns | Select | Filter  # The step, with the aggregates in its expressions

    def map_exprs(self, change: Change) -> Self:
        return replace(self, inner=self.inner.map_exprs(change))

    def parts(self, before: FrameFacts) -> tuple[tuple[FramePart, FrameFacts], ...]:
        identifier = _identifier(before)
        names: dict[Call, str] = {}
        taken = {*before.columns}
        if isinstance(self.inner, (WithColumns, Select)):
            taken |= {n.name for n in self.inner.named}
        found: dict[tuple[Tree, ...], list[_Aggregate]] = {}
        for call in (call for tree in self.inner.exprs for call in aggregate_calls(tree)):
            over = call.operation
            assert isinstance(over, Over)
            of, (who, *keys) = call.args[: over.aggregate.arity], call.args[over.aggregate.arity :]
            require(who == Column(identifier), "an aggregate over one individual has only its rows")
            if call not in names:
                names[call] = new_name(taken, f"aggregate {len(names)}")
                found.setdefault(tuple(keys), []).append((names[call], over.aggregate, of))
        parts: list[FramePart] = []
        for trees, aggregates in found.items():
            by = tuple(Named(f"by {i}", tree) for i, tree in enumerate(trees))
            _require_keys(by, before, self.words())
            parts.append(Gather(by, tuple(aggregates), beside=True))
        parts.append(self.inner.map_exprs(lambda tree: _with_columns(tree, names)))
        if not isinstance(self.inner, Select):
            parts.append(Drop(tuple(names.values())))
        return _with_facts(parts, before)

    def words(self) -> str:
        return self.inner.words()

    @property
    def stability(self) -> str:
        return "what happens to a row depends on rows of the same individual only"


def with_aggregates(step: WithColumns | Select | Filter) -> Step:
    """The step, or one that computes the aggregates of individuals in it first."""
    found = any(aggregate_calls(tree) for tree in step.exprs)
    return OverIndividual(step) if found else step


def _take_out(
    outputs: Sequence[Named], taken: set[str]
) -> tuple[tuple[_Aggregate, ...], tuple[Named, ...]]:
    """The aggregates of some outputs, each once, and the outputs with columns in their place."""
    names: dict[Call, str] = {}
    found: list[_Aggregate] = []
    for n in outputs:
        for call in aggregate_calls(n.tree):
            if call not in names:
                assert isinstance(call.operation, IndividualAggregate)
                names[call] = new_name(taken, f"aggregate {len(names)}")
                found.append((names[call], call.operation, call.args))
    return tuple(found), tuple(Named(n.name, _with_columns(n.tree, names)) for n in outputs)


def _with_columns(tree: Tree, names: Mapping[Call, str]) -> Tree:
    """A tree with columns in place of aggregates."""
    match tree:
        case Column() | Literal():
            return tree
        case Call(operation, args):
            if tree in names:
                return Column(names[tree])
            return Call(operation, tuple(_with_columns(arg, names) for arg in args))
