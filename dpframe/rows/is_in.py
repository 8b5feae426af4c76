"""Membership in a list of constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import NULL
from dpframe.core.engines import EVERYWHERE
from dpframe.core.parameters import Listed
from dpframe.core.tree import Literal, Tree
from dpframe.errors import UnsupportedOperation
from dpframe.rows.comparable import comparable
from dpframe.rows.constants import constant_words, constants
from dpframe.rows.given import Operand, Values
from dpframe.rows.keys import keyed
from dpframe.rows.lists import ListContains
from dpframe.rows.null_checks import IsNotNull
from dpframe.rows.operands import boolean
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.when import When


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


OPERATIONS: tuple[Kind, ...] = (IsIn,)
