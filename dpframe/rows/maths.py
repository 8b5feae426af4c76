"""Functions of one number. What is not defined is NaN or minus infinity, as in Polars."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, INT64
from dpframe.core.interval import EVERYTHING, Interval, interval
from dpframe.core.tree import Options
from dpframe.errors import InvalidBounds
from dpframe.rows.constants import constant_words
from dpframe.rows.layouts import divided
from dpframe.rows.operands import (
    require_numbers,
    widen,
    widen_to_float,
    widened,
    widened_to_float,
)
from dpframe.rows.operation import Namespace, RowOperation

_BEYOND_FLOATS = Fraction(2) ** 1100


class Abs(RowOperation):
    name = "abs"
    summary = "Magnitude of a number; the smallest Int64 has none and stays as it is."
    examples = ('pl.col("i32").abs()', 'pl.col("i64").abs()', 'pl.col("f64").abs()')

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_numbers("magnitude", args)
        wide = widened(args[0])
        known = wide.interval.abs()
        if wide.dtype == INT64 and (wide.interval.lo is None or wide.interval.lo < -(2**63) + 1):
            known = EVERYTHING
        return Domain(wide.dtype, nullable=wide.nullable, nan=wide.nan, interval=known)

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        return widen(args[0], domains[0]).abs()

    def words(self, args: Sequence[str], options: Options) -> str:
        return f"{args[0]}.abs()"


class Sign(RowOperation):
    name = "sign"
    summary = "-1, 0 or 1 by the sign of a number."
    examples = ('pl.col("i32").sign()', 'pl.col("u64").sign()', 'pl.col("f64").sign()')

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_numbers("sign", args)
        wide = widened(args[0])
        lo, hi = wide.interval.lo, wide.interval.hi
        known = interval(
            -1 if lo is None or lo < 0 else 0 if lo == 0 else 1,
            1 if hi is None or hi > 0 else 0 if hi == 0 else -1,
        )
        return Domain(wide.dtype, nullable=wide.nullable, nan=wide.nan, interval=known)

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        return widen(args[0], domains[0]).sign()

    def words(self, args: Sequence[str], options: Options) -> str:
        return f"{args[0]}.sign()"


class RealFunction(RowOperation):
    """A function of one number as a Float64, by the engine's method of the same name."""

    def apply(self, ns: Namespace, expression: pl.Expr, options: Options) -> pl.Expr:
        """The engine's function."""
        made: pl.Expr = getattr(expression, self.name)()
        return made

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        return self.apply(ns, widen_to_float(args[0], domains[0]), options)

    def words(self, args: Sequence[str], options: Options) -> str:
        return f"{args[0]}.{self.name}()"


class FloatFunction(RealFunction):
    """A non-decreasing function of a Float64, undefined (NaN) below `starts`."""

    starts: Fraction | None = None
    least: Fraction | None = None
    """The smallest value that it takes, where it has one."""
    exactly_rounded: bool = False

    @abstractmethod
    def value(self, number: float, options: Options) -> float:
        """The function on one float where it is defined."""

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_numbers(self.name, args)
        wide = widened_to_float(args[0])
        known = wide.interval
        undefined = self.starts is not None and (known.lo is None or known.lo < self.starts)
        if undefined:
            known = known.intersect(Interval(self.starts, None)) or Interval(self.starts, None)
        image = known.increasing(self._end(options)).as_float()
        if not self.exactly_rounded:
            image = image.widened(4)
        lo = image.lo
        if self.least is not None:
            lo = self.least if lo is None else max(lo, self.least)
        hi = image.hi if image.hi is None or lo is None else max(lo, image.hi)
        return Domain(
            FLOAT64,
            nullable=wide.nullable,
            nan=args[0].nan or undefined,
            interval=Interval(lo, hi),
        )

    def _end(self, options: Options) -> Callable[[Fraction], Fraction]:
        def image(end: Fraction) -> Fraction:
            try:
                found = self.value(float(end), options)
            except (OverflowError, ValueError):  # exp overflows up, log(0) down
                return _BEYOND_FLOATS if end > 0 else -_BEYOND_FLOATS
            return Fraction(found)

        return image


class Sqrt(FloatFunction):
    name = "sqrt"
    summary = "Square root; NaN of a negative number."
    examples = ('pl.col("u8").sqrt()', 'pl.col("f64").sqrt()', 'pl.col("i64").sqrt()')
    starts = Fraction(0)
    least = Fraction(0)
    exactly_rounded = True

    def value(self, number: float, options: Options) -> float:
        return math.sqrt(number)


class Cbrt(FloatFunction):
    name = "cbrt"
    summary = "Cube root."
    examples = ('pl.col("i8").cbrt()', 'pl.col("f64").cbrt()')

    def value(self, number: float, options: Options) -> float:
        return math.cbrt(number)


class Exp(FloatFunction):
    name = "exp"
    summary = "The exponential function."
    examples = ('pl.col("i8").exp()', 'pl.col("f64").exp()', 'pl.col("u32").exp()')
    least = Fraction(0)

    def value(self, number: float, options: Options) -> float:
        return math.exp(number)


class Log1p(FloatFunction):
    name = "log1p"
    summary = "Natural logarithm of 1 + x; minus infinity at -1, NaN below."
    examples = ('pl.col("u8").log1p()', 'pl.col("f64").log1p()', 'pl.col("i8").log1p()')
    starts = Fraction(-1)

    def value(self, number: float, options: Options) -> float:
        return math.log1p(number)


class Log(FloatFunction):
    name = "log"
    summary = "Logarithm to a constant base; minus infinity at zero, NaN below."
    examples = (
        'pl.col("u8").log()',
        'pl.col("f64").log()',
        'pl.col("i32").log(10)',
        'pl.col("f64").log(2)',
        'pl.col("u8").log(0.5)',
    )
    starts = Fraction(0)

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        natural = super().domain(args, options)
        base = _base(options)
        if base is None:
            return natural
        divisor = Fraction(math.log(base))
        scaled = natural.interval * Interval(1 / divisor, 1 / divisor)
        return replace(natural, interval=scaled.as_float().widened(4))

    def apply(self, ns: Namespace, expression: pl.Expr, options: Options) -> pl.Expr:
        base = _base(options)
        if base is None:
            return expression.log()
        divisor = ns.lit(math.log(base), dtype=ns.Float64)
        return divided(ns, expression.log(), divisor, lambda a, b: a / b)

    def value(self, number: float, options: Options) -> float:
        return math.log(number)

    def words(self, args: Sequence[str], options: Options) -> str:
        base = _base(options)
        return f"{args[0]}.log({'' if base is None else constant_words(base)})"


def _base(options: Options) -> float | None:
    """The base of a logarithm; None for the natural one."""
    base = options.get("base")
    if base is None:
        return None
    number = float(base) if isinstance(base, (int, float, Decimal)) else math.nan
    if not (math.isfinite(number) and number > 0 and number != 1):
        raise InvalidBounds(
            f"log has no base {constant_words(base)}",
            remedy="use a finite base above 0 other than 1",
        )
    return number


OPERATIONS: tuple[RowOperation, ...] = (Abs(), Sign(), Sqrt(), Cbrt(), Exp(), Log(), Log1p())
