"""Expressions of absurd size are refused before anything walks through them.

Polars writes and shows an expression by recursion, which ends the process where thousands of
levels are nested. An expression that is its own operand several times over, as after ``e = e +
e``, is written in full, twice as long each time. So Polars writes into a stream that counts
levels and parts as they come, and stops. SQL is measured before Polars parses it, for the same
reason."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import polars as pl

from dpframe.core.parameters import NotAValue, Parameter
from dpframe.core.tree import Literal
from dpframe.errors import UnsupportedOperation
from dpframe.rows.operation import Operand, Values

MAX_DEPTH = 150
MAX_NODES = 20_000
MAX_SQL = 2_000
"""Words and signs in an SQL expression; values of lists do not count."""
_SHORT = 8_192
"""Text so short is nested harmlessly, however it is nested."""
_LEVELS = 1_000
"""Braces that may be open at once: each level of an expression has two or three."""
_BRACES = 6 * MAX_NODES
_BYTES = 1 << 28
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+("|\\?\Z)', re.DOTALL)
"""A text, or the beginning of one that goes on in what is written next."""
_SQL_VALUE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\b\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\b|,")
_SQL_WORD = re.compile(r"\w+|[^\w\s]")


class TooLargeError(Exception):
    """More levels or parts than an expression may have."""


def too_large(what: str) -> UnsupportedOperation:
    """The refusal of an expression that is too large to be read."""
    return UnsupportedOperation(
        f"the expression is nested more than {MAX_DEPTH} levels deep, "
        f"or has more than {MAX_NODES} parts",
        where=what,
        remedy=(
            "split it over several with_columns",
            "use pl.sum_horizontal, is_in or replace in place of long chains",
        ),
    )


class _Measured(io.RawIOBase):
    """Takes what Polars writes, as long as that is of a sensible size."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.refused = False
        self._size = self._open = self._braces = 0
        self._waiting = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self.parts.append(part)
        self._size += len(part)
        self._waiting += part
        if self._size > _SHORT:
            self._measure()
        return len(part)

    def _measure(self) -> None:
        """Count the braces that are not in texts."""
        text, self._waiting = self._waiting, b""
        plain = text
        if b'"' in text:  # values of a list are numbers
            *_, last = _STRING.finditer(text)
            self._waiting = b"" if last[1] == b'"' else last[0]
            plain = _STRING.sub(b"", text)
        opened = plain.count(b"{")
        self._braces += opened
        self._open += opened - plain.count(b"}")
        if self._open > _LEVELS or self._braces > _BRACES or self._size > _BYTES:
            self.refused = True
            raise TooLargeError


def serialised(expression: pl.Expr) -> str:
    """An expression as Polars writes it in JSON."""
    stream = _Measured()
    try:
        expression.meta.serialize(stream, format="json")
    except Exception:
        if stream.refused:
            raise TooLargeError from None
        raise
    return b"".join(stream.parts).decode()


def shown(expression: pl.Expr) -> str:
    """An expression in a message."""
    try:
        serialised(expression)
        return str(expression)
    except Exception:  # a broken Polars repr must not hide the real message
        return "expression"


def require_short_sql(text: str) -> str:
    """An SQL expression that Polars can parse."""
    words = _SQL_WORD.finditer(_SQL_VALUE.sub(" ", text))
    if sum(1 for _ in words) <= MAX_SQL:
        return text
    raise UnsupportedOperation(
        f"the SQL expression has more than {MAX_SQL} words and signs",
        remedy=("split it over several columns or filters", "write IN in place of long chains"),
    )


# Parameters in expressions: the name that stands for one, and the constant that it is read into.
#
# A parameter is never put into the text of an expression. It is written as a name that holds
# everything about it in hexadecimal digits, for any value, and the reader makes a constant of it.


SQL = "dpframe:sql"
"""The name of an expression that was written in SQL, by which the reader knows it."""

_MARK = "dpframe:parameter:"
_MARKED = re.compile(rf'(?:col\()?"?{_MARK}([0-9a-f]+)"?\)?')


def mark(parameter: Parameter) -> str:
    """The name that stands for a parameter."""
    text = json.dumps([parameter.name, parameter.type, parameter.value])
    return _MARK + text.encode().hex()


def marked(name: object) -> Parameter | None:
    """The parameter that a name stands for, if it does."""
    if not isinstance(name, str) or not name.startswith(_MARK):
        return None
    try:
        text, kind, value = json.loads(bytes.fromhex(name.removeprefix(_MARK)))
        return Parameter(text, kind, value)
    except (AttributeError, NotAValue, TypeError, ValueError):
        raise UnsupportedOperation(
            f"no column or output may be named {_MARK}...: parameters are called so",
            remedy="rename it",
        ) from None


def given(parameter: Parameter) -> Operand:
    """A parameter as the constant that it is, or as several."""
    held, dtype = parameter.held, parameter.kind.dtype
    if isinstance(held, tuple):
        return Values(held, dtype, parameter)
    return Literal(held, dtype, parameter)


def readable(shown: str) -> str:
    """An expression in a message, with parameters by their names."""
    return _MARKED.sub(_named, shown)


def _named(found: re.Match[str]) -> str:
    parameter = marked(_MARK + found[1])
    return found[0] if parameter is None else f":{parameter.name}"
