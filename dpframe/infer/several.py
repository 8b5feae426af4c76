"""Several queries as one plan: those of the same rows and groups become one query, so that their
outputs share what is drawn.

The definitions of steps, never their words, decide whether two queries have the same rows,
together with the identity of the protected frame. The sensitivity is inferred for the query that
is run, so privacy does not rest on that decision.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.aggregates.aggregate import BoundAggregate, Output, Query
from dpframe.frames.definition import Json, definition, steps_of
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.public import digest
from dpframe.frames.relation import Relation, frames_of, named_by_place
from dpframe.infer.limit_search import LimitSearch
from dpframe.plan.several import distinct_names

__all__ = ["Kind", "Place", "Queries", "merge", "queries_by_place", "rows_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Several queries that are run in one plan.

    Parameters
    ----------
    queries
        In the order of their results.
    weights
        The cost of each relative to the others; None for the default.
    search
        Where the first finds a limit for the others: how.
    """

    queries: tuple[Query, ...]
    weights: tuple[Fraction, ...] | None = None
    search: LimitSearch | None = None

    @classmethod
    def searching(cls, search: LimitSearch) -> Queries:
        """A query, and before it the search for its limit."""
        return cls((search.search, *search.queries[-1]), search=search)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the outputs of one of several queries are.

    Parameters
    ----------
    block
        The number of the query that was made of it and those of the same rows and groups.
    outputs
        The numbers of its outputs there.
    names
        What they are called in its own result.
    own
        The query by its own groups, where those that are run are others.
    """

    block: int
    outputs: tuple[int, ...]
    names: tuple[str, ...]
    own: Query | None = None

    @classmethod
    def whole(cls, query: Query) -> Place:
        """The place of a query that is run unchanged."""
        return cls(0, tuple(range(len(query.outputs))), tuple(o.name for o in query.outputs))

    def of(self, block: Query) -> Query:
        """The original query of the one that is run."""
        outputs = tuple(
            replace(block.outputs[number], name=name)
            for number, name in zip(self.outputs, self.names, strict=True)
        )
        return replace(block if self.own is None else self.own, outputs=outputs)


def merge(asked: Queries) -> tuple[tuple[Query, ...], tuple[Place, ...]]:
    """The queries that are run, and the places of the outputs of the original queries.

    An output whose name is in several queries is called after its query there.
    """
    names = [[output.name for output in query.outputs] for query in asked.queries]
    apart = distinct_names(names)
    blocks: list[Query] = []
    alike = _Alike()
    places = []
    for number, query in enumerate(asked.queries):
        outputs = _weighted(query, None if asked.weights is None else asked.weights[number])
        outputs = tuple(_named(o, name) for o, name in zip(outputs, apart[number], strict=True))
        at = alike.number(Kind.of(query))
        if at == len(blocks):
            blocks.append(replace(query, outputs=()))
        before = len(blocks[at].outputs)
        blocks[at] = replace(blocks[at], outputs=(*blocks[at].outputs, *outputs))
        numbers = tuple(range(before, before + len(outputs)))
        places.append(Place(at, numbers, tuple(names[number])))
    return tuple(blocks), tuple(places)


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What queries that are run as one have in common.

    Parameters
    ----------
    rows
        The protected frames, and all that is done to them, as text that is the same for the same.
    by
        The groups but for their keys, likewise, whether the result is groups, and whether the limit
        is found.
    groups
        With their keys.
    """

    rows: str
    by: str
    groups: Groups | None

    @classmethod
    def of(cls, query: Query) -> Kind:
        groups = query.groups
        by: list[Json] = [query.chooses_groups, query.finds_limit]
        if groups is not None:
            sets = definition(groups.sets) if isinstance(groups, SetGroups) else None
            by += [definition(groups.by), list(groups.names), sets, groups.discovered]
        return cls(rows_of(query.relation), json.dumps(by), groups)

    def has_same_keys(self, other: Kind) -> bool:
        """Whether the keys of both are the same, where both have groups or neither has."""
        one, two = self.groups, other.groups
        if one is None or two is None:
            return one is two
        return one.keys.schema == two.keys.schema and one.keys.equals(two.keys)


def queries_by_place(queries: Sequence[Query]) -> tuple[Query, ...]:
    """The queries of one plan; unnamed frames are called by their place in it."""
    relations = named_by_place([query.relation for query in queries])
    return tuple(replace(q, relation=named) for q, named in zip(queries, relations, strict=True))


def rows_of(relation: Relation) -> str:
    """The protected frames, and all that is done to them, as text that is the same for the same."""
    tokens: list[Json] = [frame.token for frame in frames_of(relation)]
    return json.dumps([tokens, relation.salt, list(steps_of(relation))])


class _Alike:
    """Numbers queries of the same rows and groups alike, in linear time. A query is compared with
    the first that differs in nothing but its keys; if these differ, it is looked up by a digest
    of them.
    """

    def __init__(self) -> None:
        self._numbers: dict[Kind, int] = {}
        self._first: dict[tuple[str, str], Kind] = {}
        self._others: dict[tuple[str, str, str], Kind] = {}

    def number(self, kind: Kind) -> int:
        """The number of the first query of the same kind, or the next free number."""
        asked = kind.rows, kind.by
        first = self._first.setdefault(asked, kind)
        if first is not kind and not kind.has_same_keys(first):
            assert kind.groups is not None, "all that differs are keys"
            first = self._others.setdefault((*asked, digest(kind.groups.keys)), kind)
        return self._numbers.setdefault(first, len(self._numbers))


def _weighted(query: Query, weight: Fraction | None) -> tuple[Output, ...]:
    """The outputs, with the query's weight divided among them as theirs say."""
    if weight is None:
        return query.outputs
    whole = sum((a.request.weight for a in query.aggregates if a.uses), Fraction(0))
    if query.groups is not None and query.groups.discovered:
        whole += max(request.weight for request in query.requests)  # of the choice of the groups

    def changed(aggregate: BoundAggregate) -> BoundAggregate:
        request = aggregate.request
        return replace(aggregate, request=replace(request, weight=request.weight * weight / whole))

    return tuple(
        replace(output, aggregates={p: changed(a) for p, a in output.aggregates.items()})
        for output in query.outputs
    )


def _named(output: Output, name: str) -> Output:
    if name == output.name:
        return output
    found = {
        p: replace(a, request=replace(a.request, name=name)) for p, a in output.aggregates.items()
    }
    return replace(output, name=name, aggregates=found)
