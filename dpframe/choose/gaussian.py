"""What a plan costs in Gaussian differential privacy, however its mechanisms were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpframe.choose.together import ComposedChoice
from dpframe.core.budget import GDP
from dpframe.core.exact import digits_up
from dpframe.errors import UnsupportedOperation
from dpframe.mechanisms import Mechanism, MechanismTask


def in_mu(asked: Sequence[MechanismTask], together: ComposedChoice) -> ComposedChoice:
    """The same mechanisms with the same noise, at their costs in mu**2, which are rounded up to 14
    digits.

    Squares of mu add up (Dong, Roth and Su 2022, Corollary 3.3). The sum is rounded up to 17
    digits. One that fails altogether with some probability would not be GDP, and is refused.

    Raises
    ------
    UnsupportedOperation
        When a mechanism has no mu.
    """
    choices = tuple(
        replace(choice, cost=GDP(_mu_squared(a, choice.law)))
        for a, choice in zip(asked, together.choices, strict=True)
    )
    total = sum((choice.cost.main for choice in choices), Fraction(0))
    return ComposedChoice(choices, GDP(digits_up(total)), "sum")


def _mu_squared(asked: MechanismTask, law: Mechanism) -> Fraction:
    found = law.mu_squared_cost(asked.exposure)
    if found is None:
        raise UnsupportedOperation(
            f"the cost of {law.name} in Gaussian differential privacy is not known",
            where=asked.name,
            remedy="run it in another session, and leave composition= out there",
        )
    return digits_up(found, 14)
