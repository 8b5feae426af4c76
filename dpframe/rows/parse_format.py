"""Constant formats of dates and times: which are accepted, and what is read without one."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import polars as pl

from dpframe.errors import InvalidBounds

_DIRECTIVE = re.compile(r"%(\.f|[:#]?.|$)", re.DOTALL)
_KNOWN = frozenset([*"YymbBhdeaAjGVuFDHkIlpPMSTR%", ".f"])
_OFFSETS = frozenset({"z", ":z", "#z"})
_DECIMALS = re.compile(r"%\.?[369]?f")
_SAMPLE = 1_049_562_428_000_000
"""2003-04-05 17:07:08 UTC, in microseconds: all parts differ."""

WITHOUT_FORMAT: dict[str, tuple[str, ...]] = {
    "Date": ("%Y-%m-%d",),
    "Datetime": ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"),
    "Time": ("%H:%M:%S%.f",),
}
"""What is read when no format is given. Polars would guess one from the first rows that it meets,
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
    InvalidBounds
        For an unknown directive, or a format in which a date or time cannot be read back.
    """
    allowed = _KNOWN | (_OFFSETS if kind == "Datetime" else frozenset())
    for directive in _DIRECTIVE.findall(form):
        if directive not in allowed:
            raise InvalidBounds(
                f"a {kind} cannot be parsed with %{directive} in {form!r}",
                remedy=_remedy(directive),
            )
    if not _reads_back(form, kind):
        raise InvalidBounds(
            f"a {kind} cannot be parsed with {form!r}",
            remedy='name every part of it, as in "%Y-%m-%d" or "%H:%M:%S"',
        )


def _remedy(directive: str) -> str:
    if _DECIMALS.fullmatch(f"%{directive}"[:4]) or directive in ("3", "6", "9", ".", "."):
        return "use %.f, which reads any number of decimals with their point"
    if directive in _OFFSETS:
        return "parse a Datetime, then use .dt.date() or .dt.time()"
    return f"use the directives {' '.join('%' + known for known in sorted(_KNOWN))}"


def _reads_back(form: str, kind: str) -> bool:
    """Whether what the format prints of a public moment is read again."""
    moment = pl.Series([_SAMPLE]).cast(pl.Datetime("us", "UTC"))
    shown = moment.dt.strftime(form.replace("%#z", "%z"))
    return _attempt(lambda: parse_as(shown, form, kind, "us").null_count() == 0)


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
