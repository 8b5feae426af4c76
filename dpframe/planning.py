"""What is drawn for one query, or for several that share a cost, as mechanisms are asked for it.

Queries that are planned together are composed as the draws of one query are: parameters are fixed
before any noise is drawn, and each draw costs what it does whatever frame it is of, because the
individual that differs between neighbours is one and the same in all frames of a session.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import TypeVar

from dpframe.aggregates.bound import MeasurementKey
from dpframe.aggregates.expected import expected_squared_error
from dpframe.aggregates.joint_sums import Rebuilt
from dpframe.aggregates.measurement import Measurement, Table
from dpframe.aggregates.query import Query
from dpframe.aggregates.ways import least_expected, ways_to_measure
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
from dpframe.core.budget import GDP, Budget
from dpframe.describe import described, gain_words
from dpframe.errors import DPFrameError
from dpframe.infer import (
    Place,
    PlannedDraw,
    PlannedMeasurement,
    Related,
    Way,
    brought_together,
    effects_of,
    measurements_of,
    related_blocks,
    ways_of,
)
from dpframe.mechanisms import Mechanism, MechanismTask
from dpframe.release import Draw, number_of
from dpframe.report import Plan

T = TypeVar("T")

_NOTHING = 1e-200
"""Added to squared errors, which floats may hold as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A plan and what is needed to run it.

    Parameters
    ----------
    plan
        What reviewers read.
    query
        What is asked.
    parts
        The parts in the order of `plan.releases`.
    draws
        What is drawn for them.
    """

    plan: Plan
    query: Query
    parts: tuple[PlannedMeasurement, ...]
    draws: tuple[Draw, ...]

    @property
    def tables(self) -> list[Table]:
        """The exact tables that it needs, each once."""
        return tables_of(draw.measurement for draw in self.draws)

    @property
    def laws(self) -> dict[MeasurementKey, Mechanism]:
        """The mechanism of each part by itself, whatever else is drawn with it."""
        return {key: law for draw in self.draws for key, law in draw.noises().items()}


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A query, the parts that it needs, and one way to draw them.

    Parameters
    ----------
    query, parts, way
        These.
    """

    query: Query
    parts: tuple[PlannedMeasurement, ...]
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


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTogether:
    """One plan of several queries, and what is needed to run it.

    Parameters
    ----------
    plan
        What reviewers read.
    parts
        The queries that are run, each with the plan that it has where all share the cost.
    places
        Where the outputs of the queries that were asked are.
    """

    plan: Plan
    parts: tuple[Prepared, ...]
    places: tuple[Place, ...]

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries that are run."""
        return tuple(part.query for part in self.parts)

    def asked(self, run: Iterable[Query]) -> list[tuple[Query, tuple[Draw, ...]]]:
        """The queries that were asked, of those that were run, and what is drawn for each."""
        found = list(run)
        return [(p.of(found[p.block]), self.parts[p.block].draws) for p in self.places]

    def answered(self) -> list[tuple[Query, dict[MeasurementKey, Mechanism]]]:
        """The queries that were asked, and the mechanism of each part by itself."""
        return [(p.of(self.parts[p.block].query), self.parts[p.block].laws) for p in self.places]


@dataclass(frozen=True, slots=True, eq=False)
class Planning:
    """How queries are planned.

    Parameters
    ----------
    spend, remaining
        What all may cost together, and what the session has left.
    split
        What the cost is divided by.
    charged_in
        The measure, of rho or mu, in which plans are charged, if not in that of the spend.
    """

    spend: Budget
    remaining: Budget | None
    split: str
    charged_in: type[Budget] | None

    def least(self, queries: Sequence[Query]) -> tuple[Prepared, ...]:
        """The plan of each query, where all share the cost, measured as they err least."""
        ways = combined([ways_to_measure(query, self.spend) for query in queries])
        return least_expected([self._planned(way) for way in ways])

    def related(
        self, queries: tuple[Query, ...], places: tuple[Place, ...]
    ) -> tuple[tuple[Prepared, ...], tuple[Place, ...]]:
        """The same, with related tables rebuilt from what is drawn for all of them where that errs
        less; and where outputs are then.
        """
        apart = self.least(queries)
        best, least = (apart, places), WORTH_WHILE
        for found in related_blocks(queries):
            found = [one for one in found if len(found) == 1 or self._errs_less(queries, one)]
            with suppress(DPFrameError):  # more noise in a margin than can be drawn
                moved, new_places = brought_together(queries, places, found)
                made = self.least(moved) if found else apart
                at = [next(i for i, p in enumerate(moved) if p is one.query) for one in found]
                numbers = [number for one in found for number in one.numbers]
                before = errors_of(apart[number] for number in numbers)
                after = errors_of(made[number] for number in at)
                error = relative_error(before, after)
                if error < least:
                    told = telling_gains(made, at, before, after)
                    best, least = (told, new_places), error
        return best

    def _errs_less(self, queries: Sequence[Query], one: Related) -> bool:
        """Whether related queries err less together, were nothing else asked."""
        apart = self.least([queries[number] for number in one.numbers])
        with suppress(DPFrameError):
            together = self.least([one.query])
            return relative_error(errors_of(apart), errors_of(together)) < WORTH_WHILE
        return False

    def _planned(self, queries: Sequence[Query]) -> tuple[Prepared, ...]:
        """The plan of each query, where all share the cost."""
        parts = [measurements_of(query) for query in queries]
        weighted = any(request.weight != 1 for query in queries for request in query.requests)
        by = "weights" if weighted else self.split
        ways = combined([ways_of(q, found, by) for q, found in zip(queries, parts, strict=True)])
        planned = [list(map(Planned, queries, parts, way)) for way in ways]
        asked = [asked_of(one, by) for one in planned]
        chosen = least_error_way(
            asked, lambda way: choose_for(planned[asked.index(way)], way, self.spend)
        )
        tasks = asked[chosen.number].tasks
        allowed = chosen.together.cost
        if self.charged_in is not None:
            charge = (in_mu if self.charged_in is GDP else in_rho)(tasks, chosen.together)
            chosen = replace(chosen, together=charge)
        made = []
        taken = planned[chosen.number]
        for one, own in zip(taken, chosen_apart(taken, chosen), strict=True):
            plan = described(
                one.query, one.parts, one.way, own, allowed, self.spend, self.remaining, by
            )
            draws = one.drawn_by([choice.law for choice in own.together.choices])
            made.append(Prepared(plan, one.knowing(draws), one.parts, draws))
        return tuple(made)


def tables_of(parts: Iterable[Measurement]) -> list[Table]:
    """The exact tables of some vectors, each once."""
    return list(dict.fromkeys(table for part in parts for table in part.tables))


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """What is expected of one output.

    Parameters
    ----------
    squared
        Its squared error, relative to what one individual adds.
    weight
        How much it counts.
    """

    squared: float
    weight: float


def errors_of(prepared: Iterable[Prepared]) -> list[ExpectedError]:
    """What is expected of the outputs of queries, all of which are sums over rows."""
    return [
        ExpectedError(
            sum(
                expected_squared_error(a, one.query.scope, one.laws)
                for a in output.aggregates.values()
            ),
            float(sum(a.request.weight for a in output.aggregates.values())),
        )
        for one in prepared
        for output in one.query.outputs
    ]


def relative_error(before: Sequence[ExpectedError], after: Sequence[ExpectedError]) -> float:
    """The mean over outputs, by their weights, of how many times the squared error is what it was;
    1 of no outputs.
    """
    whole = sum(error.weight for error in before)
    total = sum(b.weight * _ratio(a, b) for b, a in zip(before, after, strict=True))
    return total / whole if whole else 1.0


def _ratio(above: ExpectedError, below: ExpectedError) -> float:
    return (above.squared + _NOTHING) / (below.squared + _NOTHING)


def telling_gains(
    made: Sequence[Prepared],
    at: Sequence[int],
    before: Sequence[ExpectedError],
    after: Sequence[ExpectedError],
) -> tuple[Prepared, ...]:
    """The plans, where outputs of some say what it does to their errors to be measured together."""
    gains = iter([math.sqrt(_ratio(b, a)) for b, a in zip(before, after, strict=True)])
    told = list(made)
    for number in at:
        outputs = [
            replace(output, note=f"{output.note}; {gain_words(next(gains))}")
            for output in made[number].plan.outputs
        ]
        told[number] = replace(
            made[number], plan=replace(made[number].plan, outputs=tuple(outputs))
        )
    return tuple(told)


def combined(ways: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """One way for each query at a time: the first of all of them, the second, and so on; a query
    that has fewer keeps to its last.
    """
    return [
        tuple(found[min(number, len(found) - 1)] for found in ways)
        for number in range(max(map(len, ways)))
    ]


def asked_of(planned: Sequence[Planned], by: str) -> AskedWay:
    """What mechanisms are asked for, by all queries together.

    Parameters
    ----------
    planned
        The queries.
    by
        What the cost is divided by.
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
        effects = effects_of(one.query, one.parts)
        outputs += [[(len(parts) + part, e) for part, e in found] for _, found in effects]
        wanted += [weight for weight, _ in effects]
        parts += [rebuilt[number] for number in range(len(one.parts))]
        tasks += [
            draw.measurement.task(draw.name, draw.sensitivity, draw.mechanism, one.query.scope)
            for draw in one.way.draws
        ]
    whole = sum(wanted, Fraction(0))
    importance = [float(weight / whole) for weight in wanted]
    return AskedWay(tasks, weights, rho_weights, parts, outputs, importance)


def choose_for(planned: Sequence[Planned], asked: AskedWay, spend: Budget) -> ComposedChoice:
    """Mechanisms for the draws of all queries.

    Raises
    ------
    DPFrameError
        When a part cannot be released within its share.
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
    """What was chosen for each query; the cost is that of all together."""
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
