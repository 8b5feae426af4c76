"""Counts beside histograms: no individual moves cells, or their total, by more than is declared,
and results are those of each by itself.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.reconstruction import CellReconstruction, ways_to_measure, with_totals
from dpframe.core.budget import ZCDP, PureDP
from dpframe.core.units import Rows
from dpframe.errors import DPFrameError
from dpframe.optimise.measurements import measurements_of
from dpframe.release import assemble
from dpframe.simulate import exact_parts
from tests.laws import individuals
from tests.laws.amounts import examples
from tests.laws.neighbours import UNITS, check_sensitivities, exact_tables, neighbours
from tests.laws.queries import GROUPINGS, STEPS, names_of, query

HISTOGRAMS = [
    'pl.col("e").dp_histogram()',
    'pl.col("e").dp_histogram(other=True)',
    'pl.col("s").dp_histogram(["a", "", None])',
    'pl.col("b").dp_histogram([True, False])',
    'pl.col("f64").dp_histogram([-1.0, 0.0, 0.1, 5.0])',
    'pl.col("i64").dp_histogram(3, bounds=(0, 100), other=True)',
    'pl.col("i8").dp_histogram([0, 5], other=True)',
    'pl.col("i8").dp_histogram([-128, 0, 127], nonnegative=True)',
]
OTHERS = ['pl.col("i64").dp_sum((-3, 8))', 'pl.col("u8").dp_mean((0, 9))', "dp.count() + 1"]


def together(asked: Query) -> list[Query]:
    """The query where counts follow from cells, as it is measured for an epsilon and for a rho."""
    moved = with_totals(asked)
    if moved is asked:
        return []
    return [way for spend in (PureDP(1), ZCDP(1)) for way in ways_to_measure(moved, spend)]


texts = st.tuples(
    st.lists(st.sampled_from(HISTOGRAMS), min_size=1, max_size=2),
    st.lists(st.sampled_from(OTHERS), max_size=1),
).map(lambda found: ["dp.count()", *found[0], *found[1]])


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(texts, st.sampled_from(GROUPINGS), st.lists(st.sampled_from(STEPS), max_size=1), st.data())
@settings(max_examples=10)
def test_neighbours_move_cells_and_totals_within_what_is_declared(
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
    st.lists(st.sampled_from(individuals.TEXTS[:21]), max_size=2),
    st.sampled_from(individuals.GROUPINGS),
    st.lists(st.sampled_from(individuals.LIMITS), max_size=2),
    individuals.neighbours(),
)
@examples(15, 120)
def test_individuals_move_cells_and_totals_within_what_is_declared(
    others: list[str], grouping: str, limits: list[str], pair: individuals.Pair
) -> None:
    try:
        asked = ["dp.count()", *[text for text in others if "histogram" in text], *others]
        found = individuals.query(asked, grouping, limits)
    except DPFrameError:
        return
    for way in together(found):
        individuals.check_limits(way, pair)


@given(texts, st.sampled_from(GROUPINGS), st.data())
@settings(max_examples=25)
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


@pytest.mark.parametrize("text", HISTOGRAMS)
def test_every_histogram_has_a_total(text: str) -> None:
    ways = together(query(["dp.count()", text], Rows(), "f"))
    assert len(ways) == 2
    for way in ways:
        assert all(isinstance(aggregate, CellReconstruction) for aggregate in way.aggregates)
        for use in measurements_of(way):
            assert isinstance(use.part, Margin)


def test_what_has_no_total() -> None:
    for texts in (
        ["dp.count()", 'pl.col("e").dp_histogram(mechanism="discrete_laplace")'],
        ['dp.count(mechanism="discrete_laplace")', 'pl.col("e").dp_histogram()'],
        ['pl.col("f64").dp_count()', 'pl.col("e").dp_histogram()'],
        ['pl.col("e").dp_histogram()'],
        ["dp.count()"],
    ):
        assert not together(query(texts, Rows(), "f"))
    exact = query(["dp.count()", 'pl.col("e").dp_histogram()'], dp.Rows("change-one"), "f")
    assert not together(exact)  # the number of all rows is public then
