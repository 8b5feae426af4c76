"""Which mechanism releases a part, with how much noise, and how a cost is divided."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias, TypeVar

from dpframe.accounting.losses import Composition, Translated
from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.edition import is_edition_before
from dpframe.core.exact import dyadic_down, float_down
from dpframe.errors import InvalidBudget, UnsupportedOperation
from dpframe.kernel.losses import Geometrics, Loss, Normals, Wholes
from dpframe.mechanisms import (
    ADDITIVE,
    KEYS,
    RECURSIVE,
    REFINED,
    REPORTS,
    SELECTIONS,
    TOGETHER,
    VECTORS,
    AdditiveMechanism,
    AdditiveTask,
    Choice,
    DiscreteStaircase,
    KeyTask,
    Mechanism,
    MechanismTask,
    NoNoise,
    RecursiveTask,
    ResponseTask,
    SelectionTask,
    TogetherTask,
)

# -- how a query's cost is divided among its parts ------------------------------------------------

Split: TypeAlias = Literal["least error", "equal"]
"""How a plan's cost is divided where no weight is given: with the least sum of squared relative
errors, or equally among the outputs."""

_SHARE_BITS = 24


def least_error_weights(impacts: Sequence[Fraction], *, shares_rho: bool) -> list[Fraction]:
    """Relative costs that minimise the sum of the parts' squared relative errors.

    With x_p of the cost, the squared error is impact_p / x_p**2 where the cost is an epsilon (noise
    falls with it), and impact_p / x_p where it is a rho (its square does). By Lagrange, x_p is
    proportional to the cube root, or the square root, of the impact. Roots are rounded down to
    `_BITS` binary places, the same on all machines.

    `impacts`: at least 0; the parts' squared effects on the relative errors of all outputs.
    `shares_rho`: whether amounts of rho are shared, or epsilons.
    """
    return [_root(impact, 2 if shares_rho else 3) for impact in impacts]


def _root(value: Fraction, degree: int) -> Fraction:
    """The square or cube root, rounded down, but not to 0."""
    if not value:
        return value
    whole = (value.numerator << degree * _SHARE_BITS) // value.denominator
    root = math.isqrt(whole) if degree == 2 else _cube_root(whole)
    return Fraction(max(1, root), 1 << _SHARE_BITS)


def _cube_root(value: int) -> int:
    """The largest integer whose cube is at most `value` (Newton's method from above)."""
    guess, better = 0, 1 << -(-value.bit_length() // 3)
    while better and (not guess or better < guess):
        guess, better = better, (2 * better + value // (better * better)) // 3
    return guess if value else 0


def split(spend: Budget, weights: Sequence[Fraction]) -> tuple[Budget, ...]:
    """Shares in proportion to the weights, exactly: they add up to `spend`.

    Sequential composition: the parts' costs add up (Dwork & Roth 2014, Theorem 3.16 for pure and
    approximate DP; Bun & Steinke 2016, Lemma 1.7 for zCDP). A weight of 0 gets nothing.
    """
    total = sum(weights, Fraction(0))
    if not total:
        return tuple(spend.of(Fraction(0)) for _ in weights)
    return tuple(spend.of(spend.main * w / total, spend.slack * w / total) for w in weights)


# -- mechanisms whose privacy losses together, convolved, stay within (epsilon, delta) ------------
# The parts of a plan get shares of rho, and rho is the largest at which their privacy loss
# distributions, composed as `dpframe.accounting.PrivacyLossAccountant` composes them, keep epsilon
# at delta. Shares of rho only divide the noise; the guarantee follows from the composed
# distribution. It is no more than what zCDP implies for noise, and for choices of one range; where
# choices have several ranges it may be more.

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

    `chooser`: gives the choices at a rho for the whole plan. `asked`: what each choice is for.
    `spend`: its delta above 0 and within floats. `start`: a rho of the right size. Returns None
    when the losses of a mechanism are not known, or no rho near `start` is small enough.
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


# -- which mechanism releases a part, and with how much noise -------------------------------------

_Kind = TypeVar("_Kind", bound=Mechanism)


def choose(task: MechanismTask, share: Budget) -> Choice:
    """The mechanism with the least expected squared error at the given cost. Raises
    `UnsupportedOperation` when the requested mechanism does not exist in the session's measure.
    """
    if task.sensitivity.is_zero:
        return Choice(NoNoise(), share.of(Fraction(0)), "public: no individual can change it")
    match task:
        case AdditiveTask():
            return _additive(task, share)
        case RecursiveTask():
            return RECURSIVE[0].fitted(task, share)
        case TogetherTask():
            return TOGETHER[0].fitted(task, share)
        case SelectionTask():
            return _selection(task, share)
        case ResponseTask():
            return REPORTS[0].fitted(task, share)
        case KeyTask():
            return next(filter(None, (kind.fitted(task, share) for kind in KEYS)))


def _additive(task: AdditiveTask, share: Budget) -> Choice:
    if task.mechanism != "auto":
        return _asked(task, share)
    if task.box is not None:
        return next(filter(None, (kind.fitted(task, share) for kind in VECTORS)))
    found: list[Choice] = []
    for kind in ADDITIVE:
        if kind is DiscreteStaircase and is_edition_before():
            continue
        choice = kind.fitted(task, share)
        if choice is not None:
            found.append(choice)
            if kind.is_surely_least(task, share):
                break
    return min(found, key=_variance)


def _asked(task: AdditiveTask, share: Budget) -> Choice:
    kind = _named(task.mechanism, ADDITIVE)
    choice = kind.fitted(task, share)
    if choice is None:
        what, remedy = kind.unavailable
        where = f"{task.name}: mechanism={task.mechanism!r}"
        raise UnsupportedOperation(what, where=where, remedy=remedy)
    return Choice(choice.law, choice.cost, f"{kind.norm}, as asked")


def _variance(choice: Choice) -> float:
    assert isinstance(choice.law, AdditiveMechanism)
    return choice.law.variance()


def _selection(task: SelectionTask, share: Budget) -> Choice:
    if task.mechanism == "auto":
        kind = next(kind for kind in SELECTIONS if kind.is_preferred(task, share))
        found = [kind.fitted(task, share)]
        for rival in SELECTIONS:
            if rival.is_rival(task):
                with suppress(InvalidBudget):  # more noise than can be drawn
                    found.append(rival.fitted(task, share))
        return min(found, key=lambda choice: choice.law.log_noise(task.candidates))
    kind = _named(task.mechanism, SELECTIONS)
    if task.weighted and not kind.draws_points:
        raise UnsupportedOperation(
            f"{task.mechanism} does not draw points of an interval",
            where=f"{task.name}: mechanism={task.mechanism!r}",
            remedy=("list candidates=[...]", "leave mechanism= out"),
        )
    return kind.fitted(task, share)


def _named(name: str, kinds: Sequence[type[_Kind]]) -> type[_Kind]:
    return next(kind for kind in kinds if kind.name == name)
