"""Weights of individuals: whole parts of one, so that weighed sums are integers.

A limit on the norm of what an individual contributes makes all of its rows count less, each by the
same factor. That factor is k / 2**12 with a whole k, and what an engine adds up are k times the
integers of the rows. So an individual with weight k is like k individuals with its rows, each
counting one part: every rule for rows that come and go holds for parts of rows.

With m_g rows in group g, k is the largest whole number with k**2 sum(m_g**2) <= N**2, and 2**12 at
most, where N = floor(2**12 n) for a norm n. It is found by integers alone, see
`dpframe.lower.weighed`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from dpframe.kernel.frame import PARTS

__all__ = [
    "LARGEST_NORM",
    "LEAST_NORM",
    "PARTS",
    "WEIGHT_BITS",
    "norm_in_parts",
    "parts_in_each",
]

WEIGHT_BITS: Final = PARTS.bit_length() - 1
"""`PARTS` are the parts of one row, or of one individual in a group: weights are multiples of one
over this.
"""
LEAST_NORM: Final = Fraction(1, 64)
LARGEST_NORM: Final = 1 << 16
"""Norms beyond these are not meant, and up to it no integer overflows on the way."""


def norm_in_parts(norm: Fraction) -> int:
    """N = floor(2**12 n), at least 1."""
    return math.floor(norm * PARTS)


def parts_in_each(norm: int, groups: int) -> int:
    """How many parts an individual adds to each of `groups` groups, for a norm in parts."""
    return min(PARTS, math.isqrt(norm * norm // groups))
