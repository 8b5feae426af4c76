"""Arithmetic of noisy numbers as a sum with public factors, or as a ratio of two such sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpframe.core.exact import exact
from dpframe.core.tree import Call, Column, Literal, Tree
from dpframe.rows.arithmetic import Neg

__all__ = ["Ratio", "Sum", "ratio_of"]


@dataclass(frozen=True, slots=True)
class Sum:
    """A constant, and factors by placeholder."""

    constant: Fraction
    factors: Mapping[str, Fraction]

    @property
    def is_constant(self) -> bool:
        return not any(self.factors.values())

    def times(self, factor: Fraction) -> Sum:
        """All of it, this many times."""
        return Sum(self.constant * factor, {p: f * factor for p, f in self.factors.items()})

    def plus(self, other: Sum) -> Sum:
        """Both together."""
        names = dict.fromkeys((*self.factors, *other.factors))
        zero = Fraction(0)
        factors = {p: self.factors.get(p, zero) + other.factors.get(p, zero) for p in names}
        return Sum(self.constant + other.constant, factors)


@dataclass(frozen=True, slots=True)
class Ratio:
    """One sum over another, which is the constant 1 where there is no division."""

    above: Sum
    below: Sum


_ONE = Sum(Fraction(1), {})


def ratio_of(tree: Tree) -> Ratio | None:
    """What a formula is; None for one that is neither a sum nor a ratio of two."""
    match tree:
        case Column(name):
            return Ratio(Sum(Fraction(0), {name: Fraction(1)}), _ONE)
        case Literal(value):
            if isinstance(value, bool) or not isinstance(value, int | float):
                return None
            try:
                return Ratio(Sum(exact(value), {}), _ONE)
            except ValueError:
                return None
        case Call(Neg(), (arg,)):
            found = ratio_of(arg)
            return None if found is None else Ratio(found.above.times(Fraction(-1)), found.below)
        case Call(op, (left, right)):
            a, b = ratio_of(left), ratio_of(right)
            return None if a is None or b is None else _joined(op.name, a, b)
        case _:
            return None


def _joined(op: str, a: Ratio, b: Ratio) -> Ratio | None:
    if op in ("add", "sub"):
        other = b.above if op == "add" else b.above.times(Fraction(-1))
        if a.below == b.below:
            return Ratio(a.above.plus(other), a.below)
        if b.below == _ONE and b.above.is_constant:  # a / b + c
            return Ratio(a.above.plus(a.below.times(other.constant)), a.below)
        if a.below == _ONE and a.above.is_constant:
            return Ratio(b.below.times(a.above.constant).plus(other), b.below)
        return None
    if op == "mul":
        for one, two in ((a, b), (b, a)):
            if two.below == _ONE and two.above.is_constant:
                return Ratio(one.above.times(two.above.constant), one.below)
        return None
    if op != "truediv":
        return None
    if b.below == _ONE and b.above.is_constant:
        factor = b.above.constant
        return None if factor == 0 else Ratio(a.above.times(1 / factor), a.below)
    if a.below == _ONE and b.below == _ONE:
        return Ratio(a.above, b.above)
    return None
