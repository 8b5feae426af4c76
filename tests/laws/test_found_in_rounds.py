"""Laws of groups that are found in rounds: whatever rounds before have found, one individual moves
the sums of what is left by its norm at most, and what was found is neither weighed nor found again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates import keys
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.keys import WeighedKeys
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.statistics import UnitCount
from dpframe.core.units import parts_in_each
from dpframe.frames.per_individual import WithoutFound, rounds_of, without
from dpframe.frames.relation import Relation
from dpframe.kernel.frame import PARTS
from dpframe.mechanisms import WeighedRounds
from dpframe.release.draws import chooser_of
from dpframe.simulate import Exact
from tests.laws.individuals import POOLS, frame_of, neighbours
from tests.laws.neighbours import Pair, measurements_of, query_of
from tests.laws.test_found_by_weights import BY, check, frame, sums_of

People = dict[Any, set[tuple[Any, ...]]]
Leave = Callable[[Relation, pl.DataFrame], Relation]


def asked_of(by: str, rounds: int = 2) -> Query:
    return query_of(frame().group_by(*BY[by]).dp_groups(rounds=rounds))


def keys_of(query: Query, rows: set[tuple[Any, ...]]) -> pl.DataFrame:
    """Keys as a round releases them."""
    assert query.groups is not None
    return pl.DataFrame(list(rows), schema=query.groups.keys.schema, orient="row")


def later(query: Query, found: set[tuple[Any, ...]], leave: Leave = without) -> Query:
    """What is asked in a round after groups were found."""
    return replace(query, relation=leave(query.relation, keys_of(query, found)))


def groups_of(by: str, data: pl.DataFrame) -> People:
    """The groups of each individual, by plain Polars."""
    owned = defaultdict[Any, set[tuple[Any, ...]]](set)
    keys = [key if isinstance(key, pl.Expr) else pl.col(key) for key in BY[by]]
    keys = [key.cast(pl.String) if by == "c" else key for key in keys]
    for who, *key in data.select(pl.col("id").alias("whose"), *keys).rows():
        if who is not None:
            owned[who].add(tuple(key))
    return owned


def weights(owned: People, found: set[tuple[Any, ...]]) -> Counter[Any]:
    """The weights of what is left, by plain Python."""
    sums = Counter[Any]()
    for groups in owned.values():
        for group in groups - found:
            sums[group] += parts_in_each(PARTS, len(groups - found))
    return sums


@st.composite
def some_found(draw: st.DrawFn, pair: Pair, by: str) -> set[tuple[Any, ...]]:
    """What rounds before may have found: groups that are there, and others."""
    there = {group for groups in groups_of(by, pair.after).values() for group in groups}
    there |= {group for groups in groups_of(by, pair.before).values() for group in groups}
    return set(draw(st.lists(st.sampled_from(sorted(there, key=repr)), max_size=4)))


@settings(max_examples=25)
@given(
    st.data(),
    st.sampled_from(sorted(BY)),
    st.sampled_from([1, 2, 3, 256]),
    neighbours(most=20),
    st.integers(0, 2**64 - 1),
)
def test_nobody_moves_what_is_left_by_more_than_one(
    data: st.DataObject, by: str, most: int, pair: Pair, salt: int
) -> None:
    """Frames are stored in ways of their own, `check` sees to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "MOST_FOUND", most)
        query = asked_of(by)
        found = data.draw(some_found(pair, by))
        check(later(query, found), pair, salt)


def is_right(by: str, found: set[tuple[Any, ...]], pair: Pair, leave: Leave = without) -> bool:
    """Whether the sums of what is left are those of integers."""
    query = later(asked_of(by), found, leave)
    return all(
        sums_of(query, data)[Table(UnitCount())] == dict(weights(groups_of(by, data), found))
        for data in (pair.before, pair.after)
    )


@settings(max_examples=25)
@given(st.data(), st.sampled_from(sorted(BY)), neighbours(most=30))
def test_sums_of_what_is_left_are_what_integers_say(
    data: st.DataObject, by: str, pair: Pair
) -> None:
    assert is_right(by, data.draw(some_found(pair, by)), pair)


def moved_last(relation: Relation, found: pl.DataFrame) -> Relation:
    """Groups that were found are left out after their rows were limited."""
    made = without(relation, found)
    steps = [step for step, _ in made.steps if not isinstance(step, WithoutFound)]
    (leaving,) = (step for step, _ in made.steps if isinstance(step, WithoutFound))
    start = replace(relation, steps=(), facts=relation.source)
    for step in (*steps, leaving):
        start = start.then(step)
    return start


WRONG: dict[str, Leave] = {
    "kept": lambda relation, found: relation,
    "after the weights": moved_last,
    "nulls kept": lambda relation, found: without(relation, found.drop_nulls()),
    "by the first key": lambda relation, found: without(
        relation, found.with_columns(pl.all().first())
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_planted_mistakes_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": who, "g": g} for who in (1, 2) for g in POOLS["g"]]
    pair = Pair(frame_of(rows[:4]), frame_of(rows))
    found = {("a",), (None,)}
    monkeypatch.setattr(keys, "MOST_FOUND", 2)  # as many as are left
    assert is_right("g", found, pair)
    assert not is_right("g", found, pair, WRONG[name])


def test_rounds_are_of_one_rule_and_one_step() -> None:
    query = asked_of("two", 3)
    (use,) = measurements_of(query)
    assert isinstance(use.part, WeighedKeys)
    assert use.part.rounds == rounds_of(query.relation) == 3
    steps = [type(step).__name__ for step, _ in query.relation.steps]
    assert steps == ["WithoutFound", "LimitNorm", "LimitGroups"]
    prepared = pipeline.plan(query, dp.ApproxDP(1, "1e-6"), None)
    (draw,) = prepared.draws
    assert isinstance(draw.law, WeighedRounds)
    chooser = chooser_of(prepared.draws, Exact.of(prepared).places)
    assert chooser is not None
    assert [one.law for one in chooser.rounds] == [one.kernel_law for one in draw.law.in_rounds]


def test_what_has_no_weight_never_appears_in_any_round() -> None:
    query = asked_of("g")
    for spend in (dp.ApproxDP(1, "0.5"), dp.ApproxDP("0.001", "0.5")):
        prepared = pipeline.plan(query, spend, None)
        chooser = chooser_of(prepared.draws, Exact.of(prepared).places)
        assert chooser is not None
        for one in chooser.rounds:
            kept, _ = one.keep(np.zeros(5000, np.int64))
            assert not kept.any()


def test_individuals_that_are_alone_appear_as_often_as_the_slack_says() -> None:
    """In all rounds together, by the laws themselves on exact sums, at a delta that shows."""
    query = query_of(frame().group_by("x").dp_groups(rounds=2))
    prepared = pipeline.plan(query, dp.ApproxDP(1, "0.1"), None)
    chooser = chooser_of(prepared.draws, Exact.of(prepared).places)
    assert chooser is not None
    runs, found = 1000, dict[int, float]()
    for t in (1, 16, 200):
        data = frame_of([{"id": 1, "x": group} for group in range(t)])
        sums = np.array([*sums_of(query, data)[chooser.table].values()], np.int64)
        alone = np.zeros(runs, np.bool_)
        for one in chooser.rounds:  # as if none had been found before: so few are
            alone |= one.keep(np.tile(sums, runs))[0].reshape(runs, t).any(axis=1)
        found[t] = float(alone.mean())
    slack = 0.05
    assert max(found.values()) < slack + 4 * (slack / runs) ** 0.5
    assert max(found.values()) > slack / 3
