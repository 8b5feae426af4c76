"""Amounts in words at full precision, and the refusal of a spend that does not fit."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction

from dpframe.core.budget import Budget
from dpframe.errors import BudgetExceeded


def over_budget(budget: Budget, spent: Budget, cost: Budget) -> BudgetExceeded:
    """The refusal of a spend, with all amounts at full precision."""
    left = budget - spent
    over = cost - left
    amounts = [f"{cost.currency} {exact_amount(over.main)}"] if over.main else []
    if over.slack:
        amounts.append(f"delta {exact_amount(over.slack)}")
    return BudgetExceeded(
        f"the plan costs {exact_words(cost)}, and {exact_words(left)} remains of "
        f"{exact_words(budget)}: {' and '.join(amounts)} too much",
        remedy=f"spend at most {exact_words(left)}" if left.main else "the budget is used up",
    )


def exact_words(budget: Budget) -> str:
    """Amounts at full precision."""
    text = f"{budget.currency} {exact_amount(budget.main)}"
    return f"{text} and delta {exact_amount(budget.slack)}" if budget.slack else text


def exact_amount(value: Fraction) -> str:
    """A number that people may write back: all its decimals, or the first 17 where it has more.

    Cut, never rounded up, so that spending what is said to remain is never refused.
    """
    with localcontext(prec=17, rounding=ROUND_DOWN):
        cut = Decimal(value.numerator) / value.denominator
    if not 1e-4 <= cut < 1e17 and cut:
        mantissa, _, exponent = f"{cut.normalize():e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{cut.normalize():f}"
