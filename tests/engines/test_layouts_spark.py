"""Equal values give equal results on Spark too, where it keeps a column as a constant."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from tests.engines.layouts import check
from tests.engines.operations import awkward
from tests.engines.spark import frames, session

__all__ = ["session"]

pytestmark = pytest.mark.spark

FRAME = awkward("spark")


@pytest.mark.parametrize(
    "constant",
    [
        "i8 i64 f64 s",
        pytest.param("i32 i64b f64b sb d dt", marks=pytest.mark.slow),
        pytest.param("b e f32 dtb f64", marks=pytest.mark.slow),
    ],
)
def test_operations(constant: str, session: Any, tmp_path: Any) -> None:
    """A join with one row makes constants of its columns."""
    from dpframe.lower.engines.spark_engine import SparkEngine

    names = constant.split()
    one = FRAME[7].select(names)
    rest = FRAME[3:7].drop("row", *names).with_row_index("row")
    rest = rest.with_columns(pl.col("row").cast(pl.Int64))
    given = frames(session, tmp_path, {"one": one, "rest": rest})
    both = given["rest"].crossJoin(given["one"])
    frame = rest.join(one, how="cross").select(both.columns)
    assert check(SparkEngine(both), both, frame) >= 100
