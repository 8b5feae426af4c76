"""Trigonometric and hyperbolic functions of a Float64, and angles in other units.

Engines compute them one value at a time by a library of mathematics, so a value does not depend on
how many others there are; tests compare them bit by bit. No result depends on the sign of a zero.
What is not defined is NaN, as in Polars.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64
from dpframe.core.interval import EVERYTHING, ZERO, Interval, interval
from dpframe.core.tree import Options
from dpframe.rows.broadcast import unsigned_zero
from dpframe.rows.maths import FloatFunction, RealFunction
from dpframe.rows.operands import may_be_infinite, require_numbers, widen_to_float, widened_to_float
from dpframe.rows.operation import Namespace, RowOperation

_PI = Interval(Fraction(math.pi), Fraction(math.pi)).widened(4).ends[1]
"""At least pi as any library rounds it."""
_SAFE = Fraction(2) ** 1000
"""Below this size no version of Polars overflows on the way to a finite result."""


class Bounded(RealFunction):
    """A function whose values lie between two constants, whatever its operand."""

    image: Interval
    operand: Interval = EVERYTHING
    """Where it is defined; NaN elsewhere."""
    finite: bool = False
    """Whether it is not defined at infinity."""

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_numbers(self.name, args)
        wide = widened_to_float(args[0])
        outside = self.operand.hull(wide.interval) != self.operand
        return Domain(
            FLOAT64,
            nullable=wide.nullable,
            nan=args[0].nan or outside or (self.finite and may_be_infinite(args[0])),
            interval=self.image,
        )


class Sin(Bounded):
    name = "sin"
    summary = "Sine of an angle in radians; NaN of an infinity."
    examples = ('pl.col("i32").sin()', 'pl.col("f64").sin()')
    image = interval(-1, 1)
    finite = True


class Cos(Bounded):
    name = "cos"
    summary = "Cosine of an angle in radians; NaN of an infinity."
    examples = ('pl.col("u8").cos()', 'pl.col("f64").cos()')
    image = interval(-1, 1)
    finite = True


class Tan(Bounded):
    name = "tan"
    summary = "Tangent of an angle in radians; NaN of an infinity."
    examples = ('pl.col("i8").tan()', 'pl.col("f64").tan()')
    image = EVERYTHING
    finite = True


class Cot(Tan):
    name = "cot"
    summary = "Cotangent of an angle in radians; null at zero, where Polars has an infinity."
    examples = ('pl.col("i8").cot()', 'pl.col("f64").cot()')

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        found = super().domain(args, options)
        return found.with_null(found.nullable or widened_to_float(args[0]).interval.contains(0))

    def apply(self, ns: Namespace, expression: pl.Expr, options: Options) -> pl.Expr:
        known: pl.Expr = ns.when(expression != 0).then(expression.cot())
        return known


class ArcSin(Bounded):
    name = "arcsin"
    summary = "The angle from -pi/2 to pi/2 whose sine it is; NaN below -1 and above 1."
    examples = ('pl.col("i8").arcsin()', 'pl.col("f64").arcsin()')
    image = Interval(-_PI / 2, _PI / 2)
    operand = interval(-1, 1)


class ArcCos(Bounded):
    name = "arccos"
    summary = "The angle from 0 to pi whose cosine it is; NaN below -1 and above 1."
    examples = ('pl.col("b").arccos()', 'pl.col("f64").arccos()')
    image = Interval(Fraction(0), _PI)
    operand = interval(-1, 1)


class ArcTan(Bounded):
    name = "arctan"
    summary = "The angle from -pi/2 to pi/2 whose tangent it is."
    examples = ('pl.col("i64").arctan()', 'pl.col("f64").arctan()')
    image = Interval(-_PI / 2, _PI / 2)


class ArcTan2(RowOperation):
    """Where both are zero it is zero, and pi for minus zero, so zeros are unsigned first."""

    name = "arctan2"
    summary = "The angle of the point (x, y), from -pi to pi: pl.arctan2(y, x). Zeros have no sign."
    examples = ('pl.arctan2("f64", "f64b")', 'pl.arctan2("i8", pl.lit(-1))')

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_numbers(self.name, args)
        wide = [widened_to_float(d) for d in args]
        nullable, nan = any(d.nullable for d in wide), any(d.nan for d in args)
        return Domain(FLOAT64, nullable=nullable, nan=nan, interval=Interval(-_PI, _PI))

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        y, x = (
            unsigned_zero(ns, widen_to_float(e, d), FLOAT64)
            for e, d in zip(args, domains, strict=True)
        )
        angle: pl.Expr = ns.arctan2(y, x)
        return angle

    def words(self, args: Sequence[str], options: Options) -> str:
        return f"arctan2({args[0]}, {args[1]})"


class TanH(Bounded):
    name = "tanh"
    summary = "Hyperbolic tangent."
    examples = ('pl.col("i8").tanh()', 'pl.col("f64").tanh()')
    image = interval(-1, 1)


class SinH(FloatFunction):
    name = "sinh"
    summary = "Hyperbolic sine."
    examples = ('pl.col("i8").sinh()', 'pl.col("f64").sinh()')

    def value(self, number: float, options: Options) -> float:
        return math.sinh(number)


class CosH(Bounded):
    name = "cosh"
    summary = "Hyperbolic cosine, at least 1."
    examples = ('pl.col("i8").cosh()', 'pl.col("f64").cosh()')
    image = interval(1, None)

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        found = super().domain(args, options)
        most = widened_to_float(args[0]).interval.magnitude
        if most is None or most > 700:  # beyond 710 it overflows
            return found
        hi = Interval(ZERO.lo, Fraction(math.cosh(float(most)))).widened(8).hi
        return replace(found, interval=Interval(Fraction(1), hi))


class _Inverse(Bounded):
    """A logarithm of its operand; some versions of Polars overflow on the way to it."""

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        found = super().domain(args, options)
        most = widened_to_float(args[0]).interval.magnitude
        if most is None or most > _SAFE:
            return found
        hi = Fraction(math.asinh(float(most))) + 1
        lo = self.image.lo
        return replace(found, interval=Interval(-hi if lo is None else lo, hi))


class ArcSinH(_Inverse):
    name = "arcsinh"
    summary = "Inverse of the hyperbolic sine."
    examples = ('pl.col("i8").arcsinh()', 'pl.col("f64").arcsinh()')
    image = EVERYTHING


class ArcCosH(_Inverse):
    name = "arccosh"
    summary = "Inverse of the hyperbolic cosine, at least 0; NaN below 1."
    examples = ('pl.col("u8").arccosh()', 'pl.col("f64").arccosh()')
    image = interval(0, None)
    operand = interval(1, None)


class ArcTanH(Bounded):
    name = "arctanh"
    summary = "Inverse of the hyperbolic tangent; infinite at -1 and 1, NaN beyond."
    examples = ('pl.col("i8").arctanh()', 'pl.col("f64").arctanh()')
    image = EVERYTHING
    operand = interval(-1, 1)


class Scaled(RealFunction):
    """An angle in another unit: a product with a constant."""

    factor: float

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_numbers(self.name, args)
        wide = widened_to_float(args[0])
        times = Fraction(self.factor)
        known = (wide.interval * Interval(times, times)).as_float()
        return Domain(FLOAT64, nullable=wide.nullable, nan=args[0].nan, interval=known)

    def apply(self, ns: Namespace, expression: pl.Expr, options: Options) -> pl.Expr:
        return expression * self.factor


class Degrees(Scaled):
    name = "degrees"
    summary = "An angle in radians as one in degrees."
    examples = ('pl.col("i32").degrees()', 'pl.col("f64").degrees()')
    factor = 180.0 / math.pi


class Radians(Scaled):
    name = "radians"
    summary = "An angle in degrees as one in radians."
    examples = ('pl.col("u8").radians()', 'pl.col("f64").radians()')
    factor = math.pi / 180.0


OPERATIONS: tuple[RowOperation, ...] = (
    Sin(),
    Cos(),
    Tan(),
    Cot(),
    ArcSin(),
    ArcCos(),
    ArcTan(),
    ArcTan2(),
    SinH(),
    CosH(),
    TanH(),
    ArcSinH(),
    ArcCosH(),
    ArcTanH(),
    Degrees(),
    Radians(),
)
