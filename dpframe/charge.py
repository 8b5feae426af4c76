"""Cost against the budget, before anything runs: how spends are read, in the session's measure.

Some sessions with an (epsilon, delta) add up rho or mu squared. All plans of such a session
together are rho-zCDP, even if each is chosen after results of earlier ones. The sum of rho is a
privacy filter, as Feldman and Zrnic (2021) prove at every order of Renyi divergence, see also
Whitehouse, Ramdas, Rogers and Wu (2023). At the end rho-zCDP implies (epsilon, delta) (Canonne,
Kamath and Steinke 2020, Proposition 12). Many small plans then cost about the root of their sum of
epsilons, because pure epsilon is (epsilon**2 / 2)-zCDP (Bun and Steinke 2016, Proposition 1.4).

In Gaussian differential privacy squares of mu add up, and their sum is a privacy filter too (Smith
and Thakurta 2022; Koskela, Tobaben and Honkela 2023). The epsilon implied at the end is exact
(Balle and Wang 2018, Theorem 8), so a budget has room for more Gaussian noise than through rho;
other mechanisms cost more, see `dpframe.accounting.gaussian_noise`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.accounting.gaussian_noise import largest_mu_squared, largest_rho
from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget, PureDP, amount
from dpframe.core.exact import Number, digits_down, float_down, show_input
from dpframe.errors import InvalidBudget, require
from dpframe.ledger.amounts import exact_words


def spend_in(
    measure: type[Budget],
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    remaining: Budget | None,
) -> Budget:
    """A spend as a budget of the session's measure."""
    left = "" if remaining is None else f"; {exact_words(remaining)} remains"
    main, name = (rho, "rho") if measure is ZCDP else (epsilon, "epsilon")
    wrong = epsilon if measure is ZCDP else rho
    if wrong is not None:
        other = "epsilon" if measure is ZCDP else "rho"
        raise InvalidBudget(
            f"the session counts in {name}, and the spend is in {other}{left}",
            where=f"{other}={show_input(wrong)}",
            remedy=f"spend {name}=...",
        )
    if main is None:
        raise InvalidBudget(
            f"the spend is empty{left}", remedy=f"write how much to spend, for example {name}=0.1"
        )
    if amount(main, name) == 0:
        raise InvalidBudget(
            f"{name} must be above 0{left}",
            where=f"{name}={show_input(main)}",
            remedy=f"write how much to spend, for example {name}=0.1",
        )
    slack = amount(0 if delta is None else delta, "delta")
    if measure is PureDP and slack:
        raise InvalidBudget(
            "the session counts in pure epsilon, without a delta",
            where=f"delta={show_input(delta)}",
            remedy=(
                "leave delta= out",
                "open the session with a delta: dp.Session(epsilon=1, delta=1e-8)",
            ),
        )
    if slack >= 1:
        raise InvalidBudget(
            "delta is a probability below 1",
            where=f"delta={show_input(delta)}",
            remedy="write for example delta=1e-8",
        )
    return measure.of(amount(main, name), slack)


def slack_beside_accuracy(
    measure: type[Budget], epsilon: Number | None, delta: Number | None, rho: Number | None
) -> Fraction:
    """The delta of a spend that is given by its accuracy."""
    if epsilon is not None or rho is not None:
        raise InvalidBudget(
            "a spend is an amount or an accuracy, not both",
            where="accuracy=...",
            remedy=("leave accuracy= out", "leave epsilon= and rho= out"),
        )
    any_amount = {"rho": 1} if measure is ZCDP else {"epsilon": 1}
    given = {"epsilon": None, "rho": None, **any_amount}
    return spend_in(measure, given["epsilon"], delta, given["rho"], None).slack


