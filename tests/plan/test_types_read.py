"""Which types of columns decide what a query means, and so are bound to what was charged for it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.plan.types_read import digest_of_types, types_read

TYPES: list[Any] = [
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    *(pl.Float32, pl.Float64, pl.Boolean, pl.String, pl.Binary, pl.Categorical, pl.Null),
    *(pl.Decimal(10, 1), pl.Decimal(10, 2), pl.Decimal(12, 1)),
    *(pl.Enum(["a", "b"]), pl.Enum(["b", "a"]), pl.Enum(["a", "c"])),
    *(pl.Date, pl.Time, *map(pl.Duration, ("ms", "us", "ns")), *map(pl.Datetime, ("ms", "us"))),
    *(pl.Datetime("us", zone) for zone in ("UTC", "Europe/Berlin", "Africa/Lagos")),
    *(pl.List(pl.Int64), pl.List(pl.Int32), pl.Array(pl.Int64, 2), pl.Array(pl.Int64, 3)),
    *(pl.Struct({"a": pl.Int64}), pl.Struct({"a": pl.Int32}), pl.Struct({"a: Int64, b": pl.Int64})),
    pl.Struct({"a": pl.Int64, "b": pl.Int64}),
    *(pl.List(pl.Datetime("us", zone)) for zone in ("UTC", "Europe/Berlin")),
]


def relation(dtype: Any, other: Any = pl.Int64, change: Any = None) -> Any:
    frame = pl.DataFrame(schema={"who": pl.Int64, "x": dtype, "y": other})
    private = dp.Session(epsilon=1).protect(frame, unit=dp.Identifier("who"), name="v")
    return (private if change is None else change(private))._relation


def test_each_type_of_what_is_read_is_told_from_all_others() -> None:
    found = [digest_of_types([types_read(relation(dtype), "x")]) for dtype in TYPES]
    assert len({*found}) == len(TYPES)


@given(st.sampled_from(TYPES), st.sampled_from(TYPES), st.sampled_from(TYPES))
def test_what_is_not_read_does_not_matter(dtype: Any, one: Any, other: Any) -> None:
    read = types_read(relation(dtype, one), "x")
    assert read == types_read(relation(dtype, other), "x")
    assert [*read[0][1]] == ["who", "x"]
    assert [*types_read(relation(dtype, one))[0][1]] == ["who"]


STEPS: dict[str, Any] = {
    "filter": lambda frame: frame.filter(pl.col("x").is_null()),
    "drop nulls": lambda frame: frame.drop_nulls("x"),
    "with_columns": lambda frame: frame.with_columns(z=pl.col("x").is_null()),
    "renamed": lambda frame: frame.rename({"x": "z"}),
    "limit_rows": lambda frame: frame.limit_rows(2, by="x"),
    "limit_groups": lambda frame: frame.limit_groups(2, by="x"),
    "first rows": lambda frame: frame.limit_rows(2, order_by="x"),
    "select": lambda frame: frame.select("who", z="x"),
    "part": lambda frame: frame.session.partition(frame.limit_rows(1), "x", keys=[None])[None],
    "joined with itself": lambda frame: frame.limit_rows(1).join(
        frame.limit_rows(1).select("who", "x"), on="who"
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_read_what_they_name(step: str) -> None:
    """Also where the column is called otherwise afterwards."""
    found = [types_read(relation(dtype, change=STEPS[step]), "z") for dtype in (pl.Int64, pl.Int32)]
    assert found[0] != found[1]


def test_all_columns_of_a_frame_that_is_joined_are_read() -> None:
    """They may get other names there, which nothing that is asked tells."""

    def joined(dtype: Any) -> Any:
        session = dp.Session(epsilon=1)
        frames = [
            session.protect(
                pl.DataFrame(schema={"who": pl.Int64, "x": kind}), unit="who", name=name
            ).limit_rows(1)
            for name, kind in (("v", pl.Int64), ("w", dtype))
        ]
        return types_read(frames[0].join(frames[1], on="who")._relation, "x_right")

    assert joined(pl.Int64) != joined(pl.Int32)
    assert [name for name, _ in joined(pl.Int64)] == ["v", "w"]


def test_a_declaration_that_leaves_one_value_is_bound() -> None:
    """Some operations take it for a constant, whatever the rows have."""

    def of(bounds: Any) -> Any:
        frame = pl.DataFrame(schema={"x": pl.Int64})
        private = dp.Session(epsilon=1).protect(frame, dp.Rows(), name="v", bounds={"x": bounds})
        return types_read(private._relation, "x")

    assert of((0, 0)) != of((0, 1)) == of((0, 2))
