"""What values aggregates take: their bounds, and quantiles as they are written."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Self, TypeGuard

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.core.dtypes import INT128, Columns, Domain, DType, Scalar
from dpframe.core.exact import (
    Number,
    Rationals,
    exact,
    floats,
    of_floats,
    rationals,
    show,
    show_input,
    wholes,
)
from dpframe.core.tree import Change, Column, Tree
from dpframe.errors import InvalidBounds, UnboundedSensitivity, UnsupportedOperation
from dpframe.rows.constants import physical
from dpframe.rows.fold import domain, known_bounds, words
from dpframe.rows.operands import is_wide
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars

# -- values as numbers: what an aggregate sums, bounds and quantises, and how it comes back -------
# Numbers stay numbers, and Booleans count as 0 and 1. Temporal values are taken in physical units
# (days, or units since the epoch) and come back as temporal values.

_KINDS: Mapping[str, type] = MappingProxyType(
    {"Date": date, "Datetime": date, "Time": time, "Duration": timedelta}
)
"""What people write for values of a temporal type; every datetime is a date in Python."""
_DAY = Fraction(24 * 3600 * 10**9)
_CALENDAR = (-62_135_596_800, 253_402_300_799)
"""Seconds since 1970 of the first and the last of Python's calendar."""
_LONGEST = 86_399_999_913_600
"""Seconds in 999,999,999 days, Python's longest duration."""
_TEXTS = (str, bytes, bytearray, memoryview)
_EXAMPLES = {"quantile": "0.5, ", "histogram": "10, bounds=", "cdf": "100, bounds="}


