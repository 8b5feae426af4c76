"""Plans of several queries: each frame with its groups as the plan that it would be on its
own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import reduce
from typing import TypeVar

from dpframe.core.windows import Windows
from dpframe.plan.data import Fields, NoisyAggregate, PlanBlock, PlanData, PlanOutput, PlanQuery

P = TypeVar("P", bound=PlanData)

OF_BLOCK = tuple(
    field.name for field in fields(PlanBlock) if field.name not in ("releases", "outputs")
)
"""What a block has as a plan has it."""


def together(plans: Sequence[P], queries: Sequence[PlanQuery]) -> P:
    """One plan of those that share a cost; each of them has the whole cost."""
    blocks = tuple(
        PlanBlock(
            **{name: getattr(plan, name) for name in OF_BLOCK},
            releases=len(plan.releases),
            outputs=len(plan.outputs),
        )
        for plan in plans
    )
    releases, outputs = list[NoisyAggregate](), list[PlanOutput]()
    for plan in plans:
        drawn = _next_draw(releases)
        outputs += [_shift(output, len(releases)) for output in plan.outputs]
        releases += [replace(release, draw=release.draw + drawn) for release in plan.releases]
    return replace(
        plans[0],
        **whole_fields(blocks),
        releases=tuple(releases),
        outputs=tuple(outputs),
        blocks=blocks,
        queries=tuple(queries),
        windows=all_windows([plan.windows for plan in plans]),
        typical=tuple(sorted({one for plan in plans for one in plan.typical})),
        identifying=tuple(sorted({one for plan in plans for one in plan.identifying})),
    )


def all_windows(found: Sequence[Windows | None]) -> Windows | None:
    """What any of several plans, or of several tables, reads."""
    every = [windows for windows in found if windows is not None]
    return reduce(Windows.hull, every) if every else None


def whole_fields(blocks: Sequence[PlanBlock]) -> Fields:
    """The fields of a plan of several queries in place of a single query's fields for its frame
    and groups."""
    remarks = dict.fromkeys(remark for block in blocks for remark in block.remarks)
    return {
        "source": " and ".join(dict.fromkeys(block.source for block in blocks)),
        "unit": blocks[0].unit,
        "others": (),
        "declared": (),
        "steps": (),
        "grouping": None,
        "groups": None,
        "keys": None,
        "keys_digest": None,
        "grouped_by": None,
        "best_group": False,
        "remarks": tuple(remarks),
        "columns": None,
    }


def blocks_of(plan: P) -> Iterator[P]:
    """Each frame with its groups, and what is released of it, as a plan with the cost of all; of a
    plan of one query that plan.
    """
    if not plan.blocks:
        yield plan
        return
    first = last = 0
    for block in plan.blocks:
        releases = plan.releases[first : first + block.releases]
        drawn = _next_draw(plan.releases[:first])
        yield replace(
            plan,
            **{name: getattr(block, name) for name in OF_BLOCK},
            releases=tuple(replace(r, draw=r.draw - drawn) for r in releases),
            outputs=tuple(
                _shift(output, -first) for output in plan.outputs[last : last + block.outputs]
            ),
            blocks=(),
            queries=(),
        )
        first, last = first + block.releases, last + block.outputs


def after_search(plan: P) -> P:
    """For a plan in which a limit is found: the plan of everything but the search, with the cost
    of all."""
    _, *blocks = blocks_of(replace(plan, found=None))
    if len(plan.queries) == 2:  # the search and one query, which is a plan without queries
        return blocks[0]
    first = plan.blocks[0].outputs
    queries = [
        PlanQuery(query.block - 1, query.names, tuple(number - first for number in query.outputs))
        for query in plan.queries[1:]
    ]
    return together(blocks, queries)


def own_plan(plan: P, number: int) -> P:
    """The plan of one query, from 1, as it would be on its own at the cost of all; for showing
    its result.
    """
    query = plan.queries[number - 1]
    found = list(blocks_of(plan))[query.block]
    start = sum(block.outputs for block in plan.blocks[: query.block])
    names = {
        found.outputs[place - start].name: name
        for name, place in zip(query.names, query.outputs, strict=True)
    }

    def renamed(release: NoisyAggregate) -> NoisyAggregate:
        users = tuple(names[user] for user in release.users if user in names)
        return replace(release, name=names.get(release.name, release.name), users=users)

    return replace(
        found,
        releases=tuple(map(renamed, found.releases)),
        outputs=tuple(
            replace(found.outputs[place - start], name=name)
            for name, place in zip(query.names, query.outputs, strict=True)
        ),
    )


def distinct_names(names: Sequence[Sequence[str]]) -> list[list[str]]:
    """Names of the outputs of several queries by which they can be distinguished: their own where
    no other query has it.
    """
    counts = Counter(name for own in names for name in own)
    result = [
        [f"{name} of query {number}" if counts[name] > 1 else name for name in own]
        for number, own in enumerate(names, start=1)
    ]
    if len({name for own in result for name in own}) == sum(map(len, result)):
        return result
    # an output already has such a name; names that end in different numbers differ
    return [[f"{name} of query {n}" for name in own] for n, own in enumerate(names, start=1)]


def _next_draw(releases: Sequence[NoisyAggregate]) -> int:
    return 1 + max((release.draw for release in releases), default=-1)


def _shift(output: PlanOutput, by: int) -> PlanOutput:
    """An output whose releases have other numbers."""
    return replace(output, releases=tuple(number + by for number in output.releases))
