"""Values looked up among constants: membership in a list, replacements, and bins."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from dpframe.core.dtypes import (
    BOOLEAN,
    FLOAT64,
    INT64,
    INT128,
    NULL,
    STRING,
    Domain,
    DType,
    Scalar,
    enum_type,
)
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.core.parameters import Listed
from dpframe.core.tree import Literal, Tree, identity
from dpframe.core.units import EVERYWHERE
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.cast import cast_domain, cast_expression
from dpframe.rows.comparison import comparable
from dpframe.rows.constants import (
    constant,
    constant_type,
    constant_words,
    constants,
    literal_lower,
    physical,
)
from dpframe.rows.layouts import unordered
from dpframe.rows.logic import When
from dpframe.rows.nested import ListContains
from dpframe.rows.nulls import IsNotNull
from dpframe.rows.operands import as_type, boolean, convert, converted, merged, supertype
from dpframe.rows.operation import (
    Kind,
    Namespace,
    Operand,
    ParametricOperation,
    Reader,
    Values,
    operation,
    quoted,
)
from dpframe.rows.operation import constant as given_constant
from dpframe.rows.polars_dtypes import read_dtype_expression, read_ipc, to_polars

# Constants looked up by equality, for `is_in` and `replace`.


@dataclass(frozen=True, slots=True)
class Keyed:
    """An operand and constants in one type in which equal values are equal keys.

    The constants are those that are not null, in their order. Moments are keyed by whole counts
    of units, whole numbers separately, other numbers by floats.
    """

    operand: pl.Expr
    dtype: DType
    keys: tuple[bool | int | float | str, ...]

    @property
    def series(self) -> pl.Series:
        return pl.Series(list(self.keys), dtype=to_polars(self.dtype))

    def found(self, ns: Namespace) -> pl.Expr:
        """Whether the operand is one of the keys; null where the operand is."""
        return self.operand.is_in(ns.lit(self.series).implode())


def keyed(expression: pl.Expr, domain: Domain, values: tuple[Scalar, ...]) -> Keyed:
    """The operand and its constants as keys. Raises `UnsupportedOperation` when the constants
    cannot be compared with the operand.
    """
    common = comparable([domain, *constants(values)], ordered=False)
    if domain.dtype.name == "Null":
        return Keyed(as_type(expression, BOOLEAN), BOOLEAN, ())  # always null: nothing is found
    present = [v for v in values if v is not None]
    source, dtype = domain.dtype, common.dtype
    if source.is_temporal:
        kind = "Datetime" if source.name == "Date" else source.name
        count = DType(kind, unit=common.unit) if common.unit else source
        numbers = [physical(v, count) for v in present]
        keys = tuple(int(n) for n in numbers if n is not None)
        if common.unit is not None:
            return Keyed(common.lower(expression, source), INT128, keys)
        return Keyed(as_type(expression, INT64), INT64, keys)
    if dtype.is_text:
        return Keyed(as_type(expression, STRING), STRING, tuple(str(v) for v in present))
    if dtype.is_boolean:
        return Keyed(as_type(expression, BOOLEAN), BOOLEAN, tuple(bool(v) for v in present))
    if dtype.is_integer:
        wide = INT128 if dtype.name in ("UInt64", "Int128") else INT64
        return Keyed(as_type(expression, wide), wide, tuple(map(_whole, present)))
    return Keyed(as_type(expression, FLOAT64), FLOAT64, tuple(map(_real, present)))


def _whole(value: Scalar) -> int:
    assert isinstance(value, int)
    return int(value)


def _real(value: Scalar) -> float:
    assert isinstance(value, (int, float, Decimal))
    return float(value)


# Membership in a list of constants.


@operation
class IsIn(ParametricOperation):
    name = "is_in"
    reads = ("Boolean.IsIn",)
    engines = EVERYWHERE
    summary = (
        "Whether a value is one of a list. Null is null, unless nulls_equal; a null in the list "
        "matches null only."
    )
    examples = (
        'pl.col("i64").is_in([1, 2, 3])',
        'pl.col("u64").is_in([0, 2**63 - 1])',
        'pl.col("i64").is_in([1, None])',
        'pl.col("i64").is_in([1, None], nulls_equal=True)',
        'pl.col("i32").is_in([7], nulls_equal=True)',
        'pl.col("f64").is_in([0.5, float("nan")])',
        'pl.col("s").is_in(["a", "", "é"])',
        'pl.col("e").is_in(["a", "c"])',
        'pl.col("b").is_in([True])',
        'pl.col("d").is_in([date(2020, 2, 29), date(1970, 1, 1)])',
        'pl.col("dt").is_in([datetime(1970, 1, 1)])',
        'pl.col("dt").is_in([date(1970, 1, 1), date(2024, 2, 29)])',
        'pl.col("d").is_in([datetime(1970, 1, 1), datetime(2024, 2, 29, 12)])',
    )
    values: tuple[Scalar, ...]
    nulls_equal: bool

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        nulls_equal = bool(params["nulls_equal"])
        if not isinstance(given, Values):
            return _in_list(source, given, nulls_equal)
        values = _as_set(given.values)
        if given.parameter is not None:
            values = Listed.of(values, given.parameter)
        return cls(values, nulls_equal).of(source)

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable([args[0], *constants(self.values)], ordered=False)
        return boolean(nullable=args[0].nullable and not self.nulls_equal)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        found = keyed(args[0], domains[0], self.values).found(ns)
        return found.fill_null(None in self.values) if self.nulls_equal else found

    def words(self, args: Sequence[str]) -> str:
        more = ", nulls_equal=True" if self.nulls_equal else ""
        shown = constant_words(self.values)
        listed = shown if isinstance(self.values, Listed) else f"[{shown}]"
        return f"{args[0]}.is_in({listed}{more})"


def _in_list(source: Operand, given: Operand, nulls_equal: bool) -> Tree:
    """Whether a value is in the list of its own row."""
    if isinstance(given, Literal):
        raise UnsupportedOperation(
            "is_in needs a list of constants, or a list column",
            remedy="write the values in a list: .is_in([1, 2])",
        )
    found = ListContains().of(given, source)
    if nulls_equal:
        return found
    return When().of(IsNotNull().of(source), found, Literal(None, NULL))


def _as_set(values: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """The values sorted and each once: a Python set has no order that a plan could keep."""
    given: set[Any] = {value for value in values if value is not None}
    nan = [value for value in given if value != value][:1]
    null = [None] if None in values else []
    return (*sorted(value for value in given if value == value), *nan, *null)


# Values looked up in a table of constants.

Table: TypeAlias = "tuple[tuple[Scalar, Scalar], ...]"
"""Old values and what comes in their place."""


@operation
class Replace(ParametricOperation):
    name = "replace"
    reads = ("Replace",)
    engines = EVERYWHERE
    summary = "Listed values replaced, all others kept; the type stays the column's."
    examples = (
        'pl.col("i64").replace([1, 2], [10, 20])',
        'pl.col("i8").replace({0: 1, -1: None})',
        'pl.col("u64").replace(0, 7)',
        'pl.col("i64").replace([None, 0], [0, 1])',
        'pl.col("f64").replace([0.0, float("nan")], [1.0, 2.0])',
        'pl.col("f32").replace(1, 0.5)',
        'pl.col("s").replace({"a": "A", "": None})',
        'pl.col("e").replace("a", "b")',
        'pl.col("b").replace(True, False)',
        'pl.col("d").replace(date(1970, 1, 1), date(2000, 1, 1))',
        'pl.col("dtms").replace(datetime(1970, 1, 1), None)',
    )
    old: tuple[Scalar, ...]
    new: tuple[Scalar, ...]

    def check(self) -> None:
        _check_table(self.old, self.new)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        return cls(*_pairs(operands, cls.name)).of(operands[0])

    def domain(self, args: Sequence[Domain]) -> Domain:
        old, new = self.old, self.new
        result = _result(args[0])
        for value in new:
            _require_fit(value, result.dtype)
        _check_keys(args[0], old)
        kept = _kept(result, old)
        return replace(
            result,
            interval=_replaced_interval(result, new),
            nullable=None in new or (result.nullable and None not in old),
            nan=any(map(_is_nan, new)) or (result.nan and not any(map(_is_nan, old))),
            categories=None if kept is None else _once(kept, [v for v in new if v is not None]),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = _result(domains[0]).dtype
        otherwise = as_type(args[0], dtype)
        return _looked_up(
            ns, args[0], domains[0], tuple(zip(self.old, self.new, strict=True)), dtype, otherwise
        )

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.replace([{constant_words(self.old)}], [{constant_words(self.new)}])"


@operation
class ReplaceStrict(ParametricOperation):
    name = "replace_strict"
    reads = ("ReplaceStrict",)
    engines = EVERYWHERE
    summary = "Listed values replaced, all others by a default, which is required."
    examples = (
        'pl.col("i64").replace_strict([1, 2], ["one", "two"], default="many")',
        'pl.col("i64").replace_strict([1, None], [1.5, 2.5], default=pl.col("f64"))',
        'pl.col("s").replace_strict({"a": 1, "b": 2}, default=0)',
        'pl.col("s").replace_strict({"a": 1, "b": 2}, default=None, return_dtype=pl.Int8)',
        'pl.col("e").replace_strict({"a": 1, "b": 2, "c": 3}, default=0)',
        'pl.col("e").replace_strict(["a"], ["x"], default=pl.col("e"))',
        'pl.col("b").replace_strict({True: 1, False: -1}, default=0)',
        'pl.col("f64").replace_strict([float("nan"), 0.0], [0, 1], default=pl.col("i64"))',
        'pl.col("d").replace_strict([date(1970, 1, 1)], [True], default=False)',
        'pl.col("s").replace_strict(["a"], ["b"], default="a", return_dtype=pl.Enum(["a", "b"]))',
        'pl.col("dt").replace_strict([datetime(1970, 1, 1)], [0], default=pl.col("u64"))',
    )
    old: tuple[Scalar, ...]
    new: tuple[Scalar, ...]
    dtype: DType | None

    def check(self) -> None:
        _check_table(self.old, self.new)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        if len(operands) < 4:
            raise UnsupportedOperation(
                "replace_strict needs a default",
                why="without one, a value that is not listed would make the query fail",
                remedy="add default=None, which makes values null that are not listed",
            )
        node = params.get("return_dtype") if isinstance(params, Mapping) else None
        dtype = None if node is None else read_dtype_expression(node)
        return cls(*_pairs(operands, cls.name), dtype).of(operands[0], operands[3])

    def domain(self, args: Sequence[Domain]) -> Domain:
        old, new = self.old, self.new
        _check_keys(args[0], old)
        given = constants(new)
        result = merged([*given, args[1]])
        if given and _covers(args[0], old):
            parts = [converted(d, result.dtype) for d in given if d.dtype.name != "Null"]
            result = replace(merged(parts), nullable=None in new) if parts else result
        return result if self.dtype is None else cast_domain(result, self.dtype)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype([*constants(self.new), domains[1]])
        if dtype.name == "Null":
            result: pl.Expr = ns.lit(None)
        else:
            otherwise = convert(args[1], domains[1], dtype)
            result = _looked_up(
                ns,
                args[0],
                domains[0],
                tuple(zip(self.old, self.new, strict=True)),
                dtype,
                otherwise,
            )
        return result if self.dtype is None else cast_expression(ns, result, dtype, self.dtype)

    def words(self, args: Sequence[str]) -> str:
        return (
            f"{args[0]}.replace_strict([{constant_words(self.old)}], [{constant_words(self.new)}], "
            f"default={args[1]}{'' if self.dtype is None else f', return_dtype={self.dtype}'})"
        )


def _pairs(operands: Sequence[Operand], name: str) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """The old and new values of a replacement, one new value for each old one."""
    old = _listed(operands[1], f"the old values of {name}")
    new = _listed(operands[2], f"the new values of {name}")
    if len(new) == 1:
        new = new * len(old)
    return old, new


def _listed(value: Operand, what: str) -> tuple[Scalar, ...]:
    return value.values if isinstance(value, Values) else (given_constant(value, what),)


def _check_table(old: tuple[Scalar, ...], new: tuple[Scalar, ...]) -> None:
    if len(old) != len(new):
        raise InvalidBounds(
            f"there are {len(old)} old and {len(new)} new values",
            remedy=("write one new value for each old value", "write one new value for all"),
        )
    _require_distinct([identity(value) for value in old])


def _require_distinct(keys: Sequence[Hashable]) -> None:
    if len(set(keys)) < len(keys):
        raise InvalidBounds("an old value is listed twice", remedy="list each old value once")


def _result(domain: Domain) -> Domain:
    """The facts about a column whose values are replaced; a Categorical becomes text."""
    return replace(domain, dtype=STRING) if domain.dtype.name == "Categorical" else domain


def _check_keys(domain: Domain, old: tuple[Scalar, ...]) -> None:
    """Refuse old values that cannot be compared with the column, that no value of it equals where
    Polars rounds them to one, or that repeat.
    """
    if domain.dtype.name == "Float32":
        for value in old:
            if isinstance(value, float) and not _fits(value, domain.dtype):
                shown = constant_words(value)
                raise UnsupportedOperation(
                    f"the old value {shown} is not a Float32, so no value equals it",
                    remedy="compare with the nearest Float32, as Polars does: "
                    f"pl.when(column == {shown}).then(...).otherwise(...)",
                )
    _require_distinct([repr(key) for key in keyed(pl.lit(None), domain, old).keys])


def _is_nan(value: Scalar) -> bool:
    return isinstance(value, float) and value != value


def _kept(domain: Domain, old: tuple[Scalar, ...]) -> tuple[Scalar, ...] | None:
    if domain.categories is None:
        return None
    return tuple(c for c in domain.categories if c not in old)


def _once(kept: tuple[Scalar, ...], new: list[Scalar]) -> tuple[Scalar, ...]:
    return tuple(dict.fromkeys([*kept, *new]))


def _covers(domain: Domain, old: tuple[Scalar, ...]) -> bool:
    """Whether every value that the operand can have is listed."""
    if domain.categories is None or (domain.nullable and None not in old):
        return False
    return not domain.nan and all(c in old for c in domain.categories)


def _require_fit(value: Scalar, dtype: DType) -> None:
    """Refuse a new value that the column's type cannot hold exactly."""
    if value is not None and not _fits(value, dtype):
        raise UnsupportedOperation(
            f"the new value {constant_words(value)} is not a {dtype}",
            remedy="write .replace_strict(old, new, default=None), which makes values null that "
            "are not listed",
        )


