"""How a query's cost is divided among its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

from dpframe.core.budget import Budget

Split: TypeAlias = Literal["least error", "equal"]
"""How a plan's cost is divided where no weight is given: with the least sum of squared relative
errors, or equally among the outputs."""

_BITS = 24


def least_error_weights(impacts: Sequence[Fraction], *, shares_rho: bool) -> list[Fraction]:
    """Relative costs that minimise the sum of the parts' squared relative errors.

    With x_p of the cost, the squared error is impact_p / x_p**2 where the cost is an epsilon (noise
    falls with it), and impact_p / x_p where it is a rho (its square does). By Lagrange, x_p is
    proportional to the cube root, or the square root, of the impact. Roots are rounded down to
    `_BITS` binary places, the same on all machines.

    Parameters
    ----------
    impacts
        At least 0; the parts' squared effects on the relative errors of all outputs.
    shares_rho
        Whether amounts of rho are shared, or epsilons.
    """
    return [_root(impact, 2 if shares_rho else 3) for impact in impacts]


def _root(value: Fraction, degree: int) -> Fraction:
    """The square or cube root, rounded down, but not to 0."""
    if not value:
        return value
    whole = (value.numerator << degree * _BITS) // value.denominator
    root = math.isqrt(whole) if degree == 2 else _cube_root(whole)
    return Fraction(max(1, root), 1 << _BITS)


def _cube_root(value: int) -> int:
    """The largest integer whose cube is at most `value` (Newton's method from above)."""
    guess, better = 0, 1 << -(-value.bit_length() // 3)
    while better and (not guess or better < guess):
        guess, better = better, (2 * better + value // (better * better)) // 3
    return guess if value else 0


def split(spend: Budget, weights: Sequence[Fraction]) -> tuple[Budget, ...]:
    """Shares in proportion to the weights, exactly: they add up to `spend`.

    Sequential composition: the parts' costs add up (Dwork & Roth 2014, Theorem 3.16 for pure and
    approximate DP; Bun & Steinke 2016, Lemma 1.7 for zCDP). A weight of 0 gets nothing.
    """
    total = sum(weights, Fraction(0))
    if not total:
        return tuple(spend.of(Fraction(0)) for _ in weights)
    return tuple(spend.of(spend.main * w / total, spend.slack * w / total) for w in weights)
