"""What operations on text share: their operand, and what is known of their result.

Enum and Categorical values are read as the text of their category. Where all values of the operand
are known, the operation is run on that public list to find the values of the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import INT64, STRING
from dpframe.core.interval import interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.failures import FAILURES
from dpframe.rows.method import MethodOperation
from dpframe.rows.operands import as_type, boolean
from dpframe.rows.operation import Namespace, RowOperation

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


class TextMethod(MethodOperation):
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
