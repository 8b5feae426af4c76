"""Methods of text. Characters are code points: a letter and its combining accent are two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any

import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import STRING, list_type
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Literal, Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.broadcast import unordered
from dpframe.rows.given import Operand, Reader, require_some
from dpframe.rows.layouts import together
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, on, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.text import (
    LONGEST_TEXT,
    TextMethod,
    TextToCount,
    TextToFlag,
    TextToText,
    bounded,
    check_pattern,
    known_results,
)

WIDEST = 1_024
"""Characters to which a text is filled up at most: every row takes as much memory."""
_LONGEST_REPLACEMENT = 256
_MOST_OPERANDS = 64
"""This many texts at their longest are still small."""
_MOST_CATEGORIES = 1_000


@operation
class ToLowercase(TextToText):
    """Text in lower case, by Unicode's rules."""

    reads = ("StringExpr.Lowercase",)
    examples = ('pl.col("s").str.to_lowercase()', 'pl.col("ls").list.get(0).str.to_lowercase()')

    def reference(self, text: str) -> str:
        return text.lower()


@operation
class ToUppercase(TextToText):
    """Text in upper case, by Unicode's rules."""

    reads = ("StringExpr.Uppercase",)
    examples = ('pl.col("s").str.to_uppercase()', 'pl.col("e").cast(pl.String).str.to_uppercase()')

    def reference(self, text: str) -> str:
        return text.upper()


@operation
class ToTitlecase(TextToText):
    """Text with each word capitalised.

    Older Polars capitalises a few letters, such as ligatures, differently from newer.
    """

    reads = ("StringExpr.Titlecase",)
    examples = on("s", "str.to_titlecase()")


@operation
class LenChars(TextToCount):
    """Number of characters (code points), as Int64."""

    engines = EVERYWHERE
    propagates_null = True
    examples = ('pl.col("s").str.len_chars()', 'pl.col("e").cast(pl.String).str.len_chars()')

    def reference(self, text: str) -> int:
        return len(text)


@operation
class LenBytes(TextToCount):
    """Number of bytes in UTF-8, as Int64."""

    engines = EVERYWHERE
    examples = on("s sb", "str.len_bytes()")

    def reference(self, text: str) -> int:
        return len(text.encode())


@operation
class StripChars(TextToText):
    """The text without white space, or a constant set of characters, at both ends."""

    engines = EVERYWHERE
    examples = ('pl.col("s").str.strip_chars()', 'pl.col("s").str.strip_chars("ab ")')
    characters: str | None


@operation
class StripCharsStart(TextToText):
    """The text without white space, or a constant set of characters, at its start."""

    engines = EVERYWHERE
    examples = on("s", 'str.strip_chars_start("a")')
    characters: str | None


@operation
class StripCharsEnd(TextToText):
    """The text without white space, or a constant set of characters, at its end."""

    engines = EVERYWHERE
    examples = on("s", "str.strip_chars_end()")
    characters: str | None


@operation
class StripPrefix(TextToText):
    """The text without a constant prefix, where it has it."""

    engines = EVERYWHERE
    examples = on("s", 'str.strip_prefix("a")')
    prefix: str


@operation
class StripSuffix(TextToText):
    """The text without a constant suffix, where it has it."""

    engines = EVERYWHERE
    examples = on("s", 'str.strip_suffix("a")')
    suffix: str


class Reordered(TextToText):
    """Text that is in another order than its operand."""

    __slots__ = ()

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return unordered(ns, TextToText.apply(self, ns, operand))


@operation
class Slice(Reordered):
    """A part of the text from a constant offset; a negative one counts from the end."""

    engines = EVERYWHERE
    examples = (
        *on("s", "str.slice(1, 2)"),
        *on("s", "str.slice(-3)"),
        *on("sb", "str.slice(-3, 2)"),
    )
    offset: int
    length: int | None

    def check(self) -> None:
        if self.length is not None and self.length < 0:
            raise InvalidBounds(
                "the length of a slice is negative",
                remedy=("write a length of 0 or more", "drop the end: .str.head(-n)"),
            )


