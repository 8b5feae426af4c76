"""Values looked up in a table of constants."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import FLOAT64, STRING, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.core.tree import Tree, identity
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.broadcast import unordered
from dpframe.rows.cast import cast_domain, cast_expression
from dpframe.rows.constants import constant, constant_type, constant_words, constants
from dpframe.rows.given import Operand, Values
from dpframe.rows.given import constant as given_constant
from dpframe.rows.keys import keyed
from dpframe.rows.literal import literal_lower, physical
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.polars_dtypes import to_polars
from dpframe.rows.supertype import convert, converted, merged, supertype
from dpframe.rows.written_dtypes import read_dtype_expression

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
    """Refuse old values that cannot be compared with the column, or that repeat."""
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


OPERATIONS: tuple[Kind, ...] = (Replace, ReplaceStrict)
