"""The types that operands share: numbers before arithmetic, and one type for several values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import polars as pl

from dpframe.core.dtypes import (
    BOOLEAN,
    FLOAT64,
    INT64,
    INT128,
    STRING,
    Domain,
    DType,
    domain_of_dtype,
)
from dpframe.core.interval import EVERYTHING, UNIT, Interval, interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.constants import sole_value
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars

# The conversion of numbers before arithmetic.
#
# Integers and Booleans are widened to Int64, Float32 and Decimal to Float64, so no result is
# computed in a narrow type. An integer that may lie beyond Int64, by its type (UInt64, Int128) and
# its range, is wide: it is computed with in Int128. A result of wide integers is Int64 where it
# surely fits, else Int128; an operation whose result Int128 might not hold is refused when the
# query is built.
#
# Int64 alone is computed with in Int64, as in Polars: what does not fit wraps.

INT64_LIMITS = (-(2**63), 2**63 - 1)
INT128_LIMITS = (-(2**127), 2**127 - 1)
_INT64_RANGE = interval(*INT64_LIMITS)


def as_type(expression: pl.Expr, dtype: DType) -> pl.Expr:
    """A cast that yields null where a value does not fit.

    Only for pairs of types for which the engine's cast is known never to fail; see `cast.py`.
    """
    return expression.cast(to_polars(dtype), strict=False)


def when(
    ns: Namespace, condition: pl.Expr, value: pl.Expr, otherwise: pl.Expr | None = None
) -> pl.Expr:
    """The value where the condition holds, else another one, or null."""
    chosen = ns.when(condition).then(value)
    result: pl.Expr = chosen if otherwise is None else chosen.otherwise(otherwise)
    return result


def boolean(nullable: bool) -> Domain:
    """The domain of a condition."""
    return Domain(BOOLEAN, nullable=nullable, interval=UNIT, categories=(False, True))


def is_number(dtype: DType) -> bool:
    """Whether values of the type can be computed with: numbers, Booleans and null itself."""
    return dtype.is_numeric or dtype.is_boolean or dtype.name == "Null"


def require_numbers(what: str, domains: Sequence[Domain]) -> None:
    """Refuse operands that are not numbers, with their types and what to write instead."""
    for domain in domains:
        if not is_number(domain.dtype):
            types = " and ".join(str(d.dtype) for d in domains)
            raise UnsupportedOperation(
                f"{types} {'has' if len(domains) == 1 else 'have'} no {what}",
                remedy=_number_remedy(domain.dtype),
            )


def _number_remedy(dtype: DType) -> str:
    if dtype.name == "String":
        return "cast the text to a number first: .cast(pl.Int64) or .cast(pl.Float64)"
    if dtype.is_text:
        return "use .replace_strict(old, new, default=...) to give each category a number"
    if dtype.name == "Duration":
        return "count its units first: .dt.total_seconds()"
    if dtype.is_temporal:
        return (
            "take a number from it first, such as .dt.year()\n"
            "move it by a time: + pl.duration(days=n)"
        )
    if dtype.name == "Struct":
        return "take one of its fields first, with .struct.field(name)"
    if dtype.is_nested:
        return "take a number from it first, such as .list.len() or .list.get(0)"
    return "use a column of numbers"


def is_wide(domain: Domain) -> bool:
    """Whether a whole number may lie beyond Int64, by its type and what is known of its range."""
    return domain.dtype.name in ("UInt64", "Int128") and not domain.interval.within(INT64_LIMITS)


def widened(domain: Domain) -> Domain:
    """The facts about a number once it is Int64, Int128 or Float64."""
    dtype = domain.dtype
    if dtype.is_float:
        return replace(domain, dtype=FLOAT64)
    if dtype.is_decimal:
        known = domain.interval.as_float().widen(2)
        return Domain(FLOAT64, nullable=domain.nullable, interval=known)
    if dtype.name == "Null":
        return Domain(INT64, nullable=True, categories=())
    known = domain.interval
    if dtype.limits is not None and dtype.limits[0] == 0:
        known = known.intersect(interval(0, None)) or known
    categories = domain.categories
    if categories is not None:
        categories = tuple(int(v) for v in categories if isinstance(v, int))
    wide = INT128 if is_wide(domain) else INT64
    return Domain(wide, nullable=domain.nullable, interval=known, categories=categories)


def widen(expression: pl.Expr, domain: Domain) -> pl.Expr:
    """A number as Int64, Int128 or Float64."""
    return as_type(expression, widened(domain).dtype)


def in_int64(domain: Domain) -> Domain:
    """The facts about a whole number once it is Int64: null where it does not fit."""
    wide = widened(domain)
    if wide.dtype != INT128:
        return wide
    known = wide.interval.intersect(_INT64_RANGE) or _INT64_RANGE
    known = Interval(
        None if known.lo == INT64_LIMITS[0] else known.lo,
        None if known.hi == INT64_LIMITS[1] else known.hi,
    )
    return Domain(INT64, nullable=True, interval=known)


def reach(domain: Domain) -> Interval:
    """Where a whole number lies at most: what is known of it, and the limits of its type."""
    limits = interval(*(domain.dtype.limits or INT64_LIMITS))
    return domain.interval.intersect(limits) or limits


def whole_result(
    what: str,  # The operation, for a refusal
    args: Sequence[Domain],  # The operands
    # From the intervals of the operands to that of the result, without a limit of size.
    image: Callable[..., Interval],
) -> Domain:
    """The facts about a whole number that is computed from others. Raises `UnsupportedOperation`
    when an operand is wide and Int128 might not hold the result.
    """
    parts = [widened(d) for d in args]
    nullable = any(p.nullable for p in parts)
    known = image(*(p.interval for p in parts))
    if not any(p.dtype == INT128 for p in parts):
        return Domain(INT64, nullable=nullable, interval=within_int64(known))
    most = image(*map(reach, args))
    if most.within(INT64_LIMITS):
        return Domain(INT64, nullable=nullable, interval=known)
    if most.within(INT128_LIMITS):
        return Domain(INT128, nullable=nullable, interval=most)
    raise UnsupportedOperation(
        f"the {what} of {' and '.join(str(d.dtype) for d in args)} may be too large for Int128",
        remedy=(
            "clamp large values first: .clip(0, 2**62)",
            "compute with floats: .cast(pl.Float64)",
        ),
    )


def as_result(expression: pl.Expr, domains: Sequence[Domain], dtype: DType) -> pl.Expr:
    """What `compute` and operators made of whole numbers, in the type of the result."""
    return expression if whole_or_real(domains) == dtype else as_type(expression, dtype)


def widened_to_float(domain: Domain) -> Domain:
    """The facts about a number once it is Float64."""
    wide = widened(domain)
    if wide.dtype == FLOAT64:
        return wide
    categories = wide.categories
    if categories is not None:
        categories = tuple(float(v) for v in categories if isinstance(v, int))
    known = wide.interval
    if wide.dtype == INT128 and not known.is_point:  # ends that only the type gives are no bounds
        known = Interval(
            None if known.lo is not None and known.lo < INT64_LIMITS[0] else known.lo,
            None if known.hi is not None and known.hi > INT64_LIMITS[1] else known.hi,
        )
    return Domain(FLOAT64, nullable=wide.nullable, interval=known.as_float(), categories=categories)


def widen_to_float(expression: pl.Expr, domain: Domain) -> pl.Expr:
    """A number as Float64."""
    if domain.dtype.name == "UInt64":
        return as_type(expression, FLOAT64)
    return as_type(widen(expression, domain), FLOAT64)


def infinite_sides(domain: Domain) -> tuple[bool, bool]:
    """Whether a number can be minus infinity, and plus infinity; integers never are."""
    if not domain.dtype.is_float:
        return False, False
    return domain.interval.lo is None, domain.interval.hi is None


def may_be_infinite(domain: Domain) -> bool:
    return any(infinite_sides(domain))


def within_int64(known: Interval) -> Interval:
    """The interval of an Int64 result: all of it when the result may wrap."""
    return known if known.within(INT64_LIMITS) else EVERYTHING


def whole_or_real(domains: Sequence[Domain]) -> DType:
    """Int64 when all operands are whole, Int128 when one of them is wide, else Float64."""
    types = {widened(d).dtype for d in domains}
    if FLOAT64 in types:
        return FLOAT64
    return INT128 if INT128 in types else INT64


def compute(expressions: Sequence[pl.Expr], domains: Sequence[Domain]) -> list[pl.Expr]:
    """The operands in the type in which they are computed together."""
    dtype = whole_or_real(domains)
    if dtype != FLOAT64:
        whole = (widen(e, d) for e, d in zip(expressions, domains, strict=True))
        return [as_type(e, dtype) if dtype == INT128 else e for e in whole]
    return [widen_to_float(e, d) for e, d in zip(expressions, domains, strict=True)]


# The one type of a result whose value comes from one of several operands.
#
# Equal types stay. Whole numbers become Int64, or Int128 where one may lie beyond Int64, and other
# mixtures of numbers Float64. Text becomes String, moments take the finer unit. A constant that
# another operand's type can hold takes that type, as in Polars. Anything else is refused.

_FINE_FIRST = ("ns", "us", "ms")


def supertype(domains: Sequence[Domain]) -> DType:
    """The type that holds the values of all operands. Raises `UnsupportedOperation` when it does
    not exist.
    """
    known = [d for d in domains if d.dtype.name != "Null"]
    if not known:
        return DType("Null")
    varying = [d for d in known if sole_value(d) is None] or known
    merged = _merge([d.dtype for d in varying])
    for domain in known:
        if not _holds(merged, domain):
            merged = _merge([merged, domain.dtype])
    return merged


def _merge(types: Sequence[DType]) -> DType:
    first = types[0]
    if any(t.name == "Categorical" for t in types):
        # Two columns may number their categories differently.
        types = [STRING if t.is_text else t for t in types]
        first = types[0]
    if all(t == first for t in types):
        return first
    if all(t.is_integer or t.is_boolean for t in types):
        return INT128 if any(t.name in ("UInt64", "Int128") for t in types) else INT64
    if all(t.is_numeric or t.is_boolean for t in types):
        return FLOAT64
    if all(t.is_text for t in types):
        return STRING
    if first.unit is not None and all((t.name, t.zone) == (first.name, first.zone) for t in types):
        units = {t.unit for t in types}
        return replace(first, unit=next(unit for unit in _FINE_FIRST if unit in units))
    raise _no_supertype(types)


def _no_supertype(types: Sequence[DType]) -> UnsupportedOperation:
    names = {t.name for t in types}
    if len(names) == 1 and "Datetime" in names:
        remedy = "bring them to one time zone first, with .dt.convert_time_zone(zone)"
    elif names == {"Date", "Datetime"}:
        remedy = "use .dt.date() on the Datetime, or write datetime(...) instead of date(...)"
    else:
        remedy = "cast one to the type of the other first, with .cast(...)"
    shown = " and ".join(str(t) for t in dict.fromkeys(types))
    return UnsupportedOperation(f"{shown} have no type in common", remedy=remedy)


def _holds(dtype: DType, domain: Domain) -> bool:
    """Whether the type is the operand's own, or holds the constant that it is."""
    if domain.dtype == dtype:
        return True
    value = sole_value(domain)
    if value is None or isinstance(value, bool):
        return False
    if dtype.is_integer and isinstance(value, int) and dtype.limits is not None:
        return dtype.limits[0] <= value <= dtype.limits[1]
    if dtype.categories is not None:
        return value in dtype.categories
    if dtype.unit is not None and (domain.dtype.name, domain.dtype.zone) == (
        dtype.name,
        dtype.zone,
    ):
        ends = _rescaled(domain, dtype)
        return ends.within(INT64_LIMITS) and ends.ends[0].denominator == 1
    return False


