"""Groups that appear by a noisy number which is released anyway, where that shows more of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.choose.together import ComposedChoice, choose_together
from dpframe.core.budget import ZCDP, ApproxDP, Budget
from dpframe.errors import DPFrameError
from dpframe.mechanisms import (
    KEYS,
    AdditiveMechanism,
    Choice,
    KeyMechanism,
    KeyTask,
    MechanismTask,
)

_HALF = Fraction(1, 2)


def choose_with_keys(
    asked: Sequence[MechanismTask],
    weights: Sequence[Fraction],
    spend: Budget,
    rho_weights: Sequence[Fraction],
    number: int | None,
) -> ComposedChoice:
    """Mechanisms for all parts; the first is the choice of groups.

    Either that has a rule and a cost of its own, or the groups with a large enough noisy number (or
    sum of weights) appear, at no cost but delta. What shows more groups is taken: that by which a
    group needs fewer individuals for an even chance.

    Parameters
    ----------
    asked, weights, spend, rho_weights
        As for `choose_together`.
    number
        Which of the parts is the number that groups are chosen by, if it is among them.

    Raises
    ------
    DPFrameError
        When a part cannot be released within its share.
    """
    apart = choose_together(asked, weights, spend, rho_weights)
    if number is None or not spend.slack:
        return apart
    own = apart.choices[0].law
    assert isinstance(own, KeyMechanism)
    best, least = apart, own.size_at(_HALF) + 1
    for share in (Fraction(1), _HALF):
        found = _by_number(asked, weights, spend, rho_weights, number, share)
        if found is not None and found[1] < least:
            best, least = found
    return best


def _by_number(
    asked: Sequence[MechanismTask],
    weights: Sequence[Fraction],
    spend: Budget,
    rho_weights: Sequence[Fraction],
    number: int,
    share: Fraction,
) -> tuple[ComposedChoice, int] | None:
    """The mechanisms when this share of delta goes to the threshold, and the threshold."""
    assert isinstance(asked[0], KeyTask)
    keys = asked[0].groups
    slack = spend.slack * share
    try:
        rest = choose_together(
            asked[1:],
            weights[1:],
            spend.of(spend.main, spend.slack - slack),
            rho_weights[1:],
        )
    except DPFrameError:  # Gaussian noise was requested and has no delta left
        return None
    noise = rest.choices[number - 1].law
    if not isinstance(noise, AdditiveMechanism) or noise.is_exact:
        return None
    most = int(asked[number].sensitivity.linf)
    fitting = (kind.over_number(noise, asked[0], most, slack) for kind in KEYS)
    law = next((rule for rule in fitting if rule is not None), None)
    if law is None:
        return None
    measure = ZCDP if isinstance(spend, ZCDP) or rest.composition != "sum" else ApproxDP
    cost = measure.of(Fraction(0), law.delta(keys))
    reason = "with the noise of the number that is released, at no epsilon"
    whole = spend.of(rest.cost.main, rest.cost.slack + law.delta(keys))
    choices = (Choice(law, cost, reason), *rest.choices)
    return ComposedChoice(choices, whole, rest.composition), law.size_at(_HALF)
