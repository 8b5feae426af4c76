"""Means, variances and deviations: what comes of noisy parts, and how wrong it can be."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import Additive
from tests.laws.neighbours import run

LO, HI = -2, 6
KINDS = ["mean", "var", "std"]


def asked(text: str, frame: pl.DataFrame) -> Query:
    private = dp.Session(epsilon=1).protect(frame, dp.Rows())
    query = private.agg(eval(text, {"pl": pl, "dp": dp}))
    found: Query = query._query
    return found


def parts(query: Query, frame: pl.DataFrame) -> list[NDArray[np.int64]]:
    """The exact integers of the parts of the query's one output."""
    counted = run(query, frame.lazy())
    (aggregate,) = query.aggregates
    found = []
    for use in aggregate.uses:
        assert isinstance(use.part, Additive)
        found.append(counted[use.part.table].dense(1))
    return found


def result(query: Query, values: Sequence[NDArray[np.int64]]) -> Any:
    (aggregate,) = query.aggregates
    return aggregate.combine(values).item()


def of_values(text: str, values: Sequence[float | None], noise: Sequence[int] = ()) -> Any:
    """The result when so many steps of noise are added to the parts."""
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    query = asked(text, frame)
    exact = parts(query, frame)
    added = [*noise, *[0] * (len(exact) - len(noise))]
    return result(query, [part + n for part, n in zip(exact, added, strict=True)])


# -------------------------------------------------------------------------------- without noise


@given(st.lists(st.none() | st.floats(-10, 10), max_size=30))
def test_without_noise_they_are_those_of_the_clamped_values(values: list[float | None]) -> None:
    clamped = [min(max(v, LO), HI) for v in values if v is not None]
    bounds = f"({LO}, {HI})"
    mean = of_values(f'pl.col("x").dp_mean({bounds})', values)
    assert mean == pytest.approx(statistics.fmean(clamped), abs=1e-7) if clamped else mean is None
    for ddof, true in ((0, statistics.pvariance), (1, statistics.variance)):
        found = [of_values(f'pl.col("x").dp_{k}({bounds}, ddof={ddof})', values) for k in KINDS[1:]]
        if len(clamped) <= ddof:
            assert found == [None, None]
        else:
            assert found[0] == pytest.approx(true(clamped), abs=1e-6)
            assert found[1] == pytest.approx(math.sqrt(true(clamped)), abs=1e-3)


# ----------------------------------------------------------------------------------- with noise


@pytest.mark.parametrize("count", [-5, -1, 0])
def test_a_noisy_count_below_one_gives_null(count: int) -> None:
    values = [1.0, 2.0, 5.0]
    assert of_values('pl.col("x").dp_mean((-2, 6))', values, [0, count - 3]) is None
    for kind in ("var", "std"):
        assert of_values(f'pl.col("x").dp_{kind}((-2, 6))', values, [0, 0, count - 3]) is None


def test_a_noisy_count_not_above_ddof_gives_null() -> None:
    for ddof in (0, 1, 2):
        for n in (1, 2, 3):
            text = f'pl.col("x").dp_var((-2, 6), ddof={ddof})'
            found = of_values(text, [1.0, 2.0, 3.0], [0, 0, n - 3])
            assert (found is None) == (n <= ddof)


@given(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62), st.integers(-40, 40))
def test_results_stay_within_what_the_bounds_allow(first: int, second: int, count: int) -> None:
    values = [1.0, 5.0, -1.0]
    mean = of_values('pl.col("x").dp_mean((-2, 6))', values, [first, count])
    assert mean is None or LO <= mean <= HI
    for ddof in (0, 1):
        text = f'pl.col("x").dp_var((-2, 6), ddof={ddof})'
        var = of_values(text, values, [first, second, count])
        assert var is None or 0 <= var <= (ddof + 1) * 16
