"""Membership in a list of constants."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.rows.comparable import comparable
from dpframe.rows.constants import constant_words, constants
from dpframe.rows.keys import keyed
from dpframe.rows.operands import boolean
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation


@operation
class IsIn(ParametricOperation):
    name = "is_in"
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

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable([args[0], *constants(self.values)], ordered=False)
        return boolean(nullable=args[0].nullable and not self.nulls_equal)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        found = keyed(args[0], domains[0], self.values).found(ns)
        return found.fill_null(None in self.values) if self.nulls_equal else found

    def words(self, args: Sequence[str]) -> str:
        more = ", nulls_equal=True" if self.nulls_equal else ""
        return f"{args[0]}.is_in([{constant_words(self.values)}]{more})"


OPERATIONS: tuple[Kind, ...] = (IsIn,)
