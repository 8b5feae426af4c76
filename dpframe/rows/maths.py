"""Functions of one number, trigonometry and rounding."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import polars as pl

from dpframe.core.dtypes import FLOAT64, INT64, INT128, Domain
from dpframe.core.interval import EVERYTHING, ZERO, Interval, interval
from dpframe.core.tree import Tree
from dpframe.core.units import EVERYWHERE, POLARS
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.constants import constant_words
from dpframe.rows.layouts import divided, unsigned_zero
from dpframe.rows.operands import (
    as_type,
    is_wide,
    may_be_infinite,
    require_numbers,
    when,
    whole_result,
    widen,
    widen_to_float,
    widened,
    widened_to_float,
)
from dpframe.rows.operation import (
    Function,
    Namespace,
    Node,
    Operand,
    PlainOperation,
    RowMethod,
    RowOperation,
    constant,
    on,
    operation,
    spell_out,
)

# Rounding to integers or to decimals. Integers stay as they are.

_MOST_DECIMALS = 100
_BLUR = Fraction(1, 1 << 20)
"""By how much a product may be off, for floats of 32 bits too."""


class Rounding(RowMethod):
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

    engines = EVERYWHERE
    examples = on("f64 i32 dec", "floor()")

    def image(self, known: Interval) -> Interval:
        return known.increasing(lambda end: Fraction(math.floor(end)))


@operation
class Ceil(Rounding):
    """The smallest integer that is not below."""

    engines = EVERYWHERE
    examples = on("f64 u64 f32", "ceil()")

    def image(self, known: Interval) -> Interval:
        return known.increasing(lambda end: Fraction(math.ceil(end)))


@operation
class Round(Rounding):
    """Rounded to decimals, halves to the even neighbour."""

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
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
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
        return Interval(low, high).as_float().widen(2)


# Functions of one number. Undefined results are NaN or minus infinity, as in Polars.

_BEYOND_FLOATS = Fraction(2) ** 1100


@operation
class Abs(RowMethod):
    """Magnitude of a number; the smallest Int64 stays unchanged, as its magnitude is no Int64."""

    engines = EVERYWHERE
    propagates_null = True
    examples = on("i32 i64 f64", "abs()")

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("magnitude", args)
        wide = widened(args[0])
        if wide.dtype == INT128:
            return whole_result("magnitude", args, Interval.abs)
        known = wide.interval.abs()
        if wide.dtype == INT64 and (wide.interval.lo is None or wide.interval.lo < -(2**63) + 1):
            known = EVERYTHING
        return Domain(wide.dtype, nullable=wide.nullable, nan=wide.nan, interval=known)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        magnitude = widen(args[0], domains[0]).abs()
        if is_wide(domains[0]):
            return as_type(magnitude, self.domain(domains).dtype)
        return magnitude


@operation
class Sign(RowMethod):
    """-1, 0 or 1 by the sign of a number."""

    engines = EVERYWHERE
    propagates_null = True
    examples = on("i32 u64 f64", "sign()")

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("sign", args)
        wide = widened(args[0])
        lo, hi = wide.interval.lo, wide.interval.hi
        known = interval(
            -1 if lo is None or lo < 0 else 0 if lo == 0 else 1,
            1 if hi is None or hi > 0 else 0 if hi == 0 else -1,
        )
        dtype = INT64 if wide.dtype == INT128 else wide.dtype
        return Domain(dtype, nullable=wide.nullable, nan=wide.nan, interval=known)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        sign = widen(args[0], domains[0]).sign()
        return as_type(sign, INT64) if is_wide(domains[0]) else sign


class RealFunction(RowOperation):
    """A function of one number as a Float64, by the engine's method of the same name."""

    __slots__ = ()

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        """The engine's function."""
        value: pl.Expr = getattr(operand, self.name)()
        return value

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return self.apply(ns, widen_to_float(args[0], domains[0]))


