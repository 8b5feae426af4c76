"""What joins have in common: keys that engines compare by value, and names of new columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from dpframe.core.domain import Columns, Domain
from dpframe.core.dtypes import STRING, DType
from dpframe.errors import UnsupportedOperation
from dpframe.frames.sampling import comparable, unused
from dpframe.rows.operation import Namespace

__all__ = ["added_names", "joined", "require_same_types"]


def require_same_types(
    left: Sequence[Domain], right: Sequence[DType], names: Sequence[str], where: str
) -> None:
    """Refuse keys that would be compared after a cast, or whose equality is unsure."""
    for found, dtype, name in zip(left, right, names, strict=True):
        both_text = found.dtype.is_text and dtype.is_text
        if found.dtype.is_float or found.dtype.is_nested or not found.dtype.is_known:
            raise UnsupportedOperation(
                f"{name!r} of type {found.dtype} cannot be a key of a join",
                where=where,
                remedy="join on text, integers, dates or categories",
            )
        if found.dtype != dtype and not both_text:
            raise UnsupportedOperation(
                f"{name!r} has type {found.dtype} here and {dtype} in the other frame",
                where=where,
                remedy=f"cast the key of the other frame to {found.dtype}",
            )


def added_names(present: Columns, others: Sequence[str], suffix: str, where: str) -> dict[str, str]:
    """The names that columns of the other frame get: their own, or with the suffix."""
    names = {name: name + suffix if name in present else name for name in others}
    for name in names.values():
        if name in present or list(names.values()).count(name) > 1:
            raise UnsupportedOperation(
                f"two columns would be named {name!r}",
                where=where,
                remedy=("rename one of them first", "write another suffix="),
            )
    return names


def joined(
    left: pl.LazyFrame,
    right: pl.LazyFrame,
    keys: Sequence[tuple[str, str]],
    types: Mapping[str, DType],
    names: Mapping[str, str],
    how: str,
    ns: Namespace,
) -> pl.LazyFrame:
    """The join, with text keys as text and no key taken for sorted; nulls match nothing.

    Parameters
    ----------
    keys
        Names of key columns, left and right.
    types
        The types of the left columns.
    names
        The other columns of `right` that are kept, and their names then.
    how
        ``"inner"``, ``"left"``, ``"semi"`` or ``"anti"``.
    """
    taken = {*types, *names.values()}
    marks = [unused(taken, f"key{i}_") for i in range(len(keys))]
    marked = left.with_columns(
        *(comparable(ns, a, types[a]).alias(m) for (a, _), m in zip(keys, marks, strict=True))
    )
    others = right.select(
        *(
            comparable(ns, b, STRING if types[a].is_text else types[a]).cast(ns.String).alias(m)
            if types[a].is_text
            else comparable(ns, b, types[a]).alias(m)
            for (a, b), m in zip(keys, marks, strict=True)
        ),
        *(ns.col(old).alias(new) for old, new in names.items()),
    )
    return marked.join(others, on=marks, how=how).drop(*marks)  # type: ignore[arg-type]
