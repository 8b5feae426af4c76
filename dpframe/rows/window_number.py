"""The number of the calendar window that a time is in, on every engine.

A date is its own day. All other times before the year 1 are in one window, and so are those after
9999 (for times with a zone a day further inside, as in operations on dates). The number of a time
is never null, and never decreases from one local time to a later one.
"""

from __future__ import annotations

import polars as pl

from dpframe.core.dtypes import INT64, DType
from dpframe.core.windows import AFTER, BEFORE, Every
from dpframe.rows.broadcast import unordered
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace
from dpframe.rows.temporal import FIRST_DAY, calendar, guarded, point

__all__ = ["NO_TIME", "window_number"]

NO_TIME = -(2**31)
"""Stands for the window of rows without a time; no other has this number."""


def window_number(ns: Namespace, value: pl.Expr, dtype: DType, every: Every) -> pl.Expr:
    """The window of a Date or Datetime as Int64, by the clocks of its zone; never null.

    Parameters
    ----------
    value
        The number in the given type.
    every
        The length of windows.
    """
    none = ns.lit(NO_TIME, dtype=ns.Int64)
    if dtype.name == "Date" and every == "1d":
        days = as_type(value.to_physical(), INT64) - (FIRST_DAY - 1)
        return unordered(ns, ns.coalesce(days, none))
    limits = calendar(dtype)
    found = guarded(ns, value, dtype, limits, lambda known: _number(known, every, ns))
    others = [none]
    if limits is not None:
        low, high = (point(ns, limit, dtype) for limit in limits)
        first, last = (ns.lit(end[every], dtype=ns.Int64) for end in (BEFORE, AFTER))
        beyond = (
            ns.when(value < low)
            .then(first)
            .otherwise(ns.when(value > high).then(last).otherwise(None))
        )
        others.insert(0, beyond)
    return unordered(ns, ns.coalesce(found, *others))


def _number(value: pl.Expr, every: Every, ns: Namespace) -> pl.Expr:
    """The number of a time that is inside the calendar."""
    if every in ("1d", "1w"):
        day = as_type(value.dt.date().to_physical(), INT64) - (FIRST_DAY - 1)
        return day if every == "1d" else (day - 1) // 7
    year = as_type(value.dt.year(), INT64)
    if every == "1y":
        return year
    month = as_type(value.dt.month(), INT64) - 1
    return year * 12 + month if every == "1mo" else year * 4 + month // 3
