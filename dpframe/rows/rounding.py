"""Rounding to integers or to decimals. Integers stay as they are."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import Interval
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.given import Operand
from dpframe.rows.method import MethodOperation
from dpframe.rows.operands import require_numbers, widen, widened
from dpframe.rows.operation import Kind, Namespace, on, operation

_MOST_DECIMALS = 100
_BLUR = Fraction(1, 1 << 20)
"""By how much a product may be off, for floats of 32 bits too."""


class Rounding(MethodOperation):
    """A non-decreasing function of floats that leaves integers alone."""

    __slots__ = ()
    propagates_null = True

    @abstractmethod
    def image(self, known: Interval) -> Interval:
        """Where rounded values lie."""

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("rounding", args)
        wide = widened(args[0])
        if wide.dtype != FLOAT64:
            return wide
        return replace(wide, interval=self.image(wide.interval), categories=None)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        wide = widen(args[0], domains[0])
        return self.apply(ns, wide) if widened(domains[0]).dtype == FLOAT64 else wide


@operation
class Floor(Rounding):
    """The largest integer that is not above."""

    reads = ("Floor",)
    engines = EVERYWHERE
    examples = on("f64 i32 dec", "floor()")

    def image(self, known: Interval) -> Interval:
        return known.increasing(lambda end: Fraction(math.floor(end)))


@operation
class Ceil(Rounding):
    """The smallest integer that is not below."""

    reads = ("Ceil",)
    engines = EVERYWHERE
    examples = on("f64 u64 f32", "ceil()")

    def image(self, known: Interval) -> Interval:
        return known.increasing(lambda end: Fraction(math.ceil(end)))


@operation
class Round(Rounding):
    """Rounded to decimals, halves to the even neighbour."""

    reads = ("Round",)
    engines = EVERYWHERE
    examples = (*on("f64", "round()"), *on("f64 i64", "round(2)"), *on("f32 dec", "round(1)"))
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
        return cls(params["decimals"]).of(*operands)

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


OPERATIONS: tuple[Kind, ...] = (Floor, Ceil, Round)