def budget_of(
    budget: Budget | None, epsilon: Number | None, delta: Number | None, rho: Number | None
) -> Budget:
    """A session's budget, from an object or from amounts."""
    amounts = (epsilon, delta, rho)
    if budget is not None:
        if not isinstance(budget, Budget):
            raise InvalidBudget(
                f"{budget!r} is not a budget",
                where="budget",
                remedy=(
                    "write dp.Session(epsilon=1.0)",
                    "pass dp.PureDP(1.0), dp.ApproxDP(1.0, 1e-8) or dp.ZCDP(0.1)",
                ),
            )
        if any(a is not None for a in amounts):
            raise InvalidBudget(
                "the budget is written twice, as an object and as amounts",
                remedy="write it once: dp.Session(epsilon=1.0)",
            )
        if isinstance(budget, GDP):
            raise InvalidBudget(
                "a session does not take an amount of mu squared",
                where="budget",
                remedy='write dp.Session(epsilon=1, delta=1e-8, composition="gdp")',
            )
        made = budget
    elif rho is not None and epsilon is None:
        made = ZCDP(rho, 0 if delta is None else delta)
    elif epsilon is not None and rho is None:
        slack = Fraction(0) if delta is None else amount(delta, "delta")
        made = ApproxDP(epsilon, slack) if slack else PureDP(epsilon)
    else:
        raise InvalidBudget(
            "a session needs a budget",
            remedy=(
                "write dp.Session(epsilon=1.0)",
                "write dp.Session(epsilon=1.0, delta=1e-8) or dp.Session(rho=0.1)",
            ),
        )
    if not made.main:
        raise InvalidBudget(
            f"a session's {made.currency} must be above 0",
            remedy="write for example dp.Session(epsilon=1.0)",
        )
    return made


_LEAST_DELTA = Fraction(1, 10**280)
_MOST_EPSILON = Fraction(10**4)
"""Beyond these floats may not hold what the conversion computes."""
_DIGITS = 8


def rho_within(budget: ApproxDP) -> Fraction:
    """The largest rho that implies `budget`, rounded down to 8 digits.

    Floats are rounded towards less; delta by more than the error of its logarithm. This few
    digits can be read, and are the same on nearly all machines.
    """
    return digits_down(largest_rho(*_epsilon_and_log_delta(budget, "zcdp")), _DIGITS)


def mu_squared_within(budget: ApproxDP) -> Fraction:
    """The largest square of mu that implies `budget`, in the same way."""
    return largest_mu_squared(*_epsilon_and_log_delta(budget, "gdp"), _DIGITS)


def _epsilon_and_log_delta(budget: ApproxDP, composition: str) -> tuple[Fraction, float]:
    if budget.slack <= _LEAST_DELTA:
        raise InvalidBudget(
            f'composition="{composition}" needs a delta, and one above 1e-280',
            where=f'composition="{composition}"',
            remedy=f'write dp.Session(epsilon=1, delta=1e-8, composition="{composition}")',
        )
    return min(budget.main, _MOST_EPSILON), math.log(float_down(budget.slack)) - 1e-11


def convert_budget(measure: type[Budget], budget: ApproxDP) -> Budget:
    """An (epsilon, delta) in the measure that charges are added up in."""
    if measure is GDP:
        return GDP(mu_squared_within(budget))
    require(measure is ZCDP, "charges are counted in GDP or zCDP")
    return ZCDP(rho_within(budget))


def resolve_composition(budget: Budget, composition: str) -> tuple[Budget, ApproxDP | None]:
    """What a session's charges are added up against, and the (epsilon, delta) that it stands for
    where it is rho or mu squared in place of that.
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
    return convert_budget(ZCDP if composition == "zcdp" else GDP, budget), budget


def spend_within(
    epsilon: Number | None, delta: Number | None, rho: Number | None, remaining: Budget
) -> Budget:
    """A spend in a session that adds up rho or mu squared: either (epsilon, delta), or rho."""
    if rho is None:
        return spend_in(ApproxDP, epsilon, delta, None, remaining)
    if epsilon is not None or delta is not None:
        other = "epsilon" if epsilon is not None else "delta"
        raise InvalidBudget(
            f"a spend of rho cannot be combined with {other} in a session that adds up "
            f"{remaining.currency}",
            where=f"rho={show_input(rho)}, "
            f"{other}={show_input(delta if epsilon is None else epsilon)}",
            remedy=("spend epsilon and delta", "spend rho alone"),
        )
    return spend_in(ZCDP, None, None, rho, remaining)


def accuracy_within(
    epsilon: Number | None, delta: Number | None, rho: Number | None
) -> tuple[type[Budget], Fraction]:
    """The measure and the delta of a spend that is given by its accuracy: the least epsilon for a
    given delta, the least rho without one.
    """
    measure = ZCDP if delta is None else ApproxDP
    return measure, slack_beside_accuracy(measure, epsilon, delta, rho)