def _fits(value: Scalar, dtype: DType) -> bool:
    kind = constant_type(value)
    if dtype.is_boolean or kind.is_boolean:
        return dtype == kind
    if dtype.is_integer and dtype.limits is not None and isinstance(value, int):
        return dtype.limits[0] <= value <= dtype.limits[1]
    if dtype.is_float and isinstance(value, (int, float)):
        return dtype == FLOAT64 or _is_float32(float(value))
    if dtype.name == "Enum":
        return value in (dtype.categories or ())
    if dtype.is_temporal:
        if kind.name != dtype.name or (kind.zone is None) != (dtype.zone is None):
            return False
        number = physical(value, dtype)
        return number is not None and number.denominator == 1 and abs(number) < 2**63
    return dtype == kind


def _replaced_interval(domain: Domain, new: Sequence[Scalar]) -> Interval:
    known = domain.interval
    for value in new:
        number = physical(value, domain.dtype)
        if number is not None:
            known = known.hull(Interval(number, number))
        elif isinstance(value, float) and value == value:  # an infinity
            known = EVERYTHING
    return known


def _is_float32(value: float) -> bool:
    return value != value or float(np.float32(value)) == value


def _looked_up(
    ns: Namespace,
    expression: pl.Expr,
    domain: Domain,
    table: Table,
    dtype: DType,
    otherwise: pl.Expr,
) -> pl.Expr:
    """The new value where the operand is an old one, else `otherwise`."""
    pairs = [(o, n) for o, n in table if o is not None]
    if domain.dtype.name == "Null":
        pairs = []
    result = otherwise
    if pairs:
        lookup = keyed(expression, domain, tuple(o for o, _ in pairs))
        operand = unordered(ns, lookup.operand)  # Polars finds no NaN in a sorted column
        mapped = operand.replace_strict(
            lookup.series,
            _series([n for _, n in pairs], dtype),
            default=None,
            return_dtype=to_polars(dtype),
        )
        if any(n is None for _, n in pairs):
            result = ns.when(lookup.found(ns)).then(mapped).otherwise(otherwise)
        else:
            result = mapped.fill_null(otherwise)
    if any(o is None for o, _ in table):
        new = next(n for o, n in table if o is None)
        substitute = as_type(literal_lower(constant(new), ns), dtype)
        result = ns.when(expression.is_null()).then(substitute).otherwise(result)
    return as_type(result, dtype)


