"""The grid: errors of a value, room for sums, and the expression that places values on it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpframe.aggregates.statistics import SquareSum, quantise
from dpframe.aggregates.values import numeric_value
from dpframe.core.dtypes import FLOAT64, INT64, DType, domain_of_dtype
from dpframe.core.interval import RESOLUTION_BITS, Grid, grid_for, grid_of_squares
from dpframe.core.tree import Column
from dpframe.kernel.plan import Grid as KernelGrid

MOST_ROWS = 2**32
"""More than Polars indexes."""
BEYOND_INT64 = 2**63

numbers = st.one_of(
    st.floats(-1e30, 1e30).map(Fraction),
    st.integers(-(2**63), 2**63 - 1).map(Fraction),
    st.sampled_from([0, 1, -1, 2**30, 2**30 + 1, 2**62, -(2**63), 2**63 - 1]).map(Fraction),
    st.fractions(-1, 1),
)


@st.composite
def grids(draw: st.DrawFn) -> tuple[Fraction, Fraction, bool, Grid]:
    """Bounds, whether values are whole numbers, and the grid."""
    ends = sorted([draw(numbers), draw(numbers)])
    integers = draw(st.booleans())
    if integers:
        ends = [Fraction(math.floor(end)) for end in ends]
    lo, hi = ends
    grid = grid_for(lo, hi, centred=draw(st.booleans()), integers=integers)
    return lo, hi, integers, grid


@given(grids())
def test_the_step_is_a_power_of_two(made: tuple[Fraction, Fraction, bool, Grid]) -> None:
    *_, grid = made
    p, q = grid.step.numerator, grid.step.denominator
    assert p & (p - 1) == 0
    assert q & (q - 1) == 0
    assert float(grid.step) == grid.step
    assert float(1 / grid.step) == 1 / grid.step
    assert float(grid.centre) == grid.centre


@given(grids())
def test_both_bounds_are_on_the_grid_or_just_inside(
    made: tuple[Fraction, Fraction, bool, Grid],
) -> None:
    """Or, around a middle that is no float, by as much more as that is off on both sides."""
    lo, hi, integers, grid = made
    room = grid.step
    if grid != grid_for(lo, hi, centred=False, integers=integers):
        room += 2 * abs((lo + hi) / 2 - grid.centre)
    assert 0 <= lo - (grid.centre + grid.lo * grid.step) < room
    assert 0 <= (grid.centre + grid.hi * grid.step) - hi < room


@given(numbers, numbers, st.booleans())
def test_a_grid_around_a_centre_is_as_long_on_both_sides(
    one: Fraction, other: Fraction, integers: bool
) -> None:
    """Where the middle is a float, or next to one by less than a step."""
    lo, hi = sorted([one, other])
    grid = grid_for(lo, hi, centred=True, integers=integers and lo.denominator == 1)
    if 2 * abs((lo + hi) / 2 - grid.centre) < grid.step / 2:
        assert grid.lo == -grid.hi
    assert abs(grid.lo + grid.hi) != 1


@given(numbers, numbers, st.integers(10, 30), st.integers(0, 2**30))
def test_squares_are_never_below_those_of_their_places(
    one: Fraction, other: Fraction, bits: int, place: int
) -> None:
    """In parts of the largest; and no more than one above where they are shortened."""
    lo, hi = sorted([one, other])
    assume(hi > lo)
    inner = grid_for(lo, hi, centred=True, integers=False, bits=bits)
    squares = grid_of_squares(inner, bits)
    largest = max(-inner.lo, inner.hi)
    place = min(place, largest)
    (made,) = pl.select(square_sum(inner, squares).of_places(pl.lit(place, pl.Int64))).to_series()
    assert squares.lo == -squares.hi <= made <= squares.hi <= 2**bits
    assert (made + squares.hi) * largest**2 >= 2 * squares.hi * place**2
    about = (made * squares.step + squares.centre) - (place * inner.step) ** 2
    assert -2 * squares.step <= about <= 2 * squares.step or squares.hi == 1


@pytest.mark.parametrize(
    ("dtype", "lo", "hi", "is_exact"),
    [
        (INT64, 17, 90, True),
        (INT64, -(2**20), 2**20, False),  # squares are shortened
        (INT64, 0, 2**50 - 3, False),  # so are values
        (FLOAT64, 0, 8, False),
        (FLOAT64, Fraction(-1, 3), 5, False),
    ],
)
def test_squares_are_off_by_no_more_than_their_bias(
    dtype: DType, lo: Fraction, hi: Fraction, is_exact: bool
) -> None:
    whole = dtype == INT64
    inner = grid_for(Fraction(lo), Fraction(hi), centred=True, integers=whole)
    square = square_sum(inner, grid_of_squares(inner), dtype)
    values: list[Any] = [float(x) for x in np.linspace(float(lo), float(hi), 999)]
    if whole:
        values = sorted({lo, hi, *(round(x) for x in values)})
    column = pl.Series("x", values, dtype=pl.Int64 if whole else pl.Float64)
    places = column.to_frame().select(square.place(pl.col("x"), pl)).to_series()
    off = [
        abs(place * square.grid.step + square.grid.centre - (Fraction(x) - inner.centre) ** 2)
        for x, place in zip(values, places.to_list(), strict=True)
    ]
    assert max(off) <= square.bias * (1 + Fraction(1, 2**20))
    assert (square.bias == 0) == is_exact


def test_roundings_of_a_value_and_of_its_square_add_up() -> None:
    """Of a value near its bound and halfway between two places, whose square is so as well."""
    inner = grid_for(Fraction(0), Fraction(8), centred=True, integers=False)
    square = square_sum(inner, grid_of_squares(inner))
    x = float(inner.centre + (inner.hi - 2**14 - Fraction(49, 100)) * inner.step)
    place = pl.DataFrame({"x": [x]}).select(square.place(pl.col("x"), pl)).item()
    off = abs(place * square.grid.step + square.grid.centre - (Fraction(x) - inner.centre) ** 2)
    assert 3 * square.grid.step < off <= square.bias


def square_sum(inner: Grid, squares: Grid, dtype: DType = FLOAT64) -> SquareSum:
    """Of a column."""
    tree = Column("x")
    return SquareSum(numeric_value(tree, {"x": domain_of_dtype(dtype)}, "var"), inner, squares)


@given(grids())
def test_the_step_is_small_beside_the_bounds(made: tuple[Fraction, Fraction, bool, Grid]) -> None:
    """At most 2**-29 of what a row can add, or 1 for whole numbers (1/2 around their centre); and
    no finer than floats are.
    """
    lo, hi, integers, grid = made
    reach = max(abs(lo - grid.centre), abs(hi - grid.centre))
    assume(reach)
    finest = max(reach * Fraction(1, 2 ** (RESOLUTION_BITS - 1)), Fraction(1, 2**1022))
    assert grid.step <= (max(finest, 1) if integers else finest)
    assert grid.bias_per_row == grid.step / 2


@given(grids())
def test_sums_of_any_frame_fit_in_64_bits(made: tuple[Fraction, Fraction, bool, Grid]) -> None:
    *_, grid = made
    assert max(abs(grid.lo), abs(grid.hi)) <= 2**RESOLUTION_BITS
    assert MOST_ROWS * 2**RESOLUTION_BITS <= BEYOND_INT64 // 2
    assert grid.node == KernelGrid(grid.step, grid.centre, grid.lo, grid.hi)


@given(st.integers(-(2**29), 2**29), st.integers(0, 2**29), st.booleans())
def test_whole_numbers_within_a_billion_are_exact(lo: int, width: int, centred: bool) -> None:
    grid = grid_for(Fraction(lo), Fraction(lo + width), centred=centred, integers=True)
    assert grid.is_exact
    assert grid.step in (1, Fraction(1, 2))
    for x in (lo, lo + width // 3, lo + width):
        assert ((x - grid.centre) / grid.step).denominator == 1
    if not centred:
        assert (grid.step, grid.centre) == (1, 0)


def test_a_centre_halves_what_a_row_can_add() -> None:
    plain = grid_for(Fraction(17), Fraction(90), centred=False, integers=True)
    centred = grid_for(Fraction(17), Fraction(90), centred=True, integers=True)
    assert max(-plain.lo, plain.hi) * plain.step == 90
    assert max(-centred.lo, centred.hi) * centred.step == Fraction(73, 2)
    assert centred.centre == Fraction(107, 2)


def test_bounds_of_no_width() -> None:
    for value in (0, 7, -3):
        grid = grid_for(Fraction(value), Fraction(value), centred=False, integers=True)
        assert (grid.lo, grid.hi) == (value, value)
    centred = grid_for(Fraction(7), Fraction(7), centred=True, integers=True)
    assert (centred.lo, centred.hi) == (0, 0)


def test_bounds_next_to_zero_have_a_grid() -> None:
    grid = grid_for(Fraction(0), Fraction(5e-324), centred=False, integers=False)
    assert math.isfinite(float(1 / grid.step))
    assert grid.hi >= 1


# ----------------------------------------------------------------------- values on the grid


def place(values: list[float] | list[int], grid: Grid, whole: bool) -> list[int | None]:
    series = pl.Series("x", values, dtype=pl.Int64 if whole else pl.Float64)
    placed = series.to_frame().select(quantise(pl.col("x"), grid, whole, pl)).to_series()
    assert placed.dtype == pl.Int64
    return placed.to_list()


floats = st.one_of(st.floats(), st.floats(-10, 10), st.sampled_from([math.inf, -math.inf, -0.0]))


@given(grids(), st.lists(floats, min_size=1, max_size=20))
def test_every_float_lands_within_the_bounds(
    made: tuple[Fraction, Fraction, bool, Grid], values: list[float]
) -> None:
    """And, unless it is at a tie or its difference from the centre rounds, on the nearest point."""
    *_, grid = made
    for x, q in zip(values, place(values, grid, False), strict=True):
        if math.isnan(x):
            assert q is None
            continue
        assert q is not None
        assert grid.lo <= q <= grid.hi
        if math.isinf(x):
            assert q == (grid.hi if x > 0 else grid.lo)
            continue
        true = (Fraction(x) - grid.centre) / grid.step
        true = min(max(true, Fraction(grid.lo)), Fraction(grid.hi))
        rounded = abs(Fraction(x)) + abs(grid.centre)
        slack = Fraction(1, 2**20) + rounded / grid.step / 2**51
        assert abs(q - true) <= Fraction(1, 2) + slack


@given(grids(), st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_every_integer_lands_within_the_bounds(
    made: tuple[Fraction, Fraction, bool, Grid], values: list[int]
) -> None:
    _, _, integers, grid = made
    assume(integers)
    for x, q in zip(values, place(values, grid, True), strict=True):
        assert q is not None
        assert grid.lo <= q <= grid.hi
        true = min(max((x - grid.centre) / grid.step, Fraction(grid.lo)), Fraction(grid.hi))
        slack = 0 if grid.step <= 1 and abs(grid.centre) < 2**52 and abs(x) < 2**52 else 1
        assert abs(q - true) <= Fraction(1, 2) + slack + (abs(x) + abs(grid.centre)) / 2**52


@pytest.mark.parametrize(
    ("lo", "hi"),
    [
        (0, 2**63 - 1),
        (-(2**63), 2**63 - 1),
        (-(2**63), 0),
        (2**62, 2**63 - 1),
        (-(2**63), -(2**62)),
        (2**63 - 2, 2**63 - 1),
    ],
)
@pytest.mark.parametrize("centred", [False, True])
def test_nothing_wraps_at_the_limits_of_int64(lo: int, hi: int, centred: bool) -> None:
    grid = grid_for(Fraction(lo), Fraction(hi), centred=centred, integers=True)
    ends = [-(2**63), 2**63 - 1, 0, lo, hi]
    placed = place(ends, grid, True)
    assert placed[0] == grid.lo
    assert placed[1] == grid.hi
    for x, q in zip(ends, placed, strict=True):
        assert q is not None
        back = grid.centre + q * grid.step
        clipped = min(max(x, lo), hi)
        assert abs(back - clipped) <= grid.step + 2**11  # a float of that size has steps of 2**10
    many = np.full(2**20, placed[1], dtype=np.int64)
    assert int(many.sum()) == 2**20 * grid.hi


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(
    ("lo", "hi"),
    [(2**63, 2**63), (2**63, 2**65), (2**63 - 1, 2**63 + 1), (-(2**65), -(2**63) - 1)],
)
def test_bounds_beyond_int64_take_all_values_to_one_end(lo: int, hi: int, centred: bool) -> None:
    grid = grid_for(Fraction(lo), Fraction(hi), centred=centred, integers=True)
    for x, q in zip(ends := [-(2**63), -1, 0, 2**63 - 1], place(ends, grid, True), strict=True):
        assert q is not None
        back = grid.centre + q * grid.step
        assert abs(back - min(max(x, lo), hi)) <= grid.step + 2**13


def test_nulls_stay_null() -> None:
    grid = grid_for(Fraction(0), Fraction(1), centred=False, integers=False)
    frame = pl.DataFrame({"x": [None, 0.5, math.nan]})
    placed = frame.select(quantise(pl.col("x"), grid, False, pl)).to_series()
    assert placed.to_list() == [None, 2**29, None]
