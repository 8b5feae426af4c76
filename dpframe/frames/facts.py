"""What is known of a private frame at one point of a chain of steps, and what conditions add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from dpframe.core.dtypes import Columns, Domain, Scalar, columns
from dpframe.core.interval import Interval
from dpframe.core.tree import Call, Column, Literal, Tree
from dpframe.core.units import Identifier, Rows, Unit
from dpframe.core.windows import Every
from dpframe.errors import UnitDropped, UnknownColumn, UnsupportedOperation
from dpframe.kernel.frame import Facts, Limit, rename_limits
from dpframe.rows.comparison import IsBetween
from dpframe.rows.constants import listed, physical
from dpframe.rows.layouts import distinct
from dpframe.rows.logic import And, IsFinite, IsNotNan, IsNotNull, IsNull, Not
from dpframe.rows.lookup import IsIn
from dpframe.rows.suggest import did_you_mean, unknown_column


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """The columns of a frame, and how its rows relate to individuals."""

    columns: Columns  # The domain of each column, in order
    unit: Unit  # Who is protected
    # Whether every row of the protected frame is still there. Under change-one adjacency the number
    # of rows is public only then.
    complete: bool = True
    copies: int = 1  # How many rows one row of the protected frame may have become, with `Rows`
    # The present name of the column that identifies individuals; None with `Rows`.
    identifier: str | None = None
    # What is known of the rows of one individual, with an identifier.
    limits: tuple[Limit, ...] = ()
    # The most that the norm of an individual's rows over groups may be: its rows weigh that much
    # less where they are added up. None where rows count as they are.
    norm: Fraction | None = None
    # The present name of the column whose calendar windows divide a person's rows; None where all
    # rows of a person are one individual's.
    time: str | None = None

    def __post_init__(self) -> None:
        require_plain_names(self.columns)

    def with_table(
        self, table: Mapping[str, Domain], kept: Mapping[str, str], where: str
    ) -> FrameFacts:
        """The same rows with other columns.

        Parameters
        ----------
        table
            The columns.
        kept
            Old columns that are still there with the same values, as {old name: new name}.
        where
            The step, for messages.
        """
        if self.identifier is None:
            return replace(self, columns=columns(table))
        for name, what in ((self.identifier, "whose row it is"), (self.time, "in which window")):
            if name is not None and name not in kept:
                raise UnitDropped(
                    f"the column {name!r} says {what}, and would be dropped or get other values",
                    where=where,
                    remedy=f"keep {name!r} unchanged, and give the computed column another name",
                )
        return replace(
            self,
            columns=columns(table),
            identifier=kept[self.identifier],
            time=None if self.time is None else kept[self.time],
            limits=rename_limits(self.limits, kept),
        )

    @property
    def reach(self) -> Facts:
        """How far one individual reaches, as the kernel has it. It believes this of no plan."""
        unit = self.unit
        rows = unit.contributions * self.copies if isinstance(unit, Rows) else 0
        about = tuple(self.columns), rows, self.complete, self.identifier, self.time, self.every
        time = () if self.time is None else ((self.time, str(self.columns[self.time].dtype)),)
        return Facts(*about, self.limits, self.norm, types=time)

    @property
    def every(self) -> Every | None:
        """The length of the windows that divide a person's rows; None without."""
        return self.unit.window if isinstance(self.unit, Identifier) else None

    def with_limit(self, limit: Limit) -> FrameFacts:
        """The same columns, with one more limit in force."""
        return replace(self, limits=(*self.limits, limit))


def require_plain_names(names: Iterable[str]) -> None:
    """Refuse names that Polars takes for patterns: another column would be read."""
    for name in names:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise UnsupportedOperation(
                f"the column name {name!r} is not possible: Polars reads it as a "
                "pattern that selects columns",
                remedy="rename it, before the frame is protected if it has the name then",
            )


def protected_facts(table: Columns, unit: Unit) -> FrameFacts:
    """The facts about a frame when it is protected: rows without an identifier are dropped."""
    if not isinstance(unit, Identifier):
        return FrameFacts(table, unit)
    where = f"unit={unit.column!r}"
    if unit.column not in table:
        near = did_you_mean(unit.column, table)
        raise UnknownColumn(
            f"the frame has no column {unit.column!r}",
            where=where,
            remedy=_whose_rows(unit.column, near),
        )
    dtype = table[unit.column].dtype
    if dtype.is_float or dtype.is_nested or not dtype.is_known:
        raise UnsupportedOperation(
            f"values of type {dtype} do not identify individuals",
            where=where,
            remedy="use a column of text or integers",
        )
    known = {**table, unit.column: table[unit.column].with_null(False)}
    if unit.time is not None:
        _require_times(table, unit.time)
    return FrameFacts(columns(known), unit, complete=False, identifier=unit.column, time=unit.time)


def _whose_rows(column: str, near: str) -> str | tuple[str, str]:
    """What to write for an identifier that the frame lacks."""
    if column.lower() in ("row", "rows"):
        return "write unit=dp.Rows(), where each row is one person"
    if near.startswith("did"):
        return near, "write unit=dp.Rows(), where each row is one person"
    return near, ("protect the frame through the table that has it: unit=dp.Through(other, on=...)")


def _require_times(table: Columns, time: str) -> None:
    where = f"time={time!r}"
    if time not in table:
        raise unknown_column(time, table, where)
    dtype = table[time].dtype
    if dtype.name not in ("Date", "Datetime"):
        raise UnsupportedOperation(
            f"values of type {dtype} are not dates or times",
            where=where,
            remedy="name a column of dates or times; parse or cast it before the frame is "
            "protected",
        )


# What a condition that holds implies of the columns in it.
#
# Used for tightness only: an aggregate clamps and fills again, independently of inference.


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
        point = point.widen(1)  # Polars rounds the value to a float before it compares
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
