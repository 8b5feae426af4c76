"""Methods of text, and dates, times and integers that are read from it."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any, ClassVar

import polars as pl

from dpframe.core.dtypes import (
    DATE,
    INT64,
    STRING,
    TIME,
    Domain,
    DType,
    Scalar,
    datetime_type,
    domain_of_dtype,
    list_type,
)
from dpframe.core.interval import interval
from dpframe.core.tree import Literal, Tree
from dpframe.core.units import EVERYWHERE
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.failures import FAILURES
from dpframe.rows.layouts import together, unordered
from dpframe.rows.operands import INT64_LIMITS, as_type, boolean, when
from dpframe.rows.operation import (
    Function,
    Namespace,
    Node,
    Operand,
    Reader,
    RowMethod,
    RowOperation,
    on,
    operation,
    quoted,
    spell_out,
)
from dpframe.rows.polars_dtypes import read_dtype, read_dtype_expression, require_zone, to_polars
from dpframe.rows.temporal import (
    DAY,
    calendar,
    in_zone,
    kept_inside,
    require_null_if_ambiguous,
)

# What operations on text share: their operand, and what is known of their result.
#
# Enum and Categorical values are read as the text of their category. Where all values of the
# operand are known, the operation is run on that public list to find the values of the result.

LONGEST_TEXT = 2**16
"""Characters after which text that was joined or replaced is cut."""
_LENGTHS = interval(0, 2**32 - 1)
"""How many bytes a text of an engine can have."""
_MOST_CATEGORIES = 10_000
"""Longer lists of categories are not carried through text operations."""


def require_text(domain: Domain, what: str) -> None:
    """Refuse an operand that is not text, with how to get text from its type."""
    dtype = domain.dtype
    if dtype.is_text:
        return
    if dtype.name in ("Datetime", "Date"):
        remedy = "use the methods of .dt, such as .dt.year()"
    elif dtype.name == "Struct":
        remedy = "take one of its fields first: .struct.field(name)"
    elif dtype.is_nested:
        remedy = "take a value from it first: .list.get(0)"
    elif dtype.name == "Binary":
        remedy = "use a column of text"
    else:
        remedy = "cast it first: .cast(pl.String)"
    raise UnsupportedOperation(f"{what} works on text, not on {dtype}", remedy=remedy)


def bounded(text: pl.Expr) -> pl.Expr:
    """Text cut to `LONGEST_TEXT` characters, where an operation could make it grow.

    Text that doubles again and again would exhaust memory only if one row is not empty.
    """
    return text.str.head(LONGEST_TEXT)


def known_results(operation: RowOperation, operand: Domain) -> tuple[Scalar, ...] | None:
    """What the operation makes of each known value of its operand; None when they are not known.

    The operation runs as it will on data, so this is what it yields, not what Python would.
    """
    values = operand.categories
    if values is None or len(values) > _MOST_CATEGORIES:
        return None
    return _run(operation, tuple(value for value in values if isinstance(value, str)))


@lru_cache(maxsize=256)
def _run(operation: RowOperation, texts: tuple[str, ...]) -> tuple[Scalar, ...]:
    expression = operation.lower(pl, [pl.col("value")], [Domain(STRING, nullable=False)])
    frame = pl.DataFrame({"value": list(texts)}, schema={"value": pl.String})
    return tuple(dict.fromkeys(frame.select(result=expression)["result"].to_list()))


class TextMethod(RowMethod):
    """A method of text."""

    __slots__ = ()
    namespace = "str"
    groups: ClassVar[tuple[str, ...]] = ("StringExpr",)

    @abstractmethod
    def result(self, operand: Domain) -> Domain:
        """The domain of the result for an operand that is text."""

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_text(args[0], self.method)
        return self.result(args[0])

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        is_text = domains[0].dtype == STRING
        return self.apply(ns, args[0] if is_text else as_type(args[0], STRING))


class TextToText(TextMethod):
    """From text to text; never null where the operand is not."""

    __slots__ = ()

    def result(self, operand: Domain) -> Domain:
        return Domain(STRING, operand.nullable, categories=known_results(self, operand))


class TextToFlag(TextMethod):
    """From text to a condition."""

    __slots__ = ()

    def result(self, operand: Domain) -> Domain:
        return boolean(operand.nullable)


class TextToCount(TextMethod):
    """From text to an Int64 that is at least zero; null where there is nothing to count."""

    __slots__ = ()

    def result(self, operand: Domain) -> Domain:
        return whole_number(self, operand, Domain(INT64, operand.nullable, interval=_LENGTHS))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return as_type(TextMethod.apply(self, ns, operand), INT64)


def whole_number(operation: RowOperation, operand: Domain, otherwise: Domain) -> Domain:
    """The facts about a whole number: those given, and its values where all texts are known."""
    results = known_results(operation, operand)
    if results is None:
        return otherwise
    numbers = tuple(value for value in results if isinstance(value, int))
    known = interval(min(numbers), max(numbers)) if numbers else otherwise.interval
    return replace(otherwise, interval=known, categories=numbers)


@lru_cache(maxsize=256)
def check_pattern(pattern: str) -> int:
    """The number of groups of a regular expression, group 0 included.

    One that Polars does not accept is refused: whether a query fails may not depend on rows.
    """
    probe = pl.Series([""], dtype=pl.String)
    try:
        probe.str.contains(pattern, literal=False, strict=True)
        groups = probe.str.extract_groups(pattern).struct.fields
    except FAILURES:
        shown = repr(pattern if len(pattern) <= 60 else pattern[:57] + "...")
        raise UnsupportedOperation(
            f"{shown} is not a regular expression of Polars",
            remedy=(
                "correct the pattern, without look-around and back-references",
                "write literal=True",
            ),
        ) from None
    return len(groups) + 1


# Methods of text. Characters are code points: a letter and its combining accent are two.

WIDEST = 1_024
"""Characters to which a text is filled up at most: every row takes as much memory."""
_LONGEST_REPLACEMENT = 256
_MOST_OPERANDS = 64
"""This many texts at their longest are still small."""
_MOST_CHOICES = 1_000


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
    characters: str | None = None


@operation
class StripCharsStart(TextToText):
    """The text without white space, or a constant set of characters, at its start."""

    engines = EVERYWHERE
    examples = on("s", 'str.strip_chars_start("a")')
    characters: str | None = None


@operation
class StripCharsEnd(TextToText):
    """The text without white space, or a constant set of characters, at its end."""

    engines = EVERYWHERE
    examples = on("s", "str.strip_chars_end()")
    characters: str | None = None


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
    examples = spell_out("s.str.slice(1, 2); s.str.slice(-3); sb.str.slice(-3, 2)")
    offset: int
    length: int | None = None

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

    fill: str = " "

    def check(self) -> None:
        Padded.check(self)
        if len(self.fill) != 1:
            raise ValueError(f"{self.method} fills with one character")

    @classmethod
    def parameters(cls, params: Node) -> Mapping[str, object]:
        return {"fill": params["fill_char"]}


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
    examples = spell_out("s.str.zfill(5); i64.cast(pl.String).str.zfill(12); sb.str.zfill(1)")

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        length = self.length

        def fill(text: pl.Expr) -> pl.Expr:
            has_sign = text.str.starts_with("-") | text.str.starts_with("+")
            after = text.str.head(1) + text.str.slice(1).str.pad_start(length - 1, "0")
            return when(ns, has_sign, after, text.str.pad_start(length, "0"))

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
    literal: bool = False

    def check(self) -> None:
        if not self.literal:
            check_pattern(self.pattern)


@operation
class Contains(Search, TextToFlag):
    """Whether a constant text, or a match of a constant regular expression, is found."""

    engines = EVERYWHERE
    propagates_null = True
    examples = spell_out(
        's.str.contains("a", literal=True); s.str.contains("^[a-m].*\\\\d$"); '
        'sb.str.contains("(?i)B")'
    )


@operation
class Find(Search, TextToCount):
    """Where a constant text, or the first match of a constant regular expression, begins: the bytes
    before it, as Int64; null where it does not occur.
    """

    engines = EVERYWHERE
    examples = spell_out('s.str.find("a", literal=True); s.str.find("[0-9]"); sb.str.find("")')

    def result(self, operand: Domain) -> Domain:
        return TextToCount.result(self, operand).with_null()


@operation
class CountMatches(Search, TextToCount):
    """How often a constant text, or a constant regular expression, is found without overlap, as
    Int64.
    """

    engines = EVERYWHERE
    examples = spell_out(
        's.str.count_matches("a", literal=True); s.str.count_matches("[aeiou]"); '
        'sb.str.count_matches("aa", literal=True)'
    )


@operation
class Replace(TextToText):
    """The text with matches of a constant, or of a constant regular expression, replaced; cut
    before and after to 65536 characters.

    The first n matches, or all of them when n is negative.
    """

    engines = EVERYWHERE
    examples = spell_out(
        's.str.replace("a", "b", literal=True); s.str.replace_all("[aeiou]", ""); '
        's.str.replace_all("(a)(b)", "$2$1"); sb.str.replace_all("a", "$0")'
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
    def parameters(cls, params: Node) -> Mapping[str, object]:
        return {"literal": params["literal"], "n": max(-1, int(params["n"]))}

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        text, constants = bounded(operand).str, (self._pattern(), self.value)
        if self.n < 0:
            return bounded(text.replace_all(*constants, literal=self.literal))
        return bounded(text.replace(*constants, literal=self.literal, n=self.n))

    def words(self, args: Sequence[str]) -> str:
        shown = [quoted(self.pattern), quoted(self.value), *["literal=True"] * self.literal]
        shown += [f"n={self.n}"] * (self.n not in (-1, 1))
        return f"{args[0]}.str.replace{'_all' if self.n < 0 else ''}({', '.join(shown)})"

    def _pattern(self) -> str:
        # Older Polars takes a pattern without special characters as a literal, and then copies
        # references such as $0 instead of resolving them. The empty group prevents that.
        return self.pattern if "$" not in self.value or self.literal else "(?:)" + self.pattern


@operation
class Extract(TextMethod):
    """A constant group of the first match of a constant regular expression, else null."""

    examples = spell_out(
        's.str.extract("([a-z]+)", 1); s.str.extract("a(b)?", 1); sb.str.extract("[^a]+", 0)'
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

    examples = spell_out(
        's.str.split("a"); s.str.split("-").list.get(1); sb.str.split("a", inclusive=True); '
        's.str.split(""); e.cast(pl.String).str.split("b").list.len()'
    )
    called = MappingProxyType({"by": "separator"})
    by: str
    inclusive: bool = False

    def result(self, operand: Domain) -> Domain:
        part = Domain(STRING, nullable=False)
        return Domain(list_type(STRING), nullable=operand.nullable, inner=part)


@operation
class ConcatStr(Function):
    """Texts, integers and Booleans joined by a constant separator; cut after 65536 characters.

    Text, integers and Booleans; how floats and dates print differs between versions.
    """

    reads = ("StringExpr.ConcatHorizontal",)
    engines = EVERYWHERE
    examples = (
        'pl.concat_str("s", "sb", separator="-")',
        'pl.concat_str("s", "i8", "b", "e", separator="", ignore_nulls=True)',
        'pl.concat_str(pl.lit("x"), "i64")',
    )
    keywords = MappingProxyType({"separator": "separator"})
    separator: str = ""
    ignore_nulls: bool = False

    @classmethod
    def parameters(cls, params: Node) -> Mapping[str, object]:
        return {**params, "separator": params["delimiter"]}

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

    def _join_all(self, args: Sequence[Domain]) -> tuple[Scalar, ...] | None:
        """All results, where all values of all operands are known and are text."""
        choices: list[list[str | None]] = []
        for arg in args:
            if arg.categories is None or not arg.dtype.is_text:
                return None
            values: list[str | None] = [v for v in arg.categories if isinstance(v, str)]
            choices.append([*values, None] if self.ignore_nulls and arg.nullable else values)
        if prod(len(choice) for choice in choices) > _MOST_CHOICES:
            return None
        joined = (self.separator.join(v for v in row if v is not None) for row in product(*choices))
        return tuple(dict.fromkeys(text[:LONGEST_TEXT] for text in joined))


def read_format(operands: Sequence[Operand], params: Node) -> Tree:
    """`pl.format`: Polars keeps the text without its ``{}``, and the byte where each one was."""
    raw, start = params["format"].encode(), 0
    pieces: list[Operand] = []
    for end, value in [*zip(params["insertions"], operands, strict=True), (len(raw), None)]:
        if end > start:
            pieces.append(Literal(raw[start:end].decode(), STRING))
        if value is not None:
            pieces.append(value)
        start = end
    return ConcatStr().of(*pieces)


# Dates, times and integers that are read from text; what cannot be read is null.

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


@operation
class Parse(TextMethod):
    """Without a format only ISO 8601 is read: no format is guessed from the data."""

    groups = ()  # `read_parse` makes them all
    kind: ClassVar[str]
    format: str | None = None

    def check(self) -> None:
        if self.format is not None:
            check_format(self.format, self.kind)

    def formats(self) -> tuple[str, ...]:
        return WITHOUT_FORMAT[self.kind] if self.format is None else (self.format,)


@operation
class ToDate(Parse):
    """A date in a constant format (%Y-%m-%d without one); null outside years 1 to 9999."""

    kind = "Date"
    examples = spell_out(
        's.str.to_date("%Y-%m-%d", strict=False); sb.str.to_date("%d/%m/%Y", strict=False); '
        "d.cast(pl.String).str.to_date(strict=False)"
    )

    def result(self, operand: Domain) -> Domain:
        return Domain(DATE, nullable=True)

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        parsed = parse_as(operand, self.formats()[0], self.kind, "us")
        return kept_inside(ns, parsed, DATE, calendar(DATE))


@operation
class ToTime(Parse):
    """A time of day in a constant format (%H:%M:%S, with or without decimals)."""

    kind = "Time"
    examples = spell_out(
        's.str.to_time("%H:%M:%S", strict=False); sb.str.to_time("%H:%M", strict=False)'
    )

    def result(self, operand: Domain) -> Domain:
        return Domain(TIME, nullable=True, interval=interval(0, DAY * 10**9 - 1))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        parsed: pl.Expr = parse_as(operand, self.formats()[0], self.kind, "us")
        return parsed


@operation
class ToDatetime(Parse):
    """A date with a time in a constant format (ISO 8601 without one), in a constant zone.

    A format with an offset (%z) gives instants, shown in `zone` or UTC. Otherwise `zone` says where
    the local time is read; it is null where the clock there skips it or shows it twice.
    """

    kind = "Datetime"
    examples = spell_out(
        's.str.to_datetime("%Y-%m-%d %H:%M", strict=False); '
        's.str.to_datetime("%Y-%m-%dT%H:%M:%S%z", time_unit="ms", strict=False); '
        'sb.str.to_datetime("%Y-%m-%d", time_unit="ns", strict=False); '
        's.str.to_datetime("%Y-%m-%d %H:%M:%S", time_zone="Europe/Amsterdam", strict=False)'
    )

    keywords = MappingProxyType({"unit": "time_unit", "zone": "time_zone"})
    unit: str | None = None
    zone: str | None = None

    def check(self) -> None:
        Parse.check(self)
        if self.zone is not None:
            require_zone(self.zone)

    def result(self, operand: Domain) -> Domain:
        return Domain(self._type(), nullable=True)

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        dtype, forms = self._type(), self.formats()
        if any(map(has_offset, forms)):
            (form,) = forms
            parsed = _parsed(ns, operand, form, replace(dtype, zone="UTC"))
            return parsed if dtype.zone == "UTC" else parsed.dt.convert_time_zone(dtype.zone or "")
        parts = [_parsed(ns, operand, form, replace(dtype, zone=None)) for form in forms]
        local = reduce(lambda first, second: ns.coalesce(first, second), parts)
        if dtype.zone is None:
            return local
        return kept_inside(ns, in_zone(local, dtype.zone), dtype, calendar(dtype))

    def _type(self) -> DType:
        zone = self.zone
        if zone is None and any(map(has_offset, self.formats())):
            zone = "UTC"
        return datetime_type(self.unit or "us", zone)

    def arguments(self) -> list[str]:
        return [shown for shown in Parse.arguments(self) if shown != 'time_unit="us"']


def has_offset(form: str) -> bool:
    """Whether texts in this format carry an offset from UTC."""
    return any(found in _OFFSETS for found in _DIRECTIVE.findall(form))


@lru_cache(maxsize=256)
def check_format(form: str, kind: str) -> None:
    """Refuse a format that Polars may not read as a Date, Datetime or Time, or in which one cannot
    be read back. Directives that versions of Polars read differently are unknown here.
    """
    allowed = _KNOWN | (_OFFSETS if kind == "Datetime" else frozenset())
    for directive in _DIRECTIVE.findall(form):
        if directive not in allowed:
            remedy = f"use the directives {' '.join('%' + known for known in sorted(_KNOWN))}"
            if directive.endswith("f"):
                remedy = "use %.f, which reads any number of decimals with their point"
            elif directive in _OFFSETS:
                remedy = "parse a Datetime, then use .dt.date() or .dt.time()"
            raise UnsupportedOperation(
                f"a {kind} cannot be parsed with %{directive} in {form!r}", remedy=remedy
            )
    if not _reads_back(form, kind):
        raise UnsupportedOperation(
            f"a {kind} cannot be parsed with {form!r}",
            remedy='name every part of it, as in "%Y-%m-%d" or "%H:%M:%S"',
        )


def _reads_back(form: str, kind: str) -> bool:
    """Whether what the format prints of a public moment is read again, at least in its year or
    minute: Polars fills in parts that are not named.
    """
    moment = pl.Series([_SAMPLE]).cast(pl.Datetime("us", "UTC"))
    try:
        shown = moment.dt.strftime(form.replace("%#z", "%z"))
        read = parse_as(shown, form, kind, "us")
        if kind == "Time":
            return [read.dt.hour().item(), read.dt.minute().item()] == [16, 7]
        return bool(read.dt.year().item() == 2003)
    except FAILURES:
        return False


def parse_as(text: Any, form: str, kind: str, unit: str) -> Any:
    """A String expression or Series parsed with a format; null where it does not fit."""
    if kind == "Date":
        return text.str.to_date(form, strict=False)
    if kind == "Time":
        return text.str.to_time(form, strict=False)
    return text.str.to_datetime(form, time_unit=unit, strict=False)


def _parsed(ns: Namespace, text: pl.Expr, form: str, dtype: DType) -> pl.Expr:
    """A text in a format as a Datetime that is inside the calendar."""
    unit = dtype.unit or "us"
    if unit != "ns":
        value: pl.Expr = parse_as(text, form, "Datetime", unit)
        return kept_inside(ns, value, dtype, calendar(dtype))
    # Nanoseconds overflow silently, so parsing to microseconds shows which ones did.
    coarse = replace(dtype, unit="us")
    limits = INT64_LIMITS[0] // 1000 + 1, INT64_LIMITS[1] // 1000 - 1
    seen = kept_inside(ns, parse_as(text, form, "Datetime", "us"), coarse, limits)
    return when(ns, seen.is_not_null(), parse_as(text, form, "Datetime", unit))


@operation
class ToInteger(TextMethod):
    """An integer in a constant base.

    Digits with an optional sign, and nothing else; null where the number does not fit.
    """

    examples = spell_out(
        "s.str.to_integer(strict=False); i64.cast(pl.String).str.to_integer(strict=False); "
        "sb.str.to_integer(base=16, dtype=pl.Int8, strict=False)"
    )

    keywords = MappingProxyType({"base": "base", "dtype": "dtype"})
    base: int = 10
    dtype: DType = INT64

    def check(self) -> None:
        if not 2 <= self.base <= 36:
            raise InvalidBounds(
                f"str.to_integer has no base {self.base}",
                remedy="write a base from 2 to 36, such as base=16",
            )
        if not self.dtype.is_integer:
            raise UnsupportedOperation(
                f"str.to_integer cannot return {self.dtype}",
                remedy="write an integer type, such as dtype=pl.Int64",
            )

    @classmethod
    def parameters(cls, params: Node) -> Mapping[str, object]:
        node = params.get("dtype")
        read = read_dtype_expression if isinstance(node, dict) else read_dtype
        return {"dtype": INT64 if node is None else read(node)}

    def result(self, operand: Domain) -> Domain:
        known = domain_of_dtype(self.dtype).interval
        return whole_number(self, operand, Domain(self.dtype, nullable=True, interval=known))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        dtype: Any = to_polars(self.dtype)  # of integers
        return operand.str.to_integer(base=self.base, dtype=dtype, strict=False)


_OFFSET_DIRECTIVES = ("%z", "%:z", "%#z", "%+")


def read_parse(operands: Sequence[Operand], params: Node) -> Tree:
    """All parsing of dates and times."""
    source, ambiguous = operands[0], operands[1]
    dtype, options = read_dtype_expression(params[0]), params[1]
    name = {"Date": "str.to_date", "Time": "str.to_time"}.get(dtype.name, "str.to_datetime")
    require_null_if_ambiguous(ambiguous, name)
    if not options.get("exact", True):
        raise UnsupportedOperation(
            f"exact=False in {name} is not supported",
            remedy="use .str.extract(pattern) first, and leave exact out",
        )
    form, zone = options["format"], dtype.zone
    match dtype.name:
        case "Date":
            return ToDate(form).of(source)
        case "Time":
            return ToTime(form).of(source)
        case "Datetime":
            if zone is None and form is not None and any(d in form for d in _OFFSET_DIRECTIVES):
                zone = "UTC"  # what Polars makes of texts that carry an offset
            return ToDatetime(form, dtype.unit, zone).of(source)
        case _:
            raise LookupError(dtype)  # Polars itself takes no other


OPERATIONS = (
    *(ToLowercase, ToUppercase, ToTitlecase, LenChars, LenBytes),
    *(StripChars, StripCharsStart, StripCharsEnd, StripPrefix, StripSuffix),
    *(Slice, Head, Tail, PadStart, PadEnd, Zfill),
    *(StartsWith, EndsWith, Contains, Find, CountMatches, Replace, Extract, Split, ConcatStr),
    *(ToDate, ToTime, ToDatetime, ToInteger),
)
READERS: Mapping[str, Reader] = {
    "StringExpr.Format": read_format,
    "StringExpr.Strptime": read_parse,
}
