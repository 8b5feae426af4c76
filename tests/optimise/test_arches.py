"""Which numbers are a count of values, their sum, and the sum of their squares."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpframe.aggregates.measurement import COUNT, Table
from dpframe.aggregates.statistics import GridSum, SquareSum, ValueCount
from dpframe.aggregates.values import numeric_value
from dpframe.core.dtypes import FLOAT64, INT64, DType, domain_of_dtype
from dpframe.core.interval import grid_for, grid_of_squares
from dpframe.core.tree import Column
from dpframe.mechanisms import second_moments
from dpframe.optimise.measurements import arches_of, moments_in


def tables(name: str, half: int = 20, dtype: DType = INT64) -> tuple[Table, Table, Table]:
    """The count of values of a column, their sum, and that of their squares."""
    value = numeric_value(Column(name), {name: domain_of_dtype(dtype)}, "var")
    ends = Fraction(-half), Fraction(half)
    grid = grid_for(*ends, centred=True, integers=dtype.is_integer)
    squares = SquareSum(value, grid, grid_of_squares(grid))
    return Table(ValueCount(Column(name))), Table(GridSum(value, grid)), Table(squares)


X, Y = tables("x"), tables("y", 90)


def test_the_three_are_found_wherever_they_are() -> None:
    count, total, square = X
    assert arches_of([count, total, square]) == ((0, 1, 2),)
    assert arches_of([square, COUNT.table, total]) == ((1, 2, 0),)
    assert arches_of([square, None, total]) == ()
    assert arches_of([count, None, square]) == ()
    assert arches_of([count, total, None]) == ()


def test_values_of_the_column_itself_are_counted_rather_than_rows() -> None:
    count, total, square = X
    assert arches_of([COUNT.table, count, total, square]) == ((1, 2, 3),)
    assert arches_of([Y[0], count, total, square]) == ((1, 2, 3),)
    assert arches_of([Y[0], COUNT.table, total, square]) == ((1, 2, 3),)
    assert arches_of([Y[0], total, square]) == ()


def test_several_may_share_a_count() -> None:
    assert arches_of([COUNT.table, X[1], Y[1], X[2], Y[2]]) == ((0, 1, 3), (0, 2, 4))
    assert arches_of([*X, *Y]) == ((0, 1, 2), (3, 4, 5))


def test_squares_are_those_of_the_same_places() -> None:
    """Of another column, or within other bounds, they tell nothing."""
    assert arches_of([X[0], Y[1], X[2]]) == ()
    assert arches_of([X[0], tables("x", 30)[1], X[2]]) == ()


def test_values_of_types_whose_places_may_be_null_are_counted_as_rows() -> None:
    count, total, square = tables("x", dtype=DType("UInt64"))
    assert arches_of([count, total, square]) == ()
    assert arches_of([COUNT.table, count, total, square]) == ((0, 2, 3),)


def test_few_steps_are_no_arch() -> None:
    assert arches_of(tables("x", 15)) == ()
    assert arches_of(tables("x", 16)) == ((0, 1, 2),)
    assert arches_of(tables("x", 1, FLOAT64)) == ((0, 1, 2),)


def test_squares_of_few_steps_are_none() -> None:
    """Where they are next to the least number above 0 that floats have."""
    value = numeric_value(Column("x"), {"x": domain_of_dtype(FLOAT64)}, "var")
    ends = Fraction(0), Fraction(1e-160)
    grid = grid_for(*ends, centred=True, integers=False)
    squares = grid_of_squares(grid)
    assert grid.hi > 16 > squares.hi
    total, square = Table(GridSum(value, grid)), Table(SquareSum(value, grid, squares))
    assert arches_of([COUNT.table, total, square]) == ()


def test_bounds_around_no_float_are_no_arch() -> None:
    """A row that stays does not move a sum twice as far as one that comes, there."""
    value = numeric_value(Column("x"), {"x": domain_of_dtype(INT64)}, "var")
    grid = grid_for(Fraction(2**62 + 1), Fraction(2**62 + 301), centred=True, integers=True)
    assert grid.lo != -grid.hi
    square = SquareSum(value, grid, grid_of_squares(grid))
    assert square.grid.hi == max(-grid.lo, grid.hi) ** 2
    assert arches_of([COUNT.table, Table(GridSum(value, grid)), Table(square)]) == ()


def test_no_more_than_eight() -> None:
    many = [table for i in range(10) for table in tables(f"c{i}")]
    assert len(arches_of(many)) == 8


@pytest.mark.parametrize("sharing", [1, 2, 3])
def test_moments_are_those_of_the_hull(sharing: int) -> None:
    arches = tuple((0, 1 + i, 5 + i) for i in range(sharing))
    found = moments_in(9, arches)
    count, total, square = second_moments(sharing)
    assert found[0] == count
    assert found[1 : 1 + sharing] == [total] * sharing
    assert found[5 : 5 + sharing] == [square] * sharing
    assert found.count(Fraction(1, 3)) == 9 - 1 - 2 * sharing
