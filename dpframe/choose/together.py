"""The mechanisms of a whole plan, and what they cost together, in any measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias, TypeVar

from dpframe.accounting.gaussian_noise import largest_rho, largest_shift
from dpframe.choose.mechanism import Chooser, choose, finer, largest_within, refined, split
from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget
from dpframe.core.exact import digits_up, float_down
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.mechanisms import (
    KEYS,
    AdditiveMechanism,
    Choice,
    KeyMechanism,
    KeyTask,
    Mechanism,
    MechanismTask,
    SelectionTask,
)

# -- the mechanisms of a whole plan, and what they cost together ----------------------------------
# A plan's parameters are fixed before any noise is drawn, so any composition theorem applies. Under
# pure DP and zCDP costs add up. Under approximate DP there are three ways, and the one with the
# least noise is taken:
#
# *By sums*: each part gets its share of epsilon, and those with Gaussian noise a share of delta
# (Dwork and Roth 2014, Theorem 3.16).
#
# *Numerically*: the parts share a rho, the largest at which their privacy loss distributions
# together keep epsilon at delta, see `dpframe.choose.mechanism`. Noise then grows with the root of
# the number of parts and not with the number, so this is for plans of many parts.
#
# *Through zCDP*: the parts share the largest rho that implies the whole (epsilon, delta) (Canonne,
# Kamath and Steinke 2020, Proposition 12). Usually a little more noise, but known for every
# mechanism, and less where several parts make many choices each.

Composition: TypeAlias = Literal["sum", "numerical", "zcdp"]

_Amount = TypeVar("_Amount", Fraction, Budget)

_LEAST_DELTA = Fraction(1, 10**280)
_AT_BEST = Fraction(5, 4)
"""No mechanism at some rho costs less than Gaussian noise at a rho smaller by this factor; if one
does, the only loss is a little more noise."""
_MOST_EPSILON = Fraction(10**4)
"""Beyond these floats may not hold what the conversion computes; sums do not need it."""


@dataclass(frozen=True, slots=True)
class ComposedChoice:
    """The mechanisms of a plan."""

    # One per part. Unless costs are summed up theirs are amounts of rho.
    choices: tuple[Choice, ...]
    cost: Budget  # What they cost together, never more than the spend
    composition: Composition  # How their costs make that


def choose_together(
    asked: Sequence[MechanismTask],
    weights: Sequence[Fraction],
    spend: Budget,
    rho_weights: Sequence[Fraction] | None = None,
) -> ComposedChoice:
    """Mechanisms for all parts of a plan, with the least noise. `asked`: the parts. `weights`:
    their costs relative to each other. `spend`: the total cost allowed. `rho_weights`: their costs
    relative to each other where these are amounts of rho; `weights` unless given. Raises
    `DPFrameError` when a part cannot be released within its share.
    """
    concentrated = weights if rho_weights is None else rho_weights
    summed = _by_sums(asked, concentrated if isinstance(spend, ZCDP) else weights, spend)
    if not isinstance(spend, ApproxDP) or spend.slack <= _LEAST_DELTA:
        return summed
    if sum(1 for weight in weights if weight) < 2 and not any(map(_repeats, asked)):
        return summed
    choices = sum(isinstance(a, KeyTask) for a in asked)
    keys = spend.slack / 2 if choices else Fraction(0)
    chooser = _chooser(asked, concentrated, keys / max(1, choices))
    noise = _noise_of(summed.choices, asked)
    ways = [summed, *_beside(chooser, asked, spend, keys, noise)]
    return min(ways, key=lambda way: _noise_of(way.choices, asked))


def _repeats(asked: MechanismTask) -> bool:
    """Whether a part is several choices, whose costs may be composed."""
    return isinstance(asked, SelectionTask) and asked.rounds * len(asked.score_range.groups) > 1


def _beside(
    chooser: Chooser,
    asked: Sequence[MechanismTask],
    spend: ApproxDP,
    keys: Fraction,
    summed: float,
) -> Iterator[ComposedChoice]:
    """Ways that share rho, where they may have less noise than sums; `keys` of the delta is for
    choices of groups.
    """
    log_delta = math.log(float_down(spend.slack - keys)) - 1e-11  # less than floats could add
    epsilon = min(spend.main, _MOST_EPSILON)
    rho = largest_rho(epsilon, log_delta)
    with suppress(DPFrameError):  # more noise than can be drawn, which the sums may not need
        best = Fraction(largest_shift(float_down(epsilon), log_delta)) ** 2 / 2
        if _noise_of(chooser(max(rho, best * _AT_BEST)), asked) >= summed:
            return
        concentrated = chooser(rho)
        yield ComposedChoice(concentrated, spend, "zcdp")
        ways = [chooser]
        if any(map(finer, concentrated, asked)):
            ways.append(refined(chooser, asked))
        for way in ways:
            found = largest_within(way, asked, spend, best)
            if found is not None:
                yield ComposedChoice(found, spend, "numerical")


def _chooser(
    asked: Sequence[MechanismTask], weights: Sequence[Fraction], keys: Fraction
) -> Chooser:
    """Mechanisms at shares of rho, with this delta for each choice of groups; equal parts are
    chosen once.
    """
    total = sum(weights, Fraction(0))
    kinds, places = _like_ones(asked, weights)
    shares = [(a, w / total) for a, w in kinds]

    @lru_cache(maxsize=16)
    def at(rho: Fraction) -> tuple[Choice, ...]:
        made = [
            choose(a, ZCDP(rho * share, keys if isinstance(a, KeyTask) else 0))
            for a, share in shares
        ]
        return tuple(made[place] for place in places)

    return at


def _like_ones(
    asked: Sequence[MechanismTask], amounts: Sequence[_Amount]
) -> tuple[list[tuple[MechanismTask, _Amount]], list[int]]:
    """The distinct kinds of parts, each by its first part, which messages name; and the kind of
    each part.
    """
    numbers: dict[tuple[MechanismTask, _Amount], int] = {}
    kinds: list[tuple[MechanismTask, _Amount]] = []
    places = []
    for a, amount in zip(asked, amounts, strict=True):
        place = numbers.setdefault((replace(a, name=""), amount), len(kinds))
        if place == len(kinds):
            kinds.append((a, amount))
        places.append(place)
    return kinds, places


def _by_sums(
    asked: Sequence[MechanismTask], weights: Sequence[Fraction], spend: Budget
) -> ComposedChoice:
    """Equal shares per weight; delta goes to the parts that use it."""
    shares = split(spend, weights)
    kinds, places = _like_ones(asked, shares)
    made = [choose(a, share) for a, share in kinds]
    choices = tuple(made[place] for place in places)
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
    return ComposedChoice(choices, cost, "sum")


def _noise_of(choices: Iterable[Choice], asked: Iterable[MechanismTask]) -> float:
    """The sum of the logarithms of the parts' noise: less is less by a factor on average."""
    return sum(c.law.log_noise(a.alternatives) for c, a in zip(choices, asked, strict=True))


