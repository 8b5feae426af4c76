"""The plan of one query or several, once mechanisms are chosen: all that reviewers read of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Final

import polars as pl

from dpframe.aggregates.aggregate import BoundAggregate, MeasurementKey, Output, Query
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.error import MeanError, PartError, VarianceError
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import Additive, JointSums, Measurement, Responses, Selection
from dpframe.aggregates.nightly import NightlySums
from dpframe.aggregates.reconstruction import Reconstruction, by_grouping_sets
from dpframe.aggregates.registry import bind
from dpframe.aggregates.request import UNKNOWN
from dpframe.aggregates.statistics import GridSum, PairSum, SquareSum, UnitPairSum, UnitTotal
from dpframe.choose import ChosenWay
from dpframe.core.budget import Budget
from dpframe.core.tree import Column, substitute
from dpframe.describe.notes import (
    declared_words,
    error_rule,
    identifying,
    learned_words,
    limit_words,
    notes_for,
    other_units,
    remarks_for,
    typical_of,
)
from dpframe.errors import DPFrameError
from dpframe.frames.definition import definition, steps_of
from dpframe.frames.groups import Groups, SetGroups, digest_of_keys, digest_of_sets
from dpframe.frames.windows_read import windows_read
from dpframe.infer import Place, PlannedDraw, PlannedMeasurement, Way
from dpframe.mechanisms import AdditiveMechanism, Choice, CombinedNoise, VectorMechanism
from dpframe.plan import ForcedError, NoisyAggregate, PlanColumn, PlanOutput, PlanQuery, PlanStep
from dpframe.plan.noisy_aggregate import JointDraw
from dpframe.plan.several import all_windows, together
from dpframe.plan.types_read import types_read
from dpframe.report import Plan

# The cost of a forced mechanism or an equal division of the cost: errors compared with those of the
# plan with the least.

_OF_PARTS: Final = {MeanError: (1.0, 1.0), VarianceError: (0.25, 1.0, 0.25)}
"""What the squared errors of parts, each relative to what a row adds, do to the result's."""


def is_forced(queries: Sequence[Query], split: str) -> bool:
    """Whether mechanisms are named, or the cost is not divided for least error."""
    return split == "equal" or any(_is_named(a) for query in queries for a in query.aggregates)


def unforced(query: Query) -> Query:
    """The same query without named mechanisms. Raises `DPFrameError` if the query has no other
    mechanism.
    """
    scope = query.scope
    outputs = []
    for output in query.outputs:
        aggregates = dict(output.aggregates)
        for place, one in aggregates.items():
            if _is_named(one):
                free = bind(replace(one.request, mechanism="auto"), scope)
                aggregates[place] = by_grouping_sets(free, scope)
        outputs.append(replace(output, aggregates=aggregates))
    return replace(query, outputs=tuple(outputs))


def _is_named(aggregate: BoundAggregate) -> bool:
    return aggregate.request.mechanism != "auto"


def cost_of_forcing(
    queries: Sequence[Query],  # The queries
    # `plan`, `least`: its plan, and the plan of the same query where nothing is forced.
    plan: Plan,
    least: Plan,
) -> tuple[ForcedError, ...]:
    """The costs by output; empty if unknown."""
    found: dict[int, ForcedError] = {}
    for query, mine, others in zip(
        queries, _places(plan, queries), _places(least, queries), strict=True
    ):
        for output, here, there in zip(query.outputs, mine, others, strict=True):
            ratio = _ratio(_error(plan, plan.outputs[here]), _error(least, least.outputs[there]))
            named = any(_is_named(aggregate) for aggregate in output.aggregates.values())
            if named or ratio is not None:
                found[here] = ForcedError(here, named, ratio)
    if all(error.times is None for error in found.values()):
        return ()
    return tuple(found[number] for number in sorted(found))


