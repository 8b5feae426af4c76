"""Local time: a zoned Datetime as the clock on the wall shows it, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import polars as pl

from dpframe.core.dtypes import DType
from dpframe.rows.operation import Namespace

Fold: TypeAlias = 'Literal["earliest", "latest", "null"]'


def local_time(value: pl.Expr, dtype: DType) -> pl.Expr:
    """A Datetime without its zone, which it is assumed to have."""
    return value if dtype.zone is None else value.dt.replace_time_zone(None)


def in_zone(value: pl.Expr, zone: str | None, fold: Fold = "null") -> pl.Expr:
    """Local time as a Datetime in the zone.

    Times that the clock skips become null; times that it shows twice become the earliest, the
    latest, or null.
    """
    return value.dt.replace_time_zone(zone, ambiguous=fold, non_existent="null")


def moved_locally(
    ns: Namespace, value: pl.Expr, dtype: DType, move: Callable[[pl.Expr], pl.Expr]
) -> pl.Expr:
    """The function of local time; a result that the clock shows twice stays in the same showing.

    A result that the clock skips is null.
    """
    if dtype.zone is None:
        return move(value)
    local = local_time(value, dtype)
    moved = move(local)
    is_first = in_zone(local, dtype.zone, "earliest") == value
    first, second = in_zone(moved, dtype.zone, "earliest"), in_zone(moved, dtype.zone, "latest")
    expression: pl.Expr = ns.when(is_first).then(first).otherwise(second)
    return expression


def floored_locally(
    ns: Namespace, value: pl.Expr, dtype: DType, floor: Callable[[pl.Expr], pl.Expr]
) -> pl.Expr:
    """A function that goes back in local time; of two showings the last that is not later.

    A result that the clock skips is null.
    """
    if dtype.zone is None:
        return floor(value)
    floored = floor(local_time(value, dtype))
    first = in_zone(floored, dtype.zone, "earliest")
    second = in_zone(floored, dtype.zone, "latest")
    expression: pl.Expr = ns.when(second <= value).then(second).otherwise(first)
    return expression
