"""Where an engine computes with a scalar, or with one row, otherwise than with several.

Polars divides floats by a scalar through its reciprocal, but exactly by a column and in a frame of
one row: 49.0 / 49.0 is then 1.0 or 0.9999999999999999, depending on how many rows there are. A row
could so change another row's value, so divisors are always columns. It also leaves one row as it
is when it adds zero: -0.0 + 0.0 is then -0.0 or 0.0. So no result may depend on a zero's sign.
"""

from __future__ import annotations

import polars as pl

from dpframe.core.dtypes import FLOAT64, DType
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars


def beside(ns: Namespace, divisor: pl.Expr, dividend: pl.Expr) -> pl.Expr:
    """The divisor as a column of its own, which no optimiser turns into a constant.

    Whether a divisor is constant cannot be told from its form: a condition that always holds is
    simplified away. So zeros that depend on a column are added to every one of them.
    """
    columns = [*dividend.meta.root_names(), *divisor.meta.root_names()]
    if not columns:
        return divisor
    zeros: pl.Expr = as_type(ns.col(columns[0]).is_null(), FLOAT64) * 0.0
    return zeros + divisor


def nonzero(ns: Namespace, divisor: pl.Expr, dividend: pl.Expr) -> pl.Expr:
    """The divisor as a column that is null where it is zero."""
    column = beside(ns, divisor, dividend)
    known: pl.Expr = ns.when(divisor != 0).then(column)
    return known


def unsigned_zero(ns: Namespace, number: pl.Expr, dtype: DType) -> pl.Expr:
    """A float with zero for minus zero, for operations that tell them apart."""
    zero = ns.lit(0.0, dtype=to_polars(dtype))
    result: pl.Expr = ns.when(number == 0).then(zero).otherwise(number)
    return result


def unordered(ns: Namespace, expression: pl.Expr) -> pl.Expr:
    """The same values, which no engine takes for sorted.

    Polars keeps the flag of a sorted column through some operations that do not keep the order.
    What is grouped, compared or counted after that is wrong, in a way that depends on other rows.
    A field of a struct has no such flag, and taking it copies nothing.
    """
    result: pl.Expr = ns.struct(expression.alias("value")).struct.field("value")
    return result
