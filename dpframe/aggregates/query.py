"""A query: a frame, its groups, and the outputs that were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from dpframe.aggregates.request import Request, Scope
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
    requests
        The aggregates it is made of, by placeholder.
    post
        Post-processing over the placeholders, or None.
    words
        How it is computed, for the plan.
    post_tree
        The post-processing as a tree over the placeholders, where it is one; for intervals.
    """

    name: str
    requests: Mapping[str, Request]
    post: pl.Expr | None
    words: str
    post_tree: Tree | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Everything that is asked of one frame at once. Holds no data."""

    relation: Relation
    groups: Groups | None
    outputs: tuple[Output, ...]

    @property
    def scope(self) -> Scope:
        return Scope(self.relation.facts, self.groups)

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(r for output in self.outputs for r in output.requests.values())
