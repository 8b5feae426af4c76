"""From queries to their plan: what is drawn, in which way, and under which limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, chain
from typing import Final, TypeAlias, TypeVar

from dpframe.aggregates.aggregate import Output, Query
from dpframe.aggregates.measurement import Rebuilt
from dpframe.aggregates.reconstruction import (
    Reconstruction,
    ways_to_measure,
    with_totals,
    with_whole_levels,
)
from dpframe.choose import (
    WORTH_WHILE,
    AskedWay,
    ChosenWay,
    ComposedChoice,
    choose_together,
    choose_with_keys,
    in_mu,
    in_rho,
    least_error_way,
    least_error_weights,
)
from dpframe.core.budget import GDP, Budget, PureDP
from dpframe.describe import PAYS, build_plan, described_together, gain_words
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.infer import (
    Effects,
    LimitSearch,
    Noise,
    Place,
    PlannedDraw,
    PlannedMeasurement,
    Queries,
    Related,
    Way,
    brought_together,
    effects_of,
    measurements_of,
    merge,
    related_blocks,
    ways_of,
)
from dpframe.infer.several import queries_by_place
from dpframe.mechanisms import AdditiveMechanism, KeyMechanism, Mechanism, MechanismTask
from dpframe.plan import NoisyAggregate
from dpframe.plan.document import earlier_fingerprint
from dpframe.plan.pieces import FoundLimit, LimitChoice
from dpframe.planning.limit_rule import GROUPS, LimitRule
from dpframe.planning.prepared import LimitOptions, Prepared, PreparedTogether
from dpframe.release import Draw, number_of
from dpframe.report import Plan

# -- what is drawn for one query, or for several that share a cost --------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A query, the parts that it needs, and one way to draw them."""

    # These, and what the noise of parts does to the errors of outputs.
    query: Query
    parts: tuple[PlannedMeasurement, ...]
    effects: Effects
    way: Way

    def drawn_by(self, laws: Sequence[Mechanism]) -> tuple[Draw, ...]:
        """What is drawn, with the mechanism of each draw."""
        return tuple(
            _draw_of(draw, law, self.parts) for draw, law in zip(self.way.draws, laws, strict=True)
        )

    def knowing(self, draws: Sequence[Draw]) -> Query:
        """The query, where it is known how it is drawn."""
        if not self.query.depends_on_noise:
            return self.query
        return self.query.knowing({k: law for one in draws for k, law in one.noises().items()})


def asked_of(planned: Sequence[Planned], by: str) -> AskedWay:
    """What mechanisms are requested, by all queries together. `planned`: the queries. `by`: the
    rule that divides the cost.
    """
    draws = [draw for one in planned for draw in one.way.draws]
    weights, rho_weights = _weights(draws, by)
    tasks = list[MechanismTask]()
    parts = list[tuple[int, Rebuilt | None]]()
    outputs: list[list[tuple[int, float]]] = []
    wanted = list[Fraction]()
    for one in planned:
        rebuilt = {
            part: (len(tasks) + number, None if draw.rebuilt is None else draw.rebuilt[place])
            for number, draw in enumerate(one.way.draws)
            for place, part in enumerate(draw.parts)
        }
        outputs += [[(len(parts) + part, e) for part, e in found] for _, found in one.effects]
        wanted += [weight for weight, _ in one.effects]
        parts += [rebuilt[number] for number in range(len(one.parts))]
        tasks += [
            draw.measurement.task(draw.name, draw.sensitivity, draw.mechanism, one.query.scope)
            for draw in one.way.draws
        ]
    whole = sum(wanted, Fraction(0))
    importance = [float(weight / whole) for weight in wanted]
    return AskedWay(tasks, weights, rho_weights, parts, outputs, importance)


