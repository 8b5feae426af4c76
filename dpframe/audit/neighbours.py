"""Worst-case neighbours of a plan: searched for among made-up people, with no data at hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from dpframe import pipeline
from dpframe.aggregates.chosen_together import ChosenTogether
from dpframe.aggregates.measurement import Responses, Selection
from dpframe.aggregates.quantile import QuantileChoice
from dpframe.aggregates.query import Query
from dpframe.audit.beside import at_once, expected_of, rows_in, worst_crowds
from dpframe.audit.conditions import Conditions
from dpframe.audit.people import Frames, People, Person, together
from dpframe.audit.reach import Counted, Reach, reach_of
from dpframe.audit.stated import is_noise_alone, stated_loss
from dpframe.core.budget import GDP
from dpframe.lower import Execution, found_keys

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
    """Two frames that differ in one individual, and what the plan's tables are on each.

    Parameters
    ----------
    query
        The query, with the groups that either frame has.
    counted
        The exact tables of the frame with the individual, and of that without (or with other
        values). Limits choose the same rows of everybody else on both: the guarantee holds for each
        choice.
    reach
        How far each part moves.
    moved
        How far all that is drawn does, in one number.
    words
        Who differs, and who is there as well.
    """

    query: Query
    counted: tuple[Counted, Counted]
    reach: tuple[Reach, ...]
    moved: float
    words: str


@dataclass(frozen=True, slots=True)
class _Pair:
    """An individual, and another who takes the place under change-one adjacency."""

    person: Person
    instead: Person | None
    elsewhere: Person | None = None
    """What the individual has in another window of time, in both frames."""


def worst_neighbours(prepared: pipeline.Prepared) -> list[Neighbours]:
    """Pairs of frames with the largest movement of a plan's parts that a search finds, the
    largest first, each with several numbers of other people. Where an individual is a person in a
    window of time, some of them have rows in another window too, in both frames.

    The search tries values from the query and their neighbours, then changes the best a little
    again and again. It is the same search each time.
    """
    people = People(prepared.query)
    conditions = Conditions(prepared.query)
    found: dict[str, tuple[float, _Pair]] = {}

    def tried(pair: _Pair) -> None:
        if repr(pair) not in found:
            moved = _placed(prepared, people, pair, ()).moved
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
    chosen = _with_elsewhere(prepared, people, best(_BEST))
    if is_noise_alone(prepared):
        made = [_placed(prepared, people, pair, ()) for pair in chosen]
        return sorted(made, key=lambda n: n.moved, reverse=True)
    if at_once(prepared):
        made = _in_crowds(prepared, people, best(_MANY))
        return sorted(made, key=lambda n: expected_of(prepared, *n.counted), reverse=True)
    others = [n for n in _OTHERS if n + 2 <= people.names()]
    ranks = any(isinstance(use.part, (QuantileChoice, ChosenTogether)) for use in prepared.parts)
    made = [
        _placed(prepared, people, pair, beside)
        for pair in chosen
        for number in others
        for beside in _besides(people, pair, number, three=ranks)
    ]
    return sorted(made, key=lambda n: n.moved, reverse=True)


def _in_crowds(
    prepared: pipeline.Prepared, people: People, pairs: Sequence[_Pair]
) -> list[Neighbours]:
    """Pairs together with the people next to whom they are distinguished best."""
    kinds = [pair.person for pair in pairs]
    kinds += [pair.instead for pair in pairs if pair.instead is not None]
    kinds = list({repr(kind): kind for kind in kinds}.values())
    kinds = sorted(kinds, key=lambda kind: max(map(len, kind.rows.values())))

    def counted(some: Sequence[Person]) -> Counted:
        return _counted(prepared, prepared.query, people.frames(some))

    different = {rows_in(prepared, counted([kind])): kind for kind in reversed(kinds)}
    kinds = list(reversed(different.values()))[:_KINDS]
    individuals = [(pair.person, pair.instead) for pair in pairs]
    found = worst_crowds(prepared, individuals, kinds, counted)
    made = []
    for crowd in found:
        named = zip(kinds, crowd.others, strict=True)
        beside = tuple(kind for kind, number in named for _ in range(number))
        beside = beside[: max(0, people.names() - 2)]
        made.append(_placed(prepared, people, pairs[crowd.individual], beside))
    return made


def _with_elsewhere(
    prepared: pipeline.Prepared, people: People, pairs: Sequence[_Pair]
) -> list[_Pair]:
    """The same, and where there are windows each once more with rows in another one: of some that
    are tried those which move most.
    """
    found = list(pairs)
    for pair in pairs:
        tried = [people.elsewhere(pair.person) for _ in range(_ELSEWHERE)]
        made = [replace(pair, elsewhere=rows) for rows in tried if rows is not None]
        if made:
            found.append(max(made, key=lambda one: _placed(prepared, people, one, ()).moved))
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


def _placed(
    prepared: pipeline.Prepared, people: People, pair: _Pair, beside: tuple[Person, ...]
) -> Neighbours:
    """Both frames, the individual first, and what the parts are on each."""
    nobody = Person(dict.fromkeys(pair.person.rows, ()))
    one = people.frames([together(pair.person, pair.elsewhere), *beside])
    other = people.frames([together(pair.instead or nobody, pair.elsewhere), *beside])
    query = _with_groups(prepared.query, one, other)
    counted = [_counted(prepared, query, frames) for frames in (one, other)]
    reach = tuple(reach_of(prepared.parts, query, *counted))
    moved = _how_far(prepared, reach, *counted)
    return Neighbours(query, (counted[0], counted[1]), reach, moved, _words(people, pair, beside))


def _counted(prepared: pipeline.Prepared, query: Query, frames: Frames) -> Counted:
    """The exact tables of one frame, whose same rows are kept each time."""
    relation = replace(query.relation, salt=_SALT)
    return Execution.of_public(frames).run(relation, query.groups, prepared.tables)


def _with_groups(query: Query, one: Frames, other: Frames) -> Query:
    """The query with every group of either frame, where groups are to be found."""
    if query.groups is None or not query.groups.discovered:
        return query
    found = [found_keys(query.relation, query.groups, frames) for frames in (one, other)]
    keys = pl.concat(found).unique(maintain_order=True)
    return replace(query, groups=query.groups.found(keys))


def _how_far(
    prepared: pipeline.Prepared, reach: Sequence[Reach], one: Counted, other: Counted
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
