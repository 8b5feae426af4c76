"""The last check of a plan before it is charged.

The planner searches and may make mistakes. What runs is the physical plan, which the kernel
verifies: it computes again how much one individual changes each number, and what the noise costs.
The exact tables are read from this plan, and numbers and noise are drawn from its nodes. So all
that is left to check here is that the plan which people read, approve and pay for says the same.
A mistake then refuses the query and leaks nothing.

Guarantee
---------
A release that passes does what its physical plan says. It has the cost that is charged, in the
windows that are charged, and the plan that people read does not contradict it.

Proof
-----
*Cost.* The kernel shows that the physical plan is private at its cost, and `disagreement` that this
is the cost of the plan that people read, which is charged. *Reading.* `disagreement` compares each
step, table, law and draw that people read with the physical plan. `contradiction` checks that what
they read holds together. *Windows.* A table reads no row outside of the windows that
`windows_read` finds for it; here these are found of the tables that run, and compared with those
that are charged. *Numbers.* How a result follows from noisy numbers costs no privacy. It is
checked all the same: a mistake there would be a wrong number in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpframe.aggregates.measurement import JointSums
from dpframe.errors import Unsound
from dpframe.frames.partition import windows_read
from dpframe.kernel import Refused, verify
from dpframe.lower.from_plan import tables_of_plan
from dpframe.optimise.physical import Translation, translate
from dpframe.optimise.prepared import Prepared, PreparedTogether
from dpframe.plan.agreement import disagreement
from dpframe.plan.consistency import contradiction
from dpframe.plan.document import earlier_fingerprint
from dpframe.plan.several import all_windows


def require_sound(prepared: PreparedTogether) -> Translation:
    """Refuse a plan that is not what will run. The physical plan, from which it runs. Raises
    `Unsound` before anything is charged.
    """
    translation = require_verified(prepared)
    wrong = next(_differences(prepared, translation), None)
    if wrong is not None:
        raise _unsound(f"the plan does not follow from the query: {wrong}")
    return translation


def require_verified(prepared: PreparedTogether) -> Translation:
    """The physical plan of what will run, which the kernel has verified. Raises `Unsound` when the
    kernel refuses it; nothing is drawn then.
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
        [(places.draw_tables, part.query.relation.salt) for places, part in parts],
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


def _differences(prepared: PreparedTogether, translation: Translation) -> Iterator[str]:
    """What of a plan that people read is not what will run."""
    plan = prepared.plan
    if plan.physical not in (None, translation.plan):
        yield "physical plan"
    for wrong in (contradiction(plan), disagreement(plan, translation.plan)):
        if wrong is not None:
            yield wrong
    if not all(map(_are_rebuilt, prepared.parts)):
        yield "rebuilt numbers"
    several = (translation, *translation.options)
    tables = [table for one in several for part in one.tables for table in part]
    if plan.windows != all_windows([windows_read(one.relation, one.groups) for one in tables]):
        yield "windows"
    choices = () if plan.found is None else plan.found.choices
    options = () if prepared.limits is None else prepared.limits.options
    if len(choices) != len(options):
        yield "limits"
    for choice, option, run in zip(choices, options, translation.options, strict=True):
        if choice.cost != option.plan.cost:
            yield f"limit {choice.n}"
        if choice.fingerprint != earlier_fingerprint(option.plan):
            yield f"limit {choice.n}"
        yield from (f"{wrong} under limit {choice.n}" for wrong in _differences(option, run))


def _are_rebuilt(part: Prepared) -> bool:
    """Whether each number that follows from noisy ones is the sum that it stands for. Where rows
    are weighed, a vector adds up weights, and a whole row has the weight `scope.parts`.
    """
    for draw in part.draws:
        if draw.rebuilt is None:
            continue
        vector = draw.measurement
        if not isinstance(vector, JointSums):
            return False
        for (measurement, _), rebuilt in zip(draw.keys, draw.rebuilt, strict=True):
            (table,) = measurement.tables
            factors = zip(rebuilt.factors, vector.matrix, strict=True)
            columns = zip(*([f * n for n in row] for f, row in factors), strict=True)
            sums = [part.query.scope.parts * sum(column) for column in columns]
            if sums != [rebuilt.divisor * (table == one) for one in vector.sums]:
                return False
    return True
