"""Membership in a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, cast

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.tree import Options
from dpframe.rows.comparable import comparable
from dpframe.rows.operands import boolean
from dpframe.rows.operation import Namespace, RowOperation

_Closed: TypeAlias = Literal["left", "right", "both", "none"]


class IsBetween(RowOperation):
    name = "is_between"
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

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        comparable(args, ordered=True)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        common = comparable(domains, ordered=True)
        value, lo, hi = (common.lower(e, d.dtype) for e, d in zip(args, domains, strict=True))
        return value.is_between(lo, hi, closed=_closed(options))

    def words(self, args: Sequence[str], options: Options) -> str:
        closed = _closed(options)
        how = "" if closed == "both" else f', closed="{closed}"'
        return f"{args[0]}.is_between({args[1]}, {args[2]}{how})"


def _closed(options: Options) -> _Closed:
    return cast("_Closed", options.get("closed", "both"))


OPERATIONS: tuple[RowOperation, ...] = (IsBetween(),)
