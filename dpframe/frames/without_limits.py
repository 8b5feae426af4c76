"""A frame as it would be if nothing limited what one individual adds: for simulations only."""

from __future__ import annotations

from dataclasses import replace

from dpframe.frames.binary import Binary
from dpframe.frames.explode import Explode
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_norm import LimitNorm
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.relation import Relation
from dpframe.frames.step import Step

_ALL = 2**31 - 1
_LIMITS = (LimitRows, LimitGroups, LimitNorm)


def without_limits(relation: Relation) -> Relation:
    """The same steps, but no limits on rows and groups, and all elements of lists.

    Facts do not change, except that individuals have no weights: only types and names may be read
    from them, and a frame without limits must never be planned with.
    """
    kept = tuple(
        (_freed(step), before) for step, before in relation.steps if not isinstance(step, _LIMITS)
    )
    return replace(relation, steps=kept, facts=replace(relation.facts, norm=None))


def has_limits(relation: Relation) -> bool:
    """Whether a limit may drop rows of it, or of a frame that it was joined with."""
    return any(
        isinstance(step, _LIMITS)
        or (isinstance(step, Explode) and step.max_length is not None)
        or (isinstance(step, Binary) and has_limits(step.other))
        for step, _ in relation.steps
    )


def _freed(step: Step) -> Step:
    match step:
        case Explode(column, int()):
            return Explode(column, _ALL)
        case Binary():
            return replace(step, other=without_limits(step.other))
        case _:
            return step