@operation
class Head(Reordered):
    """The first n characters; for a negative n all but the last ones."""

    engines = EVERYWHERE
    examples = (*on("s", "str.head(2)"), *on("s", "str.head(-1)"))
    called = MappingProxyType({"n": "length"})
    n: int


@operation
class Tail(Reordered):
    """The last n characters; for a negative n all but the first ones."""

    engines = EVERYWHERE
    examples = (*on("s", "str.tail(2)"), *on("s", "str.tail(-1)"))
    called = MappingProxyType({"n": "length"})
    n: int


@operation
class Padded(Reordered):
    """Text filled up to a constant length."""

    length: int

    def check(self) -> None:
        if not 0 <= self.length <= WIDEST:
            raise InvalidBounds(
                f"{self.method} fills up to at most {WIDEST} characters, and to no fewer than 0",
                remedy=f"use a length from 0 to {WIDEST}",
            )


@operation
class PaddedBy(Padded):
    """Text filled up with a constant character."""

    fill: str

    def check(self) -> None:
        Padded.check(self)
        if len(self.fill) != 1:
            raise ValueError(f"{self.method} fills with one character")

    @classmethod
    def parameters(cls, params: Any) -> Mapping[str, Any]:
        return {"fill": params["fill_char"]}

    def arguments(self) -> str:
        return f"{self.length}" + ("" if self.fill == " " else f", {quoted(self.fill)}")


@operation
class PadStart(PaddedBy):
    """The text filled up at its start to a constant length, at most 1024."""

    engines = EVERYWHERE
    examples = (*on("s", 'str.pad_start(5, "0")'), *on("sb", "str.pad_start(3)"))


@operation
class PadEnd(PaddedBy):
    """The text filled up at its end to a constant length, at most 1024."""

    engines = EVERYWHERE
    examples = ('pl.col("s").str.pad_end(5, "é")', 'pl.col("e").cast(pl.String).str.pad_end(2)')


@operation
class Zfill(Padded):
    """The text filled up with zeros after its sign to a constant length, at most 1024.

    Older Polars counts bytes, newer ones characters; so it is put together of other methods.
    """

    reads = ("StringExpr.ZFill",)
    engines = EVERYWHERE
    examples = (
        *on("s", "str.zfill(5)"),
        'pl.col("i64").cast(pl.String).str.zfill(12)',
        *on("sb", "str.zfill(1)"),
    )

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        length = self.length

        def fill(text: pl.Expr) -> pl.Expr:
            has_sign = text.str.starts_with("-") | text.str.starts_with("+")
            after = text.str.head(1) + text.str.slice(1).str.pad_start(length - 1, "0")
            result: pl.Expr = (
                ns.when(has_sign).then(after).otherwise(text.str.pad_start(length, "0"))
            )
            return result

        return unordered(ns, together(ns, [operand], fill)) if length else operand


@operation
class StartsWith(TextToFlag):
    """Whether the text starts with a constant."""

    engines = EVERYWHERE
    propagates_null = True
    examples = on("s", 'str.starts_with("a")')
    prefix: str


@operation
class EndsWith(TextToFlag):
    """Whether the text ends with a constant."""

    engines = EVERYWHERE
    propagates_null = True
    examples = (*on("s", 'str.ends_with("a")'), *on("sb", 'str.ends_with("")'))
    suffix: str


@operation
class Search(TextMethod):
    """A search for a constant text, or for matches of a constant regular expression."""

    pattern: str
    literal: bool

    def check(self) -> None:
        if not self.literal:
            check_pattern(self.pattern)


@operation
class Contains(Search, TextToFlag):
    """Whether a constant text, or a match of a constant regular expression, is found."""

    engines = EVERYWHERE
    propagates_null = True
    examples = (
        'pl.col("s").str.contains("a", literal=True)',
        'pl.col("s").str.contains("^[a-m].*\\\\d$")',
        'pl.col("sb").str.contains("(?i)B")',
    )


@operation
class Find(Search, TextToCount):
    """Where a constant text, or the first match of a constant regular expression, begins: the bytes
    before it, as Int64; null where it does not occur.
    """

    engines = EVERYWHERE
    examples = (
        'pl.col("s").str.find("a", literal=True)',
        'pl.col("s").str.find("[0-9]")',
        'pl.col("sb").str.find("")',
    )

    def result(self, operand: Domain) -> Domain:
        return TextToCount.result(self, operand).with_null()


