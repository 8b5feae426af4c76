"""The groups that appear, where groups are not listed: from exact numbers to keys in their
order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.measurement import Table
from dpframe.frames.groups import Groups
from dpframe.lower.tables import Lowered, group_columns

__all__ = ["Chooser", "Numbers", "chosen_keys", "order_of"]

Numbers: TypeAlias = "NDArray[np.int64]"


class Chooser(Protocol):
    """Chooses among unlisted groups."""

    @property
    def table(self) -> Table:
        """The numbers that it chooses by."""
        ...

    @property
    def rounds(self) -> Sequence[Chooser]:
        """What chooses in each of several rounds, those that were chosen left out; or this one."""
        ...

    def keep(self, counts: Numbers) -> tuple[NDArray[np.bool_], Numbers | None]:
        """Whether groups with such numbers appear, and the noisy numbers where these decide."""
        ...


def chosen_keys(
    chooser: Chooser, lowered: Sequence[Lowered], results: Sequence[pl.DataFrame], groups: Groups
) -> tuple[pl.DataFrame, Numbers | None]:
    """The keys that appear, sorted; in the data's order they would reveal rows."""
    for query, result in zip(lowered, results, strict=True):
        if query.cells is None and chooser.table.statistic in query.statistics:
            value = pl.col(f"v{query.statistics.index(chooser.table.statistic)}")
            columns = group_columns(groups)
            merged = result.group_by(columns).agg(value.sum().cast(pl.Int64).alias("number"))
            schema = zip(columns, groups.keys.dtypes, strict=True)
            merged = merged.with_columns(*(pl.col(column).cast(t) for column, t in schema))
            kept, noisy = chooser.keep(merged["number"].to_numpy())
            order = order_of(merged.select(columns))
            places = order[kept[order]]
            names = dict(zip(columns, groups.keys.columns, strict=True))
            found = merged.select(columns)[places].rename(names)
            return found, None if noisy is None else noisy[places]
    raise AssertionError("the individuals of each group are counted")


def order_of(keys: pl.DataFrame) -> NDArray[np.uint32]:
    """Which place each key has when they are sorted."""
    return keys.select(pl.arg_sort_by(keys.columns)).to_series().to_numpy()
