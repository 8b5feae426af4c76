"""Sessions with an (epsilon, delta) that add up rho or mu squared: how much of it they have, and
how spends are read.

All plans of such a session together are rho-zCDP, even if each is chosen after results of earlier
ones. The sum of rho is a privacy filter: that of Feldman and Zrnic (2021) holds at every order of
Renyi divergence, see also Whitehouse, Ramdas, Rogers and Wu (2023). At the end rho-zCDP implies
(epsilon, delta) (Canonne, Kamath and Steinke 2020, Proposition 12). Many small plans then cost
about the root of their sum of epsilons, because pure epsilon is (epsilon**2 / 2)-zCDP (Bun and
Steinke 2016, Proposition 1.4).

In Gaussian differential privacy squares of mu add up, and their sum is a privacy filter too (Smith
and Thakurta 2022; Koskela, Tobaben and Honkela 2023). The epsilon implied at the end is exact
(Balle and Wang 2018, Theorem 8), so a budget has room for more Gaussian noise than through rho;
other mechanisms cost more, see `dpframe.accounting.gaussian_noise`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.accounting.gaussian_noise import largest_mu_squared, largest_rho
from dpframe.charge.spend import slack_beside_accuracy, spend_in
from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget
from dpframe.core.exact import Number, as_given, digits_down, float_down
from dpframe.errors import InvalidBudget, require

_LEAST_DELTA = Fraction(1, 10**280)
_MOST_EPSILON = Fraction(10**4)
"""Beyond these floats may not hold what the conversion computes."""
_DIGITS = 8


def rho_within(budget: ApproxDP) -> Fraction:
    """The largest rho that implies `budget`, rounded down to 8 digits.

    Floats are rounded towards less; delta by more than the error of its logarithm. This few
    digits can be read, and are the same on nearly all machines.

    Raises
    ------
    InvalidBudget
        When there is no delta, or it is too small for floats.
    """
    return digits_down(largest_rho(*_epsilon_and_log_delta(budget, "zcdp")), _DIGITS)


def mu_squared_within(budget: ApproxDP) -> Fraction:
    """The largest square of mu that implies `budget`, in the same way.

    Raises
    ------
    InvalidBudget
        When there is no delta, or it is too small for floats.
    """
    return largest_mu_squared(*_epsilon_and_log_delta(budget, "gdp"), _DIGITS)


def _epsilon_and_log_delta(budget: ApproxDP, composition: str) -> tuple[Fraction, float]:
    if budget.slack <= _LEAST_DELTA:
        raise InvalidBudget(
            f'composition="{composition}" needs a delta, and one above 1e-280',
            where=f'composition="{composition}"',
            remedy=f'write dp.Session(epsilon=1, delta=1e-8, composition="{composition}")',
        )
    return min(budget.main, _MOST_EPSILON), math.log(float_down(budget.slack)) - 1e-11


def counted_in(measure: type[Budget], budget: ApproxDP) -> Budget:
    """An (epsilon, delta) in the measure that charges are added up in."""
    if measure is GDP:
        return GDP(mu_squared_within(budget))
    require(measure is ZCDP, "charges are counted in GDP or zCDP")
    return ZCDP(rho_within(budget))


def resolve_composition(budget: Budget, composition: str) -> tuple[Budget, ApproxDP | None]:
    """What a session's charges are added up against, and the (epsilon, delta) that it stands for
    where it is rho or mu squared in place of that.

    Raises
    ------
    InvalidBudget
        When the composition does not exist, or does not fit such a budget.
    """
    if composition == "sum":
        return budget, None
    if composition not in ("zcdp", "gdp"):
        raise InvalidBudget(
            f"there is no composition {composition!r}",
            where=f"composition={composition!r}",
            remedy=(
                "leave composition= out",
                'write composition="zcdp" or composition="gdp" for a budget of epsilon and delta',
            ),
        )
    where, unit = f'composition="{composition}"', "rho" if composition == "zcdp" else "mu"
    if isinstance(budget, ZCDP):
        raise InvalidBudget(
            "composition= has no effect on a budget of rho, which is added up in rho already",
            where=where,
            remedy="leave composition= out",
        )
    if not isinstance(budget, ApproxDP):
        raise InvalidBudget(
            f"{where} needs a delta: {unit} gives no guarantee with epsilon alone",
            where=where,
            remedy=("open the session with delta=1e-8", "leave composition= out"),
        )
    return counted_in(ZCDP if composition == "zcdp" else GDP, budget), budget


def spend_within(
    epsilon: Number | None, delta: Number | None, rho: Number | None, remaining: Budget
) -> Budget:
    """A spend in a session that adds up rho or mu squared: either (epsilon, delta), or rho.

    Raises
    ------
    InvalidBudget
        When it is empty, zero, negative, infinite, or both.
    """
    if rho is None:
        return spend_in(ApproxDP, epsilon, delta, None, remaining)
    if epsilon is not None or delta is not None:
        other = "epsilon" if epsilon is not None else "delta"
        raise InvalidBudget(
            f"a spend of rho cannot be combined with {other} in a session that adds up "
            f"{remaining.currency}",
            where=f"rho={as_given(rho)}, {other}={as_given(delta if epsilon is None else epsilon)}",
            remedy=("spend epsilon and delta", "spend rho alone"),
        )
    return spend_in(ZCDP, None, None, rho, remaining)


def accuracy_within(
    epsilon: Number | None, delta: Number | None, rho: Number | None
) -> tuple[type[Budget], Fraction]:
    """The measure and the delta of a spend that is given by its accuracy: the least epsilon for a
    given delta, the least rho without one.

    Raises
    ------
    InvalidBudget
        When an amount is given too, or the delta makes no sense.
    """
    measure = ZCDP if delta is None else ApproxDP
    return measure, slack_beside_accuracy(measure, epsilon, delta, rho)
