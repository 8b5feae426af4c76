"""Worst-case neighbours of a plan: searched for among made-up people, with no data at hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import CellCounts, Responses, Selection, Table
from dpframe.aggregates.quantile import (
    ChosenTogether,
    QuantileChoice,
    QuantilesAtOnce,
    QuantileTree,
)
from dpframe.aggregates.statistics import RowCount
from dpframe.audit.evidence import claims_of, expected_share
from dpframe.audit.likelihood import (
    Reach,
    choices_apart,
    is_noise_alone,
    reach_of,
    stated_loss,
)
from dpframe.audit.people import Frames, People, Person, Picks, together
from dpframe.core.budget import GDP
from dpframe.core.tree import Call, Tree
from dpframe.frames.relation import Relation
from dpframe.frames.row_steps import Filter
from dpframe.lower import Execution, find_keys
from dpframe.rows.logic import And
from dpframe.simulate.runs import Exact, ExactTables

# The conditions that rows have to meet before a query counts them, one by one.

_ROWS = Table(RowCount())


class Conditions:
    """All filters of a query, condition by condition, and its groups.

    A row that meets one condition more is nearer to being counted, which the query itself does
    not show as long as another is not met.

    Parameters
    ----------
    query
        The query.
    """

    def __init__(self, query: Query) -> None:
        self._groups = query.groups
        self._alone = tuple(_alone(query.relation))
        self._free = _without_filters(query.relation)

    def met(self, frames: Frames) -> int:
        """How many are met by any row."""
        found = sum(_rows(relation, frames) > 0 for relation in self._alone)
        if self._groups is None or self._groups.discovered:
            return found
        counted = Execution.of_public(frames).run(self._free, self._groups, [_ROWS])
        return found + int(bool(counted[_ROWS].values.any()))


def _rows(relation: Relation, frames: Frames) -> int:
    counted = Execution.of_public(frames).run(relation, None, [_ROWS])
    return int(counted[_ROWS].values.sum())


def _alone(relation: Relation) -> Iterator[Relation]:
    """The frame with each of the conditions alone, at its place."""
    before = _start(relation)
    for step, _ in relation.steps:
        if not isinstance(step, Filter):
            before = before.then(step)
            continue
        for predicate in step.predicates:
            for condition in _conjuncts(predicate):
                yield before.then(Filter((condition,)))


def _without_filters(relation: Relation) -> Relation:
    free = _start(relation)
    for step, _ in relation.steps:
        free = free if isinstance(step, Filter) else free.then(step)
    return free


def _start(relation: Relation) -> Relation:
    return replace(relation, steps=(), facts=relation.source)


def _conjuncts(predicate: Tree) -> Iterator[Tree]:
    if isinstance(predicate, Call) and isinstance(predicate.operation, And):
        for arg in predicate.args:
            yield from _conjuncts(arg)
    else:
        yield predicate


# The other people next to whom an individual is easiest to distinguish, for several quantiles
# chosen jointly, at once or nested.
#
# The movement of scores is not enough for such a choice: what it reveals depends on which tuples
# are about as likely as others. Its law is known, so frames are ranked by what it would prove, and
# none is drawn.

Counting = Callable[[Sequence[Person]], ExactTables]
_TRIES_OUTSIDE = 480
"""Over how many quantiles there are: laws of more take longer."""
_TRIES_INSIDE = 2400
"""The same of quantiles one inside the other, whose laws take less."""
_RUNS = 10_000
"""Frames are ranked by what this many runs prove."""
_MOST = 60
"""The most people of one kind."""
_FEW = 10
"""The same of quantiles one inside the other: points with many rows are known less well."""
_KEPT = 3


@dataclass(frozen=True, slots=True)
class Crowd:
    """An individual by its number, and how many others of each kind there are."""

    individual: int
    others: tuple[int, ...]


def at_once(prepared: pipeline.Prepared) -> list[QuantilesAtOnce | QuantileTree]:
    """The choices of several quantiles of a plan."""
    parts = (one.measurement for one in prepared.draws)
    return [part for part in parts if isinstance(part, (QuantilesAtOnce, QuantileTree))]


def rows_in(prepared: pipeline.Prepared, counted: ExactTables) -> tuple[tuple[int, ...], ...]:
    """Where rows are for these choices, and how many."""
    found = []
    for part in at_once(prepared):
        (one,) = counted.of(part)
        found += [tuple(e.tolist()) for e in (one.groups, one.cells, one.values) if e is not None]
    return tuple(found)


def expected_of(prepared: pipeline.Prepared, one: ExactTables, other: ExactTables) -> float:
    """About how much of a plan's claim its choices of several quantiles prove, by their laws."""
    claims = claims_of(prepared.plan)
    shares = (
        expected_share(*apart.masses, _RUNS, claims)
        for _, _, apart in choices_apart(prepared, (one, other))
    )
    return max(shares, default=0.0)


