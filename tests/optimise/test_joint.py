"""Ways to draw several sums together: errors, and factors of what is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.measurement import Additive, JointSums, Rebuilt
from dpframe.optimise import measurements as joint
from dpframe.optimise.measurements import (
    ball_impact,
    box_impact,
    coordinates_of,
    effects_of,
    fine_scales,
    measurements_of,
    root,
    ways_of,
)
from tests.laws.neighbours import query_of

X: Any = pl.col("x")


def test_the_error_of_the_best_noise() -> None:
    """One number errs as it does by itself; the roots of what several need add up."""
    for need in (Fraction(4), Fraction(1, 16)):
        assert box_impact([need]) == ball_impact([need]) == need
    assert ball_impact([Fraction(1), Fraction(4)]) == 9
    assert ball_impact([Fraction(1)] * 5) == 25
    assert box_impact([Fraction(1), Fraction(4)]) == 10


@pytest.mark.parametrize("bounds", [(0, 10), (-1, 4)])
def test_numbers_in_a_box_are_as_coarse_as_rows_move_them(bounds: tuple[int, int]) -> None:
    """Noise in steps of a half would cost nothing, but whole numbers of twice the size."""
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": pl.Int64}), dp.Rows())
    query = query_of(frame.agg(dp.count(), X.dp_sum(bounds).alias("s")))
    found = {}
    for way in ways_of(query, measurements_of(query), "least error"):
        for one in way.draws:
            if isinstance(one.measurement, JointSums):
                found[one.mechanism] = one.measurement.widths
    assert found["auto"] == (1, 5)
    assert min(found["discrete_gaussian"]) > 1


@pytest.mark.parametrize(
    ("factors", "divisor"),
    [((1, 0), 2), ((1, 1), 2), ((3, -5), 6), ((2**40, 1), 2**41), ((7, 2), 1)],
)
def test_rebuilt_numbers_are_the_nearest_and_halves_wait_for_a_coin(
    factors: tuple[int, int], divisor: int
) -> None:
    noisy = [(a, b) for a in range(-7, 8) for b in (-4, -1, 0, 3, 2**40)]
    whole, half = Rebuilt(factors, divisor).of(np.array(noisy, dtype=np.int64))
    for z, found, coin in zip(noisy, whole.tolist(), half.tolist(), strict=True):
        exact = Fraction(sum(f * x for f, x in zip(factors, z, strict=True)), divisor)
        between = exact - math.floor(exact) == Fraction(1, 2)
        assert coin == between
        assert found == (math.floor(exact) if between else round(exact))


@pytest.mark.parametrize("width", [1, 5, 3_000_000])
def test_errors_are_relative_to_what_a_row_adds(width: int) -> None:
    """A step of a sum is 1 / width of that, and its square what a variance of 1 does."""
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": pl.Int64}), dp.Rows())
    query = query_of(frame.agg(dp.count(), X.dp_sum((0, width)).alias("s")))
    (_, count), (_, total) = effects_of(query, measurements_of(query))
    assert [math.exp(effect) for _, effect in count] == pytest.approx([1.0])
    assert [math.exp(effect) for _, effect in total] == pytest.approx([1 / width**2])


@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize("rows", ["all", "some", "groups"])
@pytest.mark.parametrize("bounds", [(0, 10), (5, 10), (-10, 2)])
def test_of_numbers_in_a_box_those_are_drawn_that_err_least(
    bounds: tuple[int, int], rows: str, adjacency: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums that are centred on the number of rows, or as they are."""
    schema = {"x": pl.Int64, "y": pl.Int64, "g": pl.String}
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=schema), dp.Rows(adjacency))
    outputs = [dp.sum("x", bounds), dp.sum("y", bounds)]
    if rows == "groups":
        query = frame.group_by("g", keys=["a", "b"]).agg(*outputs)
    else:
        query = (frame if rows == "all" else frame.filter(X > 3)).agg(*outputs)

    def accuracy() -> float:
        return sum(one.accuracy(0.95) for one in query.plan(epsilon=1).releases)

    chosen, others = accuracy(), []
    for place in (0, -1):
        monkeypatch.setattr(joint, "least", lambda offered, *_, place=place: offered[place])
        others.append(accuracy())
    assert chosen == min(others)


def test_gaussian_noise_on_numbers_twice_as_fine_errs_by_half_as_many_values() -> None:
    """Rows move them twice as far, so nothing changes; finer numbers alone cost the others more."""
    frame = dp.Session(epsilon=1).protect(
        pl.LazyFrame(schema={"x": pl.Int64}), dp.Rows("change-one")
    )
    query = query_of(frame.filter(X > 3).agg(dp.sum("x", (0, 9)), dp.count()))
    tables = [use.part.table for use in measurements_of(query) if isinstance(use.part, Additive)]
    shares = [(table, Fraction(1)) for table in tables]
    for drawn in coordinates_of(query.scope, tables, 1):
        scales = drawn.scales(shares, 1)
        expected = drawn.impacts(shares, scales)[1]
        assert drawn.impacts(shares, [2 * scale for scale in scales])[1] == expected
        assert drawn.impacts(shares, [scales[0], 64 * scales[1]])[1] > expected


@pytest.mark.parametrize("width", [1, 1 << 10, 1 << 40])
def test_factors_are_fine_and_no_larger_than_need_be(width: int) -> None:
    """The least is 256, or less where numbers would overflow for fewer than 2**32 rows."""
    needs = [Fraction(1), Fraction(width) ** 2]
    wanted = [math.sqrt(float(root(need))) for need in needs]
    factors = fine_scales(wanted, (1, width))
    assert 4 <= min(factors) <= 256
    assert max(f * w for f, w in zip(factors, (1, width), strict=True)) < 1 << 43
    if width < 1 << 20:
        assert min(factors) == 256
