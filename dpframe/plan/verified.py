"""The kernel's check of the physical plan of a plan that is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache

from dpframe.errors import Unsound
from dpframe.frames.group_by_individual import ADDING, AGGREGATES
from dpframe.kernel import Plan, Refused, verify
from dpframe.kernel.plan import Call, Gather
from dpframe.rows.registry import BY_NAME


@lru_cache(maxsize=256)
def require_verified(physical: Plan) -> None:
    """Refuse a physical plan that states what does not follow from it, or has operations that
    dpframe does not have, by `Unsound`. A plan that was verified is remembered.
    """
    try:
        verify(physical)
    except Refused as refused:
        raise Unsound(
            f"the plan does not hold: {refused}",
            where="the physical plan",
            why="the kernel computes it again from the plan alone, and finds less privacy than the "
            "plan states, or no plan at all",
            remedy="do not approve or run it; plan the query again",
        ) from None
    others, aggregates, odd = Counter[str](), Counter[str](), list[str]()
    for node in nodes_of(physical):
        if isinstance(node, Call) and node.operation not in BY_NAME:
            others[node.operation] += 1
        elif isinstance(node, Gather):
            aggregates.update(call.operation for _, call in node.new)
            for (_, call), bounds in zip(node.new, node.bounds, strict=True):
                if (call.operation in ADDING) == (bounds is None):
                    odd.append(call.operation)
    for operation in others:
        if others[operation] > aggregates[operation] or operation not in AGGREGATES:
            raise Unsound(
                f"the plan does not hold: dpframe has no operation {operation!r}",
                where="the physical plan",
                why="the kernel believes of each operation that its result for a row follows from "
                "that row alone, which is sure of those that dpframe has",
                remedy="verify it by the version of dpframe that made it",
            )
    if odd:
        raise Unsound(
            f"the plan does not hold: {odd[0]!r} has no bounds, or needs none",
            where="the physical plan",
            why="sums and means of an individual's rows clamp values to bounds",
            remedy="plan the query again",
        )


def nodes_of(value: object) -> Iterator[object]:
    """All nodes of a part of a physical plan."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes_of(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in fields(value):
            yield from nodes_of(getattr(value, field.name))
