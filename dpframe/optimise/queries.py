"""Several queries as one plan: those of the same rows, and those whose tables are related."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.aggregates.aggregate import BoundAggregate, Output, Query
from dpframe.aggregates.reconstruction import can_be_related, related_outputs
from dpframe.errors import DPFrameError
from dpframe.frames.definition import Json, definition, steps_of
from dpframe.frames.groups import Groups, ListedKeys, Margins, SetGroups, common_sets
from dpframe.frames.public import digest
from dpframe.frames.relation import Relation, frames_of, name_by_place
from dpframe.optimise.measurements import measurements_of
from dpframe.plan.several import distinct_names

# -- a limit that is to be found when a query runs ------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class LimitSearch:
    """The limit that a query lacks, and the query under each that may be found."""

    step: str  # The verb that limits: ``"limit_rows"`` or ``"limit_groups"``
    by: tuple[str, ...]  # The columns that it is given
    # A histogram of how many rows or groups individuals have, whose bins end at the limits.
    search: Query
    limits: tuple[int, ...]  # At which the bins of the histogram end, in rising order; public
    # The query under each limit that may be found, and its companions: under all of `limits`, or
    # the first of them.
    queries: tuple[tuple[Query, ...], ...]
    # The cost of each of these relative to the others; None for the default.
    weights: tuple[Fraction, ...] | None = None


# -- several queries as one plan ------------------------------------------------------------------
# Those of the same rows and groups become one query, so that their outputs share what is drawn.
#
# The definitions of steps, never their words, decide whether two queries have the same rows,
# together with the identity of the protected frame. The sensitivity is inferred for the query that
# is run, so privacy does not rest on that decision.


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Several queries that are run in one plan."""

    queries: tuple[Query, ...]  # In the order of their results
    # The cost of each relative to the others; None for the default.
    weights: tuple[Fraction, ...] | None = None
    search: LimitSearch | None = None  # Where the first finds a limit for the others: how

    @classmethod
    def searching(cls, search: LimitSearch) -> Queries:
        """A query, and before it the search for its limit."""
        return cls((search.search, *search.queries[-1]), search=search)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the outputs of one of several queries are."""

    block: int  # The number of the query that was made of it and those of the same rows and groups
    outputs: tuple[int, ...]  # The numbers of its outputs there
    names: tuple[str, ...]  # What they are called in its own result
    own: Query | None = None  # The query by its own groups, where those that are run are others

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
        outputs = _weigh(query, None if asked.weights is None else asked.weights[number])
        outputs = tuple(_rename(o, name) for o, name in zip(outputs, apart[number], strict=True))
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
    """What queries that are run as one have in common."""

    # The protected frames, and all that is done to them, as text that is the same for the same.
    rows: str
    # The groups but for their keys, likewise, whether the result is groups, and whether the limit
    # is found.
    by: str
    groups: Groups | None  # With their keys

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
    relations = name_by_place([query.relation for query in queries])
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


def _weigh(query: Query, weight: Fraction | None) -> tuple[Output, ...]:
    """The outputs, with the query's weight divided among them as theirs say."""
    if weight is None:
        return query.outputs
    total = sum((a.request.weight for a in query.aggregates if a.uses), Fraction(0))
    if query.groups is not None and query.groups.discovered:
        total += max(request.weight for request in query.requests)  # of the choice of the groups

    def weigh(aggregate: BoundAggregate) -> BoundAggregate:
        request = aggregate.request
        return replace(aggregate, request=replace(request, weight=request.weight * weight / total))

    return tuple(
        replace(output, aggregates={p: weigh(a) for p, a in output.aggregates.items()})
        for output in query.outputs
    )


def _rename(output: Output, name: str) -> Output:
    if name == output.name:
        return output
    found = {
        p: replace(a, request=replace(a.request, name=name)) for p, a in output.aggregates.items()
    }
    return replace(output, name=name, aggregates=found)


# -- queries of the same rows whose tables are margins of one another's ---------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """Queries that can be run as one, by grouping sets."""

    # Which queries of a plan they are, the one with the finest table first.
    numbers: tuple[int, ...]
    query: Query  # The query that is run, with the outputs of each, one after another


