"""Arithmetic with released numbers, exactly: post-processing, so it is free.

Polars computes in 64 bits: whole numbers wrap, a quotient of Decimals loses its digits, and floats
are rounded at each step. Here a formula is computed with fractions of whole numbers, and only its
result is rounded, to the nearest number of its type. Roots, and powers without a whole exponent,
are computed on the nearest floats. A float that an analyst writes means the decimal that it prints
as.

The result has the type that Polars gives it, where this type holds it. Types and ranges decide;
only a whole number that noise carries beyond Int64, with odds below 2**-60, is Float64 after
all. A result is Float64 where a whole number in its formula might lie beyond Int64, and where a
number in it is a Decimal. A duration is in milliseconds where its own unit might not hold it, as a
sum of durations is, and is refused where milliseconds might not either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.core.dtypes import DATE, FLOAT64, INT64, Domain, DType, Scalar, duration_type
from dpframe.core.exact import exact
from dpframe.core.interval import Interval
from dpframe.core.tree import Call, Column, Literal, Operation, Tree, column_names
from dpframe.errors import UnsupportedOperation
from dpframe.rows.arithmetic import quotient
from dpframe.rows.clip import Clip
from dpframe.rows.constants import literal_domain, physical
from dpframe.rows.maths import Round
from dpframe.rows.operands import INT64_LIMITS, is_number
from dpframe.rows.polars_dtypes import from_polars, to_polars
from dpframe.rows.temporal import (
    DATE_LIMITS,
    counted_interval,
    sum_type,
    unit_ratio,
    units_per_day,
    working_unit,
)

# Arrays of whole numbers of any size: of 64 bits where these hold the results, else of Python's
# integers, which take a hundred times as long.

Bools: TypeAlias = "NDArray[np.bool_]"


class Integers:
    """Whole numbers, and how large they are at most; operations are as those of Python's integers.

    Parameters
    ----------
    array
        The numbers, of type int64 or object.
    most
        No magnitude is above; below 2**63 for int64.
    """

    __slots__ = ("array", "most")

    def __init__(self, array: NDArray[Any], most: int) -> None:
        self.array = array
        self.most = most

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Integers:
        listed = list(numbers)
        most = max(map(abs, listed), default=0)
        return cls(np.array(listed, dtype=np.int64 if most < 1 << 63 else object), most)

    @classmethod
    def of_array(cls, array: NDArray[np.int64]) -> Integers:
        least, most = (int(array.min()), int(array.max())) if array.size else (0, 0)
        size = max(-least, most)
        return cls(array if size < 1 << 63 else array.astype(object), size)

    def __len__(self) -> int:
        return len(self.array)

    def tolist(self) -> list[int]:
        numbers: list[int] = self.array.tolist()
        return numbers

    def repeat(self, times: int) -> Integers:
        return Integers(self.array.repeat(times), self.most)

    def broadcast(self, size: int) -> Integers:
        return Integers(np.broadcast_to(self.array, size), self.most)

    @property
    def is_zero(self) -> Bools:
        return np.asarray(self.array == 0, dtype=np.bool_)

    def equals(self, other: Integers | int) -> Bools:
        return np.asarray(self.array == _integers(other).array, dtype=np.bool_)

    def __lt__(self, other: Integers | int) -> Bools:
        return np.asarray(self.array < _integers(other).array, dtype=np.bool_)

    def __gt__(self, other: Integers | int) -> Bools:
        return np.asarray(self.array > _integers(other).array, dtype=np.bool_)

    def __add__(self, other: Integers | int) -> Integers:
        a, b, most = self._with(other, self.most + _integers(other).most)
        return Integers(a + b, most)

    def __sub__(self, other: Integers | int) -> Integers:
        return self + -_integers(other)

    def __mul__(self, other: Integers | int) -> Integers:
        a, b, most = self._with(other, self.most * _integers(other).most)
        return Integers(a * b, most)

    __rmul__ = __mul__

    def __floordiv__(self, other: Integers | int) -> Integers:
        a, b, most = self._with(other, max(self.most, 1))
        return Integers(a // b, most)

    def __mod__(self, other: Integers | int) -> Integers:
        a, b, most = self._with(other, _integers(other).most)
        return Integers(a % b, most)

    def __pow__(self, power: int) -> Integers:
        most = self.most**power
        array = self.array if most < 1 << 63 else self.array.astype(object)
        return Integers(array**power, most)

    def __neg__(self) -> Integers:
        return Integers(-self.array, self.most)

    def __abs__(self) -> Integers:
        return Integers(np.abs(self.array), self.most)

    def _with(self, other: Integers | int, most: int) -> tuple[NDArray[Any], NDArray[Any], int]:
        """Both arrays, in a type that holds a result of this size."""
        a, b = self.array, _integers(other).array
        if most < 1 << 63 and a.dtype == b.dtype == np.int64:
            return a, b, most
        return a.astype(object), b.astype(object), most


def _integers(numbers: Integers | int) -> Integers:
    return numbers if isinstance(numbers, Integers) else Integers.of([numbers])


def choose(condition: Bools, first: Integers | int, second: Integers | int) -> Integers:
    """The first numbers where a condition holds, and the second elsewhere."""
    a, b = _integers(first), _integers(second)
    same = a.array.dtype == b.array.dtype
    arrays = (a.array, b.array) if same else (a.array.astype(object), b.array.astype(object))
    return Integers(np.where(condition, *arrays), max(a.most, b.most))


Floats: TypeAlias = "NDArray[np.float64]"

_HIGHEST = 1024
"""Up to this degree powers are exact; others would have too many digits."""
_OF_LISTS = frozenset({"add", "sub", "mul", "truediv", "floordiv", "mod"})
"""Operations that Polars has for lists."""
_FROM_TABLE = "compute it from the released table, which costs nothing"


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """One exact number for each row, in the physical units of its type.

    A denominator is never negative. 1 over 0 is infinity, -1 over 0 is minus infinity, and 0 over 0
    is NaN: the rules of fractions then give what floats give, but for a sum of two infinities.
    """

    domain: Domain
    above: Integers
    below: Integers
    null: Bools
    degree: int = 1
    """How many numbers are multiplied at most, which bounds the digits."""
    fits: bool = True
    """Whether each whole number so far surely lies within Int64."""

    @property
    def dtype(self) -> DType:
        return self.domain.dtype

    @property
    def is_whole(self) -> bool:
        return self.dtype.is_integer or self.dtype.is_boolean

    def repeat(self, times: int) -> _Numbers:
        return replace(
            self,
            above=self.above.repeat(times),
            below=self.below.repeat(times),
            null=self.null.repeat(times),
        )


def can_compute(numbers: pl.DataFrame) -> bool:
    """Whether formulas of results of such types are computed here: numbers and times are, text is
    not.
    """
    known = (from_polars(_inner(dtype)) for dtype in numbers.dtypes)
    return all(is_number(dtype) or dtype.is_temporal for dtype in known)


def compute_formula(tree: Tree, numbers: pl.DataFrame, ranges: Mapping[str, Interval]) -> pl.Series:
    """A formula of released numbers.

    Parameters
    ----------
    tree
        The formula, over columns of `numbers`.
    numbers
        The released numbers.
    ranges
        Between what the numbers of each column lie, in the physical units of its type.

    Raises
    ------
    UnsupportedOperation
        When the formula has no meaning for such types, or no type surely holds its result.
    """
    lists = [column for column in numbers if isinstance(column.dtype, pl.List)]
    if not lists:
        if (quick := _one_step(tree, numbers)) is not None:
            return quick
        columns = {column.name: _read(column, ranges[column.name]) for column in numbers}
        return _series(_value(tree, columns), numbers.height)
    _require_lists(tree)
    width = max((len(column[0]) for column in lists if len(column)), default=1)
    columns = {}
    for column in numbers:
        is_list = isinstance(column.dtype, pl.List)
        read = _read(column.explode() if is_list else column, ranges[column.name])
        columns[column.name] = read if is_list else read.repeat(width)
        if len(columns[column.name].above) != numbers.height * width:
            raise UnsupportedOperation(
                "lists of different lengths have no arithmetic", remedy=_FROM_TABLE
            )
    made = _series(_value(tree, columns), numbers.height * width)
    rows = pl.Series("row", np.repeat(np.arange(numbers.height), width), dtype=pl.Int64)
    frame = pl.DataFrame([rows, made.alias("value")])
    return frame.group_by("row", maintain_order=True).agg("value")["value"]


def _one_step(tree: Tree, numbers: pl.DataFrame) -> pl.Series | None:
    """One sum, difference, product or quotient of floats, which IEEE 754 rounds correctly; else
    None.
    """
    rule = _FLOAT_RULES.get(tree.operation.name) if isinstance(tree, Call) else None
    if rule is None:
        return None
    assert isinstance(tree, Call)
    operands = [_exact_floats(arg, numbers) for arg in tree.args]
    known = [operand for operand in operands if operand is not None]
    if len(known) < 2 or (all(whole for _, whole in known) and rule is not np.true_divide):
        return None
    null = np.zeros(numbers.height, dtype=np.bool_)
    for name in column_names(tree):
        null |= numbers[name].is_null().to_numpy()
    with np.errstate(all="ignore"):
        floats: Floats = rule(known[0][0], known[1][0]) + 0.0
    return _of(np.broadcast_to(floats, numbers.height), null)


_FLOAT_RULES: Mapping[str, Callable[[Floats, Floats], Floats]] = MappingProxyType(
    {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide}
)


def _exact_floats(tree: Tree, numbers: pl.DataFrame) -> tuple[Floats, bool] | None:
    """Numbers that floats hold exactly, and whether they are whole by their type; else None."""
    if isinstance(tree, Literal):
        number = _exact(tree.value)
        nearest = None if number is None else _nearest_one(number.numerator, number.denominator)
        if nearest is None or math.isinf(nearest) or Fraction(nearest) != number:
            return None
        return np.array([nearest]), isinstance(tree.value, int)
    if not isinstance(tree, Column):
        return None
    column = numbers[tree.name]
    if column.dtype == pl.Float64:
        return column.fill_null(0).to_numpy() + 0.0, False
    if column.dtype != pl.Int64:
        return None
    whole = Integers.of_array(column.fill_null(0).to_numpy())
    return None if whole.most > 1 << 53 else (whole.array.astype(np.float64), True)


def _inner(dtype: pl.DataType) -> Any:
    return dtype.inner if isinstance(dtype, pl.List) else dtype


def _require_lists(tree: Tree) -> None:
    if isinstance(tree, Call):
        if tree.operation.name not in _OF_LISTS:
            raise UnsupportedOperation(
                f"{tree.operation.name} of a list is not possible", remedy=_FROM_TABLE
            )
        for arg in tree.args:
            _require_lists(arg)


# -- reading and writing columns ----------------------------------------------------------------


def _read(column: pl.Series, known: Interval) -> _Numbers:
    null = column.is_null().to_numpy()
    dtype = from_polars(column.dtype)
    if dtype.is_float or dtype.is_decimal:
        whole = dtype.is_decimal and not dtype.scale
        above, below = _fractions(column.to_list())
        domain = Domain(INT64 if whole else FLOAT64, interval=known)
    else:
        numbers = column.to_physical().cast(pl.Int64).fill_null(0)
        above = Integers.of_array(numbers.to_numpy())
        below = _ones(above)
        domain = Domain(dtype if dtype.is_temporal else INT64, interval=known)
    return _Numbers(domain, above, below, null, fits=_fits(domain))


def _fractions(numbers: Sequence[float | Decimal | None]) -> tuple[Integers, Integers]:
    """Numerators and denominators; 0 for null."""
    pairs = list(map(_fraction, numbers))
    return Integers.of(n for n, _ in pairs), Integers.of(d for _, d in pairs)


def _fraction(number: float | Decimal | None) -> tuple[int, int]:
    if number is None:
        return 0, 1
    if math.isfinite(number):
        return number.as_integer_ratio()
    return (0 if math.isnan(number) else 1 if number > 0 else -1), 0


def _series(value: _Numbers, height: int) -> pl.Series:
    above, below = value.above.broadcast(height), value.below.broadcast(height)
    null = np.broadcast_to(value.null, height)
    if value.dtype.is_temporal:
        return _times(value, above, null)
    if value.is_whole and value.fits and _are_within(above, INT64_LIMITS):
        return _of(above.array.astype(np.int64), null)
    return _of(_nearest(above, below), null)


def _are_within(numbers: Integers, limits: tuple[int, int]) -> bool:
    return numbers.most <= limits[1] or all(limits[0] <= n <= limits[1] for n in numbers.tolist())


def _times(value: _Numbers, above: Integers, null: Bools) -> pl.Series:
    """Whole numbers of units as moments or durations."""
    dtype, known = value.dtype, value.domain.interval
    if dtype.name == "Duration" and not known.within(INT64_LIMITS) and dtype.unit != "ms":
        per = dtype.units_per_second // 1_000
        dtype, known = duration_type("ms"), known.increasing(lambda end: end / per)
        above = _towards_zero(above, per)
    limits = DATE_LIMITS if dtype == DATE else INT64_LIMITS
    if not known.within(limits):
        raise UnsupportedOperation(
            f"the result may be beyond the type {dtype}",
            why="it is a whole number of 64 bits, which would wrap",
            remedy="aggregate seconds: .dt.total_seconds() before the aggregate",
        )
    # noise carries a number past the limits with odds below 2**-60
    within = above if _are_within(above, limits) else _hold(above, limits)
    narrow = np.int32 if dtype == DATE else np.int64
    return _of(within.array.astype(narrow), null).cast(to_polars(dtype))


def _hold(numbers: Integers, limits: tuple[int, int]) -> Integers:
    return Integers.of(max(limits[0] + 1, min(limits[1], n)) for n in numbers.tolist())


def _of(numbers: NDArray[Any], null: Bools) -> pl.Series:
    series = pl.Series(numbers)
    if not null.any():
        return series
    frame = pl.DataFrame([series.alias("number"), pl.Series("null", null)])
    return frame.select(pl.when(~pl.col("null")).then("number")).to_series()


def _ones(like: Integers) -> Integers:
    return Integers.of([1]).repeat(len(like))


def _nearest(above: Integers, below: Integers) -> Floats:
    """The nearest floats: Python rounds a quotient of integers correctly, as floats of whole
    numbers of up to 53 bits are.
    """
    if max(above.most, below.most) <= 1 << 53:
        with np.errstate(divide="ignore", invalid="ignore"):
            quotients: Floats = above.array.astype(np.float64) / below.array.astype(np.float64)
        return quotients
    pairs = list(zip(above.tolist(), below.tolist(), strict=True))
    try:
        return np.array([n / d for n, d in pairs], dtype=np.float64)
    except (OverflowError, ZeroDivisionError):
        return np.array([_nearest_one(n, d) for n, d in pairs], dtype=np.float64)


def _nearest_one(above: int, below: int) -> float:
    try:
        return above / below
    except OverflowError:
        return math.inf if above > 0 else -math.inf
    except ZeroDivisionError:
        return math.nan if above == 0 else math.inf if above > 0 else -math.inf


def _floats(value: _Numbers) -> list[float]:
    floats: list[float] = _nearest(value.above, value.below).tolist()
    return floats


def _towards_zero(above: Integers, below: Integers | int) -> Integers:
    return choose(above < 0, -(-above // below), above // below)


# -- formulas -----------------------------------------------------------------------------------


def _value(tree: Tree, columns: Mapping[str, _Numbers]) -> _Numbers:
    match tree:
        case Column(name):
            return columns[name]
        case Literal():
            return _constant(tree)
        case Call(operation, args):
            values = [_value(arg, columns) for arg in args]
            if any(value.dtype.is_temporal for value in values):
                return _of_times(operation, values)
            return _of_numbers(tree, values)


def _constant(literal: Literal) -> _Numbers:
    number, domain = _exact(literal.value), literal_domain(literal)
    if number is None:
        above, below = _fractions([literal.value])  # type: ignore[list-item]
    else:
        above, below = Integers.of([number.numerator]), Integers.of([number.denominator])
        domain = replace(domain, interval=Interval(number, number))
    return _Numbers(domain, above, below, np.zeros(1, dtype=np.bool_), fits=_fits(domain))


def _exact(value: Scalar) -> Fraction | None:
    """What a constant means; None for infinities and NaN."""
    if isinstance(value, float):
        return exact(value) if math.isfinite(value) else None
    return physical(value, FLOAT64)


def _fits(domain: Domain) -> bool:
    return not domain.dtype.is_integer or domain.interval.within(INT64_LIMITS)


def _of_numbers(call: Call, args: Sequence[_Numbers]) -> _Numbers:
    operation = call.operation
    rule = _RULES.get(operation.name)
    if rule is None:
        raise _no_rule(operation, args)
    try:
        domain = operation.domain([value.domain for value in args])
    except UnsupportedOperation:  # whole numbers that may be too large even for Int128
        domain = Domain(INT64)
    if domain.dtype.is_integer:
        domain = replace(domain, dtype=INT64)
    degree = sum(value.degree for value in args)
    if operation.name == "pow":
        power = _whole_power(call.args[1])
        degree = args[0].degree * abs(power) if power is not None else _HIGHEST + 1
        if power is None or degree > _HIGHEST:
            above, below = _fractions(list(map(_pow, *map(_floats, _alike(args)))))
            return _Numbers(Domain(FLOAT64), above, below, _null(args), 1, fits=False)
    above, below, null = rule(operation, args, domain)
    fits = _fits(domain) and all(value.fits for value in args)
    return _Numbers(domain, above, below, null, max(1, degree), fits)


def _null(args: Sequence[_Numbers]) -> Bools:
    """Where an operand is null."""
    null = args[0].null
    for value in args[1:]:
        null = null | value.null
    return null


def _alike(args: Sequence[_Numbers]) -> list[_Numbers]:
    """Operands with as many rows as the longest has."""
    size = max(len(value.above) for value in args)
    return [v if len(v.above) == size else v.repeat(size) for v in args]


Parts: TypeAlias = "tuple[Integers, Integers, Bools]"


def _add(_: Operation, args: Sequence[_Numbers], __: Domain) -> Parts:
    a, b = args
    above, below = a.above * b.below + b.above * a.below, a.below * b.below
    both = a.below.is_zero & b.below.is_zero
    if both.any():
        above = choose(both, choose(a.above.equals(b.above), a.above, 0), above)
    return _unit_infinities(above, below), below, _null(args)


def _subtract(operation: Operation, args: Sequence[_Numbers], domain: Domain) -> Parts:
    a, b = args
    return _add(operation, [a, replace(b, above=-b.above)], domain)


def _multiply(_: Operation, args: Sequence[_Numbers], __: Domain) -> Parts:
    a, b = args
    above, below = a.above * b.above, a.below * b.below
    return _unit_infinities(above, below), below, _null(args)


def _unit_infinities(above: Integers, below: Integers) -> Integers:
    """Numerators, 1 or -1 where they are of an infinity."""
    infinite = below.is_zero
    if not infinite.any():
        return above
    signs = choose(above > 0, 1, choose(above < 0, -1, 0))
    return choose(infinite, signs, above)


def _divide(_: Operation, args: Sequence[_Numbers], __: Domain) -> Parts:
    return *_quotient(*args), _null(args)


def _quotient(a: _Numbers, b: _Numbers) -> tuple[Integers, Integers]:
    signs = choose(b.above < 0, -1, 1)
    above, below = a.above * b.below * signs, a.below * b.above * signs
    return _unit_infinities(above, below), below


def _floor_divide(_: Operation, args: Sequence[_Numbers], domain: Domain) -> Parts:
    above, below = _quotient(*args)
    infinite = below.is_zero
    floors = above // choose(infinite, 1, below)
    if domain.dtype.is_integer:
        return floors, _ones(floors), _null(args) | infinite
    return choose(infinite, above, floors), choose(infinite, 0, 1), _null(args)


def _take_remainder(_: Operation, args: Sequence[_Numbers], domain: Domain) -> Parts:
    a, b = args
    first, second, below = a.above * b.below, b.above * a.below, a.below * b.below
    undefined = second.is_zero | below.is_zero
    above = choose(undefined, 0, first % choose(undefined, 1, second))
    if domain.dtype.is_integer:
        return above, _ones(above), _null(args) | undefined
    return above, choose(undefined, 0, below), _null(args)


def _whole_power(tree: Tree) -> int | None:
    number = _exact(tree.value) if isinstance(tree, Literal) else None
    return None if number is None or number.denominator != 1 else int(number)


def _raise_to_power(_: Operation, args: Sequence[_Numbers], __: Domain) -> Parts:
    base, exponent = args
    power = exponent.above.tolist()[0]  # over 1
    if power >= 0:
        return base.above**power, base.below**power, base.null
    signs = choose(base.above < 0, -1, 1)
    above, below = (base.below * signs) ** -power, (base.above * signs) ** -power
    return _unit_infinities(above, below), below, base.null


def _pow(base: float, power: float) -> float:
    """A power of floats, as Polars has it."""
    try:
        return math.pow(base, power)
    except OverflowError:
        return -math.inf if base < 0 and power % 2 == 1 else math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def _negate(_: Operation, args: Sequence[_Numbers], __: Domain) -> Parts:
    return -args[0].above, args[0].below, args[0].null


def _take_magnitude(_: Operation, args: Sequence[_Numbers], __: Domain) -> Parts:
    return abs(args[0].above), args[0].below, args[0].null


def _take_root(_: Operation, args: Sequence[_Numbers], __: Domain) -> Parts:
    roots = [math.nan if x < 0 else math.sqrt(x) for x in _floats(args[0])]
    return *_fractions(roots), args[0].null


def _round(operation: Operation, args: Sequence[_Numbers], domain: Domain) -> Parts:
    (value,) = args
    assert isinstance(operation, Round)
    if domain.dtype.is_integer:
        return value.above, value.below, value.null
    places, infinite = 10**operation.decimals, value.below.is_zero
    twice = choose(infinite, 1, 2 * value.below)
    halves = 2 * places * value.above + choose(infinite, 0, value.below)
    up = halves // twice
    tie = (halves % twice).is_zero & ~(up % 2).is_zero
    above = choose(infinite, value.above, choose(tie, up - 1, up))
    return above, choose(infinite, 0, places), value.null


def _clip(operation: Operation, args: Sequence[_Numbers], domain: Domain) -> Parts:
    (value,) = args
    assert isinstance(operation, Clip)
    above, below, times = value.above, value.below, domain.dtype.is_temporal
    for end, is_low in ((operation.lo, True), (operation.hi, False)):
        if end is None:
            continue
        bound = physical(end, domain.dtype) if times else _exact(end)
        if bound is None:
            continue
        n, d = (math.floor(bound), 1) if times else (bound.numerator, bound.denominator)
        outside = above * d < below * n if is_low else above * d > below * n
        above, below = choose(outside, n, above), choose(outside, d, below)
    return above, below, value.null


_RULES: Mapping[str, Callable[[Operation, Sequence[_Numbers], Domain], Parts]] = MappingProxyType(
    {
        "add": _add,
        "sub": _subtract,
        "mul": _multiply,
        "truediv": _divide,
        "floordiv": _floor_divide,
        "mod": _take_remainder,
        "pow": _raise_to_power,
        "neg": _negate,
        "abs": _take_magnitude,
        "sqrt": _take_root,
        "round": _round,
        "clip": _clip,
    }
)


# -- moments and durations ----------------------------------------------------------------------


def _of_times(operation: Operation, args: Sequence[_Numbers]) -> _Numbers:
    name, first = operation.name, args[0]
    if name in ("add", "sub") and all(value.dtype.is_temporal for value in args):
        return _shift(first, args[1], 1 if name == "add" else -1)
    if name == "clip":
        domain = operation.domain([first.domain])
        above, below, null = _clip(operation, args, domain)
        return replace(first, domain=domain, above=above, below=below, null=null)
    durations = [value.dtype.name == "Duration" for value in args]
    match name, durations:
        case "neg", [True]:
            return replace(_spanning(first, -first.domain.interval), above=-first.above)
        case "abs", [True]:
            return replace(_spanning(first, first.domain.interval.abs()), above=abs(first.above))
        case "mul", [True, False] | [False, True] if _are_times_numbers(args):
            duration, factor = args if durations[0] else reversed(args)
            return _stretch(duration, factor)
        case "truediv", [True, False] if _are_times_numbers(args):
            return _shorten(first, args[1])
        case "truediv", [True, True]:
            seconds = [_in_seconds(value) for value in args]
            return _Numbers(Domain(FLOAT64), *_quotient(*seconds), _null(args), 2)
        case _:
            raise _no_rule(operation, args)


def _are_times_numbers(args: Sequence[_Numbers]) -> bool:
    """Whether those that are no durations are numbers."""
    return all(value.dtype.name == "Duration" or not value.dtype.is_temporal for value in args)


def _no_rule(operation: Operation, args: Sequence[_Numbers]) -> UnsupportedOperation:
    types = " and ".join(str(value.dtype) for value in args)
    return UnsupportedOperation(
        f"{operation.name} is not possible with a result of type {types}",
        remedy=_FROM_TABLE,
    )


def _spanning(value: _Numbers, known: Interval) -> _Numbers:
    return replace(value, domain=replace(value.domain, interval=known))


def _shift(a: _Numbers, b: _Numbers, sign: int) -> _Numbers:
    """A sum or difference, in the coarser of two units as in Polars."""
    dtype = sum_type(a.dtype, b.dtype, sign)
    unit = working_unit(a.dtype, b.dtype, dtype)
    first, second = (_in_unit(value, unit) for value in (a, b))
    known = counted_interval(a.domain, unit), counted_interval(b.domain, unit)
    total = known[0] + known[1] if sign > 0 else known[0] - known[1]
    above = first + second * sign
    if dtype == DATE:
        per = units_per_day(unit)
        above, total = above // per, total.increasing(lambda end: Fraction(end // per))
    below = _ones(above)
    return _Numbers(Domain(dtype, interval=total), above, below, _null([a, b]))


def _in_unit(value: _Numbers, unit: str) -> Integers:
    """Numbers of a unit: a Datetime is floored, a Duration is cut towards zero, as in Polars."""
    times, divisor = unit_ratio(value.dtype, unit)
    numbers = value.above * times
    return _towards_zero(numbers, divisor) if value.dtype.name == "Duration" else numbers // divisor


def _in_seconds(value: _Numbers) -> _Numbers:
    return replace(value, below=value.below * value.dtype.units_per_second)


def _stretch(duration: _Numbers, factor: _Numbers) -> _Numbers:
    known = duration.domain.interval * _outside(factor)
    above, below = duration.above * factor.above, factor.below
    null = _null([duration, factor]) | below.is_zero
    return _cut(duration, above, below, null, known)


def _shorten(duration: _Numbers, divisor: _Numbers) -> _Numbers:
    """A duration divided by a whole number is floored, as in Polars, and else cut towards zero."""
    known = quotient(duration.domain.interval, _outside(divisor), divisor.is_whole)
    above, below = _quotient(duration, divisor)
    null = _null([duration, divisor]) | below.is_zero
    if not divisor.is_whole:
        return _cut(duration, above, below, null, known)
    floors = above // choose(below.is_zero, 1, below)
    floored = known.increasing(lambda end: Fraction(math.floor(end)))
    ones = _ones(floors)
    return replace(_spanning(duration, floored), above=floors, below=ones, null=null)


def _outside(value: _Numbers) -> Interval:
    """Where a number lies, without the rounding of floats."""
    known = value.domain.interval
    return known if value.is_whole or known.is_point else known.widen()


def _cut(
    duration: _Numbers, above: Integers, below: Integers, null: Bools, known: Interval
) -> _Numbers:
    below = choose(below.is_zero, 1, below)
    cut = _towards_zero(above, below)
    ones = _ones(cut)
    return replace(_spanning(duration, known), above=cut, below=ones, null=null)
