"""Functions of one number. Undefined results are NaN or minus infinity, as in Polars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, INT64, INT128
from dpframe.core.engines import EVERYWHERE, POLARS
from dpframe.core.interval import EVERYTHING, ZERO, Interval, interval
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.constants import constant_words
from dpframe.rows.given import Operand, constant
from dpframe.rows.layouts import divided
from dpframe.rows.method import MethodOperation
from dpframe.rows.operands import (
    as_type,
    is_wide,
    require_numbers,
    whole_result,
    widen,
    widen_to_float,
    widened,
    widened_to_float,
)
from dpframe.rows.operation import (
    Kind,
    Namespace,
    ParametricOperation,
    PlainOperation,
    RowOperation,
    on,
    operation,
)

_BEYOND_FLOATS = Fraction(2) ** 1100


@operation
class Abs(MethodOperation):
    """Magnitude of a number; the smallest Int64 stays unchanged, as its magnitude is no Int64."""

    reads = ("Abs",)
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
class Sign(MethodOperation):
    """-1, 0 or 1 by the sign of a number."""

    reads = ("Sign",)
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

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.name}()"

    def apply(self, ns: Namespace, expression: pl.Expr) -> pl.Expr:
        """The engine's function."""
        made: pl.Expr = getattr(expression, self.name)()
        return made

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return self.apply(ns, widen_to_float(args[0], domains[0]))


@operation
class FloatFunction(RealFunction, PlainOperation):
    """A non-decreasing function of a Float64."""

    name: str
    reads: tuple[str, ...]
    summary: str
    examples: tuple[str, ...]
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

    def _end(self, end: Fraction) -> Fraction:
        try:
            found = self.value(float(end))
        except (OverflowError, ValueError):  # exp overflows up, log(0) down
            return _BEYOND_FLOATS if end > 0 else -_BEYOND_FLOATS
        return Fraction(found)


def describe(
    read: str, columns: str, summary: str
) -> tuple[str, tuple[str, ...], str, tuple[str, ...]]:
    """What a function of Polars is called here and there, what it gives, and examples."""
    name = read.rpartition(".")[2].lower()
    return name, (read,), summary, on(columns, f"{name}()")


SQRT = FloatFunction(
    *describe("Pow.Sqrt", "u8 f64 i64", "Square root; NaN of a negative number."),
    math.sqrt,
    starts=ZERO.lo,
    least=ZERO.lo,
    exactly_rounded=True,
    propagates_null=True,
    engines=EVERYWHERE,
)
CBRT = FloatFunction(*describe("Pow.Cbrt", "i8 f64", "Cube root."), math.cbrt)
EXP = FloatFunction(
    *describe("Exp", "i8 f64 u32", "The exponential function."),
    math.exp,
    least=ZERO.lo,
    propagates_null=True,
)
LOG1P = FloatFunction(
    *describe("Log1p", "u8 f64 i8", "Natural logarithm of 1 + x; minus infinity at -1, NaN below."),
    math.log1p,
    starts=Fraction(-1),
)
_NATURAL = FloatFunction("log", (), "Natural logarithm.", (), math.log, starts=ZERO.lo)


@operation
class Log(RealFunction, ParametricOperation):
    """The natural one without a base."""

    name = "log"
    propagates_null = True
    reads = ("Log",)
    summary = "Logarithm to a constant base; minus infinity at zero, NaN below."
    examples = (
        *(*on("u8 f64", "log()"), *on("i32", "log(10)")),
        *(*on("f64", "log(2)"), *on("u8", "log(0.5)")),
    )
    base: float | None

    def check(self) -> None:
        base = self.base
        if base is not None and not (math.isfinite(base) and base > 0 and base != 1):
            raise InvalidBounds(
                f"log has no base {constant_words(base)}",
                remedy="use a finite base above 0 other than 1",
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        """The base is a parameter in the oldest Polars and an operand in newer ones."""
        base = constant(operands[1], "the base of log") if len(operands) > 1 else params["base"]
        if isinstance(base, bool) or not isinstance(base, (int, float)):
            raise UnsupportedOperation("the base of log is not a number", remedy="write a number")
        value = float(base)
        return cls(None if value == math.e else value).of(operands[0])

    def domain(self, args: Sequence[Domain]) -> Domain:
        natural = _NATURAL.domain(args)
        if self.base is None:
            return natural
        divisor = Fraction(math.log(self.base))
        scaled = natural.interval * Interval(1 / divisor, 1 / divisor)
        return replace(natural, interval=scaled.as_float().widened(4))

    def apply(self, ns: Namespace, expression: pl.Expr) -> pl.Expr:
        if self.base is None:
            return expression.log()
        divisor = ns.lit(math.log(self.base), dtype=ns.Float64)
        return divided(ns, expression.log(), divisor, lambda a, b: a / b)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.log({'' if self.base is None else constant_words(self.base)})"


OPERATIONS: tuple[Kind, ...] = (Abs, Sign, SQRT, CBRT, EXP, Log, LOG1P)
