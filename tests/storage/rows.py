"""Random rows for the law of storage: columns of which writers keep statistics that leave rows out,
are cut off, or say that all rows are one value.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import polars as pl

Draw: TypeAlias = "Callable[[random.Random], Any]"

SCHEMA: Mapping[str, Any] = {
    "u": pl.Int64(),
    "i": pl.Int64(),
    "k": pl.Int32(),
    "x": pl.Float64(),
    "y": pl.Float64(),
    "z": pl.Float32(),
    "b": pl.Boolean(),
    "s": pl.String(),
    "g": pl.String(),
    "d": pl.Date(),
    "t": pl.Datetime("us"),
    "tz": pl.Datetime("us", "UTC"),
    "dec": pl.Decimal(12, 2),
}
_LONG = "a" * 70
_NUMBERS = [0.0, 1.0, 5.0, -2.5, 7.25, 10.0, 100.0]
_AWKWARD = [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.0, 10.0, None]
_REALS: list[list[Any]] = [
    [math.nan, math.nan, math.nan, 1.0],  # statistics leave NaN out
    [math.nan],
    _NUMBERS,
    [*_NUMBERS, None],
    _AWKWARD,
    [0.0, -0.0],
    [math.inf, -math.inf, math.nan],
    [None],
    [1.0],
]
_TEXTS: list[list[Any]] = [
    [_LONG + "a", _LONG + "b", _LONG, _LONG + "é"],  # statistics are cut off
    ["\U0010ffff" * 20, "\U0010ffff" * 20 + "a", "é" * 40, None],
    ["a", "b", "", "a ", "\x00", None],
    ["a"],
    [None],
    ["b", _LONG + "zz"],
]
_MOMENTS = [
    datetime(1900, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(1970, 1, 1),
    datetime(2024, 3, 10, 2, 30),
    datetime(2024, 3, 31, 1, 30, 0, 1),
    datetime(2100, 1, 1),
]
_POOLS: Mapping[str, list[list[Any]]] = {
    "u": [list(range(9)), list(range(40))],
    "i": [[0, 1, 5, 10], [2**63 - 1, -(2**63), 0, None], [7], [None], list(range(-3, 12))],
    "k": [[0, 1, 2], [2**31 - 1, -(2**31), None], [1], [None, None, 3]],
    "x": _REALS,
    "y": _REALS,
    "z": [[math.nan, 1.0], [math.nan, None, 0.5], [0.5], [-0.0, math.inf, 2.5]],
    "b": [[True], [True, False], [True, None], [None]],
    "s": _TEXTS,
    "g": [["a", "b"], ["1", "2"], ["7"], ["a", "b c", "7", "é"]],
    "d": [[m.date() for m in _MOMENTS], [date(2024, 1, 1)], [date(1970, 1, 1), None]],
    "t": [[*_MOMENTS, None], [_MOMENTS[2]], [_MOMENTS[3], None]],
    "tz": [[m.replace(tzinfo=UTC) for m in _MOMENTS], [_MOMENTS[2].replace(tzinfo=UTC), None]],
    "dec": [
        [Decimal("0.00"), Decimal("5.00"), Decimal("-0.01"), Decimal("99999.99"), None],
        [Decimal("5.00")],
        [None],
    ],
}


def draw_frame(rng: random.Random) -> pl.DataFrame:
    """Some rows, in which each column has its values from one pool."""
    height = rng.choice([1, 2, 9, 30, 60])
    pools = {name: rng.choice(_POOLS[name]) for name in SCHEMA}
    columns = {name: [rng.choice(pool) for _ in range(height)] for name, pool in pools.items()}
    frame = pl.DataFrame(columns, schema=SCHEMA)
    return frame.sort(rng.choice(frame.columns)) if rng.random() < 0.3 else frame


def draw_row(rng: random.Random) -> pl.DataFrame:
    """One row, with values from any pools."""
    values = {name: [rng.choice(rng.choice(pools))] for name, pools in _POOLS.items()}
    return pl.DataFrame(values, schema=SCHEMA)


def add_row(frame: pl.DataFrame, rng: random.Random) -> pl.DataFrame:
    """The frame and one more row, anywhere in it."""
    at = rng.randint(0, frame.height)
    return pl.concat([frame[:at], draw_row(rng), frame[at:]])


def add_person(frame: pl.DataFrame, rng: random.Random) -> pl.DataFrame:
    """The frame and some rows of a person who had none."""
    person = pl.concat([draw_row(rng) for _ in range(rng.randint(1, 5))])
    person = person.with_columns(u=pl.lit(1_000, pl.Int64))
    at = rng.randint(0, frame.height)
    return pl.concat([frame[:at], person, frame[at:]])
