"""A query: a frame, its groups, and the outputs that are requested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from dpframe.aggregates.bound import BoundAggregate, MeasurementKey
from dpframe.aggregates.request import QueryScope, Request
from dpframe.core.tree import Tree
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.mechanisms import Mechanism


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
    interval_optional
        Whether ``interval=`` leaves its interval out where there is none, instead of refusing.
    """

    name: str
    aggregates: Mapping[str, BoundAggregate]
    post: pl.Expr | None
    words: str
    post_tree: Tree | None = None
    interval_optional: bool = False

    @property
    def only(self) -> BoundAggregate | None:
        """The aggregate that it is, where nothing is computed from the result."""
        if self.post is not None or len(self.aggregates) != 1:
            return None
        return next(iter(self.aggregates.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Everything that is computed from one frame at once. Holds no data.

    Its groups may be replaced by others with keys of the same columns, as those that were found:
    nothing but the choice of the best groups, whose keys are listed, rests on which they are.

    Parameters
    ----------
    relation, groups, outputs
        The frame, its groups, and the results to release.
    """

    relation: Relation
    groups: Groups | None
    outputs: tuple[Output, ...]
    tells_dropped: bool = False
    """Whether its result has the share of the rows that its limits drop and its bounds clamp."""
    finds_limit: bool = False
    """Whether its last limit is found when it runs, and the release says about what it drops."""
    scope: QueryScope = field(default=None, repr=False)  # type: ignore[assignment]
    """Its frame and groups, with the results of the kernel's rules. A query that is made from
    another one shares them, if its frame and groups are the same.
    """

    def __post_init__(self) -> None:
        facts, known = self.relation.facts, self.scope
        if known is None or known.facts is not facts or known.groups is not self.groups:
            object.__setattr__(self, "scope", QueryScope(facts, self.groups))

    @property
    def aggregates(self) -> tuple[BoundAggregate, ...]:
        return tuple(a for output in self.outputs for a in output.aggregates.values())

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(aggregate.request for aggregate in self.aggregates)

    @property
    def depends_on_noise(self) -> bool:
        """Whether a result depends on how much noise its parts get."""
        return any(aggregate.depends_on_noise for aggregate in self.aggregates)

    def knowing(self, laws: Mapping[MeasurementKey, Mechanism] | None) -> Query:
        """The same query, where it is known what noise each part gets; None for none."""
        outputs = []
        for output in self.outputs:
            known = {
                p: a.knowing([] if laws is None else [laws[key] for key in a.keys])
                for p, a in output.aggregates.items()
            }
            outputs.append(replace(output, aggregates=known))
        return replace(self, outputs=tuple(outputs))

    @property
    def chooses_groups(self) -> bool:
        """Whether the result is groups, and nothing of the others comes out."""
        return any(aggregate.shape.chooses_groups for aggregate in self.aggregates)
