"""What becomes of numbers before they are computed with.

Integers and Booleans are widened to Int64, Float32 and Decimal to Float64, so no result is computed
in a narrow type. An integer that does not fit in Int64 (from UInt64 or Int128) becomes null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import BOOLEAN, FLOAT64, INT64, DType
from dpframe.core.interval import EVERYTHING, UNIT, Interval, interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.polars_dtypes import to_polars

INT128 = DType("Int128")
INT64_LIMITS = (-(2**63), 2**63 - 1)
_INT64_RANGE = interval(*INT64_LIMITS)


def as_type(expression: pl.Expr, dtype: DType) -> pl.Expr:
    """A cast that yields null where a value does not fit.

    Only for pairs of types for which the engine's cast is known never to fail; see `cast.py`.
    """
    return expression.cast(to_polars(dtype), strict=False)


def boolean(nullable: bool) -> Domain:
    """The domain of a condition."""
    return Domain(BOOLEAN, nullable=nullable, interval=UNIT, categories=(False, True))


def is_number(dtype: DType) -> bool:
    """Whether values of the type can be computed with: numbers, Booleans and null itself."""
    return dtype.is_numeric or dtype.is_boolean or dtype.name == "Null"


def require_numbers(what: str, domains: Sequence[Domain]) -> None:
    """Refuse operands that are not numbers, naming their types and what to write instead.

    Raises
    ------
    UnsupportedOperation
        When a domain's type is not numeric, Boolean or Null.
    """
    for domain in domains:
        if not is_number(domain.dtype):
            raise UnsupportedOperation(
                _mismatch(what, domains), remedy=_number_remedy(domain.dtype)
            )


def _mismatch(what: str, domains: Sequence[Domain]) -> str:
    return f"{' and '.join(str(d.dtype) for d in domains)} {_verb(len(domains))} no {what}"


def _verb(count: int) -> str:
    return "has" if count == 1 else "have"


def _number_remedy(dtype: DType) -> str:
    if dtype.name == "String":
        return "cast the text to a number first, with .cast(pl.Int64) or .cast(pl.Float64)"
    if dtype.is_text:
        return "use .replace_strict(old, new, default=...) to give each category a number"
    if dtype.name == "Duration":
        return "count the units first, for example with .dt.total_seconds()"
    if dtype.is_temporal:
        return "extract a number first, for example with .dt.year()"
    if dtype.name == "Struct":
        return "take one of its fields first, with .struct.field(name)"
    if dtype.is_nested:
        return "take a number from it first, for example with .list.len() or .list.get(0)"
    return "use a column of numbers"


def widened(domain: Domain) -> Domain:
    """The facts about a number once it is Int64 or Float64."""
    dtype = domain.dtype
    if dtype.is_float:
        return replace(domain, dtype=FLOAT64)
    if dtype.is_decimal:
        known = domain.interval.as_float().widened(2)
        return Domain(FLOAT64, nullable=domain.nullable, interval=known)
    if dtype.name == "Null":
        return Domain(INT64, nullable=True, categories=())
    known = domain.interval
    if dtype.limits is not None and dtype.limits[0] == 0:
        known = known.intersect(interval(0, None)) or known
    fits = dtype.name not in ("UInt64", "Int128") or known.within(INT64_LIMITS)
    categories = domain.categories
    if categories is not None:
        categories = tuple(int(v) for v in categories if isinstance(v, int))
    if not fits:
        known = known.intersect(_INT64_RANGE) or _INT64_RANGE
        known = Interval(
            None if known.lo == INT64_LIMITS[0] else known.lo,
            None if known.hi == INT64_LIMITS[1] else known.hi,
        )
        categories = None
    return Domain(
        INT64, nullable=domain.nullable or not fits, interval=known, categories=categories
    )


def widen(expression: pl.Expr, domain: Domain) -> pl.Expr:
    """A number as Int64 or Float64."""
    return as_type(expression, widened(domain).dtype)


def widened_to_float(domain: Domain) -> Domain:
    """The facts about a number once it is Float64."""
    wide = widened(domain)
    if wide.dtype == FLOAT64:
        return wide
    categories = wide.categories
    if categories is not None:
        categories = tuple(float(v) for v in categories if isinstance(v, int))
    return Domain(
        FLOAT64, nullable=wide.nullable, interval=wide.interval.as_float(), categories=categories
    )


def widen_to_float(expression: pl.Expr, domain: Domain) -> pl.Expr:
    """A number as Float64; an integer that does not fit in Int64 is null, as everywhere."""
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
    """Int64 when all operands are whole, else Float64."""
    return INT64 if all(widened(d).dtype == INT64 for d in domains) else FLOAT64


def computed(domains: Sequence[Domain]) -> list[Domain]:
    """The operands' facts in the type in which they are computed together."""
    if whole_or_real(domains) == INT64:
        return [widened(d) for d in domains]
    return [widened_to_float(d) for d in domains]


def compute(expressions: Sequence[pl.Expr], domains: Sequence[Domain]) -> list[pl.Expr]:
    """The operands in the type in which they are computed together."""
    if whole_or_real(domains) == INT64:
        return [widen(e, d) for e, d in zip(expressions, domains, strict=True)]
    return [widen_to_float(e, d) for e, d in zip(expressions, domains, strict=True)]
