"""Which public key each row of an exact result belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.rows.layouts import GROUPED_AS_TEXT

_SPARSE = 4
"""Whole numbers are looked up in an array of at most this many entries per key."""


def numbered(
    keys: pl.DataFrame, result: pl.DataFrame, names: Sequence[str]
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """The rows of a result that have a public key, and the number of each one's key.

    Parameters
    ----------
    keys
        The public keys, each once; nulls are keys like others.
    result
        Rows with the columns `names`, in the order of the columns of `keys`.
    """
    found = _among_whole_numbers(keys, result[names[0]]) if len(names) == 1 else None
    if found is not None:
        kept = found >= 0
        return (result, found) if kept.all() else (result.filter(pl.Series(kept)), found[kept])
    joined = listed_keys(keys, names).join(result, on=list(names), how="inner", nulls_equal=True)
    return joined, joined["k"].cast(pl.Int64).to_numpy()


def listed_keys(keys: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The public keys in the columns that rows have them in, and their numbers, `k`."""
    text = keys.with_columns(pl.col(*GROUPED_AS_TEXT).cast(pl.String))
    return text.rename(dict(zip(text.columns, names, strict=True))).with_row_index("k")


def _among_whole_numbers(keys: pl.DataFrame, given: pl.Series) -> NDArray[np.int64] | None:
    """The number of the key of each entry, -1 for none; None where a join does it better."""
    listed = keys.to_series()
    whole = listed.dtype in (pl.Int64, pl.Int32, pl.Int16, pl.Int8, pl.UInt8, pl.UInt16, pl.UInt32)
    if not whole or given.dtype != listed.dtype or not len(listed) or listed.null_count():
        return None
    if not len(given):  # a rehearsal
        return np.empty(0, dtype=np.int64)
    numbers = listed.to_numpy().astype(np.int64, copy=False)
    lo, hi = int(numbers.min()), int(numbers.max())
    if hi - lo >= _SPARSE * len(numbers) + 1024:
        return None
    known = None if not given.null_count() else given.is_not_null().to_numpy()
    entries = given if known is None else given.fill_null(lo)
    above = (entries.to_numpy().astype(np.int64, copy=False) - np.int64(lo)).view(np.uint64)
    inside = above <= np.uint64(hi - lo)  # modulo 2**64, so what is below lo is far above hi
    if known is not None:
        inside &= known
    place = _places(numbers, lo, hi)
    if inside.all():
        found = above.view(np.int64)
        return found if place is None else place[found]
    found = np.where(inside, above, np.uint64(0)).view(np.int64)
    return np.where(inside, found if place is None else place[found], -1)


def _places(numbers: NDArray[np.int64], lo: int, hi: int) -> NDArray[np.int64] | None:
    """Which entry each number from `lo` to `hi` is, -1 for none; None where they are just those
    numbers in order.
    """
    if len(numbers) == hi - lo + 1 and (numbers[1:] > numbers[:-1]).all():
        return None
    place = np.full(hi - lo + 1, -1, dtype=np.int64)
    place[numbers - lo] = np.arange(len(numbers))
    return place
