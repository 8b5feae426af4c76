"""Small results of an engine as Polars frames."""

from __future__ import annotations

from typing import Any

import polars as pl

from dpframe.core.dtypes import STRING
from dpframe.lower.engines.frames import EngineFrame
from dpframe.rows.polars_dtypes import to_polars


def as_declared(frame: EngineFrame, table: Any) -> pl.DataFrame:
    """A result with the names and types that lowering gave its columns."""
    made = pl.from_arrow(table)
    assert isinstance(made, pl.DataFrame)
    return made.select(
        pl.col(physical)
        .cast(to_polars(STRING if frame.columns[name].dtype.is_text else frame.columns[name].dtype))
        .alias(name)
        for name, physical in frame.names.items()
    )
