"""Constant formats of dates and times: which are accepted, and what is read without one."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import polars as pl

from dpframe.errors import UnsupportedOperation

_DIRECTIVE = re.compile(r"%(\.?[369]?f|[:#]?.|$)", re.DOTALL)
_KNOWN = frozenset([*"YymbBhdeaAjGVuFDHkIlpPMSTR%", ".f"])
_OFFSETS = frozenset({"z", ":z", "#z"})
_SAMPLE = 1_049_558_828_000_000
"""2003-04-05 16:07:08 UTC, in microseconds: all parts differ."""

WITHOUT_FORMAT: dict[str, tuple[str, ...]] = {
    "Date": ("%Y-%m-%d",),
    "Datetime": ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"),
    "Time": ("%H:%M:%S%.f",),
}
"""The formats that are read by default. Polars would guess one from the first rows that it meets,
so that the result in one row would depend on others."""


def has_offset(form: str) -> bool:
    """Whether texts in this format carry an offset from UTC."""
    return any(found in _OFFSETS for found in _DIRECTIVE.findall(form))


@lru_cache(maxsize=256)
def check_format(form: str, kind: str) -> None:
    """Refuse a format that Polars may not read, or reads differently from version to version.

    Parameters
    ----------
    form
        The format, in chrono's directives.
    kind
        ``"Date"``, ``"Datetime"`` or ``"Time"``.

    Raises
    ------
    UnsupportedOperation
        For an unknown directive, or a format in which a date or time cannot be read back.
    """
    allowed = _KNOWN | (_OFFSETS if kind == "Datetime" else frozenset())
    for directive in _DIRECTIVE.findall(form):
        if directive not in allowed:
            raise UnsupportedOperation(
                f"a {kind} cannot be parsed with %{directive} in {form!r}",
                remedy=_remedy(directive),
            )
    if not _reads_back(form, kind):
        raise UnsupportedOperation(
            f"a {kind} cannot be parsed with {form!r}",
            remedy='name every part of it, as in "%Y-%m-%d" or "%H:%M:%S"',
        )


def _remedy(directive: str) -> str:
    if directive.endswith("f"):
        return "use %.f, which reads any number of decimals with their point"
    if directive in _OFFSETS:
        return "parse a Datetime, then use .dt.date() or .dt.time()"
    return f"use the directives {' '.join('%' + known for known in sorted(_KNOWN))}"


def _reads_back(form: str, kind: str) -> bool:
    """Whether what the format prints of a public moment is read again, at least in its year or
    minute: Polars fills in parts that are not named.
    """
    moment = pl.Series([_SAMPLE]).cast(pl.Datetime("us", "UTC"))

    def trial() -> bool:
        shown = moment.dt.strftime(form.replace("%#z", "%z"))
        read = parse_as(shown, form, kind, "us")
        parts = (read.dt.hour(), read.dt.minute()) if kind == "Time" else (read.dt.year(),)
        return [part.item() for part in parts] == ([16, 7] if kind == "Time" else [2003])

    return _attempt(trial)


def _attempt(trial: Callable[[], bool]) -> bool:
    try:
        return trial()
    except BaseException as error:  # a panic of Polars is not an Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return False


def parse_as(text: Any, form: str, kind: str, unit: str) -> Any:
    """A String expression or Series parsed with a format; null where it does not fit."""
    if kind == "Date":
        return text.str.to_date(form, strict=False)
    if kind == "Time":
        return text.str.to_time(form, strict=False)
    return text.str.to_datetime(form, time_unit=unit, strict=False)