def worst_crowds(
    prepared: pipeline.Prepared,  # The plan
    # Individuals, and who may be there instead of each, under change-one adjacency.
    individuals: Sequence[tuple[Person, Person | None]],
    kinds: Sequence[Person],  # Others that may be there
    counted: Counting,  # The exact tables of some people
) -> list[Crowd]:
    """The crowds that reveal most, the best one first.

    Exact tables are taken to add up, which they do but for limits: frames that come out are counted
    again, as any other.
    """
    picks = Picks()
    tables = [counted([kind]) for kind in kinds]
    sides = [
        (counted([person]), counted([] if instead is None else [instead]))
        for person, instead in individuals
    ]
    known: dict[Crowd, float] = {}

    def tried(crowd: Crowd) -> None:
        if crowd not in known and any(crowd.others):
            beside = [(table, count) for table, count in zip(tables, crowd.others, strict=True)]
            pair = (_added([(side, 1), *beside]) for side in sides[crowd.individual])
            known[crowd] = expected_of(prepared, *pair)

    inside = all(isinstance(one, QuantileTree) for one in at_once(prepared))
    each = _TRIES_INSIDE if inside else _TRIES_OUTSIDE
    tries, most = each // max(one.picks for one in at_once(prepared)), _FEW if inside else _MOST
    for number in range(tries):
        if number < tries // 4 or not known:
            some = tuple(picks.below(most) * (picks.below(3) > 0) for _ in kinds)
            tried(Crowd(picks.below(len(sides)), some))
        else:
            few = sorted(known, key=lambda crowd: known[crowd], reverse=True)[:_KEPT]
            tried(_near(picks, few[number % len(few)], len(sides), most))
    return sorted(known, key=lambda crowd: known[crowd], reverse=True)[:_KEPT]


def _near(picks: Picks, crowd: Crowd, individuals: int, most: int) -> Crowd:
    """Another individual, or another number of one or two kinds."""
    if not picks.below(6):
        return replace(crowd, individual=picks.below(individuals))
    others = list(crowd.others)
    for _ in range(1 + picks.below(2)):
        place = picks.below(len(others))
        change = picks.below(13) - 6
        others[place] = picks.below(most) if not change else max(0, others[place] + change)
    return Crowd(crowd.individual, tuple(others))


def _added(tables: Sequence[tuple[ExactTables, int]]) -> ExactTables:
    """Sums of exact tables, each this many times."""
    found: dict[int, CellCounts] = {}
    for table, first in tables[0][0].tables.items():
        if first.groups is None or first.cells is None:
            found[table] = first
            continue
        some = [(each.tables[table], times) for each, times in tables if times]
        groups = np.concatenate([one.groups for one, _ in some if one.groups is not None])
        cells = np.concatenate([one.cells for one, _ in some if one.cells is not None])
        values = np.concatenate([one.values * times for one, times in some])
        found[table] = CellCounts.of_cells(groups, cells, values, first.size)
    return replace(tables[0][0], tables=found)


_SALT = 1
"""No secret is needed where nothing is private."""
_TRIES = 120
_CLIMBS, _MOST_CLIMBS = 160, 640
_SHOWN = 5
_MANY, _KINDS = 24, 8
"""This many pairs and kinds of others are tried, where laws of choices are known."""
_BEST = 3
"""This many pairs are kept, whose noise decides."""
_ELSEWHERE = 4
"""This many kinds of rows in another window are tried with each of these."""
_OTHERS = (0, 1, 3, 12, 30, 90)
"""How many other people there are."""
_OF_REACH = 1e-3
"""The weight of a part's reach relative to the loss."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Two frames that differ in one individual, and what the plan's tables are on each."""

    query: Query  # The query, with the groups that either frame has
    # The exact tables of the frame with the individual, and of that without (or with other values).
    # Limits choose the same rows of everybody else on both: the guarantee holds for each choice.
    counted: tuple[ExactTables, ExactTables]
    reach: tuple[Reach, ...]  # How far each part moves
    moved: float  # How far all that is drawn does, in one number
    words: str  # Who differs, and who is there as well


@dataclass(frozen=True, slots=True)
class _Pair:
    """An individual, and another who takes the place under change-one adjacency."""

    person: Person
    instead: Person | None
    elsewhere: Person | None = None
    """What the individual has in another window of time, in both frames."""


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """A plan, its exact tables, and the people that are made up for it."""

    prepared: pipeline.Prepared
    exact: Exact
    people: People


