"""Column types, without Polars, so that inference runs without any engine.

The names are Polars' own. `DType` is one small value for all of them; only the parameters that a
type has are set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

from dpframe.core.interval import EVERYTHING, Interval, interval

_INTEGER_LIMITS: dict[str, tuple[int, int]] = {
    "Int8": (-(2**7), 2**7 - 1),
    "Int16": (-(2**15), 2**15 - 1),
    "Int32": (-(2**31), 2**31 - 1),
    "Int64": (-(2**63), 2**63 - 1),
    "Int128": (-(2**127), 2**127 - 1),
    "UInt8": (0, 2**8 - 1),
    "UInt16": (0, 2**16 - 1),
    "UInt32": (0, 2**32 - 1),
    "UInt64": (0, 2**64 - 1),
}
_SMALL = {"Boolean", "Int8", "Int16", "Int32", "UInt8", "UInt16", "UInt32"}
_UNITS_PER_SECOND = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class DType:
    """The type of a column or expression.

    Parameters
    ----------
    name
        Polars' name: ``"Int64"``, ``"Float64"``, ``"String"``, ``"Datetime"``, ...; a type that
        dpframe does not know keeps its name and is refused only where it is used.
    unit
        Time unit of ``Datetime`` and ``Duration``: ``"ms"``, ``"us"`` or ``"ns"``.
    zone
        Time zone of a zoned ``Datetime``.
    categories
        The categories of an ``Enum``, in order.
    precision, scale
        Only for a ``Decimal``.
    inner, width
        Element type of ``List`` and ``Array``, and the fixed width of an ``Array``.
    fields
        Name and type of each field of a ``Struct``.
    """

    name: str
    unit: str | None = None
    zone: str | None = None
    categories: tuple[str, ...] | None = None
    precision: int | None = None
    scale: int | None = None
    inner: DType | None = None
    width: int | None = None
    fields: tuple[tuple[str, DType], ...] | None = None

    def __str__(self) -> str:
        match self.name:
            case "Datetime" | "Duration":
                zone = f", {self.zone}" if self.zone else ""
                return f"{self.name}({self.unit}{zone})"
            case "Enum":
                return f"Enum({len(self.categories or ())} categories)"
            case "Decimal":
                return f"Decimal({self.precision}, {self.scale})"
            case "List":
                return f"List({self.inner})"
            case "Array":
                return f"Array({self.inner}, {self.width})"
            case "Struct":
                return "Struct({" + ", ".join(f"{n}: {t}" for n, t in self.fields or ()) + "})"
            case _:
                return self.name

    @property
    def is_integer(self) -> bool:
        return self.name in _INTEGER_LIMITS

    @property
    def is_float(self) -> bool:
        return self.name in ("Float32", "Float64")

    @property
    def is_decimal(self) -> bool:
        return self.name == "Decimal"

    @property
    def is_numeric(self) -> bool:
        """Integers, floats and decimals; not booleans."""
        return self.is_integer or self.is_float or self.is_decimal

    @property
    def is_boolean(self) -> bool:
        return self.name == "Boolean"

    @property
    def is_text(self) -> bool:
        """String, Categorical and Enum: what compares as text."""
        return self.name in ("String", "Categorical", "Enum")

    @property
    def is_temporal(self) -> bool:
        return self.name in ("Date", "Datetime", "Duration", "Time")

    @property
    def is_nested(self) -> bool:
        return self.name in ("List", "Array", "Struct")

    @property
    def is_ordered(self) -> bool:
        """Whether intervals of this type mean something."""
        return self.is_numeric or self.is_boolean or self.is_temporal

    @property
    def is_known(self) -> bool:
        """Whether any operation of dpframe accepts the type."""
        return self.is_ordered or self.is_text or self.is_nested or self.name in ("Null", "Binary")

    @property
    def limits(self) -> tuple[int, int] | None:
        """The smallest and largest value of an integer or Boolean type, else None."""
        return (0, 1) if self.is_boolean else _INTEGER_LIMITS.get(self.name)

    @property
    def has_small_range(self) -> bool:
        """Whether the type alone gives an interval: Boolean and integers of up to 32 bits."""
        return self.name in _SMALL

    @property
    def units_per_second(self) -> int:
        """Physical units per second of a Datetime, Duration (or Time, which counts nanoseconds)."""
        return _UNITS_PER_SECOND[self.unit or "ns"]


BOOLEAN = DType("Boolean")
INT8 = DType("Int8")
INT32 = DType("Int32")
INT64 = DType("Int64")
INT128 = DType("Int128")
UINT64 = DType("UInt64")
FLOAT32 = DType("Float32")
FLOAT64 = DType("Float64")
STRING = DType("String")
DATE = DType("Date")
TIME = DType("Time")
NULL = DType("Null")


def datetime_type(unit: str = "us", zone: str | None = None) -> DType:
    return DType("Datetime", unit=unit, zone=zone)


def duration_type(unit: str = "us") -> DType:
    return DType("Duration", unit=unit)


def enum_type(categories: tuple[str, ...]) -> DType:
    return DType("Enum", categories=categories)


def list_type(inner: DType) -> DType:
    return DType("List", inner=inner)


def struct_type(fields: tuple[tuple[str, DType], ...]) -> DType:
    return DType("Struct", fields=fields)


# What is known of a column or expression without looking at data.


Scalar: TypeAlias = (
    "bool | int | float | str | bytes | Decimal | date | datetime | time | timedelta | None"
)


_RANGES = (interval(-(2**31), 2**31 - 1), interval(0, 2**32 - 1))
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
        if not self.interval.is_bounded:
            return None
        if self.dtype == INT128 and not self.interval.within(_BELIEVED):
            return None
        return self.interval.ends

    @property
    def is_range_of_type(self) -> bool:
        """Whether the interval is the whole range of 32 bits, which says nothing about the values:
        lengths of texts and columns that a database calls INTEGER have it.
        """
        return self.dtype.is_integer and self.interval in _RANGES

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
