"""What engines behind Narwhals do each in their own way: types, constants, hashes, positions."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import timedelta
from fractions import Fraction
from typing import Any, ClassVar, Self

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.domain import Scalar
from dpframe.core.dtypes import FLOAT32, INT128, NULL, DType, duration_type
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.engine import unsupported
from dpframe.lower.engines.engine_expr import EngineExpr
from dpframe.rows.constants import constant_type
from dpframe.rows.operands import INT64_LIMITS

DURATION = duration_type("us")
"""A number of microseconds on every engine."""
_NUMBERS = itertools.count()
COMMON_TYPES = frozenset(
    ("Boolean", "Int8", "Int16", "Int32", "Int64", "Float32", "Float64", "String", "Date")
)
"""The names of types that all engines have."""
_NATIVE = {
    **{name: name for name in COMMON_TYPES | {"UInt8", "UInt16", "UInt32", "UInt64"}},
    **dict.fromkeys(("Enum", "Categorical"), "String"),
}


class Dialect(ABC):
    """An engine as expressions see it.

    Narwhals translates; what engines do differently is composed of what they do alike, or refused
    by name.
    """

    label: ClassVar[str]
    """The engine's name, for messages."""
    types: ClassVar[frozenset[str]]
    """The names of types whose values can be used."""
    hashes: ClassVar[Interval]
    """Where the engine's hashes lie."""
    quotient: ClassVar[str]
    """The operator of SQL for quotients of whole numbers, towards zero."""
    octets: ClassVar[str]
    """The function of SQL for the number of bytes of a text."""
    divides_wide: bool
    """Whether a wide number is divided exactly by one that divides it."""
    sums_wide: bool
    """Whether sums of whole numbers are wide and cannot overflow, at little cost."""
    is_blueprint: bool = False
    """Whether expressions are only made, on frames without an engine."""

    @property
    @abstractmethod
    def wide_type(self) -> Any:
        """The Narwhals type of whole numbers of 126 bits and more."""

    def moment(self, value: Any, dtype: DType) -> nw.Expr:
        """A constant date or time."""
        return nw.lit(value, self.native_type(dtype))

    @abstractmethod
    def from_micros(self, number: str) -> str:
        """The naive time of a number of microseconds since 1970, in SQL."""

    @property
    def microsecond(self) -> Callable[[str], str] | None:
        """Microseconds since the last whole second, in SQL, where Narwhals reads them by way of
        the session's time zone.
        """
        return None

    @abstractmethod
    def native_frame(self, frame: pl.DataFrame) -> Any:
        """A public frame as one of the engine's."""

    @abstractmethod
    def positional(self, native: Any, names: Sequence[str]) -> Any:
        """A frame with its columns renamed by position, and plain: text without a collation."""

    @abstractmethod
    def with_hash(self, native: Any, name: str, parts: Sequence[str], salt: int) -> Any:
        """A frame with one more column: the engine's hash of others, and of the salt."""

    @abstractmethod
    def with_written(self, native: Any, columns: Mapping[str, str]) -> Any:
        """A frame with more columns, each written in SQL."""

    @abstractmethod
    def with_position(
        self, native: Any, name: str, within: Sequence[str], order: Sequence[str]
    ) -> Any:
        """A frame with one more column: the place of each row, from 1, among those with the same
        values of `within`, sorted by `order` with nulls first. Engines do this faster than
        counting up to a row, the only method of Narwhals.
        """

    def gathered(self, native: Any, names: Sequence[str]) -> Any:
        """The same rows, those with equal values of some columns on one machine, where an engine
        has several and does not see on its own that it saves work later.
        """
        return native

    def blueprint(self) -> Self:
        """The same, for frames without an engine."""
        made = copy(self)
        made.is_blueprint = True
        return made

    # -- names and types ------------------------------------------------------------------------

    def fresh(self) -> str:
        """A name that no column has."""
        return f"c{next(_NUMBERS)}"

    def refused(self, what: str) -> UnsupportedOperation:
        """The error for something that does not run on this engine."""
        return unsupported(what, self.label)

    def native_type(self, dtype: DType) -> Any:
        """The Narwhals type."""
        if dtype == INT128:
            return self.wide_type
        if dtype.name == "Datetime" and self.has_type(dtype):
            return nw.Datetime("us")
        if dtype == DURATION:
            return nw.Int64
        if dtype.name not in _NATIVE or not self.has_type(dtype):
            raise self.refused(f"the type {dtype}")
        return getattr(nw, _NATIVE[dtype.name])

    def has_type(self, dtype: DType) -> bool:
        """Whether values of the type can be used."""
        if dtype.name in ("Datetime", "Duration"):
            return dtype.zone is None and dtype.unit == "us"
        return dtype.name in self.types or dtype.name in ("Enum", "Categorical")

    def require_comparable(self, dtype: DType) -> None:
        """Refuse values of types that cannot be used."""
        if dtype != INT128 and dtype.name != "Null" and not self.has_type(dtype):
            raise self.refused(f"a value of type {dtype}")

    # -- constants ------------------------------------------------------------------------------

    def constant(self, value: Scalar, dtype: DType) -> EngineExpr:
        """A constant of a type."""
        if dtype.name == "Null":
            return self.python(None)
        if isinstance(value, timedelta):
            value = value // timedelta(microseconds=1)
        return EngineExpr(
            self._literal(value, dtype), dtype, _point(value, dtype), constant=(value,)
        )

    def _literal(self, value: Any, dtype: DType) -> nw.Expr:
        if dtype == INT128 and value is not None:
            return self.wide(int(value))
        if dtype == DURATION:
            return nw.lit(value, nw.Int64)
        if dtype.is_temporal and value is not None:
            return self.moment(value, dtype)
        if isinstance(value, float) and math.isnan(value):  # older clients take it for null
            return nw.lit("NaN").cast(self.native_type(dtype))
        return nw.lit(value, self.native_type(dtype))

    def python(self, value: Scalar) -> EngineExpr:
        """A Python value, whose type is that of what it meets."""
        if value is None:
            return EngineExpr(nw.lit(None), NULL, constant=(None,), untyped=True)
        made = self.constant(value, constant_type(value))
        return EngineExpr(
            made.expr, made.dtype, made.interval, constant=made.constant, untyped=True
        )

    def wide(self, value: int) -> nw.Expr:
        """A whole constant in the wide type."""
        if INT64_LIMITS[0] <= value <= INT64_LIMITS[1]:
            return nw.lit(value, nw.Int64).cast(self.wide_type)
        high, low = divmod(value, 2**32)
        return self.wide(high) * self.wide(2**32) + self.wide(low)


def _point(value: Scalar, dtype: DType) -> Interval:
    """The place of a constant, if it is a finite number that the type holds exactly."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or dtype.is_boolean or dtype == FLOAT32 or not math.isfinite(value):  # type: ignore[arg-type]
        return EVERYTHING
    exact = Fraction(value)  # type: ignore[arg-type]
    return Interval(exact, exact)
