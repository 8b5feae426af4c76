"""Types of columns by name, for jobs: ``"Int64"``, ``"Datetime(ms)"``, ``"Decimal(10, 2)"``."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.lower.text.values import KNOWN

_DECIMAL = re.compile(r"Decimal\((\d{1,2}), ?(\d{1,2})\)")
_DATETIME = re.compile(r"Datetime\((ms|us|ns)\)")


def dtype_of(column: str, given: Any) -> Any:
    """A type as Polars or Python has it, or by name; a list of texts is an Enum of these.

    Raises
    ------
    UnsupportedOperation
        When there is no such name.
    """
    if isinstance(given, list) and given and all(isinstance(value, str) for value in given):
        if len(set(given)) == len(given):
            return pl.Enum(given)
        raise _unknown(column, "a list that has a category twice")
    if not isinstance(given, str):
        return given
    if given in KNOWN and given not in ("Enum", "Decimal", "Datetime"):
        return getattr(pl, given)()
    if given == "Datetime":
        return pl.Datetime("us")
    if found := _DATETIME.fullmatch(given):
        return pl.Datetime(found[1])  # type: ignore[arg-type]
    found = _DECIMAL.fullmatch(given)
    if found and 1 <= int(found[1]) <= 38 and int(found[2]) <= int(found[1]):
        return pl.Decimal(int(found[1]), int(found[2]))
    raise _unknown(column, repr(given))


def _unknown(column: str, what: str) -> UnsupportedOperation:
    simple = ", ".join(name for name in KNOWN if name not in ("Enum", "Decimal"))
    return UnsupportedOperation(
        f"{what} is not the type of a column",
        where=f"schema, column {column!r}",
        remedy=f'use {simple}, "Datetime(ms)", "Decimal(10, 2)", or a list of categories',
    )
