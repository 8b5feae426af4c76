"""Listed values as columns that hold exactly them."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from dpframe.core.dtypes import FLOAT32, FLOAT64, INT64, STRING, DType, datetime_type
from dpframe.rows.constants import listed


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["1.5"], FLOAT32),
        (["1.5"], FLOAT64),
        ([math.nan], FLOAT32),
        ([math.nan], FLOAT64),
        ([True], FLOAT64),
        ([2**53 + 1], FLOAT64),
        ([True], INT64),
        ([1.5], INT64),
        (["1"], INT64),
        ([2**63], INT64),
        ([1], STRING),
        ([datetime(2024, 1, 1, 0, 0, 0, 1)], datetime_type("ms")),
        ([datetime(2024, 1, 1)], DType("Date")),
        ([1], DType("Boolean")),
    ],
)
def test_what_the_type_does_not_hold(values: list[Any], dtype: DType) -> None:
    assert listed("x", values, dtype) is None
    assert listed("x", [None, *values], dtype) is None


@pytest.mark.parametrize(
    ("values", "dtype", "held"),
    [
        ([0.1, -0.0, 1, None], FLOAT32, [0.10000000149011612, 0.0, 1.0, None]),
        ([0.1, -0.0, 1, Decimal("0.5")], FLOAT64, [0.1, 0.0, 1.0, 0.5]),
        ([date(2024, 1, 1), None], datetime_type("ms"), [datetime(2024, 1, 1), None]),
        (["b", "a"], DType("Categorical"), ["b", "a"]),
        ([-(2**63), 2**63 - 1], INT64, [-(2**63), 2**63 - 1]),
    ],
)
def test_what_it_holds(values: list[Any], dtype: DType, held: list[Any]) -> None:
    found = listed("x", values, dtype)
    assert found is not None
    assert found.to_list() == held
    assert [math.copysign(1, v) for v in found if isinstance(v, float)] == [
        math.copysign(1, v) for v in held if isinstance(v, float)
    ]
