"""From queries to their plan: what is drawn, in which way, and under which limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, chain
from typing import Final, TypeAlias, TypeVar

from dpframe.aggregates.aggregate import Output, Query
from dpframe.aggregates.draw import Draw, number_of
from dpframe.aggregates.measurement import Rebuilt
from dpframe.aggregates.reconstruction import (
    Reconstruction,
    ways_to_measure,
    with_totals,
    with_whole_levels,
)
from dpframe.core.budget import GDP, Budget, PureDP
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.mechanisms import AdditiveMechanism, KeyMechanism, Mechanism, MechanismTask
from dpframe.optimise.description import PAYS, build_plan, describe_together, gain_words
from dpframe.optimise.limit_rule import GROUPS, LimitRule
from dpframe.optimise.measurements import (
    Effects,
    Noise,
    PlannedDraw,
    PlannedMeasurement,
    Way,
    effects_of,
    measurements_of,
    ways_of,
)
from dpframe.optimise.mechanisms import (
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
from dpframe.optimise.prepared import LimitOptions, Prepared, PreparedTogether
from dpframe.optimise.queries import (
    LimitSearch,
    Place,
    Queries,
    Related,
    bring_together,
    merge,
    queries_by_place,
    related_blocks,
)
from dpframe.plan import NoisyAggregate
from dpframe.plan.data import FoundLimit, LimitChoice
from dpframe.plan.document import earlier_fingerprint
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

    def draws_by(self, laws: Sequence[Mechanism]) -> tuple[Draw, ...]:
        """What is drawn, with the mechanism of each draw."""
        return tuple(
            _draw_of(draw, law, self.parts) for draw, law in zip(self.way.draws, laws, strict=True)
        )

    def knowing(self, draws: Sequence[Draw]) -> Query:
        """The query, where it is known how it is drawn."""
        if not self.query.depends_on_noise:
            return self.query
        return self.query.knowing({k: law for one in draws for k, law in one.noises().items()})


def join_requests(planned: Sequence[Planned], by: str) -> AskedWay:
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
    total = sum(wanted, Fraction(0))
    importance = [float(weight / total) for weight in wanted]
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


def split_choice(planned: Sequence[Planned], chosen: ChosenWay) -> list[ChosenWay]:
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


# -- the search for the plan with the least error: rules propose, the planner compares ----------
# Queries that are planned together are composed as the draws of one query are. Parameters are fixed
# before any noise is drawn, and each draw has its own cost for any frame, because the individual
# that differs between neighbours is the same in all frames of a session. Privacy does not rest on
# the search: the kernel checks what comes out.

T = TypeVar("T")
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
    1 of no outputs. So it does not matter in which units outputs are.
    """
    whole = sum(error.weight for error in before)
    total = sum(b.weight * _ratio(a, b) for b, a in zip(before, after, strict=True))
    return total / whole if whole else 1.0


def _gain(before: ExpectedError, after: ExpectedError) -> float:
    """By what factor an output's error is smaller after."""
    return math.sqrt(_ratio(before, after))


