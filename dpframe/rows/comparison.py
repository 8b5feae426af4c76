"""Comparisons of values, and membership in a range."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal, TypeAlias

import polars as pl

from dpframe.core.dtypes import FLOAT64, INT64, INT128, STRING, Domain, DType, duration_type
from dpframe.core.units import EVERYWHERE
from dpframe.errors import UnsupportedOperation
from dpframe.rows.operands import as_type, boolean
from dpframe.rows.operation import Infix, Namespace, Node, RowMethod, operation, spell_out

# How two or more values are made comparable.
#
# Text compares as text, byte by byte. Integers of any types compare exactly, and an integer with a
# float as floats. Moments of the same kind compare as exact counts of the finer unit, and a Date
# with a Datetime without a zone as its midnight. NaN equals NaN and is above every other number, as
# in Polars. Anything else is refused.

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
    """How the operands are compared. Raises `UnsupportedOperation` when their types have nothing in
    common, or `ordered` and they have no order.
    """
    types = [d.dtype for d in domains if d.dtype.name != "Null"]
    if not types:
        return Comparable(INT64)
    if all(t.is_numeric or t.is_boolean for t in types):
        if all(t == types[0] for t in types):
            return Comparable(types[0])
        if any(t.is_float or t.is_decimal for t in types):
            return Comparable(FLOAT64)
        return Comparable(INT128 if any(t.name in ("UInt64", "Int128") for t in types) else INT64)
    if all(t.is_text for t in types):
        for dtype in types:
            if ordered and dtype.name != "String":
                raise UnsupportedOperation(
                    f"the order of {dtype} is not that of its text",
                    remedy=("compare the text: .cast(pl.String)", "list the values: .is_in([...])"),
                )
        return Comparable(STRING)
    names = {t.name for t in types}
    if types[0].is_temporal and (len(names) == 1 or names == {"Date", "Datetime"}):
        return _moments(types)
    raise _refused(types)


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


# Comparisons of two values.

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


class Comparison(Infix):
    """A comparison that is null when an operand is."""

    __slots__ = ()
    propagates_null = True
    ordered: ClassVar[bool] = True

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable(args, self.ordered)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        common = comparable(domains, self.ordered)
        a, b = (common.lower(e, d.dtype) for e, d in zip(args, domains, strict=True))
        name = self.name
        if not a.meta.root_names():
            # Polars yields one row where a constant comes first and all rows hold one value
            a, b, name = b, a, _MIRRORED.get(name, name)
        compare = getattr(operator, name, None)  # eq_missing is a method alone
        compared: pl.Expr = getattr(a, name)(b) if compare is None else compare(a, b)
        return compared


@operation
class Eq(Comparison):
    """Whether two values are equal; null when one is null."""

    engines = EVERYWHERE
    symbol = "=="
    ordered = False
    examples = spell_out(
        'i64 == 1; u64 == i64; f64 == i64; f64 == float("nan"); b == bb; s == "a"; e == s; '
        "dec == 1.5; dt == dtms; dt == d; i64 == None"
    )


@operation
class Ne(Comparison):
    """Whether two values differ; null when one is null."""

    reads = ("Operator.NotEq",)
    engines = EVERYWHERE
    symbol = "!="
    ordered = False
    examples = spell_out('i32 != 0; f64 != f64b; e != "a"; dt != date(1970, 1, 1)')


@operation
class Lt(Comparison):
    """Whether the first is below the second; null when one is null."""

    engines = EVERYWHERE
    symbol = "<"
    examples = spell_out(
        "i32 < u8; f64 < f64b; s < sb; d < date(2020, 1, 1); dt < date(2024, 3, 31); u64 < i64"
    )


@operation
class Le(Comparison):
    """Whether the first is at most the second; null when one is null."""

    reads = ("Operator.LtEq",)
    engines = EVERYWHERE
    symbol = "<="
    examples = spell_out("i64 <= 10; f32 <= f64; dur <= durb; t <= time(12); d <= dtms")


@operation
class Gt(Comparison):
    """Whether the first is above the second; null when one is null."""

    engines = EVERYWHERE
    symbol = ">"
    examples = spell_out(
        "i64 > 0.5; b > bb; dec > dec; dtms > dt; dtz > dtz; d > datetime(1969, 12, 31, 23, 59)"
    )


@operation
class Ge(Comparison):
    """Whether the first is at least the second; null when one is null."""

    reads = ("Operator.GtEq",)
    engines = EVERYWHERE
    symbol = ">="
    examples = spell_out(
        'i32 >= 40; f64 >= f64b; dt >= datetime(2020, 1, 1); dt >= date(2020, 1, 1); s >= "m"'
    )


class MissingComparison(Comparison):
    """A comparison that treats null as a value like any other."""

    __slots__ = ()
    propagates_null = False
    ordered = False

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable(args, self.ordered)
        return boolean(nullable=False)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.name}({args[1]})"


@operation
class EqMissing(MissingComparison):
    """Whether two values are equal, where null equals null; never null."""

    reads = ("Operator.EqValidity",)
    engines = EVERYWHERE
    examples = spell_out(
        'i64.eq_missing(i64b); f64.eq_missing(float("nan")); s.eq_missing(None); '
        "u64.eq_missing(i8); d.eq_missing(dt)"
    )


@operation
class NeMissing(MissingComparison):
    """Whether two values differ, where null equals null; never null."""

    reads = ("Operator.NotEqValidity",)
    engines = EVERYWHERE
    examples = spell_out(
        'b.ne_missing(bb); f32.ne_missing(f64); e.ne_missing("a"); '
        "dtms.ne_missing(date(1970, 1, 1))"
    )


# Membership in a range.

Closed: TypeAlias = Literal["left", "right", "both", "none"]
_CLOSED: dict[str, Closed] = {"Both": "both", "Left": "left", "Right": "right", "None": "none"}


@operation
class IsBetween(RowMethod):
    """Whether a value lies in a range, by default with both ends."""

    groups = ("Boolean",)
    engines = EVERYWHERE
    examples = spell_out(
        'i32.is_between(0, 10); i64.is_between(i8, i64b, closed="left"); '
        'f64.is_between(-1, 1, closed="none"); f64.is_between(f64b, 1e300, closed="right"); '
        'u64.is_between(0, i64); s.is_between(pl.lit("a"), pl.lit("c")); '
        "d.is_between(date(1970, 1, 1), date(2020, 1, 1)); "
        'dt.is_between(date(1970, 1, 1), d, closed="left")'
    )
    arity = 3
    keywords = MappingProxyType({"closed": "closed"})
    closed: Closed = "both"

    @classmethod
    def parameters(cls, params: Node) -> Mapping[str, object]:
        return {"closed": _CLOSED[params["closed"]]}

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable(args, ordered=True)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        common = comparable(domains, ordered=True)
        value, lo, hi = (common.lower(e, d.dtype) for e, d in zip(args, domains, strict=True))
        return value.is_between(lo, hi, closed=self.closed)


OPERATIONS = (
    *(Eq, Ne, Lt, Le, Gt, Ge, EqMissing, NeMissing),
    IsBetween,
)
