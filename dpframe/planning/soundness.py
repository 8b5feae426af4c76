"""The last check of a plan before it is charged: the query that runs is the one in the plan.

The planner searches and may make mistakes. This module searches nothing. It computes each fact on
which privacy rests again, from the query that will run, and compares it with the plan that is
charged and that reviewers approve. A mistake of the planner then refuses the query and leaks
nothing.

Guarantee
---------
A release that passes has the noise of the mechanisms in its plan. The noise is added to the tables
of its plan, computed from rows under the limits of its plan. The sensitivity is at least that of
these tables, and the cost of the plan covers these mechanisms.

Proof
-----
*Rows.* The facts of a frame are computed again, step by step from the protected frame, about which
nothing is known but its columns and its unit. So each limit that they rest on is among the steps
that run. *Tables.* The definition of each output, with
its clamps and grids, is written again and equals the plan's. *Sensitivity.* It is computed again
from these tables and facts. The kernel shows of numbers that are drawn as one vector that no row
leaves the box or hull of their noise. *Noise.*
The mechanism that draws is the one in the plan. `contradiction` checks that it costs what the plan
states, and that these costs add up to the charge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from dpframe.aggregates.joint_sums import JointSums
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import Selection
from dpframe.aggregates.request import QueryScope
from dpframe.core.windows import Windows
from dpframe.describe import contents_of
from dpframe.errors import Unsound
from dpframe.frames.binary import frames_of
from dpframe.frames.definition import definition, steps_of
from dpframe.frames.facts import protected_facts
from dpframe.frames.groups import digest_of_keys
from dpframe.frames.relation import Relation
from dpframe.frames.windows_read import windows_read
from dpframe.infer import PlannedMeasurement
from dpframe.kernel import Refused, verify
from dpframe.lower import tables_of_plan
from dpframe.plan.consistency import contradiction
from dpframe.plan.data import PlanData
from dpframe.plan.document import earlier_fingerprint
from dpframe.plan.noisy_aggregate import NoisyAggregate
from dpframe.plan.several import blocks_of
from dpframe.planning.physical import Translation, translate
from dpframe.planning.prepared import Prepared, PreparedTogether
from dpframe.release import Draw

__all__ = ["require_sound", "require_verified"]


def require_sound(prepared: PreparedTogether) -> Translation:
    """Refuse a plan that is not what will run. The physical plan, from which it runs.

    Raises
    ------
    Unsound
        Before anything is charged.
    """
    wrong = next(_differences(prepared), None)
    if wrong is not None:
        raise _unsound(f"the plan does not follow from the query: {wrong}")
    translation = require_verified(prepared)
    if prepared.plan.physical not in (None, translation.plan):
        raise _unsound("the plan does not follow from the query: physical plan")
    return translation


def require_verified(prepared: PreparedTogether) -> Translation:
    """The physical plan of what will run, which the kernel has verified.

    Raises
    ------
    Unsound
        When the kernel refuses it; nothing is drawn then.
    """
    try:
        translation = translate(prepared)
        verify(translation.plan)
        return _with_tables(prepared, translation)
    except Refused as refused:
        raise _unsound(f"the kernel refuses the plan: {refused}") from None


def _with_tables(prepared: PreparedTogether, translation: Translation) -> Translation:
    """The same with the tables that are read from the plan: these are what runs."""
    parts = list(zip(translation.parts, prepared.parts, strict=False))  # a search alone is a part
    read = tables_of_plan(
        translation.plan,
        translation.handles,
        [(places.tables_drawn, part.query.relation.salt) for places, part in parts],
    )
    options = () if prepared.limits is None else prepared.limits.options
    return replace(
        translation,
        parts=tuple(
            replace(places, tables={p: t for one in found for p, t in one.tables.items()})
            for (places, _), found in zip(parts, read, strict=True)
        ),
        options=tuple(map(_with_tables, options, translation.options)),
        tables=tuple(map(tuple, read)),
    )


def _unsound(why: str) -> Unsound:
    return Unsound(
        why, remedy="report this as an error of dpframe, with the plan; nothing was charged"
    )


def _differences(prepared: PreparedTogether) -> Iterator[str]:
    """What of a plan does not follow from what will run."""
    plan = prepared.plan
    if (wrong := contradiction(plan)) is not None:
        yield wrong
    read = [windows_read(query.relation, query.groups) for query in prepared.queries]
    every = [windows for windows in read if windows is not None]
    if plan.windows != (reduce(Windows.hull, every) if every else None):
        yield "windows"
    if prepared.limits is None:
        yield from _of_parts(prepared)
        return
    choices = () if plan.found is None else plan.found.choices
    options = prepared.limits.options
    if len(choices) != len(options):
        yield "limits"
    first, *_ = blocks_of(plan)
    yield from _of_part(prepared.parts[0], first)
    for choice, option in zip(choices, options, strict=True):
        if choice.cost != option.plan.cost or contradiction(option.plan) is not None:
            yield f"limit {choice.n}"
        if choice.fingerprint != earlier_fingerprint(option.plan):
            yield f"limit {choice.n}"
        yield from (f"{wrong} under limit {choice.n}" for wrong in _of_parts(option))


def _of_parts(prepared: PreparedTogether) -> Iterator[str]:
    blocks = list(blocks_of(prepared.plan))
    if len(blocks) != len(prepared.parts):
        yield "queries"
        return
    for part, block in zip(prepared.parts, blocks, strict=True):
        yield from _of_part(part, block)


def _of_part(part: Prepared, plan: PlanData) -> Iterator[str]:
    """Of one frame with its groups, and the block of the plan that is about it."""
    query, scope = part.query, part.query.scope
    relation, groups = query.relation, query.groups
    if any(not _follows(frame) for frame in frames_of(relation)) or scope.facts != relation.facts:
        yield "facts of the frame"
    if plan.unit != relation.facts.unit:
        yield "unit"
    if [step.definition for step in plan.steps] != steps_of(relation):
        yield "steps"
    listed = None if groups is None else digest_of_keys(groups)
    by = None if groups is None else definition(groups.by)
    if plan.keys_digest != listed or plan.grouped_by != by:
        yield "keys"
    stated = [output.definition for output in plan.outputs]
    if stated != [definition(contents_of(output)) for output in query.outputs]:
        yield "outputs"
    keys = {key for aggregate in query.aggregates for key in aggregate.keys}
    planned = {
        (use.part, use.mechanism) for use in part.parts if not isinstance(use.part, KeySelection)
    }
    if keys != planned or len(part.parts) != len(plan.releases):
        yield "releases"
        return
    drawn = {key: draw for draw in part.draws for key in draw.keys}
    if len(drawn) != len(part.parts):
        yield "draws"
        return
    numbers = dict[int, int]()
    for use, release in zip(part.parts, plan.releases, strict=True):
        draw = drawn.get((use.part, use.mechanism))
        if draw is None or numbers.setdefault(id(draw), release.draw) != release.draw:
            yield f"draws of {release.name}"
        else:
            yield from (f"{what} of {release.name}" for what in _of_draw(use, release, draw, part))
    if len({*numbers.values()}) != len(part.draws):
        yield "draws"


def _follows(relation: Relation) -> bool:
    """Whether the facts of a frame follow from what was protected and from its steps."""
    facts = relation.source
    if facts != protected_facts(facts.columns, facts.unit):
        return False
    for step, before in relation.steps:
        if before != facts:
            return False
        facts = step.facts(facts)
    return facts == relation.facts


def _of_draw(
    use: PlannedMeasurement, release: NoisyAggregate, draw: Draw, part: Prepared
) -> Iterator[str]:
    """The differences between one noisy vector and its release in the plan."""
    scope, vector = part.query.scope, draw.measurement
    if draw.law != release.law:
        yield "mechanism"
    if use.part.sensitivity(scope) != release.exact or use.part.step != release.step:
        yield "sensitivity"
    if use.part.spread(scope) != release.spread:
        yield "limits"
    if isinstance(use.part, Selection) and (
        use.part.score_range(scope) != release.scores or use.part.rounds != release.repeats
    ):
        yield "scores"
    if draw.rebuilt is None:
        if vector != use.part or release.joint is not None:
            yield "vector"
        return
    joint = release.joint
    if not isinstance(vector, JointSums) or joint is None:
        yield "vector"
        return
    about = joint.widths, joint.turned, joint.conditions, joint.kept, joint.arches
    if about != (vector.widths, vector.turned, vector.conditions, vector.kept, vector.arches):
        yield "widths"
    if vector.sensitivity(scope) != joint.exact:
        yield "sensitivity"
    if not {*use.part.tables} <= {*vector.sums}:
        yield "tables"
    if not _are_rebuilt(draw, vector, scope):
        yield "rebuilt numbers"


def _are_rebuilt(draw: Draw, vector: JointSums, scope: QueryScope) -> bool:
    """Whether each part follows from the numbers that are drawn as the sum that it is; where rows
    are weighed, the vector adds up weights, and a whole row has the weight `scope.parts`.
    """
    for (measurement, _), rebuilt in zip(draw.keys, draw.rebuilt or (), strict=True):
        sums = [
            sum(f * row[place] for f, row in zip(rebuilt.factors, vector.matrix, strict=True))
            for place in range(len(vector.sums))
        ]
        (table,) = measurement.tables
        if [scope.parts * s for s in sums] != [rebuilt.divisor * (table == t) for t in vector.sums]:
            return False
    return True
