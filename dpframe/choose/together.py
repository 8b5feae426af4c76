"""The mechanisms of a whole plan, and what they cost together.

A plan's parameters are fixed before any noise is drawn, so any composition theorem applies. Under
pure DP and zCDP costs add up. Under approximate DP there are two ways, and the one with less noise
is taken:

*By sums*: each part gets its share of epsilon, and those with Gaussian noise a share of delta
(Dwork and Roth 2014, Theorem 3.16).

*Through zCDP*: the largest rho that implies the whole (epsilon, delta) (Canonne, Kamath and Steinke
2020, Proposition 12) is shared out instead. Noise then grows with the root of the number of parts
and not with the number, so this is for plans of many parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from dpframe.accounting.zcdp import largest_rho
from dpframe.choose.mechanism import Asked, Choice, choose
from dpframe.choose.split import split
from dpframe.core.budget import ZCDP, ApproxDP, Budget
from dpframe.core.exact import float_down
from dpframe.errors import DPFrameError
from dpframe.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    NoNoise,
    RandomizedResponse,
)

Composition: TypeAlias = Literal["sum", "zcdp"]

_LEAST_DELTA = Fraction(1, 10**280)
_MOST_EPSILON = Fraction(10**4)
"""Beyond these floats may not hold what the conversion computes; sums do not need it."""


@dataclass(frozen=True, slots=True)
class Together:
    """The mechanisms of a plan.

    Parameters
    ----------
    choices
        One per part. With zCDP composition their costs are amounts of rho.
    cost
        What they cost together, never more than the spend.
    composition
        How their costs make that.
    """

    choices: tuple[Choice, ...]
    cost: Budget
    composition: Composition


def choose_together(asked: Sequence[Asked], weights: Sequence[Fraction], spend: Budget) -> Together:
    """Mechanisms for all parts of a plan at relative costs `weights`, with the least noise.

    Raises
    ------
    DPFrameError
        When a part cannot be released within its share.
    """
    summed = _by_sums(asked, weights, spend)
    if not isinstance(spend, ApproxDP) or not spend.slack:
        return summed
    concentrated = _through_zcdp(asked, weights, spend)
    if concentrated is None or _noise(concentrated) >= _noise(summed):
        return summed
    return concentrated


def _by_sums(asked: Sequence[Asked], weights: Sequence[Fraction], spend: Budget) -> Together:
    """Equal shares per weight; delta goes to the parts that use it."""
    shares = split(spend, weights)
    choices = tuple(choose(a, s) for a, s in zip(asked, shares, strict=True))
    if spend.slack:
        users = [w if c.cost.slack else Fraction(0) for w, c in zip(weights, choices, strict=True)]
        choices = tuple(
            choose(a, spend.of(share.main, delta.slack)) if choice.cost.slack else choice
            for a, share, delta, choice in zip(
                asked, shares, split(spend, users), choices, strict=True
            )
        )
    cost = spend.of(Fraction(0))
    for choice in choices:
        cost = cost + choice.cost
    return Together(choices, cost, "sum")


def _through_zcdp(
    asked: Sequence[Asked], weights: Sequence[Fraction], spend: ApproxDP
) -> Together | None:
    """Shares of the largest rho that implies the spend; None where that does not apply."""
    if sum(1 for weight in weights if weight) < 2 or spend.slack <= _LEAST_DELTA:
        return None
    log_delta = math.log(float_down(spend.slack)) - 1e-11  # less than floats could add
    rho = largest_rho(min(spend.main, _MOST_EPSILON), log_delta)
    shares = split(ZCDP(rho), weights)
    try:
        choices = tuple(choose(a, s) for a, s in zip(asked, shares, strict=True))
    except DPFrameError:  # more noise than can be drawn, which the sums may not need
        return None
    return Together(choices, spend, "zcdp")


def _noise(together: Together) -> float:
    """The sum of the logarithms of the parts' noise: less is less by a factor on average."""
    return sum(_log_noise(choice) for choice in together.choices)


def _log_noise(choice: Choice) -> float:
    match choice.law:
        case NoNoise():
            return 0.0
        case DiscreteLaplace() | DiscreteGaussian() as law:
            return math.log(max(law.variance(), 5e-324)) / 2
        case RandomizedResponse() as law:
            return -math.log(law.truthful)
        case law:
            return math.log(law.scale.numerator) - math.log(law.scale.denominator)
