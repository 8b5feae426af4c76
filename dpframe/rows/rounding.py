"""Rounding to integers or to decimals. Integers stay as they are."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import Interval
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.forms import Method
from dpframe.rows.given import Operand
from dpframe.rows.operands import require_numbers, widen, widened
from dpframe.rows.operation import (
    Kind,
    Namespace,
    ParametricOperation,
    PlainOperation,
    operation,
)

_MOST_DECIMALS = 100
_BLUR = Fraction(1, 1 << 20)
"""By how much a product may be off, for floats of 32 bits too."""


class Rounding(Method):
    """A non-decreasing function of floats that leaves integers alone."""

    __slots__ = ()

    @abstractmethod
    def image(self, known: Interval) -> Interval:
        """Where rounded values lie."""

    def apply(self, expression: pl.Expr) -> pl.Expr:
        """The engine's function."""
        rounded: pl.Expr = getattr(expression, self.name)()
        return rounded

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("rounding", args)
        wide = widened(args[0])
        if wide.dtype != FLOAT64:
            return wide
        return Domain(
            wide.dtype,
            nullable=wide.nullable,
            nan=wide.nan,
            interval=self.image(wide.interval),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        wide = widen(args[0], domains[0])
        if widened(domains[0]).dtype != FLOAT64:
            return wide
        return self.apply(wide)


@operation
class Floor(Rounding, PlainOperation):
    name = "floor"
    reads = ("Floor",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "The largest integer that is not above."
    examples = ('pl.col("f64").floor()', 'pl.col("i32").floor()', 'pl.col("dec").floor()')

    def image(self, known: Interval) -> Interval:
        return known.increasing(lambda end: Fraction(math.floor(end)))


@operation
class Ceil(Rounding, PlainOperation):
    name = "ceil"
    reads = ("Ceil",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "The smallest integer that is not below."
    examples = ('pl.col("f64").ceil()', 'pl.col("u64").ceil()', 'pl.col("f32").ceil()')

    def image(self, known: Interval) -> Interval:
        return known.increasing(lambda end: Fraction(math.ceil(end)))


@operation
class Round(Rounding, ParametricOperation):
    name = "round"
    reads = ("Round",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Rounded to decimals, halves to the even neighbour."
    examples = (
        'pl.col("f64").round()',
        'pl.col("f64").round(2)',
        'pl.col("f32").round(1)',
        'pl.col("i64").round(2)',
        'pl.col("dec").round(1)',
    )
    decimals: int

    def check(self) -> None:
        if not 0 <= self.decimals <= _MOST_DECIMALS:
            raise InvalidBounds(
                f"rounding takes from 0 to {_MOST_DECIMALS} decimals",
                remedy="for tens or hundreds write (x / 100).round() * 100",
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        mode = params.get("mode", "HalfToEven")
        if mode != "HalfToEven":
            raise UnsupportedOperation(
                f"round with the mode {mode} is not supported",
                remedy='leave mode out: numbers are rounded with "half_to_even"',
            )
        return cls(int(params["decimals"])).of(*operands)

    def image(self, known: Interval) -> Interval:
        """Engines round the product with a power of ten, itself rounded: 2.675, which is a little
        less than that, becomes 2.68.
        """
        if not self.decimals:
            return known.increasing(lambda end: Fraction(round(end))).as_float()
        scale, half = 10**self.decimals, Fraction(1, 2)
        lo, hi = (None if end is None else end * scale for end in (known.lo, known.hi))
        low = None if lo is None else Fraction(math.ceil(lo - abs(lo) * _BLUR - half), scale)
        high = None if hi is None else Fraction(math.floor(hi + abs(hi) * _BLUR + half), scale)
        return Interval(low, high).as_float().widened(2)

    def apply(self, expression: pl.Expr) -> pl.Expr:
        return expression.round(self.decimals)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.round({self.decimals})"


OPERATIONS: tuple[Kind, ...] = (Floor(), Ceil(), Round)