@operation
class FloatFunction(RealFunction, PlainOperation):
    """A non-decreasing function of a Float64."""

    value: Callable[[float], float]
    """The function on one float where it is defined."""
    starts: Fraction | None = None
    """Where it starts to be defined; it is NaN below."""
    least: Fraction | None = None
    """The smallest value that it takes, where it has one."""
    exactly_rounded: bool = False
    propagates_null: bool = False
    engines: frozenset[str] = frozenset({POLARS})

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers(self.name, args)
        wide = widened_to_float(args[0])
        known = wide.interval
        undefined = self.starts is not None and (known.lo is None or known.lo < self.starts)
        if undefined:
            known = known.intersect(Interval(self.starts, None)) or Interval(self.starts, None)
        image = known.increasing(self._end).as_float()
        if not self.exactly_rounded:
            image = image.widen(4)
        lo = image.lo
        if self.least is not None:
            lo = self.least if lo is None else max(lo, self.least)
        hi = image.hi if image.hi is None or lo is None else max(lo, image.hi)
        nan = args[0].nan or undefined
        return Domain(FLOAT64, nullable=wide.nullable, nan=nan, interval=Interval(lo, hi))

    def _end(self, end: Fraction) -> Fraction:
        try:
            return Fraction(self.value(float(end)))
        except (OverflowError, ValueError):  # exp overflows up, log(0) down
            return _BEYOND_FLOATS if end > 0 else -_BEYOND_FLOATS


_NATURAL = FloatFunction("log", "log", (), "Natural logarithm.", (), math.log, starts=ZERO.lo)


