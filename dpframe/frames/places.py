"""Names for unnamed frames in plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from dpframe.frames.binary import Binary, chain_of, frames_of
from dpframe.frames.relation import Relation

__all__ = ["named_by_place"]


def named_by_place(relations: Sequence[Relation]) -> list[Relation]:
    """The frames of one plan, where those without a name are called by their place in it, in order
    of first use: "data", "data 2", and so on, with no name that another of its frames has.

    So it matters neither how often something was protected before nor what else the session
    protects: the same query has the same plan. Nothing but words follows from the names; frames
    are distinguished by their tokens.
    """
    frames = [frame for relation in relations for frame in frames_of(relation)]
    taken = {frame.name for frame in frames if not frame.by_place}
    names: dict[int, str] = {}
    for frame in frames:
        if frame.by_place and frame.token not in names:
            names[frame.token] = next(name for name in _names(frame.name) if name not in taken)
            taken.add(names[frame.token])
    made: dict[int, Relation] = {}  # equal relations stay one object
    return [made.setdefault(id(relation), _renamed(relation, names)) for relation in relations]


def _names(first: str) -> Iterator[str]:
    yield first
    yield from (f"{first} {number}" for number in count(2))


def _renamed(relation: Relation, names: dict[int, str]) -> Relation:
    """The same frame where all frames in it have other names; itself where they have these."""
    if all(frame.name == names.get(frame.token, frame.name) for frame in frames_of(relation)):
        return relation
    steps = tuple(
        (_with_names(step, names) if isinstance(step, Binary) else step, facts)
        for step, facts in relation.steps
    )
    return replace(relation, name=names.get(relation.token, relation.name), steps=steps)


def _with_names(step: Binary, names: dict[int, str]) -> Binary:
    other = _renamed(step.other, names)
    return replace(step, other=other, chain=chain_of(other))
