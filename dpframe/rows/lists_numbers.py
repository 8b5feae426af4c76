"""Lists of numbers, dates and times made one value."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, INT64, INT128, DType, list_type
from dpframe.core.interval import ZERO, Interval, interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.layouts import followed_by_null
from dpframe.rows.lists import as_list, elements
from dpframe.rows.operands import (
    as_type,
    is_number,
    whole_result,
    widened,
    widened_to_float,
    within_int64,
)
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation

_MOST_ELEMENTS = 2**40
"""The most elements of a list; more do not fit in memory."""


def _numbers(expression: pl.Expr, domain: Domain, dtype: DType) -> pl.Expr:
    """A list of numbers as one of Int64, Int128 or Float64."""
    element, items = elements(domain, "a list").dtype, as_list(expression, domain)
    if element != INT64 and dtype == FLOAT64 and not element.is_float:
        items = as_type(items, list_type(widened(elements(domain, "a list")).dtype))
    return items if element == dtype else as_type(items, list_type(dtype))


class ListOperation(PlainOperation):
    """A function of one list."""

    __slots__ = ()

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.list.{self.name.removeprefix('list_')}()"


@operation
class ListSum(ListOperation):
    name = "list_sum"
    reads = ("ListExpr.Sum", "ArrayExpr.Sum")
    summary = (
        "The sum of the numbers in a list, nulls left out, as Int64, Int128 or Float64; zero of "
        "none."
    )
    examples = (
        'pl.col("li").list.sum()',
        'pl.col("lf").list.sum()',
        'pl.col("arr").arr.sum()',
        'pl.concat_list("u64", "i8").list.sum()',
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        element = elements(args[0], "sum")
        _require_numbers("sum", element)
        wide, width = widened(element), args[0].dtype.width
        known = wide.interval.hull(ZERO)
        if width is not None:
            known = known * interval(width, width)
        else:
            known = Interval(
                Fraction(0) if known.lo == 0 else None, Fraction(0) if known.hi == 0 else None
            )
        if wide.dtype != FLOAT64:
            length = interval(0, _MOST_ELEMENTS if width is None else width)
            total = whole_result("sum of a list", [element], lambda x: x.hull(ZERO) * length)
            exact = total.interval if total.dtype == INT128 else within_int64(known)
            return Domain(total.dtype, nullable=args[0].nullable, interval=exact)
        rounded = known.as_float().widened(8 * (width or 1))
        return Domain(
            FLOAT64,
            nullable=args[0].nullable,
            nan=True,  # finite numbers too can add up to both infinities
            interval=Interval(
                ZERO.lo if known.lo == 0 else rounded.lo, ZERO.hi if known.hi == 0 else rounded.hi
            ),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = widened(elements(domains[0], "sum")).dtype
        items = _numbers(args[0], domains[0], dtype)
        if dtype == FLOAT64:
            return followed_by_null(ns, items).list.sum()
        total = items.list.sum()
        return as_type(total, self.domain(domains).dtype) if dtype == INT128 else total


@operation
class ListMean(ListOperation):
    name = "list_mean"
    reads = ("ListExpr.Mean", "ArrayExpr.Mean")
    summary = "The mean of the numbers in a list, nulls left out, as Float64; null of none."
    examples = (
        'pl.col("li").list.mean()',
        'pl.col("lf").list.mean()',
        'pl.col("arr").arr.mean()',
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        element = elements(args[0], "mean")
        _require_numbers("mean", element)
        known = widened_to_float(element).interval
        sides = Interval(
            ZERO.lo if known.lo is not None and known.lo >= 0 else None,
            ZERO.hi if known.hi is not None and known.hi <= 0 else None,
        )
        return Domain(
            FLOAT64,
            nullable=True,
            nan=widened(element).dtype.is_float,
            interval=sides,
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return followed_by_null(ns, _numbers(args[0], domains[0], FLOAT64)).list.mean()


def _require_numbers(what: str, element: Domain) -> None:
    if not is_number(element.dtype):
        raise _of_no_numbers(what, element.dtype)


def _of_no_numbers(what: str, element: DType) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"a list of {element} has no {what}", remedy="take one element first: .list.get(0)"
    )


class ListExtreme(ListOperation):
    """NaN is left out too, where there are other numbers."""

    __slots__ = ()

    def domain(self, args: Sequence[Domain]) -> Domain:
        what = self.name.removeprefix("list_")
        element = elements(args[0], what)
        if not (element.dtype.is_integer or element.dtype.is_float or element.dtype.is_temporal):
            raise _of_no_numbers(what, element.dtype)
        empty = args[0].dtype.width is None or args[0].dtype.width == 0
        return Domain(
            element.dtype,
            nullable=args[0].nullable or element.nullable or empty,
            nan=element.nan,
            interval=element.interval,
            categories=element.categories,
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        items = as_list(args[0], domains[0]).list
        extreme: pl.Expr = getattr(items, self.name.removeprefix("list_"))()
        return extreme


@operation
class ListMin(ListExtreme):
    name = "list_min"
    reads = ("ListExpr.Min", "ArrayExpr.Min")
    summary = "The smallest number, date or time in a list; null and NaN are skipped."
    examples = (
        'pl.col("li").list.min()',
        'pl.col("lf").list.min()',
        'pl.col("arr").arr.min()',
        'pl.concat_list("dt", "dtb").list.min()',
    )


@operation
class ListMax(ListExtreme):
    name = "list_max"
    reads = ("ListExpr.Max", "ArrayExpr.Max")
    summary = "The largest number, date or time in a list; null and NaN are skipped."
    examples = (
        'pl.col("li").list.max()',
        'pl.col("lf").list.max()',
        'pl.col("arr").arr.max()',
        'pl.concat_list("f32", "f32").list.max()',
    )


OPERATIONS: tuple[Kind, ...] = (ListSum(), ListMean(), ListMin(), ListMax())
