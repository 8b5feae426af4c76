"""Comparisons of values, and membership in a range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, ClassVar, Literal, TypeAlias

import polars as pl

from dpframe.core.dtypes import FLOAT64, INT64, INT128, STRING, Domain, DType, duration_type
from dpframe.core.tree import Tree
from dpframe.core.units import EVERYWHERE
from dpframe.errors import UnsupportedOperation
from dpframe.rows.operands import as_type, boolean
from dpframe.rows.operation import Infix, Kind, Namespace, Operand, ParametricOperation, operation

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


# Comparisons of two values.

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Comparison(Infix):
    """A comparison that is null when an operand is."""

    __slots__ = ()

    ordered: ClassVar[bool] = True

    def compare(self, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        """The engine's comparison of two operands of one type."""
        compared: pl.Expr = _OPERATORS[self.symbol](a, b)
        return compared

    def mirrored(self, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        """The same comparison with the second operand first."""
        compared: pl.Expr = _OPERATORS[_MIRRORED.get(self.symbol, self.symbol)](b, a)
        return compared

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable(args, self.ordered)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        common = comparable(domains, self.ordered)
        a, b = (common.lower(e, d.dtype) for e, d in zip(args, domains, strict=True))
        # Polars yields one row where a constant comes first and all rows of a column hold one value
        return self.compare(a, b) if a.meta.root_names() else self.mirrored(a, b)


@operation
class Eq(Comparison):
    name = "eq"
    reads = ("Operator.Eq",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether two values are equal; null when one is null."
    symbol = "=="
    ordered = False
    examples = (
        'pl.col("i64") == 1',
        'pl.col("u64") == pl.col("i64")',
        'pl.col("f64") == pl.col("i64")',
        'pl.col("f64") == float("nan")',
        'pl.col("b") == pl.col("bb")',
        'pl.col("s") == "a"',
        'pl.col("e") == pl.col("s")',
        'pl.col("dec") == 1.5',
        'pl.col("dt") == pl.col("dtms")',
        'pl.col("dt") == pl.col("d")',
        'pl.col("i64") == None',
    )


@operation
class Ne(Comparison):
    name = "ne"
    reads = ("Operator.NotEq",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether two values differ; null when one is null."
    symbol = "!="
    ordered = False
    examples = (
        'pl.col("i32") != 0',
        'pl.col("f64") != pl.col("f64b")',
        'pl.col("e") != "a"',
        'pl.col("dt") != date(1970, 1, 1)',
    )


@operation
class Lt(Comparison):
    name = "lt"
    reads = ("Operator.Lt",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the first is below the second; null when one is null."
    symbol = "<"
    examples = (
        'pl.col("i32") < pl.col("u8")',
        'pl.col("f64") < pl.col("f64b")',
        'pl.col("s") < pl.col("sb")',
        'pl.col("d") < date(2020, 1, 1)',
        'pl.col("dt") < date(2024, 3, 31)',
        'pl.col("u64") < pl.col("i64")',
    )


@operation
class Le(Comparison):
    name = "le"
    reads = ("Operator.LtEq",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the first is at most the second; null when one is null."
    symbol = "<="
    examples = (
        'pl.col("i64") <= 10',
        'pl.col("f32") <= pl.col("f64")',
        'pl.col("dur") <= pl.col("durb")',
        'pl.col("t") <= time(12)',
        'pl.col("d") <= pl.col("dtms")',
    )


@operation
class Gt(Comparison):
    name = "gt"
    reads = ("Operator.Gt",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the first is above the second; null when one is null."
    symbol = ">"
    examples = (
        'pl.col("i64") > 0.5',
        'pl.col("b") > pl.col("bb")',
        'pl.col("dec") > pl.col("dec")',
        'pl.col("dtms") > pl.col("dt")',
        'pl.col("dtz") > pl.col("dtz")',
        'pl.col("d") > datetime(1969, 12, 31, 23, 59)',
    )


@operation
class Ge(Comparison):
    name = "ge"
    reads = ("Operator.GtEq",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the first is at least the second; null when one is null."
    symbol = ">="
    examples = (
        'pl.col("i32") >= 40',
        'pl.col("f64") >= pl.col("f64b")',
        'pl.col("dt") >= datetime(2020, 1, 1)',
        'pl.col("dt") >= date(2020, 1, 1)',
        'pl.col("s") >= "m"',
    )


class MissingComparison(Comparison):
    """A comparison that treats null as a value like any other."""

    __slots__ = ()

    ordered = False

    def compare(self, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        compared: pl.Expr = getattr(a, self.name)(b)
        return compared

    def mirrored(self, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        return self.compare(b, a)

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable(args, self.ordered)
        return boolean(nullable=False)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.name}({args[1]})"


@operation
class EqMissing(MissingComparison):
    name = "eq_missing"
    reads = ("Operator.EqValidity",)
    engines = EVERYWHERE
    summary = "Whether two values are equal, where null equals null; never null."
    examples = (
        'pl.col("i64").eq_missing(pl.col("i64b"))',
        'pl.col("f64").eq_missing(float("nan"))',
        'pl.col("s").eq_missing(None)',
        'pl.col("u64").eq_missing(pl.col("i8"))',
        'pl.col("d").eq_missing(pl.col("dt"))',
    )


@operation
class NeMissing(MissingComparison):
    name = "ne_missing"
    reads = ("Operator.NotEqValidity",)
    engines = EVERYWHERE
    summary = "Whether two values differ, where null equals null; never null."
    examples = (
        'pl.col("b").ne_missing(pl.col("bb"))',
        'pl.col("f32").ne_missing(pl.col("f64"))',
        'pl.col("e").ne_missing("a")',
        'pl.col("dtms").ne_missing(date(1970, 1, 1))',
    )


# Membership in a range.

Closed: TypeAlias = Literal["left", "right", "both", "none"]
_CLOSED: dict[str, Closed] = {"Both": "both", "Left": "left", "Right": "right", "None": "none"}


@operation
class IsBetween(ParametricOperation):
    name = "is_between"
    reads = ("Boolean.IsBetween",)
    engines = EVERYWHERE
    summary = "Whether a value lies in a range, by default with both ends."
    examples = (
        'pl.col("i32").is_between(0, 10)',
        'pl.col("i64").is_between(pl.col("i8"), pl.col("i64b"), closed="left")',
        'pl.col("f64").is_between(-1, 1, closed="none")',
        'pl.col("f64").is_between(pl.col("f64b"), 1e300, closed="right")',
        'pl.col("u64").is_between(0, pl.col("i64"))',
        'pl.col("s").is_between(pl.lit("a"), pl.lit("c"))',
        'pl.col("d").is_between(date(1970, 1, 1), date(2020, 1, 1))',
        'pl.col("dt").is_between(date(1970, 1, 1), pl.col("d"), closed="left")',
    )
    closed: Closed

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        return cls(_CLOSED[params["closed"]]).of(*operands)

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable(args, ordered=True)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        common = comparable(domains, ordered=True)
        value, lo, hi = (common.lower(e, d.dtype) for e, d in zip(args, domains, strict=True))
        return value.is_between(lo, hi, closed=self.closed)

    def words(self, args: Sequence[str]) -> str:
        how = "" if self.closed == "both" else f', closed="{self.closed}"'
        return f"{args[0]}.is_between({args[1]}, {args[2]}{how})"


OPERATIONS: tuple[Kind, ...] = (
    *(Eq(), Ne(), Lt(), Le(), Gt(), Ge(), EqMissing(), NeMissing()),
    IsBetween,
)
