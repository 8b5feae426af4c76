"""Mechanisms and numbers as the kernel writes them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.core.rationals import Rationals, rationals
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import Mechanism, NoisyThreshold, WeighedThreshold

__all__ = ["number_law", "numbers_of"]


def number_law(law: Mechanism) -> tuple[int, Mechanism] | None:
    """For groups that appear by a number of another draw: the threshold and the noise of that
    number; None for other mechanisms.
    """
    if isinstance(law, NoisyThreshold | WeighedThreshold):
        noise = law.noise_of_number()
        return None if noise is None else (law.threshold, noise)
    return None


def numbers_of(numbers: Sequence[Fraction]) -> kernel.Numbers:
    """Edges or candidates in the only form that physical plans have for them."""
    numbers = numbers if isinstance(numbers, Rationals) else rationals(numbers)
    are_few = len(numbers) <= kernel.LISTED_UP_TO
    if are_few or not isinstance(numbers, Rationals) or not numbers.are_short:
        return tuple(numbers)
    if isinstance(numbers.numerators, range):
        step = Fraction(numbers.numerators.step, numbers.denominator)
        return kernel.Progression(numbers[0], step, len(numbers))
    return kernel.Ratios(tuple(numbers.numerators), numbers.denominator)
