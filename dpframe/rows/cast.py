"""Casts. A value that the target type cannot hold becomes null; a cast never fails.

Some casts of Polars abort on values out of range (dates before or after the calendar, as text),
differ between versions (to Decimal), or choose a format by looking at other rows (text to Date).
The first are guarded, the others refused, with what to write instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from dpframe.core.dtypes import FLOAT32, INT64, STRING, Domain, DType, Scalar
from dpframe.core.interval import EVERYTHING, Interval, interval
from dpframe.core.tree import Literal, Tree
from dpframe.core.units import EVERYWHERE
from dpframe.errors import UnsupportedOperation
from dpframe.rows.constants import cast_literal
from dpframe.rows.layouts import unordered, unsigned_zero
from dpframe.rows.operands import INT64_LIMITS, as_type, boolean, when
from dpframe.rows.operation import Namespace, Operand, RowMethod, operand, operation, spell_out
from dpframe.rows.polars_dtypes import read_dtype_expression
from dpframe.rows.temporal import counted, counted_interval, units_per_day

_DATE_LIMITS = (-(2**31), 2**31 - 1)
_TIME_LIMITS = (0, 86_400 * 10**9 - 1)
_DAYS_WITH_TEXT = (-719_162, 2_932_896)
"""The years 1 to 9999, which four digits can write."""
_FLOAT32_MAX = Fraction(float(np.finfo(np.float32).max))


@operation
class Cast(RowMethod):
    """The value in another type; null where it does not fit (also for strict casts)."""

    groups = ("Node",)
    engines = EVERYWHERE
    propagates_null = True
    examples = spell_out(
        "i64.cast(pl.Int8); i32.cast(pl.UInt8); u64.cast(pl.Int64); i64.cast(pl.UInt64); "
        "f64.cast(pl.Int64); f64.cast(pl.UInt8); f32.cast(pl.Int32); dec.cast(pl.Int64); "
        "b.cast(pl.Int8); i64.cast(pl.Float64); i64.cast(pl.Float32); f64.cast(pl.Float32); "
        "u64.cast(pl.Float64); dec.cast(pl.Float64); b.cast(pl.Float64); s.cast(pl.Int64); "
        "s.cast(pl.UInt8); s.cast(pl.Float64); i64.cast(pl.Boolean); f64.cast(pl.Boolean); "
        "dec.cast(pl.Boolean); i64.cast(pl.String); f64.cast(pl.String); f32.cast(pl.String); "
        "b.cast(pl.String); dec.cast(pl.String); e.cast(pl.String); d.cast(pl.String); "
        "dt.cast(pl.String); dtms.cast(pl.String); dtz.cast(pl.String); t.cast(pl.String); "
        's.cast(pl.Enum(["a", "b", "12"])); e.cast(pl.Enum(["b", "c"])); i64.cast(pl.Date); '
        'dt.cast(pl.Date); dtms.cast(pl.Date); d.cast(pl.Datetime("us")); '
        'd.cast(pl.Datetime("ns")); dt.cast(pl.Datetime("ms")); dtms.cast(pl.Datetime("ns")); '
        'i64.cast(pl.Datetime("ms")); dt.cast(pl.Time); i64.cast(pl.Time); '
        'i64.cast(pl.Duration("ms")); dur.cast(pl.Duration("ns")); t.cast(pl.Duration("us")); '
        "d.cast(pl.Int32); dt.cast(pl.Int64); dur.cast(pl.Float64)"
    )
    dtype: DType

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        if params["options"] == "Overflowing":
            raise UnsupportedOperation(
                "cast with wrap_numerical=True is not supported",
                remedy="leave it out: what does not fit becomes null",
            )
        if params["options"] not in ("Strict", "NonStrict"):
            raise LookupError(params["options"])
        inner = operand(operands[0])
        dtype = read_dtype_expression(params["dtype"])
        folded = cast_literal(inner, dtype) if isinstance(inner, Literal) else None
        return cls(dtype).of(inner) if folded is None else folded

    def domain(self, args: Sequence[Domain]) -> Domain:
        return cast_domain(args[0], self.dtype)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return cast_expression(ns, args[0], domains[0].dtype, self.dtype)


def cast_domain(domain: Domain, target: DType) -> Domain:
    """The facts about a value in another type; casts are refused as `require_cast` says."""
    source = domain.dtype
    if source == target:
        return domain
    require_cast(source, target)
    if source.name == "Null":
        return Domain(target, nullable=True, categories=())
    if target.is_boolean:
        return boolean(domain.nullable)
    if target.is_integer:
        return _to_integer(domain, target)
    if target.is_float:
        return _to_float(domain, target)
    if target.is_text:
        return _to_text(domain, target)
    return _to_temporal(domain, target)


def cast_expression(ns: Namespace, expression: pl.Expr, source: DType, target: DType) -> pl.Expr:
    """A value in another type, null where it does not fit; for casts that `cast_domain` allows."""
    if source == target:
        return expression
    if source.name == "Null":
        return as_type(expression, target)
    if source.is_temporal and target.is_temporal:
        return _between_temporal(expression, source, target)
    if source.is_temporal and target == STRING:
        return _temporal_text(ns, expression, source)
    if target.name == "Time":
        return unordered(ns, as_type(as_type(expression, INT64), target))
    if source.is_temporal or (source.is_integer and target.is_temporal):
        return as_type(as_type(expression, INT64), target)
    if source.is_boolean and not target.is_text:
        return as_type(as_type(expression, INT64), target)
    if source.is_text and target.name == "Enum":
        return as_type(as_type(expression, STRING), target)
    if source.is_float and target == STRING:
        # Older versions of Polars write 1e20 without the plus sign.
        return as_type(unsigned_zero(ns, expression, source), STRING).str.replace(
            r"e(\d)", "e+${1}"
        )
    return as_type(expression, target)


def require_cast(source: DType, target: DType) -> None:
    """Refuse casts that are not known to be total, row-wise and the same everywhere."""
    remedy = _refusal(source, target)
    if remedy is not None:
        raise UnsupportedOperation(f"{source} cannot be cast to {target}", remedy=remedy)


def _refusal(source: DType, target: DType) -> str | None:
    """What to write instead of a cast that is refused; None for one that is allowed."""
    if not (target.is_ordered or target.is_text) or target.name == "Categorical":
        return (
            "cast to one of these: .cast(pl.Int64), .cast(pl.String), .cast(pl.Enum([...])) or "
            ".cast(pl.Date)"
        )
    if target.is_decimal:
        return "cast to pl.Float64; sums are exact all the same"
    if source.name == "Null":
        return None
    if source.is_numeric or source.is_boolean:
        if target.name == "Enum":
            return "use .replace_strict(old, new, default=...) with the categories as new values"
        needs_integers = target.is_temporal and not source.is_integer
        return "cast to pl.Int64 first" if needs_integers else None
    if source.is_text:
        return _refused_text(source, target)
    if source.is_temporal:
        return _refused_moment(source, target)
    return "take an element or field first, with .list.get(...) or .struct.field(...)"


def _refused_text(source: DType, target: DType) -> str | None:
    if target.is_text:
        return None
    if source.name != "String":
        return (
            "cast to text first, .cast(pl.String)\n"
            "list the values: .replace_strict(old, new, default=...)"
        )
    if target.is_boolean:
        return 'compare the text, for example x == "true"'
    if target.name == "Date":
        return 'parse it with a fixed format, for example .str.to_date("%Y-%m-%d")'
    if target.is_temporal:
        return "parse it with a fixed format, with .str.to_datetime(format) or .str.to_time(format)"
    return None


def _refused_moment(source: DType, target: DType) -> str | None:
    if target.is_boolean or target.name == "Enum":
        return "compare it with a value, x > date(2026, 1, 1)\ntake a part of it first: .dt.year()"
    if target == STRING:
        return "use .dt.total_seconds()" if source.name == "Duration" else None
    if not target.is_temporal:
        return None
    if source.zone != target.zone:
        if source.zone is not None and target.name in ("Date", "Time"):
            return f"use .dt.{target.name.lower()}(), which gives the local {target.name.lower()}"
        return "use .dt.replace_time_zone(zone) or .dt.convert_time_zone(zone)"
    allowed = {
        "Date": ("Datetime",),
        "Datetime": ("Date", "Datetime", "Time"),
        "Duration": ("Duration",),
        "Time": ("Duration",),
    }
    return (
        None
        if target.name in allowed[source.name]
        else "use a difference of two datetimes, or a part of one"
    )


def _to_integer(domain: Domain, target: DType) -> Domain:
    if domain.dtype.is_text:
        limits = interval(*(target.limits or INT64_LIMITS)) if target.has_small_range else None
        return Domain(target, nullable=True, interval=limits or EVERYTHING)
    known = domain.interval.increasing(lambda end: Fraction(math.trunc(end)))
    if domain.dtype.limits is not None and domain.dtype.has_small_range:
        known = known.intersect(interval(*domain.dtype.limits)) or known
    assert target.limits is not None
    widest = domain.dtype.limits
    fits = known.within(target.limits) or (
        widest is not None and target.limits[0] <= widest[0] and widest[1] <= target.limits[1]
    )
    categories = domain.categories if fits and domain.dtype.is_integer else None
    if domain.dtype.is_boolean:
        categories = (0, 1)
    return Domain(
        target,
        nullable=domain.nullable or domain.nan or not fits,
        interval=known if fits else _inside(known, target),
        categories=categories,
    )


def _inside(known: Interval, target: DType) -> Interval:
    """What of an interval an integer type holds; large types give no bounds of their own."""
    limits = interval(*(target.limits or INT64_LIMITS))
    inside = known.intersect(limits)
    if inside is None:
        return limits if target.has_small_range else EVERYTHING
    if target.has_small_range:
        return inside
    return Interval(
        inside.lo if known.lo == inside.lo else None, inside.hi if known.hi == inside.hi else None
    )


def _to_float(domain: Domain, target: DType) -> Domain:
    source = domain.dtype
    if source.is_text:
        return Domain(target, nullable=True, nan=True)
    known = domain.interval.as_float()
    if source.is_decimal:
        known = known.widened(2)
    if target == FLOAT32:
        known = Interval(_float32(known.lo, -math.inf), _float32(known.hi, math.inf))
    return Domain(target, nullable=domain.nullable, nan=domain.nan, interval=known)


def _float32(end: Fraction | None, outwards: float) -> Fraction | None:
    """An end in Float32, moved outwards by one place unless it is exact."""
    if end is None or abs(end) > _FLOAT32_MAX:
        return None
    nearest = np.float32(float(end))
    if Fraction(float(nearest)) != end:
        nearest = np.nextafter(nearest, np.float32(outwards))
    return Fraction(float(nearest)) if np.isfinite(nearest) else None


def _to_text(domain: Domain, target: DType) -> Domain:
    source = domain.dtype
    if target.name == "Enum":
        given = domain.categories
        kept = tuple(c for c in target.categories or () if given is None or c in given)
        lost = given is None or any(c not in kept for c in given)
        return Domain(target, nullable=domain.nullable or lost, categories=kept)
    categories: tuple[Scalar, ...] | None = None
    if source.is_text:
        categories = domain.categories
    elif source.is_boolean:
        categories = ("false", "true")
    beyond = source.name in ("Date", "Datetime") and not domain.interval.within(_with_text(source))
    return Domain(STRING, nullable=domain.nullable or beyond, categories=categories)


def _with_text(source: DType) -> tuple[int, int]:
    """The physical values of a Date or Datetime in the years that are written with four digits."""
    first, last = _DAYS_WITH_TEXT
    if source.name == "Date":
        return first, last
    per_day = units_per_day(source.unit or "us")
    return max(first * per_day, INT64_LIMITS[0]), min((last + 1) * per_day - 1, INT64_LIMITS[1])


def _temporal_text(ns: Namespace, expression: pl.Expr, source: DType) -> pl.Expr:
    if source.name == "Time":
        return as_type(expression, STRING)
    lo, hi = _with_text(source)
    number = as_type(expression, INT64)
    # Clamped first: other values would abort the engine, even where they are masked.
    text = as_type(as_type(number.clip(lo, hi), source), STRING)
    return when(ns, number.is_between(lo, hi), text)


def _to_temporal(domain: Domain, target: DType) -> Domain:
    source = domain.dtype
    if source.is_integer:
        known = domain.interval
    elif (source.name, target.name) == ("Datetime", "Date"):
        per_day = units_per_day(source.unit or "us")
        known = domain.interval.increasing(lambda end: Fraction(end // per_day))
    elif (source.name, target.name) == ("Datetime", "Time"):
        return Domain(target, nullable=domain.nullable, interval=interval(*_TIME_LIMITS))
    else:
        known = counted_interval(domain, target.unit or "us")
    limits = {"Date": _DATE_LIMITS, "Time": _TIME_LIMITS}.get(target.name, INT64_LIMITS)
    fits = known.within(limits)
    inside = known if fits else known.intersect(interval(*limits)) or EVERYTHING
    if not fits and target.name != "Time":
        inside = Interval(
            inside.lo if inside.lo == known.lo else None,
            inside.hi if inside.hi == known.hi else None,
        )
    return Domain(target, nullable=domain.nullable or not fits, interval=inside)


def _between_temporal(expression: pl.Expr, source: DType, target: DType) -> pl.Expr:
    if target.name in ("Datetime", "Duration"):
        return as_type(as_type(counted(expression, source, target.unit or "us"), INT64), target)
    per_day = units_per_day(source.unit or "us")
    number = as_type(expression, INT64)
    if target.name == "Date":
        return as_type(number // per_day, target)
    return as_type((number % per_day) * (86_400 * 10**9 // per_day), target)


OPERATIONS = (Cast,)
