"""Queries of the same rows whose tables are margins of one another's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.reconstruction import can_be_related, related_outputs
from dpframe.errors import DPFrameError
from dpframe.frames.groups import Groups, ListedKeys, Margins, SetGroups, common_sets
from dpframe.infer.measurements import measurements_of
from dpframe.infer.several import Place, rows_of

__all__ = ["Related", "brought_together", "related_blocks"]


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """Queries that can be run as one, by grouping sets.

    Parameters
    ----------
    numbers
        Which queries of a plan they are, the one with the finest table first.
    query
        The query that is run, with the outputs of each, one after another.
    """

    numbers: tuple[int, ...]
    query: Query


def related_blocks(queries: Sequence[Query]) -> Iterator[list[Related]]:
    """Queries that are tables and margins of them, each in at most one list, in up to two ways.
    The first has all possible ones; the second only those that need one noisy table each, and so
    lose nothing that is drawn jointly.
    """
    able = [n for n, query in enumerate(queries) if can_be_related(query)]
    able.sort(key=lambda n: _fineness(queries[n].groups))
    single = [n for n in able if len({key for a in queries[n].aggregates for key in a.keys}) == 1]
    for numbers in [able, single] if len(single) < len(able) else [able]:
        found = _related(queries, numbers)
        if found:
            yield found


def _related(queries: Sequence[Query], able: Sequence[int]) -> list[Related]:
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
    made = []
    for numbers in members.values():
        if len(numbers) > 1:
            with suppress(DPFrameError):  # one individual may do more in the tables of all
                together = _together([queries[n] for n in numbers])
                made += [] if together is None else [Related(tuple(numbers), together)]
    return made


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


def brought_together(
    queries: Sequence[Query], places: Sequence[Place], related: Sequence[Related]
) -> tuple[tuple[Query, ...], tuple[Place, ...]]:
    """The queries that are run where related ones are run as one, and where outputs are then."""
    firsts = {min(one.numbers): one for one in related}
    moved = {number: one for one in related for number in one.numbers}
    made, blocks = list[Query](), dict[int, int]()
    for number, query in enumerate(queries):
        if number in firsts or number not in moved:
            blocks[number] = len(made)
            made.append(firsts[number].query if number in firsts else query)
    found = []
    for place in places:
        one = moved.get(place.block)
        if one is None:
            found.append(replace(place, block=blocks[place.block]))
            continue
        before = one.numbers[: one.numbers.index(place.block)]
        start = sum(len(queries[n].outputs) for n in before)
        outputs = tuple(start + number for number in place.outputs)
        own = queries[place.block]
        block = blocks[min(one.numbers)]
        found.append(replace(place, block=block, outputs=outputs, own=own))
    return tuple(made), tuple(found)


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
