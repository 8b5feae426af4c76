"""Values looked up among constants: membership in a list, replacements and bins."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

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
from dpframe.rows.arithmetic import Add, Mul, Sub, TrueDiv
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
from dpframe.rows.logic import IsNotNull, When
from dpframe.rows.nested import ListContains
from dpframe.rows.operands import as_type, boolean, convert, converted, merged, supertype, when
from dpframe.rows.operation import (
    Infix,
    Namespace,
    Node,
    Operand,
    Reader,
    RowMethod,
    Values,
    operation,
    quoted,
    snake,
    spell_out,
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
        """The keys as a column."""
        return pl.Series(list(self.keys), dtype=to_polars(self.dtype))

    def found(self, ns: Namespace) -> pl.Expr:
        """Whether the operand is one of the keys; null where the operand is."""
        return self.operand.is_in(ns.lit(self.series).implode())


def keyed(expression: pl.Expr, domain: Domain, values: tuple[Scalar, ...]) -> Keyed:
    """The operand and its constants as keys; refused where the two cannot be compared."""
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
        whole = tuple(int(v) for v in present if isinstance(v, int))
        return Keyed(as_type(expression, wide), wide, whole)
    real = tuple(float(v) for v in present if isinstance(v, (int, float, Decimal)))
    return Keyed(as_type(expression, FLOAT64), FLOAT64, real)


# Membership in a list of constants.


@operation
class IsIn(RowMethod):
    """Whether a value is one of a list. Null is null, unless nulls_equal; a null in the list
    matches null only.
    """

    groups = ("Boolean",)
    engines = EVERYWHERE
    examples = spell_out(
        "i64.is_in([1, 2, 3]); u64.is_in([0, 2**63 - 1]); i64.is_in([1, None]); "
        "i64.is_in([1, None], nulls_equal=True); i32.is_in([7], nulls_equal=True); "
        'f64.is_in([0.5, float("nan")]); s.is_in(["a", "", "é"]); e.is_in(["a", "c"]); '
        "b.is_in([True]); d.is_in([date(2020, 2, 29), date(1970, 1, 1)]); "
        "dt.is_in([datetime(1970, 1, 1)]); dt.is_in([date(1970, 1, 1), date(2024, 2, 29)]); "
        "d.is_in([datetime(1970, 1, 1), datetime(2024, 2, 29, 12)])"
    )
    values: tuple[Scalar, ...]
    nulls_equal: bool

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        source, given = operands
        nulls_equal = bool(params["nulls_equal"])
        if isinstance(given, Literal):
            raise UnsupportedOperation(
                "is_in needs a list of constants, or a list column",
                remedy="write the values in a list: .is_in([1, 2])",
            )
        if not isinstance(given, Values):  # whether a value is in the list of its own row
            is_listed = ListContains().of(given, source)
            if nulls_equal:
                return is_listed
            return When().of(IsNotNull().of(source), is_listed, Literal(None, NULL))
        # Sorted, and each once: a Python set has no order that a plan could keep.
        distinct: set[Any] = {value for value in given.values if value is not None}
        nan = [value for value in distinct if value != value][:1]
        null = [None] if None in given.values else []
        values = (*sorted(value for value in distinct if value == value), *nan, *null)
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
        shown = constant_words(self.values)
        shown = shown if isinstance(self.values, Listed) else f"[{shown}]"
        return f"{args[0]}.is_in({shown}{', nulls_equal=True' if self.nulls_equal else ''})"


# Values looked up in a table of constants.


@operation
class Lookup(RowMethod):
    """Values in place of others, by a table of constants."""

    old: tuple[Scalar, ...]
    new: tuple[Scalar, ...]

    def check(self) -> None:
        if len(self.old) != len(self.new):
            raise InvalidBounds(
                f"there are {len(self.old)} old and {len(self.new)} new values",
                remedy=("write one new value for each old value", "write one new value for all"),
            )
        _require_distinct([identity(value) for value in self.old])

    @classmethod
    def table(cls, operands: Sequence[Operand]) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
        """The old and new values, one new value for each old one."""
        old, new = (
            value.values
            if isinstance(value, Values)
            else (given_constant(value, f"the {which} values of {cls.name}"),)
            for which, value in zip(("old", "new"), operands[1:3], strict=True)
        )
        return old, new * len(old) if len(new) == 1 else new

    def require_keys(self, domain: Domain) -> None:
        """Refuse old values that cannot be compared with the column, that no value of it equals
        where Polars rounds them to one, or that repeat.
        """
        if domain.dtype.name == "Float32":
            for value in self.old:
                if isinstance(value, float) and not _fits(value, domain.dtype):
                    shown = constant_words(value)
                    raise UnsupportedOperation(
                        f"the old value {shown} is not a Float32, so no value equals it",
                        remedy="compare with the nearest Float32, as Polars does: "
                        f"pl.when(column == {shown}).then(...).otherwise(...)",
                    )
        _require_distinct([repr(key) for key in keyed(pl.lit(None), domain, self.old).keys])

    def look_up(
        self,
        ns: Namespace,
        expression: pl.Expr,
        domain: Domain,
        dtype: DType,
        otherwise: pl.Expr,
    ) -> pl.Expr:
        """The new value where the operand is an old one, else `otherwise`."""
        table = tuple(zip(self.old, self.new, strict=True))
        pairs = [] if domain.dtype.name == "Null" else [(o, n) for o, n in table if o is not None]
        result = otherwise
        if pairs:
            keys = keyed(expression, domain, tuple(o for o, _ in pairs))
            operand = unordered(ns, keys.operand)  # Polars finds no NaN in a sorted column
            mapped = operand.replace_strict(
                keys.series,
                _series([n for _, n in pairs], dtype),
                default=None,
                return_dtype=to_polars(dtype),
            )
            if any(n is None for _, n in pairs):
                result = when(ns, keys.found(ns), mapped, otherwise)
            else:
                result = mapped.fill_null(otherwise)
        if any(o is None for o, _ in table):
            new = next(n for o, n in table if o is None)
            substitute = as_type(literal_lower(constant(new), ns), dtype)
            result = when(ns, expression.is_null(), substitute, result)
        return as_type(result, dtype)


@operation
class Replace(Lookup):
    """Listed values replaced, all others kept; the type stays the column's."""

    engines = EVERYWHERE
    examples = spell_out(
        "i64.replace([1, 2], [10, 20]); i8.replace({0: 1, -1: None}); u64.replace(0, 7); "
        'i64.replace([None, 0], [0, 1]); f64.replace([0.0, float("nan")], [1.0, 2.0]); '
        'f32.replace(1, 0.5); s.replace({"a": "A", "": None}); e.replace("a", "b"); '
        "b.replace(True, False); d.replace(date(1970, 1, 1), date(2000, 1, 1)); "
        "dtms.replace(datetime(1970, 1, 1), None)"
    )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        return cls(*cls.table(operands)).of(operands[0])

    def domain(self, args: Sequence[Domain]) -> Domain:
        old, new, result = self.old, self.new, _result(args[0])
        known, categories = result.interval, result.categories
        for value in new:
            if value is not None and not _fits(value, result.dtype):
                raise UnsupportedOperation(
                    f"the new value {constant_words(value)} is not a {result.dtype}",
                    remedy="write .replace_strict(old, new, default=None), which makes values null "
                    "that are not listed",
                )
            if result.dtype.is_float and isinstance(value, int):
                number = physical(float(value), result.dtype)  # rounded as `_series` does
            else:
                number = physical(value, result.dtype)
            if number is not None:
                known = known.hull(Interval(number, number))
            elif isinstance(value, float) and not _is_nan(value):  # an infinity
                known = EVERYTHING
        self.require_keys(args[0])
        if categories is not None:
            others = [v for v in categories if v not in old]
            categories = tuple(dict.fromkeys([*others, *(v for v in new if v is not None)]))
        return replace(
            result,
            interval=known,
            nullable=None in new or (result.nullable and None not in old),
            nan=any(map(_is_nan, new)) or (result.nan and not any(map(_is_nan, old))),
            categories=categories,
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = _result(domains[0]).dtype
        return self.look_up(ns, args[0], domains[0], dtype, as_type(args[0], dtype))

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.replace([{constant_words(self.old)}], [{constant_words(self.new)}])"


@operation
class ReplaceStrict(Lookup):
    """Listed values replaced, all others by a default, which is required."""

    engines = EVERYWHERE
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
    dtype: DType | None

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        if len(operands) < 4:
            raise UnsupportedOperation(
                "replace_strict needs a default",
                why="without one, a value that is not listed would make the query fail",
                remedy="add default=None, which makes values null that are not listed",
            )
        node = params.get("return_dtype") if isinstance(params, Mapping) else None
        dtype = None if node is None else read_dtype_expression(node)
        return cls(*cls.table(operands), dtype).of(operands[0], operands[3])

    def domain(self, args: Sequence[Domain]) -> Domain:
        source, values = args[0], args[0].categories
        self.require_keys(source)
        new = constants(self.new)
        result = merged([*new, args[1]])
        all_listed = values is not None and not source.nan and all(v in self.old for v in values)
        if new and all_listed and (None in self.old or not source.nullable):
            parts = [converted(d, result.dtype) for d in new if d.dtype.name != "Null"]
            result = replace(merged(parts), nullable=None in self.new) if parts else result
        return result if self.dtype is None else cast_domain(result, self.dtype)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype([*constants(self.new), domains[1]])
        if dtype.name == "Null":
            result: pl.Expr = ns.lit(None)
        else:
            otherwise = convert(args[1], domains[1], dtype)
            result = self.look_up(ns, args[0], domains[0], dtype, otherwise)
        return result if self.dtype is None else cast_expression(ns, result, dtype, self.dtype)

    def words(self, args: Sequence[str]) -> str:
        return (
            f"{args[0]}.replace_strict([{constant_words(self.old)}], [{constant_words(self.new)}], "
            f"default={args[1]}{'' if self.dtype is None else f', return_dtype={self.dtype}'})"
        )


def _require_distinct(keys: Sequence[Hashable]) -> None:
    if len(set(keys)) < len(keys):
        raise InvalidBounds("an old value is listed twice", remedy="list each old value once")


def _result(domain: Domain) -> Domain:
    """The facts about a column whose values are replaced; a Categorical becomes text."""
    return replace(domain, dtype=STRING) if domain.dtype.name == "Categorical" else domain


def _is_nan(value: Scalar) -> bool:
    return isinstance(value, float) and value != value


def _fits(value: Scalar, dtype: DType) -> bool:
    kind = constant_type(value)
    if dtype.is_boolean or kind.is_boolean:
        return dtype == kind
    if dtype.is_integer and dtype.limits is not None and isinstance(value, int):
        return dtype.limits[0] <= value <= dtype.limits[1]
    if dtype.is_float and isinstance(value, (int, float)):
        return dtype == FLOAT64 or _is_nan(value) or float(np.float32(value)) == value
    if dtype.name == "Enum":
        return value in (dtype.categories or ())
    if dtype.is_temporal:
        if kind.name != dtype.name or (kind.zone is None) != (dtype.zone is None):
            return False
        number = physical(value, dtype)
        return number is not None and number.denominator == 1 and abs(number) < 2**63
    return dtype == kind


def _series(values: list[Scalar], dtype: DType) -> pl.Series:
    """Constants as a column of the type that was found to hold them."""
    if dtype.is_temporal:
        numbers = [None if v is None else physical(v, dtype) for v in values]
        counts = [None if n is None else int(n) for n in numbers]
        return pl.Series(counts, dtype=pl.Int64).cast(to_polars(dtype))
    kind: Any = float if dtype.is_float else int if dtype.is_integer else None
    plain = kind is None
    made = [v if plain or v is None or isinstance(v, str) else kind(v) for v in values]
    return pl.Series(made, dtype=to_polars(dtype))


# Numbers sorted into named bins.
#
# Lowered to comparisons: the codes that Polars' own `cut` yields depend on the order of the rows.


@operation
class Cut(RowMethod):
    """The bin that a number falls in, as an Enum; null for null and NaN.

    Bins (-inf, b0], (b0, b1], ..., (bn, inf); `left_closed` moves each break to the bin above.

    Null and NaN are in no bin: they become null. Values are compared as Float64, as Polars does.
    """

    engines = EVERYWHERE
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
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
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
        return when(ns, ~missing, _search(ns, names, below))

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
    return when(ns, below[middle], lower, upper)


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


def read_bins(operands: Sequence[Operand], params: Node) -> Tree:
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
    # As Rust prints floats: the shortest digits, never with an exponent.
    shown = [format(Decimal(repr(value)), "f").removesuffix(".0") for value in breaks]
    ends = ["-inf", *shown, "inf"]
    opening, closing = ("[", ")") if left_closed else ("(", "]")
    return tuple(f"{opening}{a}, {b}{closing}" for a, b in pairwise(ends))


# What `pl.sql_expr` makes of arithmetic and IN since Polars 2; earlier it made others' forms.
#
# Numbers are computed as everywhere here: not as decimals, and division by zero gives null.

_OPERATORS: Mapping[str, Infix] = {"Plus": Add(), "Minus": Sub(), "Mul": Mul(), "Div": TrueDiv()}


def read_sql(operands: Sequence[Operand], params: Node) -> Tree:
    """The operation of an operator of SQL."""
    kind, inner = next(iter(params.items())) if isinstance(params, Mapping) else (params, None)
    if kind == "IsIn":
        return IsIn.read(operands, inner)
    asked = str(inner if kind == "Binary" else kind)
    operation = _OPERATORS.get(asked)
    if operation is None:
        raise UnsupportedOperation(
            f"{snake(asked)} of SQL is not supported", remedy="use +, -, *, / and IN"
        )
    return operation.of(*operands)


OPERATIONS = (*(IsIn, Replace, ReplaceStrict, Cut),)
READERS: Mapping[str, Reader] = {"Bin": read_bins, "Sql": read_sql}
