"""Casts on an engine: those that Polars makes without failing, or none."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from typing import Any

import duckdb
import polars as pl
import pytest

from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.duckdb_engine import DuckDBEngine
from tests.laws.checking import same
from tests.laws.frames import values

FRAME = pl.DataFrame(
    {
        "i": [0, 1, 127, 128, -129, 255, 256, -1, 2**63 - 1, -(2**63), None],
        "u": pl.Series([0, 1, 127, 128, 255, 7, None, 2, 3, 4, 5], dtype=pl.UInt8),
        "f": [0.0, -0.0, 1.5, -3.7, 127.9, -129.0, 255.5, 1e300, 2.0**63, float("nan"), None],
        "b": [True, False, None] * 3 + [True, False],
        "s": ["a", "1", "true", "", None, "b", "A", " a", "a ", "b\x00", "é"],
        "d": pl.Series([0, 1, -1, 127, 128, 400, None, 255, 256, 9, 10]).cast(pl.Date),
        "t": pl.Series([0, 1, -1, 127, 128, 10**15, None, 255, 256, 9, 10]).cast(pl.Datetime("us")),
    }
)
CONSTANTS = [5, 300, -1, 0, 0.5, -300.5, 1e30, True, False, "a", "c", None, date(2020, 1, 2)]
WHOLE: list[Any] = [pl.Int8, pl.Int32, pl.Int64, pl.UInt8, pl.UInt64]
NUMBERS = [*WHOLE, pl.Float32, pl.Float64, pl.Boolean]
ENUM = pl.Enum(["a", "b", "true"])
TARGETS = [*NUMBERS, pl.String, ENUM, pl.Date, pl.Datetime("us")]
TAKEN = {
    "i": [*NUMBERS, pl.String],
    "u": [*NUMBERS, pl.String, pl.Date, pl.Datetime("us")],
    "f": NUMBERS,
    "b": [*NUMBERS, pl.String],
    "s": [pl.String, ENUM],
    "d": [*WHOLE, pl.Date],
    "t": [*WHOLE, pl.Datetime("us")],
}


@pytest.fixture(scope="module")
def relation() -> Any:
    connection = duckdb.connect()
    connection.register("given", FRAME.to_arrow())
    yield connection.table("given")
    connection.close()


def check(relation: Any, source: Any, expected: pl.Expr) -> list[Any]:
    """The types that a column or constant is cast to; to each as Polars does that."""
    engine = DuckDBEngine(relation)
    frame, made = engine.frame(relation), {}
    for number, dtype in enumerate(TARGETS):
        cast = source(engine.ns).cast(dtype).alias(str(number))
        with suppress(UnsupportedOperation):
            frame.with_columns(cast)
            made[dtype] = cast
    found = engine.collect([frame.with_columns(*made.values())])[0]
    for dtype, column in zip(made, found.get_columns()[FRAME.width :], strict=True):
        wanted = FRAME.select(expected.cast(dtype, strict=False)).to_series()
        stored = wanted.cast(pl.String) if dtype == ENUM else wanted
        assert column.dtype == stored.dtype
        assert all(map(same, values(column), values(stored))), (dtype, column, stored)
    return list(made)


@pytest.mark.parametrize("name", FRAME.columns)
def test_columns_are_cast_as_by_polars(relation: Any, name: str) -> None:
    assert check(relation, lambda ns: ns.col(name), pl.col(name)) == TAKEN[name]


@pytest.mark.parametrize("value", CONSTANTS, ids=repr)
def test_constants_are_cast_as_by_polars(relation: Any, value: Any) -> None:
    taken = check(relation, lambda ns: ns.lit(value), pl.repeat(value, FRAME.height))
    if value is None:
        assert taken == TARGETS
    else:
        kind = {int: "i", float: "f", bool: "b", str: "s", date: "d"}[type(value)]
        moments = [pl.Date, pl.Datetime("us")] if kind == "i" else []
        assert taken == [*TAKEN[kind], *moments]
