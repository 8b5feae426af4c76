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
            "windows that are moved: write .group_by((pl.col(...).dt.offset_by('-6h'))"
            ".dt.truncate(every)), and move the released beginnings",
        ),
        "include_boundaries": (
            (False,),
            'add the end to the released result: pl.col(...).dt.offset_by("1w")',
        ),
        "closed": (("left",), "windows hold their beginning and not their end"),
        "label": (("left",), "windows are called by their beginning"),
        "start_by": (("window",), "windows begin at regular boundaries, whatever data there are"),
    }
)
_MOST_WINDOWS = 1_000
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
    """

    name: str
    every: str | timedelta
    expression: pl.Expr


def window_of(index: str | pl.Expr, every: str | timedelta, options: Mapping[str, Any]) -> Window:
    """The windows that are asked for, as far as they are regular.

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
                remedy=f"leave {name} out; {instead}",
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
        return Window(made.meta.output_name(), every, made)
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
        When one is none: no row would ever be in its group.
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
    except FAILURES:  # whoever reads the keys says what they are
        return keys
    if not right:
        wrong = begins.ne_missing(given)
        raise MissingKeys(
            f"the key {given.filter(wrong).item(0)} is not the beginning of a window of "
            f"{window.every}",
            where="group_by_dynamic(keys=...)",
            remedy=f"list beginnings, which is {begins.filter(wrong).item(0)} for this one, or "
            f"truncate the keys: .dt.truncate({window.every!r})",
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
    make more than 1,000 windows, or the clock of a time zone may leave one out.
    """
    found = columns.get(window.name)
    if found is None or found.bounds is None or found.dtype.name not in ("Date", "Datetime"):
        return None
    if found.dtype.zone is not None:
        return None
    first, last = floor(found.bounds[0]), floor(found.bounds[1])
    try:
        ends = pl.Series(window.name, [first, last], dtype=pl.Int64).cast(to_polars(found.dtype))
        begins = ends.dt.truncate(window.every).to_physical()
        offset = pl.lit(ends).first().dt.offset_by(_text_of(window.every))
        length = pl.select(offset.to_physical()).item() - first
        if length <= 0 or (last - first) // length > _MOST_WINDOWS:
            return None
        near = pl.Series(window.name, range(begins[0], begins[1] + 1, max(1, length // 2)))
        near = near.append(begins.cast(pl.Int64)).cast(to_polars(found.dtype))
        return near.dt.truncate(window.every).unique().sort()
    except FAILURES:
        return None


def _text_of(every: str | timedelta) -> str:
    """A length as text, as Polars moves times by it."""
    if isinstance(every, str):
        return every
    return f"{every // timedelta(microseconds=1)}us"
