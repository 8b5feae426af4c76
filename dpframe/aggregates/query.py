"""A query: a frame, its groups, and the outputs that were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from dpframe.aggregates.bound import BoundAggregate
from dpframe.aggregates.request import QueryScope, Request
from dpframe.core.tree import Tree
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One output column (or table).

    Parameters
    ----------
    name
        Its name.
    aggregates
        What it is made of, by placeholder.
    post
        Post-processing over the placeholders, or None.
    words
        How it is computed, for the plan.
    post_tree
        The post-processing as a tree over the placeholders, where it is one; for intervals.
    """

    name: str
    aggregates: Mapping[str, BoundAggregate]
    post: pl.Expr | None
    words: str
    post_tree: Tree | None = None

    @property
    def only(self) -> BoundAggregate | None:
        """The aggregate that it is, where nothing is computed from the result."""
        if self.post is not None or len(self.aggregates) != 1:
            return None
        return next(iter(self.aggregates.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Everything that is asked of one frame at once. Holds no data.

    Its groups may be replaced by others with keys of the same columns, as those that were found:
    nothing but the choice of the best groups, whose keys are listed, rests on which they are.
    """

    relation: Relation
    groups: Groups | None
    outputs: tuple[Output, ...]

    @property
    def scope(self) -> QueryScope:
        return QueryScope(self.relation.facts, self.groups)

    @property
    def aggregates(self) -> tuple[BoundAggregate, ...]:
        return tuple(a for output in self.outputs for a in output.aggregates.values())

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(aggregate.request for aggregate in self.aggregates)

    @property
    def chooses_groups(self) -> bool:
        """Whether the result is groups, and nothing of the others comes out."""
        return any(aggregate.shape.chooses_groups for aggregate in self.aggregates)
