"""What a condition that holds implies of the columns in it.

Used for tightness only: an aggregate clamps and fills again, independently of inference.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from dpframe.core.domain import Domain, Scalar
from dpframe.core.interval import Interval
from dpframe.core.tree import Call, Column, Literal, Tree
from dpframe.rows.comparison import IsBetween
from dpframe.rows.constants import listed, physical
from dpframe.rows.layouts import distinct
from dpframe.rows.logic import And, Not
from dpframe.rows.lookup import IsIn
from dpframe.rows.nulls import IsFinite, IsNotNan, IsNotNull, IsNull

_MIRROR = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_EXACT = 2**53
"""Below this size floats hold all whole numbers."""


def refine(table: dict[str, Domain], predicate: Tree) -> dict[str, Domain]:
    """The domains of rows for which `predicate` is true (and so not null)."""
    match predicate:
        case Column(name):
            return _update(table, name, Interval(Fraction(1), Fraction(1)))
        case Call(And(), (left, right)):
            return refine(refine(table, left), right)
        case Call(IsNotNull(), (operand,)) | Call(Not(), (Call(IsNull(), (operand,)),)):
            return _not_null(table, operand)
        case Call(IsBetween(), (Column(name), Literal() as lo, Literal() as hi)):
            table = _compare(table, name, "ge", lo, beside=hi)
            return _compare(table, name, "le", hi, beside=lo)
        case Call(IsBetween(), operands):
            for operand in operands:  # true only when both comparisons are
                table = _not_null(table, operand)
            return table
        case Call(IsIn() as found, (Column(name),)):
            return _members(table, name, found.values)
        case Call(op, (Column(name), Literal() as value)) if op.name in _MIRROR:
            return _compare(table, name, op.name, value)
        case Call(op, (Literal() as value, Column(name))) if op.name in _MIRROR:
            return _compare(table, name, _MIRROR[op.name], value)
        case Call(IsNotNan() | IsFinite(), (Column(name),)):
            table = _not_null(table, predicate)
            return {**table, name: replace(table[name], nan=False)}
        case Call(op) if op.propagates_null:
            return _not_null(table, predicate)
        case _:
            return table


def _not_null(table: dict[str, Domain], tree: Tree) -> dict[str, Domain]:
    """`tree` is not null, so no column is null that would make it so."""
    match tree:
        case Column(name):
            return {**table, name: table[name].with_null(False)}
        case Call(op, args) if op.propagates_null:
            for arg in args:
                table = _not_null(table, arg)
            return table
        case _:
            return table


def _compare(
    table: dict[str, Domain], name: str, op: str, value: Literal, *, beside: Literal | None = None
) -> dict[str, Domain]:
    """The table where a column compares so with a constant; `beside` is another one that it is
    compared with at once, which may decide the type in which both are.
    """
    column = table[name]
    table = {**table, name: column.with_null(False)}
    number = physical(value.value, column.dtype)
    if number is None or not column.dtype.is_ordered or _another_scale(column, value):
        return table
    if op in ("lt", "le", "eq"):  # NaN is greater than every number, and equal to none
        table[name] = replace(table[name], nan=False)
    point = Interval(number, number)
    rounded = any(_in_floats(column, v.value) for v in (value, beside) if v is not None)
    if column.dtype.is_decimal or (abs(number) >= _EXACT and rounded):
        point = point.widened(1)  # Polars rounds the value to a float before it compares
    lo, hi = point.lo, point.hi
    if column.dtype.is_integer and abs(number) < _EXACT:
        lo = Fraction(floor(number) + 1) if op == "gt" else lo
        hi = Fraction(ceil(number) - 1) if op == "lt" else hi
    match op:
        case "ge" | "gt":
            return _update(table, name, Interval(lo, None))
        case "le" | "lt":
            return _update(table, name, Interval(None, hi))
        case "eq":
            return _update(table, name, point)
        case _:
            return table


def _in_floats(column: Domain, value: object) -> bool:
    """Whether the column and the constant are compared as floats."""
    return column.dtype.is_float or (column.dtype.is_integer and isinstance(value, float | Decimal))


def _another_scale(column: Domain, value: Literal) -> bool:
    """Whether column and constant count in different physical units; a day is its midnight."""
    same = column.dtype.name == value.dtype.name
    midnight = column.dtype.name == "Datetime" and value.dtype.name == "Date"
    return column.dtype.is_temporal and not (same or midnight)


def _members(table: dict[str, Domain], name: str, values: tuple[Scalar, ...]) -> dict[str, Domain]:
    if any(v is None or v != v for v in values):
        return table
    column = table[name]
    if column.dtype.is_decimal and any(isinstance(v, float) for v in values):
        return {**table, name: column.with_null(False)}  # several decimals round to one float
    if any(_in_floats(column, v) for v in values) and any(map(_is_large, values)):
        return {**table, name: column.with_null(False)}  # as are several whole numbers at once
    if column.dtype.is_integer:
        whole = [v for v in values if not isinstance(v, float) or v.is_integer()]
        values = tuple(int(v) for v in whole if isinstance(v, int | float | Decimal))
    updated = replace(column, nullable=False, nan=False)
    typed = listed(name, values, column.dtype)
    if typed is not None:  # some values can be one in the column's type
        once = distinct(typed.to_frame()).to_series().to_list()
        known = [v for v in once if column.categories is None or v in column.categories]
        updated = replace(updated, categories=tuple(known))
    numbers = [physical(v, column.dtype) for v in values]
    exact = [n for n in numbers if n is not None]
    if exact and len(exact) == len(values) and not column.dtype.is_temporal:
        narrowed = column.interval.intersect(Interval(min(exact), max(exact)))
        updated = replace(updated, interval=narrowed or column.interval)
    return {**table, name: updated}


def _is_large(value: Scalar) -> bool:
    return isinstance(value, int | float | Decimal) and not -_EXACT < value < _EXACT


def _update(table: dict[str, Domain], name: str, known: Interval) -> dict[str, Domain]:
    column = table[name]
    narrowed = column.interval.intersect(known)
    return {
        **table,
        name: replace(column, nullable=False, interval=narrowed or column.interval),
    }
