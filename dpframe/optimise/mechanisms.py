"""The mechanism of each measurement, with the least noise that the cost of a plan allows."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, TypeAlias, TypeVar

from dpframe.accounting.gaussian_noise import largest_rho, largest_shift
from dpframe.accounting.losses import Composition, Translated
from dpframe.aggregates.measurement import Rebuilt
from dpframe.aggregates.noise import noise_of
from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget
from dpframe.core.edition import is_edition_before
from dpframe.core.exact import digits_up, dyadic_down, float_down
from dpframe.errors import DPFrameError, InvalidBudget, UnsupportedOperation
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
    KeyMechanism,
    KeyTask,
    Mechanism,
    MechanismTask,
    NoNoise,
    RecursiveTask,
    ResponseTask,
    SelectionTask,
    TogetherTask,
)

# Which mechanism releases a part, with how much noise, and how a cost is divided.

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


def refine(chooser: Chooser, asked: Sequence[MechanismTask]) -> Chooser:
    """The same choices, with finer noise where there is any."""

    def choose(rho: Fraction) -> tuple[Choice, ...]:
        found = zip(chooser(rho), asked, strict=True)
        return tuple(finer(choice, what) or choice for choice, what in found)

    return choose


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
            return RECURSIVE[0].fit(task, share)
        case TogetherTask():
            return TOGETHER[0].fit(task, share)
        case SelectionTask():
            return _selection(task, share)
        case ResponseTask():
            return REPORTS[0].fit(task, share)
        case KeyTask():
            return next(filter(None, (kind.fit(task, share) for kind in KEYS)))


def _additive(task: AdditiveTask, share: Budget) -> Choice:
    if task.mechanism != "auto":
        return _choose_asked(task, share)
    if task.box is not None:
        return next(filter(None, (kind.fit(task, share) for kind in VECTORS)))
    found: list[Choice] = []
    for kind in ADDITIVE:
        if kind is DiscreteStaircase and is_edition_before():
            continue
        choice = kind.fit(task, share)
        if choice is not None:
            found.append(choice)
            if kind.is_surely_least(task, share):
                break
    return min(found, key=_variance)


def _choose_asked(task: AdditiveTask, share: Budget) -> Choice:
    kind = _kind_named(task.mechanism, ADDITIVE)
    choice = kind.fit(task, share)
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
        found = [kind.fit(task, share)]
        for rival in SELECTIONS:
            if rival.is_rival(task):
                with suppress(InvalidBudget):  # more noise than can be drawn
                    found.append(rival.fit(task, share))
        return min(found, key=lambda choice: choice.law.log_noise(task.candidates))
    kind = _kind_named(task.mechanism, SELECTIONS)
    if task.weighted and not kind.draws_points:
        raise UnsupportedOperation(
            f"{task.mechanism} does not draw points of an interval",
            where=f"{task.name}: mechanism={task.mechanism!r}",
            remedy=("list candidates=[...]", "leave mechanism= out"),
        )
    return kind.fit(task, share)


def _kind_named(name: str, kinds: Sequence[type[_Kind]]) -> type[_Kind]:
    return next(kind for kind in kinds if kind.name == name)


# The mechanisms of a whole plan, and what they cost together, in any measure.

# -- the mechanisms of a whole plan, and what they cost together ----------------------------------
# A plan's parameters are fixed before any noise is drawn, so any composition theorem applies. Under
# pure DP and zCDP costs add up. Under approximate DP there are three ways, and the one with the
# least noise is taken:
#
# *By sums*: each part gets its share of epsilon, and those with Gaussian noise a share of delta
# (Dwork and Roth 2014, Theorem 3.16).
#
# *Numerically*: the parts share a rho, the largest at which their privacy loss distributions
# together keep epsilon at delta. Noise then grows with the root of
# the number of parts and not with the number, so this is for plans of many parts.
#
# *Through zCDP*: the parts share the largest rho that implies the whole (epsilon, delta) (Canonne,
# Kamath and Steinke 2020, Proposition 12). Usually a little more noise, but known for every
# mechanism, and less where several parts make many choices each.

CompositionName: TypeAlias = Literal["sum", "numerical", "zcdp"]

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
    composition: CompositionName  # How their costs make that


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
            ways.append(refine(chooser, asked))
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


# Which of several ways to draw the parts of a plan has the least expected error.
#
# "Least" means the smallest weighted sum over outputs of their expected squared errors, each
# relative to its error when every part is drawn separately. An output's error is the sum of its
# parts' variances, each by its effect on the output. That is known from the plan alone.

WORTH_WHILE: Final = 0.98
"""Less than that much of the error is worth another way."""
_MOST: Final = 150.0
"""Of logarithms of gains, whose squares floats hold."""


@dataclass(frozen=True, slots=True, eq=False)
class AskedWay:
    """One way, as the mechanisms that it needs."""

    tasks: Sequence[MechanismTask]  # The draws
    # Their costs relative to each other, of epsilon and of rho.
    weights: Sequence[Fraction]
    rho_weights: Sequence[Fraction]
    # For each part the number of its draw, and how it follows from it.
    parts: Sequence[tuple[int, Rebuilt | None]]
    # For each output its parts, each with the logarithm of what its variance does to the error.
    outputs: Sequence[Sequence[tuple[int, float]]]
    importance: Sequence[float]  # How much the error of each of these outputs counts


@dataclass(frozen=True, slots=True, eq=False)
class ChosenWay:
    """The way that is taken."""

    number: int  # Which one it is
    together: ComposedChoice  # The mechanisms of its draws
    # For each part, the factor by which its deviation is smaller than when drawn alone.
    gains: tuple[float, ...]


def least_error_way(
    ways: Sequence[AskedWay], choose: Callable[[AskedWay], ComposedChoice]
) -> ChosenWay:
    """The way with the least expected error. `ways`: the first draws each part separately.
    `choose`: mechanisms for one way. Raises `DPFrameError` when no way can be released at the cost.
    """
    first = choose(ways[0])
    best = ChosenWay(0, first, (1.0,) * len(ways[0].parts))
    if len(ways) == 1:
        return best
    alone = _log_errors(ways[0], first)
    before = _log_outputs(ways[0], alone)
    least = WORTH_WHILE * sum(ways[0].importance)
    for number, way in enumerate(ways[1:], 1):
        with suppress(DPFrameError):  # a measure that does not know the mechanism
            found = choose(way)
            errors = _log_errors(way, found)
            ratios = _ratios(_log_outputs(way, errors), before)
            error = sum(map(operator.mul, way.importance, ratios))
            if error < least:
                best, least = ChosenWay(number, found, _ratios(alone, errors)), error
    return best


def _ratios(above: Sequence[float], below: Sequence[float]) -> tuple[float, ...]:
    """Of numbers that are given by their logarithms."""
    pairs = zip(above, below, strict=True)
    return tuple(math.exp(min(_MOST, max(-_MOST, a - b))) for a, b in pairs)


def _log_outputs(way: AskedWay, errors: Sequence[float]) -> list[float]:
    """Logarithms of the outputs' expected squared errors, from those of the parts' deviations."""
    found = []
    for output in way.outputs:
        terms = [2.0 * errors[part] + effect for part, effect in output]
        most = max(terms)
        found.append(most + math.log(sum(math.exp(term - most) for term in terms)))
    return found


def _log_errors(way: AskedWay, together: ComposedChoice) -> list[float]:
    return [
        noise_of(together.choices[draw].law, rebuilt).log_noise(way.tasks[draw].alternatives)
        for draw, rebuilt in way.parts
    ]
