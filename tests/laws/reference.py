"""What every row-wise operation means, in plain Python, one row at a time.

Written from the contract and not from the lowering. Values are those of `frames.values`: moments
and durations are whole physical numbers, decimals are `Decimal`, structs are dicts. A reference
returns `UNKNOWN` where Python cannot tell: two libraries of mathematics, or two databases of time
zones, may rightly differ there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from dpframe.core.dtypes import Columns, DType
from dpframe.core.tree import Column, Literal, Operation, Tree
from dpframe.rows.fold import domain

UNKNOWN = object()
"""A value that the reference does not know."""
_NEARLY = ("exp", "log", "log1p", "cbrt", "sin", "cos", "tan", "cot", "arcsin", "arccos")
APPROXIMATE = {
    **dict.fromkeys((*_NEARLY, "arctan", "arctan2", "sinh", "cosh", "tanh"), 8),
    "pow": 2**13,
    "arcsinh": 2**10,
    "arccosh": 2**30,
    "arctanh": 2**48,
    "list_sum": 2**24,
    "list_mean": 2**24,
}
"""Operations that two libraries of mathematics compute alike only up to so many last places; powers
go through logarithms, which loses up to y log x of them.
"""

INT64 = (-(2**63), 2**63 - 1)
EPOCH = datetime(1970, 1, 1)
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9, None: 10**9}


@dataclass(frozen=True)
class Context:
    """What a reference may need beside the operands' values."""

    types: tuple[DType, ...]
    result: DType
    operation: Operation

    @property
    def options(self) -> Mapping[str, Any]:
        """The constants of the operation."""
        return dict(self.operation.constants)


Reference: TypeAlias = "Callable[[Sequence[Any], Context], Any]"
REFERENCES: dict[str, Reference] = {}


def reference(*names: str) -> Callable[[Reference], Reference]:
    """Register a function as the meaning of some operations."""

    def register(function: Reference) -> Reference:
        for name in names:
            assert name not in REFERENCES
            REFERENCES[name] = function
        return function

    return register


def strict(function: Reference) -> Reference:
    """A function that is null when an operand is."""

    def of_present(args: Sequence[Any], context: Context) -> Any:
        return None if any(a is None for a in args) else function(args, context)

    return of_present


def evaluate(
    tree: Tree,
    row: Mapping[str, Any],
    columns: Columns,
    references: Mapping[str, Reference],
) -> Any:
    """A tree on one row."""
    match tree:
        case Column(name):
            return row[name]
        case Literal(value, dtype):
            return plain(value, dtype)
    args = [evaluate(arg, row, columns, references) for arg in tree.args]
    if any(arg is UNKNOWN for arg in args):
        return UNKNOWN
    types = tuple(domain(arg, columns).dtype for arg in tree.args)
    context = Context(types, domain(tree, columns).dtype, tree.operation)
    return references[tree.operation.name](args, context)


def plain(value: Any, dtype: DType) -> Any:
    """A constant in the form in which the laws hold values."""
    match value:
        case datetime():
            naive = value if value.tzinfo is None else value.astimezone(_utc()).replace(tzinfo=None)
            per = PER_SECOND[dtype.unit]
            return (naive - EPOCH) // timedelta(microseconds=1) * per // 10**6
        case date():
            return (value - EPOCH.date()).days
        case timedelta():
            return value // timedelta(microseconds=1) * PER_SECOND[dtype.unit] // 10**6
        case time():
            seconds = value.hour * 3600 + value.minute * 60 + value.second
            return seconds * 10**9 + value.microsecond * 1000
        case float() if dtype.name == "Float32":
            return float(np.float32(value))
    return value


def _utc() -> Any:
    from datetime import UTC

    return UTC


def guess_type(value: Any) -> DType:
    """The type of a constant in a list of constants."""
    if isinstance(value, datetime):
        return DType("Datetime", unit="us", zone="UTC" if value.tzinfo else None)
    if isinstance(value, timedelta):
        return DType("Duration", unit="us")
    names = {date: "Date", time: "Time", bool: "Boolean", int: "Int64", float: "Float64"}
    return DType(names.get(type(value), "String"))