def _ratio(above: ExpectedError, below: ExpectedError) -> float:
    return (above.squared + _NOTHING) / (below.squared + _NOTHING)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Queries that share a cost, in one of the forms in which they can be answered."""

    queries: tuple[Query, ...]
    places: tuple[Place, ...]  # Where the outputs of the original queries are
    of: tuple[tuple[int, ...], ...]  # Which queries of the first draft each one answers
    compared: tuple[int, ...]  # The queries whose errors decide whether it is better

    @classmethod
    def first(cls, queries: Sequence[Query], places: Sequence[Place] = ()) -> Draft:
        """The queries as they are."""
        numbers = tuple(range(len(queries)))
        return cls(tuple(queries), tuple(places), tuple((n,) for n in numbers), numbers)

    def with_queries(self, queries: Iterable[Query]) -> Draft:
        """The same queries, measured in another way."""
        made = tuple(queries)
        return replace(self, queries=made, compared=tuple(range(len(made))))

    def relate(self, found: Sequence[Related]) -> Draft:
        """The same with related queries as one."""
        queries, places = bring_together(self.queries, self.places, found)
        numbers = {id(query): self.of[n] for n, query in enumerate(self.queries)}
        numbers |= {id(one.query): one.numbers for one in found}
        moved = {id(one.query) for one in found}
        compared = tuple(n for n, query in enumerate(queries) if id(query) in moved)
        return Draft(queries, places, tuple(numbers[id(query)] for query in queries), compared)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A draft with its plans."""

    draft: Draft
    prepared: tuple[Prepared, ...]

    def errors(self, draft: Draft) -> list[ExpectedError]:
        """What is expected of the outputs that a draft compares."""
        places = {numbers: place for place, numbers in enumerate(self.draft.of)}
        return errors_of(
            self.prepared[places[numbers]]
            for whole in (draft.of[number] for number in draft.compared)
            for numbers in ([whole] if whole in places else [(n,) for n in whole])
        )

    def with_notes(self, compared: Iterable[int], notes: Iterable[str]) -> Answer:
        """The same, where the outputs of some queries say more."""
        each, made = iter(notes), list(self.prepared)
        for number in compared:
            asked = made[number].query.outputs
            made[number] = _with_notes(made[number], [next(each) for _ in asked])
        return replace(self, prepared=tuple(made))


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


RelativeError: TypeAlias = Callable[[Draft, Draft], float]
"""The squared errors of the second draft relative to those of the first."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Another way to answer queries.

    `drafts` proposes it, at a spend. The first draft is what the others are compared with. To leave
    out what is not worth a plan it can ask for the error of one draft relative to another.
    """

    drafts: Callable[[Draft, Budget, RelativeError], Iterable[Draft]]
    worth: float  # How many times the error must be less than this to be worth it
    # What aggregates serve that get a note on what they gain; nothing where outputs get one on what
    # they pay.
    gains: str = ""

    def remark(self, draft: Draft, taken: Answer, tried: Sequence[Answer]) -> Answer:
        """The answer to a draft, with notes on how it changed the errors of outputs. `tried`: the
        answers to all drafts; it is compared with the first.
        """
        after = taken.errors(draft)
        if self.gains:
            gains = map(_gain, tried[0].errors(draft), after)
            outputs = (o for n in draft.compared for o in taken.prepared[n].query.outputs)
            notes = [_remark(o, self.gains, gain) for o, gain in zip(outputs, gains, strict=True)]
        else:
            each = zip(*(one.errors(draft) for one in tried), strict=True)
            least = [min(found, key=lambda error: error.squared) for found in each]
            notes = [_price_words(_gain(b, a)) for b, a in zip(least, after, strict=True)]
        return taken.with_notes(draft.compared, notes)


def _remark(asked: Output, among: str, gain: float) -> str:
    """The sentence about an output that is measured with others, or that pays for these."""
    served = {a.serves for a in asked.aggregates.values() if isinstance(a, Reconstruction)}
    paying = gain < PAYS and "queries" not in served  # these have a sentence already
    return "" if among not in served and not paying else gain_words(gain)


def _price_words(gain: float) -> str:
    if gain >= PAYS:
        return ""
    alone = "by the way that is best for it alone, so that others err less"
    return f"{1 / gain:.3g} times more error than {alone}"


def relate_tables(draft: Draft, spend: Budget, compare: RelativeError) -> Iterator[Draft]:
    """Tables that are margins of one another are rebuilt from what is drawn for all of them, where
    they have smaller errors together were nothing else asked.
    """
    yield draft
    if len(draft.queries) == 1:
        return
    for found in related_blocks(draft.queries):
        kept = [one for one in found if len(found) == 1 or _errs_less(draft.queries, one, compare)]
        if kept:
            yield draft.relate(kept)


