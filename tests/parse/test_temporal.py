"""Constant durations, as Python has them."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.tree import Literal
from dpframe.parse.reader import read

UNITS = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds")


def constant(**parts: int) -> object:
    """Of casts, which Polars leaves to be computed."""
    (named,) = read(
        pl.duration(**{unit: pl.lit(count).cast(pl.Int64) for unit, count in parts.items()}), {}
    )
    assert isinstance(named.tree, Literal)
    return named.tree.value


@pytest.mark.parametrize("unit", UNITS)
def test_each_part_is_as_long_as_in_python(unit: str) -> None:
    for count in (1, -3, 1_000):
        assert constant(**{unit: count}) == timedelta(**{unit: count})
        both = {"days": 2, "microseconds": 1} | {unit: count}
        assert constant(**both) == timedelta(**both)
    assert constant(nanoseconds=5_000) == timedelta(microseconds=5)


@pytest.mark.parametrize("unit", ["weeks", "days", "hours"])
def test_those_that_python_does_not_have_are_refused(unit: str) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="out of range"):
        constant(**{unit: 10**12})