def choose_for(planned: Sequence[Planned], asked: AskedWay, spend: Budget) -> ComposedChoice:
    """Mechanisms for the draws of all queries. Raises `DPFrameError` when a part cannot be released
    within its share.
    """
    about = asked.tasks, asked.weights, spend, asked.rho_weights
    starts = accumulate((len(one.way.draws) for one in planned), initial=0)
    choosing = [
        (one, start)
        for one, start in zip(planned, starts, strict=False)
        if one.query.groups is not None and one.query.groups.discovered
    ]
    if len(choosing) != 1:  # several choices of groups each have a rule of their own
        return choose_together(*about)
    ((one, start),) = choosing
    measured = [draw.measurement for draw in one.way.draws]
    end, size = start + len(measured), len(asked.tasks)
    order = [*range(start, end), *range(start), *range(end, size)]
    tasks = [asked.tasks[place] for place in order]
    weights = [asked.weights[place] for place in order]
    rho_weights = [asked.rho_weights[place] for place in order]
    number = number_of(measured[0], measured)
    chosen = choose_with_keys(tasks, weights, spend, rho_weights, number)
    placed = dict(zip(order, chosen.choices, strict=True))
    return replace(chosen, choices=tuple(placed[place] for place in range(size)))


def chosen_apart(planned: Sequence[Planned], chosen: ChosenWay) -> list[ChosenWay]:
    """What was chosen for each query; the cost is of all together."""
    found, draws, parts = list[ChosenWay](), 0, 0
    for one in planned:
        choices = chosen.together.choices[draws : draws + len(one.way.draws)]
        gains = chosen.gains[parts : parts + len(one.parts)]
        own = replace(chosen.together, choices=choices)
        found.append(ChosenWay(chosen.number, own, gains))
        draws, parts = draws + len(choices), parts + len(gains)
    return found


def _draw_of(draw: PlannedDraw, law: Mechanism, parts: Sequence[PlannedMeasurement]) -> Draw:
    keys = tuple((parts[number].part, parts[number].mechanism) for number in draw.parts)
    return Draw(draw.measurement, law, keys, draw.rebuilt)


def _weights(draws: Sequence[PlannedDraw], by: str) -> tuple[list[Fraction], list[Fraction]]:
    """Relative costs of what is drawn, of epsilon and of rho."""
    if by != "least error":
        weights = [draw.weight for draw in draws]
        return weights, weights
    return (
        least_error_weights([draw.impact for draw in draws], shares_rho=False),
        least_error_weights([draw.rho_impact for draw in draws], shares_rho=True),
    )


# -- what it does to the errors of outputs to be measured in another way --------------------------

_NOTHING = 1e-200
"""Added to squared errors, which floats may hold as 0."""


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """What is expected of one output."""

    squared: float  # Its squared error, relative to what one individual adds
    weight: float  # How much it counts


def errors_of(prepared: Iterable[Prepared]) -> list[ExpectedError]:
    """What is expected of the outputs of queries."""
    return [
        ExpectedError(
            sum(a.squared_error(one.query.scope, laws) for a in output.aggregates.values()),
            float(sum(a.request.weight for a in output.aggregates.values())),
        )
        for one in prepared
        for laws in (one.laws,)
        for output in one.query.outputs
    ]


def relative_error(before: Sequence[ExpectedError], after: Sequence[ExpectedError]) -> float:
    """The mean over outputs, by their weights, of how many times the squared error is what it was;
    1 of no outputs.
    """
    whole = sum(error.weight for error in before)
    total = sum(b.weight * _ratio(a, b) for b, a in zip(before, after, strict=True))
    return total / whole if whole else 1.0


def least_expected(
    plans: Sequence[tuple[Prepared, ...]], before: Sequence[ExpectedError] | None
) -> tuple[Prepared, ...]:
    """The plans whose outputs have the least error together, all of the same queries: the least sum
    over outputs of their squared errors relative to what they are before, each by its weight. So it
    does not matter in which units outputs are. `before`: what is expected of the outputs
    separately, as the split says; None where that is the first of the plans.
    """
    if len(plans) == 1:
        return plans[0]
    errors = [errors_of(made) for made in plans]
    relative = [relative_error(errors[0] if before is None else before, one) for one in errors]
    chosen = relative.index(min(relative))
    return _telling_payers(plans[chosen], errors[chosen], errors)


def _telling_payers(
    made: Sequence[Prepared],
    after: Sequence[ExpectedError],
    ways: Sequence[Sequence[ExpectedError]],
) -> tuple[Prepared, ...]:
    """The plans, where outputs say that they would have smaller errors if all were measured in
    another way."""
    least = [min(found, key=lambda error: error.squared) for found in zip(*ways, strict=True)]
    notes = iter([_paid(_gain(b, a)) for b, a in zip(least, after, strict=True)])
    return tuple(_with_notes(one, [next(notes) for _ in one.query.outputs]) for one in made)


