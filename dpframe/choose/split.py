"""How a query's cost is divided among its parts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.core.budget import Budget


def split(spend: Budget, weights: Sequence[Fraction]) -> tuple[Budget, ...]:
    """Shares in proportion to the weights, exactly: they add up to `spend`.

    Sequential composition: the parts' costs add up (Dwork & Roth 2014, Theorem 3.16 for pure and
    approximate DP; Bun & Steinke 2016, Lemma 1.7 for zCDP). A weight of 0 gets nothing.
    """
    total = sum(weights, Fraction(0))
    if not total:
        return tuple(spend.of(Fraction(0)) for _ in weights)
    return tuple(spend.of(spend.main * w / total, spend.slack * w / total) for w in weights)