def _places(plan: Plan, queries: Sequence[Query]) -> list[Sequence[int]]:
    """Which of a plan's outputs those of each query are."""
    if plan.queries:
        return [query.outputs for query in plan.queries]
    return [range(len(query.outputs)) for query in queries]


def _ratio(error: float | None, least: float | None) -> float | None:
    """To three digits, so that it is the same on all machines."""
    if error is None or least is None or not (0 < least < math.inf and 0 < error < math.inf):
        return None
    ratio = float(f"{error / least:.3g}")
    return ratio if 0 < ratio < math.inf else None


def _error(plan: Plan, output: PlanOutput) -> float | None:
    """Something that the errors of an output are in proportion to, the same in both plans."""
    releases = [plan.releases[number] for number in output.releases]
    noises = [_deviation(release) for release in releases]
    parts = _OF_PARTS.get(type(output.error))
    if parts is not None:
        if len(parts) != len(noises):
            return None
        return math.sqrt(sum(w * n * n for w, n in zip(parts, noises, strict=True)))
    if len(noises) == 1 and noises[0] and isinstance(output.error, PartError):
        return noises[0]
    with suppress(DPFrameError):  # what depends on the data
        return plan.accuracy(output.name)
    return None


def _deviation(release: NoisyAggregate) -> float:
    """The deviation of the noise, relative to what one row adds; 0 where nothing is added."""
    noise = release.noise
    if not isinstance(noise, AdditiveMechanism) or not release.exact.linf:
        return 0.0
    return math.sqrt(noise.variance()) / float(release.exact.linf)


# The plan of several queries, from those of the frames and groups that they are of.

PAYS = 0.995
"""An error must be below this factor of the error alone to count as smaller."""


def described_together(
    plans: Sequence[Plan],  # Notes for each frame and its groups, with the cost of all
    places: Sequence[Place],  # Where the outputs of each query are
) -> Plan:
    """One plan."""
    starts = list(accumulate((len(plan.outputs) for plan in plans), initial=0))
    return together(
        plans,
        [
            PlanQuery(
                place.block,
                place.names,
                tuple(starts[place.block] + number for number in place.outputs),
            )
            for place in places
        ],
    )


def gain_words(gain: float) -> str:
    """What it does to an output's error to be rebuilt from what is drawn for several queries."""
    if gain < PAYS:
        return f"{1 / gain:.3g} times more error than by itself, so that others err less"
    return f"{gain:.3g} times less error than by itself"


# The plan of a query, once mechanisms are chosen: everything that reviewers read of it.

_AS_MUCH = 0.995
"""Noise must be below this factor to count as less."""


def build_plan(
    # `query`, `parts`: the query and the parts that it needs.
    query: Query,
    parts: Sequence[PlannedMeasurement],
    # `way`, `chosen`: how they are drawn, and the mechanisms of the draws and what is charged.
    way: Way,
    chosen: ChosenWay,
    allowed: Budget,  # What the mechanisms satisfy, in the measure of the spend
    # `requested`, `remaining`: the spend, and what the session has left.
    requested: Budget,
    remaining: Budget | None,
    split: str,  # How the cost is divided
) -> Plan:
    """The plan."""
    together = chosen.together
    releases = _releases(query, parts, way, chosen)
    groups = query.groups
    listed = None if groups is None or groups.discovered else groups
    numbers = {(use.part, use.mechanism): i for i, use in enumerate(parts)}
    outputs = tuple(
        _output(output, note, numbers)
        for output, note in zip(query.outputs, notes_for(query, releases), strict=True)
    )
    sets = {table.kept for draw in way.draws for table in draw.measurement.tables}
    # a table of a single grouping set has fewer keys, which exclude fewer windows
    by = [
        groups.margin(kept) if isinstance(groups, SetGroups) and kept is not None else groups
        for kept in sets
    ]
    grouped_by = None if groups is None else definition(groups.by)
    asked = [output.definition for output in outputs]
    return Plan(
        source=query.relation.name,
        unit=query.relation.facts.unit,
        others=other_units(query),
        declared=declared_words(query),
        steps=_steps(query),
        grouping=None if groups is None else f"{groups.words()}: {groups.origin}",
        groups=None if listed is None else listed.size,
        keys=None if listed is None else listed.listed(),
        keys_digest=None if groups is None else _digest_of_keys(groups, sets),
        grouped_by=grouped_by,
        best_group=query.chooses_groups,
        releases=releases,
        outputs=outputs,
        cost=together.cost,
        composition=together.composition,
        split=split,
        remarks=remarks_for(query, releases, allowed),
        requested=requested,
        remaining=remaining,
        windows=all_windows([windows_read(query.relation, one) for one in by]),
        typical=typical_of(query),
        identifying=identifying(query),
        columns=tuple(
            PlanColumn(frame, name, dtype)
            for frame, columns in types_read(query.relation, grouped_by, *asked)
            for name, dtype in columns.items()
        ),
    )


