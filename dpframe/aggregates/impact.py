"""The weight of a private choice's error relative to a count's."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["choice_impact"]

_LN2 = Fraction(693, 1000)


def choice_impact(candidates: int) -> Fraction:
    """The square of ln(candidates) / sqrt(2), at least 1.

    The chosen score is about ln(candidates) ranges over epsilon below the best (McSherry & Talwar
    2007, Theorem 7). The error of a count is sqrt(2) times its sensitivity over epsilon. Both are
    relative to the number of rows. Logarithms are taken in whole bits, the same everywhere.
    """
    logarithm = (candidates - 1).bit_length() * _LN2
    return max(Fraction(1), logarithm * logarithm / 2)
