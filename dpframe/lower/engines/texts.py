"""Text: what engines do alike, byte by byte or by code points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpframe.core.dtypes import BOOLEAN, INT64, STRING
from dpframe.lower.engines.made import Made, Scope, typed

if TYPE_CHECKING:
    from dpframe.lower.engines.expressions import Expression

_LONGEST = 2**31 - 2
"""No text has so many characters, and engines fail at larger numbers where there is a text."""


def joined(scope: Scope, a: Made, b: Made) -> Made:
    """Two texts as one; null where one is null."""
    return typed(scope.ns.nw.concat_str(a.expr, b.expr, separator=""), STRING, a, b)


class Texts:
    """Methods of text."""

    __slots__ = ("_text",)

    def __init__(self, text: Expression) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        raise self._text.ns.refused(f".str.{name}")

    def len_chars(self) -> Expression:
        def count(scope: Scope, a: Made) -> Made:
            return a.having(a.expr.str.len_chars().cast(scope.ns.nw.Int64), INT64, 0, 2**32)

        return self._text._then(count)

    def head(self, n: int) -> Expression:
        """The first characters; for a negative number all but the last ones."""
        if n < 0:
            raise self._text.ns.refused("a number of characters from the end")
        return self.slice(0, n)

    def slice(self, offset: int, length: int | None = None) -> Expression:
        if offset < 0:
            raise self._text.ns.refused("an offset from the end")

        first, most = min(offset, _LONGEST), None if length is None else min(length, _LONGEST)

        def part(scope: Scope, a: Made) -> Made:
            return a.having(a.expr.str.slice(first, most), STRING)

        return self._text._then(part)

    def starts_with(self, prefix: str) -> Expression:
        return self._flag(lambda text: text.str.starts_with(prefix))

    def ends_with(self, suffix: str) -> Expression:
        return self._flag(lambda text: text.str.ends_with(suffix))

    def contains(self, pattern: str, *, literal: bool = False) -> Expression:
        if not literal:
            raise self._text.ns.refused("a regular expression")
        return self._flag(lambda text: text.str.contains(pattern, literal=True))

    def _flag(self, function: Any) -> Expression:
        return self._text._then(lambda scope, a: a.having(function(a.expr), BOOLEAN))
