"""Constants as columns, where an engine computes with a scalar differently.

Polars divides floats by a scalar through its reciprocal, but exactly by a column and in a frame of
one row: 49.0 / 49.0 is then 1.0 or 0.9999999999999999, depending on how many rows there are. A row
could so change another row's value, so divisors are always columns.
"""

from __future__ import annotations

import polars as pl

from dpframe.core.dtypes import FLOAT64
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace


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
