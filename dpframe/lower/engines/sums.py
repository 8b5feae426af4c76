"""Aggregates of a group's rows, as Int64. Sums wrap, as those of Polars do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import INT64, INT128
from dpframe.core.interval import interval
from dpframe.lower.engines.engine_expr import INT64_RANGE, ROWS, EngineExpr, combined
from dpframe.lower.engines.engine_scope import EngineScope, GroupScope, Node
from dpframe.lower.engines.numbers import remainder, widened, wrapped

_SAFE = (-(2**31), 2**31)
"""Sums of fewer than 2**32 numbers up to this size fit in Int64."""
_PART = 2**24
_TWO_PARTS = (-(2**48), 2**48)


def aggregated(scope: EngineScope, rows: Node | None, how: str) -> EngineExpr:
    """An aggregate of what each row has, or the number of rows; made once."""
    assert isinstance(scope, GroupScope), "aggregates are made in a group-by"
    if (rows, how) not in scope.found:
        made = None if rows is None else scope.rows.made(rows)
        scope.found[rows, how] = _aggregate(scope, made, how)
    return scope.found[rows, how]


def _aggregate(scope: GroupScope, rows: EngineExpr | None, how: str) -> EngineExpr:
    if rows is None:
        return scope.column(nw.len().cast(nw.Int64), INT64, ROWS)
    column = nw.col(str(scope.rows.held(rows).column))
    match how:
        case "count":
            return scope.column(column.count().cast(nw.Int64), INT64, ROWS)
        case "max" | "min" if rows.dtype.is_numeric or rows.dtype.is_temporal:
            extreme = column.max() if how == "max" else column.min()
            return scope.column(extreme, rows.dtype, rows.interval)
        case "n_unique":
            return _distinct(scope, column)
        case "sum" if rows.dtype.is_integer and rows.interval.within(_SAFE):
            return scope.column(column.sum().cast(nw.Int64), INT64, INT64_RANGE)
        case "sum" if rows.dtype.is_integer and rows.dtype != INT128:
            return wrapped_sum(scope, rows)
        case _:
            raise scope.dialect.refused(f"{how} of {rows.dtype}")


def _distinct(scope: GroupScope, column: nw.Expr) -> EngineExpr:
    """Distinct values but null, which Narwhals counts as one."""
    every = scope.column(column.n_unique().cast(nw.Int64), INT64)
    known = scope.column(column.count().cast(nw.Int64), INT64)
    rows = scope.column(nw.len().cast(nw.Int64), INT64)
    null = nw.when(rows.expr > known.expr).then(nw.lit(1, nw.Int64)).otherwise(nw.lit(0, nw.Int64))
    return combined(every.expr - null, INT64, known=ROWS)


def wrapped_sum(scope: GroupScope, rows: EngineExpr) -> EngineExpr:
    """The sum of a group's whole numbers modulo 2**64, as Int64."""
    if not scope.dialect.sums_wide:
        return summed_in_parts(scope, rows)
    total = nw.col(str(scope.rows.held(rows).column)).sum()
    return wrapped(scope, scope.column(total, INT128, interval(-(2**95), 2**95)))


def total_within(scope: EngineScope, rows: EngineExpr, within: Sequence[EngineExpr]) -> EngineExpr:
    """The sum of whole numbers over all rows that have the same values, modulo 2**64, as Int64, for
    each of these rows.
    """
    if isinstance(scope, GroupScope) or not rows.dtype.is_integer or rows.dtype == INT128:
        raise scope.dialect.refused(f"a sum over rows of {rows.dtype}")

    def total(part: EngineExpr) -> EngineExpr:
        return scope.total_within(part, within)

    return _from_parts(scope, _parts_of(scope, rows), total)


def summed_in_parts(scope: GroupScope, rows: EngineExpr) -> EngineExpr:
    """The same from sums of the numbers' bits from 0 to 23, from 24 to 47, and of the others, where
    they have others than these and a sign.

    A part is up to 2**24 in size, so the sums of fewer than 2**39 fit in Int64. Wide numbers hold
    a sum exactly, and take Spark several times as long.
    """

    def total(part: EngineExpr) -> EngineExpr:
        column = nw.col(str(scope.rows.held(part).column))
        return scope.column(column.sum().cast(nw.Int64), INT64)

    return _from_parts(scope, _parts_of(scope.rows, rows), total)


def _parts_of(scope: EngineScope, rows: EngineExpr) -> list[EngineExpr]:
    """The parts of whole numbers, from the lowest."""
    rest, low = _parted(scope, widened(scope, rows, INT64))
    if rows.interval.within(_TWO_PARTS):
        return [low, rest]
    return [low, *reversed(_parted(scope, rest))]


def _from_parts(
    scope: EngineScope, parts: Sequence[EngineExpr], total: Callable[[EngineExpr], EngineExpr]
) -> EngineExpr:
    """The sum of numbers from the totals of their parts."""
    sums = [total(part) for part in parts]
    carried, low = _parted(scope, sums[0])
    carried, middle = _parted(scope, combined(sums[1].expr + carried.expr, INT64, sums[1], carried))
    if len(sums) > 2:
        carried = combined(sums[2].expr + carried.expr, INT64, sums[2], carried)
    half, whole, part = (scope.dialect.constant(n, INT64).expr for n in (2**15, 2**16, _PART))
    high = carried.having((carried.expr + half) % whole - half, INT64)
    made = (high.expr * part + middle.expr) * part + low.expr
    return combined(made, INT64, low, middle, high, known=INT64_RANGE)


def _parted(scope: EngineScope, a: EngineExpr) -> tuple[EngineExpr, EngineExpr]:
    """A whole number divided by 2**24, floored, and the remainder."""
    a = scope.once(a)
    rest = scope.once(remainder(scope, a, scope.dialect.constant(_PART, INT64)))
    multiple = (a.expr - rest.expr).cast(nw.Float64)  # its 40 bits or fewer are exact
    whole = (multiple / float(_PART)).cast(nw.Int64)
    return scope.once(combined(whole, INT64, a, rest)), rest
