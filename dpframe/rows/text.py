"""What operations on text share: their operand, and what is known of their result.

Enum and Categorical values are read as the text of their category. Where all values of the operand
are known, the operation is run on that public list to find the values of the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import INT64, STRING, DType
from dpframe.core.interval import interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.failures import FAILURES
from dpframe.rows.operands import boolean
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.polars_dtypes import to_polars

LONGEST_TEXT = 2**16
"""Characters after which text that was joined or replaced is cut."""
_MOST = 2**32 - 1
"""Bytes of the longest text of an engine."""
_MOST_CATEGORIES = 10_000
"""Longer lists of categories are not carried through text operations."""


def require_text(domain: Domain, what: str) -> None:
    """Refuse an operand that is not text.

    Raises
    ------
    UnsupportedOperation
        Naming the type, and how to get text.
    """
    if not domain.dtype.is_text:
        raise UnsupportedOperation(
            f"{what} works on text, not on {domain.dtype}", remedy=_text_remedy(domain.dtype)
        )


def _text_remedy(dtype: DType) -> str:
    if dtype.name in ("Datetime", "Date"):
        return "use the methods of .dt, such as .dt.year()"
    if dtype.name == "Struct":
        return "take one of its fields first: .struct.field(name)"
    if dtype.is_nested:
        return "take a value from it first: .list.get(0)"
    if dtype.name == "Binary":
        return "use a column of text"
    return "cast it first: .cast(pl.String)"


def as_text(expression: pl.Expr, domain: Domain) -> pl.Expr:
    """An operand as a String expression."""
    if domain.dtype == STRING:
        return expression
    return expression.cast(to_polars(STRING), strict=False)


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
    texts = tuple(value for value in values if isinstance(value, str))
    return _run(operation, texts)


@lru_cache(maxsize=256)
def _run(operation: RowOperation, texts: tuple[str, ...]) -> tuple[Scalar, ...]:
    facts = Domain(STRING, nullable=False)
    expression = operation.lower(pl, [pl.col("value")], [facts])
    frame = pl.DataFrame({"value": list(texts)}, schema={"value": pl.String})
    return tuple(frame.select(result=expression)["result"].to_list())


def method_of(name: str) -> str:
    """The Polars method of an operation's name: `str.to_lowercase` of `str_to_lowercase`."""
    return name.replace("_", ".", 1)


class TextOperation(RowOperation):
    """An operation with one operand that is text."""

    __slots__ = ()

    @property
    def method(self) -> str:
        """The Polars method: `str.to_lowercase`."""
        return method_of(self.name)

    @abstractmethod
    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        """The operation on a String expression."""

    @abstractmethod
    def result(self, operand: Domain) -> Domain:
        """The domain of the result for an operand that is text."""

    def arguments(self) -> str:
        """The constants between the parentheses, for words."""
        return ""

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_text(args[0], self.method)
        return self.result(args[0])

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return self.apply(ns, as_text(args[0], domains[0]))

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.method}({self.arguments()})"


class TextToText(TextOperation):
    """From text to text; never null where the operand is not."""

    __slots__ = ()

    def result(self, operand: Domain) -> Domain:
        results = known_results(self, operand)
        categories = None if results is None else tuple(dict.fromkeys(results))
        return Domain(STRING, nullable=operand.nullable, categories=categories)


class TextToFlag(TextOperation):
    """From text to a condition."""

    __slots__ = ()

    def result(self, operand: Domain) -> Domain:
        return boolean(operand.nullable)


class TextToCount(TextOperation):
    """From text to an integer that is at least zero."""

    __slots__ = ()

    def result(self, operand: Domain) -> Domain:
        results = known_results(self, operand)
        counts = [value for value in results or () if isinstance(value, int)]
        known = interval(min(counts), max(counts)) if counts else interval(0, _MOST)
        categories = None if results is None else tuple(dict.fromkeys(counts))
        return Domain(INT64, operand.nullable, interval=known, categories=categories)


@lru_cache(maxsize=256)
def check_pattern(pattern: str) -> int:
    """The number of groups of a regular expression, group 0 included.

    Raises
    ------
    UnsupportedOperation
        When Polars does not accept the expression: whether a query fails may not depend on rows.
    """
    probe = pl.Series([""], dtype=pl.String)
    try:
        probe.str.contains(pattern, literal=False, strict=True)
        groups = probe.str.extract_groups(pattern).struct.fields
    except FAILURES:
        raise UnsupportedOperation(
            f"{quoted_pattern(pattern)} is not a regular expression of Polars",
            remedy=(
                "correct the pattern, without look-around and back-references",
                "write literal=True",
            ),
        ) from None
    return len(groups) + 1


def quoted_pattern(pattern: str) -> str:
    """A pattern in a message, cut short when it is long."""
    return repr(pattern if len(pattern) <= 60 else pattern[:57] + "...")
