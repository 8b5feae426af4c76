"""Results as arrays: one number, or one choice, for each group and entry of an output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.query import Output, Query
from dpframe.aggregates.shapes import Column

Floats = NDArray[np.float64]
_SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """What one output releases.

    Parameters
    ----------
    name
        The output.
    labels
        The label of each entry in one group: categories, bins, ranks or quantiles; None for one
        number.
    choices
        Whether they are choices among candidates, and no numbers.
    """

    name: str
    labels: tuple[str, ...] | None
    choices: bool

    @property
    def size(self) -> int:
        return 1 if self.labels is None else len(self.labels)


def entries_of(output: Output, column: Column) -> Entries:
    """What an output releases, from one result of it."""
    dtype, shape = column.values.dtype, column.shape
    inner = dtype.inner if isinstance(dtype, pl.List) else dtype
    numeric = inner.is_numeric() or inner.is_temporal() or inner == pl.Boolean
    choices, labels = shape.is_choice or not numeric, shape.labels
    if labels is None and isinstance(dtype, pl.List):
        most = column.values.list.len().max()
        labels = tuple(str(i) for i in range(int(str(most or 0))))
    return Entries(output.name, labels, choices)


def numbers_in(column: Column, entries: Entries) -> Floats:
    """Numbers, one per group and entry; NaN for none. Dates are days, times seconds."""
    return np.stack([_physical(s) for s in _series(column, entries)], axis=1)


def choices_in(column: Column, entries: Entries, query: Query) -> NDArray[np.object_]:
    """Choices as text, one per group and entry; None for none."""
    if column.shape.chooses_groups:
        assert query.groups is not None
        chosen = [_key(query.groups.keys.row(code)) for code in column.values.to_list()]
        return np.array([chosen], dtype=np.object_)
    found = [_text(s) for s in _series(column, entries)]
    return np.array(found, dtype=np.object_).T


def _series(column: Column, entries: Entries) -> Sequence[pl.Series]:
    """One column per entry."""
    if entries.labels is None:
        return [column.values]
    if column.shape.is_table:
        rows = len(entries.labels)
        return [column.values.gather_every(rows, i) for i in range(rows)]
    return [column.values.list.get(i, null_on_oob=True) for i in range(len(entries.labels))]


def _physical(series: pl.Series) -> Floats:
    dtype = series.dtype
    scale = 1.0
    if dtype.is_temporal() and dtype != pl.Date:
        scale = 1e-9 if dtype == pl.Time else _SECONDS[getattr(dtype, "time_unit", None) or "us"]
    physical = series.to_physical() if dtype.is_temporal() else series
    found: Floats = physical.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)
    return found * scale


def _text(series: pl.Series) -> list[str | None]:
    return [None if value is None else str(value) for value in series.to_list()]


def _key(row: tuple[Any, ...]) -> str:
    return ", ".join("null" if value is None else str(value) for value in row)
