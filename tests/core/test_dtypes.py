"""What types hold, against Polars itself."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from dpframe.core.dtypes import DType

WHOLE = [
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128),
    *(pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
]


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_integers_hold_what_they_hold_in_polars(dtype: Any) -> None:
    found = DType(str(dtype))
    least, most = (pl.select(end).item() for end in (dtype.min(), dtype.max()))
    assert found.is_integer
    assert found.limits == (least, most)


def test_floats_and_text_have_no_limits() -> None:
    assert DType("Boolean").limits == (0, 1)
    assert [DType(name).limits for name in ("Float32", "Float64", "String", "Date")] == [None] * 4


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("name", ["Datetime", "Duration"])
def test_units_of_temporal_types_are_those_of_polars(name: str, unit: Any) -> None:
    second = pl.Series([1_000_000], dtype=pl.Int64).cast(pl.Duration("us"))
    physical = second.cast(pl.Duration(unit)).to_physical().item()
    assert DType(name, unit).units_per_second == physical
    assert DType("Time").units_per_second == 10**9
