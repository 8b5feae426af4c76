"""Bounds that are found: the bins with more than noise in them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.cells import BinCells


def found(values: Any, epsilon: float = 0.2, **unit: Any) -> Any:
    frame = pl.DataFrame({"x": values})
    session = dp.Session(epsilon=epsilon)
    return session.protect(frame, dp.Rows(**unit)).dp_bounds("x").collect(epsilon=epsilon).item()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 70.0] * 2000, [2.0, 128.0]),
        ([-3.0, 0.3] * 2000, [-4.0, 0.5]),
        ([0] * 3000, [0, 1]),
        ([2**62] * 3000, [2**62, 2**63 - 1]),
        ([-(2**63)] * 3000, [-(2**63), -(2**62)]),
        ([float("nan"), None, 5.0] * 3000, [4.0, 8.0]),
        ([1e300, 8.0] * 3000, [8.0, 16.0]),  # what is beyond the bins does not count
    ],
)
def test_they_hold_what_is_there(values: list[Any], expected: list[float]) -> None:
    answers = [found(values) for _ in range(20)]
    same = [answer is not None and answer.to_list() == expected for answer in answers]
    assert sum(same) >= 14  # 95% each


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Int64])
def test_edges_are_powers_of_two_in_their_order(dtype: Any) -> None:
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": dtype}), dp.Rows())
    query = frame.dp_bounds("x")._query
    assert query.outputs[0].only is not None
    (use,) = query.outputs[0].only.uses
    cells = use.part.tables[0].cells
    assert isinstance(cells, BinCells)
    above = [edge for edge in cells.edges if edge > 0]
    least, most = (0, 63) if dtype == pl.Int64 else (-30, 100)
    expected = [Fraction(2) ** k for k in range(least, most + 1)]
    expected[-1] -= dtype == pl.Int64
    assert above == expected
    whole_end = [-(2**63)] if dtype == pl.Int64 else [-(2**100)]
    assert list(cells.edges) == [*whole_end, *(-e for e in above[-2::-1]), 0, *above]


def test_few_values_drown() -> None:
    assert sum(found([3.0] * 5) is None for _ in range(20)) >= 14
    empty = pl.Series([], dtype=pl.Float64)
    assert sum(found(empty) is None for _ in range(20)) >= 14


def test_a_few_far_out_are_left_out() -> None:
    values = np.append(np.full(5000, 10.0), [1e9] * 3)
    assert sum(found(values).to_list() == [8.0, 16.0] for _ in range(20)) >= 14


def test_the_plan_is_that_of_a_histogram() -> None:
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": pl.Float64}), dp.Rows())
    plan = frame.dp_bounds("x").plan(epsilon=1)
    (release,) = plan.releases
    assert release.aggregate == "bounds"
    assert release.sensitivity == dp.Sensitivity(1, 1.0, 1.0, 1.0)
    assert release.entries == 262
    with pytest.raises(dp.UnsupportedOperation, match="depends on the data"):
        plan.accuracy("x")


@pytest.mark.parametrize("dtype", [pl.Date, pl.Boolean, pl.String, pl.Duration("us")])
def test_only_of_numbers(dtype: Any) -> None:
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": dtype}), dp.Rows())
    with pytest.raises(dp.UnsupportedOperation):
        frame.dp_bounds("x")
