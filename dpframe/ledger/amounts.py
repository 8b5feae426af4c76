"""Amounts in words at full precision, and the refusal of a spend that does not fit."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction

from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.exact import digits_up, sqrt_down
from dpframe.errors import BudgetExceeded


def over_budget(
    budget: Budget,
    spent: Budget,
    cost: Budget,
    within: ApproxDP | None = None,
    *,
    part: bool = False,
) -> BudgetExceeded:
    """The refusal of a spend, with all amounts at full precision.

    `within` is the (epsilon, delta) that a budget of rho was opened with; spends are then given in
    epsilon too, and the refusal says how much of it fits. A `part` has its own budget.
    """
    left = budget - spent
    over = cost - left
    amounts = [f"{cost.currency} {exact_amount(over.main)}"] if over.main else []
    if over.slack:
        amounts.append(f"delta {exact_amount(over.slack)}")
    whole = exact_words(budget) + (" for this part" if part else "")
    if within is not None and not part:
        whole += f" (for {exact_words(within)})"
    remedy = f"spend at most {exact_words(left)}" if left.main else "the budget is used up"
    if within is not None and left.main:
        remedy += f", or epsilon {exact_amount(pure_epsilon(left.main))} and no delta"
    return BudgetExceeded(
        f"the plan costs {exact_words(cost)}, and {exact_words(left)} remains of "
        f"{whole}: {' and '.join(amounts)} too much",
        remedy=remedy,
    )


def pure_epsilon(rho: Fraction) -> Fraction:
    """The largest epsilon, to 17 digits, of a plan without delta that costs at most rho.

    Parts that add up to epsilon are (epsilon**2 / 2)-zCDP or less (Bun and Steinke 2016,
    Proposition 1.4).
    """
    best = sqrt_down(2 * rho)
    shown = Fraction(exact_amount(best))
    if digits_up(shown * shown / 2) <= rho:
        return shown
    return Fraction(exact_amount(best * (1 - Fraction(1, 10**16))))


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
