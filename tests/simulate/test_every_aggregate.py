"""Every aggregate can be simulated, and where nothing is clamped limits do nothing."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.registry import AGGREGATES
from tests.laws.frames import SCHEMA

CASES = [(a.kind, e) for a in AGGREGATES for e in a.examples]
ROWS = 6


def frame() -> pl.DataFrame:
    """Unremarkable values of every type: 1 and 2, and what they are as text and days."""
    made = {}
    for name, dtype in SCHEMA.items():
        numbers = pl.Series(name, [1, 2, 2, 1, 2, 1])
        if dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Boolean:
            made[name] = _as(numbers, dtype)
        elif isinstance(dtype, (pl.String, pl.Enum)):
            made[name] = pl.Series(name, ["a", "b", "b", "a", "b", "a"]).cast(dtype)
        else:
            made[name] = pl.Series(name, [None] * ROWS, dtype=dtype)
    return pl.DataFrame(made)


def _as(numbers: pl.Series, dtype: Any) -> pl.Series:
    if dtype == pl.Boolean:
        return numbers == 1
    if dtype == pl.Date:
        return (numbers + 18_000).cast(pl.Int32).cast(dtype)
    return numbers.cast(dtype)


@pytest.mark.parametrize(("kind", "example"), CASES, ids=[f"{k}: {e}" for k, e in CASES])
def test_every_example_is_simulated(kind: str, example: str) -> None:
    expression = eval(example, {"pl": pl, "dp": dp, "date": date})
    data = frame()
    people = dp.Session(epsilon=100).protect(data.clear(), dp.Rows())
    for query in (
        people.agg(expression),
        people.group_by("bb", keys=[True, False]).agg(expression),
    ):
        errors = query.simulate(data, epsilon=90, runs=2).errors
        assert errors.height > 0
        if "limits_bias" not in errors.columns:
            assert (errors["plain_choice"] == errors["exact_choice"]).all()
        elif "dp_sum" not in example and "dp_mean" not in example and "dp_var" not in example:
            assert (errors["limits_bias"].drop_nulls().abs() <= 1).all()
