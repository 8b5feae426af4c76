"""Constants as columns, where an engine computes with a scalar differently.

Polars divides floats by a scalar through its reciprocal, but exactly by a column and in a frame of
one row: 49.0 / 49.0 is then 1.0 or 0.9999999999999999, depending on how many rows there are. A row
could so change another row's value, so divisors are always columns.
"""

from __future__ import annotations

import polars as pl

from dpframe.rows.operation import Namespace


def beside(ns: Namespace, constant: pl.Expr, expression: pl.Expr) -> pl.Expr:
    """`constant` repeated for every row of `expression`; columns stay as they are."""
    if constant.meta.root_names():
        return constant
    columns = expression.meta.root_names()
    if not columns:
        return constant
    always = ns.col(columns[0]).is_null().is_not_null()
    repeated: pl.Expr = ns.when(always).then(constant)
    return repeated


def nonzero(ns: Namespace, divisor: pl.Expr, dividend: pl.Expr) -> pl.Expr:
    """The divisor as a column that is null where it is zero."""
    column = beside(ns, divisor, dividend)
    known: pl.Expr = ns.when(divisor != 0).then(column)
    return known
