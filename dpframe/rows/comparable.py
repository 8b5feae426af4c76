"""How two or more values are made comparable.

Text compares as text, byte by byte. Integers of any types compare exactly, and an integer with a
float as floats. Moments of the same kind compare as exact counts of the finer unit, and a Date
with a Datetime without a zone as its midnight. NaN equals NaN and is above every other number, as
in Polars. Anything else is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, INT64, INT128, STRING, DType, duration_type
from dpframe.errors import UnsupportedOperation
from dpframe.rows.operands import as_type

_FINE_FIRST = ("ns", "us", "ms")
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Comparable:
    """The type in which values are compared; with a unit, they are counts of that unit."""

    dtype: DType
    unit: str | None = None

    def lower(self, expression: pl.Expr, dtype: DType) -> pl.Expr:
        """An operand of type `dtype`, ready to be compared."""
        if self.unit is not None and dtype.name != "Null":
            per_second = duration_type(self.unit).units_per_second
            is_day = dtype.name == "Date"
            factor = per_second * _DAY if is_day else per_second // dtype.units_per_second
            return as_type(as_type(expression, INT64), INT128) * factor
        return expression if dtype == self.dtype else as_type(expression, self.dtype)


def comparable(domains: Sequence[Domain], ordered: bool) -> Comparable:
    """How the operands are compared.

    Raises
    ------
    UnsupportedOperation
        When their types have nothing in common, or `ordered` and they have no order.
    """
    types = [d.dtype for d in domains if d.dtype.name != "Null"]
    if not types:
        return Comparable(INT64)
    if all(t.is_numeric or t.is_boolean for t in types):
        return Comparable(_number_type(types))
    if all(t.is_text for t in types):
        _require_plain_text(types, ordered)
        return Comparable(STRING)
    names = {t.name for t in types}
    if types[0].is_temporal and (len(names) == 1 or names == {"Date", "Datetime"}):
        return _moments(types)
    raise _refused(types)


def _number_type(types: Sequence[DType]) -> DType:
    if all(t == types[0] for t in types):
        return types[0]
    if any(t.is_float or t.is_decimal for t in types):
        return FLOAT64
    return INT128 if any(t.name in ("UInt64", "Int128") for t in types) else INT64


def _require_plain_text(types: Sequence[DType], ordered: bool) -> None:
    for dtype in types:
        if ordered and dtype.name != "String":
            raise UnsupportedOperation(
                f"the order of {dtype} is not that of its text",
                remedy=("compare the text: .cast(pl.String)", "list the values: .is_in([...])"),
            )


def _moments(types: Sequence[DType]) -> Comparable:
    if len({t.zone is None for t in types if t.name == "Datetime"}) > 1:
        raise UnsupportedOperation(
            f"{_both(types)} cannot be compared",
            why="one has a time zone, and the other has none",
            remedy="use .dt.convert_time_zone(zone) or .dt.replace_time_zone(zone) first",
        )
    if any(t.name == "Date" for t in types) and any(t.zone is not None for t in types):
        raise UnsupportedOperation(
            f"{_both(types)} cannot be compared",
            why="the time zone decides when a day begins",
            remedy="write .dt.date() on the Datetime first",
        )
    if all(t == types[0] for t in types):
        return Comparable(types[0])
    units = {t.unit for t in types}
    return Comparable(INT128, unit=next(unit for unit in _FINE_FIRST if unit in units))


def _refused(types: Sequence[DType]) -> UnsupportedOperation:
    if any(t.is_text for t in types) and any(t.is_numeric or t.is_boolean for t in types):
        remedy = "cast one side: .cast(pl.Int64) or .cast(pl.String)"
    elif any(t.is_nested for t in types):
        remedy = "compare an element or a field: .list.get(index) or .struct.field(name)"
    elif any(t.is_text for t in types) and any(t.is_temporal for t in types):
        remedy = _with_text(types)
    else:
        remedy = "cast one side to the type of the other first"
    return UnsupportedOperation(f"{_both(types)} cannot be compared", remedy=remedy)


def _with_text(types: Sequence[DType]) -> str:
    """What to compare with a date or time in place of a text."""
    moment = next(t for t in types if t.is_temporal)
    if moment.zone is not None:
        return "compare days: .dt.date() >= datetime.date(2026, 3, 1)"
    values = {
        "Date": "datetime.date(2026, 3, 1)",
        "Datetime": "datetime.datetime(2026, 3, 1)",
        "Time": "datetime.time(12, 30)",
        "Duration": "datetime.timedelta(days=1)",
    }
    parse = {"Date": ".str.to_date(format)", "Time": ".str.to_time(format)"}
    return (
        f"write the value as {values[moment.name]}\n"
        f"parse a column of texts first: {parse.get(moment.name, '.str.to_datetime(format)')}"
    )


def _both(types: Sequence[DType]) -> str:
    return " and ".join(str(t) for t in dict.fromkeys(types))
