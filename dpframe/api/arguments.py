"""What analysts pass to the verbs of private frames, read the way Polars reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import polars as pl

from dpframe.api.expressions import DPExpr
from dpframe.core.dtypes import DType
from dpframe.core.exact import as_given
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.parse.key_sets import Keys
from dpframe.rows.failures import FAILURES
from dpframe.sealed import has_rows

Bound: TypeAlias = int | float | Decimal | Fraction | date | time | timedelta
IntoBounds: TypeAlias = tuple[Bound, ...] | list[Any]
"""The range (low, high) of values."""
IntoKeys: TypeAlias = Iterable[Any] | Mapping[str, Iterable[Any]] | pl.DataFrame | Keys
"""Public keys of groups."""
Noise: TypeAlias = Literal["auto", "discrete_laplace", "discrete_gaussian", "discrete_staircase"]
Per: TypeAlias = Literal["row", "unit"]
Counting: TypeAlias = Literal[
    "auto", "discrete_laplace", "discrete_gaussian", "discrete_staircase", "randomized_response"
]


def given_bounds(bounds: IntoBounds | None) -> tuple[Any, ...] | None:
    """Bounds as they are; other values are refused where the column is known."""
    return tuple(bounds) if isinstance(bounds, list) else bounds


def flat(items: Iterable[Any]) -> list[Any]:
    """Arguments one by one, those in lists too."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, (list, tuple)) or (
            isinstance(item, Iterable)
            and not isinstance(item, (str, pl.Expr, Mapping))
            and not has_rows(item)  # columns of a frame would be quoted as what is wrong
        ):
            found.extend(item)
        else:
            found.append(item)
    return found


def constant(value: Any, op: str) -> pl.Expr:
    """A constant as an expression."""
    try:
        return pl.lit(value)
    except FAILURES:
        raise UnsupportedOperation(
            f"a value of type {type(value).__name__} is not a constant",
            where=f"{op}({as_given(value)})",
            remedy=f"fill with a number, string, date or Boolean: {op}(0)",
        ) from None


def equality(name: str, value: Any) -> pl.Expr:
    """The condition that a column has a value.

    Raises
    ------
    UnsupportedOperation
        When the value is no constant.
    """
    try:
        condition: pl.Expr = pl.col(name) == value
    except FAILURES:
        raise UnsupportedOperation(
            f"a value of type {type(value).__name__} is not a constant",
            where=f"filter({name}={as_given(value)})",
            remedy=f"write a number, string, date or Boolean: filter({name}=0)",
        ) from None
    return condition


def require_rows(items: Iterable[Any], what: str) -> None:
    """Refuse dp expressions where rows are worked on."""
    for item in items:
        if isinstance(item, DPExpr):
            raise UnsupportedOperation(
                f"{what} works on rows, and a dp expression has none",
                where=item._words(),
                remedy="use dp expressions in agg or select only",
            )


def column_name(item: Any, what: str) -> str:
    """A column given by its name, or as `pl.col`."""
    if isinstance(item, pl.Expr) and item.meta.is_column():
        return item.meta.output_name()
    if isinstance(item, str):
        return item
    raise UnsupportedOperation(
        f"{what} takes names of columns, not {item}",
        where=f"{what}(..., by=...)",
        remedy="compute the column first with with_columns(...)",
    )


def fills(op: str, column: DType, value: DType) -> bool:
    """Whether a frame-wide fill touches a column, as Polars decides it by type."""
    if op == "fill_nan":
        return column.is_float
    if value.is_numeric:
        return column.is_numeric
    if value.is_text:
        return column.name == "String"
    return column.name == value.name


def listed(values: Iterable[Any], what: str) -> tuple[Any, ...]:
    """The values of a list, Series or array, for the function `what`.

    Raises
    ------
    InvalidBounds
        For what is no list.
    """
    if isinstance(values, pl.Series):
        return tuple(values.to_list())
    alone = getattr(values, "ndim", 1) == 0  # an array of one number is no list
    if alone or isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidBounds(
            f"{as_given(values)} is not a list of values",
            where=f"{what}(...)",
            remedy="write the values in a list: [...]",
        )
    return tuple(values)


def as_per(per: str, kind: str) -> Literal["unit"] | None:
    """What aggregates are over, as they hold it.

    Raises
    ------
    UnsupportedOperation
        For neither rows nor individuals.
    """
    if per not in ("row", "unit"):
        raise UnsupportedOperation(
            f"per={per!r} is neither 'row' nor 'unit'",
            where=f"dp_{kind}(per=...)",
            remedy="write per='row' or per='unit'",
        )
    return "unit" if per == "unit" else None