@operation
class CountMatches(Search, TextToCount):
    """How often a constant text, or a constant regular expression, is found without overlap, as
    Int64.
    """

    engines = EVERYWHERE
    examples = (
        'pl.col("s").str.count_matches("a", literal=True)',
        'pl.col("s").str.count_matches("[aeiou]")',
        'pl.col("sb").str.count_matches("aa", literal=True)',
    )


@operation
class Replace(TextToText):
    """The text with matches of a constant, or of a constant regular expression, replaced; cut
    before and after to 65536 characters.

    The first n matches, or all of them when n is negative.
    """

    engines = EVERYWHERE
    examples = (
        'pl.col("s").str.replace("a", "b", literal=True)',
        'pl.col("s").str.replace_all("[aeiou]", "")',
        'pl.col("s").str.replace_all("(a)(b)", "$2$1")',
        'pl.col("sb").str.replace_all("a", "$0")',
    )
    called = MappingProxyType({"value": "replacement"})
    pattern: str
    value: str
    literal: bool
    n: int

    def check(self) -> None:
        if len(self.value) > _LONGEST_REPLACEMENT:
            raise UnsupportedOperation(
                f"the replacement is longer than {_LONGEST_REPLACEMENT} characters",
                remedy=f"write at most {_LONGEST_REPLACEMENT} characters",
            )
        if self.literal:
            return
        if self.n not in (-1, 1):
            raise UnsupportedOperation(
                f"str.replace of a pattern with n={self.n} does not exist in Polars",
                remedy="use n=1, .str.replace_all(...), or literal=True",
            )
        check_pattern(self.pattern)
        check_pattern(self._pattern())

    @classmethod
    def parameters(cls, params: Any) -> Mapping[str, Any]:
        return {"literal": params["literal"], "n": max(-1, int(params["n"]))}

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        text, constants = bounded(operand).str, (self._pattern(), self.value)
        if self.n < 0:
            return bounded(text.replace_all(*constants, literal=self.literal))
        return bounded(text.replace(*constants, literal=self.literal, n=self.n))

    def words(self, args: Sequence[str]) -> str:
        constants = [quoted(self.pattern), quoted(self.value)]
        constants += ["literal=True"] if self.literal else []
        constants += [f"n={self.n}"] if self.n not in (-1, 1) else []
        method = "replace_all" if self.n < 0 else "replace"
        return f"{args[0]}.str.{method}({', '.join(constants)})"

    def _pattern(self) -> str:
        # Older Polars takes a pattern without special characters as a literal, and then copies
        # references such as $0 instead of resolving them. The empty group prevents that.
        return self.pattern if "$" not in self.value or self.literal else "(?:)" + self.pattern


@operation
class Extract(TextMethod):
    """A constant group of the first match of a constant regular expression, else null."""

    examples = (
        'pl.col("s").str.extract("([a-z]+)", 1)',
        'pl.col("s").str.extract("a(b)?", 1)',
        'pl.col("sb").str.extract("[^a]+", 0)',
    )
    pattern: str
    group: int

    def check(self) -> None:
        if not 0 <= self.group < check_pattern(self.pattern):
            raise InvalidBounds(
                f"the regular expression has no group {self.group}",
                remedy=("put what you want in parentheses", "ask for group 0, the whole match"),
            )

    def result(self, operand: Domain) -> Domain:
        results = known_results(self, operand)
        known = None if results is None else tuple(v for v in results if v is not None)
        return Domain(STRING, nullable=True, categories=known)


@operation
class Split(TextMethod):
    """A list of the parts between a constant text; of the characters, where that is empty."""

    examples = (
        'pl.col("s").str.split("a")',
        'pl.col("s").str.split("-").list.get(1)',
        'pl.col("sb").str.split("a", inclusive=True)',
        'pl.col("s").str.split("")',
        'pl.col("e").cast(pl.String).str.split("b").list.len()',
    )
    called = MappingProxyType({"by": "separator"})
    by: str
    inclusive: bool

    def result(self, operand: Domain) -> Domain:
        part = Domain(STRING, nullable=False)
        return Domain(list_type(STRING), nullable=operand.nullable, inner=part)


