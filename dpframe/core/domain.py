"""What is known of a column or expression without looking at data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

from dpframe.core.dtypes import INT128, DType
from dpframe.core.interval import EVERYTHING, Interval, interval

Scalar: TypeAlias = (
    "bool | int | float | str | bytes | Decimal | date | datetime | time | timedelta | None"
)


_BELIEVED = (-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Domain:
    """The facts about one column or expression.

    Parameters
    ----------
    dtype
        Its type.
    nullable
        Whether a value may be null.
    nan
        Whether a value may be NaN (floats only).
    interval
        Where values that are neither null nor NaN lie; unbounded for types without order.
        Booleans count as 0 and 1, temporal types in physical units.
    categories
        All values that are not null, where they are known: from an Enum, a Boolean, a declaration,
        or an expression that can only yield listed values.
    inner
        Facts about the elements of a List or Array.
    fields
        Facts about the fields of a Struct.
    """

    dtype: DType
    nullable: bool = True
    nan: bool = False
    interval: Interval = EVERYTHING
    categories: tuple[Scalar, ...] | None = None
    inner: Domain | None = None
    fields: tuple[tuple[str, Domain], ...] | None = None

    @property
    def bounds(self) -> tuple[Fraction, Fraction] | None:
        """Both ends of the interval when they are usable as bounds, else None. Bounds of Int128
        beyond 64 bits come from the type.
        """
        if not self.interval.bounded:
            return None
        if self.dtype == INT128 and not self.interval.within(_BELIEVED):
            return None
        return self.interval.ends

    def with_null(self, nullable: bool = True) -> Domain:
        return replace(self, nullable=nullable)


def domain_of_dtype(dtype: DType) -> Domain:
    """The widest domain of a type: nullable, NaN where possible, bounded where the type is."""
    limits = dtype.limits
    known = interval(*limits) if limits is not None and dtype.has_small_range else EVERYTHING
    categories: tuple[Scalar, ...] | None = dtype.categories
    if dtype.is_boolean:
        categories = (False, True)
    if dtype.name == "Time":
        known = interval(0, 86_400 * 10**9 - 1)
    return Domain(
        dtype,
        nullable=True,
        nan=dtype.is_float,
        interval=known,
        categories=categories,
        inner=domain_of_dtype(dtype.inner) if dtype.inner is not None else None,
        fields=tuple((n, domain_of_dtype(t)) for n, t in dtype.fields)
        if dtype.fields is not None
        else None,
    )


Columns: TypeAlias = "Mapping[str, Domain]"


def columns(facts: Mapping[str, Domain]) -> Columns:
    """A read-only copy of a table of domains."""
    return MappingProxyType(dict(facts))