def worst_neighbours(prepared: pipeline.Prepared) -> list[Neighbours]:
    """Pairs of frames with the largest movement of a plan's parts that a search finds, the
    largest first, each with several numbers of other people. Where an individual is a person in a
    window of time, some of them have rows in another window too, in both frames.

    The search tries values from the query and their neighbours, then changes the best a little
    again and again. It is the same search each time.
    """
    people = People(prepared.query)
    search = _Search(prepared, Exact.of(prepared, _SALT), people)
    conditions = Conditions(prepared.query)
    found: dict[str, tuple[float, _Pair]] = {}

    def tried(pair: _Pair) -> None:
        if repr(pair) not in found:
            moved = _placed(search, pair, ()).moved
            if not moved:  # then the number of conditions that are met ranks the pairs
                moved = conditions.met(people.frames([pair.person])) / 1000
            found[repr(pair)] = (moved, pair)

    def best(most: int) -> list[_Pair]:
        ordered = sorted(found.values(), key=lambda item: item[0], reverse=True)
        return [pair for _, pair in ordered[:most]]

    for _ in range(_TRIES):
        person = people.anybody()
        tried(_Pair(person, _like(people, person) if people.changes else None))
    for step in range(_MOST_CLIMBS):
        if step >= _CLIMBS and _is_worst(prepared, max(moved for moved, _ in found.values())):
            break
        few = best(_BEST + 2)
        tried(_neighbour_of(people, few[step % len(few)], step))
    chosen = _with_elsewhere(search, best(_BEST))
    if is_noise_alone(prepared):
        made = [_placed(search, pair, ()) for pair in chosen]
        return sorted(made, key=lambda n: n.moved, reverse=True)
    if at_once(prepared):
        made = _in_crowds(search, best(_MANY))
        return sorted(made, key=lambda n: expected_of(prepared, *n.counted), reverse=True)
    others = [n for n in _OTHERS if n + 2 <= people.names()]
    ranks = any(isinstance(use.part, (QuantileChoice, ChosenTogether)) for use in prepared.parts)
    made = [
        _placed(search, pair, beside)
        for pair in chosen
        for number in others
        for beside in _besides(people, pair, number, three=ranks)
    ]
    return sorted(made, key=lambda n: n.moved, reverse=True)


def _in_crowds(search: _Search, pairs: Sequence[_Pair]) -> list[Neighbours]:
    """Pairs together with the people next to whom they are distinguished best."""
    prepared, people = search.prepared, search.people
    kinds = [pair.person for pair in pairs]
    kinds += [pair.instead for pair in pairs if pair.instead is not None]
    kinds = list({repr(kind): kind for kind in kinds}.values())
    kinds = sorted(kinds, key=lambda kind: max(map(len, kind.rows.values())))

    def counted(some: Sequence[Person]) -> ExactTables:
        return search.exact.count(people.frames(some))

    different = {rows_in(prepared, counted([kind])): kind for kind in reversed(kinds)}
    kinds = list(reversed(different.values()))[:_KINDS]
    individuals = [(pair.person, pair.instead) for pair in pairs]
    found = worst_crowds(prepared, individuals, kinds, counted)
    made = []
    for crowd in found:
        named = zip(kinds, crowd.others, strict=True)
        beside = tuple(kind for kind, number in named for _ in range(number))
        beside = beside[: max(0, people.names() - 2)]
        made.append(_placed(search, pairs[crowd.individual], beside))
    return made


def _with_elsewhere(search: _Search, pairs: Sequence[_Pair]) -> list[_Pair]:
    """The same, and where there are windows each once more with rows in another one: of some that
    are tried those which move most.
    """
    found = list(pairs)
    for pair in pairs:
        tried = [search.people.elsewhere(pair.person) for _ in range(_ELSEWHERE)]
        made = [replace(pair, elsewhere=rows) for rows in tried if rows is not None]
        if made:
            found.append(max(made, key=lambda one: _placed(search, one, ()).moved))
    return found


def _is_worst(prepared: pipeline.Prepared, moved: float) -> bool:
    """Whether none could be found that moves more."""
    used = sum(not use.sensitivity.is_zero for use in prepared.parts)
    whole, cost = 2.0 * used * _OF_REACH, prepared.plan.cost
    if is_noise_alone(prepared):  # (epsilon, delta) does not bound how far noise alone is moved
        whole += math.inf if cost.slack else float(cost.main) / (2 if isinstance(cost, GDP) else 1)
    else:
        whole += used
    return moved >= 0.98 * whole


