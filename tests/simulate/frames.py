"""A public frame, and a protected one of the same schema that nobody can read."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

import dpframe as dp

ROWS = 3000


def public() -> pl.DataFrame:
    """Rows of 400 people in four cities; one value in ten is missing."""
    numbers = np.random.default_rng(7)
    days = [date(2020, 1, 1) + timedelta(days=int(d)) for d in numbers.integers(0, 1000, ROWS)]
    x = [
        None if gap < 0.1 else v
        for gap, v in zip(numbers.random(ROWS), numbers.normal(50, 20, ROWS), strict=True)
    ]
    return pl.DataFrame(
        {
            "person": numbers.integers(0, 400, ROWS),
            "city": numbers.choice(["a", "b", "c", "d"], ROWS),
            "age": numbers.integers(0, 100, ROWS),
            "x": pl.Series(x, dtype=pl.Float64),
            "day": pl.Series(days, dtype=pl.Date),
        }
    )


class Trap:
    """A frame that notices when it is read."""

    def __init__(self) -> None:
        self.sprung = False
        self.frame = pl.LazyFrame(schema=public().schema).map_batches(self._spring)

    def _spring(self, frame: pl.DataFrame) -> pl.DataFrame:
        self.sprung = True
        return frame


def trapped(unit: Any = None, **budget: Any) -> tuple[dp.PrivateFrame, Trap]:
    """A private frame whose data are a trap."""
    trap = Trap()
    session = dp.Session(**(budget or {"epsilon": 1.0, "delta": 1e-6}))
    return session.protect(trap.frame, dp.Rows() if unit is None else unit, name="people"), trap
