"""Random rows of awkward values, and the same rows on every engine."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl

SCHEMA: dict[str, Any] = {
    "u": pl.Int64,
    "who": pl.String,
    "i": pl.Int64,
    "n": pl.Int64,
    "j": pl.Int32,
    "k": pl.Int8,
    "x": pl.Float64,
    "y": pl.Float64,
    "z": pl.Float32,
    "b": pl.Boolean,
    "c": pl.Boolean,
    "s": pl.String,
    "e": pl.Enum(["p", "q", "r"]),
    "d": pl.Date,
    "t": pl.Datetime("us"),
}
TEXTS = [
    "a", "a ", " a", "A", "b", "", "é", "e\u0301", "ß", "SS", "日本語", "🙂", "a%b", "a_b",
    "x'y", 'x"y', "\t", "\x00", "\u00a0a", "ﬁ", "İ", "ab" * 20, "12", "-0",
]  # fmt: skip
WHOLE = [0, 1, -1, 7, 100, 2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]
REAL = [
    0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 0.5, 1.5, 2.5, -0.5, -2.5, 0.1, 1e-320,
    5e-324, 1.7976931348623157e308, -1e300, 2.0**53 + 2, 2.0**63, -(2.0**63), 9.3e18, 3.4e38, 49.0,
]  # fmt: skip
REAL32 = [0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, 1.5, -2.5, 3.4028234663852886e38, 1e-45]
DAYS = [
    date(1, 1, 1), date(1582, 10, 4), date(1899, 12, 31), date(1969, 12, 31), date(1970, 1, 1),
    date(2000, 2, 29), date(2023, 12, 31), date(2024, 3, 31), date(9999, 12, 31),
]  # fmt: skip
MOMENTS = [
    datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1),
    datetime(2024, 3, 10, 2, 30), datetime(2024, 3, 31, 2, 30), datetime(2024, 11, 3, 1, 30),
    datetime(2026, 1, 1, 23, 30), datetime(9999, 12, 31, 23, 59, 59, 999_999),
]  # fmt: skip
"""Clocks skip 2024-03-10 02:30 in New York and 2024-03-31 02:30 in Amsterdam."""


def rows(seed: int, height: int) -> pl.DataFrame:
    """Rows with many nulls and repeats, among few individuals."""
    draw = random.Random(seed)

    def some(pool: list[Any], usual: Any) -> Any:
        if draw.random() < 0.1:
            return None
        return draw.choice(pool) if draw.random() < 0.4 else usual()

    made = [
        {
            "u": some([3, 5, -7], lambda: draw.randrange(height // 8 + 2)),
            "who": some(["ann", "bob ", "bob", "é", "e\u0301"], lambda: f"p{draw.randrange(9)}"),
            "i": some(WHOLE, lambda: draw.randrange(-50, 50)),
            "n": some([0, 1], lambda: draw.randrange(-20, 120)),
            "j": some([2**31 - 1, -(2**31), 0], lambda: draw.randrange(-90, 90)),
            "k": some([127, -128, 0], lambda: draw.randrange(-9, 9)),
            "x": some(REAL, lambda: draw.uniform(-100, 100)),
            "y": some([*REAL, 0.0], lambda: draw.gauss(20, 9)),
            "z": some(REAL32, lambda: draw.uniform(-9, 9)),
            "b": some([True], lambda: draw.random() < 0.5),
            "c": some([False], lambda: draw.random() < 0.5),
            "s": some(TEXTS, lambda: draw.choice("abcé")),
            "e": some(["p"], lambda: draw.choice("pqr")),
            "d": some(DAYS, lambda: date(2024, 1, 1) + timedelta(days=draw.randrange(400))),
            "t": some(MOMENTS, lambda: _moment(draw)),
        }
        for _ in range(height)
    ]
    return pl.DataFrame([*made, *draw.choices(made, k=height // 5)], schema=SCHEMA)


def _moment(draw: random.Random) -> datetime:
    seconds = draw.randrange(-(10**9), 2 * 10**9)
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return moment + timedelta(microseconds=draw.randrange(10**6))


PUBLIC = pl.DataFrame(
    {
        "s": ["a", "b", "é", "e\u0301", None, "zz", "a "],
        "region": ["n", "s", "n", None, "w", "e", "s"],
        "rate": [0.5, 2.0, float("nan"), 1.0, 3.0, 4.0, None],
    }
)
REPEATED = pl.DataFrame({"n": [1, 1, 2, 3, None], "tag": ["x", "y", "x", "z", "z"]})
CALENDAR = pl.DataFrame({"d": [date(2024, 1, d) for d in range(1, 31)], "w": list(range(1, 31))})
