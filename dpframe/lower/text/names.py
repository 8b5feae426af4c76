"""Types of columns by name, for jobs: ``"Int64"``, ``"Datetime(ms)"``, ``"List(Int64)"``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from dpframe.core.dtypes import DType
from dpframe.errors import UnsupportedOperation
from dpframe.rows.failures import FAILURES
from dpframe.rows.polars_dtypes import to_polars

_SIMPLE = (
    *("String", "Boolean", "Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16"),
    *("UInt32", "UInt64", "Float32", "Float64", "Date", "Time", "Binary", "Categorical", "Null"),
)
_OTHERS = (
    'Datetime, "Datetime(ms)", "Datetime(us, Europe/Oslo)", "Duration(us)", "Decimal(10, 2)", '
    '"List(Int64)", "Array(Float64, 3)", "Struct({street: String, number: Int32})", or a list of '
    "categories"
)
_WORD = re.compile(r"[A-Za-z0-9]+")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_DEEPEST = 20
"""Types within types that are read."""


class _NoType(ValueError):
    """A text that names no type."""


def dtype_of(column: str, given: Any) -> Any:
    """A type as Polars or Python has it, or by name; a list of texts is an Enum of these, a table
    of types a Struct.

    Raises
    ------
    UnsupportedOperation
        When the name is unknown.
    """
    if isinstance(given, list) and given and all(isinstance(value, str) for value in given):
        if len(set(given)) == len(given):
            return pl.Enum(given)
        raise _unknown(column, "a list that has a category twice")
    if isinstance(given, Mapping) and given and all(isinstance(name, str) for name in given):
        return pl.Struct({name: dtype_of(column, inner) for name, inner in given.items()})
    if not isinstance(given, str):
        return given
    try:
        return to_polars(_Reader(given).dtype_alone())
    except FAILURES:
        pass
    raise _unknown(column, repr(given))


def type_words(dtype: DType) -> str:
    """A type in the words that a schema takes. For an Enum without its categories, which may be
    those that occur in private data.
    """
    if dtype.name == "Enum":
        return f"an Enum of {len(dtype.categories or ())} categories"
    if dtype.name == "Object":
        return "a type that no operation takes"
    return str(dtype)


class _Reader:
    """Reads the name of a type from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def dtype_alone(self) -> DType:
        found = self._dtype()
        self._skip()
        if self._at < len(self._text):
            raise _NoType
        return found

    def _dtype(self, depth: int = 0) -> DType:
        name = self._matched(_WORD)
        if depth > _DEEPEST:
            raise _NoType
        if name in _SIMPLE:
            return DType(name)
        if not self._has("("):
            if name != "Datetime":
                raise _NoType
            return DType(name, unit="us")
        match name:
            case "Datetime":
                found = DType(name, unit=self._unit(), zone=self._zone())
            case "Duration":
                found = DType(name, unit=self._unit())
            case "Decimal":
                precision = self._number()
                self._require(",")
                scale = self._number()
                if not 1 <= precision <= 38 or scale > precision:
                    raise _NoType
                found = DType(name, precision=precision, scale=scale)
            case "List":
                found = DType(name, inner=self._dtype(depth + 1))
            case "Array":
                inner = self._dtype(depth + 1)
                self._require(",")
                found = DType(name, inner=inner, width=self._number())
            case "Struct":
                found = DType(name, fields=self._fields(depth + 1))
            case _:
                raise _NoType
        self._require(")")
        return found

    def _fields(self, depth: int) -> tuple[tuple[str, DType], ...]:
        self._require("{")
        fields = [self._field(depth)]
        while self._has(","):
            fields.append(self._field(depth))
        self._require("}")
        return tuple(fields)

    def _field(self, depth: int) -> tuple[str, DType]:
        self._skip()
        if self._text[self._at : self._at + 1] == '"':
            name = json.loads(self._matched(_TEXT))
        else:
            name = self._matched(re.compile(r"[^:,{}()]+")).strip()
        self._require(":")
        return name, self._dtype(depth)

    def _unit(self) -> str:
        unit = self._matched(_WORD)
        if unit not in ("ms", "us", "ns"):
            raise _NoType
        return unit

    def _zone(self) -> str | None:
        return self._matched(re.compile(r"[A-Za-z0-9_+\-/]+")) if self._has(",") else None

    def _number(self) -> int:
        return int(self._matched(re.compile(r"[0-9]{1,9}")))

    def _skip(self) -> None:
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1

    def _has(self, mark: str) -> bool:
        self._skip()
        has = self._text.startswith(mark, self._at)
        self._at += len(mark) if has else 0
        return has

    def _require(self, mark: str) -> None:
        if not self._has(mark):
            raise _NoType

    def _matched(self, form: re.Pattern[str]) -> str:
        self._skip()
        found = form.match(self._text, self._at)
        if found is None:
            raise _NoType
        self._at = found.end()
        return found[0]


def _unknown(column: str, what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{what} is not the type of a column",
        where=f"schema, column {column!r}",
        remedy=f"use {', '.join(_SIMPLE)}, {_OTHERS}",
    )
