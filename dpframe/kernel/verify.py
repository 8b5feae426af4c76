"""`verify`: whether all that a plan states follows from what it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod

from dpframe.kernel.frame import PARTS, Facts, Reach, facts_of
from dpframe.kernel.laws import (
    choice_cost,
    choice_losses,
    noise_cost,
    noise_delta,
    noise_losses,
    require_gaussian,
    response_cost,
    tail_of,
)
from dpframe.kernel.losses import Loss, Reported, gaussian_delta, losses_delta, rho_delta
from dpframe.kernel.moves import (
    Norms,
    all_keys,
    count_groups,
    norms_of,
    ranges_of,
    reporters,
    weights_of,
)
from dpframe.kernel.plan import (
    Appear,
    Choice,
    Draw,
    Found,
    Gaussian,
    Geometric,
    Laplace,
    Law,
    Levels,
    Meet,
    Nights,
    Owners,
    Person,
    Plan,
    Rank,
    Ranks,
    Refused,
    Reports,
    Response,
    Running,
    Scan,
    Threshold,
    Union,
    Unit,
    Vector,
    WeighedThreshold,
    tables_of,
)


@dataclass(frozen=True)
class Verified:
    """What each draw of a plan costs by the rules of the kernel, and the probability that this does
    not hold: at most what the plan states. `delta` is the same probability for the whole plan.
    """

    costs: tuple[Fraction, ...]
    deltas: tuple[Fraction, ...]
    delta: Fraction


def verify(plan: Plan) -> Verified:
    """Check a plan.

    Guarantee
    ---------
    A release that draws what the plan says, from sources as it says, satisfies the plan's cost in
    the plan's measure, for neighbours that differ in one individual.

    Proof
    -----
    `facts_of` bounds what an individual has in each frame, step by step. `norms_of` and `ranges_of`
    bound how far that moves numbers and scores. `noise_cost` and `choice_cost` give what a draw
    costs then. Draws are independent, so their costs add up. All that is released follows from the
    draws.

    Raises
    ------
    Refused
        When anything that the plan states does not follow, with the place and the reason.
    """
    _require_same_individuals(plan)
    try:
        return _check(plan)
    except RecursionError:
        raise Refused("an expression is nested too deeply") from None
    except (ArithmeticError, ValueError):
        raise Refused("numbers for which no cost can be computed") from None


def _require_same_individuals(plan: Plan) -> None:
    """Refuse a plan whose sources, those of its options too, protect different individuals."""
    plans = (plan, *plan.options)
    sources = [f for one in plans for f in one.frames if isinstance(f, Scan)]
    known: dict[str, tuple[Unit, Owners | None]] = {}
    for source in sources:
        owner = source.unit, source.owners
        if known.setdefault(source.name, owner) != owner:
            raise Refused(f"the source {source.name} stands there with other owners")
    persons = [s.unit for s in sources if isinstance(s.unit, Person)]
    if not sources or len(persons) not in (0, len(sources)):
        raise Refused("sources that protect rows, and others that protect persons")
    if persons and plan.neighbours != "add-remove":
        raise Refused("persons come and go")
    if len({unit.every for unit in persons}) > 1:
        raise Refused("sources with other windows")


def _check(plan: Plan) -> Verified:
    """The check of one plan, whose sources protect the same individuals."""
    if not plan.draws:
        raise Refused("a plan without draws")
    facts = facts_of(plan.frames)
    costs, deltas = list[Fraction](), list[Fraction]()
    for number, draw in enumerate(plan.draws):
        try:
            _require_found(plan, number)
            cost, delta = _cost_of(plan, facts, draw, number)
        except Refused as refused:
            raise Refused(f"draw {number}: {refused}") from None
        if not 0 <= cost <= draw.cost or not 0 <= delta <= draw.delta:
            raise Refused(f"draw {number} costs more than the plan states")
        costs.append(cost)
        deltas.append(delta)
    _require_no_spare(plan)
    most, unsure = _largest(plan)
    whole = sum(draw.cost for draw in plan.draws) + most
    delta = sum((draw.delta for draw in plan.draws), unsure)
    match plan.composition:
        case "sum" if whole > plan.cost:
            raise Refused("the draws cost more than the plan states")
        case "zcdp":
            if plan.measure != "rho" or plan.options:
                raise Refused("costs that do not add up to an amount of rho")
            delta += rho_delta(whole, plan.cost)
        case "numerical":
            if plan.measure != "rho" or plan.options:
                raise Refused("losses of what is not known yet")
            # each draw fails, or not, by a coin of its own
            holds = prod((max(Fraction(0), 1 - d.delta) for d in plan.draws), start=Fraction(1))
            delta = 1 - holds + holds * _together(plan, facts)
    if delta > plan.delta:
        raise Refused("the draws fail more often than the plan states")
    return Verified(tuple(costs), tuple(deltas), delta)


def _require_no_spare(plan: Plan) -> None:
    """Refuse frames and tables that no draw needs: a reader could take them for what is drawn."""
    tables = {place for draw in plan.draws for place in tables_of(draw.what)}
    if tables != {*range(len(plan.tables))}:
        raise Refused("no draw needs one of the tables")
    needed = {plan.tables[place].frame for place in tables}
    for place in reversed(range(len(plan.frames))):
        if place not in needed:
            raise Refused(f"no draw needs frame {place}")
        match plan.frames[place]:
            case Scan():
                pass
            case Union(left, right) | Meet(left, right):
                needed |= {left, right}
            case frame:
                needed.add(frame.input)


def _together(plan: Plan, facts: Sequence[Facts]) -> Fraction:
    """The delta of the losses of all draws, at the plan's epsilon."""
    found, log_factor = Counter[Loss](), Fraction(0)
    for draw in plan.draws:
        losses, off = _losses_of(plan, facts, draw)
        log_factor += off
        for loss, number in losses:
            found[loss] += number
    lower = plan.cost - 2 * log_factor
    if lower <= 0 or log_factor > 1:
        return Fraction(1)
    delta = losses_delta(frozenset(found.items()), lower)
    return delta * (1 + 2 * log_factor)  # which is above exp(log_factor)


