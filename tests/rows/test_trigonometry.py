"""A value's angle, root or logarithm has the same bits alone and among any number of others."""

from __future__ import annotations

import math
import struct

import numpy as np
import polars as pl
import pytest

from dpframe.core.tree import Column
from dpframe.rows.fold import lower
from dpframe.rows.maths import OPERATIONS
from dpframe.rows.operation import PlainOperation
from tests.calls import call
from tests.laws.frames import FLOATS, wide_columns

RANDOM = np.random.default_rng(7)
VALUES = [
    *FLOATS, *RANDOM.normal(size=120), *RANDOM.uniform(-1, 1, 120), *(RANDOM.normal(size=60) * 1e9),
    *RANDOM.integers(0, 2**63, 120).view(np.float64), math.pi, -math.pi / 2, 1 - 2**-53, 1 + 2**-52,
]  # fmt: skip
FRAME = pl.DataFrame({"x": VALUES, "y": VALUES[::-1]}, schema={"x": pl.Float64, "y": pl.Float64})
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129)


def bits(values: pl.Series) -> list[bytes | None]:
    """Floats as their bits, one form for all NaN, and null."""
    return [
        None if v is None else b"nan" if v != v else struct.pack("d", v) for v in values.to_list()
    ]


@pytest.mark.parametrize("name", [o.name for o in OPERATIONS if isinstance(o, PlainOperation)])
def test_bits_do_not_depend_on_how_many_there_are(name: str) -> None:
    operands = [Column("x"), Column("y")] if name == "arctan2" else [Column("x")]
    made = lower(call(name, *operands), wide_columns(FRAME)).alias("made")
    whole = bits(FRAME.select(made)["made"])
    for length in LENGTHS:
        for start in range(0, FRAME.height - length, 97 if length > 1 else 13):
            part = pl.DataFrame(
                [pl.Series(c.name, c[start : start + length].to_list()) for c in FRAME]
            )
            assert bits(part.select(made)["made"]) == whole[start : start + length]
            one = FRAME.slice(start, length)
            streamed = one.lazy().select(made).collect(engine="streaming")
            assert bits(streamed["made"]) == whole[start : start + length]
    for start in range(0, FRAME.height, 29):
        held = pl.DataFrame({"row": [1, 2, 3]}).with_columns(
            pl.lit(FRAME["x"][start]).alias("x"), pl.lit(FRAME["y"][start]).alias("y")
        )
        assert bits(held.select("row", made)["made"]) == [whole[start]] * 3


def test_no_sign_of_a_zero_comes_through_a_pole_or_a_cut() -> None:
    zeros = pl.DataFrame({"x": [0.0, -0.0], "y": [-1.0, -1.0]})
    columns = wide_columns(zeros)
    assert (
        zeros.select(lower(call("cot", Column("x")), columns)).to_series().to_list() == [None] * 2
    )
    angles = zeros.select(lower(call("arctan2", Column("x"), Column("y")), columns)).to_series()
    assert angles.to_list() == [math.pi] * 2