@dataclass(frozen=True, slots=True)
class Value:
    """A row-wise expression that is taken as a number."""

    tree: Tree  # The expression
    domain: Domain  # What is known of it
    # Its bounds, where something but a type of 32 bits gives them
    bounds: tuple[Fraction, Fraction] | None = field(
        default=None, repr=False, compare=False, kw_only=True
    )

    @property
    def is_whole(self) -> bool:
        """Whether the number is an integer: integers, Booleans and temporal values."""
        d = self.domain.dtype
        return d.is_integer or d.is_boolean or d.is_temporal

    @property
    def is_wide(self) -> bool:
        """Whether it is an integer that may lie beyond Int64."""
        return is_wide(self.domain)

    @property
    def words(self) -> str:
        """What it is, in a plan."""
        return words(self.tree)

    def map_exprs(self, change: Change) -> Self:
        """What another expression holds, as the same kind of number."""
        return replace(self, tree=change(self.tree))

    def number(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """`column`, which holds the expression, as Int64 or Float64; null where it has no value.

        An integer beyond Int64 counts as the nearest Int64: for comparisons with numbers that lie
        within Int64 (`require_int64`), which it then lies beyond as before.
        """
        dtype = self.domain.dtype
        if dtype.is_temporal:
            physical_value: pl.Expr = column.to_physical().cast(ns.Int64)
            return physical_value
        if dtype.name in ("UInt64", "Int128"):  # clamped first, so that nothing large vanishes
            return column.clip(_least(dtype), 2**63 - 1).cast(ns.Int64, strict=False)
        if self.is_whole:
            return column.cast(ns.Int64, strict=False)
        return column.cast(ns.Float64, strict=False)

    def exact_number(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """As `number`, but an integer that may lie beyond Int64 as Int128."""
        if self.is_wide:
            return column.cast(to_polars(INT128))
        return self.number(column, ns)

    def require_totals(self) -> None:
        """Refuse totals of individuals that may lie beyond Int64, in which they are gathered.
        Raises `UnsupportedOperation` when the value itself may lie beyond it.
        """
        if self.is_wide:
            raise UnsupportedOperation(
                f"totals of values of type {self.domain.dtype} may lie beyond 64 bits",
                where=self.words,
                remedy=(
                    "clamp the values first, for example with .clip(0, 2**32)",
                    "total floats, with .cast(pl.Float64)",
                ),
            )

    def require_int64(self, first: Fraction, last: Fraction, where: str) -> None:
        """Refuse to compare whole numbers with numbers beyond Int64, or, where they may lie beyond
        it themselves, with its limits. Raises `InvalidBounds` when the least or the largest of the
        numbers is too large.
        """
        least = -(2**63) + (self.domain.dtype.name == "Int128")
        if self.is_whole and not (least <= first and last <= 2**63 - 1 - self.is_wide):
            raise InvalidBounds(
                f"{show(last if last > 2**62 else first)} is too large: values of type "
                f"{self.domain.dtype} are compared with numbers that lie within 64 bits",
                where=where,
                remedy=("write smaller numbers", "compare floats, with .cast(pl.Float64)"),
            )


def _least(dtype: DType) -> int:
    return 0 if dtype.name == "UInt64" else -(2**63)


def numeric_value(tree: Tree, columns: Columns, aggregate: str) -> Value:
    """The expression as a number. Raises `UnsupportedOperation` when its type has no numbers, such
    as text.
    """
    known = domain(tree, columns)
    if known.dtype.is_ordered:
        return Value(tree, known, bounds=known_bounds(tree, columns))
    hint = (
        (
            "cast it to a number first: .cast(pl.Int64)",
            'count its values: .dp_histogram(["a", "b"])',
        )
        if known.dtype.is_text
        else "take a number from it first, such as .list.len() or .struct.field(name)"
    )
    raise UnsupportedOperation(
        f"{aggregate} needs numbers, and this has type {known.dtype}",
        where=words(tree),
        remedy=hint,
    )


def number_of_time(dtype: DType) -> str:
    """What to write where values of a temporal type cannot be computed with."""
    part = ".dt.total_seconds()" if dtype.name == "Duration" else ".dt.year()"
    return f"take a number from it first, such as {part}"


def or_declare(way: str, tree: Tree, what: str, example: str) -> str | tuple[str, str]:
    """A way to write it in the query, and for a column to declare it where it is protected."""
    if not isinstance(tree, Column):
        return way
    return way, f'declare session.protect(..., {what}={{"{tree.name}": {example}}})'


def bounds_of(
    value: Value, bounds: object, aggregate: str, *, distinct: bool = False
) -> tuple[Fraction, Fraction]:
    """The bounds to clamp to, as numbers: those given, else those inferred. `bounds`: a pair (lo,
    hi), or None to use the inferred interval. `distinct`: whether equal bounds are refused. Raises
    `UnboundedSensitivity` when none are given and none can be inferred. Raises `InvalidBounds` when
    they are reversed, infinite, NaN, not numbers or (with `distinct`) equal.
    """
    where = f"{words(value.tree)}.dp_{aggregate}({'' if bounds is None else bounds})"
    if bounds is None:
        inferred = value.bounds
        if inferred is None:
            raise UnboundedSensitivity(
                f"the values of {words(value.tree)} have no known bounds, so one individual could "
                f"change the {aggregate} by any amount",
                where=where,
                remedy=or_declare(
                    f"write .dp_{aggregate}({_EXAMPLES.get(aggregate, '')}(low, high)) "
                    "with the range that you expect; values outside it are clipped to it",
                    value.tree,
                    "bounds",
                    "(low, high)",
                ),
            )
        lo, hi = inferred
    else:
        lo, hi = pair(bounds, value.domain.dtype, where)
    if lo > hi:
        raise InvalidBounds(
            f"the bounds ({show(lo)}, {show(hi)}) are reversed",
            where=where,
            remedy=f"write the lower bound first: ({show(hi)}, {show(lo)})",
        )
    if distinct and lo == hi:
        raise InvalidBounds(
            f"the bounds are equal, so the {aggregate} can only be {show(lo)}",
            where=where,
            remedy="write a lower bound below the upper one",
        )
    limit = Fraction(2) ** 100
    if max(abs(lo), abs(hi)) > limit:
        raise InvalidBounds(
            "the bounds are larger than 2**100 in size",
            where=where,
            remedy="give the range in which the values really lie",
        )
    return lo, hi


def pair(bounds: object, dtype: DType, where: str) -> tuple[Fraction, Fraction]:
    """Two bounds that a user wrote, as numbers in physical units."""
    remedy = "give a pair of finite numbers, (low, high)"
    ends: list[Any] = list(bounds) if is_listed(bounds) else []
    if len(ends) != 2:
        raise InvalidBounds(
            f"{show_input(bounds)} is not a pair of bounds", where=where, remedy=remedy
        )
    return number_of(ends[0], dtype, where), number_of(ends[1], dtype, where)


def is_listed(values: object) -> TypeGuard[Collection[Any]]:
    """Whether these are values in an order, which can be read again and again: no text, no bytes,
    and nothing that can be read once only.
    """
    return isinstance(values, Collection) and not isinstance(values, (*_TEXTS, Set, Mapping))


def number_of(scalar: object, dtype: DType, where: str) -> Fraction:
    """A constant that a user wrote, as a number in the physical units of `dtype`. Raises
    `InvalidBounds` when it is NaN, infinite, or not a value of that type.
    """
    if dtype.is_temporal:
        zoned = isinstance(scalar, datetime) and scalar.tzinfo is not None
        number = physical(scalar, dtype) if isinstance(scalar, _KINDS[dtype.name]) else None  # type: ignore[arg-type]
        if number is None:
            raise InvalidBounds(
                f"{show_input(scalar)} is not a value of type {dtype}",
                where=where,
                remedy="give Python dates, datetimes, times or timedeltas, as the column has",
            )
        if zoned != (dtype.zone is not None):  # in UTC it would be another time than people mean
            raise InvalidBounds(
                f"{show_input(scalar)} has {'a' if zoned else 'no'} time zone, and values of type "
                f"{dtype} have {'none' if zoned else 'one'}",
                where=where,
                remedy="leave tzinfo= out, or give the column a time zone"
                if zoned
                else f'write datetime(..., tzinfo=zoneinfo.ZoneInfo("{dtype.zone}"))',
            )
        return number
    try:
        return exact(int(scalar) if isinstance(scalar, bool) else scalar)
    except (TypeError, ValueError, ZeroDivisionError):
        raise InvalidBounds(
            f"{show_input(scalar)} is not a finite number",
            where=where,
            remedy="give finite numbers, (low, high)",
        ) from None


def read_numbers(scalars: Iterable[Any], dtype: DType, where: str) -> Sequence[Fraction]:
    """Many constants that a user wrote, as `number_of` reads each. Raises `InvalidBounds` when one
    is NaN, infinite, or not a value of that type.
    """
    plain = isinstance(scalars, np.ndarray) and scalars.dtype in (np.int64, np.float64)
    given = scalars.tolist() if plain else list(scalars)  # type: ignore[attr-defined]
    return _plain_numbers(given, dtype) or rationals(number_of(s, dtype, where) for s in given)


def _plain_numbers(given: list[Any], dtype: DType) -> Rationals | None:
    """Plain integers or finite floats, read as a whole; None for others."""
    kinds: set[type] = set(map(type, given))
    if kinds in ({np.float64}, {np.int64}):
        given = np.array(given).tolist()
        kinds = set(map(type, given))
    if dtype.is_temporal or len(kinds) != 1:
        return None
    if kinds == {int} and min(given) >= -(2**63) and max(given) < 2**64:
        return Rationals(given, 1)
    return of_floats(given) if kinds == {float} and all(map(math.isfinite, given)) else None


def as_series(name: str, numbers: Any, dtype: DType) -> pl.Series:
    """Numbers (float64, NaN for none) as a column of the type that people expect.

    Temporal types come back as such; everything else stays Float64.
    """
    series = pl.Series(name, numbers, dtype=pl.Float64).fill_nan(None)
    if dtype.is_temporal:
        whole = series.round(0).cast(pl.Int64, strict=False)
        if dtype.name == "Date":
            return whole.cast(pl.Int32, strict=False).cast(pl.Date)
        return whole.cast(to_polars(dtype), strict=False)
    return series


def whole_series(name: str, numbers: Sequence[int] | NDArray[np.int64], dtype: DType) -> pl.Series:
    """Whole numbers as Int64, or as the temporal type whose units they count, exactly."""
    series = pl.Series(name, numbers, dtype=pl.Int64)
    if dtype.is_temporal:
        narrow = pl.Int32 if dtype.name == "Date" else pl.Int64
        return series.cast(narrow, strict=False).cast(to_polars(dtype), strict=False)
    return series


DIGITS = 38
"""The most digits of a Decimal."""


def decimal_series(
    name: str, numbers: Iterable[Fraction | float | None], scale: int, *, up: bool | None = None
) -> pl.Series:
    """Numbers as a Decimal column of 38 digits, each rounded to the nearest, or up or down, and
    held at the largest number of that type. None and NaN become null.
    """
    most, places = int("9" * DIGITS), int("1" + "0" * scale)

    def digits(number: Fraction | float) -> int:
        if isinstance(number, float) and math.isinf(number):
            return most if number > 0 else -most
        scaled = Fraction(number) * places
        whole: int = (
            round(scaled) if up is None else math.ceil(scaled) if up else math.floor(scaled)
        )
        return max(-most, min(most, whole))

    def decimal(number: Fraction | float | None) -> Decimal | None:
        if number is None or number != number:
            return None
        whole = digits(number)  # as a tuple, because arithmetic rounds to 28 digits
        return Decimal((int(whole < 0), tuple(map(int, str(abs(whole)))), -scale))

    return pl.Series(name, map(decimal, numbers), dtype=pl.Decimal(DIGITS, scale))


def scalar_of(number: Fraction, dtype: DType) -> Scalar:
    """One number as a value of `dtype`, for candidates and plans."""
    if dtype.is_integer:
        return int(number)
    if dtype.is_boolean:
        return bool(number)
    if dtype.is_temporal:
        value: Scalar = as_series("", [float(number)], dtype).item()
        return value
    return float(number)


def scalars_of(numbers: Sequence[Fraction], dtype: DType) -> list[Any]:
    """Many numbers as values of `dtype`."""
    if dtype.is_integer:
        return wholes(numbers)
    if dtype.is_boolean:
        return [bool(number) for number in numbers]
    found = floats(numbers)
    return as_series("", found, dtype).to_list() if dtype.is_temporal else found


def show_value(number: Fraction, dtype: DType) -> str:
    """A number of physical units as people write values of `dtype`."""
    if not dtype.is_temporal:
        return show(number)
    if dtype.name == "Time":  # the ends of a grid may lie just outside the day
        number = max(Fraction(0), min(number, _DAY - 1))
    if not _in_calendar(number, dtype):
        return f"{show(number)} {unit_words(dtype)}"
    return str(scalar_of(number, dtype))


def _in_calendar(number: Fraction, dtype: DType) -> bool:
    """Whether Python has a value for this many units: years end with 9999 there, not in
    Polars."""
    seconds = number * 86_400 if dtype.name == "Date" else number / dtype.units_per_second
    first, last = (-_LONGEST, _LONGEST) if dtype.name == "Duration" else _CALENDAR
    return first <= seconds <= last and abs(number) < 1 << 63


def unit_words(dtype: DType) -> str:
    """What the numbers of a temporal type count."""
    if dtype.name == "Date":
        return "days"
    return {"ms": "milliseconds", "us": "microseconds"}.get(dtype.unit or "ns", "nanoseconds")


# -- which quantiles are requested ----------------------------------------------------------------


def read_quantiles(given: Number | tuple[Number, ...], value: Value) -> tuple[Fraction, ...]:
    """One or several quantiles, as fractions. Raises `InvalidBounds` for what is no number between
    0 and 1, or has more than six decimals; and for none at all.
    """
    where = f"{words(value.tree)}.dp_quantile({show_input(given)})"
    found = []
    for q in given if isinstance(given, tuple) else (given,):
        try:
            number = exact(q)
        except (TypeError, ValueError, ZeroDivisionError):
            number = Fraction(-1)
        if not 0 <= number <= 1 or number.denominator > 10**6:
            raise InvalidBounds(
                "a quantile must lie between 0 and 1 with at most six decimals, not "
                f"{show_input(q)}",
                where=where,
                remedy="write for example 0.5 for the median",
            )
        found.append(number)
    if not found:
        raise InvalidBounds("no quantile is given", where=where, remedy="write for example 0.5")
    return tuple(found)
