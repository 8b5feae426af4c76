"""`dp.col`: `pl.col` with the types that editors and type checkers need to see the ``dp_`` methods.

Importing dpframe adds these methods to all Polars expressions, which only the running program sees.
"""

from __future__ import annotations

from typing import cast

import polars as pl

from dpframe.api.column_types import Column
from dpframe.core.exact import show_input
from dpframe.errors import UnsupportedOperation
from dpframe.sealed import sealed


@sealed
def col(name: str | pl.Expr, *more: str) -> Column:
    """A column, as `pl.col`; editors and type checkers see its ``dp_`` methods.

    Parameters
    ----------
    name
        The name of a column, or a row-wise expression such as ``pl.col("at").dt.hour()``, which is
        returned unchanged.
    more
        Further names.

    Raises
    ------
    UnsupportedOperation
        For a value that is neither a name nor an expression.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.col("income").clip(0, 9).dp_sum()
    <dp expression: col("income").clip([dyn int: 0, dyn int: 9]).dp_sum()>
    """
    if isinstance(name, pl.Expr) and not more:
        return cast(Column, name)
    for each in (name, *more):
        if not isinstance(each, str):
            raise UnsupportedOperation(
                f"{show_input(each)} is not the name of a column",
                where="dp.col(...)",
                remedy='write for example dp.col("age")',
            )
    return cast(Column, pl.col(name, *more))  # type: ignore[arg-type]  # all of them are names
