"""Reading what a user wants to spend, in the session's measure."""

from __future__ import annotations

from fractions import Fraction

from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget, PureDP, amount
from dpframe.core.exact import Number, as_given
from dpframe.errors import InvalidBudget
from dpframe.ledger.amounts import exact_words


def spend_in(
    measure: type[Budget],
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    remaining: Budget | None,
) -> Budget:
    """A spend as a budget of the session's measure.

    Raises
    ------
    InvalidBudget
        When it is empty, zero, negative, infinite, or in another measure.
    """
    left = "" if remaining is None else f"; {exact_words(remaining)} remains"
    main, name = (rho, "rho") if measure is ZCDP else (epsilon, "epsilon")
    wrong = epsilon if measure is ZCDP else rho
    if wrong is not None:
        other = "epsilon" if measure is ZCDP else "rho"
        raise InvalidBudget(
            f"the session counts in {name}, and the spend is in {other}{left}",
            where=f"{other}={as_given(wrong)}",
            remedy=f"spend {name}=...",
        )
    if main is None:
        raise InvalidBudget(
            f"the spend is empty{left}", remedy=f"write how much to spend, for example {name}=0.1"
        )
    if amount(main, name) == 0:
        raise InvalidBudget(
            f"{name} must be above 0{left}",
            where=f"{name}={as_given(main)}",
            remedy=f"write how much to spend, for example {name}=0.1",
        )
    slack = amount(0 if delta is None else delta, "delta")
    if measure is PureDP and slack:
        raise InvalidBudget(
            "the session counts in pure epsilon, without a delta",
            where=f"delta={as_given(delta)}",
            remedy=(
                "leave delta= out",
                "open the session with a delta: dp.Session(epsilon=1, delta=1e-8)",
            ),
        )
    if slack >= 1:
        raise InvalidBudget(
            "delta is a probability below 1",
            where=f"delta={as_given(delta)}",
            remedy="write for example delta=1e-8",
        )
    return measure.of(amount(main, name), slack)


def slack_beside_accuracy(
    measure: type[Budget], epsilon: Number | None, delta: Number | None, rho: Number | None
) -> Fraction:
    """The delta of a spend that is given by its accuracy.

    Raises
    ------
    InvalidBudget
        When epsilon or rho is given too, or the delta makes no sense in the measure.
    """
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
    """A session's budget, from an object or from amounts.

    Raises
    ------
    InvalidBudget
        When no spend is given, or more than one.
    """
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
        made = _approximate(epsilon, delta)
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


def _approximate(epsilon: Number, delta: Number | None) -> Budget:
    """Approximate differential privacy, pure where delta is nothing."""
    slack = Fraction(0) if delta is None else amount(delta, "delta")
    return ApproxDP(epsilon, slack) if slack else PureDP(epsilon)
