"""The columns by which limits distinguish rows, where a release reads few columns."""

from __future__ import annotations

from dataclasses import replace

from dpframe.frames.binary import Binary, frames_of
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.relation import Relation
from dpframe.frames.step import Step

__all__ = ["limit_by_columns", "shares_choices"]


def shares_choices(relation: Relation) -> bool:
    """Whether several releases rest on one choice among the rows of an individual."""
    return any(frame.salt is not None for frame in frames_of(relation))


def limit_by_columns(relation: Relation, names: frozenset[str]) -> Relation:
    """The frame, whose limits distinguish rows by columns with these names alone. A release reads
    no others. Limits stay as they are where several releases rest on one choice of rows.
    """
    return relation if shares_choices(relation) else _limit_by_columns(relation, names)


def _limit_by_columns(relation: Relation, names: frozenset[str]) -> Relation:
    def changed(step: Step) -> Step:
        match step:
            case LimitRows():
                return step.by_columns(names)
            case Binary(other=other):
                return replace(step, other=_limit_by_columns(other, names))
        return step

    steps = tuple((changed(step), before) for step, before in relation.steps)
    return replace(relation, steps=steps)