def _neighbour_of(people: People, pair: _Pair, step: int) -> _Pair:
    if pair.instead is not None and step % 2:
        return replace(pair, instead=_fitting(people.changed(pair.instead), pair.person))
    person = people.changed(pair.person)
    return _Pair(person, None if pair.instead is None else _fitting(pair.instead, person))


def _like(people: People, person: Person) -> Person:
    return _fitting(people.anybody(), person)


def _fitting(person: Person, model: Person) -> Person:
    """The individual with as many rows as another, if the number of rows is public."""
    return Person(
        {
            token: tuple((rows * len(model.rows[token]))[: len(model.rows[token])])
            for token, rows in person.rows.items()
        }
    )


def _besides(people: People, pair: _Pair, number: int, *, three: bool) -> list[tuple[Person, ...]]:
    """Other people: like the individual, unlike, some of both, or all different. Also of three
    kinds, most of them of one: a rank among these moves scores on both of its sides.
    """
    if not number:
        return [()]
    unlike = pair.instead or people.changed(people.changed(pair.person))
    half = (pair.person,) * (number // 2) + (unlike,) * (number - number // 2)
    different = tuple(people.anybody() for _ in range(number))
    found = [(pair.person,) * number, (unlike,) * number, half, different]
    if three:
        for most in (0, 1, 2, 2, 2):
            kinds = (pair.person, unlike, people.anybody())
            few = (kind for place, kind in enumerate(kinds) if place != most)
            rest = tuple(kind for kind in few for _ in range(number // 6))
            found.append((*rest, *(kinds[most],) * (number - len(rest))))
    return found


def _placed(search: _Search, pair: _Pair, beside: tuple[Person, ...]) -> Neighbours:
    """Both frames, the individual first, and what the parts are on each. Limits keep the same rows
    each time.
    """
    prepared, people = search.prepared, search.people
    nobody = Person(dict.fromkeys(pair.person.rows, ()))
    one = people.frames([together(pair.person, pair.elsewhere), *beside])
    other = people.frames([together(pair.instead or nobody, pair.elsewhere), *beside])
    query = _with_groups(prepared.query, one, other)
    keys = None if query.groups is None else query.groups.keys
    counted = [search.exact.count(frames, keys) for frames in (one, other)]
    reach = tuple(reach_of(prepared.parts, query, *counted))
    moved = _how_far(prepared, reach, *counted)
    return Neighbours(query, (counted[0], counted[1]), reach, moved, _words(people, pair, beside))


def _with_groups(query: Query, one: Frames, other: Frames) -> Query:
    """The query with every group of either frame, where groups are to be found."""
    if query.groups is None or not query.groups.discovered:
        return query
    found = [find_keys(query.relation, query.groups, frames) for frames in (one, other)]
    keys = pl.concat(found).unique(maintain_order=True)
    return replace(query, groups=query.groups.with_keys(keys))


def _how_far(
    prepared: pipeline.Prepared, reach: Sequence[Reach], one: ExactTables, other: ExactTables
) -> float:
    """One number for the movement of all draws by a pair: the loss by the stated noise, and the
    shares of choices. Among pairs with the same loss those that move more parts come first.
    """
    used = [use for use in prepared.parts if not use.sensitivity.is_zero]
    found = stated_loss(prepared, one, other)
    for use, far in zip(used, reach, strict=True):
        found += _OF_REACH * (far.l1 + far.l2)
        if isinstance(use.part, (Selection, Responses)):
            found += far.l1
    return found


def _words(people: People, pair: _Pair, beside: Sequence[Person]) -> str:
    lines = ["One individual, who is in one frame and not in the other:"]
    if pair.instead is not None:
        lines = ["One individual, with other values in the other frame:"]
    lines += [f"  {line}" for line in people.words(pair.person).splitlines()]
    if pair.instead is not None:
        lines += [f"  {line}" for line in people.words(pair.instead).splitlines()]
    if pair.elsewhere is not None:
        lines.append("It has in another window, in both frames:")
        lines += [f"  {line}" for line in people.words(pair.elsewhere).splitlines()]
    if not beside:
        return "\n".join([*lines, "There are no other individuals."])
    lines.append(f"{len(beside)} others, in both frames, such as:")
    different = list({repr(p): p for p in beside}.values())
    for person in different[:_SHOWN]:
        lines += [f"  {line}" for line in people.words(person).splitlines()]
    if len(different) > _SHOWN:
        lines.append("  ...")
    return "\n".join(lines)
