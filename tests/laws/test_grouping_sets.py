"""The laws of grouping sets: no margin of any table moves further than it declares, whatever limits
are in force. Every margin is looked at, not only those that are best to measure.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.grouping_sets import AdditiveOfSet, SelectionOfSet
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.request import QueryScope
from dpframe.core.units import Rows
from dpframe.kernel import frame, moves
from dpframe.kernel.frame import Bounds, Facts, Reach, is_of_people, reach_of
from dpframe.kernel.plan import Table
from tests.laws import individuals, kernel_mistakes, queries
from tests.laws.amounts import examples
from tests.laws.frames import SCHEMA
from tests.laws.individuals import KEYS, LIMITS, STEPS, UNIT_TEXTS, frame_of
from tests.laws.neighbours import (
    Pair,
    exact_tables,
    measurements_of,
    moved,
    neighbours,
    vector,
    violation,
)
from tests.laws.queries import accepted, names_of

Patch = pytest.MonkeyPatch

SETS = [
    f'f.group_by(dp.cube("g", "h"), keys={{"g": {KEYS["g"]}, "h": {KEYS["h"]}}})',
    f'f.group_by(dp.rollup("g", "h"), keys={{"g": ["a", "c"], "h": {KEYS["h"]}}})',
    f'f.group_by(dp.cube("h", "b", "e"), keys={{"h": [0, 1], "b": {KEYS["b"]}, "e": ["p", None]}})',
    f'f.group_by(dp.grouping_sets([("g", "e"), ("c",)]), '
    f'keys={{"g": ["b", "never"], "e": {KEYS["e"]}, "c": {KEYS["c"]}}})',
    'f.group_by(dp.cube(pl.col("g").str.to_uppercase(), "b"), '
    'keys={"g": ["A", None, "B"], "b": [True, False]})',
    f'f.group_by(dp.rollup("id", "g"), keys={{"id": [1, 2], "g": {KEYS["g"]}}})',
    f'f.group_by(dp.cube("g"), keys={{"g": {KEYS["g"]}}})',
]
TEXTS = [
    *UNIT_TEXTS,
    "dp.count()",
    'pl.col("y").dp_count()',
    'pl.col("id").dp_n_unique()',
    'pl.col("x").dp_sum((-3, 7))',
    'pl.col("y").dp_sum((-1, 0.5))',
    'pl.col("x").dp_mean((-3, 7))',
    'pl.col("y").dp_var((-2, 3))',
    'pl.col("e").dp_histogram()',
    'pl.col("g").dp_histogram(["a", "b", None], other=True)',
    'pl.col("x").dp_histogram([-5, 0, 5, 100])',
]
ONCE = ['f.limit_groups(1, by=["g", "h"])', 'f.limit_groups(1, by="id")', "f.limit_rows(1)"]


def margins(asked: Query) -> Iterator[Margin]:
    """All margins of the tables of a query, whether they are measured or not."""
    found: dict[Margin, None] = {}
    for use in measurements_of(asked):
        part = use.part
        if isinstance(part, AdditiveOfSet | SelectionOfSet):  # which has laws of its own
            continue
        assert isinstance(part, Margin)
        axes = range(len(part.sizes))
        for length in range(len(part.sizes) + 1):
            for kept in itertools.combinations(axes, length):
                found[replace(part, kept=kept, by=("",) * length)] = None
    return iter(found)


def check(asked: Query, pair: Pair, salt: int = 0) -> None:
    before, after = (exact_tables(asked, f, salt=salt) for f in (pair.before, pair.after))
    for part in margins(asked):
        problem = violation(part, moved(part, before, after, asked.scope), asked.scope)
        assert problem is None, problem
        sensitivity = part.sensitivity(asked.scope)
        assert sensitivity.linf**2 <= sensitivity.l2_squared <= sensitivity.l1 * sensitivity.linf


@examples(12, 1500)
@given(
    st.sampled_from(TEXTS),
    st.sampled_from(SETS),
    st.lists(st.sampled_from([*LIMITS, *ONCE]) | st.sampled_from(STEPS), max_size=6),
    individuals.neighbours(),
    st.integers(0, 2**64 - 1),
)
def test_an_individual_moves_no_margin_further_than_declared(
    text: str, grouping: str, steps: list[str], pair: Pair, salt: int
) -> None:
    asked = individuals.accepted(text, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check(asked, pair, salt)


@examples(12, 1500)
@given(
    st.sampled_from(TEXTS),
    st.sampled_from(SETS),
    st.lists(st.sampled_from([*LIMITS, *ONCE]), min_size=1, max_size=4),
    individuals.neighbours(),
    st.integers(0, 2**64 - 1),
)
def test_limits_hold_of_all_margins(
    text: str, grouping: str, limits: list[str], pair: Pair, salt: int
) -> None:
    asked = individuals.accepted(text, grouping, limits)
    assume(asked is not None)
    assert asked is not None
    check(asked, pair, salt)


OF_ROWS = [
    'f.group_by(dp.cube("e", "b"), keys={"b": [None, True, False], "e": ["a", "b", "c"]})',
    'f.group_by(dp.rollup("i8", "b"), keys={"i8": [0, -128, None], "b": [True, None]})',
    'f.group_by(dp.cube(pl.col("u8") > 5, "s"), keys={"u8": [True, None], "s": ["b", ""]})',
]
ROW_TEXTS = [
    "dp.count()",
    'pl.col("f64").dp_count()',
    'pl.col("i64").dp_sum((-3, 7))',
    'pl.col("i64").dp_sum((2, 7))',
    'pl.col("f64").dp_mean((-3, 7.5))',
    'pl.col("i64").dp_var((-1, 1))',
    'pl.col("i64").dp_histogram([-5, 0, 5, 100])',
    'pl.col("s").dp_histogram(["a", "", None], other=True)',
]


@examples(12, 1500)
@given(
    st.sampled_from(ROW_TEXTS),
    st.sampled_from(OF_ROWS),
    st.lists(st.sampled_from(queries.STEPS), max_size=2),
    st.sampled_from(["add-remove", "change-one"]),
    st.integers(1, 3),
    st.data(),
)
def test_rows_move_no_margin_further_than_declared(
    text: str,
    grouping: str,
    steps: list[str],
    adjacency: Any,
    contributions: int,
    data: st.DataObject,
) -> None:
    unit = Rows(adjacency, contributions=contributions)
    asked = accepted(text, unit, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    check(asked, data.draw(neighbours(unit, names_of(asked))))


# ------------------------------------------------------------------------------- the mistakes


def fixed(asked: Query) -> Iterator[Pair]:
    """An individual in every pair of groups, with few rows or many; one in few groups, with all
    rows in one; and one that is alone.
    """
    groups = list(itertools.product(individuals.POOLS["g"], individuals.POOLS["h"]))
    for times, some in itertools.product((1, 3), (groups, groups[:4], groups[::4], groups[:1])):
        mine = [
            {"id": 1, "g": g, "h": h, "x": x, "y": 9.0, "e": "p"}
            for g, h in some
            for x in (100, 9, 1)[:times]
        ]
        others = [{"id": 2, "g": "a", "h": 1, "x": 5, "e": "q"}]
        yield Pair(frame_of(others), frame_of(others + mine))


def check_fixed(text: str, grouping: str, limits: Sequence[str]) -> None:
    asked = individuals.query([text], grouping, limits)
    for pair in fixed(asked):
        for salt in (0, 5):
            check(asked, pair, salt)


BY_PAIRS = ('f.limit_groups(3, by=["g", "h"])', 'f.limit_rows(2, by=["g", "h"])')
CASES: list[tuple[str, Sequence[str]]] = [
    ("dp.count()", BY_PAIRS),
    ('pl.col("x").dp_sum((-3, 7))', BY_PAIRS),
    ('pl.col("x").dp_sum((-3, 7), per="unit")', BY_PAIRS[:1]),
    ('dp.count(per="unit", bounds=(0, 2))', BY_PAIRS[:1]),
    ('pl.col("x").dp_histogram([-5, 0, 5, 100])', BY_PAIRS),
    ('pl.col("e").dp_histogram()', ("f.limit_rows(9)", 'f.limit_rows(2, by="e")')),
]


Change = Callable[[Bounds, tuple[int, ...], Table], Bounds]


def _reach(change: Change) -> Any:
    """Plants other bounds of margins in the kernel, given the true ones, the columns that are kept
    and the table.
    """

    def wrong(facts: Facts, table: Table, kept: tuple[int, ...], *rest: Any) -> Reach:
        def bounds(known: Facts, keys: Any, columns: tuple[int, ...]) -> Bounds:
            found = kernel_mistakes.BOUNDS(known, keys, columns)
            return change(found, kept, table) if len(columns) < len(keys.by) else found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frame, "bounds_of", bounds)
            return reach_of(facts, table, kept, *rest)

    return lambda patch: patch.setattr(moves, "reach_of", wrong)


def _of_the_finest(found: Bounds, kept: tuple[int, ...], table: Table) -> Bounds:
    """What one has in a group of a margin is no more than in a finest group."""
    return replace(found, per_group=1 if is_of_people(table) else 2)


PER_FINEST = _reach(_of_the_finest)


def _once_in_each(found: Bounds, kept: tuple[int, ...], table: Table) -> Bounds:
    """A number of an individual counts once in larger groups as well."""
    return replace(found, per_group=1) if is_of_people(table) else found


def _fewer_groups(found: Bounds, kept: tuple[int, ...], table: Table) -> Bounds:
    return replace(found, groups=1)


def _of_columns(patch: Patch) -> None:
    """The limit of one cell of a finest group holds of all groups together."""

    def wrong(*given: Any) -> Reach:
        found = reach_of(*given)
        return replace(found, cell=1)

    patch.setattr(moves, "reach_of", wrong)


MISTAKES = {
    "rows per finest group": (PER_FINEST, 0),
    "totals per finest group": (PER_FINEST, 2),
    "counts per finest group": (PER_FINEST, 3),
    "histograms per finest group": (PER_FINEST, 4),
    "once in larger groups": (_reach(_once_in_each), 2),
    "one group": (_reach(_fewer_groups), 1),
    "one row of a cell": (_of_columns, 4),
}


@pytest.mark.parametrize(("text", "limits"), CASES)
def test_the_rules_hold_of_the_fixed_neighbours(text: str, limits: Sequence[str]) -> None:
    check_fixed(text, SETS[0], limits)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_caught(name: str, monkeypatch: Patch) -> None:
    plant, case = MISTAKES[name]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="declared"):
        check_fixed(CASES[case][0], SETS[0], CASES[case][1])


def test_rows_that_change_are_not_rows_that_come(monkeypatch: Patch) -> None:
    """Under change-one adjacency; the norms of a row that comes or goes are too small."""
    asked = accepted("dp.count()", Rows("change-one"), OF_ROWS[0], [])
    assert asked is not None
    names = names_of(asked)
    frame = queries_frame(names)
    pair = Pair(frame[[0, 2]], frame[[1, 2]])
    check(asked, pair)
    kernel_mistakes.norms_where(
        lambda what: True,
        lambda found: replace(found, l1=-(-found.l1 // 2), l2_squared=-(-found.l2_squared // 2)),
    )(monkeypatch)
    scope = QueryScope(asked.relation.facts, asked.groups)  # which knows no sensitivity yet
    asked = replace(asked, scope=scope)
    with pytest.raises(AssertionError, match="declared"):
        check(asked, pair)


def queries_frame(names: Sequence[str]) -> Any:
    rows = {"e": ["a", "b", "c"], "b": [True, False, None]}
    return pl.DataFrame({name: pl.Series(rows[name], dtype=SCHEMA[name]) for name in names})


def test_totals_in_larger_groups_are_bounded_by_the_finest_groups_in_them() -> None:
    """Of two sexes in each country an individual in five pairs has two totals in a country."""
    grouping = 'f.group_by(dp.cube("h", "b"), keys={"h": [0, 1, 2], "b": [True, False]})'
    limit = 'f.limit_groups(5, by=["h", "b"])'
    asked = individuals.query(['dp.count(per="unit", bounds=(0, 1))'], grouping, [limit])
    everyone = [{"id": 1, "h": h, "b": b} for h in (0, 1, 2) for b in (True, False)]
    pair = Pair(frame_of([]), frame_of(everyone))
    before, after = (exact_tables(asked, f) for f in (pair.before, pair.after))
    (by_h,) = [part for part in margins(asked) if part.kept == (0,)]
    assert sorted(np.subtract(vector(by_h, after), vector(by_h, before))) == [1, 2, 2]
    found = by_h.sensitivity(asked.scope)
    assert (found.l1, found.l2_squared, found.linf) == (5, 9, 2)
    assert isinstance(found.l1, Fraction)
