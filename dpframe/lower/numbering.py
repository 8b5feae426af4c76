"""The number of the public key of a row, and several whole numbers packed into one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.core.dtypes import DType
from dpframe.frames.relation import Binary, Relation
from dpframe.rows.layouts import GROUPED_AS_TEXT, unordered

# Which public key each row of an exact result belongs to.

_SPARSE = 4
"""Whole numbers are looked up in an array of at most this many entries per key."""


def number_rows(
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


# Groups by several whole numbers at once, packed into one.
#
# Polars groups by one column of integers in two thirds of the time that it takes with two. So rows
# whose numbers are small enough are grouped by one, which packs the numbers in some bits each.
# Others are grouped by the numbers as they are. Which way a row goes depends on what it is grouped
# by, so no group is divided and each is the same either way.

FIRST_BITS, OTHER_BITS = 33, 30
"""The bits of the first number, and of all others together: 63 that an Int64 has for numbers
above zero."""
_MOST = 4
_SCANS: Final = re.compile(r"^\s*(DF|\w+(?= SCAN)) ", re.MULTILINE)
"""What a plan reads from."""
_IN_PIECES: Final = ("DF", "Parquet", "IPC", "PARQUET")


def packable(types: Sequence[DType]) -> bool:
    """Whether numbers of these types may be packed, and it pays."""
    return 1 < len(types) <= _MOST and all(t.is_integer and t.name != "Int128" for t in types)


def in_memory(source: pl.LazyFrame | Mapping[int, pl.LazyFrame], relation: Relation) -> bool:
    """Whether rows come from one frame in memory, so that their columns may be held there."""
    plan = _explain(source, relation)
    return plan is not None and plan.startswith("DF [")


def in_batches(source: pl.LazyFrame | Mapping[int, pl.LazyFrame], relation: Relation) -> bool:
    """Whether rows are made of one frame in memory or of one set of files, which Polars reads
    piece by piece.
    """
    plan = _explain(source, relation)
    return plan is not None and len(scans := _SCANS.findall(plan)) == 1 and scans[0] in _IN_PIECES


def _explain(source: pl.LazyFrame | Mapping[int, pl.LazyFrame], relation: Relation) -> str | None:
    """The plan of the only frame that rows are made of; None where there are several."""
    if any(isinstance(step, Binary) for step, _ in relation.steps):
        return None
    frame = source if isinstance(source, pl.LazyFrame) else source[relation.token]
    # of a copy: Polars 1.32 lets no other thread use a frame meanwhile
    return frame.clone().explain(optimized=False)


def group_packed(
    frame: pl.LazyFrame, names: Sequence[str], made: Sequence[pl.Expr]
) -> pl.LazyFrame:
    """One row for each combination of some columns of whole numbers, with what the expressions make
    of its rows. The first of the columns has room for most values.
    """
    schema = frame.collect_schema()
    bits = [FIRST_BITS, *[OTHER_BITS // (len(names) - 1)] * (len(names) - 1)]
    numbers = [pl.col(name).cast(pl.Int64, strict=False) for name in names]
    small = pl.all_horizontal(
        number.is_between(0, 2**most - 1).fill_null(value=False)
        for number, most in zip(numbers, bits, strict=True)
    )
    parts, unpacked, below = [], [], 63
    for name, number, most in zip(names, numbers, bits, strict=True):
        below -= most
        parts.append(number * 2**below)
        found = pl.col(names[0]) // 2**below % 2**most
        unpacked.append(found.cast(schema[name]).alias(name))
    rest = [name for name in schema.names() if name not in names]
    results = [expression.meta.output_name() for expression in made]
    one = unordered(pl, pl.sum_horizontal(parts)).alias(names[0])
    by_one = frame.filter(small).select(one, *rest).group_by(names[0]).agg(*made)
    every = [unordered(pl, pl.col(name)).alias(name) for name in names]
    by_every = frame.filter(~small).select(*every, *rest).group_by(names).agg(*made)
    return pl.concat([by_one.select(*unpacked, *results), by_every.select(*names, *results)])