@operation
class ConcatStr(ParametricOperation):
    """Text, integers and Booleans; how floats and dates print differs between versions."""

    name = "concat_str"
    reads = ("StringExpr.ConcatHorizontal",)
    engines = EVERYWHERE
    summary = (
        "Texts, integers and Booleans joined by a constant separator; cut after 65536 characters."
    )
    examples = (
        'pl.concat_str("s", "sb", separator="-")',
        'pl.concat_str("s", "i8", "b", "e", separator="", ignore_nulls=True)',
        'pl.concat_str(pl.lit("x"), "i64")',
    )
    separator: str
    ignore_nulls: bool

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        texts = require_some(cls.name, operands)
        return cls(params["delimiter"], params["ignore_nulls"]).of(*texts)

    def domain(self, args: Sequence[Domain]) -> Domain:
        if len(args) > _MOST_OPERANDS:
            raise UnsupportedOperation(
                f"concat_str joins at most {_MOST_OPERANDS} expressions, not {len(args)}",
                remedy="join fewer, or in several steps",
            )
        for dtype in (arg.dtype for arg in args):
            if not (dtype.is_text or dtype.is_integer or dtype.is_boolean):
                raise UnsupportedOperation(
                    f"concat_str joins text, integers and Booleans, not {dtype}",
                    remedy="take one element of it first: .list.get(0)"
                    if dtype.is_nested
                    else "write it as text first: .dt.to_string(format)"
                    if dtype.is_temporal
                    else "cast it first: .cast(pl.String)",
                )
        nullable = not self.ignore_nulls and any(arg.nullable for arg in args)
        return Domain(STRING, nullable=nullable, categories=self._join_all(args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        texts = [bounded(as_type(arg, STRING)) for arg in args]
        return bounded(
            ns.concat_str(texts, separator=self.separator, ignore_nulls=self.ignore_nulls)
        )

    def words(self, args: Sequence[str]) -> str:
        extra = [f"separator={quoted(self.separator)}"] if self.separator else []
        extra += ["ignore_nulls=True"] if self.ignore_nulls else []
        return f"concat_str({', '.join([*args, *extra])})"

    def _join_all(self, args: Sequence[Domain]) -> tuple[Scalar, ...] | None:
        """All results, where all values of all operands are known and are text."""
        choices: list[list[str | None]] = []
        for arg in args:
            if arg.categories is None or not arg.dtype.is_text:
                return None
            values: list[str | None] = [v for v in arg.categories if isinstance(v, str)]
            choices.append([*values, None] if self.ignore_nulls and arg.nullable else values)
        if prod(len(choice) for choice in choices) > _MOST_CATEGORIES:
            return None
        joined = (self.separator.join(v for v in row if v is not None) for row in product(*choices))
        return tuple(dict.fromkeys(text[:LONGEST_TEXT] for text in joined))


def read_format(operands: Sequence[Operand], params: Any) -> Tree:
    """`pl.format`: Polars keeps the text without its ``{}``, and the byte where each one was."""
    raw, start = params["format"].encode(), 0
    pieces: list[Operand] = []
    for end, value in [*zip(params["insertions"], operands, strict=True), (len(raw), None)]:
        if end > start:
            pieces.append(Literal(raw[start:end].decode(), STRING))
        if value is not None:
            pieces.append(value)
        start = end
    return ConcatStr("", ignore_nulls=False).of(*pieces)


OPERATIONS: tuple[Kind, ...] = (
    *(ToLowercase, ToUppercase, ToTitlecase, LenChars, LenBytes),
    *(StripChars, StripCharsStart, StripCharsEnd, StripPrefix, StripSuffix),
    *(Slice, Head, Tail, PadStart, PadEnd, Zfill),
    *(StartsWith, EndsWith, Contains, Find, CountMatches, Replace, Extract, Split, ConcatStr),
)
READERS: Mapping[str, Reader] = {"StringExpr.Format": read_format}
