"""Counts beside distribution functions: no individual moves a level by more than is declared, and
results are those of each by itself.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.cells import WholeCells
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.reconstruction import (
    PrefixReconstruction,
    ways_to_measure,
    with_whole_levels,
)
from dpframe.core.budget import ZCDP, PureDP
from dpframe.core.units import Rows
from dpframe.errors import DPFrameError
from dpframe.optimise.measurements import measurements_of
from dpframe.release import assemble
from dpframe.simulate import exact_parts
from tests.laws import individuals
from tests.laws.amounts import examples
from tests.laws.frames import nasty_frame, wide_columns
from tests.laws.neighbours import UNITS, check_sensitivities, exact_tables, neighbours
from tests.laws.queries import GROUPINGS, STEPS, names_of, query

FUNCTIONS = {
    'pl.col("i64").dp_cdf([-1, 0, 1, 7, 100])': 'pl.col("i64").dp_count()',
    'pl.col("i8").dp_cdf(range(-40, 41))': 'pl.col("i8").dp_count()',
    'pl.col("f64").dp_cdf([-1.0, 0.0, 0.1, 5.0], nonnegative=True)': 'pl.col("f64").dp_count()',
    'pl.col("f32").dp_cdf(70, bounds=(-3, 3))': 'pl.col("f32").dp_count()',
    'pl.col("dec").dp_cdf([0, 1.5])': 'pl.col("dec").dp_count()',
    'pl.col("b").dp_cdf([False, True])': 'pl.col("b").dp_count()',
    'pl.col("d").dp_cdf([date(1970, 1, 1)])': 'pl.col("d").dp_count()',
    'pl.col("u8").dp_cdf(1, bounds=(0, 9))': 'pl.col("u8").dp_count()',
}
"""Distribution functions, and the counts of their values."""
OTHERS = ['pl.col("i64").dp_sum((-3, 8))', 'pl.col("u8").dp_mean((0, 9))', "dp.count() + 1"]


def together(asked: Query) -> list[Query]:
    """The query where counts follow from levels, as it is measured for an epsilon and for a rho."""
    moved = with_whole_levels(asked)
    if moved is asked:
        return []
    return [way for spend in (PureDP(1), ZCDP(1)) for way in ways_to_measure(moved, spend)]


@st.composite
def texts(draw: st.DrawFn) -> list[str]:
    functions = draw(st.lists(st.sampled_from(sorted(FUNCTIONS)), min_size=1, max_size=2))
    counts = draw(
        st.sampled_from(
            [["dp.count()"], [FUNCTIONS[functions[0]]], [FUNCTIONS[functions[0]], "dp.count()"]]
        )
    )
    return [*counts, *functions, *draw(st.lists(st.sampled_from(OTHERS), max_size=1))]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(texts(), st.sampled_from(GROUPINGS), st.lists(st.sampled_from(STEPS), max_size=1), st.data())
@settings(max_examples=10)
def test_neighbours_move_levels_within_what_is_declared(
    unit: Rows, asked: list[str], grouping: str, steps: list[str], data: st.DataObject
) -> None:
    try:
        found = query(asked, unit, grouping, steps)
    except DPFrameError:
        return
    pair = data.draw(neighbours(unit, names_of(found)))
    for way in together(found):
        check_sensitivities(way, pair)


@given(
    st.sampled_from(['pl.col("x").dp_cdf(range(-9, 10))', 'pl.col("y").dp_cdf([0.0, 0.1, 1.5])']),
    st.sampled_from(individuals.GROUPINGS),
    st.lists(st.sampled_from(individuals.LIMITS), max_size=2),
    individuals.neighbours(),
)
@examples(15, 120)
def test_individuals_move_levels_within_what_is_declared(
    function: str, grouping: str, limits: list[str], pair: individuals.Pair
) -> None:
    try:
        found = individuals.query(["dp.count()", function], grouping, limits)
    except DPFrameError:
        return
    for way in together(found):
        individuals.check_limits(way, pair)


@given(texts(), st.sampled_from(GROUPINGS), st.data())
@examples(20, 160)
def test_results_without_noise_are_those_by_themselves(
    asked: list[str], grouping: str, data: st.DataObject
) -> None:
    try:
        found = query(asked, Rows(), grouping)
    except DPFrameError:
        return
    frame = data.draw(neighbours(Rows(), names_of(found))).before
    expected = assemble(found, exact(found, frame))
    for way in together(found):
        assert assemble(way, exact(way, frame)).equals(expected)


def exact(asked: Query, frame: pl.DataFrame) -> Any:
    counted = exact_tables(asked, frame)
    keys = [(use.part, use.mechanism) for use in measurements_of(asked)]
    return exact_parts(asked, keys, counted.of(*(part for part, _ in keys)))


@pytest.mark.parametrize("text", FUNCTIONS)
@pytest.mark.parametrize("of_values", [False, True])
def test_every_distribution_function_has_counts(text: str, of_values: bool) -> None:
    count = FUNCTIONS[text] if of_values else "dp.count()"
    ways = together(query([count, text], Rows(), "f"))
    assert len(ways) == 2
    for way in ways:
        assert all(isinstance(aggregate, PrefixReconstruction) for aggregate in way.aggregates)
        for use in measurements_of(way):
            assert isinstance(use.part, Margin)
            assert isinstance(use.part.table.cells, WholeCells) != of_values


@pytest.mark.parametrize("text", FUNCTIONS)
def test_each_row_is_in_one_of_all_cells(text: str) -> None:
    (function,) = query([text], Rows(), "f").aggregates
    (table,) = function.uses[0].part.tables
    assert table.cells is not None
    frame = nasty_frame(60)
    made = [
        cells.row(wide_columns(frame), pl).alias(name)
        for name, cells in (("some", table.cells), ("all", WholeCells(table.cells)))
    ]
    found = frame.lazy().select(made).collect()
    assert found["all"].equals(found["some"].fill_null(table.cells.size).alias("all"))


def test_what_has_no_count() -> None:
    function = 'pl.col("i64").dp_cdf([0, 1])'
    for asked in (
        ["dp.count()", 'pl.col("i64").dp_cdf([0, 1], mechanism="discrete_laplace")'],
        ['dp.count(mechanism="discrete_laplace")', function],
        ['pl.col("f64").dp_count()', function],
        [function],
        ["dp.count()"],
    ):
        assert not together(query(asked, Rows(), "f"))
    assert not together(query(["dp.count()", function], dp.Rows("change-one"), "f"))  # it is public
    assert together(query(["dp.count()", function], dp.Rows("change-one"), GROUPINGS[1]))