def _losses_of(
    plan: Plan, facts: Sequence[Facts], draw: Draw
) -> tuple[list[tuple[Loss, int]], Fraction]:
    """The losses of one draw, but for its delta, and how far these are off."""
    match draw.what:
        case Vector() | Running() | Nights() as what:
            return noise_losses(draw.law, norms_of(plan, facts, what))
        case Rank() as what if isinstance(draw.law, Laplace | Gaussian):
            return noise_losses(draw.law, norms_of(plan, facts, what))
        case Reports() as what:
            rows, cells = reporters(plan, facts, what)
            if not isinstance(draw.law, Response):
                raise Refused("reports that are not random")
            return [(Reported(draw.law.epsilon, cells), rows)], Fraction(0)
        case Appear() as what:
            match draw.law:
                case Geometric(epsilon):
                    groups = count_groups(plan, facts, what)
                    return [(Reported(epsilon, 2), groups)], Fraction(0)
                case Threshold():
                    return [], Fraction(0)
                case WeighedThreshold(rounds):
                    return _weights_losses(weights_of(plan, facts, what), rounds)
                case _:
                    raise Refused("groups that appear by losses that are not known")
        case what:
            ranges = ranges_of(plan, facts, what)
            return choice_losses(_rounds(what), draw.law, ranges), Fraction(0)


def _weights_losses(
    weights: Reach, rounds: Sequence[tuple[int, Fraction]]
) -> tuple[list[tuple[Loss, int]], Fraction]:
    """The losses of the noise of all rounds. Earlier results choose the groups of a round, but not
    its noise, nor how far one individual moves it.
    """
    squares, most = weights.squares(1), weights.most
    norms = Norms(weights.groups, weights.rows, squares, most, 0, (), twice=False)
    found, off = list[tuple[Loss, int]](), Fraction(0)
    for _, sigma_squared in rounds:
        losses, log_factor = noise_losses(Gaussian(sigma_squared), norms)
        found += losses
        off += log_factor
    return found, off


