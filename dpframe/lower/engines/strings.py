"""Text: what engines do alike, byte by byte or by code points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import BOOLEAN, INT64, STRING
from dpframe.core.interval import interval
from dpframe.lower.engines.operators import Operators

_LONGEST = 2**31 - 2
"""No text has so many characters, and engines fail at larger numbers where there is a text."""
_LENGTHS = interval(0, 2**32)
E = TypeVar("E", bound=Operators)


class StringOps(Generic[E]):
    """Methods of text."""

    __slots__ = ("_text",)

    def __init__(self, text: E) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        raise self._text.dialect.refused(f".str.{name}")

    def len_chars(self) -> E:
        return self._text.then(
            lambda _, a: a.having(a.expr.str.len_chars().cast(nw.Int64), INT64, _LENGTHS)
        )

    def head(self, n: int) -> E:
        """The first characters; for a negative number all but the last ones."""
        if n < 0:
            raise self._text.dialect.refused("a number of characters from the end")
        return self.slice(0, n)

    def slice(self, offset: int, length: int | None = None) -> E:
        if offset < 0:
            raise self._text.dialect.refused("an offset from the end")
        first, most = min(offset, _LONGEST), None if length is None else min(length, _LONGEST)
        return self._text.then(lambda _, a: a.having(a.expr.str.slice(first, most), STRING))

    def starts_with(self, prefix: str) -> E:
        return self._flag(lambda text: text.str.starts_with(prefix))

    def ends_with(self, suffix: str) -> E:
        return self._flag(lambda text: text.str.ends_with(suffix))

    def contains(self, pattern: str, *, literal: bool = False) -> E:
        if not literal:
            raise self._text.dialect.refused("a regular expression")
        return self._flag(lambda text: text.str.contains(pattern, literal=True))

    def _flag(self, function: Callable[[nw.Expr], nw.Expr]) -> E:
        return self._text.then(lambda _, a: a.having(function(a.expr), BOOLEAN))
