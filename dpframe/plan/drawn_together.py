"""What must hold of what a plan draws jointly: one draw, at one cost, of what its noise
covers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from operator import le
from typing import Final

from dpframe.aggregates.reconstructed_error import RebuiltError
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.mechanisms import AdditiveMechanism, VectorMechanism
from dpframe.plan.data import PlanData
from dpframe.plan.joint_draw import JointDraw
from dpframe.plan.noisy_aggregate import NoisyAggregate
from dpframe.plan.pieces import PlanOutput

__all__ = ["of_draws"]

_SQUARES: Final = "sum_of_squares"
"""The last part of what sums of squares are called, see `dpframe.aggregates.mean`."""


def of_draws(plan: PlanData, verified: bool) -> Iterator[str]:
    """A joint draw is one draw, at one cost, of the numbers that it was made for. Where the kernel
    verifies its norms, these may be less than what is known of all rows here.
    """
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
        if release.joint is not None and not _is_of_draw(release, release.joint, many, verified):
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


def _is_of_draw(release: NoisyAggregate, joint: JointDraw, many: bool, verified: bool) -> bool:
    """Whether the noise of a vector covers it, and a number follows from it that one row moves by
    what is stated.
    """
    numbers = len(joint.widths)
    if not numbers or not len(joint.turned) == len(joint.factors) == numbers or joint.divisor < 1:
        return False
    if min(joint.widths) < 1 or any(
        not 0 <= t <= 2 * w for w, t in zip(joint.widths, joint.turned, strict=True)
    ):
        return False
    spread, law = release.spread, release.law
    if spread.changes and not many and not _is_twice(joint):
        return False
    if not _squares_are_squares(release, joint):
        return False
    if not spread.changes and (joint.turned != joint.widths or joint.conditions or joint.kept):
        return False
    known, exact = joint.sensitivity(spread, many), joint.exact
    is_less = exact.l0 <= known.l0 and all(map(le, _norms(exact), _norms(known)))
    if not _has_conditions(joint) or not (exact == known or (verified and is_less)):
        return False
    if isinstance(law, VectorMechanism):
        if not law.covers(joint.box(spread, many)):
            return False
    elif joint.arches or not isinstance(law, AdditiveMechanism):
        return False
    return _norms(release.exact) == _norms_of_number(joint, spread, many)


def _squares_are_squares(release: NoisyAggregate, joint: JointDraw) -> bool:
    """Whether a number of a draw that is declared a sum of squares is one."""
    used = [place for place, factor in enumerate(joint.factors) if factor]
    square = any(used == [arch[2]] for arch in joint.arches)
    return not joint.arches or square <= release.aggregate.endswith(_SQUARES)


def _is_twice(joint: JointDraw) -> bool:
    """Whether rows that stay move the sums and squares of arches twice as much as those that
    come, and counts as much, see `box_of`.
    """
    numbers = range(len(joint.widths))
    return all(
        place in numbers and joint.turned[place] == times * joint.widths[place]
        for arch in joint.arches
        for place, times in zip(arch, (1, 2, 2), strict=True)
    )


def _has_conditions(joint: JointDraw) -> bool:
    """Whether either each number or none has a condition, with a possible movement under it: at
    most that of a row that stays, and alone as much as that of one that comes.
    """
    numbers = {len(joint.conditions), len(joint.kept)}
    if numbers != {len(joint.widths)}:
        return numbers == {0}
    moves = zip(joint.kept, joint.turned, joint.conditions, strict=True)
    return all(0 <= kept <= turned and condition >= 0 for kept, turned, condition in moves)


def _norms_of_number(
    joint: JointDraw, spread: ContributionBounds, many: bool
) -> tuple[Fraction, Fraction, Fraction]:
    """L1, L2 squared and L infinity of a number that follows from a vector, one in each group."""
    rows, _, most = spread.tight
    reach, turned = joint.reach, joint.turned_reach
    if not spread.changes:
        return rows * reach, spread.l2_squared * reach**2, most * reach
    if not many:
        return rows * turned, (rows * turned) ** 2, rows * turned
    return 2 * rows * reach, rows**2 * max(2 * reach**2, turned**2), rows * turned


def _norms(exact: ExactSensitivity) -> tuple[Fraction, Fraction, Fraction]:
    return exact.l1, exact.l2_squared, exact.linf