def _errs_less(queries: Sequence[Query], one: Related, compare: RelativeError) -> bool:
    apart = Draft.first([queries[number] for number in one.numbers])
    whole = tuple(range(len(one.numbers)))
    return compare(apart, Draft((one.query,), (), (whole,), (0,))) < WORTH_WHILE


def rebuild_counts(draft: Draft, spend: Budget, compare: RelativeError) -> Iterator[Draft]:
    """Counts of rows are rebuilt from the noisy cells of histograms, of distribution functions, or
    of either.
    """
    queries = draft.queries
    cells, levels = list(map(with_totals, queries)), list(map(with_whole_levels, queries))
    tried: list[Sequence[Query]] = []
    for found in (queries, cells, levels, list(map(with_whole_levels, cells))):
        if not any(_are_same(found, other) for other in tried):
            tried.append(found)
            yield draft.with_queries(found)


def _are_same(some: Sequence[Query], others: Sequence[Query]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))


def measure_otherwise(draft: Draft, spend: Budget, compare: RelativeError) -> Iterator[Draft]:
    """Each query is measured in the ways that its aggregates know: tables of grouping sets and
    distribution functions by several strategies, and quantiles of one column together.
    """
    ways = combine_ways([ways_to_measure(query, spend) for query in draft.queries])
    return map(draft.with_queries, ways)


