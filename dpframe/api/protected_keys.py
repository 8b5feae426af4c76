"""Keys of groups that would be read from the protected data."""

from __future__ import annotations

import polars as pl

from dpframe.api.source import Source, Sources
from dpframe.errors import MissingKeys


def refuse_protected_keys(keys: object, source: Source | Sources, where: str) -> None:
    """Refuse a lazy frame of keys with rows of the protected data: the groups that appear would
    reveal single rows.

    Raises
    ------
    MissingKeys
        When it is one.
    """
    if isinstance(keys, pl.LazyFrame) and source.holds(keys):
        raise MissingKeys(
            "these keys come from the protected data: the groups that appear would "
            "reveal single individuals",
            where=where,
            remedy=(
                'list public values, for example keys=["a", "b"]',
                "leave keys= out and spend a delta: groups with enough individuals are "
                "then found privately",
            ),
        )
