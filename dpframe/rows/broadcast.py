"""Removes differences between equal values: the sign of a zero, the mark of a sorted column.

Polars does not change a column when it adds one value that is zero, and one row likewise: -0.0 +
0.0 is then -0.0 or 0.0. So no result may depend on a zero's sign.
"""

from __future__ import annotations

import polars as pl

from dpframe.core.dtypes import DType
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars


def unsigned_zero(ns: Namespace, number: pl.Expr, dtype: DType) -> pl.Expr:
    """A float with zero for minus zero, for operations that distinguish them."""
    zero = ns.lit(0.0, dtype=to_polars(dtype))
    result: pl.Expr = ns.when(number == 0).then(zero).otherwise(number)
    return result


def unordered(ns: Namespace, expression: pl.Expr) -> pl.Expr:
    """The same values, which no engine considers sorted.

    Polars leaves the flag of a sorted column set after some operations that change the order. Later
    groups, comparisons or counts are then wrong, and the mistake depends on other rows. A field of
    a struct cannot have that flag, and taking it copies nothing.
    """
    result: pl.Expr = ns.struct(expression.alias("value")).struct.field("value")
    return result
