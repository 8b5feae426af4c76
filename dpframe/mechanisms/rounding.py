"""Arguments of mechanisms: exact, in range, and if rounded then towards more noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dpframe.core.exact import dyadic_up
from dpframe.errors import InvalidBudget

_LONGEST: Final = 1024


def positive_budget(value: Fraction, name: str) -> Fraction:
    """`value` as a Fraction when it can be spent.

    Raises
    ------
    InvalidBudget
        When it is not an exact, positive number.
    """
    if not isinstance(value, (Fraction, int)) or value <= 0:
        raise InvalidBudget(
            f"{name} must be an exact number above 0, not {value!r}",
            remedy=f"write for example {name}=Fraction(1, 2)",
        )
    return Fraction(value)


def positive_sensitivity(value: Fraction, name: str) -> Fraction:
    """`value` as a Fraction when noise can be calibrated to it.

    Raises
    ------
    ValueError
        When it is not an exact, positive number; a sensitivity of 0 needs no noise.
    """
    if nonnegative(value, name) == 0:
        raise ValueError(f"{name} is 0: release it with NoNoise()")
    return Fraction(value)


def nonnegative(value: Fraction, name: str) -> Fraction:
    """`value` as a Fraction.

    Raises
    ------
    ValueError
        When it is not an exact number of at least 0.
    """
    if not isinstance(value, (Fraction, int)) or value < 0:
        raise ValueError(f"{name} must be an exact number of at least 0, not {value!r}")
    return Fraction(value)


def in_range(value: Fraction, low: Fraction, high: Fraction, name: str) -> Fraction:
    """A noise parameter, shortened and raised to `low`: both only ever add noise.

    Raises
    ------
    InvalidBudget
        When it is above `high`: that much noise cannot be drawn.
    """
    if not isinstance(value, (Fraction, int)) or value <= 0:
        raise ValueError(f"{name} must be an exact number above 0, not {value!r}")
    if value > high:
        raise InvalidBudget(
            f"{name} would be above 2**{high.numerator.bit_length() - 1} grid steps, "
            "more than can be drawn",
            remedy=("spend more", "give narrower bounds or a smaller row limit"),
        )
    return short_up(max(Fraction(value), low))


def short_up(value: Fraction) -> Fraction:
    """`value` itself, or if it takes very many digits a short number at most 2**-63 above it."""
    if value.numerator.bit_length() + value.denominator.bit_length() <= _LONGEST:
        return value
    return dyadic_up(value)
