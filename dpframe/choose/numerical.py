"""Mechanisms whose privacy losses together, convolved, stay within (epsilon, delta).

The parts of a plan get shares of rho, and rho is the largest at which their privacy loss
distributions, composed as `dpframe.accounting.PrivacyLossAccountant` composes them, keep epsilon at
delta. Shares of rho only divide the noise; the guarantee follows from the composed distribution.
It is no more than what zCDP implies for noise, and for choices of one range; where choices have
several ranges it may be more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dpframe.accounting.losses import Composition, Translated
from dpframe.core.budget import ApproxDP
from dpframe.core.exact import dyadic_down, float_down
from dpframe.kernel.losses import Geometrics, Loss, Normals, Wholes
from dpframe.mechanisms import REFINED, AdditiveTask, Choice, MechanismTask

__all__ = ["Chooser", "finer", "largest_within", "refined"]

Chooser = Callable[[Fraction], "tuple[Choice, ...]"]

_ENOUGH: Final = 1e-5
"""How much of epsilon may be left unused."""
_SPARE: Final = 1e-8
"""How much more the kernel may find in the whole plan, where it smooths noise by other factors."""
_BITS: Final = 20
"""Of rho: plans should be the same on machines whose floats differ in their last bits."""
_STEPS: Final = 12
_SLOPE: Final = 0.55
_TRIES: Final = 4
_LARGEST_STEPPED: Final = Fraction(2**14)
"""Smoothing larger variances costs a ten-thousandth of them, and makes them one law."""
_MANY: Final = 8
_LARGEST_STEPPED_OF_MANY: Final = Fraction(2**6)


def largest_within(
    chooser: Chooser,
    asked: Sequence[MechanismTask],
    spend: ApproxDP,
    start: Fraction,
) -> tuple[Choice, ...] | None:
    """The choices at about the largest rho that keeps the spend.

    Their losses are composed after they are chosen, independently of how they were chosen. The
    search itself scales losses, which is fast: to what rho they would grow.

    Parameters
    ----------
    chooser
        Gives the choices at a rho for the whole plan.
    asked
        What each choice is for.
    spend
        Its delta above 0 and within floats.
    start
        A rho of the right size.

    Returns
    -------
    tuple of Choice, or None
        None when the losses of a mechanism are not known, or no rho near `start` is small enough.
    """
    delta, epsilon = float_down(spend.slack), float_down(spend.main)
    found: tuple[Choice, ...] | None = None
    rho = dyadic_down(start, _BITS)
    for _ in range(_TRIES):
        choices = chooser(rho)
        pairs = _pairs(choices, asked)
        if pairs is None:
            return None
        price = Composition(pairs).epsilon(delta, epsilon)
        if price <= epsilon * (1 - _SPARE):
            found = choices
            if price >= epsilon * (1 - _ENOUGH):
                break
        rho = dyadic_down(rho * _room(pairs, delta, epsilon, price), _BITS)
    return found


def _room(pairs: Mapping[Translated, int], delta: float, epsilon: float, price: float) -> Fraction:
    """By how much rho may about grow, or must shrink, where epsilon is `price` now: it grows with
    rho about as a power, so the secant through the last two points finds it in a few steps.
    """
    at, slope = 0.0, _SLOPE  # of ln epsilon against ln rho
    last: tuple[float, float] | None = None
    for _ in range(_STEPS):
        excess = math.log(min(max(price, 1e-300), 1e300) / epsilon)
        if abs(excess) < _ENOUGH / 8:
            break
        if last is not None:
            slope = min(2.0, max(0.2, (excess - last[1]) / (at - last[0])))
        last = at, excess
        at -= min(4.0, max(-4.0, excess / slope))
        price = _scale(pairs, math.exp(at)).epsilon(delta, epsilon)
    return Fraction(math.exp(at - _ENOUGH / 4))


def _scale(pairs: Mapping[Translated, int], factor: float) -> Composition:
    """The losses scaled as if rho were `factor` times as large."""
    return Composition(
        {replace(p, law=_scale_law(p.law, Fraction(factor))): n for p, n in pairs.items()}
    )


def _scale_law(law: Loss, factor: Fraction) -> Loss:
    root = Fraction(math.sqrt(factor))
    match law:
        case Normals():
            return Normals(law.d_squared * factor)
        case Wholes():
            return Wholes(law.sigma_squared / factor)
        case Geometrics():
            return replace(law, h=law.h * root)
        case _:
            return replace(law, epsilon=law.epsilon * root)


def _pairs(choices: Sequence[Choice], asked: Sequence[MechanismTask]) -> Counter[Translated] | None:
    """Pairs that dominate the mechanisms; None where one is not known."""
    found = _pairs_stepped(choices, asked, _LARGEST_STEPPED)
    if found is not None and len(found) > _MANY:
        return _pairs_stepped(choices, asked, _LARGEST_STEPPED_OF_MANY)
    return found


def _pairs_stepped(
    choices: Sequence[Choice], asked: Sequence[MechanismTask], largest: Fraction
) -> Counter[Translated] | None:
    pairs: Counter[Translated] = Counter()
    for choice, what in zip(choices, asked, strict=True):
        found = tuple(choice.law.pairs(what.exposure, largest))
        if any(pair is None for pair in found):
            return None
        # Equal pairs are usually one object, and comparing fractions is slow.
        known = {id(pair): pair for pair in found if pair is not None}
        for number, count in Counter(map(id, found)).items():
            pairs[known[number]] += count
    return pairs


def refined(chooser: Chooser, asked: Sequence[MechanismTask]) -> Chooser:
    """The same choices, with finer noise where there is any."""

    def made(rho: Fraction) -> tuple[Choice, ...]:
        found = zip(chooser(rho), asked, strict=True)
        return tuple(finer(choice, what) or choice for choice, what in found)

    return made


def finer(choice: Choice, asked: MechanismTask) -> Choice | None:
    """The same noise drawn on a finer grid, if its own steps cost losses that a finer grid does
    not have, and many such choices together cost less; else None.
    """
    if not isinstance(asked, AdditiveTask):
        return None
    for kind in REFINED:
        law = kind.refining(choice.law, asked)
        if law is not None:
            return replace(choice, law=law, reason=f"{choice.reason}; {kind.refinement}")
    return None
