"""What the typed layer says of numbers holds: ends, that they are whole, and sums in parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.lower.engines.duckdb_engine import DuckDBEngine
from dpframe.lower.engines.frames import EngineFrame
from dpframe.lower.engines.numbers import summed_in_parts

FLOATS = st.floats(width=64) | st.sampled_from(
    [0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**52, -(2.0**53) - 2, 1e308, 5e-324, 0.5, -1.5]
)
CONSTANTS = st.floats(-1e18, 1e18) | st.sampled_from([0.0, -0.0, 0.5, -1.0, 3.0, 2.0**52, 1e308])
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [s * 2**n + d for n in (0, 23, 24, 47, 48, 62) for s in (1, -1) for d in (-1, 0, 1)]
    + [2**63 - 1, -(2**63)]
)
STEPS: dict[str, Callable[[Any, float], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "floor": lambda x, _: x.floor(),
    "ceil": lambda x, _: x.ceil(),
    "clip": lambda x, c: x.clip(-abs(c), abs(c)),
    "negate": lambda x, _: -x,
    "cast": lambda x, _: x.cast(pl.Int64).cast(pl.Float64),
}


@pytest.fixture(scope="module")
def connection() -> Any:
    return duckdb.connect()


def computed(
    connection: Any, frame: pl.DataFrame, make: Callable[[Any], Any]
) -> tuple[EngineFrame, pl.DataFrame]:
    connection.register("given", frame.to_arrow())
    relation = connection.table("given")
    engine = DuckDBEngine(relation)
    made = make(engine.frame(relation))
    return made, engine.collect([made])[0]


@given(
    st.lists(FLOATS | st.none(), max_size=8),
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), CONSTANTS), min_size=1, max_size=6),
)
def test_numbers_lie_between_their_ends(
    connection: Any, numbers: list[float | None], steps: list[tuple[str, float]]
) -> None:
    def make(frame: EngineFrame) -> EngineFrame:
        value = frame.ns.col("x")
        for name, constant in steps:
            value = STEPS[name](value, constant)
        return frame.with_columns(value.alias("y"), value.cast(pl.Int64).alias("n"))

    given_frame = pl.DataFrame({"x": numbers}, schema={"x": pl.Float64})
    made, found = computed(connection, given_frame, make)
    for name in ("y", "n"):
        known = made.columns[name]
        for value in found[name]:
            if value is None or math.isnan(value):
                continue
            assert known.lo is None or known.lo <= value, (name, steps)
            assert known.hi is None or value <= known.hi, (name, steps)
    by_polars = pl.col("x")
    for name, constant in steps:
        if name == "cast":
            by_polars = by_polars.cast(pl.Int64, strict=False).cast(pl.Float64)
        else:
            by_polars = STEPS[name](by_polars, constant)
    expected = given_frame.select(by_polars).to_series()
    assert found["y"].equals(expected.alias("y"), null_equal=True)


def test_floats_are_known_to_lie_somewhere_at_all(connection: Any) -> None:
    def make(frame: EngineFrame) -> EngineFrame:
        scaled = (frame.ns.col("x") * 8.0).clip(-99.5, 99.5) + 0.5
        return frame.with_columns(
            scaled.floor().alias("y"), scaled.floor().cast(pl.Int64).alias("n")
        )

    made, _ = computed(connection, pl.DataFrame({"x": [1.0]}), make)
    assert [(made.columns[c].lo, made.columns[c].hi) for c in "yn"] == [(-99, 100), (-99, 100)]


@given(st.lists(st.tuples(st.integers(0, 2), WHOLE | st.none()), max_size=12))
def test_sums_in_parts_are_sums_modulo_two_to_the_64(
    connection: Any, rows: list[tuple[int, int | None]]
) -> None:
    def make(frame: EngineFrame) -> EngineFrame:
        frame.ns.wrapped_sum = summed_in_parts  # type: ignore[method-assign]
        n = frame.ns.col("n")
        small = n.clip(-(2**48), 2**48)
        return frame.group_by("g").agg(n.sum().alias("all"), small.sum().alias("small"))

    schema = {"g": pl.Int64, "n": pl.Int64}
    _, found = computed(connection, pl.DataFrame(rows, schema=schema, orient="row"), make)
    for g, every, small in found.select("g", "all", "small").rows():
        values = [n for group, n in rows if group == g and n is not None]
        clipped = [max(-(2**48), min(2**48, n)) for n in values]
        assert every == (sum(values) + 2**63) % 2**64 - 2**63
        assert small == sum(clipped)
    assert found.height == len({g for g, _ in rows})
