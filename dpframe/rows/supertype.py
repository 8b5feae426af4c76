"""The one type of a result whose value comes from one of several operands.

Equal types stay. Whole numbers become Int64, or Int128 where one may lie beyond Int64, and other
mixtures of numbers Float64. Text becomes String, moments take the finer unit. A constant that
another operand's type can hold takes that type, as in Polars. Anything else is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain, Scalar, domain_of_dtype
from dpframe.core.dtypes import FLOAT64, INT64, INT128, STRING, DType
from dpframe.core.interval import Interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.constants import sole_value
from dpframe.rows.operands import (
    INT64_LIMITS,
    as_type,
    reach,
    widen,
    widen_to_float,
    widened,
    widened_to_float,
    within_int64,
)

_FINE_FIRST = ("ns", "us", "ms")


def supertype(domains: Sequence[Domain]) -> DType:
    """The type that holds the values of all operands.

    Raises
    ------
    UnsupportedOperation
        When it does not exist.
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
    if dtype.name == "Enum" and isinstance(value, str):
        return value in (dtype.categories or ())
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
    interval = parts[0].interval
    for part in parts[1:]:
        interval = interval.hull(part.interval)
    widest = domain_of_dtype(dtype)
    alike = all((p.inner, p.fields) == (parts[0].inner, parts[0].fields) for p in parts)
    return Domain(
        dtype,
        nullable=any(p.nullable for p in parts) or len(parts) < len(domains),
        nan=any(p.nan for p in parts),
        interval=interval,
        categories=_union([p.categories for p in parts]),
        inner=parts[0].inner if alike else widest.inner,
        fields=parts[0].fields if alike else widest.fields,
    )


def _union(parts: Sequence[tuple[Scalar, ...] | None]) -> tuple[Scalar, ...] | None:
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None
    return tuple(dict.fromkeys(value for part in known for value in part))