def _paid(gain: float) -> str:
    if gain >= PAYS:
        return ""
    alone = "by the way that is best for it alone, so that others err less"
    return f"{1 / gain:.3g} times more error than {alone}"


def _with_notes(made: Prepared, notes: Iterable[str]) -> Prepared:
    """The plan with a further note for each output, if it is not empty."""
    outputs = tuple(
        replace(output, note="; ".join(filter(None, (output.note, note))))
        for output, note in zip(made.plan.outputs, notes, strict=True)
    )
    return (
        made
        if outputs == made.plan.outputs
        else replace(made, plan=replace(made.plan, outputs=outputs))
    )


def _gain(before: ExpectedError, after: ExpectedError) -> float:
    """By what factor an output's error is smaller after."""
    return math.sqrt(_ratio(before, after))


def _ratio(above: ExpectedError, below: ExpectedError) -> float:
    return (above.squared + _NOTHING) / (below.squared + _NOTHING)


def telling_gains(
    made: Sequence[Prepared],
    at: Sequence[int],
    before: Sequence[ExpectedError],
    after: Sequence[ExpectedError],
    among: str,
) -> tuple[Prepared, ...]:
    """The plans, with notes on how joint measurement changes the errors of their outputs. `made`:
    the plans. `at`: the indices of the queries for `before` and `after`. `before`, `after`: what is
    expected of their outputs separately, and together. `among`: what aggregates that are
    measured together serve.
    """
    gains = iter([_gain(b, a) for b, a in zip(before, after, strict=True)])
    told = list(made)
    for number in at:
        asked = made[number].query.outputs
        told[number] = _with_notes(made[number], [_told(o, among, next(gains)) for o in asked])
    return tuple(told)


def _told(asked: Output, among: str, gain: float) -> str:
    """The sentence about an output that is measured with others, or that pays for these."""
    served = {a.serves for a in asked.aggregates.values() if isinstance(a, Reconstruction)}
    paying = gain < PAYS and "queries" not in served  # these have a sentence already
    return "" if among not in served and not paying else gain_words(gain)


# -- from queries to their plan -------------------------------------------------------------------
# Queries that are planned together are composed as the draws of one query are. Parameters are fixed
# before any noise is drawn, and each draw has its own cost for any frame, because the individual
# that differs between neighbours is the same in all frames of a session.

T = TypeVar("T")
Errors: TypeAlias = Sequence[ExpectedError]


