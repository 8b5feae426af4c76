"""Lists and fixed-size arrays within a row.

An Array is read as a List, so that both follow the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from dpframe.core.domain import Domain, domain_of_dtype
from dpframe.core.dtypes import FLOAT64, INT64, NULL, STRING, DType, list_type
from dpframe.core.interval import interval
from dpframe.core.tree import Literal, Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.given import Operand, integer, operand
from dpframe.rows.layouts import in_one_piece
from dpframe.rows.operands import as_type, boolean
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, PlainOperation, operation

_LONGEST = 2**32 - 1


def elements(domain: Domain, what: str) -> Domain:
    """The facts about the elements of a List or Array."""
    inner = domain.dtype.inner
    if domain.dtype.name not in ("List", "Array") or inner is None:
        raise UnsupportedOperation(
            f"{what} works on lists and arrays, not on {domain.dtype}",
            remedy="use .str for text and .struct for structs, and a list of constants in .is_in; "
            "other columns are one value a row",
        )
    return domain.inner or domain_of_dtype(inner)


def as_list(expression: pl.Expr, domain: Domain) -> pl.Expr:
    return expression.arr.to_list() if domain.dtype.name == "Array" else expression


@operation
class ListLen(PlainOperation):
    name = "list_len"
    reads = ("ListExpr.Length", "ArrayExpr.Length")
    summary = "Number of elements, null ones included, as Int64; null for a null list."
    examples = ('pl.col("li").list.len()', 'pl.col("ls").list.len()', 'pl.col("arr").arr.len()')

    def domain(self, args: Sequence[Domain]) -> Domain:
        elements(args[0], "len")
        width = args[0].dtype.width
        known = interval(0, _LONGEST) if width is None else interval(width, width)
        return Domain(INT64, nullable=args[0].nullable, interval=known)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return as_type(as_list(args[0], domains[0]).list.len(), INT64)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.list.len()"


@operation
class ListGet(ParametricOperation):
    """A constant index; negative ones count from the end."""

    name = "list_get"
    reads = ("ListExpr.Get", "ArrayExpr.Get")
    summary = "The element at a constant index, null where the list is too short."
    examples = (
        'pl.col("li").list.get(0)',
        'pl.col("ls").list.get(-1)',
        'pl.col("arr").arr.get(1)',
    )
    index: int

    def check(self) -> None:
        if not -_LONGEST <= self.index <= _LONGEST:
            raise InvalidBounds(
                "the index is beyond the end of any list", remedy="use a smaller index"
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, index = operands
        return cls(integer(index, "the index of list.get")).of(source)

    def domain(self, args: Sequence[Domain]) -> Domain:
        element = elements(args[0], "get")
        width = args[0].dtype.width
        inside = width is not None and -width <= self.index < width
        return replace(element, nullable=element.nullable or args[0].nullable or not inside)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return as_list(args[0], domains[0]).list.get(self.index, null_on_oob=True)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.list.get({self.index})"


@operation
class ListContains(PlainOperation):
    """A null item is found where the list holds a null; the result is null only for a null list."""

    name = "list_contains"
    reads = ("ListExpr.Contains", "ArrayExpr.Contains")
    summary = (
        "Whether the list holds the item, which may be a constant or differ from row to row. Also "
        ".is_in(list column), which is null for a null item."
    )
    examples = (
        'pl.col("li").list.contains(1)',
        'pl.col("li").list.contains(pl.col("i64"))',
        'pl.col("ls").list.contains("a")',
        'pl.col("arr").arr.contains(2)',
        'pl.col("i64").is_in(pl.col("li"))',
        'pl.col("i8").is_in(pl.col("arr"), nulls_equal=True)',
    )

    def read(self, operands: Sequence[Operand], params: Any) -> Tree:
        source, item = operands[0], operand(operands[1])
        equal = params["nulls_equal"] if isinstance(params, Mapping) else True
        if not equal and not (isinstance(item, Literal) and item.value is not None):
            raise UnsupportedOperation(
                "list.contains with nulls_equal=False is not supported",
                remedy="leave nulls_equal out, and use .is_null() for nulls",
            )
        return self.of(source, item)

    def domain(self, args: Sequence[Domain]) -> Domain:
        element = elements(args[0], "contains")
        _common(element.dtype, args[1].dtype)
        return boolean(args[0].nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        element = elements(domains[0], "contains").dtype
        common = _common(element, domains[1].dtype)
        items = as_list(args[0], domains[0])
        if element != common:
            items = as_type(items, list_type(common))
        item = args[1] if domains[1].dtype == common else as_type(args[1], common)
        return in_one_piece(ns, items).list.contains(item, nulls_equal=True)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.list.contains({args[1]})"


def _common(element: DType, item: DType) -> DType:
    """The type in which elements and item are compared; no value changes on the way there."""
    if element.is_text and (item.is_text or item == NULL):
        return STRING
    if (element == item or item == NULL) and not element.is_nested:
        return element
    if _fits_int64(element) and _fits_int64(item):
        return INT64
    if element.is_float and (item.is_float or _fits_int64(item)):
        return FLOAT64
    raise UnsupportedOperation(
        f"a list of {element} cannot be searched for a value of type {item}",
        remedy="cast the item to the type of the elements",
    )


def _fits_int64(dtype: DType) -> bool:
    return dtype.is_integer and dtype.name not in ("UInt64", "Int128")


OPERATIONS: tuple[Kind, ...] = (ListLen(), ListGet, ListContains())