def _require_found(plan: Plan, number: int) -> None:
    """Refuse tables of groups that were not found before."""
    for place in tables_of(plan.draws[number].what):
        if not 0 <= place < len(plan.tables):
            raise Refused("a table that is not there")
        keys = plan.tables[place].keys
        if not isinstance(keys, Found):
            continue
        if not 0 <= keys.draw < len(plan.draws):
            raise Refused("groups that no draw finds")
        finder = plan.draws[keys.draw]
        if not isinstance(finder.what, Appear):
            raise Refused("groups that no draw finds")
        by_number = isinstance(finder.law, Threshold) and finder.law.draw == number
        if keys.draw > number and not by_number:
            raise Refused("groups that are found later")
        found = plan.tables[finder.what.table].keys if _is_table(plan, finder.what.table) else None
        if not isinstance(found, Found) or found != keys:
            raise Refused("groups by other keys than those that are found")


def _is_table(plan: Plan, place: int) -> bool:
    return 0 <= place < len(plan.tables)


def _cost_of(
    plan: Plan, facts: Sequence[Facts], draw: Draw, number: int
) -> tuple[Fraction, Fraction]:
    """What a draw costs by the rules, and the probability that this does not hold."""
    match draw.what:
        case Vector() | Running() | Nights() as what:
            return _noise(plan, what, draw, norms_of(plan, facts, what))
        case Rank() as what if isinstance(draw.law, Laplace | Gaussian):
            return _noise(plan, what, draw, norms_of(plan, facts, what))
        case Reports() as what:
            return response_cost(plan, *reporters(plan, facts, what), draw.law), Fraction(0)
        case Appear() as what:
            return _appearance_cost(plan, facts, what, draw, number)
        case what:
            ranges = ranges_of(plan, facts, what)
            return choice_cost(plan, _rounds(what), draw.law, ranges), Fraction(0)


def _noise(
    plan: Plan, what: Vector | Running | Nights | Rank, draw: Draw, norms: Norms
) -> tuple[Fraction, Fraction]:
    """What noise costs. Gaussian noise has a delta for each epsilon: the kernel takes the stated
    epsilon.
    """
    if not isinstance(draw.law, Gaussian) or plan.measure != "epsilon":
        return noise_cost(plan, what, draw.law, norms), Fraction(0)
    delta = noise_delta(draw.law, norms, draw.cost)
    return draw.cost if delta else Fraction(0), delta


def _appearance_cost(
    plan: Plan, facts: Sequence[Facts], what: Appear, stated: Draw, number: int
) -> tuple[Fraction, Fraction]:
    """What it costs that groups appear.

    Proof for the rule: for one individual more, or one fewer, the probability of one group is
    private (Desfontaines, Voss and Gipson 2022, Theorem 1). Groups appear independently, and one
    individual changes numbers of individuals by 1 in the groups that it touches. An epsilon costs
    epsilon**2 / 2 of rho (Bun and Steinke 2016).

    For a threshold: the noise is paid for by its own draw. A group that other individuals are in
    may appear without this one too. Where the individual is alone, the number is at most what one
    individual adds. So the group appears only where the noise is at least the rest of the threshold
    (Korolova, Kenthapadi, Mishra and Ntoulas 2009). The groups add up.

    For a threshold of weights: an individual in t groups adds at most k(t) to each. So one of the
    groups in which it is alone appears with at most t times the probability that the noise is at
    least the rest (Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin 2020). The sums of all
    other groups move by the norm of its weights, which the noise hides. What a round leaves out
    follows from earlier rounds, so rounds add up (Swanberg, Desfontaines and Haney 2023).
    """
    if plan.measure == "mu_squared":
        raise Refused("no mu holds for what may fail")
    match stated.law:
        case WeighedThreshold(rounds):
            return _weights_cost(plan, weights_of(plan, facts, what), rounds, stated.cost)
        case Geometric(epsilon, delta):
            if epsilon <= 0 or not 0 < delta < 1:
                raise Refused("a rule by which no group appears")
            groups = count_groups(plan, facts, what)
            cost = epsilon if plan.measure == "epsilon" else epsilon**2 / 2
            return groups * cost, groups * delta
        case Threshold(least, draw):
            if not 0 <= draw < len(plan.draws) or draw == number:
                raise Refused("a threshold of a number that is not drawn")
            other = plan.draws[draw]
            if not isinstance(other.what, Vector) or other.what.matrix != ((1,),):
                raise Refused("a threshold of something else than one number")
            kept = all_keys(plan.tables[what.table])
            if other.what.tables != (what.table,) or other.what.kept != kept or other.what.total:
                raise Refused("a threshold of another number than that by which groups appear")
            if _is_weighed(plan, facts, what):
                weights = weights_of(plan, facts, what)
                return Fraction(0), _alone(weights, other.law, least)
            alone = norms_of(plan, facts, other.what).linf
            return Fraction(0), count_groups(plan, facts, what) * tail_of(other.law, least - alone)
        case _:
            raise Refused("a law by which no groups appear")


