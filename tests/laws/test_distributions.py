"""Levels of distribution functions: nobody with several rows moves them further than declared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.margins import Margin, RootSums
from dpframe.aggregates.reconstruction import ways_to_measure
from dpframe.api.query import parts
from dpframe.audit.likelihood import stated_loss
from dpframe.audit.neighbours import worst_neighbours
from dpframe.core.budget import ZCDP, ApproxDP, PureDP
from dpframe.core.units import Rows
from dpframe.kernel.plan import Running, Vector
from dpframe.optimise.measurements import measurements_of
from dpframe.pipeline import plan
from tests.laws import kernel_mistakes, queries
from tests.laws.amounts import examples
from tests.laws.individuals import (
    GROUPINGS,
    KEYS,
    LIMITS,
    STEPS,
    accepted,
    check_limits,
    frame_of,
    neighbours,
    query,
    reached,
)
from tests.laws.neighbours import Pair, check_sensitivities, exact_tables, vector
from tests.laws.neighbours import neighbours as neighbours_by_rows

TEXTS = [
    'pl.col("x").dp_cdf([-9, -1, 0, 1, 5, 100])',
    'pl.col("x").dp_cdf(range(-40, 41))',
    'pl.col("y").dp_cdf(30, bounds=(-3, 3))',
    'pl.col("y").dp_cdf([-2.5, 0.0, 0.1, 1.5], nonnegative=True)',
    'pl.col("d").dp_cdf([date(1970, 1, 1), date(2000, 1, 1)])',
    'pl.col("b").dp_cdf([False, True])',
    'pl.col("x").dp_cdf(1, bounds=(0, 1))',
]
"""With few and many edges, so that one level is measured or several."""
MANY = 'pl.col("x").dp_cdf(range(-40, 41))'
BY_G = f'f.group_by("g", keys={KEYS["g"]})'


def measured(asked: Query) -> list[Query]:
    """As it is measured where an epsilon is shared, and where a rho is."""
    return [*ways_to_measure(asked, ApproxDP(1, "1e-6")), *ways_to_measure(asked, PureDP(1))]


@given(
    st.sampled_from(TEXTS),
    st.sampled_from(GROUPINGS),
    st.lists(st.sampled_from(STEPS), max_size=2),
    st.lists(st.sampled_from(LIMITS), min_size=1, max_size=2),
    neighbours(),
    st.integers(0, 2**64 - 1),
)
@examples(30, 240)
def test_nobody_moves_levels_further_than_they_declare(
    text: str, grouping: str, steps: list[str], limits: list[str], pair: Pair, salt: int
) -> None:
    asked = accepted(text, grouping, [*steps, *limits])
    if asked is not None:
        for way in measured(asked):
            check_limits(way, pair, salt)


def rows(groups: list[Any], values: list[int], each: int, who: int = 1) -> list[dict[str, Any]]:
    return [{"id": who, "g": g, "x": x} for g in groups for x in values for _ in range(each)]


def person(extra: list[dict[str, Any]]) -> Pair:
    others = rows(["a", "b"], [0, 5], 2, who=2)
    return Pair(frame_of(others), frame_of(others + extra))


LIMITED = ["f.limit_groups(2, by='g')", "f.limit_rows(3, by='g')"]
WORST = [
    person(rows(["a", "b"], [-40], 3)),  # all in one run of each level, and in the first cell
    person(rows(["a", "b"], [-40, 0, 39], 1)),  # in different cells
    person(rows(["a", "b", "c", None], [-40, -39, 0, 100], 40)),
]


def test_what_levels_declare_is_reached() -> None:
    """By someone whose rows are all in one cell of as many groups as there may be."""
    asked = query([MANY], BY_G, LIMITED)
    for way in measured(asked):
        uses = measurements_of(way)
        for use, found in zip(uses, reached(way, WORST), strict=True):
            declared = use.sensitivity
            assert (declared.l1, declared.l2_squared) == (found.l1, found.l2_squared)
            assert declared.linf == found.linf == 3 / use.part.step
            if isinstance(use.part, Margin):
                assert (declared.l1, declared.l2_squared) == (6, 18)


def test_levels_add_up() -> None:
    """The sums of a level are those of neighbours of the cells."""
    asked = query([MANY], BY_G, LIMITED)
    (several,) = [way for way in ways_to_measure(asked, PureDP(1)) if len(measurements_of(way)) > 1]
    (bound,) = several.aggregates
    assert isinstance(bound, BoundDistribution)
    for pair in WORST:
        counted = exact_tables(several, pair.after)
        for use in measurements_of(several):
            part = use.part
            assert isinstance(part, Margin)
            cells = counted[part.table].dense(bound.cells.size).tolist()
            width = part.axis.width(part.level)
            sums = [sum(line[i : i + width]) for line in cells for i in range(0, len(line), width)]
            assert vector(part, counted) == sums


def test_the_square_root_is_drawn_where_a_rho_is_shared() -> None:
    """Of many edges; of few, of pure epsilon, and of Laplace noise the levels are."""
    for text, root in ((MANY, True), (MANY[:-1] + ', mechanism="discrete_laplace")', False)):
        asked = query([text], BY_G, LIMITED)
        found = [[use.part for use in measurements_of(way)] for way in measured(asked)]
        assert any(isinstance(part, RootSums) for parts in found for part in parts) == root
        assert all(isinstance(part, Margin) for part in found[-1])  # of pure epsilon


# ------------------------------------------------------------------- the square root, of rows

ADJACENCIES = ["add-remove", "change-one"]


def roots(asked: Query) -> list[Query]:
    """The ways to measure it that have a square root."""
    ways = ways_to_measure(asked, ZCDP(1))
    return [way for way in ways if any(_is_root(use.part) for use in measurements_of(way))]


def _is_root(part: object) -> bool:
    return isinstance(part, RootSums)


@examples(20, 500)
@given(
    st.sampled_from(ADJACENCIES),
    st.integers(1, 3),
    st.sampled_from(queries.GROUPINGS),
    st.lists(st.sampled_from(queries.STEPS), max_size=2),
    st.data(),
)
def test_rows_move_the_square_root_no_further_than_declared(
    adjacency: str, contributions: int, grouping: str, steps: list[str], data: st.DataObject
) -> None:
    """Rows that come and go, or change, in one group or several, and several at a time."""
    unit = Rows(adjacency, contributions)
    asked = queries.accepted('pl.col("i8").dp_cdf(range(-128, 127, 2))', unit, grouping, steps)
    assume(asked is not None)
    assert asked is not None
    pair = data.draw(neighbours_by_rows(unit, queries.names_of(asked)))
    for way in roots(asked):
        check_sensitivities(way, pair)


FEW = pl.DataFrame({"g": ["a", "b"], "v": [3, 4]})


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_worst_rows_spend_what_the_square_root_costs(
    adjacency: Any, grouped: bool, contributions: int
) -> None:
    unit = Rows(adjacency, contributions)
    frame = dp.Session(rho=9).protect(FEW, unit)
    people = frame.group_by("g", keys=["a", "b"]) if grouped else frame
    query, _, _ = parts(people.agg(c=pl.col("v").dp_cdf(range(100))))
    prepared = plan(query, ZCDP("0.5"), None)
    assert any(_is_root(draw.measurement) for draw in prepared.draws)
    losses = [stated_loss(prepared, *pair.counted) for pair in worst_neighbours(prepared)]
    # of one group, where rows change, the audit tries other pairs of steps than the worst
    assert 0.96 * 0.5 < max(losses) <= 0.5 * (1 + 1e-9)


# ------------------------------------------------------------------------- the law can fail


MISTAKES = {
    "one row of each": kernel_mistakes.bounds(
        lambda found, *_: replace(found, rows=1, per_group=1)
    ),
    "one group": kernel_mistakes.bounds(lambda found, *_: replace(found, groups=1)),
    "wide runs are free": kernel_mistakes.norms_where(
        kernel_mistakes.has_runs, kernel_mistakes.are_free
    ),
    "rows spread over runs": kernel_mistakes.norms_where(
        lambda what: isinstance(what, Vector), kernel_mistakes.never_meet
    ),
    "the square root moves as cells do": kernel_mistakes.norms_where(
        lambda what: isinstance(what, Running),
        lambda found: replace(found, l2_squared=2 * found.linf**2),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_all(measured(query([MANY], BY_G, LIMITED)))
    MISTAKES[name](monkeypatch)
    ways = measured(query([MANY], BY_G, LIMITED))  # which know no sensitivity yet
    with pytest.raises(AssertionError, match="declared"):
        check_all(ways)


def check_all(ways: list[Query]) -> None:
    for way in ways:
        for pair in WORST:
            check_limits(way, pair)