# -- groups that appear by a noisy number which is released anyway, where that shows more of them -

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

    `asked`, `weights`, `spend`, `rho_weights`: as for `choose_together`. `number`: which of the
    parts is the number that groups are chosen by, if it is among them. Raises `DPFrameError` when a
    part cannot be released within its share.
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


# -- what a plan costs in rho, however its mechanisms were chosen ---------------------------------


def in_rho(asked: Sequence[MechanismTask], together: ComposedChoice) -> ComposedChoice:
    """The same mechanisms with the same noise, at their costs in rho instead of (epsilon, delta).

    Costs in rho add up (Bun and Steinke 2016, Lemma 1.7). The sum is rounded up to 17 digits. No
    mechanism here has a delta of its own: Gaussian noise gets one by the conversion only.
    One that fails altogether with some probability would not be zCDP, and is refused.

    Raises `UnsupportedOperation` when a mechanism's rho is not known.
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


# -- what a plan costs in Gaussian differential privacy, however its mechanisms were chosen -------


def in_mu(asked: Sequence[MechanismTask], together: ComposedChoice) -> ComposedChoice:
    """The same mechanisms with the same noise, at their costs in mu**2, which are rounded up to 14
    digits.

    Squares of mu add up (Dong, Roth and Su 2022, Corollary 3.3). The sum is rounded up to 17
    digits. One that fails altogether with some probability would not be GDP, and is refused.

    Raises `UnsupportedOperation` when a mechanism has no mu.
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
