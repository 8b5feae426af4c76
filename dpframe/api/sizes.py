"""How large the files are that rows come from, which is taken for public."""

from __future__ import annotations

import os

import polars as pl

from dpframe.api.origins import origins_of

__all__ = ["scans", "sizes_of"]


def sizes_of(given: object, data: object) -> list[object]:
    """The files that rows come from, or how many bytes they take in memory; empty if unknown."""
    if isinstance(given, pl.DataFrame):
        return [int(given.estimated_size())]
    origins = origins_of(given) | origins_of(data)
    if origins.unknown or origins.memory:
        return []
    return [place for place in origins.files if isinstance(place, str) and os.path.isfile(place)]


def scans(given: object, data: object) -> bool:
    """Whether rows come from files on a disk, if that is known at once. A store would have to be
    queried for its files, and a Delta table would list its files through Python, which may wait
    for this thread.
    """
    if isinstance(given, pl.DataFrame) or not isinstance(data, pl.LazyFrame):
        return False
    # of a copy: Polars 1.32 lets no other thread use a frame meanwhile
    told = data.clone().explain(optimized=False)
    return " SCAN " in told and "://" not in told and "PythonDataset" not in told
