"""Grouping sets that are tables of their own: nobody moves one further than it declares, and
results are those of a query by the columns of each set.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.grouping_sets import AdditiveOfSet, OwnSets, SelectionOfSet
from dpframe.core.units import Rows
from dpframe.frames.groups import SetGroups
from dpframe.optimise.measurements import measurements_of
from dpframe.release import assemble
from dpframe.simulate import exact_parts
from tests.laws import individuals, kernel_mistakes, queries
from tests.laws.amounts import examples
from tests.laws.individuals import KEYS, LIMITS, STEPS, check_limits, frame_of
from tests.laws.neighbours import Pair, check_sensitivities, exact_tables, neighbours
from tests.laws.queries import accepted, names_of
from tests.laws.test_grouping_sets import OF_ROWS, SETS

TEXTS = [
    'pl.col("x").dp_n_unique()',
    'pl.col("id").dp_n_unique()',
    'pl.col("c").dp_n_unique()',
    'pl.col("x").dp_median((-3, 7))',
    'pl.col("y").dp_quantile([0.1, 0.5], candidates=[-2.5, 0, 1.5])',
    'pl.col("e").dp_argmax(score=pl.col("x").dp_sum((-2, 5)))',
]


@examples(15, 1500)
@given(
    st.sampled_from(TEXTS),
    st.sampled_from(SETS),
    st.lists(st.sampled_from(LIMITS) | st.sampled_from(STEPS), min_size=1, max_size=5),
    individuals.neighbours(),
    st.integers(0, 2**64 - 1),
)
def test_an_individual_moves_no_set_further_than_declared(
    text: str, grouping: str, steps: list[str], pair: Pair, salt: int
) -> None:
    asked = individuals.accepted(text, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check_limits(asked, pair, salt)


ROW_TEXTS = [
    'pl.col("s").dp_n_unique()',
    'pl.col("f64").dp_n_unique()',
    'pl.col("i64").dp_median((-3, 7))',
    'pl.col("i8").dp_quantile([0, 0.9], candidates=[-128, 0, 5])',
    'pl.col("e").dp_argmax(k=2)',
]


@examples(15, 1500)
@given(
    st.sampled_from(ROW_TEXTS),
    st.sampled_from(OF_ROWS),
    st.lists(st.sampled_from(queries.STEPS), max_size=2),
    st.sampled_from(["add-remove", "change-one"]),
    st.integers(1, 3),
    st.data(),
)
def test_rows_move_no_set_further_than_declared(
    text: str,
    grouping: str,
    steps: list[str],
    adjacency: Any,
    contributions: int,
    data: st.DataObject,
) -> None:
    unit = Rows(adjacency, contributions)
    asked = accepted(text, unit, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check_sensitivities(asked, data.draw(neighbours(unit, names_of(asked))))


@examples(12, 600)
@given(st.sampled_from(ROW_TEXTS), st.sampled_from(OF_ROWS), st.data())
def test_each_set_is_what_a_query_by_its_columns_releases(
    text: str, grouping: str, data: st.DataObject
) -> None:
    asked = accepted(text, Rows(), grouping, [])
    assert asked is not None
    frame = data.draw(neighbours(Rows(), names_of(asked))).before
    (output,) = asked.outputs
    (found,) = asked.aggregates
    assert isinstance(found, OwnSets)
    assert isinstance(asked.groups, SetGroups)
    released, start = assemble(asked, exact(asked, frame)), 0
    for kept, inner in zip(asked.groups.sets, found.inner, strict=True):
        (place,) = output.aggregates
        own = replace(
            asked,
            groups=asked.groups.margin(kept),
            outputs=(replace(output, aggregates={place: inner}),),
        )
        expected = assemble(own, exact(own, frame))
        rows = released.slice(start, expected.height)
        start += expected.height
        assert rows.select(expected.columns).equals(expected)
    assert start == released.height


def exact(asked: Query, frame: pl.DataFrame) -> Any:
    counted = exact_tables(asked, frame)
    keys = [(use.part, use.mechanism) for use in measurements_of(asked)]
    return exact_parts(asked, keys, counted.of(*(part for part, _ in keys)))


ROWS = pl.DataFrame({"g": ["a", "b", "a", "c"], "h": [0, 1, 1, None], "x": [1, 2, 3, 4]})
RELEASED = {
    "n_unique": dp.n_unique("x"),
    "median": dp.median("x", (0, 5)),
    "candidates": dp.quantile("x", 0.5, candidates=[1, 2, 3]),
    "argmax": dp.argmax("x", candidates=[1, 2]),
}


@pytest.mark.parametrize("name", RELEASED)
@pytest.mark.parametrize("sets", [[["g"], ["h"], []], [["g"], ["h"]], [["g", "h"], ["h"]]], ids=str)
def test_sets_are_released_whether_one_has_all_columns_or_not(
    name: str, sets: list[list[str]]
) -> None:
    people = dp.Session(epsilon=10).protect(ROWS, unit=dp.Rows())
    groups = people.group_by(dp.grouping_sets(sets), keys={"g": ["a", "b", "c"], "h": [0, 1]})
    query = groups.agg(RELEASED[name].alias("r"))
    plan = query.plan(epsilon=1)
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    found = query.collect(epsilon=1)
    assert found.height == sum(math.prod({"g": 3, "h": 2}[c] for c in one) for one in sets)


def test_each_set_has_what_its_own_columns_allow() -> None:
    """One individual is in one group by all columns, and in three of those by one of them."""
    asked = individuals.accepted(
        'pl.col("id").dp_n_unique()',
        SETS[0],
        ["f.limit_groups(3, by='g')", "f.limit_rows(2, by='h')"],
    )
    assert asked is not None
    found = {use.part.by: use.sensitivity.l1 for use in measurements_of(asked)}
    assert found[("g",)] == 3
    assert found[()] == 1
    assert found[("h",)] == 4


# ------------------------------------------------------------------------- the law can fail


def _without_keys(plan: Any, facts: Any) -> Any:
    return replace(plan, tables=tuple(replace(table, keys=None) for table in plan.tables)), facts


MISTAKES = {
    "half of all norms": kernel_mistakes.norms_where(
        lambda what: True,
        lambda found: replace(found, l1=found.l1 // 2, l2_squared=found.l2_squared // 4),
    ),
    "one group": kernel_mistakes.plans(_without_keys),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    who = [{"id": 1, "g": g, "h": 0, "x": x} for g in ("a", "b") for x in (1, 5)]
    others = [{"id": 2, "g": "a", "h": 1, "x": 0}]
    pair = Pair(frame_of(others), frame_of(others + who))
    grouping = f'f.group_by(dp.cube("g"), keys={{"g": {KEYS["g"]}}})'
    check_own(grouping, pair)
    MISTAKES[name](monkeypatch)
    with pytest.raises(AssertionError, match="declared"):
        check_own(grouping, pair)


def check_own(grouping: str, pair: Pair) -> None:
    asked = individuals.accepted('pl.col("id").dp_n_unique()', grouping, ["f.limit_rows(4)"])
    assert asked is not None
    parts = [use.part for use in measurements_of(asked)]
    assert any(isinstance(part, (AdditiveOfSet, SelectionOfSet)) for part in parts)
    check_limits(asked, pair)
