"""Vectors that several outputs of grouping sets are drawn from: no individual moves any margin of
them out of what is declared, whichever margins are best to measure.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.margins import JointMargins
from dpframe.aggregates.reconstruction import ways_to_measure
from dpframe.core.budget import ZCDP, PureDP
from dpframe.core.units import Rows
from dpframe.errors import DPFrameError
from dpframe.release import numbers
from tests.laws import individuals, queries
from tests.laws.amounts import examples
from tests.laws.frames import SCHEMA
from tests.laws.individuals import LIMITS, STEPS
from tests.laws.neighbours import (
    Counted,
    Pair,
    check_joint_draws,
    exact_tables,
    joint_changes,
    joint_draws,
    moved,
    neighbours,
    outside_box,
    violation,
)
from tests.laws.queries import names_of
from tests.laws.test_grouping_sets import BY_PAIRS, OF_ROWS, ONCE, PER_FINEST, SETS, fixed
from tests.laws.test_joint_draws import (
    _one_end_of_centred,
    _one_group,
    _one_move,
    _rows_moved_by_nobody,
    _uncentred_box,
    _values_as_rows,
    several,
)

Patch = pytest.MonkeyPatch
OF_INDIVIDUALS = [
    "dp.count()",
    'pl.col("y").dp_count()',
    'pl.col("x").dp_sum((-3, 7))',
    'pl.col("x").dp_sum((2, 7))',
    'pl.col("y").dp_sum((-1, 0.5))',
    'pl.col("x").dp_mean((-3, 7))',
    'pl.col("y").dp_var((-2, 3))',
    'pl.col("x").dp_sum((-3, 7), per="unit")',
    'pl.col("x").dp_sum((0, 9), per="unit")',
    'dp.count(per="unit", bounds=(0, 2))',
    'pl.col("id").dp_n_unique()',
]


def vectors(asked: Query) -> Iterator[JointMargins]:
    """What is drawn by any columns of the finest groups, whether that is measured or not."""
    found: dict[JointMargins, None] = {}
    for draw in joint_draws(asked):
        part = draw.measurement
        if isinstance(part, JointMargins):
            for length in range(len(part.sizes) + 1):
                for kept in itertools.combinations(range(len(part.sizes)), length):
                    found[replace(part, columns=kept, by=("",) * length)] = None
    return iter(found)


def check_vectors(asked: Query, before: Counted, after: Counted) -> None:
    for part in vectors(asked):
        problem = violation(part, moved(part, before, after, asked.scope), asked.scope)
        assert problem is None, problem
        box = part.task("", part.sensitivity(asked.scope), "auto", asked.scope).box
        assert box is not None
        problem = outside_box(part, box, joint_changes(part, before, after))
        assert problem is None, problem


def check(asked: Query, pair: Pair, salt: int = 0) -> None:
    """Where shares of an epsilon are best, and where those of a rho are, and with totals apart."""
    for spend in (PureDP(1), ZCDP(1)):
        for way in ways_to_measure(asked, spend):
            before, after = (exact_tables(way, f, salt=salt) for f in (pair.before, pair.after))
            check_joint_draws(way, before, after)
            check_vectors(way, before, after)


@examples(12, 1000)
@given(
    several(),
    st.sampled_from(OF_ROWS),
    st.lists(st.sampled_from(queries.STEPS), max_size=2),
    st.sampled_from(["add-remove", "change-one"]),
    st.integers(1, 3),
    st.data(),
)
def test_rows_move_no_vector_further_than_declared(
    texts: list[str],
    grouping: str,
    steps: list[str],
    adjacency: Any,
    contributions: int,
    data: st.DataObject,
) -> None:
    unit = Rows(adjacency, contributions=contributions)
    try:
        asked = queries.query(texts, unit, grouping, steps)
    except DPFrameError:
        return
    check(asked, data.draw(neighbours(unit, names_of(asked))))


@examples(12, 1000)
@given(
    st.lists(st.sampled_from(OF_INDIVIDUALS), min_size=2, max_size=4),
    st.sampled_from(SETS),
    st.lists(st.sampled_from([*LIMITS, *ONCE]) | st.sampled_from(STEPS), max_size=5),
    individuals.neighbours(),
    st.integers(0, 2**64 - 1),
)
def test_an_individual_moves_no_vector_further_than_declared(
    texts: list[str], grouping: str, steps: list[str], pair: Pair, salt: int
) -> None:
    frame = individuals.stepped(steps, strict=False)
    try:
        asked = individuals.query(texts, grouping, frame=frame)
    except DPFrameError:
        assume(False)
        return
    check(asked, pair, salt)


# ------------------------------------------------------------------------------- the mistakes

COUNTED = ("dp.count()", 'pl.col("x").dp_sum((1, 7))')
TOTALS = ('dp.count(per="unit", bounds=(0, 2))', 'pl.col("x").dp_sum((-3, 7), per="unit")')
CHANGED = ("dp.count()", 'pl.col("i64").dp_mean((-3, 7))', 'pl.col("u8").dp_sum((2, 9))')


def of_fixed(texts: Sequence[str], limits: Sequence[str]) -> None:
    """An individual in many groups, or in few."""
    asked = individuals.query(texts, SETS[0], limits)
    for pair in fixed(asked):
        check(asked, pair)


def of_rows(adjacency: Any) -> None:
    """A row that comes, or that moves to another group."""
    asked = queries.query(CHANGED, Rows(adjacency), OF_ROWS[0])
    names = names_of(asked)
    rows = {name: [None] * 3 for name in names} | {
        "e": ["a", "b", "c"],
        "b": [True, False, None],
        "i64": [7, -3, 7],
        "u8": [9, 2, 9],
    }
    frame = queries_frame(rows, names)
    empty = [] if adjacency == "add-remove" else [1]
    check(asked, Pair(frame[[0]], frame[empty]))
    check(asked, Pair(frame[[2, 0]], frame[[2, *empty]]))


def of_values() -> None:
    """A row that stays in its group, where a sum has a value before and after, and a count comes to
    have one.
    """
    texts = ['pl.col("i64").dp_mean((-8, 8))', 'pl.col("u8").dp_count()']
    asked = queries.query(texts, Rows("change-one"), OF_ROWS[0])
    names = names_of(asked)
    rows = {name: [None] * 2 for name in names} | {
        "e": ["a", "a"],
        "b": [True, True],
        "i64": [-8, 8],
        "u8": [None, 9],
    }
    frame = queries_frame(rows, names)
    check(asked, Pair(frame[[0]], frame[[1]]))


def queries_frame(rows: dict[str, list[Any]], names: Sequence[str]) -> Any:
    return pl.DataFrame({n: pl.Series(rows[n], dtype=SCHEMA[n], strict=False) for n in names})


def _of_other_columns(patch: Patch) -> None:
    """The vector of all groups together in place of that of a margin."""
    true = numbers._vector

    def wrong(plan: Any, what: Any, counted: Any) -> Any:
        several = len(what.tables) > 1
        return true(plan, replace(what, kept=()) if several else what, counted)

    patch.setattr(numbers, "_vector", wrong)


MISTAKES: dict[str, tuple[Callable[[Patch], None], Callable[[], None]]] = {
    "rows per finest group": (PER_FINEST, lambda: of_fixed(COUNTED, BY_PAIRS)),
    "totals per finest group": (PER_FINEST, lambda: of_fixed(TOTALS, BY_PAIRS[:1])),
    "not centred": (_uncentred_box, lambda: of_rows("add-remove")),
    "one group": (_one_group, lambda: of_rows("change-one")),
    "one move": (_one_move, lambda: of_rows("change-one")),
    "half of a centred move": (_one_end_of_centred, lambda: of_rows("change-one")),
    "values as rows": (_values_as_rows, of_values),
    "rows moved by nobody": (_rows_moved_by_nobody, lambda: of_rows("change-one")),
}


@pytest.mark.parametrize(
    "case", [case for _, case in MISTAKES.values()], ids=[f"without {name}" for name in MISTAKES]
)
def test_the_rules_hold_of_the_fixed_neighbours(case: Callable[[], None]) -> None:
    case()


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_caught(name: str, monkeypatch: Patch) -> None:
    plant, case = MISTAKES[name]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="declared"):
        case()


def test_vectors_of_other_columns_are_caught(monkeypatch: Patch) -> None:
    _of_other_columns(monkeypatch)
    with pytest.raises(AssertionError, match="does not follow"):
        of_rows("add-remove")


def test_boxes_of_margins_are_attained() -> None:
    """Some individual moves all of the declared boxes of the finest table, and of all rows."""
    asked = individuals.query(COUNTED, SETS[0], BY_PAIRS)
    (way,) = ways_to_measure(asked, PureDP(1))
    most: dict[int, int] = {}
    for pair in fixed(way):
        before, after = (exact_tables(way, f) for f in (pair.before, pair.after))
        for part in vectors(way):
            box = part.task("", part.sensitivity(way.scope), "auto", way.scope).box
            assert box is not None
            short = replace(box, rows=box.rows - 1)
            if outside_box(part, short, joint_changes(part, before, after)):
                most[len(part.columns)] = box.rows
    assert most.keys() >= {0, 2}


def test_one_output_is_drawn_as_it_was() -> None:
    assert not list(vectors(individuals.query(["dp.count()"], SETS[0], BY_PAIRS)))
