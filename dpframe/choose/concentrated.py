"""What a plan costs in rho, however its mechanisms were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpframe.choose.together import ComposedChoice
from dpframe.core.budget import ZCDP
from dpframe.core.exact import digits_up
from dpframe.errors import UnsupportedOperation
from dpframe.mechanisms import Mechanism, MechanismTask


def in_rho(asked: Sequence[MechanismTask], together: ComposedChoice) -> ComposedChoice:
    """The same mechanisms with the same noise, at their costs in rho instead of (epsilon, delta).

    Costs in rho add up (Bun and Steinke 2016, Lemma 1.7). The sum is rounded up to 17 digits. No
    mechanism here has a delta of its own: that of Gaussian noise comes from the conversion only.
    One that fails altogether with some probability would not be zCDP, and is refused.

    Raises
    ------
    UnsupportedOperation
        When a mechanism's rho is not known.
    """
    if isinstance(together.cost, ZCDP):
        return together
    choices = tuple(
        replace(choice, cost=ZCDP(_rho(a, choice.law)))
        for a, choice in zip(asked, together.choices, strict=True)
    )
    total = sum((choice.cost.main for choice in choices), Fraction(0))
    return ComposedChoice(choices, ZCDP(digits_up(total)), "sum")


def _rho(asked: MechanismTask, law: Mechanism) -> Fraction:
    if law.failure(asked.exposure):  # as a choice of groups
        raise UnsupportedOperation(
            f"the cost of {law.name} in rho is not known",
            where=asked.name,
            remedy="run it in another session, and leave composition= out there",
        )
    return law.rho_cost(asked.exposure)
