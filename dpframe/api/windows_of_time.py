"""Windows of `group_by_dynamic`: what truncating a time gives, under the name of the time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import floor
from types import MappingProxyType
from typing import Any

import polars as pl

from dpframe.core.domain import Columns
from dpframe.errors import MissingKeys, UnsupportedOperation
from dpframe.parse.key_sets import Keys
from dpframe.parse.size import shown
from dpframe.rows.failures import FAILURES
from dpframe.rows.polars_dtypes import to_polars

_AFTERWARDS = "release windows that do not overlap, and add up or average the released result"
_ALLOWED: Mapping[str, tuple[tuple[Any, ...], str]] = MappingProxyType(
    {
        "period": ((None,), f"windows that overlap or leave gaps: {_AFTERWARDS}"),
        "offset": (
            (None,),
            "windows that are moved: write .group_by(pl.col(...).dt.offset_by(by)"
            ".dt.truncate(every)), and move the released beginnings",
        ),
        "include_boundaries": (
            (False,),
            'add the end to the released result: pl.col(...).dt.offset_by("1w")',
        ),
        "closed": (("left",), "windows hold their beginning and not their end"),
        "label": (("left",), "windows are called by their beginning"),
        "start_by": (("window",), "windows begin at regular boundaries, for any data"),
    }
)
MOST_WINDOWS = 100_000
"""More windows than these are to be listed."""
_AS_THEY_ARE = (Mapping, pl.DataFrame, pl.Series, Keys, str, bytes)


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of one column.

    Parameters
    ----------
    name
        The column of the result that holds their beginnings.
    every
        How long they are.
    expression
        The beginning of the window that a time falls in.
    column
        The column of times, where they are no expression.
    """

    name: str
    every: str | timedelta
    expression: pl.Expr
    column: str | None


def window_of(index: str | pl.Expr, every: str | timedelta, options: Mapping[str, Any]) -> Window:
    """The windows of a call, if they are regular.

    Raises
    ------
    UnsupportedOperation
        For options with another value than that of default.
    """
    for name, value in options.items():
        if name not in _ALLOWED:
            raise UnsupportedOperation(
                f"group_by_dynamic has no argument {name!r}",
                where=f"group_by_dynamic({name}=...)",
                remedy=f"it has index_column, every, group_by, keys, {', '.join(_ALLOWED)}",
            )
        values, instead = _ALLOWED[name]
        if value not in values and not (name == "period" and value == every):
            raise UnsupportedOperation(
                f"group_by_dynamic with {name}={value!r} is not supported",
                where=f"group_by_dynamic({name}=...)",
                remedy=(f"leave {name}= out", instead),
            )
    time = pl.col(index) if isinstance(index, str) else index
    if not isinstance(time, pl.Expr):
        raise UnsupportedOperation(
            "group_by_dynamic takes the column of times first",
            where="group_by_dynamic(...)",
            remedy='write for example .group_by_dynamic("at", every="1w")',
        )
    try:
        made = time.dt.truncate(every)
        name = made.meta.output_name()
        return Window(name, every, made, name if time.meta.eq(pl.col(name)) else None)
    except FAILURES:
        raise UnsupportedOperation(
            "group_by_dynamic takes one column of times and the length of windows",
            where=f"group_by_dynamic({shown(time)})",
            remedy='write for example .group_by_dynamic("at", every="1w")',
        ) from None


def window_keys(keys: Any, window: Window, columns: Columns, *, alone: bool) -> Any:
    """The keys as they are, where those of windows are beginnings of windows.

    Raises
    ------
    MissingKeys
        When a key is not the start of a window: no row would ever be in its group.
    """
    if isinstance(keys, Iterable) and not isinstance(
        keys, (Mapping, pl.DataFrame, pl.Series, Keys)
    ):
        keys = keys if isinstance(keys, (str, bytes)) else list(keys)
    listed = _of_window(keys, window.name, alone)
    if listed is None or window.name not in columns:
        return keys
    try:
        given = pl.Series(window.name, listed)
        begins = given.to_frame().select(pl.col(window.name).dt.truncate(window.every)).to_series()
        right = begins.equals(given)
    except FAILURES:  # the reader of the keys checks their type
        return keys
    if not right:
        wrong = begins.ne_missing(given)
        raise MissingKeys(
            f"the key {given.filter(wrong).item(0)} is not the beginning of a window of "
            f"{window.every}",
            where="group_by_dynamic(keys=...)",
            remedy=(
                f"write {begins.filter(wrong).item(0)} in its place",
                f"truncate the keys: .dt.truncate({window.every!r})",
            ),
        )
    return keys


