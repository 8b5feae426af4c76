"""The form in which values are grouped: one form for equal values, for any other rows.

Physical codes of categories depend on all rows. Integers and decimals of 128 bits were grouped by
their last 64 bits alone, where they are the only key (met in Polars 1.32). So these are text.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from dpframe.core.dtypes import STRING, DType
from dpframe.rows.broadcast import unordered
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars

GROUPED_AS_TEXT = (pl.Categorical, pl.Enum, pl.Int128, pl.Decimal)


def grouped_type(dtype: DType) -> DType:
    """The type of that form."""
    as_text = dtype.is_text or dtype.is_decimal or dtype.name == "Int128"
    return STRING if as_text else dtype


def type_of_keys(dtype: DType) -> Any:
    """The type that public keys have in Polars, for groups by values of a type."""
    return pl.String() if dtype.name == "Categorical" else to_polars(dtype)


def grouped(ns: Namespace, column: pl.Expr, dtype: DType) -> pl.Expr:
    """A column in that form, which no engine takes for sorted."""
    return unordered(ns, column if grouped_type(dtype) == dtype else column.cast(ns.String))


def distinct(rows: pl.DataFrame) -> pl.DataFrame:
    """Public rows, each once, in their order."""
    if rows.width == 1 and rows.dtypes[0] in GROUPED_AS_TEXT:
        return rows.filter(rows.to_series().cast(pl.String).is_first_distinct())
    if rows.width == 1 and _rises(rows.to_series()):
        return rows
    return rows.unique(maintain_order=True)


def _rises(column: pl.Series) -> bool:
    """Whether it is integers that are each larger than the one before."""
    if not column.dtype.is_integer() or column.null_count():
        return False
    return bool((column.slice(1) > column.head(-1)).all())