def _is_weighed(plan: Plan, facts: Sequence[Facts], what: Appear) -> bool:
    """Whether individuals count in parts."""
    frame = plan.tables[what.table].frame
    return 0 <= frame < len(facts) and facts[frame].norm is not None


def _weights_cost(
    plan: Plan, weights: Reach, rounds: Sequence[tuple[int, Fraction]], stated: Fraction
) -> tuple[Fraction, Fraction]:
    """What a choice of groups by weights costs, in all its rounds.

    Proof for an epsilon: smoothed by one width for all rounds, the noise of each round is
    continuous noise that was rounded, see `gaussian_delta`. Earlier results choose the later
    rounds. With variances v(i), let 1 / v be the sum of all 1 / v(i). Together the rounds reveal at
    most what one vector with variance v does that has the numbers of all rounds (Dong, Roth and Su
    2022, Corollary 3.3). A round has a variance of at least v, and smoothing takes a smaller part
    of a larger variance. Through rho the same v follows from a sum.
    """
    if not rounds:
        raise Refused("groups that appear in no round")
    alone = Fraction(0)
    for least, sigma_squared in rounds:
        require_gaussian(Gaussian(sigma_squared))
        alone += _alone(weights, Gaussian(sigma_squared), least)
    whole = 1 / sum((1 / sigma_squared for _, sigma_squared in rounds), Fraction(0))
    l2_squared = weights.squares(1)
    if plan.measure == "rho":
        return l2_squared / (2 * whole), alone
    numbers = weights.groups * len(rounds)
    # bounds for numbers that move by 1 would not hold for rounds
    linf = weights.most if len(rounds) == 1 else max(2, weights.most)
    return stated, gaussian_delta(whole, numbers, l2_squared, linf, stated) + alone


def _alone(weights: Reach, noise: Law, least: int) -> Fraction:
    """The probability that a group appears in which one individual is alone, at most: the largest
    of t P(noise >= least - k(t)) over all numbers t of groups, with k(t) the most that it adds to
    each of them. Several t share the probability of the largest one, with the weight of the least.
    """
    if weights.norm is None:
        raise Refused("weights of individuals without a norm")
    found, first = Fraction(0), 1
    while first <= weights.groups:
        last = min(weights.groups, first + first // (32 if first < 256 else 4))
        adds = min(PARTS, isqrt(weights.norm**2 // first))
        found = max(found, last * tail_of(noise, least - adds))
        first = last + 1
    return found


def _rounds(what: Choice | Rank | Ranks | Levels) -> int:
    """How often an individual takes part in a choice, one after another."""
    match what:
        case Choice(_, _, rounds):
            return rounds
        case Levels(_, _, levels):
            return len(levels)
        case _:
            return 1


def _measure_of(plan: Plan) -> str:
    """The measure of the plan's own cost."""
    return plan.measure if plan.composition == "sum" else "epsilon"


def _largest(plan: Plan) -> tuple[Fraction, Fraction]:
    """What the most expensive option costs. One option runs, and which one follows from earlier
    draws, so the choice costs nothing more.
    """
    for number, option in enumerate(plan.options):
        if option.neighbours != plan.neighbours or _measure_of(option) != _measure_of(plan):
            raise Refused(f"option {number} is in another measure")
        if option.options:
            raise Refused(f"option {number} has options of its own")
        try:
            verify(option)
        except Refused as refused:
            raise Refused(f"option {number}: {refused}") from None
    costs = max((option.cost for option in plan.options), default=Fraction(0))
    return costs, max((option.delta for option in plan.options), default=Fraction(0))