def _digest_of_keys(groups: Groups, sets: Collection[tuple[int, ...] | None]) -> str:
    """The digest of the keys; of those of each set where no table has all columns."""
    kept = [one for one in sets if one is not None and len(one) < len(groups.by)]
    if len(kept) < len(sets) or not isinstance(groups, SetGroups):
        return digest_of_keys(groups)
    margins = map(groups.margin, kept)
    return digest_of_sets(digest_of_keys(one) for one in margins if one is not None)


def entries_of(part: Measurement, query: Query) -> int:
    """How many results there are, in one group where their number is not known."""
    entries = part.entries(query.scope)
    discovered = query.groups is not None and query.groups.discovered
    return max(1, entries // UNKNOWN) if discovered else entries


def _releases(
    query: Query, parts: Sequence[PlannedMeasurement], way: Way, chosen: ChosenWay
) -> tuple[NoisyAggregate, ...]:
    """One for each part; draws are numbered in the order in which parts need them."""
    places = {
        part: (draw, choice, place)
        for draw, choice in zip(way.draws, chosen.together.choices, strict=True)
        for place, part in enumerate(draw.parts)
    }
    numbers: dict[int, int] = {}
    found = []
    for number, use in enumerate(parts):
        draw, choice, place = places[number]
        at = numbers.setdefault(id(draw), len(numbers))
        made = _noisy_aggregate(use, choice, query, at, _joint(draw, place))
        if made.joint is not None and len(made.joint.widths) > 1:
            others = [parts[n].name for n in draw.parts if parts[n].name != use.name]
            drawn = {parts[n].part.tables[0] for n in draw.parts}
            if len(draw.parts) > 1 and draw.measurement.tables[0] not in drawn:
                others.append("the number of rows")  # although it was not requested
            others = others or ["the other numbers that it needs"]
            made = replace(made, reason=_together_words(others, chosen.gains[number]))
        else:
            if isinstance(choice.law, VectorMechanism):
                reason = "one number by itself, of individuals that are weighed"
                made = replace(made, reason=reason)
            if chosen.gains[number] < _AS_MUCH:
                paid = (
                    f"{1 / chosen.gains[number]:.3g} times more noise than if the others, which "
                    "err less for it, were not drawn together"
                )
                made = replace(made, reason=f"{made.reason}; {paid}")
        found.append(made)
    return tuple(found)


def _joint(draw: PlannedDraw, place: int) -> JointDraw | None:
    if draw.rebuilt is None:
        return None
    vector, rebuilt = draw.measurement, draw.rebuilt[place]
    assert isinstance(vector, JointSums)
    about = vector.widths, vector.turned, draw.sensitivity
    number = rebuilt.factors, rebuilt.divisor
    return JointDraw(*about, *number, vector.conditions, vector.kept, vector.arches)


def _together_words(others: Sequence[str], gain: float) -> str:
    """Why a number is drawn jointly with others, and how that changes its error."""
    names = ", ".join(sorted({*others}))
    if gain < _AS_MUCH:
        return (
            f"drawn together with {names}, which err less for it: {1 / gain:.3g} times more noise "
            "than by itself"
        )
    return f"drawn together with {names}: {gain:.3g} times less noise than by itself"


def _noisy_aggregate(
    use: PlannedMeasurement, choice: Choice, query: Query, number: int, joint: JointDraw | None
) -> NoisyAggregate:
    part: Measurement = use.part
    law, step = choice.law, part.step
    noise = law if joint is None else CombinedNoise.of(law, joint.factors, joint.divisor)
    statistic = part.table.statistic if isinstance(part, (Additive, Margin, NightlySums)) else None
    statistic = statistic.of if isinstance(statistic, (UnitTotal, UnitPairSum)) else statistic
    gridded = isinstance(statistic, (GridSum, SquareSum, PairSum))
    return NoisyAggregate(
        name=use.name,
        aggregate=use.role,
        sensitivity=use.sensitivity.scaled(step).public(),
        mechanism=law.name,
        scale=noise.shown_scale(step),
        cost=choice.cost,
        law=law,
        step=step,
        exact=use.sensitivity,
        entries=entries_of(part, query) * (part.chosen if isinstance(part, Selection) else 1),
        spread=part.spread(query.scope),
        repeats=_repeats(part, query),
        candidates=part.candidates if isinstance(part, Selection) else None,
        scores=part.score_range(query.scope) if isinstance(part, Selection) else None,
        contents=part.words(),
        reason=choice.reason,
        users=use.users,
        asked=use.mechanism,
        bias=statistic.bias if gridded and statistic is not None else Fraction(0),
        draw=number,
        joint=joint,
    )


def _repeats(part: Measurement, query: Query) -> int:
    """How often one individual meets the mechanism."""
    match part:
        case Selection():
            return part.rounds
        case KeySelection():
            return part.touched(query.scope)
        case Responses():  # each row reports
            return query.scope.spread.tight[0]
        case _:
            return 1


def _output(output: Output, note: str, numbers: Mapping[MeasurementKey, int]) -> PlanOutput:
    used = {numbers[key]: None for one in output.aggregates.values() for key in one.keys}
    if not used:  # the groups alone, which are chosen by the first part
        used = {0: None}
    releases = tuple(used)
    if isinstance(output.only, (Reconstruction, BoundDistribution)):  # a vector may have its total
        releases = tuple(numbers[key] for key in output.only.keys)
    return PlanOutput(
        output.name,
        output.words,
        note,
        releases=releases,
        error=error_rule(output),
        definition=definition(contents_of(output)),
    )


def contents_of(output: Output) -> list[object]:
    """All that decides what an output is, words or not: its noisy vectors, with their clamps and
    grids, its arguments and the arithmetic after them.
    """
    contents: list[object] = []
    for aggregate in output.aggregates.values():
        contents += [part for part, _ in aggregate.keys]
        given = aggregate.request.aggregate.arguments().values()
        contents += [value for value in given if isinstance(value, pl.DataFrame)]
    if output.post_tree is not None:
        places = {name: Column(str(i)) for i, name in enumerate(output.aggregates)}
        contents.append(substitute(output.post_tree, places))
    return contents


def _steps(query: Query) -> tuple[PlanStep, ...]:
    relation = query.relation
    after = [*(facts for _, facts in relation.steps), relation.facts][1:]
    every = zip(relation.steps, after, limit_words(query), steps_of(relation), strict=True)
    steps = []
    for (step, before), facts, limits, in_full in every:
        stability = f"1-stable: {step.stability}" if step.is_one_stable else step.stability
        learned = (*limits, *learned_words(before, facts))
        steps.append(PlanStep(step.words(), stability, learned, in_full))
    return tuple(steps)
