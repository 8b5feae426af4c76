"""What must hold of what a plan draws jointly: one draw, at one cost, of what its noise
covers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from dpframe.aggregates.reconstructed_error import RebuiltError
from dpframe.mechanisms import AdditiveMechanism, VectorMechanism
from dpframe.plan.data import PlanData
from dpframe.plan.joint_draw import JointDraw
from dpframe.plan.noisy_aggregate import NoisyAggregate
from dpframe.plan.pieces import PlanOutput


def of_draws(plan: PlanData) -> Iterator[str]:
    """A joint draw is one draw, at one cost, whose noise covers what is stated of rows."""
    firsts: dict[int, NoisyAggregate] = {}
    grouped = plan.grouping is not None and (plan.groups is None or plan.groups > 1)
    margins = _margins(plan)
    for i, release in enumerate(plan.releases):
        first = firsts.setdefault(release.draw, release)
        if release.draw not in (len(firsts) - 1, first.draw) or not 0 <= first.draw < len(firsts):
            yield f"releases[{i}].draw"
        if first is not release and (first.joint is None or _draw_key(first) != _draw_key(release)):
            yield f"releases[{i}].draw"
        vectors = margins.get(i)
        if release.joint is not None and vectors is not None and vectors != {release.entries}:
            yield f"releases[{i}].entries"
        many = grouped if vectors is None else max(vectors) > 1
        if release.joint is not None and not _is_of_draw(release, release.joint, many):
            yield f"releases[{i}].joint"


def _margins(plan: PlanData) -> dict[int, set[int]]:
    """How many groups the tables have that grouping sets are rebuilt from, as outputs say that use
    them, by the numbers of releases.
    """
    result: dict[int, set[int]] = {}
    for output in plan.outputs:
        rule = output.error
        rebuilt = isinstance(rule, RebuiltError) and len(output.releases) == rule.parts
        sizes = rule.table_sizes if isinstance(rule, RebuiltError) else _margin_sizes(output)
        if rebuilt or len(sizes) == len(output.releases):
            for number, size in zip(output.releases, sizes, strict=True):
                result.setdefault(number, set()).add(size)
    return result


def _margin_sizes(output: PlanOutput) -> list[int]:
    """The same of an output that says no error, by the margins that its definition begins with."""
    result = []
    for part in output.definition if isinstance(output.definition, list) else []:
        if not isinstance(part, dict) or part.get("type") != "Margin":
            break
        sizes, kept = part.get("sizes"), part.get("kept")
        if not isinstance(sizes, list) or not isinstance(kept, list):
            return []
        whole = [size for size in sizes if type(size) is int]
        places = [place for place in kept if type(place) is int and 0 <= place < len(whole)]
        if len(whole) != len(sizes) or len(places) != len(kept):
            return []
        result.append(math.prod(whole[place] for place in places))
    return result


def _draw_key(release: NoisyAggregate) -> tuple[object, ...]:
    """All that is of the draw, and not of one of its numbers."""
    joint = release.joint
    vector = None if joint is None else replace(joint, factors=(), divisor=1)
    return release.law, release.cost, release.spread, release.repeats, release.entries, vector


def _is_of_draw(release: NoisyAggregate, joint: JointDraw, many: bool) -> bool:
    """Whether the noise of a vector covers it."""
    numbers, law = len(joint.widths), release.law
    if not numbers or not len(joint.turned) == len(joint.factors) == numbers or joint.divisor < 1:
        return False
    if isinstance(law, VectorMechanism):
        return law.covers(joint.box(release.spread, many))
    return not joint.arches and isinstance(law, AdditiveMechanism)