# --- numbers -----------------------------------------------------------------------------------


def whole(value: Any) -> Any:
    """An integer or Boolean as Int64, null where it does not fit: what counts parts of moments."""
    if value is None or not INT64[0] <= int(value) <= INT64[1]:
        return None
    return int(value)


def real(value: Any) -> Any:
    """A number as Float64."""
    return None if value is None else float(value)


def integer(value: Any) -> Any:
    """An integer or Boolean as an integer of any size."""
    return None if value is None else int(value)


def wrap(value: Any, context: Context) -> Any:
    """Whole numbers wrap where the result is Int64."""
    if not isinstance(value, int) or context.result.name != "Int64":
        return value
    return (value + 2**63) % 2**64 - 2**63


def operands(args: Sequence[Any], context: Context) -> list[Any]:
    """All operands whole, or all of them real."""
    is_whole = all(t.is_integer or t.is_boolean or t.name == "Null" for t in context.types)
    return [integer(a) if is_whole else real(a) for a in args]


def arithmetic(name: str) -> Callable[[Callable[[Any, Any], Any]], None]:
    def register(function: Callable[[Any, Any], Any]) -> None:
        def computed(args: Sequence[Any], context: Context) -> Any:
            a, b = operands(args, context)
            if a is None or b is None:
                return None
            return wrap(function(a, b), context)

        REFERENCES[name] = computed

    return register


@reference("add")
def _add(args: Sequence[Any], context: Context) -> Any:
    if any(t.is_text for t in context.types):
        return None if None in args else args[0] + args[1]
    if any(t.is_temporal for t in context.types):
        return _moved(args, context, 1)
    return _plus(args, context, 1)


@reference("sub")
def _sub(args: Sequence[Any], context: Context) -> Any:
    if any(t.is_temporal for t in context.types):
        return _moved(args, context, -1)
    return _plus(args, context, -1)


def _plus(args: Sequence[Any], context: Context, sign: int) -> Any:
    a, b = operands(args, context)
    if a is None or b is None:
        return None
    return wrap(a + b if sign > 0 else a - b, context)


def _moved(args: Sequence[Any], context: Context, sign: int) -> Any:
    if None in args:
        return None
    unit = context.result.unit
    if context.result.name == "Date":
        unit = next(t.unit for t in context.types if t.name == "Duration")
    a, b = (in_unit(v, t, unit) for v, t in zip(args, context.types, strict=True))
    total = a + sign * b
    if context.result.name == "Date":
        total //= 86_400 * PER_SECOND[unit]
        return total if -(2**31) <= total < 2**31 else None
    return whole(total)


def in_unit(value: int, dtype: DType, unit: str | None) -> int:
    """A physical number in another unit: a Datetime floored, a Duration cut."""
    if dtype.name == "Date":
        return value * 86_400 * PER_SECOND[unit]
    exact = Fraction(value * PER_SECOND[unit], PER_SECOND[dtype.unit])
    return math.trunc(exact) if dtype.name == "Duration" else math.floor(exact)


@arithmetic("mul")
def _mul(a: Any, b: Any) -> Any:
    return a * b


def _quotient(a: float, b: float) -> float:
    try:
        return a / b
    except OverflowError:
        return math.inf if (a > 0) == (b > 0) else -math.inf


@reference("truediv")
def _truediv(args: Sequence[Any], context: Context) -> Any:
    a, b = map(real, args)
    return None if a is None or b is None or b == 0 else _quotient(a, b)


def _floor(value: float) -> float:
    return value if not math.isfinite(value) or abs(value) > 2.0**53 else float(math.floor(value))