def related_blocks(queries: Sequence[Query]) -> Iterator[list[Related]]:
    """Queries that are tables and margins of them, each in at most one list, in up to two ways.
    The first has all possible ones; the second only those that need one noisy table each, and so
    lose nothing that is drawn jointly.
    """
    able = [n for n, query in enumerate(queries) if can_be_related(query)]
    able.sort(key=lambda n: _fineness(queries[n].groups))
    single = [n for n in able if len({key for a in queries[n].aggregates for key in a.keys}) == 1]
    for numbers in [able, single] if len(single) < len(able) else [able]:
        found = _relate(queries, numbers)
        if found:
            yield found


def _relate(queries: Sequence[Query], able: Sequence[int]) -> list[Related]:
    keys = {n: found for n in able if (found := ListedKeys.of(queries[n].groups)) is not None}
    able = [n for n in able if n in keys]
    same: dict[str, tuple[Margins, list[int]]] = {}
    roots: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for number in able:
        relation = queries[number].relation
        rows = same.setdefault(rows_of(relation), (Margins(relation.facts.columns), []))
        parents = _finer(number, keys, roots, *rows)
        # of several tables the one with the fewest groups, which fewest add up to a margin
        parent = min(parents, key=lambda n: _size(queries[n].groups), default=None)
        roots[number] = number if parent is None else roots[parent]
        members.setdefault(roots[number], []).append(number)
    related = []
    for numbers in members.values():
        if len(numbers) > 1:
            with suppress(DPFrameError):  # one individual may do more in the tables of all
                together = _together([queries[n] for n in numbers])
                related += [] if together is None else [Related(tuple(numbers), together)]
    return related


def _finer(
    number: int,
    keys: Mapping[int, ListedKeys],
    roots: Mapping[int, int],
    margins: Margins,
    before: list[int],
) -> list[int]:
    """The tables of the same rows that this one is a margin of, and their margins; from now on it
    is one of them.
    """
    mine = keys[number]
    margins.add(mine)
    tables = [n for n in before if keys[n].groups is not None]
    found = [
        n
        for n in tables
        if margins.is_margin(mine, keys[n]) and margins.is_margin(mine, keys[roots[n]])
    ]
    before.append(number)
    return found


def bring_together(
    queries: Sequence[Query], places: Sequence[Place], related: Sequence[Related]
) -> tuple[tuple[Query, ...], tuple[Place, ...]]:
    """The queries that are run where related ones are run as one, and where outputs are then."""
    firsts = {min(one.numbers): one for one in related}
    moved = {number: one for one in related for number in one.numbers}
    queries_run, blocks = list[Query](), dict[int, int]()
    for number, query in enumerate(queries):
        if number in firsts or number not in moved:
            blocks[number] = len(queries_run)
            queries_run.append(firsts[number].query if number in firsts else query)
    places_run = []
    for place in places:
        one = moved.get(place.block)
        if one is None:
            places_run.append(replace(place, block=blocks[place.block]))
            continue
        before = one.numbers[: one.numbers.index(place.block)]
        start = sum(len(queries[n].outputs) for n in before)
        outputs = tuple(start + number for number in place.outputs)
        own = queries[place.block]
        block = blocks[min(one.numbers)]
        places_run.append(replace(place, block=block, outputs=outputs, own=own))
    return tuple(queries_run), tuple(places_run)


def _together(queries: Sequence[Query]) -> Query | None:
    """One query that has the outputs of all; None where it would have too many groups."""
    first = queries[0]
    common = common_sets([query.groups for query in queries], first.relation.facts.columns)
    if common is None:
        return None
    whole = replace(first, groups=common.groups, outputs=())
    outputs = related_outputs(queries, common, whole.scope)
    whole = replace(whole, outputs=tuple(output for found in outputs for output in found))
    measurements_of(whole)
    return whole


def _fineness(groups: Groups | None) -> tuple[int, bool]:
    """Finer tables first, and grouping sets before what may be one of them."""
    return (0 if groups is None else -len(groups.by), not isinstance(groups, SetGroups))


def _size(groups: Groups | None) -> int:
    return 1 if groups is None else groups.size
