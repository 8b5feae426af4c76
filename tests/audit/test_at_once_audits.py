"""Audits of quantiles that are chosen at once: exact laws of tables that lowering makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from tests.laws.neighbours import exact_tables, query_of
from tests.release.at_once import planned
from tests.release.test_at_once_privacy import assert_covered, neighbours, told_apart

X: Any = pl.col("x")
COUNTS = [100, 200, 0, 0, 200, 100]


def lowered(counts: list[int], unit: Any) -> list[int]:
    """How many rows the exact table has at each point; ends come from beyond them, and nulls are
    nowhere.
    """
    points = np.repeat(np.arange(len(counts)), counts)
    values = np.where(points == 0, -7, np.where(points == len(counts) - 1, 99, points))
    frame = pl.DataFrame({"x": [None, *values.tolist()]}, schema={"x": pl.Int64})
    people = dp.Session(epsilon=1).protect(frame, unit)
    asked = X.dp_quantile(["1/3", "2/3"], bounds=(0, len(counts) - 1))
    (table,) = exact_tables(query_of(people.agg(asked)), frame).values()
    found: list[int] = table.dense(len(counts))[0].tolist()
    return found


@pytest.mark.parametrize("unit", [dp.Rows(), dp.Rows("change-one")], ids=str)
def test_what_is_claimed_is_nearly_reached_and_never_exceeded(unit: dp.Rows) -> None:
    change, rng = unit.adjacency == "change-one", np.random.default_rng(4)
    worst = (0.0, COUNTS, COUNTS)
    found = planned(["1/3", "2/3"], len(COUNTS), unit, epsilon=2)
    while worst[0] < 0.85 * 2:
        tried = lowered((rng.permutation(COUNTS) + rng.integers(0, 2, 6)).tolist(), unit)
        for after in neighbours(tried, change):
            worst = max(worst, (told_apart(found, tried, after), tried, after))
    assert_covered(found, lowered(worst[1], unit), lowered(worst[2], unit), 2, 2000)