@arithmetic("floordiv")
def _floordiv(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    return a // b if isinstance(a, int) else _floor(_quotient(a, b))


@arithmetic("mod")
def _mod(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    return a % b if isinstance(a, int) else a - b * _floor(_quotient(a, b))


@reference("pow")
def _pow(args: Sequence[Any], context: Context) -> Any:
    if context.result.is_integer:
        a, b = map(integer, args)
        return None if a is None or b is None else wrap(pow(a, b), context)
    a, b = map(real, args)
    if a is None or b is None:
        return None
    try:
        return math.pow(a or 0.0, b)  # the sign of a zero does not matter
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.inf if a == 0 else math.nan


def function_of_number(name: str) -> Callable[[Callable[[Any], Any]], None]:
    """A function of one number: Int64 stays, all else is Float64."""

    def register(function: Callable[[Any], Any]) -> None:
        def computed(args: Sequence[Any], context: Context) -> Any:
            (a,) = operands(args, context)
            return None if a is None else wrap(function(a), context)

        REFERENCES[name] = computed

    return register


def float_function(name: str, function: Callable[[float], Any], pole: float | None = None) -> None:
    """A function of a float: NaN where undefined, minus infinity at the pole."""

    def computed(args: Sequence[Any], context: Context) -> Any:
        a = real(args[0])
        if a is None:
            return None
        try:
            return function(a)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if a == pole else math.nan

    REFERENCES[name] = computed


float_function("sqrt", math.sqrt)
float_function("cbrt", math.cbrt)
float_function("exp", math.exp)
float_function("log1p", math.log1p, -1.0)
for _name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
    float_function(_name, getattr(math, _name))
    float_function("arc" + _name, getattr(math, "a" + _name))
float_function("sinh", lambda a: math.copysign(math.inf, a) if abs(a) > 711 else math.sinh(a))
float_function("arctanh", lambda a: math.copysign(math.inf, a) if abs(a) == 1 else math.atanh(a))
# Beyond that some versions of Polars overflow on the way to a finite result.
float_function("arcsinh", lambda a: UNKNOWN if 1e300 < abs(a) < math.inf else math.asinh(a))
float_function("arccosh", lambda a: UNKNOWN if 1e300 < a < math.inf else math.acosh(a))
float_function("degrees", lambda angle: angle * (180.0 / math.pi))
float_function("radians", lambda angle: angle * (math.pi / 180.0))


@reference("cot")
def _cot(args: Sequence[Any], context: Context) -> Any:
    a = real(args[0])
    if a is None or a == 0:
        return None
    return 1 / math.tan(a) if math.isfinite(a) else math.nan


@reference("arctan2")
def _arctan2(args: Sequence[Any], context: Context) -> Any:
    y, x = map(real, args)
    return None if y is None or x is None else math.atan2(y or 0.0, x or 0.0)


@reference("log")
@strict
def _log(args: Sequence[Any], context: Context) -> Any:
    a, base = real(args[0]), context.options["base"]
    if a is None or math.isnan(a) or a < 0:
        return None if a is None else math.nan
    natural = -math.inf if a == 0 else math.log(a)
    return natural if base is None else natural / math.log(base)


@function_of_number("neg")
def _neg(a: Any) -> Any:
    return -a


@function_of_number("abs")
def _abs(a: Any) -> Any:
    return abs(a)


@function_of_number("sign")
def _sign(a: Any) -> Any:
    if a != a:
        return a
    return type(a)((a > 0) - (a < 0))


@function_of_number("floor")
def _floor_of(a: Any) -> Any:
    return a if isinstance(a, int) else _floor(a)


@function_of_number("ceil")
def _ceil_of(a: Any) -> Any:
    return a if isinstance(a, int) else -_floor(-a)


@reference("round")
def _round(args: Sequence[Any], context: Context) -> Any:
    (a,) = operands(args, context)
    if a is None or isinstance(a, int) or not math.isfinite(a):
        return a
    scale = 10.0 ** context.options["decimals"]
    scaled = a * scale
    if not math.isfinite(scaled):
        return a
    return float(round(scaled)) / scale


@reference("clip_between")
def _clip_between(args: Sequence[Any], context: Context) -> Any:
    value, *bounds = (
        converted(a, t, context.result) for a, t in zip(args, context.types, strict=True)
    )
    if value is None or value != value:
        return value
    lo = bounds.pop(0) if context.options["has_lo"] else None
    hi = bounds.pop(0) if context.options["has_hi"] else None
    if lo is not None and value < lo:
        return lo
    return hi if hi is not None and value > hi else value


@reference("duration")
@strict
def _duration(args: Sequence[Any], context: Context) -> Any:
    week = 7 * 86_400 * 10**9
    sizes = [week, week // 7, 3_600 * 10**9, 60 * 10**9, 10**9, 10**6, 10**3, 1]
    unit = 10**9 // PER_SECOND[context.result.unit]
    parts = [whole(a) for a in args]
    if None in parts:
        return None
    return whole(
        sum(math.trunc(Fraction(p * size, unit)) for p, size in zip(parts, sizes, strict=True))
    )


@reference("dt_combine")
@strict
def _combine(args: Sequence[Any], context: Context) -> Any:
    day = context.types[0]
    days = args[0] if day.name == "Date" else args[0] // (86_400 * PER_SECOND[day.unit])
    unit = PER_SECOND[context.result.unit]
    return whole(days * 86_400 * unit + args[1] * unit // 10**9)


@reference("clip")
@strict
def _clip(args: Sequence[Any], context: Context) -> Any:
    value, source = args[0], context.types[0]
    ends = [context.options["lo"], context.options["hi"]]
    if source.is_temporal:
        lo, hi = (None if e is None else plain(e, source) for e in ends)
    elif context.result.is_float:
        value = real(value)
        lo, hi = (None if e is None else float(e) for e in ends)
    else:
        lo, hi, value = ends[0], ends[1], int(value)
    if value is None or value != value:
        return value
    value = lo if lo is not None and value < lo else value
    return hi if hi is not None and value > hi else value


# --- comparisons, conditions, nulls -------------------------------------------------------------


def comparable(value: Any, dtype: DType, others: Sequence[DType]) -> Any:
    """A value as something that Python compares as the contract says; NaN is above all."""
    types = [dtype, *others]
    if value is None:
        return None
    if dtype.is_temporal:
        return Fraction(value * 86_400 if dtype.name == "Date" else value, _seconds_unit(dtype))
    if dtype.is_text:
        return str(value).encode()
    mixed = any(t.is_float for t in types) or len({t for t in types if t.is_decimal}) > 1
    decimal = any(t.is_decimal for t in types) and not all(
        t.is_decimal or t.name == "Null" for t in types
    )
    if mixed or decimal:
        number = float(value)
        return (1, 0.0) if math.isnan(number) else (0, number)
    return Fraction(value)


def _seconds_unit(dtype: DType) -> int:
    return 1 if dtype.name == "Date" else PER_SECOND[dtype.unit]


def compared(args: Sequence[Any], types: Sequence[DType]) -> list[Any]:
    return [comparable(a, t, types) for a, t in zip(args, types, strict=True)]


def _comparison(name: str, function: Callable[[Any, Any], bool]) -> None:
    def computed(args: Sequence[Any], context: Context) -> Any:
        return None if None in args else function(*compared(args, context.types))

    REFERENCES[name] = computed


_comparison("eq", lambda a, b: a == b)
_comparison("ne", lambda a, b: a != b)
_comparison("lt", lambda a, b: a < b)
_comparison("le", lambda a, b: a <= b)
_comparison("gt", lambda a, b: a > b)
_comparison("ge", lambda a, b: a >= b)


@reference("eq_missing")
def _eq_missing(args: Sequence[Any], context: Context) -> Any:
    a, b = compared(args, context.types)
    return a == b if a is not None and b is not None else a is b


@reference("ne_missing")
def _ne_missing(args: Sequence[Any], context: Context) -> Any:
    return not _eq_missing(args, context)


def _bitwise(function: Callable[[int, int], int], otherwise: Reference) -> Reference:
    """Integers bit by bit, Booleans among them as 0 and 1; conditions as conditions."""

    def computed(args: Sequence[Any], context: Context) -> Any:
        if not any(t.is_integer for t in context.types):
            return otherwise(args, context)
        a, b = map(integer, args)
        return None if a is None or b is None else function(a, b)

    return computed


@reference("all_horizontal")
def _and(args: Sequence[Any], context: Context) -> Any:
    return False if False in args else None if None in args else True


@reference("any_horizontal")
def _or(args: Sequence[Any], context: Context) -> Any:
    return True if True in args else None if None in args else False


@strict
def _xor(args: Sequence[Any], context: Context) -> Any:
    return args[0] != args[1]


REFERENCES["and"] = _bitwise(lambda a, b: a & b, _and)
REFERENCES["or"] = _bitwise(lambda a, b: a | b, _or)
REFERENCES["xor"] = _bitwise(lambda a, b: a ^ b, _xor)


@reference("not")
@strict
def _not(args: Sequence[Any], context: Context) -> Any:
    if not context.types[0].is_integer:
        return not args[0]
    return None if args[0] is None else ~args[0]


def same_key(value: Any, dtype: DType, constant: Any) -> bool:
    """Whether a value equals a constant of a list; null equals null only."""
    if value is None or constant is None:
        return value is constant
    kind = guess_type(constant)
    a, b = compared([value, plain(constant, kind)], [dtype, kind])
    return bool(a == b)


@reference("is_in")
def _is_in(args: Sequence[Any], context: Context) -> Any:
    if args[0] is None and not context.options["nulls_equal"]:
        return None
    return any(same_key(args[0], context.types[0], v) for v in context.options["values"])


@reference("is_between")
def _is_between(args: Sequence[Any], context: Context) -> Any:
    closed = context.options["closed"]
    value, lo, hi = compared(args, context.types)
    above = below = None
    if value is not None and lo is not None:
        above = value >= lo if closed in ("both", "left") else value > lo
    if value is not None and hi is not None:
        below = value <= hi if closed in ("both", "right") else value < hi
    return _and([above, below], context)


def converted(value: Any, dtype: DType, result: DType) -> Any:
    """A value in the common type of several operands."""
    if value is None or dtype == result:
        return value
    if result.is_float:
        return real(value)
    if result.is_integer:
        limits = result.limits
        assert limits is not None
        return int(value) if limits[0] <= int(value) <= limits[1] else None
    if result.unit is not None:
        return whole(in_unit(value, dtype, result.unit))
    return value


@reference("when")
def _when(args: Sequence[Any], context: Context) -> Any:
    chosen = 1 if args[0] else 2
    return converted(args[chosen], context.types[chosen], context.result)


@reference("fill_null", "coalesce")
def _first(args: Sequence[Any], context: Context) -> Any:
    found = [converted(a, t, context.result) for a, t in zip(args, context.types, strict=True)]
    return next((f for f in found if f is not None), None)


@reference("fill_nan")
def _fill_nan(args: Sequence[Any], context: Context) -> Any:
    value, fill = args
    if isinstance(value, float) and math.isnan(value):
        return real(fill)
    return value


@reference("is_null")
def _is_null(args: Sequence[Any], context: Context) -> Any:
    return args[0] is None


@reference("is_not_null")
def _is_not_null(args: Sequence[Any], context: Context) -> Any:
    return args[0] is not None


def _check(name: str, function: Callable[[float], bool], other: bool) -> None:
    def computed(args: Sequence[Any], context: Context) -> Any:
        if args[0] is None:
            return None
        return function(args[0]) if isinstance(args[0], float) else other

    REFERENCES[name] = computed


_check("is_nan", math.isnan, False)
_check("is_not_nan", lambda a: not math.isnan(a), True)
_check("is_finite", math.isfinite, True)
_check("is_infinite", math.isinf, False)


# --- several columns ----------------------------------------------------------------------------


def _extreme(args: Sequence[Any], context: Context, best: Callable[[list[Any]], Any]) -> Any:
    found = [converted(a, t, context.result) for a, t in zip(args, context.types, strict=True)]
    present = [f for f in found if f is not None]
    numbers = [f for f in present if f == f]
    return best(numbers) if numbers else present[0] if present else None


@reference("min_horizontal")
def _min(args: Sequence[Any], context: Context) -> Any:
    return _extreme(args, context, min)


@reference("max_horizontal")
def _max(args: Sequence[Any], context: Context) -> Any:
    return _extreme(args, context, max)


@reference("sum_horizontal")
def _sum(args: Sequence[Any], context: Context) -> Any:
    found = operands(args, context)
    if None in found and not context.options["ignore_nulls"]:
        return None
    zero = 0 if context.result.is_integer else 0.0
    total = found[0] if found[0] is not None else zero
    for value in found[1:]:
        total = total + (value if value is not None else zero)
    return wrap(total, context)


@reference("mean_horizontal")
def _mean(args: Sequence[Any], context: Context) -> Any:
    found = [real(a) for a in args]
    present = [f for f in found if f is not None]
    if not present or (len(present) < len(found) and not context.options["ignore_nulls"]):
        return None
    total = 0.0
    for value in present:
        total += value
    return total / len(present)


# --- lists --------------------------------------------------------------------------------------


def _listed_numbers(args: Sequence[Any], context: Context, to: Callable[[Any], Any]) -> list[Any]:
    return [to(v) for v in args[0] if to(v) is not None]


@reference("list_sum")
@strict
def _list_sum(args: Sequence[Any], context: Context) -> Any:
    if context.result.is_integer:
        return wrap(sum(_listed_numbers(args, context, integer)), context)
    return _total(_listed_numbers(args, context, real))


@reference("list_mean")
@strict
def _list_mean(args: Sequence[Any], context: Context) -> Any:
    found = _listed_numbers(args, context, real)
    total = _total(found) if found else None
    return total if total is None or total is UNKNOWN else total / len(found)


def _total(found: list[float]) -> Any:
    """A sum of floats; unknown where the order of adding decides about infinities or digits."""
    if not all(map(math.isfinite, found)):
        return sum(found)
    size = sum(map(Fraction, map(abs, found)), Fraction(0))
    exact = sum(map(Fraction, found), Fraction(0))
    return float(exact) if size < 2**1000 and size <= 2**20 * abs(exact) else UNKNOWN


def _list_extreme(name: str, best: Callable[[list[Any]], Any]) -> None:
    @strict
    def computed(args: Sequence[Any], context: Context) -> Any:
        present = [v for v in args[0] if v is not None]
        numbers = [v for v in present if v == v]
        return best(numbers) if numbers else present[0] if present else None

    REFERENCES[name] = computed


_list_extreme("list_min", min)
_list_extreme("list_max", max)


@reference("concat_list")
def _concat_list(args: Sequence[Any], context: Context) -> Any:
    inner = context.result.inner
    assert inner is not None
    joined: list[Any] = []
    for value, dtype in zip(args, context.types, strict=True):
        if not dtype.is_nested:
            joined.append(converted(value, dtype, inner))
        elif value is None:
            return None
        else:
            assert dtype.inner is not None
            joined += [converted(v, dtype.inner, inner) for v in value]
    return joined


@reference("list_slice")
@strict
def _list_slice(args: Sequence[Any], context: Context) -> Any:
    offset, length = context.options["offset"], context.options["length"]
    start = offset if offset >= 0 else len(args[0]) + offset
    stop = len(args[0]) if length is None else start + length
    return args[0][max(start, 0) : max(stop, 0)]


@reference("list_of_array")
def _list_of_array(args: Sequence[Any], context: Context) -> Any:
    return args[0]


# --- casts --------------------------------------------------------------------------------------

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SPECIAL = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
FIRST_DAY, LAST_DAY = -719_162, 2_932_896


@reference("cast")
@strict
def _cast(args: Sequence[Any], context: Context) -> Any:
    return cast(args[0], context.types[0], context.options["dtype"])


def cast(value: Any, source: DType, target: DType) -> Any:
    """A value in another type, null where it does not fit."""
    if value is None or source == target:
        return value
    if target.is_boolean:
        return value != 0
    if target.is_integer:
        return _to_integer(value, source, target)
    if target.is_float:
        return _to_float(value, source, target)
    if target.name == "Enum":
        return value if value in (target.categories or ()) else None
    if target.name == "String":
        return to_text(value, source)
    return _to_moment(value, source, target)


def _to_integer(value: Any, source: DType, target: DType) -> Any:
    assert target.limits is not None
    if source.is_text:
        sign = r"\+?" if target.limits[0] == 0 else "[+-]?"
        if not re.fullmatch(sign + r"\d+", value, re.ASCII):
            return None
        value = int(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    number = int(value)
    return number if target.limits[0] <= number <= target.limits[1] else None


def _to_float(value: Any, source: DType, target: DType) -> Any:
    if source.is_text:
        if not (_NUMBER.fullmatch(value) or _SPECIAL.fullmatch(value)):
            return None
        value = float(value)
    if target.name == "Float32":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    return float(value)


def to_text(value: Any, source: DType) -> Any:
    """How values are written."""
    if source.is_boolean:
        return "true" if value else "false"
    if source.is_float:
        return _float_text(value or 0.0, source)  # zero has no sign
    if source.name in ("Date", "Datetime"):
        return _moment_text(value, source)
    if source.name == "Time":
        seconds = value // 10**9
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return str(value)


def _float_text(value: float, source: DType) -> str:
    """The shortest digits; an exponent below 1e-5 and from 1e16 on (Float32: 1e-6 and 1e13)."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    kind = np.float32 if source.name == "Float32" else np.float64
    digits = np.format_float_scientific(kind(value), unique=True, trim="-", exp_digits=1)
    mantissa, exponent = digits.split("e")
    least, most = (-6, 13) if source.name == "Float32" else (-5, 16)
    if least <= int(exponent) < most:
        return np.format_float_positional(kind(value), unique=True, trim="0")
    return f"{mantissa}e{int(exponent):+d}"


def _moment_text(value: int, source: DType) -> Any:
    day = 1 if source.name == "Date" else 86_400 * PER_SECOND[source.unit]
    if not FIRST_DAY <= value // day <= LAST_DAY:
        return None
    if source.zone is not None:
        return UNKNOWN
    midnight = EPOCH + timedelta(days=value // day)
    text = f"{midnight.year:04}-{midnight.month:02}-{midnight.day:02}"
    if source.name == "Date":
        return text
    per = PER_SECOND[source.unit]
    seconds, part = divmod(value % day, per)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text} {clock}.{part:0{len(str(per)) - 1}}"


def _to_moment(value: int, source: DType, target: DType) -> Any:
    limits = INT64
    if target.name == "Date":
        limits = (-(2**31), 2**31 - 1)
        if source.name == "Datetime":
            value //= 86_400 * PER_SECOND[source.unit]
    elif target.name == "Time":
        limits = (0, 86_400 * 10**9 - 1)
        if source.name == "Datetime":
            per = PER_SECOND[source.unit]
            value = value % (86_400 * per) * (10**9 // per)
    elif source.is_temporal:
        value = in_unit(value, source, target.unit)
    return value if limits[0] <= value <= limits[1] else None


# --- replacements -------------------------------------------------------------------------------


def _replaced(value: Any, dtype: DType, context: Context) -> Any:
    """The new value for an old one, else UNKNOWN."""
    for old, new in zip(context.options["old"], context.options["new"], strict=True):
        if same_key(value, dtype, old):
            return new
    return UNKNOWN


@reference("replace")
def _replace(args: Sequence[Any], context: Context) -> Any:
    new = _replaced(args[0], context.types[0], context)
    if new is UNKNOWN:
        return args[0]
    new = plain(new, context.result) if new is not None else None
    return float(new) if new is not None and context.result.is_float else new


@reference("replace_strict")
def _replace_strict(args: Sequence[Any], context: Context) -> Any:
    new = _replaced(args[0], context.types[0], context)
    value, kind = (args[1], context.types[1]) if new is UNKNOWN else (new, guess_type(new))
    if value is None:
        return None
    if new is not UNKNOWN:
        value = plain(value, kind)
    if context.options.get("dtype") is not None:
        return cast(value, kind, context.result)
    return converted(value, kind, context.result)


def is_close(a: Any, b: Any, places: int) -> bool:
    """Whether two floats differ by no more than a few last places."""
    if not (isinstance(a, float) and isinstance(b, float)):
        return False
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b
    return abs(a - b) <= places * 2**-52 * max(abs(a), abs(b)) + 5e-324 * places