@operation
class Log(RealFunction, RowMethod):
    """Logarithm to a constant base; minus infinity at zero, NaN below.

    The natural one without a base.
    """

    propagates_null = True
    examples = spell_out("u8.log(); f64.log(); i32.log(10); f64.log(2); u8.log(0.5)")
    base: float | None = None

    def check(self) -> None:
        base = self.base
        if base is not None and not (math.isfinite(base) and base > 0 and base != 1):
            raise InvalidBounds(
                f"log has no base {constant_words(base)}",
                remedy="use a finite base above 0 other than 1",
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        """The base is a parameter in the oldest Polars and an operand in newer ones."""
        what = cls._what("base")
        given = constant(operands[1], what, "float") if len(operands) > 1 else params["base"]
        base = float(given)
        return cls(None if base == math.e else base).of(operands[0])

    def domain(self, args: Sequence[Domain]) -> Domain:
        natural = _NATURAL.domain(args)
        if self.base is None:
            return natural
        divisor = Fraction(math.log(self.base))
        scaled = natural.interval * Interval(1 / divisor, 1 / divisor)
        return replace(natural, interval=scaled.as_float().widen(4))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        if self.base is None:
            return operand.log()
        divisor = ns.lit(math.log(self.base), dtype=ns.Float64)
        return divided(ns, operand.log(), divisor, lambda a, b: a / b)


# Trigonometric and hyperbolic functions of a Float64, and angles in other units.
#
# Engines compute them one value at a time by a library of mathematics, so a value does not depend
# on how many others there are; tests compare them bit by bit. No result depends on the sign of a
# zero. Undefined results are NaN, as in Polars.

_PI = Interval(Fraction(math.pi), Fraction(math.pi)).widen(4).ends[1]
"""At least pi as any library rounds it."""
_SAFE = Fraction(2) ** 1000
"""Below this size no version of Polars overflows on the way to a finite result."""


@operation
class Bounded(RealFunction, PlainOperation):
    """A function whose values are between two constants, for any operand."""

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

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return when(ns, operand != 0, operand.cot())


@operation
class HyperbolicCosine(Bounded):
    def domain(self, args: Sequence[Domain]) -> Domain:
        found = Bounded.domain(self, args)
        most = widened_to_float(args[0]).interval.magnitude
        if most is None or most > 700:  # beyond 710 it overflows
            return found
        hi = Interval(ZERO.lo, Fraction(math.cosh(float(most)))).widen(8).hi
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

    factor: float
    engines: frozenset[str]

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers(self.name, args)
        wide = widened_to_float(args[0])
        times = Fraction(self.factor)
        known = (wide.interval * Interval(times, times)).as_float()
        return Domain(FLOAT64, nullable=wide.nullable, nan=args[0].nan, interval=known)

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return operand * self.factor


@operation
class ArcTan2(Function):
    """The angle of the point (x, y), from -pi to pi: pl.arctan2(y, x). Zeros have no sign.

    If both are zero the result is zero, and pi for minus zero, so zeros are unsigned first.
    """

    name = "arctan2"
    reads = ("Atan2",)
    arity = 2
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


_Described: TypeAlias = "tuple[str, str, tuple[str, ...], str, tuple[str, ...]]"


def _of(read: str, columns: str, summary: str) -> _Described:
    """What a function of Polars is called here and there, what it gives, and examples."""
    name = read.rpartition(".")[2].lower()
    return name, name, (read,), summary, on(columns, f"{name}()")


_UNIT = interval(-1, 1)
_RIGHT = Interval(-_PI / 2, _PI / 2)
_RADIANS = "of an angle in radians"
_NAN = "NaN below -1 and above 1"

OPERATIONS = (
    *(Floor, Ceil, Round),
    *(Abs, Sign),
    FloatFunction(
        *_of("Pow.Sqrt", "u8 f64 i64", "Square root; NaN of a negative number."),
        *(math.sqrt, ZERO.lo, ZERO.lo),
        exactly_rounded=True,
        propagates_null=True,
        engines=EVERYWHERE,
    ),
    FloatFunction(*_of("Pow.Cbrt", "i8 f64", "Cube root."), math.cbrt),
    FloatFunction(
        *_of("Exp", "i8 f64 u32", "The exponential function."),
        *(math.exp, None, ZERO.lo),
        propagates_null=True,
    ),
    Log,
    FloatFunction(
        *_of("Log1p", "u8 f64 i8", "Natural logarithm of 1 + x; minus infinity at -1, NaN below."),
        *(math.log1p, Fraction(-1)),
    ),
    Bounded(
        *_of("Trigonometry.Sin", "i32 f64", f"Sine {_RADIANS}; NaN of an infinity."),
        _UNIT,
        finite=True,
    ),
    Bounded(
        *_of("Trigonometry.Cos", "u8 f64", f"Cosine {_RADIANS}; NaN of an infinity."),
        _UNIT,
        finite=True,
    ),
    Bounded(
        *_of("Trigonometry.Tan", "i8 f64", f"Tangent {_RADIANS}; NaN of an infinity."),
        EVERYTHING,
        finite=True,
    ),
    Cotangent(
        *_of(
            "Trigonometry.Cot",
            "i8 f64",
            f"Cotangent {_RADIANS}; null at zero, where Polars has an infinity.",
        ),
        EVERYTHING,
        finite=True,
    ),
    Bounded(
        *_of(
            "Trigonometry.ArcSin",
            "i8 f64",
            f"The angle from -pi/2 to pi/2 whose sine it is; {_NAN}.",
        ),
        _RIGHT,
        _UNIT,
    ),
    Bounded(
        *_of("Trigonometry.ArcCos", "b f64", f"The angle from 0 to pi whose cosine it is; {_NAN}."),
        Interval(Fraction(0), _PI),
        _UNIT,
    ),
    Bounded(
        *_of("Trigonometry.ArcTan", "i64 f64", "The angle from -pi/2 to pi/2 whose tangent it is."),
        _RIGHT,
    ),
    ArcTan2,
    FloatFunction(*_of("Trigonometry.Sinh", "i8 f64", "Hyperbolic sine."), math.sinh),
    HyperbolicCosine(
        *_of("Trigonometry.Cosh", "i8 f64", "Hyperbolic cosine, at least 1."), interval(1, None)
    ),
    Bounded(*_of("Trigonometry.Tanh", "i8 f64", "Hyperbolic tangent."), _UNIT),
    Inverse(*_of("Trigonometry.ArcSinh", "i8 f64", "Inverse of the hyperbolic sine."), EVERYTHING),
    Inverse(
        *_of(
            "Trigonometry.ArcCosh",
            "u8 f64",
            "Inverse of the hyperbolic cosine, at least 0; NaN below 1.",
        ),
        interval(0, None),
        interval(1, None),
    ),
    Bounded(
        *_of(
            "Trigonometry.ArcTanh",
            "i8 f64",
            "Inverse of the hyperbolic tangent; infinite at -1 and 1, NaN beyond.",
        ),
        EVERYTHING,
        _UNIT,
    ),
    Scaled(
        *_of("Trigonometry.Degrees", "i32 f64", "An angle in radians as one in degrees."),
        180.0 / math.pi,
        EVERYWHERE,
    ),
    Scaled(
        *_of("Trigonometry.Radians", "u8 f64", "An angle in degrees as one in radians."),
        math.pi / 180.0,
        EVERYWHERE,
    ),
)