RULES: Final = (
    # Outermost, because what is related is measured in the ways of the rules below.
    Rule(relate_tables, WORTH_WHILE, "queries"),
    # Before strategies are chosen, which depend on what the cells are for.
    Rule(rebuild_counts, WORTH_WHILE, "counts"),
    # Innermost: each of these has its own parts, which are drawn in the best of `ways_of`.
    Rule(measure_otherwise, 1.0),
)
"""Each proposes drafts. Each draft is planned by the rules after it, and the best is taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Planning:
    """How queries are planned."""

    # The total cost allowed, and the session's remaining budget.
    spend: Budget
    remaining: Budget | None
    split: str  # The rule that divides the cost
    # The measure, rho or mu, in which plans are charged, if it is not the measure of the spend.
    charged_in: type[Budget] | None

    def least(self, queries: Sequence[Query]) -> tuple[Prepared, ...]:
        """The plan of each query, where all share the cost and none is related to another."""
        return self.answer(Draft.first(queries), RULES[1:]).prepared

    def together(self, asked: Queries, rules: Sequence[Rule] = RULES) -> PreparedTogether:
        """One plan of several queries, which share the cost. Raises `DPFrameError` when they cannot
        be answered at it.
        """
        if len(asked.queries) == 1:  # its weight does not matter
            (one,) = self.answer(Draft.first(asked.queries), rules).prepared
            return PreparedTogether(one.plan, (one,), (Place.whole(*asked.queries),))
        planning = self if asked.weights is None else replace(self, split="weights")
        answer = planning.answer(Draft.first(*merge(asked)), rules)
        parts, places = answer.prepared, answer.draft.places
        return PreparedTogether(describe_together([p.plan for p in parts], places), parts, places)

    def answer(self, draft: Draft, rules: Sequence[Rule] = RULES) -> Answer:
        """The draft with the least error that rules propose, with its plans. Raises `DPFrameError`
        when the draft cannot be released at the cost.
        """
        if not rules:
            return Answer(draft, self._plan(draft.queries))
        rule, later = rules[0], rules[1:]

        def compare(before: Draft, after: Draft) -> float:
            with suppress(DPFrameError):
                first = self.answer(before, later).errors(after)
                return relative_error(first, self.answer(after, later).errors(after))
            return math.inf

        taken, *others = rule.drafts(draft, self.spend, compare)
        tried = [self.answer(taken, later)]
        best, least = tried[0], rule.worth
        for other in others:
            with suppress(DPFrameError):  # more noise in one of its draws than can be drawn
                made = self.answer(other, later)
                tried.append(made)
                times = relative_error(tried[0].errors(other), made.errors(other))
                if times < least:
                    taken, best, least = other, made, times
        if len(tried) == 1 or (rule.gains and best is tried[0]):
            return best
        return rule.remark(taken, best, tried)

    @property
    def _noises(self) -> tuple[Noise, ...]:
        """What may be added to several numbers at once; Gaussian noise has no epsilon alone."""
        return ("box",) if isinstance(self.spend, PureDP) else ("box", "gaussian")

    def _plan(self, queries: Sequence[Query]) -> tuple[Prepared, ...]:
        """The plan of each query, where all share the cost."""
        parts = [measurements_of(query) for query in queries]
        weighted = any(request.weight != 1 for query in queries for request in query.requests)
        by = "weights" if weighted else self.split
        ways = combine_ways(
            [
                ways_of(query, found, by, self._noises)
                for query, found in zip(queries, parts, strict=True)
            ]
        )
        effects = list(map(effects_of, queries, parts))
        planned = [list(map(Planned, queries, parts, effects, way)) for way in ways]
        asked = [join_requests(one, by) for one in planned]
        chosen = least_error_way(
            asked,
            lambda way: choose_for(planned[asked.index(way)], way, self.spend),
        )
        tasks = asked[chosen.number].tasks
        allowed = chosen.together.cost
        if self.charged_in is not None:
            charge = (in_mu if self.charged_in is GDP else in_rho)(tasks, chosen.together)
            chosen = replace(chosen, together=charge)
        plans = []
        taken = planned[chosen.number]
        for one, own in zip(taken, split_choice(taken, chosen), strict=True):
            plan = build_plan(
                one.query, one.parts, one.way, own, allowed, self.spend, self.remaining, by
            )
            draws = one.draws_by([choice.law for choice in own.together.choices])
            plans.append(Prepared(plan, one.knowing(draws), one.parts, draws))
        return tuple(plans)


def combine_ways(ways: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
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
# computed from noisy counts and from plans alone (`dpframe.optimise.limit_rule`), so it is
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


def plan_with_limit(
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
    limited = [plan for option in options for plan in _limited_plans(option)]
    sizes, is_normal = sizes_to_appear(limited), has_normal_noise(limited)
    if sizes and len(sizes) > len(options):  # of several queries the one that needs the most
        each = len(sizes) // len(options)
        sizes = tuple(max(sizes[at : at + each]) for at in range(0, len(sizes), each))
    limit_options = LimitOptions(LimitRule(asked.limits, errors, sizes, noise, is_normal), options)
    alone = PreparedTogether(search.plan, (search,), (Place.whole(search.query),), limit_options)
    whole, shown = alone.follow_with(options[-1]), options[-1].plan
    plan = replace(
        describe_together([part.plan for part in whole.parts], whole.places),
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
            yield planning.together(queries, RULES[1:])
        except DPFrameError:
            if not number:
                raise
            return


def _largest(costs: Sequence[Budget]) -> Budget:
    """What covers each of some costs."""
    main, slack = max(cost.main for cost in costs), max(cost.slack for cost in costs)
    return costs[0].of(main, slack)


def _choice(n: int, option: PreparedTogether, by: Sequence[str]) -> LimitChoice:
    """With as many groups as the limit at least where that is on groups: who keeps n is in n."""
    groups = max(GROUPS, n) if by else GROUPS
    noise = _round(max(noise_in_rows(n, plan, groups) for plan in _limited_plans(option)))
    fingerprint = earlier_fingerprint(option.plan)
    return LimitChoice(n, option.plan.cost, _error(option), fingerprint, noise)


def _limited_plans(option: PreparedTogether) -> list[Plan]:
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
    return _round(found) if math.isfinite(found) else None


def _round(error: float) -> float:
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
    sizes = ([law.size_at(_NEARLY_ALWAYS) for law in laws] for laws in chosen)
    return tuple(max(each, default=0) for each in sizes)


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
