"""Constants looked up by equality, for `is_in` and `replace`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import BOOLEAN, FLOAT64, INT64, INT128, STRING, DType
from dpframe.rows.comparable import comparable
from dpframe.rows.constants import constants
from dpframe.rows.literal import physical
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars


@dataclass(frozen=True, slots=True)
class Keyed:
    """An operand and constants in one type in which equal values are equal keys.

    The constants are those that are not null, in their order. Moments are keyed by whole counts
    of units, whole numbers separately, other numbers by floats.
    """

    operand: pl.Expr
    dtype: DType
    keys: tuple[bool | int | float | str, ...]

    @property
    def series(self) -> pl.Series:
        return pl.Series(list(self.keys), dtype=to_polars(self.dtype))

    def found(self, ns: Namespace) -> pl.Expr:
        """Whether the operand is one of the keys; null where the operand is."""
        return self.operand.is_in(ns.lit(self.series).implode())


def keyed(expression: pl.Expr, domain: Domain, values: tuple[Scalar, ...]) -> Keyed:
    """The operand and its constants as keys.

    Raises
    ------
    UnsupportedOperation
        When the constants cannot be compared with the operand.
    """
    common = comparable([domain, *constants(values)], ordered=False)
    if domain.dtype.name == "Null":
        return Keyed(as_type(expression, BOOLEAN), BOOLEAN, ())  # always null: nothing is found
    present = [v for v in values if v is not None]
    source, dtype = domain.dtype, common.dtype
    if source.is_temporal:
        kind = "Datetime" if source.name == "Date" else source.name
        count = DType(kind, unit=common.unit) if common.unit else source
        numbers = [physical(v, count) for v in present]
        keys = tuple(int(n) for n in numbers if n is not None)
        if common.unit is not None:
            return Keyed(common.lower(expression, source), INT128, keys)
        return Keyed(as_type(expression, INT64), INT64, keys)
    if dtype.is_text:
        return Keyed(as_type(expression, STRING), STRING, tuple(str(v) for v in present))
    if dtype.is_boolean:
        return Keyed(as_type(expression, BOOLEAN), BOOLEAN, tuple(bool(v) for v in present))
    if dtype.is_integer:
        wide = INT128 if dtype.name in ("UInt64", "Int128") else INT64
        return Keyed(as_type(expression, wide), wide, tuple(map(_whole, present)))
    return Keyed(as_type(expression, FLOAT64), FLOAT64, tuple(map(_real, present)))


def _whole(value: Scalar) -> int:
    assert isinstance(value, int)
    return int(value)


def _real(value: Scalar) -> float:
    assert isinstance(value, (int, float, Decimal))
    return float(value)
