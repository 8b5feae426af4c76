"""Trigonometric and hyperbolic functions of a Float64, and angles in other units.

Engines compute them one value at a time by a library of mathematics, so a value does not depend on
how many others there are; tests compare them bit by bit. No result depends on the sign of a zero.
Undefined results are NaN, as in Polars.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import EVERYTHING, ZERO, Interval, interval
from dpframe.rows.broadcast import unsigned_zero
from dpframe.rows.maths import FloatFunction, RealFunction, describe
from dpframe.rows.operands import may_be_infinite, require_numbers, widen_to_float, widened_to_float
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation

_PI = Interval(Fraction(math.pi), Fraction(math.pi)).widened(4).ends[1]
"""At least pi as any library rounds it."""
_SAFE = Fraction(2) ** 1000
"""Below this size no version of Polars overflows on the way to a finite result."""


@operation
class Bounded(RealFunction, PlainOperation):
    """A function whose values are between two constants, for any operand."""

    name: str
    reads: tuple[str, ...]
    summary: str
    examples: tuple[str, ...]
    image: Interval
    """Where its values lie."""
    operand: Interval = EVERYTHING
    """Where it is defined; NaN elsewhere."""
    finite: bool = False
    """Whether it is not defined at infinity."""

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers(self.name, args)
        wide = widened_to_float(args[0])
        outside = self.operand.hull(wide.interval) != self.operand
        return Domain(
            FLOAT64,
            nullable=wide.nullable,
            nan=args[0].nan or outside or (self.finite and may_be_infinite(args[0])),
            interval=self.image,
        )


@operation
class Cotangent(Bounded):
    """Null at zero."""

    def domain(self, args: Sequence[Domain]) -> Domain:
        found = Bounded.domain(self, args)
        return found.with_null(found.nullable or widened_to_float(args[0]).interval.contains(0))

    def apply(self, ns: Namespace, expression: pl.Expr) -> pl.Expr:
        known: pl.Expr = ns.when(expression != 0).then(expression.cot())
        return known


@operation
class HyperbolicCosine(Bounded):
    def domain(self, args: Sequence[Domain]) -> Domain:
        found = Bounded.domain(self, args)
        most = widened_to_float(args[0]).interval.magnitude
        if most is None or most > 700:  # beyond 710 it overflows
            return found
        hi = Interval(ZERO.lo, Fraction(math.cosh(float(most)))).widened(8).hi
        return replace(found, interval=Interval(Fraction(1), hi))


@operation
class Inverse(Bounded):
    """A logarithm of its operand; some versions of Polars overflow on the way to it."""

    def domain(self, args: Sequence[Domain]) -> Domain:
        found = Bounded.domain(self, args)
        most = widened_to_float(args[0]).interval.magnitude
        if most is None or most > _SAFE:
            return found
        hi = Fraction(math.asinh(float(most))) + 1
        lo = self.image.lo
        return replace(found, interval=Interval(-hi if lo is None else lo, hi))


@operation
class Scaled(RealFunction, PlainOperation):
    """An angle in another unit: a product with a constant."""

    name: str
    reads: tuple[str, ...]
    summary: str
    examples: tuple[str, ...]
    factor: float
    engines: frozenset[str]

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers(self.name, args)
        wide = widened_to_float(args[0])
        times = Fraction(self.factor)
        known = (wide.interval * Interval(times, times)).as_float()
        return Domain(FLOAT64, nullable=wide.nullable, nan=args[0].nan, interval=known)

    def apply(self, ns: Namespace, expression: pl.Expr) -> pl.Expr:
        return expression * self.factor


@operation
class ArcTan2(PlainOperation):
    """If both are zero the result is zero, and pi for minus zero, so zeros are unsigned first."""

    name = "arctan2"
    reads = ("Atan2",)
    summary = "The angle of the point (x, y), from -pi to pi: pl.arctan2(y, x). Zeros have no sign."
    examples = ('pl.arctan2("f64", "f64b")', 'pl.arctan2("i8", pl.lit(-1))')

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers(self.name, args)
        wide = [widened_to_float(d) for d in args]
        nullable, nan = any(d.nullable for d in wide), any(d.nan for d in args)
        return Domain(FLOAT64, nullable=nullable, nan=nan, interval=Interval(-_PI, _PI))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        y, x = (
            unsigned_zero(ns, widen_to_float(e, d), FLOAT64)
            for e, d in zip(args, domains, strict=True)
        )
        angle: pl.Expr = ns.arctan2(y, x)
        return angle

    def words(self, args: Sequence[str]) -> str:
        return f"arctan2({args[0]}, {args[1]})"


def _of(read: str, columns: str, summary: str) -> tuple[str, tuple[str, ...], str, tuple[str, ...]]:
    return describe(f"Trigonometry.{read}", columns, summary)


_UNIT = interval(-1, 1)
_RIGHT = Interval(-_PI / 2, _PI / 2)
_RADIANS = "of an angle in radians"
_NAN = "NaN below -1 and above 1"
OPERATIONS: tuple[Kind, ...] = (
    Bounded(*_of("Sin", "i32 f64", f"Sine {_RADIANS}; NaN of an infinity."), _UNIT, finite=True),
    Bounded(*_of("Cos", "u8 f64", f"Cosine {_RADIANS}; NaN of an infinity."), _UNIT, finite=True),
    Bounded(
        *_of("Tan", "i8 f64", f"Tangent {_RADIANS}; NaN of an infinity."), EVERYTHING, finite=True
    ),
    Cotangent(
        *_of("Cot", "i8 f64", f"Cotangent {_RADIANS}; null at zero, where Polars has an infinity."),
        EVERYTHING,
        finite=True,
    ),
    Bounded(
        *_of("ArcSin", "i8 f64", f"The angle from -pi/2 to pi/2 whose sine it is; {_NAN}."),
        _RIGHT,
        _UNIT,
    ),
    Bounded(
        *_of("ArcCos", "b f64", f"The angle from 0 to pi whose cosine it is; {_NAN}."),
        Interval(Fraction(0), _PI),
        _UNIT,
    ),
    Bounded(*_of("ArcTan", "i64 f64", "The angle from -pi/2 to pi/2 whose tangent it is."), _RIGHT),
    ArcTan2(),
    FloatFunction(*_of("Sinh", "i8 f64", "Hyperbolic sine."), math.sinh),
    HyperbolicCosine(*_of("Cosh", "i8 f64", "Hyperbolic cosine, at least 1."), interval(1, None)),
    Bounded(*_of("Tanh", "i8 f64", "Hyperbolic tangent."), _UNIT),
    Inverse(*_of("ArcSinh", "i8 f64", "Inverse of the hyperbolic sine."), EVERYTHING),
    Inverse(
        *_of("ArcCosh", "u8 f64", "Inverse of the hyperbolic cosine, at least 0; NaN below 1."),
        interval(0, None),
        interval(1, None),
    ),
    Bounded(
        *_of(
            "ArcTanh",
            "i8 f64",
            "Inverse of the hyperbolic tangent; infinite at -1 and 1, NaN beyond.",
        ),
        EVERYTHING,
        _UNIT,
    ),
    Scaled(
        *_of("Degrees", "i32 f64", "An angle in radians as one in degrees."),
        180.0 / math.pi,
        EVERYWHERE,
    ),
    Scaled(
        *_of("Radians", "u8 f64", "An angle in degrees as one in radians."),
        math.pi / 180.0,
        EVERYWHERE,
    ),
)