@dataclass(frozen=True, slots=True, eq=False)
class Planning:
    """How queries are planned."""

    # The total cost allowed, and the session's remaining budget.
    spend: Budget
    remaining: Budget | None
    split: str  # The rule that divides the cost
    # The measure, rho or mu, in which plans are charged, if it is not the measure of the spend.
    charged_in: type[Budget] | None

    def least(self, queries: Sequence[Query], alone: Errors | None = None) -> tuple[Prepared, ...]:
        """The plan of each query, where all share the cost, measured with the least error. Counts
        in queries with histograms and distribution functions are rebuilt from the same noisy
        cells if that has a smaller error. If they are made of others, `alone` has the expected
        errors of the outputs alone.
        """
        apart = self.measured(queries, alone)
        best, least = apart, WORTH_WHILE
        before: Errors = ()
        for moved in _with_counts(queries):
            before = before or errors_of(apart)
            with suppress(DPFrameError):  # more noise in a total than can be drawn
                made = self.measured(moved, before if alone is None else alone)
                after = errors_of(made)
                error = relative_error(before, after)
                if error < least:
                    told = telling_gains(made, range(len(made)), before, after, "counts")
                    best, least = told, error
        return best

    def measured(
        self, queries: Sequence[Query], alone: Errors | None = None
    ) -> tuple[Prepared, ...]:
        """The plan of each query, measured in the best of the ways that its aggregates know."""
        ways = combined([ways_to_measure(query, self.spend) for query in queries])
        return least_expected([self._planned(way) for way in ways], alone)

    def related(
        self, queries: tuple[Query, ...], places: tuple[Place, ...]
    ) -> tuple[tuple[Prepared, ...], tuple[Place, ...]]:
        """The same, with related tables rebuilt from what is drawn for all of them where that has
        a smaller error; and where outputs are then.
        """
        apart = self.least(queries)
        best, least = (apart, places), WORTH_WHILE
        for found in related_blocks(queries):
            found = [one for one in found if len(found) == 1 or self._errs_less(queries, one)]
            with suppress(DPFrameError):  # more noise in a margin than can be drawn
                moved, new_places = brought_together(queries, places, found)
                made = self.least(moved, _alone(moved, queries, found, apart)) if found else apart
                at = [next(i for i, p in enumerate(moved) if p is one.query) for one in found]
                numbers = [number for one in found for number in one.numbers]
                before = errors_of(apart[number] for number in numbers)
                after = errors_of(made[number] for number in at)
                error = relative_error(before, after)
                if error < least:
                    told = telling_gains(made, at, before, after, "queries")
                    best, least = (told, new_places), error
        return best

    def _errs_less(self, queries: Sequence[Query], one: Related) -> bool:
        """Whether related queries have smaller errors together, were nothing else asked."""
        apart = self.least([queries[number] for number in one.numbers])
        with suppress(DPFrameError):
            before = errors_of(apart)
            together = self.least([one.query], before)
            return relative_error(before, errors_of(together)) < WORTH_WHILE
        return False

    @property
    def _noises(self) -> tuple[Noise, ...]:
        """What may be added to several numbers at once; Gaussian noise has no epsilon alone."""
        return ("box",) if isinstance(self.spend, PureDP) else ("box", "gaussian")

    def _planned(self, queries: Sequence[Query]) -> tuple[Prepared, ...]:
        """The plan of each query, where all share the cost."""
        parts = [measurements_of(query) for query in queries]
        weighted = any(request.weight != 1 for query in queries for request in query.requests)
        by = "weights" if weighted else self.split
        ways = combined(
            [
                ways_of(query, found, by, self._noises)
                for query, found in zip(queries, parts, strict=True)
            ]
        )
        effects = list(map(effects_of, queries, parts))
        planned = [list(map(Planned, queries, parts, effects, way)) for way in ways]
        asked = [asked_of(one, by) for one in planned]
        chosen = least_error_way(
            asked,
            lambda way: choose_for(planned[asked.index(way)], way, self.spend),
        )
        tasks = asked[chosen.number].tasks
        allowed = chosen.together.cost
        if self.charged_in is not None:
            charge = (in_mu if self.charged_in is GDP else in_rho)(tasks, chosen.together)
            chosen = replace(chosen, together=charge)
        made = []
        taken = planned[chosen.number]
        for one, own in zip(taken, chosen_apart(taken, chosen), strict=True):
            plan = build_plan(
                one.query, one.parts, one.way, own, allowed, self.spend, self.remaining, by
            )
            draws = one.drawn_by([choice.law for choice in own.together.choices])
            made.append(Prepared(plan, one.knowing(draws), one.parts, draws))
        return tuple(made)


def _with_counts(queries: Sequence[Query]) -> Iterator[Sequence[Query]]:
    """The queries with counts that are rebuilt from the cells of histograms, of distribution
    functions, or of either.
    """
    cells = [with_totals(query) for query in queries]
    levels = [with_whole_levels(query) for query in queries]
    tried = [queries]
    for found in (cells, levels, list(map(with_whole_levels, cells))):
        if not any(_are_same(found, other) for other in tried):
            tried.append(found)
            yield found


def _are_same(some: Sequence[Query], others: Sequence[Query]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))


def _alone(
    moved: Sequence[Query],
    queries: Sequence[Query],
    related: Sequence[Related],
    apart: Sequence[Prepared],
) -> Errors:
    """Expected error of each output if its query were planned alone, to report the gain of
    batching."""
    numbers: dict[int, tuple[int, ...]] = {id(q): (number,) for number, q in enumerate(queries)}
    numbers |= {id(one.query): one.numbers for one in related}
    return errors_of(apart[number] for query in moved for number in numbers[id(query)])


