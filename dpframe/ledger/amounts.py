"""Amounts of a budget: in words, as decimals for programs, and as exact text."""

from __future__ import annotations

import math
import sys
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

from dpframe.core.budget import GDP, ApproxDP, Budget
from dpframe.core.exact import digits_down, digits_up, sqrt_down
from dpframe.errors import BudgetExceeded

# Exact amounts as text that is read back as they were, however many digits they have.


def hex_text(value: Fraction) -> str:
    """In hexadecimal, which Python reads at any length."""
    return f"{value.numerator:x}/{value.denominator:x}"


def from_hex(text: str) -> Fraction:
    """What `hex_text` wrote. Raises `ValueError, ZeroDivisionError` when the text is invalid."""
    over, _, under = text.partition("/")
    return Fraction(int(over, 16), int(under, 16))


def amounts_text(amount: Budget) -> list[str]:
    """Both amounts of a budget."""
    return [hex_text(amount.main), hex_text(amount.slack)]


def read_amounts(found: object, measure: Budget) -> Budget:
    """What `amounts_text` wrote, in the measure of another budget. Raises `ValueError, TypeError,
    ArithmeticError` when the text is invalid, or in another form.
    """
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise TypeError
    main, slack = map(from_hex, found)
    amount = measure.of(main, slack)
    if amounts_text(amount) != found:  # of one amount there is one form
        raise ValueError
    return amount


# Totals of many amounts.

_LONG, _PLACES = 2048, 1024


def add_up(total: Budget, cost: Budget) -> Budget:
    """A total with one more cost. It is exact, unless its denominator has more than 2048 bits: then
    it is rounded up to a multiple of 2**-1024. So no number of charges makes a total that is too
    long to add to or to write, and none is too small.
    """
    exact = total + cost
    if max(exact.main.denominator, exact.slack.denominator).bit_length() <= _LONG:
        return exact
    return exact.of(_round_up(exact.main), _round_up(exact.slack))


def _round_up(value: Fraction) -> Fraction:
    if value.denominator.bit_length() <= _LONG:
        return value
    return Fraction(-(-(value.numerator << _PLACES) // value.denominator), 1 << _PLACES)


# Amounts as decimals, for programs that compare them: never more is left, nor less spent, than is.
#
# The exact fractions are always written with them.


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


def left_fields(remaining: Budget) -> dict[str, object]:
    """What is left of a budget, exactly and as decimals, for programs."""
    return {"remaining": exact_fields(remaining), "remaining_decimal": decimals(remaining)}


def _printed(value: float) -> Fraction:
    """What a float prints as."""
    return Fraction(repr(value))


# Amounts in words at full precision, and the refusal of a spend that does not fit.


def over_budget(
    budget: Budget,
    spent: Budget,
    cost: Budget,
    within: ApproxDP | None = None,
    *,
    of: str | None = None,
) -> BudgetExceeded:
    """The refusal of a spend, with all amounts at full precision.

    `within` is the (epsilon, delta) that a budget of rho was opened with; spends are then given
    in epsilon too, and the refusal states how much of it fits. `of` names the part of the budget
    that it is about: ``for this part``.
    """
    left = budget - spent
    over = cost - left
    amounts = [f"{cost.currency} {exact_amount(over.main)}"] if over.main else []
    if over.slack:
        amounts.append(f"delta {exact_amount(over.slack)}")
    whole = exact_words(budget) + ("" if of is None else f" {of}")
    if within is not None and of is None:
        whole += f" (for {exact_words(within)})"
    remedy: str | tuple[str, str]
    if not left.main:
        remedy = (
            "ask the data owner for more budget, who adds it with `dpframe ledger grant`",
            "open a session with a larger budget, if the session keeps it in memory",
        )
    elif within is not None and isinstance(left, GDP):  # which no spend is given in
        remedy = f"spend epsilon {exact_amount(pure_epsilon_of_mu(left.main))} and no delta"
    elif over.slack and not over.main:
        most = f"delta={exact_amount(left.slack)}" if left.slack else "no delta"
        remedy = (f"spend at most {most}", "list the groups, keys=[...], which needs no delta")
    else:
        remedy = f"spend at most {exact_words(left)}"
        if within is not None:
            pure = f"spend epsilon {exact_amount(pure_epsilon(left.main))} and no delta"
            remedy = (remedy, pure)
    return BudgetExceeded(
        f"the plan costs {exact_words(cost)}, which is {' and '.join(amounts)} too much",
        why=f"the budget of {whole} has {exact_words(left)} left",
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


def pure_epsilon_of_mu(mu_squared: Fraction) -> Fraction:
    """An epsilon of a plan without delta that costs at most this square of mu, cut to six digits.

    One part of epsilon costs 4 z**2, z the quantile of the normal law at exp(epsilon) / (1 +
    exp(epsilon)); several parts that add up to it cost no more, since that grows faster.
    """
    half = math.sqrt(mu_squared) / 2
    if half > 30:  # floats cannot hold such probabilities, and epsilon is above 450
        return Fraction(450)
    odds = NormalDist().cdf(half) / NormalDist().cdf(-half)
    return digits_down(Fraction(math.log(odds)) * (1 - Fraction(1, 10**6)), 6)


def exact_words(budget: Budget) -> str:
    """Amounts at full precision."""
    text = f"{budget.currency} {exact_amount(budget.main)}"
    return f"{text} and delta {exact_amount(budget.slack)}" if budget.slack else text


def exact_amount(value: Fraction) -> str:
    """A number that people may write back: all its decimals, or the first 17 where it has more.

    Cut, never rounded up, so that a spend of the amount shown as remaining is never refused.
    """
    with localcontext(prec=17, rounding=ROUND_DOWN):
        cut = Decimal(value.numerator) / value.denominator
    if not 1e-4 <= cut < 1e17 and cut:
        mantissa, _, exponent = f"{cut.normalize():e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{cut.normalize():f}"