def _of_window(keys: Any, name: str, alone: bool) -> Any:
    """What is listed for the windows; None where that is not seen here."""
    if isinstance(keys, Keys):
        keys = keys.frame
    if isinstance(keys, pl.DataFrame):
        return keys[name] if name in keys.columns else None
    if isinstance(keys, Mapping):
        return keys.get(name)
    return keys if alone and isinstance(keys, (list, pl.Series)) else None


def windows_within(window: Window, columns: Columns) -> pl.Series | None:
    """The beginnings of all windows of a column whose bounds are known; None where they are not, or
    make more than 100,000 windows, or the clock of a time zone may leave one out.
    """
    found = _ends(window, columns)
    if found is None or found.zone or found.about > MOST_WINDOWS:
        return None
    try:
        begins = found.ends.dt.truncate(window.every).cast(pl.Int64)
        near = pl.int_range(begins[0], begins[1] + 1, max(1, found.length // 2), eager=True)
        near = near.append(begins).alias(window.name).cast(found.ends.dtype)
        return near.dt.truncate(window.every).unique().sort()
    except FAILURES:
        return None


@dataclass(frozen=True, slots=True)
class _Ends:
    """Between which values of a column its windows are.

    Parameters
    ----------
    ends
        The first and the last value that the column may have; without their time zone.
    length
        The length of a window, in the units of the column.
    about
        How many windows there are, give or take one.
    zone
        Whether the clock of a time zone says where they begin.
    """

    ends: pl.Series
    length: int
    about: int
    zone: bool


def _ends(window: Window, columns: Columns) -> _Ends | None:
    found = columns.get(window.name)
    if found is None or found.bounds is None or found.dtype.name not in ("Date", "Datetime"):
        return None
    if window.column != window.name:
        return None
    first, last = floor(found.bounds[0]), floor(found.bounds[1])
    dtype = to_polars(found.dtype)
    plain = pl.Datetime(dtype.time_unit) if isinstance(dtype, pl.Datetime) else dtype
    try:
        ends = pl.Series(window.name, [first, last], dtype=pl.Int64).cast(plain)
        offset = pl.lit(ends).first().dt.offset_by(_text_of(window.every))
        length = pl.select(offset.to_physical()).item() - first
    except FAILURES:
        return None
    if length <= 0:
        return None
    return _Ends(ends, length, (last - first) // length, found.dtype.zone is not None)


def why_not_known(window: Window, columns: Columns, refusal: MissingKeys) -> MissingKeys:
    """A refusal for want of keys that says why bounds give no windows, where that is why."""
    found, name = _ends(window, columns), window.name
    lists = f"list their beginnings with keys={{{name!r}: [...]}}"
    where = f"group_by_dynamic({name!r}, every={window.every!r})"
    if found is not None and found.about > MOST_WINDOWS:
        return MissingKeys(
            f"between the bounds of {name!r} are about {found.about:,} windows; at "
            f"most {MOST_WINDOWS:,} are possible without a list",
            where=where,
            remedy=("take longer windows, or .filter(...) to a shorter time", f"{lists}"),
        )
    if found is not None and found.zone:
        return MissingKeys(
            f"{name!r} has a time zone, whose clock may skip windows, so its bounds do "
            "not give the windows",
            where=where,
            remedy=f"{lists}, made by pl.datetime_range(first, last, every, time_zone=..., "
            "eager=True)",
        )
    if found is None and name in columns and window.column == name:
        return MissingKeys(
            refusal.what,
            where=where,
            remedy=(
                f"give bounds: session.protect(..., bounds={{{name!r}: (first, last)}})",
                f"{lists}, or open the session with a delta, which finds windows",
            ),
        )
    return refusal


def _text_of(every: str | timedelta) -> str:
    """A length as text, as Polars moves times by it."""
    if isinstance(every, str):
        return every
    return f"{every // timedelta(microseconds=1)}us"
