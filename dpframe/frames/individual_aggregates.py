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
form (0.0 for -0.0). Row-wise operations compute the results that need several of these.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import BOOLEAN, FLOAT64, INT64
from dpframe.core.engines import EVERYWHERE, POLARS
from dpframe.core.interval import EVERYTHING, UNIT, Interval, interval
from dpframe.core.tree import Call, Constant, Operation, Tree, walk
from dpframe.errors import UnboundedSensitivity, UnsupportedOperation
from dpframe.rows.layouts import grouped, unordered, unsigned_zero
from dpframe.rows.operands import is_number, is_wide, may_be_infinite, widen, widen_to_float
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars

__all__ = [
    "ADDING",
    "AGGREGATES",
    "All",
    "Any_",
    "Count",
    "DistinctCount",
    "IndividualAggregate",
    "Largest",
    "Least",
    "Length",
    "Mean",
    "NullCount",
    "Over",
    "Quantile",
    "Sum",
    "aggregate_calls",
]

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
            raise self._refused(known)
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

    def _refused(self, known: Domain, remedy: str | None = None) -> UnsupportedOperation:
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
            raise self._refused(known, "compare the values with something first")
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
            raise self._refused(known)
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
            raise self._refused(known, f".cast(pl.Float64).{self._method}()")
        if dtype.is_boolean:
            raise self._refused(known, "use .any() or .all()")
        if not dtype.is_ordered or dtype.name == "Int128":
            raise self._refused(known)
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
            raise self._refused(known, "count the values of one field or element")
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
            raise self._refused(known)
        if is_wide(known):
            raise self._refused(known, "clip the values first, or cast them to pl.Float64")
        nan = known.nan or may_be_infinite(known)
        reach = known.interval.as_float().widened()
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
