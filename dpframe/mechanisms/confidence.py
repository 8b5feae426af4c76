"""What a confidence leaves over for each of several independent draws."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpframe.core.exact import as_given, exact
from dpframe.errors import InvalidBounds

DIGITS: Final = Context(prec=60, Emin=-(10**9), Emax=10**9)
"""Sixty digits: the standard library's decimal logarithm and exponential are correctly rounded."""


def miss(confidence: float | Fraction) -> Fraction:
    """1 - confidence, exactly; a float means the decimal that it prints as.

    Raises
    ------
    InvalidBounds
        When the confidence does not lie between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise InvalidBounds(
            f"a confidence of {as_given(confidence)} does not lie between 0 and 1",
            remedy="write confidence=0.95",
        )
    return 1 - exact(confidence)


def miss_per_cell(confidence: float | Fraction, cells: int) -> Decimal:
    """The a with (1 - a)**cells = confidence: what each of `cells` independent draws may miss.

    Raises
    ------
    InvalidBounds
        When the confidence does not lie between 0 and 1.
    ValueError
        When there are no cells.
    """
    if cells < 1:
        raise ValueError("at least one cell is needed")
    return _per_cell(miss(confidence), cells)


@lru_cache(maxsize=256)
def _per_cell(rest: Fraction, cells: int) -> Decimal:
    if cells == 1:
        return _decimal(rest)
    log = DIGITS.ln(_decimal(1 - rest))
    return DIGITS.subtract(Decimal(1), DIGITS.exp(DIGITS.divide(log, Decimal(cells))))


def _decimal(value: Fraction) -> Decimal:
    return DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def log_tier(miss: float) -> int:
    """Down to which exp(-nats) a law must be known for a probability of `miss`: one of a few."""
    wanted = 12.0 - math.log(max(miss, 1e-300))
    tier = 1 << max(4, math.ceil(math.log2(wanted)))
    return 3 * tier // 4 if tier > 16 and 3 * tier // 4 >= wanted else tier
