"""Values of text: null where the text does not fit the type, never an error."""

from __future__ import annotations

import polars as pl

from dpframe.core.dtypes import DType
from dpframe.errors import UnsupportedOperation
from dpframe.rows.polars_dtypes import from_polars
from dpframe.rows.strings import parse_as

_NUMBERS = (
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64", "Decimal"),
)
KNOWN = ("String", "Boolean", *_NUMBERS, "Date", "Datetime", "Time", "Enum")
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
_YEAR = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DAY = _YEAR + "-[0-9]{2}-[0-9]{2}"
_DAY_OF_NANOSECONDS = "(167[89]|16[89][0-9]|1[7-9][0-9]{2}|2[01][0-9]{2}|22[0-5][0-9]|226[01])" + (
    "-[0-9]{2}-[0-9]{2}"
)
"""In the years that 64 bits count the nanoseconds of."""
_CLOCK = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_WHOLE = r"^[+-]?[0-9]{1,20}$"
_FLOAT = (
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?([iI]nf|[iI]nfinity)$|^(nan|NaN)$"
)


def require_known(column: str, dtype: pl.DataType) -> None:
    """Refuse types that texts are not parsed to.

    Raises
    ------
    UnsupportedOperation
        Naming those that they are.
    """
    found = from_polars(dtype)
    zone = found.name == "Datetime" and found.zone is not None
    if found.name not in KNOWN or zone:
        raise UnsupportedOperation(
            f"text cannot be parsed to {dtype}",
            where=f"schema={{{column!r}: {dtype}}}",
            remedy=f"use one of {', '.join(KNOWN)}"
            + (" without a zone, or String and .str.to_datetime(...)" if zone else ""),
        )


def value(text: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """What a field's text stands for; for types that `require_known` lets pass."""
    found = from_polars(dtype)
    if found.is_boolean:
        return pl.when(text.is_in(_TRUE)).then(True).when(text.is_in(_FALSE)).then(False)
    if found.is_integer:
        return _matching(text, _WHOLE).cast(dtype, strict=False)
    if found.is_float:
        return _matching(text, _FLOAT).str.to_lowercase().cast(dtype, strict=False)
    if found.is_decimal:
        return _decimal(text, found).str.strip_prefix("+").cast(dtype, strict=False)
    if found.name == "Enum":
        return text.cast(dtype, strict=False)
    if found.name in ("Date", "Datetime", "Time"):
        return _moment(text, found).cast(dtype, strict=False)
    return text


def _matching(text: pl.Expr, pattern: str) -> pl.Expr:
    return pl.when(text.str.contains(pattern)).then(text)


def _decimal(text: pl.Expr, dtype: DType) -> pl.Expr:
    """What the type holds without rounding, which versions of Polars do differently."""
    places = dtype.scale or 0
    digits = (dtype.precision or 38) - places
    whole = rf"0*[0-9]{{1,{digits}}}" if digits else "0*"
    part = rf"(\.[0-9]{{0,{places}}})?" if places else r"\.?"
    return _matching(text, rf"^[+-]?{whole}{part}$")


def _moment(text: pl.Expr, dtype: DType) -> pl.Expr:
    """ISO 8601: a day, a time, or both with a T or a space between them."""
    if dtype.name == "Date":
        return _parsed(_matching(text, f"^{_DAY}$"), "%Y-%m-%d", dtype)
    if dtype.name == "Time":
        given = _matching(text, f"^{_CLOCK}$")
        return _parsed(_with_seconds(given, 5), "%H:%M:%S%.f", dtype)
    day = _DAY_OF_NANOSECONDS if dtype.unit == "ns" else _DAY
    given = _matching(text, f"^{day}([T ]{_CLOCK})?$").str.replace("T", " ", literal=True)
    given = pl.when(given.str.len_bytes() == 10).then(given + " 00:00").otherwise(given)
    return _parsed(_with_seconds(given, 16), "%Y-%m-%d %H:%M:%S%.f", dtype)


def _parsed(text: pl.Expr, form: str, dtype: DType) -> pl.Expr:
    found: pl.Expr = parse_as(text, form, dtype.name, dtype.unit or "us")
    return found


def _with_seconds(text: pl.Expr, short: int) -> pl.Expr:
    return pl.when(text.str.len_bytes() == short).then(text + ":00").otherwise(text)
