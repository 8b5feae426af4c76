"""Amounts as decimals, for programs that compare them: never more is left, nor less spent, than is.

The exact fractions are always written with them.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from dpframe.core.budget import Budget


def decimals(budget: Budget, *, up: bool = False) -> dict[str, float]:
    """The amounts of a budget by name, as floats that print as the nearest decimals on one side:
    `up` for what was spent, down for what is left.
    """
    return {
        budget.currency: decimal(budget.main, up=up),
        "delta": decimal(budget.slack, up=up),
    }


def decimal(value: Fraction, *, up: bool = False) -> float:
    """A number as the float that prints as it, or as a decimal just below or above it; beyond all
    floats the largest one.
    """
    try:
        result = float(value)
    except OverflowError:
        return sys.float_info.max
    while _printed(result) < value if up else _printed(result) > value:
        result = math.nextafter(result, math.inf if up else -math.inf)
    return result


def exact_fields(budget: Budget) -> dict[str, str]:
    """The amounts of a budget by name, exactly, as text such as ``"3/10"``."""
    return {
        "measure": budget.measure,
        budget.currency: str(budget.main),
        "delta": str(budget.slack),
    }


def left_fields(remaining: Budget) -> dict[str, dict[str, str] | dict[str, float]]:
    """What is left of a budget, exactly and as decimals, for programs."""
    return {"remaining": exact_fields(remaining), "remaining_decimal": decimals(remaining)}


def _printed(value: float) -> Fraction:
    """What a float prints as."""
    return Fraction(repr(value))