def combined(ways: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """One way for each query at a time: the first of all of them, the second, and so on; a query
    that has fewer keeps to its last.
    """
    return [
        tuple(found[min(number, len(found) - 1)] for found in ways)
        for number in range(max(map(len, ways)))
    ]


# -- queries under a limit that is found when they run: one plan, one charge ----------------------
# *Guarantee.* The search and the query together cost what the plan says, whichever limit is found.
#
# *Proof.* The search is a histogram of individuals, one row each, at its own cost c. The limit n is
# computed from noisy counts and from plans alone (`dpframe.planning.limit_rule`), so it is
# post-processing, and so are all statements about dropped rows. For each n of a public list the
# query under it, with its companions, has been planned before anything is read. Rows beyond n are
# dropped by the frame's own step, sensitivity follows from n as from a limit that an analyst
# writes, and noise is made for it, at a cost c(n). So for any result of the search, the rest costs
# at most max c(n). Costs of mechanisms that are chosen by earlier results add up: epsilons and
# deltas (Dwork and Roth 2014, Theorem 3.16, in its adaptive form), and rhos (Bun and Steinke 2016,
# Lemma 1.7). The plan is charged c + max c(n). No privacy loss distributions are composed across
# the two: that would need one pair of distributions that dominates the query's under every limit.
#
# *Why a histogram.* The rows that a limit L drops are a sum over l >= L of the individuals with
# more than l rows, so the numbers N(>L_i) are sufficient. An individual moves each by 1, and those
# below its own number of rows all at once. As one vector they have the sensitivity k in L1 for k
# limits. Their differences are the bins of a histogram, where an individual moves one by 1, and
# each N(>L_i) is a sum of the bins above. Mechanisms that give a limit alone (exponential, or the
# first N(>L_i) below a threshold) have about the same error, log(k) 2/epsilon and 4/epsilon
# individuals, and do not show how much is dropped.

SHARE: Final = Fraction(1, 20)
"""The share of the spend that finds the limit; docs/individuals.md shows how far from the best it
is."""
_NEARLY_ALWAYS: Final = Fraction(19, 20)
_NORMAL: Final = 1.96


def planned_with_limit(
    asked: LimitSearch, spend: Budget, remaining: Budget | None, split: str, charged: object
) -> PreparedTogether:
    """One plan of the search and the query. `asked`: the limit that is sought. `spend`,
    `remaining`: the total cost allowed, and the session's remaining budget. `split`: how the
    query's cost is divided. `charged`: the measure that the session adds up in, if it is not that
    of the spend. Raises `UnsupportedOperation` where the session adds up another measure. Raises
    `DPFrameError` when the query cannot be answered within the measure.
    """
    if charged is not None:
        raise UnsupportedOperation(
            "the query needs a limit on what one individual adds, and this session "
            "cannot find one in the same plan",
            where="dp.Session(composition=...)",
            why="the session adds up costs in another measure than that of spends",
            remedy=(
                "write the limit before the query: .limit_rows(n)",
                "find it first: query.suggest_limits(epsilon=0.1)",
            ),
        )
    first = spend.of(spend.main * SHARE)
    rest = spend.of(spend.main - first.main, spend.slack)
    sought, *queries = queries_by_place([asked.search, *chain.from_iterable(asked.queries)])
    (search,) = Planning(first, remaining, "least error", None).least([sought])
    by = split if asked.weights is None else "weights"
    later = Planning(rest, remaining, by, None)
    beside = len(asked.queries[0])
    asked_under = [
        Queries(tuple(queries[at : at + beside]), asked.weights)
        for at in range(0, len(queries), beside)
    ]
    options = tuple(_options(later, asked_under))
    choices = tuple(
        _choice(n, one, asked.by) for n, one in zip(asked.limits, options, strict=False)
    )
    (noise,) = (release.noise for release in search.plan.releases)
    assert isinstance(noise, AdditiveMechanism)
    errors = tuple(choice.noise or 0.0 for choice in choices)
    limited = [plan for option in options for plan in _limited(option)]
    sizes, is_normal = sizes_to_appear(limited), has_normal_noise(limited)
    if sizes and len(sizes) > len(options):  # of several queries the one that needs the most
        each = len(sizes) // len(options)
        sizes = tuple(max(sizes[at : at + each]) for at in range(0, len(sizes), each))
    made = LimitOptions(LimitRule(asked.limits, errors, sizes, noise, is_normal), options)
    alone = PreparedTogether(search.plan, (search,), (Place.whole(search.query),), made)
    whole, shown = alone.followed_by(options[-1]), options[-1].plan
    plan = replace(
        described_together([part.plan for part in whole.parts], whole.places),
        cost=search.plan.cost + _largest([option.plan.cost for option in options]),
        composition=shown.composition,
        split=shown.split,
        requested=spend,
        found=FoundLimit(asked.step, asked.by, SHARE, choices),
    )
    return replace(whole, plan=plan)


def _options(planning: Planning, asked: Iterable[Queries]) -> Iterator[PreparedTogether]:
    """The query under each limit, up to one under which almost no group would appear or noise is
    more than can be drawn; which these are follows from the plans alone. Raises `DPFrameError` when
    it cannot be answered under the least.
    """
    for number, queries in enumerate(asked):
        try:
            yield _option(planning, queries)
        except DPFrameError:
            if not number:
                raise
            return


def _option(planning: Planning, asked: Queries) -> PreparedTogether:
    """The query under one limit, and the queries that run with it."""
    if len(asked.queries) == 1:
        (one,) = planning.least(asked.queries)
        return PreparedTogether(one.plan, (one,), (Place.whole(one.query),))
    blocks, places = merge(asked)
    made = planning.least(blocks)
    return PreparedTogether(described_together([p.plan for p in made], places), made, places)


def _largest(costs: Sequence[Budget]) -> Budget:
    """What covers each of some costs."""
    main, slack = max(cost.main for cost in costs), max(cost.slack for cost in costs)
    return costs[0].of(main, slack)


def _choice(n: int, option: PreparedTogether, by: Sequence[str]) -> LimitChoice:
    """With as many groups as the limit at least where that is on groups: who keeps n is in n."""
    groups = max(GROUPS, n) if by else GROUPS
    noise = _rounded(max(noise_in_rows(n, plan, groups) for plan in _limited(option)))
    fingerprint = earlier_fingerprint(option.plan)
    return LimitChoice(n, option.plan.cost, _error(option), fingerprint, noise)


def _limited(option: PreparedTogether) -> list[Plan]:
    """The plans of the queries whose limit is found."""
    return [part.plan for part in option.parts if part.query.finds_limit]


def _error(option: PreparedTogether) -> float | None:
    """The 95% error bound of the first output of the first query; None where it depends on the
    data."""
    place = option.places[0]
    plan = option.parts[place.block].plan
    try:
        found = plan.accuracy(plan.outputs[place.outputs[0]].name)
    except DPFrameError:
        return None
    return _rounded(found) if math.isfinite(found) else None


def _rounded(error: float) -> float:
    return float(f"{error:.3g}")


def noise_in_rows(n: int, plan: Plan, groups: int = 1) -> float:
    """The noise of a query under a limit as a number of rows of all groups together, with 95%.

    The error of a part is divided by what one row adds to a group at most, or to the score of a
    candidate; of several parts that of the noisiest counts. Rows that a limit drops are missing in
    all groups together, and noise is in each, so it is taken times the number of groups.

    `n`: the limit. `plan`: the noise of the query under it. `groups`: how many groups there are,
    where groups are not listed.
    """
    groups = 1 if plan.grouping is None else plan.groups or groups
    found = [
        release.accuracy() * release.spread.tight[2] / _largest_move(release)
        for release in plan.releases
        if _largest_move(release)
    ]
    return groups * max(found, default=_of_count(n, plan.cost))


def has_normal_noise(plans: Iterable[Plan]) -> bool:
    """Whether the noise of queries is normal, and not of the kind of Laplace noise."""
    return any(r.noise.is_normal for plan in plans for r in plan.releases)


def sizes_to_appear(plans: Sequence[Plan]) -> tuple[int, ...]:
    """The number of individuals that a group needs to appear almost always (95%), by the plan
    under each limit; empty where groups are listed.
    """
    chosen = [[r.law for r in plan.releases if isinstance(r.law, KeyMechanism)] for plan in plans]
    if not any(chosen):
        return ()
    return tuple(max(law.size_at(_NEARLY_ALWAYS) for law in laws) for laws in chosen)


def _largest_move(release: NoisyAggregate) -> float:
    """How far one individual moves a number, or the scores of candidates, at most; 0 where groups
    are chosen.
    """
    if release.scores is not None:
        return float(release.scores.linf * release.step)
    if isinstance(release.noise, AdditiveMechanism):
        return float(release.exact.linf * release.step)
    return 0.0


def _of_count(n: int, cost: Budget) -> float:
    """The same of a count of rows, where what is released are no numbers with noise."""
    main = float(cost.main)
    return n * (
        -math.log(0.05) / main if cost.currency == "epsilon" else _NORMAL / (2 * main) ** 0.5
    )
