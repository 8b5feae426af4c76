"""Lists made of values of one row, and parts of lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import list_type
from dpframe.core.tree import Call, Literal, Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.arithmetic import Sub
from dpframe.rows.given import Operand, integer, operand, require_some
from dpframe.rows.layouts import spread
from dpframe.rows.lists import as_list, elements
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, PlainOperation, operation
from dpframe.rows.supertype import convert, merged

LONGEST_LIST = 1_024
"""Elements after which a list that was put together is cut: a list that doubles again and again
would exhaust memory only if one row's is not empty."""
_MOST_OPERANDS = 64


def _is_list(domain: Domain) -> bool:
    return domain.dtype.name in ("List", "Array")


@operation
class ConcatList(PlainOperation):
    """Null where a list is; a null value is an element. An Array is read as a List."""

    name = "concat_list"
    reads = ("ListExpr.Concat",)
    summary = (
        "A list of values, of the elements of lists, or of both, in one type; cut before and after "
        "to 1024 elements."
    )
    examples = (
        'pl.concat_list("i64", "i8", pl.lit(7))',
        'pl.concat_list("li", "i32")',
        'pl.concat_list("ls", "s", "e")',
        'pl.concat_list("arr", "li", "arr")',
        'pl.concat_list("f64", "f32", "i32")',
        'pl.concat_list("d", "d")',
        'pl.col("li").list.concat("i64b")',
    )

    def read(self, operands: Sequence[Operand], params: Any) -> Tree:
        return self.of(*require_some(self.name, operands))

    def domain(self, args: Sequence[Domain]) -> Domain:
        if len(args) > _MOST_OPERANDS:
            raise UnsupportedOperation(
                f"concat_list joins at most {_MOST_OPERANDS} expressions, not {len(args)}",
                remedy="join fewer, or in several steps",
            )
        found = _element(args)
        nullable = any(d.nullable for d in args if _is_list(d))
        return Domain(list_type(found.dtype), nullable=nullable, inner=found)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = _element(domains).dtype
        parts = []
        for expression, domain in zip(args, domains, strict=True):
            if not _is_list(domain):
                parts.append(convert(expression, domain, dtype))
                continue
            items = as_list(expression, domain)
            items = items if domain.dtype.inner == dtype else as_type(items, list_type(dtype))
            parts.append(items.list.head(LONGEST_LIST))
        joined: pl.Expr = ns.concat_list(spread(ns, parts))
        return joined.list.head(LONGEST_LIST)

    def words(self, args: Sequence[str]) -> str:
        return f"concat_list({', '.join(args)})"


def _element(args: Sequence[Domain]) -> Domain:
    """The facts about the elements of all operands."""
    parts = [elements(d, "concat_list") if _is_list(d) else d for d in args]
    for part in parts:
        if part.dtype.is_nested:
            raise UnsupportedOperation(
                f"a list of {part.dtype} is not supported",
                remedy="take fields or elements first, with .struct.field(name) or .list.get(0)",
            )
    found = merged(parts)
    if found.dtype.name == "Null":
        raise UnsupportedOperation(
            "a list of nulls alone has no type",
            remedy="cast one of them, for example with .cast(pl.Int64)",
        )
    return found


@operation
class ListSlice(ParametricOperation):
    name = "list_slice"
    reads = ("ListExpr.Slice",)
    summary = (
        "The elements from a constant offset; a negative one counts from the end. Also list.head "
        "and list.tail."
    )
    examples = (
        'pl.col("li").list.slice(1, 2)',
        'pl.col("ls").list.slice(-2)',
        'pl.col("li").list.head(2)',
        'pl.col("arr").arr.to_list().list.tail(2)',
    )
    offset: int
    length: int | None

    def check(self) -> None:
        length = self.length
        if abs(self.offset) >= 2**31 or (length is not None and not 0 <= length < 2**31):
            raise InvalidBounds(
                "an offset or length of a slice is out of range",
                remedy="use a length of 0 or more, and numbers below 2**31",
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, offset, length = operands
        count = _count(length)  # first, for list.tail(n) has an offset that is made of it
        return cls(_whole(offset, "the offset of list.slice"), count).of(source)

    def domain(self, args: Sequence[Domain]) -> Domain:
        element = elements(args[0], "slice")
        return Domain(list_type(element.dtype), nullable=args[0].nullable, inner=element)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return as_list(args[0], domains[0]).list.slice(self.offset, self.length)

    def words(self, args: Sequence[str]) -> str:
        count = "" if self.length is None else f", {self.length!r}"
        return f"{args[0]}.list.slice({self.offset!r}{count})"


def _count(value: Operand) -> int | None:
    """The length of a slice; None, also as the only value of a list, because what is left."""
    match operand(value):
        case Literal(None):
            return None
        case given:
            return _whole(given, "the length of list.slice")


def _whole(value: Operand, what: str) -> int:
    """A whole constant; Polars writes ``list.tail(n)`` with ``0 - n`` as its offset."""
    match operand(value):
        case Call(Sub(), (Literal(int() as a), Literal(int() as b))):
            return a - b
        case _:
            return integer(value, what)


@operation
class ToList(PlainOperation):
    name = "list_of_array"
    reads = ("ArrayExpr.ToList",)
    summary = "A fixed-size Array as a List."
    examples = ('pl.col("arr").arr.to_list()',)

    def domain(self, args: Sequence[Domain]) -> Domain:
        element = elements(args[0], "to_list")
        return replace(args[0], dtype=list_type(element.dtype), inner=element)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return as_list(args[0], domains[0])

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.arr.to_list()"


OPERATIONS: tuple[Kind, ...] = (ConcatList(), ListSlice, ToList())
