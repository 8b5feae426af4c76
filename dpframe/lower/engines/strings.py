"""Text: what engines do alike, byte by byte or by code points.

Operations that Narwhals lacks are written in SQL, with functions that DuckDB and Spark have in
common and that count code points: `length`, `substr`, `instr`, `replace`, `repeat`, `trim`,
`concat_ws`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import BOOLEAN, INT64, STRING
from dpframe.core.interval import interval
from dpframe.lower.engines.engine_expr import EngineExpr, EngineScope, combined
from dpframe.lower.engines.operators import Operators

_LONGEST = 2**31 - 2
"""No text has this many characters, and engines fail at larger numbers where there is a text."""
_LENGTHS = interval(0, 2**32)
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What Unicode has for it, and Polars takes away."""
E = TypeVar("E", bound=Operators)


class StringOps(Generic[E]):
    """Methods of text."""

    __slots__ = ("_text",)

    def __init__(self, text: E) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        raise self._text.dialect.refused(f".str.{name}")

    # -- lengths and parts ----------------------------------------------------------------------

    def len_chars(self) -> E:
        return self._text.then(
            lambda _, a: a.having(a.expr.str.len_chars().cast(nw.Int64), INT64, _LENGTHS)
        )

    def len_bytes(self) -> E:
        return self._count(lambda x: _octets(self._text, x))

    def head(self, n: int) -> E:
        """The first characters; for a negative number all but the last ones."""
        if n >= 0:
            return self.slice(0, n)
        rest = min(-n, _LONGEST)
        return self._written(lambda x: f"substr({x}, 1, greatest(length({x}) - {rest}, 0))")

    def tail(self, n: int) -> E:
        """The last characters; for a negative number all but the first ones."""
        return self.slice(-n) if n else self.slice(0, 0)

    def slice(self, offset: int, length: int | None = None) -> E:
        first, most = min(offset, _LONGEST), None if length is None else min(length, _LONGEST)
        if offset < 0:
            return self._written(partial(_from_the_end, max(offset, -_LONGEST), most))
        return self._text.then(lambda _, a: a.having(a.expr.str.slice(first, most), STRING))

    # -- search ---------------------------------------------------------------------------------

    def starts_with(self, prefix: str) -> E:
        return self._flag(lambda text: text.str.starts_with(prefix))

    def ends_with(self, suffix: str) -> E:
        return self._flag(lambda text: text.str.ends_with(suffix))

    def contains(self, pattern: str, *, literal: bool = False) -> E:
        self._require_literal(literal)
        return self._flag(lambda text: text.str.contains(pattern, literal=True))

    def find(self, pattern: str, *, literal: bool = False) -> E:
        """The number of bytes before a text; null where it is not found."""
        self._require_literal(literal, pattern)

        def before(x: str, p: str) -> str:
            found = _octets(self._text, f"substr({x}, 1, instr({x}, {p}) - 1)")
            return f"CASE WHEN instr({x}, {p}) > 0 THEN {found} END"

        return self._count(before, pattern)

    def count_matches(self, pattern: str, *, literal: bool = False) -> E:
        """The number of matches: by how much a text is shorter without them, in bytes, over their
        length."""
        self._require_literal(literal, pattern)
        without = self.replace_all(pattern, "", literal=True).str.len_bytes()
        missing: E = self.len_bytes() - without
        return missing.then(_as_length) // len(pattern.encode())

    # -- replacing ------------------------------------------------------------------------------

    def replace_all(self, pattern: str, value: str, *, literal: bool = False) -> Any:
        self._require_literal(literal, pattern)
        return self._written(lambda x, p, v: f"replace({x}, {p}, {v})", pattern, value)

    def replace(self, pattern: str, value: str, *, literal: bool = False, n: int = 1) -> E:
        self._require_literal(literal, pattern)
        if n != 1:
            raise self._text.dialect.refused("replacing more than one match, but not all,")

        def once(x: str, p: str, v: str) -> str:
            before = f"substr({x}, 1, instr({x}, {p}) - 1)"
            after = f"substr({x}, instr({x}, {p}) + {len(pattern)})"
            return f"CASE WHEN instr({x}, {p}) > 0 THEN concat({before}, {v}, {after}) ELSE {x} END"

        return self._written(once, pattern, value)

    def strip_chars(self, characters: str | None = None) -> E:
        return self._stripped("BOTH", characters)

    def strip_chars_start(self, characters: str | None = None) -> E:
        return self._stripped("LEADING", characters)

    def strip_chars_end(self, characters: str | None = None) -> E:
        return self._stripped("TRAILING", characters)

    def strip_prefix(self, prefix: str) -> E:
        rest = self.slice(len(prefix))
        return self._text.then(_either, self.starts_with(prefix), rest)

    def strip_suffix(self, suffix: str) -> E:
        rest = self.head(-len(suffix)) if suffix else self._text
        return self._text.then(_either, self.ends_with(suffix), rest)

    def pad_start(self, length: int, fill_char: str = " ") -> E:
        return self._written(
            lambda x, f: f"concat(repeat({f}, greatest({length} - length({x}), 0)), {x})", fill_char
        )

    def pad_end(self, length: int, fill_char: str = " ") -> E:
        return self._written(
            lambda x, f: f"concat({x}, repeat({f}, greatest({length} - length({x}), 0)))", fill_char
        )

    # -- how they are made ----------------------------------------------------------------------

    def _stripped(self, ends: str, characters: str | None) -> E:
        if characters == "":
            return self._text
        given = _WHITE_SPACE if characters is None else characters
        return self._written(lambda x, c: f"trim({ends} {c} FROM {x})", given)

    def _require_literal(self, literal: bool, pattern: str = "a") -> None:
        if not literal:
            raise self._text.dialect.refused("a regular expression")
        if not pattern:
            raise self._text.dialect.refused("the search for an empty text")

    def _flag(self, function: Callable[[nw.Expr], nw.Expr]) -> E:
        return self._text.then(lambda _, a: a.having(function(a.expr), BOOLEAN))

    def _written(self, sql: Callable[..., str], *constants: str) -> E:
        """A text in SQL, of this one and of constants; null where this one is."""

        def make(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            return scope.written(_given(sql), _parts(scope, a, constants), STRING)

        return self._text.then(make)

    def _count(self, sql: Callable[..., str], *constants: str) -> E:
        """A number of bytes."""

        def make(scope: EngineScope, a: EngineExpr) -> EngineExpr:
            parts = _parts(scope, a, constants)
            return scope.written(
                lambda *names: f"CAST({_given(sql)(*names)} AS BIGINT)", parts, INT64, _LENGTHS
            )

        return self._text.then(make)


def _parts(scope: EngineScope, a: EngineExpr, constants: Sequence[str]) -> list[EngineExpr]:
    return [a, *(scope.dialect.constant(value, STRING) for value in constants)]


def _given(sql: Callable[..., str]) -> Callable[..., str]:
    """The same, but null where its first operand is: on one engine `concat` leaves out nulls."""
    return lambda x, *others: f"CASE WHEN {x} IS NOT NULL THEN {sql(x, *others)} END"


def _octets(text: Operators, x: str) -> str:
    return f"{text.dialect.octets}({x})"


def _from_the_end(offset: int, length: int | None, x: str) -> str:
    """The part that begins this many characters before the end; what of it would be before the
    text is not there.
    """
    start = f"length({x}) - {-offset}"
    first = f"greatest({start}, 0)"
    if length is None:
        return f"substr({x}, {first} + 1)"
    after = f"greatest({start} + {length}, 0)"
    return f"substr({x}, {first} + 1, {after} - {first})"


def _either(
    _: EngineScope, text: EngineExpr, condition: EngineExpr, stripped: EngineExpr
) -> EngineExpr:
    made = nw.when(condition.expr).then(stripped.expr).otherwise(text.expr)
    return combined(made, STRING, text, condition, stripped)


def _as_length(_: EngineScope, number: EngineExpr) -> EngineExpr:
    return number.having(number.expr, INT64, _LENGTHS)


def joined(
    scope: EngineScope, separator: str, ignore_nulls: bool, *texts: EngineExpr
) -> EngineExpr:
    """Texts as one; null where one of them is, or without those that are."""
    for text in texts:
        if not text.dtype.is_text and text.dtype.name != "Null":
            raise scope.dialect.refused(f"text joined with {text.dtype}")
    parts = [_typed(scope, text) for text in texts]
    given = scope.dialect.constant(separator, STRING)

    def sql(between: str, *names: str) -> str:
        made = f"concat_ws({between}, {', '.join(names)})"
        known = " AND ".join(f"{name} IS NOT NULL" for name in names)
        return made if ignore_nulls else f"CASE WHEN {known} THEN {made} END"

    return scope.written(sql, [given, *parts], STRING)


def _typed(scope: EngineScope, text: EngineExpr) -> EngineExpr:
    return scope.dialect.constant(None, STRING) if text.dtype.name == "Null" else text