def _rescaled(domain: Domain, dtype: DType) -> Interval:
    """The interval of a moment or duration in another unit."""
    factor = Fraction(dtype.units_per_second, domain.dtype.units_per_second)
    return domain.interval.increasing(lambda end: end * factor)


def convert(expression: pl.Expr, domain: Domain, dtype: DType) -> pl.Expr:
    """An operand in the supertype; null where its value does not fit."""
    if domain.dtype == dtype:
        return expression
    if dtype in (INT64, INT128):
        return as_type(widen(expression, domain), dtype)
    if dtype == FLOAT64 and domain.dtype.name != "Null":
        return widen_to_float(expression, domain)
    return as_type(expression, dtype)


def converted(domain: Domain, dtype: DType) -> Domain:
    """The facts about an operand in the supertype."""
    if domain.dtype == dtype:
        return domain
    if domain.dtype.name == "Null":
        return Domain(dtype, nullable=True, categories=())
    if dtype == FLOAT64:
        return widened_to_float(domain)
    if dtype == INT64:
        return widened(domain)
    if dtype == INT128:
        return replace(widened(domain), dtype=INT128, interval=reach(domain))
    if dtype.unit is not None:
        ends = _rescaled(domain, dtype)
        finer = dtype.units_per_second > domain.dtype.units_per_second
        lost = finer and not ends.within(INT64_LIMITS)
        return replace(
            domain,
            dtype=dtype,
            nullable=domain.nullable or lost,
            interval=within_int64(ends) if lost else ends,
        )
    return replace(domain, dtype=dtype)


def merged(domains: Sequence[Domain]) -> Domain:
    """The facts about a value that comes from any one of the operands."""
    dtype = supertype(domains)
    parts = [converted(d, dtype) for d in domains if d.dtype.name != "Null"]
    if not parts:
        return Domain(dtype, nullable=True, categories=())
    widest = domain_of_dtype(dtype)
    alike = all((p.inner, p.fields) == (parts[0].inner, parts[0].fields) for p in parts)
    known = [p.categories for p in parts if p.categories is not None]
    every = tuple(dict.fromkeys(value for values in known for value in values))
    categories = every if len(known) == len(parts) else None
    return Domain(
        dtype,
        nullable=any(p.nullable for p in parts) or len(parts) < len(domains),
        nan=any(p.nan for p in parts),
        interval=reduce(Interval.hull, (p.interval for p in parts)),
        categories=categories,
        inner=parts[0].inner if alike else widest.inner,
        fields=parts[0].fields if alike else widest.fields,
    )
