"""Numbers sorted into named bins.

Lowered to comparisons: the codes that Polars' own `cut` yields depend on the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, enum_type
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.given import Operand, Reader
from dpframe.rows.ipc import read_ipc
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.polars_dtypes import to_polars
from dpframe.rows.quoted import quoted


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


OPERATIONS: tuple[Kind, ...] = (Cut,)
READERS: Mapping[str, Reader] = {"Bin": read_bins}
