"""Keeping a few rows of each individual: by a salted hash of the rows themselves.

What is kept of an individual may depend on that individual's rows only. A position in the frame, an
order of arrival or a random number drawn for each row would depend on who else is there, and then
one individual could move everybody's rows. So rows are ranked by a hash of their own values, and by
the values themselves where hashes are equal: a total order, but for rows that are equal in
everything. The salt is fresh for each release and secret; it makes the choice look random, and
privacy does not rest on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from dpframe.core.domain import Columns
from dpframe.core.dtypes import DType
from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.rows.grouped import grouped
from dpframe.rows.operation import Namespace
from dpframe.rows.suggest import did_you_mean


def keep_first(
    frame: pl.LazyFrame,
    most: int,
    within: Sequence[str],
    order: Mapping[str, DType],
    salt: int,
    ns: Namespace,
) -> pl.LazyFrame:
    """At most so many rows for each value of the columns `within`, by the hash of the columns
    `order`, which are all that tells rows apart.

    Ranking takes an engine several times as long as counting, so it is for those only that have
    too many.
    """
    hashed, rank = unused(order, "hash"), unused(order, "rank")
    values = {name: comparable(ns, name, dtype) for name, dtype in order.items()}
    whose = [values[name] for name in within]
    if ns is not pl:
        ranked = _ranked(frame, values, order, whose, hashed, rank, salt, ns)
        return ranked.filter(ns.col(rank) <= most).drop(hashed, rank)
    sized = once(frame.with_columns(ns.len().over(whose).alias(rank)))
    few = sized.filter(ns.col(rank) <= most).drop(rank)
    many = sized.filter(ns.col(rank) > most)
    ranked = _ranked(many, values, order, whose, hashed, rank, salt, ns)
    kept: pl.LazyFrame = ns.concat([few, ranked.filter(ns.col(rank) <= most).drop(hashed, rank)])
    return kept


def _ranked(
    frame: pl.LazyFrame,
    values: Mapping[str, pl.Expr],
    types: Mapping[str, DType],
    whose: Sequence[pl.Expr],
    hashed: str,
    rank: str,
    salt: int,
    ns: Namespace,
) -> pl.LazyFrame:
    """The rows with their place in the order of their hash and values, among those of `whose`."""
    marked = frame.with_columns(row_hash(ns, values, types, salt).alias(hashed))
    rest = [value for value in values.values() if not any(value is other for other in whose)]
    position = ns.col(hashed).cum_count().over(whose, order_by=[ns.col(hashed), *rest])
    return marked.with_columns(position.alias(rank))


def row_hash(
    ns: Namespace, values: Mapping[str, pl.Expr], types: Mapping[str, DType], salt: int
) -> pl.Expr:
    """A hash of some values of a row, each engine's own, whatever their types."""
    hashed: pl.Expr = ns.struct(*values.values()).hash(salt)
    return hashed


def once(frame: pl.LazyFrame) -> pl.LazyFrame:
    """The same frame, computed once though it is used twice: Polars finds that by itself where it
    is simple, and repeats whole chains of limits where it is not.
    """
    return frame.cache() if isinstance(frame, pl.LazyFrame) else frame


def unused(names: Collection[str], wanted: str) -> str:
    """A name like `wanted` that no column has."""
    while wanted in names:
        wanted += "_"
    return wanted


def comparable(ns: Namespace, name: str, dtype: DType) -> pl.Expr:
    """A column whose order, groups and hash depend on its values alone."""
    return grouped(ns, ns.col(name), dtype).alias(name)


def require_columns(names: Sequence[str], columns: Columns, where: str) -> None:
    """Refuse columns that are not there, or whose values cannot be told apart surely."""
    for name in names:
        if name not in columns:
            raise UnknownColumn(
                f"the frame has no column {name!r}", where=where, remedy=did_you_mean(name, columns)
            )
        dtype = columns[name].dtype
        if dtype.is_float or dtype.is_nested or not dtype.is_known:
            raise UnsupportedOperation(
                f"the column {name!r} of type {dtype} has no groups",
                where=where,
                remedy="use text, whole numbers, dates or categories",
            )


def require_count(n: object, where: str) -> int:
    """A limit that is a positive whole number."""
    if isinstance(n, bool) or not isinstance(n, int) or not 0 < n < 2**31:
        raise UnsupportedOperation(
            f"a limit is a positive whole number below 2**31, not {n!r}",
            where=where,
            remedy="write for example 10",
        )
    return n


def require_identifier(identifier: str | None, where: str) -> str:
    """The identifier, which limits need."""
    if identifier is None:
        raise UnsupportedOperation(
            "a limit needs to know whose rows they are, and unit=dp.Rows() does not say",
            where=where,
            remedy='protect the frame with unit="user_id", or promise dp.Rows(contributions=...)',
        )
    return identifier
