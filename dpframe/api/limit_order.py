"""The order in which limits keep rows, where the largest values come first."""

from __future__ import annotations

from typing import Any

import polars as pl

from dpframe.core.domain import Columns
from dpframe.core.exact import as_given
from dpframe.errors import UnsupportedOperation
from dpframe.frames.sampling import require_order

__all__ = ["falling_column", "require_flag"]


def require_flag(value: object, where: str) -> bool:
    """The value, if it is True or False.

    Raises
    ------
    UnsupportedOperation
        For every other value.
    """
    if not isinstance(value, bool):
        raise UnsupportedOperation(
            f"{as_given(value)} is neither True nor False",
            where=where,
            remedy="write True or False",
        )
    return value


def falling_column(order_by: str | None, columns: Columns) -> tuple[pl.Expr, str]:
    """A column whose values fall where those of another rise, and a name for it.

    Raises
    ------
    UnsupportedOperation
        When no column is named, or limits do not order by its type.
    """
    where = f"limit_rows(..., order_by={as_given(order_by)}, descending=True)"
    if order_by is None:
        raise UnsupportedOperation(
            "descending=True needs order_by=",
            where=where,
            remedy='name a column of dates, datetimes or whole numbers: order_by="day"',
        )
    require_order(order_by, columns, where)
    dtype, column = columns[order_by].dtype, pl.col(order_by)
    unit: Any = dtype.unit
    if dtype.name == "Date":
        column = column.dt.epoch("d")
    elif dtype.name == "Datetime":
        column = column.dt.timestamp(unit)
    else:  # -x - 1 keeps the least Int64 within its type
        column = column.cast(pl.Int64)
    name = f"{order_by} falling"
    while name in columns:
        name += "_"
    return (-1 - column).alias(name), name
