"""Ranges of score changes, for tests of mechanisms."""

from __future__ import annotations

from fractions import Fraction

from dpframe.core.sensitivity import ScoreRange


def of_one(total: Fraction) -> ScoreRange:
    """Where all of it may be in one group."""
    return ScoreRange(total, total * total, total)


def of_groups(total: Fraction, largest: Fraction) -> ScoreRange:
    """Where this much of it may be in one group: the sum of squares is largest in as few groups as
    possible.
    """
    full, left = divmod(total, largest) if largest else (0, Fraction(0))
    return ScoreRange(total, full * largest**2 + left**2, largest)
