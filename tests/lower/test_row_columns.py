"""What statistics make of a row, and which of them share it."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from dpframe.aggregates.statistics import GridSum, RowCount, SquareSum, ValueCount
from dpframe.aggregates.values import numeric_value
from dpframe.core.dtypes import FLOAT64, INT64, DType, domain_of_dtype
from dpframe.core.interval import grid_for, grid_of_squares
from dpframe.core.tree import Column
from dpframe.lower.tables import row_columns


def of(name: str, dtype: DType = FLOAT64) -> tuple[ValueCount, GridSum, SquareSum]:
    value = numeric_value(Column(name), {name: domain_of_dtype(dtype)}, "var")
    grid = grid_for(Fraction(-2), Fraction(3), centred=True, integers=dtype.is_integer)
    squares = SquareSum(value, grid, grid_of_squares(grid))
    return ValueCount(Column(name)), GridSum(value, grid), squares


COLUMNS = {"x": domain_of_dtype(FLOAT64), "y": domain_of_dtype(INT64)}


def test_squares_are_made_of_the_places_that_are_added_up() -> None:
    count, total, square = of("x")
    own, squares, made = row_columns([square, RowCount(), total, count], COLUMNS, pl)
    assert list(own) == ["r2"]
    (expression,) = squares
    assert expression.meta.output_name() == "r0"
    assert {*expression.meta.root_names()} == {"r2"}
    assert made == ["r0", "r1", "r2", "r2"]


def test_values_are_counted_by_the_places_that_are_squared() -> None:
    """Rather than by those within other bounds, whatever their order."""
    count, total, square = of("x")
    wide = grid_for(Fraction(-9), Fraction(9), centred=True, integers=False)
    other = GridSum(total.value, wide)
    assert row_columns([other, count, total, square], COLUMNS, pl)[2] == ["r0", "r2", "r2", "r3"]
    assert row_columns([other, count, total], COLUMNS, pl)[2] == ["r0", "r0", "r2"]


@pytest.mark.parametrize("beside", ["nothing", "another column", "other bounds"])
def test_squares_alone_are_made_of_the_value(beside: str) -> None:
    _, total, square = of("x")
    other = {
        "nothing": RowCount(),
        "another column": of("y", INT64)[1],
        "other bounds": GridSum(
            total.value, grid_for(Fraction(0), Fraction(3), centred=True, integers=False)
        ),
    }[beside]
    own, squares, _ = row_columns([square, other], COLUMNS, pl)
    assert "r0" in own
    assert not squares
    assert {*own["r0"].meta.root_names()} == {"x"}


@pytest.mark.parametrize("beside", [True, False])
def test_both_ways_give_the_same(beside: bool) -> None:
    _, total, square = of("x")
    statistics = [square, total] if beside else [square]
    own, squares, made = row_columns(statistics, COLUMNS, pl)
    values = [None, float("nan"), -9.0, -2.0, -0.0, 0.5, 0.7, 2.9999, 3.0, float("inf")]
    frame = pl.LazyFrame({"x": values}).with_columns(**own).with_columns(*squares)
    found = frame.select(made[0]).collect().to_series().to_list()
    places = frame.select(GridSum(square.value, square.inner).row(COLUMNS, pl)).collect()
    for place, made_square in zip(places.to_series().to_list(), found, strict=True):
        if place is None:
            assert made_square is None
            continue
        top, largest = square.grid.hi, square.inner.hi**2
        assert (made_square + top) * largest >= 2 * place**2 * top
        assert abs((made_square + top) / (2 * top) - place**2 / largest) < 2.0**-28


def test_squares_fit_in_64_bits() -> None:
    """At the largest places that there are."""
    value = numeric_value(Column("x"), {"x": domain_of_dtype(FLOAT64)}, "var")
    grid = grid_for(Fraction(-1), Fraction(1), centred=True, integers=False)
    assert grid.hi == 2**30
    square = SquareSum(value, grid, grid_of_squares(grid))
    frame = pl.DataFrame({"x": [-1.0, 0.0, 1.0]}).select(square.row(COLUMNS, pl))
    assert frame.to_series().to_list() == [2**30, 2 - 2**30, 2**30]