def _series(values: list[Scalar], dtype: DType) -> pl.Series:
    """Constants as a column of the type that was found to hold them."""
    if dtype.is_temporal:
        numbers = [None if v is None else physical(v, dtype) for v in values]
        counts = [None if n is None else int(n) for n in numbers]
        return pl.Series(counts, dtype=pl.Int64).cast(to_polars(dtype))
    return pl.Series([_as_value(v, dtype) for v in values], dtype=to_polars(dtype))


def _as_value(value: Scalar, dtype: DType) -> Scalar:
    if value is None or isinstance(value, str):
        return value
    if dtype.is_float:
        return float(value)  # type: ignore[arg-type]
    return int(value) if dtype.is_integer else value  # type: ignore[arg-type]


# Numbers sorted into named bins.
#
# Lowered to comparisons: the codes that Polars' own `cut` yields depend on the order of the rows.


@operation
class Cut(ParametricOperation):
    """Bins (-inf, b0], (b0, b1], ..., (bn, inf); `left_closed` moves each break to the bin above.

    Null and NaN are in no bin: they become null. Values are compared as Float64, as Polars does.
    """

    name = "cut"
    reads = ("Cut",)
    engines = EVERYWHERE
    summary = "The bin that a number falls in, as an Enum; null for null and NaN."
    examples = (
        'pl.col("i64").cut([0, 10], labels=["low", "mid", "high"])',
        'pl.col("f64").cut([-1.5, 0, 2], labels=["a", "b", "c", "d"], left_closed=True)',
        'pl.col("u8").cut([100], labels=["small", "large"])',
    )
    breaks: tuple[float, ...]
    labels: tuple[str, ...]
    left_closed: bool

    def check(self) -> None:
        if not all(a < b for a, b in pairwise(_numbers(self.breaks))):
            raise InvalidBounds(
                "the breaks do not increase", remedy="write each break once, the smallest first"
            )
        bins = len(self.breaks) + 1
        if len(self.labels) != bins or len(set(self.labels)) != bins:
            raise InvalidBounds(
                f"{bins} bins need {bins} different labels, and there are {len(set(self.labels))}",
                remedy=f"write labels=[...] with {bins} different labels",
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        if params["include_breaks"]:
            raise _struct_result("cut with include_breaks=True")
        breaks = _numbers(params["breaks"])
        left_closed = bool(params["left_closed"])
        given = params["labels"]
        labels = interval_labels(breaks, left_closed) if given is None else tuple(given)
        return cls(breaks, labels, left_closed).of(operands[0])

    def domain(self, args: Sequence[Domain]) -> Domain:
        if not args[0].dtype.is_numeric:
            raise UnsupportedOperation(
                f"cut sorts numbers into bins, not {args[0].dtype}",
                remedy="make a number first, for example with .dt.year() or .cast(pl.Int64)",
            )
        nullable = args[0].nullable or args[0].nan
        return Domain(enum_type(self.labels), nullable=nullable, categories=self.labels)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        value = as_type(args[0], FLOAT64)
        names = [ns.lit(label, dtype=to_polars(enum_type(self.labels))) for label in self.labels]
        ends = [ns.lit(float(b), dtype=pl.Float64) for b in self.breaks]
        below = [value < end if self.left_closed else value <= end for end in ends]
        missing = value.is_null() | value.is_nan()
        expression: pl.Expr = ns.when(~missing).then(_search(ns, names, below))
        return expression

    def words(self, args: Sequence[str]) -> str:
        breaks = ", ".join(str(b).removesuffix(".0") for b in self.breaks)
        labels = ", ".join(quoted(label) for label in self.labels)
        closed = ", left_closed=True" if self.left_closed else ""
        return f"{args[0]}.cut([{breaks}], labels=[{labels}]{closed})"


def _search(ns: Namespace, names: Sequence[pl.Expr], below: Sequence[pl.Expr]) -> pl.Expr:
    """The name of the first bin that the value is below the end of, by bisection."""
    if not below:
        return names[0]
    middle = len(below) // 2
    lower = _search(ns, names[: middle + 1], below[:middle])
    upper = _search(ns, names[middle + 1 :], below[middle + 1 :])
    expression: pl.Expr = ns.when(below[middle]).then(lower).otherwise(upper)
    return expression


def _numbers(given: Sequence[Any]) -> tuple[float, ...]:
    try:
        breaks = tuple(float(b) for b in given)
    except (TypeError, ValueError, OverflowError):
        breaks = (math.nan,)
    if not all(map(math.isfinite, breaks)):
        raise InvalidBounds(
            "a break is not a finite number",
            remedy="leave it out: the first bin begins at -inf, and the last ends at inf",
        )
    return breaks


def read_bins(operands: Sequence[Operand], params: Any) -> Tree:
    """`bin_intervals` with explicit breakpoints."""
    [(method, body)] = params["method"].items()
    if method != "Intervals" or "Breaks" not in body["spec"]:
        raise UnsupportedOperation(
            f"bin_{method.lower()} with bins that are derived from the data is not supported",
            remedy="write .cut([10, 20], labels=[...]) with breaks that you choose",
        )
    if params["include_intervals"]:
        raise _struct_result("bin_intervals with include_intervals=True")
    if not params["labels"]:
        raise UnsupportedOperation(
            "bin_intervals without labels is not supported",
            remedy="write labels=[...] with one label for each bin",
        )
    breaks = _numbers(read_ipc(body["spec"]["Breaks"]).to_list())
    return Cut(breaks, tuple(params["labels"]), not body["right_closed"]).of(operands[0])


def _struct_result(what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{what} is not supported", remedy="leave it out, and write labels=[...]"
    )


def interval_labels(breaks: Sequence[float], left_closed: bool) -> tuple[str, ...]:
    """The labels that `cut` makes up, such as ``(-inf, 1]``."""
    ends = ["-inf", *map(_shown, breaks), "inf"]
    opening, closing = ("[", ")") if left_closed else ("(", "]")
    return tuple(f"{opening}{a}, {b}{closing}" for a, b in pairwise(ends))


def _shown(value: float) -> str:
    """A float as Rust prints it: the shortest digits, never with an exponent."""
    shown = format(Decimal(repr(value)), "f")
    return shown.removesuffix(".0")


OPERATIONS: tuple[Kind, ...] = (
    IsIn,
    *(Replace, ReplaceStrict),
    Cut,
)
READERS: Mapping[str, Reader] = {
    "Bin": read_bins,
}
