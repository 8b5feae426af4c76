"""Joins the references of text, times, lists and structs to those over physical numbers.

They take Python's own dates and times, which end at the years 1 and 9999: outside, these operations
are null by contract. Local time is compared for the years 1980 to 2037 only, because databases of
time zones differ before and rules change after; finer than a microsecond Python cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from dpframe.core.dtypes import Columns, DType
from dpframe.core.tree import Call, Tree, walk
from dpframe.rows.operation import Kind, RowOperation
from dpframe.rows.registry import OPERATIONS
from tests.laws import reference_text_time
from tests.laws.checking import Expression, same
from tests.laws.frames import values
from tests.laws.reference import (
    APPROXIMATE,
    EPOCH,
    FIRST_DAY,
    LAST_DAY,
    PER_SECOND,
    REFERENCES,
    UNKNOWN,
    Context,
    Reference,
    evaluate,
    in_unit,
    is_close,
    plain,
    strict,
    whole,
)

_OUTSIDE = object()
"""A moment outside the calendar."""
_NANOSECONDS = {
    "dt_total_days": 86_400 * 10**9,
    "dt_total_hours": 3_600 * 10**9,
    "dt_total_minutes": 60 * 10**9,
    "dt_total_seconds": 10**9,
    "dt_total_milliseconds": 10**6,
    "dt_total_microseconds": 10**3,
    "dt_total_nanoseconds": 1,
}


def python_value(value: Any, dtype: DType) -> Any:
    """A value with moments and durations as Python's own."""
    if value is None or not dtype.is_temporal:
        return value
    if dtype.name == "Date":
        inside = FIRST_DAY <= value <= LAST_DAY
        return EPOCH.date() + timedelta(days=value) if inside else _OUTSIDE
    microseconds = Fraction(value * 10**6, PER_SECOND[dtype.unit])
    if microseconds.denominator != 1:
        return UNKNOWN
    span = int(microseconds)
    if dtype.name == "Duration":
        return timedelta(microseconds=span) if abs(span) < 10**18 else UNKNOWN
    if dtype.name == "Time":
        return (EPOCH + timedelta(microseconds=span)).time()
    if not FIRST_DAY <= span // (86_400 * 10**6) <= LAST_DAY:
        return _OUTSIDE
    return _moment(span, dtype)


def _moment(microseconds: int, dtype: DType) -> Any:
    moment = EPOCH + timedelta(microseconds=microseconds)
    if dtype.zone is None:
        return moment
    if dtype.zone != "UTC" and not 1980 <= moment.year <= 2037:
        return UNKNOWN
    return moment.replace(tzinfo=UTC).astimezone(ZoneInfo(dtype.zone))


def physical_value(value: Any, dtype: DType) -> Any:
    """A result as a physical number; UNKNOWN where zones may not agree on it."""
    if value is None or not dtype.is_temporal:
        return value
    if dtype.zone not in (None, "UTC") and not 1980 <= value.year <= 2037:
        return UNKNOWN
    return plain(value, dtype)


def adapted(function: Any) -> Reference:
    def computed(args: Sequence[Any], context: Context) -> Any:
        given = [python_value(a, t) for a, t in zip(args, context.types, strict=True)]
        if UNKNOWN in given:
            return UNKNOWN
        if _OUTSIDE in given:
            return None
        return physical_value(function(given, dict(context.options)), context.result)

    return computed


@strict
def _in_unit(args: Sequence[Any], context: Context) -> Any:
    """Units of any size, also beyond Python's calendar."""
    return whole(in_unit(args[0], context.types[0], context.options["unit"]))


def _total(nanoseconds: int) -> Reference:
    @strict
    def computed(args: Sequence[Any], context: Context) -> Any:
        per_second = PER_SECOND[context.types[0].unit]
        return whole(math.trunc(Fraction(args[0] * 10**9, per_second * nanoseconds)))

    return computed


def _stated(args: Sequence[Any], context: Context) -> Any:
    """What the operation itself says, of values none of which is null."""
    assert isinstance(context.operation, RowOperation)
    operation = context.operation

    def function(given: Sequence[Any], _: Any) -> Any:
        return None if None in given else operation.reference(*given)

    return adapted(function)(args, context)


def states_its_meaning(kind: Kind) -> bool:
    """Whether an operation has a reference of its own."""
    return kind.reference is not RowOperation.reference and (
        isinstance(kind, type) or type(kind).reference is not RowOperation.reference
    )


def _struct(args: Sequence[Any], context: Context) -> Any:
    return dict(zip(context.options["names"], args, strict=True))


def _unknown(args: Sequence[Any], context: Context) -> Any:
    return UNKNOWN


ALL: dict[str, Reference] = {
    **{name: adapted(f) for name, f in reference_text_time.REFERENCES.items()},
    **dict.fromkeys(reference_text_time.WITHOUT_REFERENCE, _unknown),
    **{name: _total(nanoseconds) for name, nanoseconds in _NANOSECONDS.items()},
    "struct": _struct,
    "dt_timestamp": _in_unit,
    "dt_cast_time_unit": _in_unit,
    **REFERENCES,
    **{kind.name: _stated for kind in OPERATIONS if states_its_meaning(kind)},
}
"""The meaning of every operation in the registry."""


def _places(node: Tree) -> int:
    return APPROXIMATE.get(node.operation.name, 0) if isinstance(node, Call) else 0


def check_reference(
    frame: pl.DataFrame,
    columns: Columns,
    expressions: Sequence[Expression],
    results: Sequence[list[Any]],
) -> None:
    """The values are those of plain Python."""
    table = {name: values(frame[name]) for name in frame.columns}
    for checked, found in zip(expressions, results, strict=True):
        places = max(_places(node) for node in walk(checked.tree))
        for i, value in enumerate(found):
            row = {name: column[i] for name, column in table.items()}
            expected = evaluate(checked.tree, row, columns, ALL)
            agrees = expected is UNKNOWN or same(value, expected)
            agrees = agrees or (places > 0 and is_close(value, expected, places))
            assert agrees, f"{checked.text}: {value!r}, and plain Python says {expected!r}"
